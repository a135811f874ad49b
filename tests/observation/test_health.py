"""The health of a table: laws of the pure function, and what each part says and asks for."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icewright.core.reasons import Reason
from icewright.model.actions.actions import ActionKind
from icewright.model.policy.policy import Mode, Policy
from icewright.model.work.figures import HEALTH_WEIGHTS, Grade, HealthPart, PartHealth, TableHealth
from icewright.model.work.tasks import TaskState
from icewright.observation.figures import figures_view
from icewright.observation.health import HealthFigures, _expirable_snapshots, change_of, health_of, with_problem
from icewright.policy.effective import policy_of
from tests.builders.lakehouse import NAME, Lakehouse
from tests.builders.observations import DAY_MS, MIB, NOW, data_file, month, observe, snapshot, table
from tests.builders.queries import CountedQueries
from tests.builders.worker import Worker
from tests.cases import each_case
from tests.narrowing import not_none

FINE = HealthFigures(
    data_files=20,
    size_bytes=20 * 512 * MIB,
    records=1_000_000,
    small_files=0,
    avoidable_files=0,
    delete_files=0,
    equality_delete_files=0,
    deleted_records=0,
    manifests=3,
    avoidable_manifests=0,
    snapshots=12,
    expirable_snapshots=0,
    layout=None,
    ordered_bytes=0,
    mode=Mode.AUTO,
    plan=None,
    failures=0,
    failures_max=5,
    problem=None,
)
WORK = Reason("small-files", "20 small files become 1")
COUNTS = st.integers(0, 10_000)


@st.composite
def figures(draw: st.DrawFn) -> HealthFigures:
    """Figures that a table can have: parts are never more than the whole."""
    files, records, manifests = draw(COUNTS), draw(COUNTS), draw(COUNTS)
    snapshots, size_bytes = draw(COUNTS), draw(COUNTS)
    avoidable = draw(st.integers(0, files))
    deletes = draw(COUNTS)
    return HealthFigures(
        data_files=files,
        size_bytes=size_bytes,
        records=records,
        small_files=draw(st.integers(avoidable, files)),
        avoidable_files=avoidable,
        delete_files=deletes,
        equality_delete_files=draw(st.integers(0, deletes)),
        deleted_records=draw(COUNTS),
        manifests=manifests,
        avoidable_manifests=draw(st.integers(0, manifests)),
        snapshots=snapshots,
        expirable_snapshots=draw(st.integers(0, snapshots)),
        layout=draw(st.sampled_from([None, "hilbert(a, b)", Reason("column-missing", "there is no column a")])),
        ordered_bytes=draw(st.integers(0, size_bytes)),
        mode=draw(st.sampled_from(Mode)),
        plan=draw(st.sampled_from([None, WORK])),
        failures=draw(st.integers(0, 20)),
        failures_max=draw(st.integers(1, 10)),
        problem=draw(st.sampled_from([None, Reason("unreadable", "a manifest is gone")])),
        unworthy_files=draw(st.sampled_from([0, draw(st.integers(0, avoidable)), avoidable])),
    )


def part(health: TableHealth, which: HealthPart) -> PartHealth:
    return next(one for one in health.parts if one.part is which)


def test_weights_sum_to_a_hundred_and_every_part_has_one() -> None:
    assert sum(HEALTH_WEIGHTS.values()) == 100
    assert set(HEALTH_WEIGHTS) == set(HealthPart)


@given(figures())
def test_scores_are_from_0_to_100_and_the_whole_is_their_mean(found: HealthFigures) -> None:
    health = health_of(found)
    assert tuple(one.part for one in health.parts) == tuple(HealthPart)
    assert all(0 <= one.score <= 100 for one in health.parts)
    assert health.score == sum(one.score * one.weight for one in health.parts) // 100
    assert min(one.score for one in health.parts) <= health.score <= max(one.score for one in health.parts)
    assert health.grade is Grade.of(health.score)


@given(figures())
def test_a_part_has_an_action_exactly_where_something_would_raise_it(found: HealthFigures) -> None:
    for one in health_of(found).parts:
        assert (one.action is None) == (one.score == 100), one
        assert one.reason.text
        assert (one.reason.code == "fine") == (one.score == 100), one


@given(figures(), st.integers(0, 10_000))
def test_more_small_files_never_raise_it(found: HealthFigures, more: int) -> None:
    worse = replace(
        found,
        data_files=found.data_files + more,
        small_files=found.small_files + more,
        avoidable_files=found.avoidable_files + more,
    )
    assert health_of(worse).score <= health_of(found).score


@given(figures(), st.integers(0, 10_000))
def test_more_files_that_are_not_worth_merging_change_nothing_of_the_others(found: HealthFigures, more: int) -> None:
    other = replace(
        found,
        data_files=found.data_files + more,
        small_files=found.small_files + more,
        avoidable_files=found.avoidable_files + more,
        unworthy_files=found.unworthy_files + more,
    )
    assert part(health_of(other), HealthPart.FILES).score == part(health_of(found), HealthPart.FILES).score


def test_files_that_the_trigger_does_not_merge_are_not_asked_for() -> None:
    found = replace(FINE, data_files=40, small_files=30, avoidable_files=28, unworthy_files=28)
    files = part(health_of(found), HealthPart.FILES)
    assert (files.score, files.action, files.reason.code) == (100, None, "fine")
    assert files.reason.text == (
        "merging takes up to 28 small files away, which is not worth it: readers would save less than it costs"
    )
    some = part(health_of(replace(found, unworthy_files=19)), HealthPart.FILES)
    assert some.score == 100 * (40 - 28) // (40 - 19)
    assert some.action is not None
    assert some.reason.text == (
        "30 of 40 data files are small; merging takes up to 9 away, and 19 more that are not worth it"
    )
    assert some.reason.figures == {"avoidable": 9, "small": 30, "files": 40, "not_worth_it": 19}


def test_a_look_asks_for_no_merge_that_few_counted_queries_do_not_pay() -> None:
    house = Lakehouse().with_ready_table()

    def seen(queries: int) -> PartHealth:
        house.control.planner.queries = CountedQueries(queries)
        house.append(1)  # a look plans anew
        house.control.maintainer.look(NAME)
        shown = not_none(house.record().listed)
        return part(not_none(shown.health), HealthPart.FILES)

    house.catalog.set_properties(NAME, {"icewright.cost-benefit.rewrite-ms": "100000"})
    few = seen(120)
    plan = house.control.planner.plan(NAME).plan
    assert {verdict.reason.code for verdict in plan.verdicts} == {"not-worth-it"}
    assert (few.score, few.action) == (100, None)
    assert "not worth it" in few.reason.text
    many = seen(10_000_000)
    assert many.score < 100
    assert many.action is not None


@given(figures(), st.sampled_from(["delete_files", "deleted_records", "failures"]), st.integers(0, 10_000))
def test_more_of_what_is_bad_never_raises_it(found: HealthFigures, field: str, more: int) -> None:
    worse = replace(found, **{field: getattr(found, field) + more})
    assert health_of(worse).score <= health_of(found).score


@given(figures(), st.sampled_from([("manifests", "avoidable_manifests"), ("snapshots", "expirable_snapshots")]), COUNTS)
def test_more_that_is_not_needed_never_raises_it(found: HealthFigures, fields: tuple[str, str], more: int) -> None:
    worse = replace(found, **{field: getattr(found, field) + more for field in fields})
    assert health_of(worse).score <= health_of(found).score


@given(figures())
def test_a_problem_never_raises_it_and_changes_no_other_part(found: HealthFigures) -> None:
    before = health_of(found)
    after = with_problem(before, Reason("unavailable", "the storage does not answer"))
    assert after.score <= before.score
    assert part(after, HealthPart.FAILURES).score == 0
    same = [one for one in after.parts if one.part is not HealthPart.FAILURES]
    assert same == [one for one in before.parts if one.part is not HealthPart.FAILURES]


@given(st.lists(st.integers(1, 600), min_size=1, max_size=30), st.integers(1, 80))
def test_each_further_small_file_of_a_partition_never_raises_its_score(sizes_mib: list[int], small: int) -> None:
    """By the sizes of files themselves, as far as 80 % of what the policy calls small."""
    policy = policy_of(NAME, {}, ())
    small_mib = max(1, small * policy.small_file_size_bytes // MIB // 100)
    scores = [_files_score(policy, [*sizes_mib, *[small_mib] * more]) for more in range(8)]
    assert all(after <= before for before, after in pairwise(scores)), scores


def _files_score(policy: Policy, sizes_mib: list[int]) -> int:
    found = observe([data_file(month(1), number, size * MIB) for number, size in enumerate(sizes_mib)])
    sums = figures_view(found.inventory.partitions, policy)
    changed = replace(
        FINE, data_files=sums.data_files, small_files=sums.small_files, avoidable_files=sums.avoidable_files
    )
    return part(health_of(changed), HealthPart.FILES).score


def test_a_small_table_whose_small_files_are_merged_is_healthy() -> None:
    house = Lakehouse().with_ready_table()
    maintainer = house.control.maintainer
    maintainer.look(NAME)
    before = _health(house)
    assert part(before, HealthPart.FILES).score < 50
    Worker(house).carry_out()
    house.control.loop.round()
    assert house.only_task().state is TaskState.SUCCEEDED
    assert _health(house).parts[0].reason.figures["files"] == 1
    assert (_health(house).score, _health(house).worst) == (100, None)


def _health(house: Lakehouse) -> TableHealth:
    listed = not_none(house.record().listed)
    return not_none(listed.health)


@each_case(
    ("changes", "which", "score", "says", "kind"),
    [
        (
            {"data_files": 300, "small_files": 300, "avoidable_files": 299},
            HealthPart.FILES,
            0,
            "300 of 300 data files are small",
            ActionKind.REWRITE_DATA_FILES,
        ),
        (
            {"delete_files": 20, "deleted_records": 5},
            HealthPart.DELETES,
            50,
            "20 delete files",
            ActionKind.REWRITE_DATA_FILES,
        ),
        ({"deleted_records": 250_000}, HealthPart.DELETES, 75, "250,000 deletes", ActionKind.REWRITE_DATA_FILES),
        (
            {"manifests": 200, "avoidable_manifests": 150},
            HealthPart.METADATA,
            25,
            "150 of 200 manifests",
            ActionKind.REWRITE_MANIFESTS,
        ),
        (
            {"snapshots": 60, "expirable_snapshots": 45},
            HealthPart.SNAPSHOTS,
            25,
            "45 of 60 snapshots are older",
            ActionKind.EXPIRE_SNAPSHOTS,
        ),
        (
            {"layout": "hilbert(a, b)", "ordered_bytes": 5 * 512 * MIB},
            HealthPart.LAYOUT,
            25,
            "2.5 GiB of 10.0 GiB are in the order hilbert(a, b)",
            ActionKind.REWRITE_DATA_FILES,
        ),
        ({"layout": Reason("gone", "there is no column a")}, HealthPart.LAYOUT, 0, "no column a", None),
        ({"mode": Mode.APPROVE, "plan": WORK}, HealthPart.UPKEEP, 50, "waits for a person", None),
        (
            {"mode": Mode.APPROVE, "plan": WORK, "refused": Reason("plan-refused-by-a-person", "Ada refused it")},
            HealthPart.UPKEEP,
            50,
            "Ada refused it",
            None,
        ),
        (
            {"mode": Mode.OBSERVE, "plan": WORK},
            HealthPart.UPKEEP,
            0,
            "in mode observe the plan is not carried out",
            None,
        ),
        ({"failures": 2}, HealthPart.FAILURES, 60, "2 tasks of one kind failed", None),
        ({"problem": Reason("parked", "parked until noon")}, HealthPart.FAILURES, 0, "until noon", None),
    ],
)
def test_each_part_says_what_is_wrong_and_what_would_raise_it(
    changes: dict[str, Any], which: HealthPart, score: int, says: str, kind: ActionKind | None
) -> None:
    health = health_of(replace(FINE, **changes))
    found = part(health, which)
    assert found.score == score
    assert says in found.reason.text
    assert not_none(found.action).kind is kind
    assert health.worst is which
    assert all(one.score == 100 for one in health.parts if one.part is not which)


def test_a_plan_that_is_carried_out_by_itself_costs_nothing() -> None:
    assert health_of(replace(FINE, plan=WORK)).score == 100


def test_an_empty_table_is_healthy() -> None:
    empty = replace(FINE, data_files=0, size_bytes=0, records=0, manifests=0, snapshots=0, layout="sort(a)")
    assert health_of(empty).score == 100


def test_a_change_says_from_what_to_what_and_which_part_did() -> None:
    before = health_of(FINE)
    after = health_of(replace(FINE, data_files=300, small_files=300, avoidable_files=150, delete_files=150))
    change = not_none(change_of(before, after, 7))
    assert (change.at, change.before, change.after) == (7, 100, after.score)
    assert change.text == f"down from 100 to {after.score}: files 100 -> 50, deletes 100 -> 50"
    assert change_of(after, after, 8) is None
    assert change_of(None, after, 8) is None
    assert not_none(change_of(after, before, 9)).text.startswith(f"up from {after.score} to 100")


def test_snapshots_of_a_table_that_keeps_its_garbage_are_never_too_old() -> None:
    assert _expirable({}) > 0
    assert _expirable({"gc.enabled": "false"}) == 0


def _expirable(properties: dict[str, str]) -> int:
    old = [snapshot(number, NOW - 30 * DAY_MS) for number in range(1, 31)]
    return _expirable_snapshots(observe([], table(old, properties)), policy_of(NAME, properties, ()))


def test_a_look_stores_the_health_and_explains_what_changed() -> None:
    house = Lakehouse().with_ready_table()
    house.control.maintainer.look(NAME)
    first = not_none(house.record().listed)
    assert first.health is not None
    assert first.health_change is None
    house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    house.control.maintainer.look(NAME)
    second = not_none(house.record().listed)
    assert second.health is not None
    assert second.health_change is not None
    assert [one.part for one in second.health_change.parts] == [HealthPart.UPKEEP]
    assert (second.health_change.before, second.health_change.after) == (first.health.score, second.health.score)
    house.control.maintainer.look(NAME)
    third = not_none(house.record().listed)
    assert third.health_change == second.health_change  # the last change stays until the next
