"""How often rows are removed, how long a task may take then, and which groups are one task; by examples and by laws."""

from __future__ import annotations

from collections import UserDict
from collections.abc import ValuesView
from dataclasses import replace
from math import inf
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.rewrite_data_files.check.waits import wait_violations
from icewright.actions.rewrite_data_files.layouts.pieces import PieceBounds, hurried
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.inventory.commit_rate import has_rhythm, rhythm_ms
from icewright.inventory.row_removals import (
    OVERHEAD_MS,
    SPACING_MS_MAX,
    STATEMENTS_APART,
    TASK_MS_MIN,
    UNKNOWN_STATEMENT_MS,
    Load,
    Spacing,
    duration_ms,
    in_time,
    removals_said,
    removed_every_ms,
    statement_ms,
    task_ms_max,
)
from icewright.maintenance.explain import explain
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.files import Partition
from icewright.model.plans.observation import Observation, Removal, Removals, TaskThroughput
from icewright.model.plans.plans import Plan, Verdict
from icewright.plans.estimates import bytes_within, cpu_ms
from tests.cases import each_case
from tests.planning.observations import (
    HOUR_MS,
    MIB,
    MINUTE_MS,
    NOW,
    data_files,
    month,
    observe,
    policy,
    snapshot,
    table,
)

POLICY = policy(max_task_time_ratio=0.1)
SECOND_MS = 1_000


def observed(removals: Removals, interval_ms: int = 10 * SECOND_MS) -> Observation:
    return replace(observe([]), removals=removals, commit_interval_ms=interval_ms)


def of(ago_ms: int, every_ms: int = 0) -> Removals:
    return Removals({month(1): NOW - ago_ms}, every_ms={month(1): every_ms})


class TestRhythm:
    def test_it_is_the_median_gap_and_a_burst_long_ago_is_none(self) -> None:
        assert rhythm_ms([100, 70, 45, 20], since=0) == 25
        assert rhythm_ms([100, 99], since=0) == 1
        assert rhythm_ms([100], since=0) == 100
        assert rhythm_ms([10, 100], since=0) == 0  # a clock that was set back

    def test_silence_counts_as_soon_as_it_is_longer_than_the_gaps_were(self) -> None:
        assert removed_every_ms(of(5, every_ms=40), month(1), NOW) == 40
        assert removed_every_ms(of(50, every_ms=40), month(1), NOW) == 50
        assert removed_every_ms(of(5), month(2), NOW) is None
        everywhere = Removals({month(1): NOW - 50}, everywhere_at=NOW - 7)
        assert [removed_every_ms(everywhere, month(number), NOW) for number in (1, 2)] == [7, 7]


class TestTheWordsForIt:
    MINUTES: ClassVar = [NOW - number * MINUTE_MS for number in range(1, 10)]

    def said(self, times: list[int], ago_ms: int) -> str:
        rhythmic = frozenset({month(1)} if has_rhythm(times) else ())
        removals = replace(of(ago_ms, every_ms=rhythm_ms(times, since=NOW - 24 * HOUR_MS)), rhythmic=rhythmic)
        return removals_said(removals, month(1), "it", NOW)

    def test_several_separate_bursts_have_an_interval(self) -> None:
        assert self.said(self.MINUTES, SECOND_MS) == "rows are removed from it about every 60.0 s"

    def test_one_burst_or_two_have_none(self) -> None:
        burst = [NOW - 530 * SECOND_MS - number * SECOND_MS for number in range(40)]
        assert self.said(burst, 530 * SECOND_MS) == "rows were last removed from it 8.8 min ago"
        assert not has_rhythm([*burst, *(at - HOUR_MS for at in burst)])
        assert has_rhythm([*burst, *(at - HOUR_MS for at in burst), *(at - 2 * HOUR_MS for at in burst)])
        assert not has_rhythm([])
        assert not has_rhythm(self.MINUTES[:2])

    def test_a_rhythm_that_has_ended_is_none_either(self) -> None:
        assert (
            self.said([at - HOUR_MS for at in self.MINUTES], HOUR_MS) == "rows were last removed from it 60.0 min ago"
        )


