from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icewright.model.policy.policy import Mode, PolicyRule, Trigger
from icewright.model.policy.setting_values import Setting, duration_ms, value_text
from icewright.policy.effective import DEFAULT_ORIGIN, TABLE_ORIGIN, effective_policy, rule_problems
from icewright.policy.settings import BY_KEY, SETTINGS, documentation
from tests.builders.observations import HOUR_MS, MIB, table
from tests.cases import each_case

MODE = "icewright.mode"
TARGET = "write.target-file-size-bytes"
REWRITE = "icewright.rewrite-data-files."


def rule(properties: dict[str, str], *namespace: str, catalog: str = "lake") -> PolicyRule:
    return PolicyRule(catalog, namespace, properties)


def test_x3_nobodys_table_is_touched_before_they_say_so() -> None:
    policy = effective_policy(table(), ())
    assert policy.mode is Mode.OBSERVE
    assert policy.problems == ()
    assert set(policy.origins.values()) == {DEFAULT_ORIGIN}


@each_case("key", ["icewright.signed-by", "icewright.history.end", "icewright.history.fields"])
def test_what_icewright_notes_itself_is_nobodys_wish_and_no_rule_may_say_it(key: str) -> None:
    assert effective_policy(table(properties={key: "x"}), ()).problems == ()
    assert [problem.key for problem in effective_policy(table(), (rule({key: "x"}),)).problems] == [key]


def test_defaults_are_icebergs_where_iceberg_has_them() -> None:
    policy = effective_policy(table(), ())
    assert (policy.target_file_size_bytes, policy.min_input_files, policy.min_file_size_ratio) == (536_870_912, 5, 0.75)


def test_small_means_small_against_what_one_merge_makes() -> None:
    default = effective_policy(table(), ())
    assert default.output_size_bytes_max == 192 * MIB
    assert default.small_file_size_bytes == 144 * MIB
    smaller = effective_policy(table(properties={TARGET: str(128 * MIB)}), ())
    assert smaller.small_file_size_bytes == 96 * MIB


LAYERS = [
    ((), {}, Mode.OBSERVE, DEFAULT_ORIGIN),
    ((rule({MODE: "auto"}),), {}, Mode.AUTO, "catalog lake"),
    ((rule({MODE: "auto"}, catalog="other"),), {}, Mode.OBSERVE, DEFAULT_ORIGIN),
    ((rule({MODE: "auto"}), rule({MODE: "approve"}, "sales")), {}, Mode.APPROVE, "namespace lake.sales"),
    ((rule({MODE: "approve"}, "sales"), rule({MODE: "auto"})), {}, Mode.APPROVE, "namespace lake.sales"),
    ((rule({MODE: "auto"}), rule({MODE: "approve"}, "sale")), {}, Mode.AUTO, "catalog lake"),
    ((rule({MODE: "auto"}), rule({MODE: "approve"}, "sales", "eu")), {}, Mode.AUTO, "catalog lake"),
    ((rule({MODE: "auto"}), rule({TARGET: "1"}, "sales")), {}, Mode.AUTO, "catalog lake"),
    ((rule({MODE: "auto"}, "sales"),), {MODE: "observe"}, Mode.OBSERVE, TABLE_ORIGIN),
]


@each_case(("rules", "properties", "mode", "origin"), LAYERS)
def test_x3_the_deepest_layer_that_has_a_setting_wins(
    rules: tuple[PolicyRule, ...], properties: dict[str, str], mode: Mode, origin: str
) -> None:
    policy = effective_policy(table(properties=properties), rules)
    assert (policy.mode, policy.origins[MODE], policy.problems) == (mode, origin, ())


