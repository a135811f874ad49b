"""Files of older partition specs move to the current one: when touched, or all of them; never more than is known."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from icewright.actions.rewrite_data_files.candidates import asked_fields
from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.inventory.specs import PARTITIONS_MAX, Moves, current_spec_obstacle, span_field, spec_said
from icewright.maintenance.registry.planning import still_applies
from icewright.model.actions.actions import Executor, FileGroup
from icewright.model.iceberg.files import DataFile, DeleteFile, Partition
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.iceberg.tables import (
    LAYOUT_KEY,
    LEVEL_KEY,
    TASK_ID_KEY,
    Operation,
    PartitionField,
    PartitionSpec,
    SortField,
    TableMetadata,
)
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan, Verdict
from icewright.model.policy.policy import MigrateSpec, Policy
from icewright.policy.effective import effective_policy
from icewright.policy.missing_rules import rules
from icewright.policy.settings import MIGRATE_SPEC_KEY
from tests.builders.observations import (
    DAY_MS,
    HOUR_MS,
    MIB,
    NOW,
    data_files,
    equality_deletes,
    observe,
    policy,
    snapshot,
    table,
)
from tests.cases import each_case
from tests.narrowing import not_none

FIELDS = (
    {"id": 1, "name": "ts", "type": "timestamptz", "required": False},
    {"id": 2, "name": "id", "type": "long", "required": False},
    {"id": 3, "name": "price", "type": "double", "required": False},
    {"id": 4, "name": "city", "type": "string", "required": False},
    {"id": 5, "name": "key", "type": "uuid", "required": False},
)
COLUMNS = {"ts": 1, "id": 2, "price": 3, "city": 4, "key": 5}
OLD, WHOLE = Partition(0, '["2024-01-01"]'), Partition(0, "[]")
ALL, TOUCHED, NEVER = (policy(migrate_spec=each) for each in (MigrateSpec.ALL, MigrateSpec.TOUCHED, MigrateSpec.NEVER))


def spec(spec_id: int, *terms: str) -> PartitionSpec:
    """``day ts`` and the like."""
    fields = [(term.split()[0], COLUMNS.get(term.split()[1], 99)) for term in terms]
    return PartitionSpec(
        spec_id, tuple(PartitionField(source, 1000 + n, f"p{n}", kind) for n, (kind, source) in enumerate(fields))
    )


def evolved(old: str, new: str, **changes: Any) -> TableMetadata:
    """A table whose current spec is 1; terms are separated by commas."""
    specs = tuple(spec(n, *filter(None, terms.split(", "))) for n, terms in enumerate((old, new)))
    return table(fields=FIELDS, specs=specs, default_spec_id=1, **changes)


def planned(files: list[DataFile], rules: Policy, metadata: TableMetadata, **kinds: Any) -> Plan:
    observation = observe(files, metadata, **kinds)
    deletes = tuple(kinds.get("deletes") or ())
    plan = plan_table(observation, rules, shortlist(observation, rules, NOW), files, deletes, plan_id="p", now=NOW)
    assert check_plan(plan, observation, rules, {f.path: f for f in files}, deletes) == ()
    return plan


def groups_of(plan: Plan) -> list[FileGroup]:
    return [group for action in plan.rewrites for group in action.groups]


def spanned(files: list[DataFile], spans: list[tuple[int, int]]) -> list[DataFile]:
    return [replace(f, spans=(((1, low), (1, high)),)) for f, (low, high) in zip(files, spans, strict=True)]


@each_case(
    ("old", "new", "made"),
    [
        ("day ts", "hour ts", 24),
        ("year ts", "month ts", 12),
        ("year ts", "hour ts", 366 * 24),
        ("month ts", "hour ts", 31 * 24),
        ("hour ts", "day ts", 1),
        ("day ts", "day ts, bucket[8] id", 9),  # with the nulls
        ("bucket[4] id", "bucket[8] id", 2),
        ("bucket[8] id", "bucket[4] id", 1),
        ("bucket[6] id", "bucket[4] id", 2),
        ("bucket[3] id", "bucket[4] id", 4),
        ("identity id", "bucket[4] id", 1),
        ("identity ts", "hour ts", 1),
        ("bucket[4] id, day ts", "hour ts, bucket[8] id", 48),
        ("", "bucket[16] id", 17),
        ("day ts", "", 1),
        ("", "day ts", None),
        ("", "identity city", None),
        ("truncate[2] city", "truncate[1] city", None),
        ("truncate[2] city", "truncate[2] city", 1),
        ("void id, day ts", "bucket[4] id", 5),
    ],
)
def test_how_many_partitions_rows_fall_into_follows_from_the_specs(old: str, new: str, made: int | None) -> None:
    files = data_files(Partition(0, "[1]"), 2)
    moves = Moves.of(observe(files, evolved(old, new)), ALL, None)
    assert moves.partitions_made(files) == made


@each_case(
    ("spans", "made"),
    [([(10, 10), (10, 12)], 3), ([(10, 10), (19, 19)], 10), ([(7, 7), (7, 7)], 1)],
)
def test_or_from_the_bounds_of_the_files(spans: list[tuple[int, int]], made: int) -> None:
    metadata = evolved("", "day ts")
    field = span_field(metadata, ALL)
    assert field == SortField(1, "day", "asc", "nulls-first")
    files = spanned(data_files(WHOLE, 2), spans)
    observation = observe(files, metadata)
    assert Moves.of(observation, ALL, None, (field,)).partitions_made(files) == made
    assert Moves.of(observation, ALL, None).partitions_made(files) is None  # nobody says what the spans are of
    with_nulls = [replace(files[0], spans=(((0, None), (1, 10)),)), files[1]]
    assert Moves.of(observation, ALL, None, (field,)).partitions_made(with_nulls) is None


def test_spans_are_asked_for_where_there_are_older_files_and_no_level_needs_them() -> None:
    metadata = evolved("", "day ts")
    new = observe(data_files(Partition(1, '["2024-01-01"]'), 2), metadata)
    assert asked_fields(new, TOUCHED, None) == ()
    old = observe(data_files(WHOLE, 2), metadata)
    assert asked_fields(old, TOUCHED, None) == (span_field(metadata, TOUCHED),)
    assert asked_fields(old, NEVER, None) == ()


@each_case(
    ("new", "said"),
    [
        ("void id", "void of a long"),
        ("identity price", "identity of a double"),
        ("bucket[4] key", r"bucket\[4\] of a uuid"),
        ("hour gone", "column was dropped"),
        ("rot13 city", "rot13 of a string"),
        ("bucket[0] id", "cannot be computed"),
        ("year city", "year of a string"),
    ],
)
def test_what_cannot_be_computed_is_refused_with_the_reason(new: str, said: str) -> None:
    metadata, files = evolved("day ts", new), data_files(OLD, 2, 600 * MIB)
    assert not_none(current_spec_obstacle(metadata)).code == "partition-transform"
    plan = planned(files, ALL, metadata)
    assert plan.rewrites == ()
    (verdict,) = plan.verdicts
    assert verdict.verdict is Verdict.REFUSE
    assert re.search(said, verdict.reason.text)


def test_all_files_move_whatever_their_size_and_the_plan_says_from_where_to_where() -> None:
    metadata, files = evolved("day ts", "hour ts"), data_files(OLD, 2, 600 * MIB)
    assert planned(files, TOUCHED, metadata).actions == ()
    plan = planned(files, ALL, metadata)
    (group,) = groups_of(plan)
    assert (group.output_spec_id, group.output_files, group.executor) == (1, 24, Executor.STAGED)
    assert "from spec 0 (day(ts)) to spec 1 (hour(ts))" in plan.verdicts[0].reason.text
    assert plan.reason.code == "other-spec"
    assert plan.reason.text.endswith("into at most 24, staged for Spark, moved to the current partition spec")
    assert plan.verdicts[0].files_after == 0
    (action,) = plan.rewrites
    assert "'output-spec-id', '1'" in (plan.prediction.call if plan.prediction else "")
    assert still_applies(action, plan.table_id, metadata) is None
    other = replace(metadata, specs=(*metadata.specs, spec(2, "bucket[4] id")), default_spec_id=2)
    assert (reason := still_applies(action, plan.table_id, other)) is not None
    assert reason.code == "spec-changed"


def test_small_files_move_when_touched_where_that_makes_fewer_of_them() -> None:
    metadata = evolved("day ts", "hour ts")
    (few,) = groups_of(planned(data_files(OLD, 24), TOUCHED, metadata))
    (many,) = groups_of(planned(data_files(OLD, 25), TOUCHED, metadata))
    assert (few.output_spec_id, few.executor) == (None, Executor.MERGE)
    assert (many.output_spec_id, many.output_files, many.executor) == (1, 24, Executor.STAGED)
    (never,) = groups_of(planned(data_files(OLD, 25), NEVER, metadata))
    assert never.output_spec_id is None
    (coarser,) = groups_of(planned(data_files(OLD, 5), TOUCHED, evolved("hour ts", "day ts")))
    assert (coarser.output_spec_id, coarser.output_files) == (1, 1)


def test_files_that_share_no_bounds_stay_when_touched_and_move_within_a_bound_when_asked() -> None:
    metadata = evolved("", "identity city")
    (group,) = groups_of(planned(data_files(WHOLE, 30), TOUCHED, metadata))
    assert group.output_spec_id is None
    (group,) = groups_of(planned(data_files(WHOLE, 30), ALL, metadata))
    assert (group.output_spec_id, group.output_files) == (1, PARTITIONS_MAX)


def test_a_group_makes_no_more_files_than_the_bound_and_a_file_beyond_it_is_refused() -> None:
    metadata = evolved("", "day ts")
    files = spanned(data_files(WHOLE, 3, 300 * MIB), [(0, 900), (800, 1300), (5000, 7000)])
    field = span_field(metadata, ALL)
    observation = observe(files, metadata)
    plan = plan_table(observation, ALL, shortlist(observation, ALL, NOW), files, plan_id="p", now=NOW)
    assert [(len(group.files), group.output_files) for group in groups_of(plan)] == [(1, 901), (1, 501)]
    assert field is not None
    alone = observe(files[2:], metadata)
    plan = plan_table(alone, ALL, shortlist(alone, ALL, NOW), files[2:], plan_id="p", now=NOW)
    assert [verdict.reason.code for verdict in plan.verdicts] == ["many-partitions"]
    assert "2,001 partitions" in plan.verdicts[0].reason.text


def test_where_nothing_can_be_moved_small_files_are_merged_as_ever() -> None:
    metadata = evolved("day ts", "identity price")
    (group,) = groups_of(planned(data_files(OLD, 6), ALL, metadata))
    assert (group.output_spec_id, len(group.files)) == (None, 6)


def upserted(written_ms_ago: int) -> Observation:
    """A table whose older spec has equality deletes, and was last written to so long ago."""
    snapshots = [snapshot(1, NOW - written_ms_ago)]
    files = data_files(OLD, 2, 600 * MIB)
    return observe(files, evolved("day ts", "hour ts", snapshots=snapshots), deletes=[equality_deletes(OLD, 0)])


def test_a_spec_whose_writer_deletes_by_equality_moves_when_it_has_been_quiet_for_a_day() -> None:
    """What such a writer deletes later reaches the partitions of its own spec alone: rows that moved would stay."""
    files, deletes = data_files(OLD, 2, 600 * MIB), [equality_deletes(OLD, 0)]
    for ago, moves in ((DAY_MS - HOUR_MS, False), (DAY_MS + HOUR_MS, True)):
        observation = upserted(ago)
        verdicts = shortlist(observation, ALL, NOW)
        plan = plan_table(observation, ALL, verdicts, files, deletes, plan_id="p", now=NOW)
        assert bool(plan.rewrites) == moves
        if not moves:
            assert [(v.verdict, v.reason.code) for v in plan.verdicts] == [(Verdict.WAIT, "spec-in-use")]
            assert plan.look_again_at == NOW + HOUR_MS


def verdict_codes(observation: Observation, files: list[DataFile], deletes: list[DeleteFile]) -> set[str]:
    verdicts = shortlist(observation, ALL, NOW)
    plan = plan_table(observation, ALL, verdicts, files, deletes, plan_id="p", now=NOW)
    return {verdict.reason.code for verdict in plan.verdicts}


def test_such_a_writer_is_known_by_its_commits_where_its_deletes_were_folded_in_already() -> None:
    """Between two commits of a writer a rewrite may fold in all of its deletes, and none is live."""
    upsert = snapshot(1, NOW - HOUR_MS, summary={"added-equality-delete-files": "1"})
    files, metadata = data_files(OLD, 2, 600 * MIB), evolved("day ts", "hour ts", snapshots=[upsert])
    observation = observe(files, metadata)
    assert verdict_codes(observation, files, []) == {"spec-in-use"}
    quiet = observe(files, evolved("day ts", "hour ts", snapshots=[snapshot(1, NOW - HOUR_MS)]))
    assert verdict_codes(quiet, files, []) == {"other-spec"}
    assert "too-soon" in codes(planned(files, ALL, quiet.metadata), observation)


def test_a_write_whose_snapshot_is_gone_may_be_as_late_as_the_first_one_that_is_there() -> None:
    """Snapshots that expire after an hour say nothing of a writer two hours ago."""
    files, deletes = data_files(OLD, 2, 600 * MIB, snapshot_id=1), [equality_deletes(OLD, 0)]
    for ago, code in ((HOUR_MS, "spec-in-use"), (DAY_MS + HOUR_MS, "other-spec")):
        metadata = evolved("day ts", "hour ts", snapshots=[snapshot(2, NOW - ago)])
        observation = observe(files, metadata, deletes=deletes)
        assert observation.inventory.partitions[0].written_at is None
        assert verdict_codes(observation, files, deletes) == {code}
        plan = planned(files, ALL, evolved("day ts", "hour ts"), deletes=deletes)
        assert ("too-soon" in codes(plan, observation)) == (code == "spec-in-use")


def test_deletes_by_equality_of_an_unpartitioned_spec_reach_everywhere_and_need_no_wait() -> None:
    snapshots = [snapshot(1, NOW - 2 * HOUR_MS)]
    metadata = evolved("", "bucket[4] id", snapshots=snapshots)
    files = data_files(WHOLE, 2, 600 * MIB)
    (group,) = groups_of(planned(files, ALL, metadata, deletes=[equality_deletes(WHOLE, 0)]))
    assert group.output_spec_id == 1
    assert len(group.delete_files) == 1


# The second opinion.


def wrong(plan: Plan, **changes: Any) -> Plan:
    """The plan with its group changed."""
    (action,) = plan.rewrites
    (group,) = action.groups
    return replace(plan, actions=(replace(action, groups=(replace(group, **changes),)),))


def codes(plan: Plan, observation: Observation, rules: Policy = ALL) -> set[str]:
    return {code for code, _ in check_plan(plan, observation, rules, None)}


def test_the_checker_finds_what_must_not_be_moved() -> None:
    metadata, files = evolved("day ts", "hour ts"), data_files(OLD, 2, 600 * MIB)
    observation, plan = observe(files, metadata), planned(files, ALL, metadata)
    assert "not-asked" in codes(plan, observation, NEVER)
    assert "not-small" in codes(plan, observation, TOUCHED)
    assert "wrong-output-files" in codes(plan, observation, TOUCHED)
    assert "wrong-executor" in codes(wrong(plan, executor=Executor.MERGE), observation)
    assert "wrong-spec" in codes(wrong(plan, output_spec_id=0), observation)
    assert "wrong-spec" in codes(wrong(plan, output_spec_id=7), observation)
    assert "wrong-output-files" in codes(wrong(plan, output_files=PARTITIONS_MAX + 1), observation)
    assert "group-too-large" in codes(wrong(plan, output_files=2), observation)
    assert "group-too-few" in codes(wrong(plan, files=()), observation)
    unknown = replace(observation, metadata=evolved("day ts", "identity price"))
    assert "not-movable" in codes(plan, unknown)
    assert "too-soon" in codes(plan, upserted(HOUR_MS))
    assert "too-soon" not in codes(plan, upserted(3 * DAY_MS))
    (action,) = plan.rewrites
    layout = Layout(Curve.SORT, (SortField(2, "identity", "asc", "nulls-first"),))
    ordered = replace(plan, actions=(replace(action, level=Level.LEVEL_1, layout=layout),))
    assert "layout-moved" in codes(ordered, observation)


def test_the_checker_takes_files_out_of_their_order_only_where_all_are_to_move() -> None:
    layout = Layout(Curve.SORT, (SortField(2, "identity", "asc", "nulls-first"),))
    run = snapshot(
        1, operation=Operation.REPLACE, summary={LEVEL_KEY: "level-1", LAYOUT_KEY: layout.key, TASK_ID_KEY: "task-1"}
    )
    metadata, files = evolved("hour ts", "day ts", snapshots=[run]), data_files(OLD, 6)
    by_path, plan = {file.path: file for file in files}, planned(files, TOUCHED, metadata)
    (group,) = groups_of(plan)
    assert group.output_spec_id == 1
    for chosen, codes_found in ((ALL, set()), (TOUCHED, {"order-lost"})):
        found = check_plan(plan, observe(files, metadata), chosen, by_path, layout=layout)
        assert {code for code, _ in found} == codes_found


def test_specs_are_told_by_the_names_of_today() -> None:
    metadata = evolved("", "day ts, bucket[4] id, identity gone")
    assert spec_said(metadata, 0) == "spec 0 (unpartitioned)"
    assert spec_said(metadata, 1) == "spec 1 (day(ts), bucket[4](id), identity(field-99))"


@each_case(
    ("value", "said"),
    [
        ("touched", "moved, when they are rewritten and that makes fewer files, to"),
        ("all", "moved to"),
        ("never", "never moved to"),
    ],
)
def test_what_becomes_of_older_files_is_explained(value: str, said: str) -> None:
    metadata = evolved("day ts", "hour ts", properties={MIGRATE_SPEC_KEY: value})
    older = rules(observe(data_files(OLD, 2), metadata), effective_policy(metadata, ()), None)
    (rule,) = [one for one in older if one.code == "rule-spec"]
    start = "2 files in 1 partition of older partition specs, "
    assert rule.text == f"{start}{said} spec 1 (hour(ts)) ({MIGRATE_SPEC_KEY}, table property)"
    new = rules(observe(data_files(Partition(1, "[1]"), 2), metadata), effective_policy(metadata, ()), None)
    assert "rule-spec" not in {one.code for one in new}
    unknown = evolved("day ts", "identity price")
    (rule,) = [one for one in rules(observe(data_files(OLD, 2), unknown), ALL, None) if one.code == "rule-spec"]
    assert rule.figures["spec_obstacle"] == "partition-transform"


def test_planner_and_checker_agree_where_clocks_of_writers_went_back() -> None:
    """The oldest snapshot that is left counts, also where a later one is dated before it."""
    files, deletes = data_files(OLD, 2, 600 * MIB, snapshot_id=1), [equality_deletes(OLD, 0)]
    snapshots = [snapshot(2, NOW - HOUR_MS), snapshot(3, NOW - 3 * DAY_MS)]
    metadata = evolved("day ts", "hour ts", snapshots=snapshots)
    assert planned(files, ALL, metadata, deletes=deletes).verdicts[0].reason.code == "spec-in-use"