class TestTheTimeOfATask:
    @each_case(
        ("removals", "most_ms"),
        [
            (Removals(), inf),
            (of(HOUR_MS), 0.1 * (HOUR_MS - 30 * SECOND_MS)),
            (of(31 * SECOND_MS), TASK_MS_MIN),
            (of(31 * SECOND_MS, every_ms=2 * MINUTE_MS), 9 * SECOND_MS),
        ],
    )
    def test_a_share_of_what_is_left_between_the_wait_and_the_next_removal(
        self, removals: Removals, most_ms: float
    ) -> None:
        assert task_ms_max(observed(removals), POLICY, month(1), NOW) == most_ms
        assert task_ms_max(observed(removals), replace(POLICY, max_task_time_ratio=1.0), month(1), NOW) == inf

    @given(st.integers(0, HOUR_MS), st.integers(0, HOUR_MS), st.integers(0, HOUR_MS), st.floats(0.01, 0.5))
    def test_the_rarer_rows_are_removed_and_the_higher_the_share_the_longer(
        self, ago_ms: int, every_ms: int, more_ms: int, share: float
    ) -> None:
        rules = replace(POLICY, max_task_time_ratio=share)
        most_ms = task_ms_max(observed(of(ago_ms, every_ms)), rules, month(1), NOW)
        assert TASK_MS_MIN <= most_ms <= max(TASK_MS_MIN, share * max(ago_ms, every_ms, 1))
        assert most_ms <= task_ms_max(observed(of(ago_ms, every_ms + more_ms)), rules, month(1), NOW)
        assert most_ms <= task_ms_max(observed(of(ago_ms + more_ms, every_ms)), rules, month(1), NOW)
        doubled = replace(rules, max_task_time_ratio=2 * share)
        assert most_ms <= task_ms_max(observed(of(ago_ms, every_ms)), doubled, month(1), NOW)


places = st.frozensets(st.integers(1, 4).map(month), max_size=3)
ages_ms = st.one_of(st.integers(-2 * MINUTE_MS, HOUR_MS), st.integers(0, 9 * 24 * HOUR_MS))


def spacing_of(removals: Removals, window_ms: int | None = None) -> Spacing:
    return Spacing.of(observed(removals), policy(write_window_ms=window_ms), NOW)