VALUES = [
    (TARGET, "134217728", "target_file_size_bytes", 134_217_728),
    (REWRITE + "min-input-files", "2", "min_input_files", 2),
    (REWRITE + "min-file-size-ratio", "0.5", "min_file_size_ratio", 0.5),
    (REWRITE + "min-file-size-ratio", "1", "min_file_size_ratio", 1.0),
    (REWRITE + "max-file-group-size-bytes", "1", "max_file_group_size_bytes", 1),
    (REWRITE + "max-file-group-files", "100000", "max_file_group_files", 100_000),
    (REWRITE + "max-task-size-bytes", "9223372036854775807", "max_task_size_bytes", 2**63 - 1),
    (REWRITE + "max-task-files", "2", "max_task_files", 2),
    (REWRITE + "migrate-formats", "true", "migrate_formats", True),
    ("icewright.write-window", "PT2H", "write_window_ms", 2 * HOUR_MS),
    ("icewright.write-window", "P1DT12H30M5S", "write_window_ms", 36 * HOUR_MS + 1_805_000),
    ("icewright.write-window", "P2W", "write_window_ms", 14 * 24 * HOUR_MS),
    ("icewright.write-window", "PT0S", "write_window_ms", 0),
    ("icewright.trigger", "cost-benefit", "trigger", Trigger.COST_BENEFIT),
    ("icewright.trigger.target-size-bytes", "1048576", "trigger_target_size_bytes", MIB),
    ("icewright.mse.ratio", "0.3", "mse_ratio", 0.3),
    ("icewright.mse.interval", "PT10M", "mse_interval_ms", HOUR_MS // 6),
    ("icewright.tiered.fragment-ratio", "16", "tiered_fragment_ratio", 16),
    ("icewright.tiered.minor-file-count", "2", "tiered_minor_files", 2),
    ("icewright.tiered.minor-interval", "PT0S", "tiered_minor_interval_ms", 0),
    ("icewright.tiered.full-interval", "P1D", "tiered_full_interval_ms", 24 * HOUR_MS),
    ("icewright.cost-benefit.scans-per-day", "0.5", "scans_per_day", 0.5),
    ("icewright.cost-benefit.horizon", "P1D", "horizon_ms", 24 * HOUR_MS),
    ("icewright.cost-benefit.open-ms", "40", "open_ms", 40.0),
    ("icewright.cost-benefit.plan-ms", "0", "plan_ms", 0.0),
    ("icewright.cost-benefit.rewrite-ms", "1000", "rewrite_ms", 1000.0),
    ("icewright.cost-benefit.read-bytes-per-second", "1", "read_bytes_per_s", 1),
    ("icewright.cost-benefit.write-bytes-per-second", "1", "write_bytes_per_s", 1),
    ("history.expire.max-snapshot-age-ms", "86400000", "max_snapshot_age_ms", 24 * HOUR_MS),
    ("history.expire.min-snapshots-to-keep", "1", "min_snapshots_to_keep", 1),
    ("icewright.expire-snapshots.max-hold", "P7D", "max_hold_ms", 7 * 24 * HOUR_MS),
    ("icewright.ignore-other-optimizers", "TRUE", "ignore_other_optimizers", True),
    ("icewright.ignore-other-optimizers", "false", "ignore_other_optimizers", False),
]


@each_case(("key", "text", "field", "value"), VALUES)
def test_values(key: str, text: str, field: str, value: object) -> None:
    policy = effective_policy(table(properties={key: text}), ())
    assert getattr(policy, field) == value
    assert policy.problems == ()
    assert policy.origins[key] == TABLE_ORIGIN


INVALID = [
    (MODE, ["", "Auto", "on", "auto "]),
    (TARGET, ["0", "-1", "128MB", "1e9", "1_000", " 5", "\u0665", "9223372036854775808", ""]),
    (REWRITE + "min-input-files", ["1", "0", "two"]),
    (REWRITE + "min-file-size-ratio", ["0", "1.01", "nan", "inf", "-0.5", "75%", ".", ""]),
    (REWRITE + "max-file-group-files", ["1", "100001"]),
    (REWRITE + "max-task-files", ["1", "100001"]),
    ("icewright.write-window", ["", "P", "PT", "P1DT", "2h", "P1M", "P1Y", "PT1.5H", "-PT1H", "P1W2D", "7200"]),
    ("icewright.trigger", ["Levels", "level-0", "", "amoro"]),
    ("icewright.mse.ratio", ["0", "20%", "1.2"]),
    ("icewright.mse.interval", ["hourly", "3600000"]),
    ("icewright.tiered.fragment-ratio", ["0", "8.5", "1000001"]),
    ("icewright.tiered.minor-file-count", ["1", "-1"]),
    ("icewright.tiered.full-interval", ["-1", "never"]),
    ("icewright.cost-benefit.scans-per-day", ["-1", "nan", "inf", "1e3", "1000000000", "9" * 40, ""]),
    ("icewright.cost-benefit.read-bytes-per-second", ["0", "200MB"]),
    ("history.expire.max-snapshot-age-ms", ["0", "-1", "5d", "P5D", "2026-11-22"]),
    ("history.expire.min-snapshots-to-keep", ["0", "all"]),
    ("icewright.expire-snapshots.max-hold", ["30", "P1M", "2026-11-22T00:00:00Z"]),
    ("icewright.ignore-other-optimizers", ["yes", "1", ""]),
]


@each_case(("key", "text"), [(key, text) for key, texts in INVALID for text in texts])
def test_an_invalid_value_is_reported_with_what_is_allowed(key: str, text: str) -> None:
    (problem,) = effective_policy(table(properties={key: text}), ()).problems
    assert (problem.key, problem.value, problem.origin) == (key, text, TABLE_ORIGIN)
    assert problem.problem == f"{text!r} is not {BY_KEY[key].allowed}"


def test_the_next_lower_layer_does_not_step_in_for_an_invalid_value() -> None:
    policy = effective_policy(table(properties={MODE: "of"}), (rule({MODE: "auto"}),))
    assert policy.mode is Mode.OBSERVE
    assert policy.origins[MODE] == "default (the value is invalid)"
    assert [problem.value for problem in policy.problems] == ["of"]


def test_an_invalid_value_in_a_rule_is_a_problem_even_where_the_table_overrides_it() -> None:
    policy = effective_policy(table(properties={MODE: "auto"}), (rule({MODE: "always"}),))
    assert [(problem.origin, problem.value) for problem in policy.problems] == [("catalog lake", "always")]


def test_unknown_settings_are_reported_and_the_nearest_is_named() -> None:
    policy = effective_policy(table(properties={"icewright.mod": "auto", "write.format.default": "orc"}), ())
    (problem,) = policy.problems
    assert problem.problem == "there is no setting 'icewright.mod'; perhaps icewright.mode is meant"


def test_a_rule_has_settings_alone() -> None:
    (problem,) = rule_problems(rule({"write.format.default": "parquet", MODE: "auto"}, "sales"))
    assert (problem.key, problem.origin) == ("write.format.default", "namespace lake.sales")


def test_x3_two_rules_of_one_namespace_that_disagree_are_a_problem() -> None:
    policy = effective_policy(table(), (rule({MODE: "auto"}, "sales"), rule({MODE: "observe"}, "sales")))
    assert [problem.problem for problem in policy.problems] == ["namespace lake.sales says both 'auto' and 'observe'"]
    assert policy.mode is Mode.OBSERVE


@given(st.dictionaries(st.sampled_from(sorted(BY_KEY)) | st.text(), st.text() | st.sampled_from(["auto", "5"])))
def test_whatever_a_table_says_gives_a_policy_and_problems(properties: dict[str, str]) -> None:
    policy = effective_policy(table(properties=properties), ())
    assert set(policy.origins) == set(BY_KEY)
    for setting in SETTINGS:
        if any(problem.key == setting.key for problem in policy.problems):
            assert getattr(policy, setting.field) == setting.default


@each_case("setting", SETTINGS, ids=lambda setting: setting.key)
def test_a_default_is_shown_as_it_would_be_set(setting: Setting) -> None:
    text = value_text(setting, setting.default)
    assert (setting.parse(text) if text else None) == setting.default


@each_case("text", ["PT0S", "PT90S", "PT2H", "P7D", "PT90M"])
def test_durations_are_shown_as_they_are_set(text: str) -> None:
    assert value_text(BY_KEY["icewright.write-window"], duration_ms(text)) == text


def test_a_value_that_is_meant_to_keep_us_busy_is_read_once() -> None:
    """A pattern that divides a run of digits in each possible way would take hours for it."""
    for evil in ("9" * 1_000_000 + "x", "." * 1_000_000, "1d" * 500_000, "(" * 1_000_000, "a," * 500_000):
        policy = effective_policy(table(properties={setting.key: evil for setting in SETTINGS}), ())
        assert {MODE, TARGET, REWRITE + "min-file-size-ratio"} <= {problem.key for problem in policy.problems}


def test_hostile_keys_are_quoted_and_cut() -> None:
    (problem,) = effective_policy(table(properties={"icewright.\n" + "x" * 100_000: "1"}), ()).problems
    assert "\n" not in problem.problem
    assert len(problem.problem) < 200


def test_the_documentation_has_every_setting() -> None:
    text = documentation()
    for setting in SETTINGS:
        assert f"| `{setting.key}` |" in text
        assert setting.doc in text