class TestTheTimeBetweenRewrites:
    """Statements of the owner meet few rewrites."""

    SPACING_MS = STATEMENTS_APART * UNKNOWN_STATEMENT_MS

    def removed(self, *ago_ms: int, places: tuple[int, ...] = (1,), everywhere: bool = False) -> tuple[Removal, ...]:
        return tuple(Removal(NOW - ago, frozenset(map(month, places)), everywhere) for ago in ago_ms)

    def until(self, latest: tuple[Removal, ...], rewritten: dict[int, int], place: int = 1) -> int | None:
        at = {month(number): NOW - ago for number, ago in rewritten.items()}
        return spacing_of(Removals(latest=latest, rewritten_at=at)).until(month(place))

    def test_a_partition_that_lost_rows_is_rewritten_so_much_later_to_the_millisecond(self) -> None:
        often = self.removed(3 * HOUR_MS, 5 * HOUR_MS)
        assert self.until(often, {1: self.SPACING_MS - 1}) == NOW + 1
        assert self.until(often, {1: self.SPACING_MS}) is None
        assert self.until(often, {}) is None
        assert self.until((), {1: 0}) is None

    def test_it_is_for_what_is_changed_together(self) -> None:
        together = self.removed(3 * HOUR_MS, 5 * HOUR_MS, places=(1, 2))
        assert self.until(together, {2: MINUTE_MS}) == NOW + self.SPACING_MS - MINUTE_MS
        assert self.until(together, {3: MINUTE_MS}) is None
        assert self.until(together, {3: MINUTE_MS}, place=3) is None
        everywhere = self.removed(3 * HOUR_MS, everywhere=True)
        assert self.until(everywhere, {3: MINUTE_MS}) is not None

    def test_rewrites_of_all_partitions_are_gone_over_once_however_many_are_asked_for(self) -> None:
        """Of a table of 40,000 partitions each is asked for."""

        class Counting(UserDict[Partition, int]):
            looks = 0

            def values(self) -> ValuesView[int]:
                self.looks += 1
                return super().values()

        rewritten_at = Counting({month(number): NOW - number * MINUTE_MS for number in range(1, 13)})
        spacing = spacing_of(Removals(latest=self.removed(3 * HOUR_MS, everywhere=True), rewritten_at=rewritten_at))
        looks = rewritten_at.looks
        assert {spacing.until(month(number)) for number in range(1, 13)} == {NOW + self.SPACING_MS - MINUTE_MS}
        assert rewritten_at.looks == looks

    def test_a_partition_that_lost_rows_once_says_that_any_may(self) -> None:
        assert self.until(self.removed(3 * HOUR_MS), {3: MINUTE_MS}, place=3) is not None
        assert self.until(self.removed(3 * HOUR_MS, 3 * HOUR_MS + 1000), {3: MINUTE_MS}, place=3) is not None
        assert self.until(self.removed(3 * HOUR_MS, 4 * HOUR_MS), {3: MINUTE_MS}, place=3) is None
        assert self.until(self.removed(8 * 24 * HOUR_MS), {3: MINUTE_MS}, place=3) is None

    def test_regular_removals_leave_the_first_half_of_the_time_free(self) -> None:
        nightly = [HOUR_MS + day * 24 * HOUR_MS for day in range(5)]
        assert self.until(self.removed(*nightly), {1: MINUTE_MS}) is None
        assert self.until(self.removed(*nightly[:4]), {1: MINUTE_MS}) is not None
        assert self.until(self.removed(*(at + 12 * HOUR_MS for at in nightly)), {1: MINUTE_MS}) is not None
        assert self.until(self.removed(*nightly, 120 * HOUR_MS), {1: MINUTE_MS}) is None
        assert self.until(self.removed(HOUR_MS, 13 * HOUR_MS, *nightly[1:]), {1: MINUTE_MS}) is not None

    @each_case(
        ("shown_ms", "window_ms", "runs_ms"),
        [
            (0, None, 20_000),
            (9_000, None, 20_000),
            (30_000, None, 60_000),
            (0, 5_000, 5_000),
            (9_000, 5_000, 9_000),
            (9_000, 0, 0),
        ],
    )
    def test_how_long_a_statement_runs(self, shown_ms: int, window_ms: int | None, runs_ms: int) -> None:
        removals = Removals(writer_run_ms_max=shown_ms)
        assert statement_ms(observed(removals), policy(write_window_ms=window_ms)) == runs_ms
        assert spacing_of(removals, window_ms).spacing_ms == STATEMENTS_APART * runs_ms

    def test_it_is_a_day_at_most(self) -> None:
        assert spacing_of(Removals(writer_run_ms_max=40 * 365 * 24 * HOUR_MS)).spacing_ms == SPACING_MS_MAX

    @given(
        st.lists(st.builds(Removal, ages_ms.map(lambda ms: NOW - ms), places, st.booleans()), max_size=8),
        st.dictionaries(st.integers(1, 4).map(month), ages_ms.map(lambda ms: NOW - ms), max_size=4),
        st.one_of(st.none(), ages_ms.map(lambda ms: NOW - ms)),
        st.integers(0, HOUR_MS),
        st.one_of(st.none(), st.integers(0, HOUR_MS)),
        st.sampled_from([0, 7_000, 90_000, HOUR_MS]),
    )
    def test_planner_and_checker_agree(
        self,
        latest: list[Removal],
        rewritten_at: dict[Partition, int],
        all_at: int | None,
        shown_ms: int,
        window_ms: int | None,
        regular_ms: int,
    ) -> None:
        if regular_ms:
            latest = [replace(removal, at=NOW - 5_000 - number * regular_ms) for number, removal in enumerate(latest)]
        latest.sort(key=lambda removal: removal.at, reverse=True)
        removals = Removals(
            writer_run_ms_max=shown_ms, latest=tuple(latest), rewritten_at=rewritten_at, all_rewritten_at=all_at
        )
        spacing, rules = spacing_of(removals, window_ms), policy(write_window_ms=window_ms)
        for number in range(1, 6):
            said = {code for code, _ in wait_violations([month(number)], observed(removals), rules, NOW)}
            assert (spacing.until(month(number)) is not None) == ("too-often" in said), number


loads = st.lists(
    st.builds(Load, st.floats(0, 60_000), st.one_of(st.just(inf), st.floats(TASK_MS_MIN, 120_000))), max_size=12
)
paces = st.floats(1 / 16, 16)


def takes_ms(some: list[Load], pace: float) -> float:
    return duration_ms(sum(load.work_ms for load in some), pace)


class TestOneTask:
    @given(some=loads, pace=paces, tight=st.booleans())
    def test_it_ends_in_time_for_each_of_its_groups_unless_it_is_of_one_alone(
        self, *, some: list[Load], pace: float, tight: bool
    ) -> None:
        taken = in_time(some, pace, tight=tight)
        assert list(taken) == sorted(set(taken))
        assert bool(taken) == bool(some)
        chosen = [some[position] for position in taken]
        assert len(chosen) < 2 or takes_ms(chosen, pace) <= min(load.task_ms_max for load in chosen) * (1 + 1e-9)

    @given(loads, paces)
    def test_all_are_taken_where_that_ends_in_time_whosever_turn_it_is(self, some: list[Load], pace: float) -> None:
        if some and takes_ms(some, pace) < min(load.task_ms_max for load in some):
            assert in_time(some, pace, tight=True) == in_time(some, pace, tight=False) == tuple(range(len(some)))

    @given(some=loads, pace=paces, times=st.floats(1, 4), tight=st.booleans())
    def test_with_more_time_or_faster_work_a_task_is_never_of_less(
        self, *, some: list[Load], pace: float, times: float, tight: bool
    ) -> None:
        taken = set(in_time(some, pace, tight=tight))
        longer = [replace(load, task_ms_max=load.task_ms_max * times) for load in some]
        assert taken <= set(in_time(longer, pace, tight=tight))
        assert taken <= set(in_time(some, pace / times, tight=tight))

    @given(loads, paces)
    def test_taking_turns_ends(self, some: list[Load], pace: float) -> None:
        left, tasks = list(some), 0
        while left:
            taken = set(in_time(left, pace, tight=tasks % 2 == 0))
            left, tasks = [load for position, load in enumerate(left) if position not in taken], tasks + 1
        assert tasks <= len(some)

    def test_each_turn_has_its_own(self) -> None:
        hot, cold = Load(2_000, TASK_MS_MIN), Load(60_000, inf)
        assert in_time([cold, hot, cold, hot], 1.0, tight=True) == (1,)
        assert in_time([cold, hot, cold, hot], 0.5, tight=True) == (1, 3)
        assert in_time([cold, hot, cold, hot], 1.0, tight=False) == (0, 2)


BUSY = Removals({month(2): NOW - 31 * SECOND_MS}, every_ms={month(2): 40 * SECOND_MS}, rhythmic=frozenset({month(2)}))
FILES = [*data_files(month(1), 8, 40 * MIB), *data_files(month(2), 8, 20 * MIB)]


def planned(ratio: float = 0.1, experience: TaskThroughput = TaskThroughput()) -> Plan:  # noqa: B008 - a frozen value
    rules = replace(policy(target_file_size_bytes=512 * MIB), max_task_time_ratio=ratio)
    metadata = table((snapshot(1),))
    seen = replace(observe(FILES, metadata, removals=BUSY, interval_ms=10 * SECOND_MS), experience=experience)
    return plan_table(seen, rules, shortlist(seen, rules, NOW), FILES, plan_id="p", now=NOW)


def partitions_of(plan: Plan) -> set[str]:
    return {group.partition_path for group in plan.rewrites[0].groups}


class TestPlans:
    def test_a_busy_partition_has_a_short_task_of_its_own_and_the_others_follow(self) -> None:
        plan = planned()
        assert partitions_of(plan) == {"month=2"}
        said = "a task with month=2 is to take no longer than 5.0 s, since rows are removed from it about every 40.0 s"
        assert f"8 more files in 1 partition follow; {said}, and this is one." in explain(plan)[0]
        assert plan.reason.figures["task_ms_max"] == TASK_MS_MIN
        (waiting,) = [one for one in plan.verdicts if one.verdict is Verdict.WAIT]
        assert (waiting.path, waiting.reason.code) == ("month=1", "follows")
        assert said in waiting.reason.text

    def test_then_it_is_the_turn_of_the_others_without_it(self) -> None:
        plan = planned(experience=TaskThroughput(was_tight=True))
        assert partitions_of(plan) == {"month=1"}
        assert "since rows are removed from it about every 40.0 s, and this one takes longer" in plan.reason.text

    def test_all_is_one_task_where_work_is_fast_enough_or_the_owner_wants_it_so(self) -> None:
        assert partitions_of(planned(experience=TaskThroughput(pace=1 / 16))) == {"month=1", "month=2"}
        plan = planned(1.0)
        assert partitions_of(plan) == {"month=1", "month=2"}
        assert "task_ms_max" not in plan.reason.figures


class TestPieces:
    BOUNDS = PieceBounds(1_000, 4_096 * MIB, 10**6, lambda _: 0)

    @each_case("pace", [0.5, 1.0, 4.0])
    def test_what_is_put_in_order_takes_as_long_as_it_may_but_is_never_less_than_a_level_1(self, pace: float) -> None:
        rules = replace(policy(), level_1_size_bytes=64 * MIB)
        short = hurried(self.BOUNDS, [], 20_000.0, pace, rules).size_bytes_max
        takes = cpu_ms(0, short, short, Executor.SHUFFLE, rules)
        assert short == 64 * MIB or duration_ms(takes, pace) == pytest.approx(20_000, rel=0.01)
        assert hurried(self.BOUNDS, [], inf, pace, rules) == self.BOUNDS
        assert hurried(self.BOUNDS, [], 0.0, pace, rules).size_bytes_max == 64 * MIB
        large = data_files(month(1), 1, 100 * MIB)
        assert hurried(self.BOUNDS, large, 0.0, pace, rules).size_bytes_max == 100 * MIB

    @given(st.floats(0, 10**9), st.sampled_from(Executor))
    def test_bytes_and_time_are_told_by_the_same_rates(self, work_ms: float, executor: Executor) -> None:
        size_bytes = int(bytes_within(work_ms, executor, POLICY))
        assert cpu_ms(0, size_bytes, size_bytes, executor, POLICY) <= work_ms + OVERHEAD_MS
