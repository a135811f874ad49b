"""One table under each trigger: which rule fires, with which numbers, and what is missing until it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.actions.rewrite_data_files.triggers.tiered import tiered
from icewright.actions.rewrite_data_files.triggers.trigger_result import Rule, TriggerResult
from icewright.actions.rewrite_data_files.triggers.triggers import (
    GATHER_MS,
    GATHERED_FILES,
    Judge,
    Rhythm,
    asks_for_rewrites,
    mse,
    our_commits,
    rewritten_at,
)
from icewright.inventory import histogram
from icewright.inventory.commit_rate import arrival_bytes_per_ms, commits_since
from icewright.maintenance.explain import explain
from icewright.model.iceberg.files import DataFile, FileContent
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionSummary
from icewright.model.iceberg.tables import TASK_ID_KEY, Operation
from icewright.model.plans.observation import Observation, Removals
from icewright.model.plans.plans import PartitionVerdict, Plan, Verdict
from icewright.model.policy.policy import Policy, Trigger
from icewright.policy.effective import (
    KNOWN_WEEKS,
    QUERIES_A_WEEK,
    are_queries_known,
    effective_policy,
    with_known_queries,
)
from icewright.policy.missing_rules import rules
from tests.builders.observations import (
    DAY_MS,
    HOUR_MS,
    MIB,
    MINUTE_MS,
    NOW,
    Deletes,
    data_file,
    month,
    observe,
    position_deletes,
    snapshot,
    table,
)
from tests.builders.observations import policy as default_policy
from tests.cases import each_case
from tests.narrowing import not_none

TARGET = 128 * MIB
HERE = month(1)


def policy(trigger: Trigger, **changes: Any) -> Policy:
    return default_policy(trigger=trigger, **changes)


def verdict(observation: Observation, under: Policy) -> PartitionVerdict:
    (one,) = shortlist(observation, under, NOW)
    return one


def plan(observation: Observation, files: list[DataFile], under: Policy) -> Plan:
    verdicts = shortlist(observation, under, NOW)
    return plan_table(observation, under, verdicts, files, plan_id="plan-1", now=NOW)


def sized(*sizes: int) -> list[DataFile]:
    return [data_file(HERE, number, size) for number, size in enumerate(sizes)]


def opinion(files: list[DataFile], under: Policy, **changes: Any) -> TriggerResult:
    observation = replace(observe(files), **changes)
    return Judge.of(observation, under, NOW).judge_partition(observation.inventory.partitions[0])


class TestMse:
    under = policy(Trigger.MSE)

    def test_files_too_far_below_the_target_are_merged_into_its_size(self) -> None:
        files = sized(*[TARGET] * 5, *[16 * MIB] * 4)
        made = plan(observe(files), files, self.under)
        (group,) = made.rewrites[0].groups
        assert [file.size_bytes for file in group.files] == [16 * MIB] * 4
        (said,) = made.verdicts
        assert said.reason.code == "size-error"
        assert said.reason.figures["size_error"] == round(sqrt(4 * 0.875**2 / 9), 4)
        assert "its 9 files are 58% of 128.0 MiB too small (root mean square)" in said.reason.text
        assert any("size-error" in line for line in explain(made))

    def test_few_among_many_good_ones_are_left_and_the_plan_says_how_far_off_they_are(self) -> None:
        files = sized(*[TARGET] * 96, *[16 * MIB] * 4)
        made = plan(observe(files), files, self.under)
        assert made.is_empty
        assert (made.verdicts[0].verdict, made.verdicts[0].reason.code) == (Verdict.LEAVE, "size-error-low")
        assert "18% of 128.0 MiB too small (root mean square); merged from 20% on" in made.verdicts[0].reason.text
        assert "the trigger mse fires for no partition" in made.reason.text

    def test_an_hour_after_its_last_rewrite_a_partition_is_due_again(self) -> None:
        observation = observe(sized(MIB, MIB))
        early = replace(observation, rewritten_at={HERE: NOW - HOUR_MS + 1})
        said = verdict(early, self.under)
        assert (said.verdict, said.reason.code, said.wait_until) == (Verdict.WAIT, "interval", NOW + 1)
        late = replace(observation, rewritten_at={HERE: NOW - HOUR_MS})
        assert verdict(late, self.under).verdict is Verdict.REWRITE
        assert verdict(observation, self.under).verdict is Verdict.REWRITE

    @each_case("sizes", [(), (MIB,), (TARGET, MIB), (90 * MIB, 90 * MIB)])
    def test_what_merging_cannot_mend_is_left_however_far_off_it_is(self, sizes: tuple[int, ...]) -> None:
        assert opinion(sized(MIB, *sizes)[1:] or sized(MIB), self.under).rule is None

    @given(st.lists(st.integers(1, 4 * TARGET), min_size=1, max_size=30), st.integers(0, 12), st.integers(0, 30))
    def test_scaling_sizes_and_target_changes_nothing(self, sizes: list[int], by: int, left: int) -> None:
        def judged(factor: int) -> tuple[bool, object]:
            target = (left + 1) * MIB * factor
            big = {"target_file_size_bytes": 1 << 50, "max_file_group_size_bytes": 1 << 50}
            under = policy(Trigger.MSE, trigger_target_size_bytes=target, max_task_size_bytes=1 << 50, **big)
            files = sized(*(size * factor for size in sizes))
            said = mse(observe(files).inventory.partitions[0], under, None, NOW)
            return said.rule is not None, said.reason.figures.get("size_error")

        assert judged(1) == judged(1 << by)

    @given(st.lists(st.integers(1, 4 * TARGET), min_size=1, max_size=30))
    def test_the_histogram_tells_the_error_to_a_five_hundredth(self, sizes: list[int]) -> None:
        exact = sum((TARGET - min(size, TARGET)) ** 2 for size in sizes) / len(sizes)
        told = histogram.mean_square_shortfall(observe(sized(*sizes)).inventory.partitions[0].counts.sizes, TARGET)
        most = sum(min(size, 1.1 * TARGET) ** 2 for size in sizes) / len(sizes) / 450
        assert abs(told - exact) <= most + 1e-12 * exact


class TestTiered:
    under = policy(Trigger.TIERED)
    fragment, undersized = 16 * MIB, 60 * MIB

    def test_twelve_fragments_are_a_minor_one(self) -> None:
        files = sized(*[self.fragment] * 12, self.undersized)
        observation = replace(observe(files), rewritten_at={HERE: NOW})
        made = plan(observation, files, self.under)
        assert sorted(len(group.files) for group in made.rewrites[0].groups) == [4, 8]
        assert made.verdicts[0].reason.code == "minor"
        said = "minor: 12 fragments of at most 16.0 MiB and 1 undersized file (60.0 MiB) of 13"
        assert said in made.verdicts[0].reason.text

    def test_two_are_when_the_interval_is_over(self) -> None:
        files = sized(MIB, MIB)
        early = replace(observe(files), rewritten_at={HERE: NOW - HOUR_MS})
        said = verdict(early, self.under)
        assert (said.verdict, said.reason.code, said.wait_until) == (Verdict.WAIT, "interval", NOW + 1)
        late = replace(early, rewritten_at={HERE: NOW - HOUR_MS - 1})
        assert verdict(late, self.under).reason.code == "minor"

    def test_undersized_files_of_a_target_together_are_a_major_one(self) -> None:
        files = sized(self.undersized, self.undersized, self.undersized, MIB)
        made = plan(replace(observe(files), rewritten_at={HERE: NOW}), files, self.under)
        (group,) = made.rewrites[0].groups
        assert (made.verdicts[0].reason.code, len(group.files)) == ("major", 2)
        short = sized(self.undersized, self.undersized, MIB)
        said = opinion(short, self.under, rewritten_at={HERE: NOW})
        assert said.rule is None
        assert said.reason.text == (
            "1 fragment of at most 16.0 MiB and 2 undersized files (120.0 MiB) of 3; "
            "minor from 12 fragments on, major from 128.0 MiB undersized"
        )

    def test_a_full_one_packs_both_kinds_together_once_in_its_interval(self) -> None:
        full = replace(self.under, tiered_full_interval_ms=DAY_MS)
        files = sized(self.undersized, self.undersized, MIB)
        midnight = NOW // DAY_MS * DAY_MS
        yesterday, today = ({HERE: midnight + by} for by in (-1, 0))
        made = plan(replace(observe(files), rewritten_at=yesterday), files, full)
        assert made.verdicts[0].reason.code == "full"
        assert [len(group.files) for group in made.rewrites[0].groups] == [3]
        waits = verdict(replace(observe(files), rewritten_at=today), full)
        assert (waits.verdict, waits.wait_until) == (Verdict.WAIT, midnight + DAY_MS)
        assert opinion(sized(self.undersized, MIB), full, rewritten_at=yesterday).reason.code == "no-tier"

    def test_no_minor_one_is_promised_where_full_is_due_by_then(self) -> None:
        """A fragment and an equality delete make a minor one, and no full one."""
        full = replace(self.under, tiered_full_interval_ms=self.under.tiered_minor_interval_ms)
        statistics = observe(sized(MIB), deletes={HERE: Deletes(equality=1)}).inventory.partitions[0]
        said = tiered(statistics, full, NOW // HOUR_MS * HOUR_MS, NOW // HOUR_MS * HOUR_MS)
        assert (said.reason.code, said.until, said.rule) == ("no-tier", None, None)
        alone = tiered(statistics, self.under, NOW, NOW)
        assert (alone.reason.code, alone.until) == ("interval", NOW + self.under.tiered_minor_interval_ms + 1)

    def test_files_with_many_deletes_are_rewritten_although_no_tier_is_due(self) -> None:
        files = sized(*[MIB] * 5)
        deletes = [position_deletes(HERE, number, of=files[0]) for number in range(10)]
        observation = replace(observe(files, deletes=deletes), rewritten_at={HERE: NOW})
        verdicts = shortlist(observation, self.under, NOW)
        made = plan_table(observation, self.under, verdicts, files, deletes, plan_id="plan-1", now=NOW)
        assert [[file.path for file in group.files] for group in made.rewrites[0].groups] == [[files[0].path]]

    def test_the_interval_is_looked_at_again_where_no_file_has_many_deletes(self) -> None:
        files = sized(*[MIB] * 5)
        observation = replace(observe(files, deletes={HERE: Deletes(1)}), rewritten_at={HERE: NOW})
        made = plan(observation, files, self.under)
        assert (made.verdicts[0].reason.code, made.look_again_at) == ("interval", NOW + HOUR_MS + 1)


def amoro(sizes: list[int], target: int, *, interval_over: bool, full_over: bool, equality: int = 0) -> str:
    """Amoro's ``isNecessary`` and ``getOptimizingType``, file by file, for files without deletes of their own."""
    fragment, least = target // 8, int(target * 0.75)
    fragments = [size for size in sizes if size <= fragment]
    undersized = sorted(size for size in sizes if fragment < size < least)
    if full_over:
        return "full" if len(fragments) >= 2 or len(undersized) >= 2 else "none"
    if sum(undersized) >= target and sum(undersized[:2]) <= target:
        return "major"
    together = len(fragments) + equality
    return "minor" if together >= 12 or (together > 1 and interval_over) else "none"


@given(
    sizes=st.lists(
        st.integers(1, 150).map(lambda size: size * MIB), min_size=1, max_size=25, unique_by=histogram.bucket
    )
    | st.lists(st.sampled_from([MIB, 5 * MIB, 16 * MIB, 20 * MIB, 40 * MIB, 64 * MIB, 96 * MIB, TARGET]), min_size=1),
    interval_over=st.booleans(),
    full=st.sampled_from([None, False, True]),
    equality=st.integers(0, 3),
)
def test_tiered_is_what_amoro_does(sizes: list[int], *, interval_over: bool, full: bool | None, equality: int) -> None:
    """Where files of one bucket are of one size, statistics tell exactly what the files would."""
    at = NOW - HOUR_MS - (1 if interval_over else 0)
    span_ms = None if full is None else at + 1 if full else 2 * NOW
    under = policy(Trigger.TIERED, tiered_full_interval_ms=span_ms)
    deletes = {HERE: Deletes(equality=equality)}
    statistics = observe(sized(*sizes), deletes=deletes).inventory.partitions[0]
    said = tiered(statistics, under, at, NOW)
    expected = amoro(sizes, TARGET, interval_over=interval_over, full_over=full is True, equality=equality)
    assert (said.reason.code if said.rule is not None else "none") == expected


class TestCostBenefit:
    under = policy(
        Trigger.COST_BENEFIT, scans_per_day=100.0, open_ms=1.5, rewrite_ms=600.0, write_bytes_per_s=75_000_000
    )

    def test_each_number_of_the_gate_is_said(self) -> None:
        files = sized(*[MIB] * 100)
        made = plan(observe(files), files, self.under)
        assert made.verdicts[0].reason.code == "worth-it"
        said = (
            "merging 100 small files (100.0 MiB) into 1 saves 107.42 CPU s "
            "(100 scans a day x 99 files x 1.55 ms x 7 days) and costs 2.70"
        )
        assert said in made.verdicts[0].reason.text
        figures = made.verdicts[0].reason.figures
        assert (figures["gain_cpu_ms"], figures["cost_cpu_ms"]) == (107_415.0, 2699.1)

    def test_what_is_missing_is_said_as_scans_a_day(self) -> None:
        rarely = replace(self.under, scans_per_day=1.0)
        said = opinion(sized(*[MIB] * 10), rarely)
        assert (said.rule, said.reason.code) == (None, "not-worth-it")
        assert said.reason.text.endswith("it pays from 8 scans a day on")
        assert opinion(sized(*[MIB] * 10), replace(rarely, scans_per_day=9.0)).rule is not None
        never = opinion(sized(*[MIB] * 10), replace(rarely, scans_per_day=0.0))
        assert never.reason.text.endswith("it never pays")

    def test_where_data_comes_fast_files_gather_until_they_fill_one(self) -> None:
        busy, full = (coming(sized(*[4 * MIB] * number), NOW, 32 * MIB) for number in (30, 60))
        said = verdict(busy, self.under)
        assert (said.verdict, said.reason.code) == (Verdict.WAIT, "not-worth-it")
        assert verdict(full, self.under).verdict is Verdict.REWRITE

    def test_when_it_stops_they_are_merged_at_the_time_that_was_said(self) -> None:
        files = sized(*[4 * MIB] * 30)
        until = not_none(verdict(coming(files, NOW, 32 * MIB), self.under).wait_until)
        for before_ms, expected in ((2, Verdict.WAIT), (0, Verdict.REWRITE)):
            quiet = coming(files, 2 * NOW - until + before_ms, 32 * MIB)
            assert verdict(quiet, self.under).verdict is expected

    def test_while_data_comes_a_large_one_is_no_reason_to_merge_and_once_it_stops_it_is(self) -> None:
        files = sized(100 * MIB, *[MIB // 2] * 20)
        now = coming(files, NOW, MIB // 2)
        often = replace(self.under, scans_per_day=20_000.0)
        assert verdict(now, often).reason.figures["small_files"] == 20
        often = replace(self.under, scans_per_day=400.0)
        assert verdict(now, often).verdict is Verdict.WAIT
        quiet = coming(files, NOW - 5 * DAY_MS, MIB // 2)
        assert verdict(quiet, often).reason.figures["small_files"] == 21

    def test_a_large_one_is_not_written_again_for_many_tiny_ones(self) -> None:
        files = sized(130 * MIB, *[MIB // 4] * 200)
        made = plan(observe(files), files, self.under)
        (group,) = made.rewrites[0].groups
        assert len(group.files) == 200


def coming(files: list[DataFile], at: int, size_bytes: int) -> Observation:
    """A table to which a commit a minute adds so many bytes, the last one at that time."""
    summary = {"added-files-size": str(size_bytes)}
    commits = [snapshot(number, at - (20 - number) * MINUTE_MS, summary=summary) for number in range(1, 21)]
    return observe([replace(file, snapshot_id=20) for file in files], table(commits))


class TestLevels:
    under = default_policy()
    """Files are small below 144 MiB."""

    def test_files_of_a_busy_writer_gather_from_its_first_commit_after_the_last_rewrite(self) -> None:
        busy = rewritten(coming(sized(*[4 * MIB] * 20), NOW, 32 * MIB), NOW - MINUTE_MS)
        said = verdict(busy, self.under)
        assert (said.verdict, said.reason.code) == (Verdict.WAIT, "gathering")
        assert said.reason.text.startswith("20 small files (80.0 MiB) of 20; merged with what comes by ")
        assert said.wait_until is not None
        assert GATHER_MS // 2 <= said.wait_until - NOW <= GATHER_MS
        for now, expected in ((said.wait_until - 1, Verdict.WAIT), (said.wait_until, Verdict.REWRITE)):
            (then,) = shortlist(busy, self.under, now)
            assert then.verdict is expected

    def test_they_do_not_where_commits_are_rare_or_nobody_can_tell_or_it_was_long_ago(self) -> None:
        files = sized(*[4 * MIB] * 6)
        busy = coming(files, NOW, 12 * MIB)
        cases = [
            (rewritten(busy, NOW), Verdict.WAIT),
            (rewritten(replace(busy, commit_interval_ms=GATHER_MS // 2), NOW), Verdict.WAIT),
            (rewritten(replace(busy, commit_interval_ms=GATHER_MS // 2 + 1), NOW), Verdict.REWRITE),
            (rewritten(observe(files), NOW), Verdict.REWRITE),
            (rewritten(replace(busy, removals=Removals({HERE: NOW - DAY_MS})), NOW), Verdict.REWRITE),
            (rewritten(busy, NOW - DAY_MS), Verdict.REWRITE),
            (busy, Verdict.REWRITE),
        ]
        for observation, expected in cases:
            assert verdict(observation, self.under).verdict is expected

    def test_all_partitions_of_a_table_are_due_together(self) -> None:
        rhythm = not_none(Rhythm.of(coming(sized(MIB), NOW, MIB), NOW))
        assert rhythm.due_at(NOW - 90_000) == rhythm.due_at(NOW - 61_000)
        for ago_ms in range(0, HOUR_MS, 7_001):
            first_at = min((at for at in rhythm.commits if at > NOW - ago_ms), default=NOW - ago_ms)
            assert first_at + GATHER_MS // 2 <= rhythm.due_at(NOW - ago_ms) < first_at + GATHER_MS

    def test_files_of_a_writer_whose_clock_is_days_ahead_do_not_gather_for_days(self) -> None:
        ahead = coming(sized(*[4 * MIB] * 6), NOW + 3 * DAY_MS, 12 * MIB)
        assert verdict(ahead, self.under).verdict is Verdict.REWRITE
        assert not_none(verdict(rewritten(ahead, NOW), self.under).wait_until) - NOW <= GATHER_MS

    def test_many_files_do_not_wait(self) -> None:
        for files, expected in ((GATHERED_FILES - 1, Verdict.WAIT), (GATHERED_FILES, Verdict.REWRITE)):
            busy = rewritten(coming(sized(*[MIB // 2] * files), NOW, 32 * MIB), NOW)
            assert verdict(busy, self.under).verdict is expected

    def test_while_data_comes_what_fills_no_file_is_left_and_afterwards_it_is_merged(self) -> None:
        files = [replace(file, snapshot_id=19) for file in sized(*[4 * MIB] * 60)]
        for ago_ms, groups, said in ((0, [48], 13), (2 * MINUTE_MS, [48, 12], 2)):
            busy = coming(files, NOW - ago_ms, 32 * MIB)
            made = plan(observe(files, busy.metadata), files, self.under)
            assert [len(group.files) for group in made.rewrites[0].groups] == groups
            assert made.verdicts[0].files_after == said

    def test_what_is_left_alone_while_data_comes_is_looked_at_again_when_it_stops(self) -> None:
        files = [replace(file, snapshot_id=19) for file in sized(100 * MIB, 100 * MIB, *[8 * MIB] * 5)]
        metadata = coming(files, NOW, 32 * MIB).metadata
        made = plan(observe(files, metadata), files, self.under)
        (said,) = made.verdicts
        assert (said.verdict, said.reason.code) == (Verdict.WAIT, "gathering")
        assert said.wait_until is not None
        observation = observe(files, metadata)
        verdicts = shortlist(observation, self.under, said.wait_until)
        then = plan_table(observation, self.under, verdicts, files, plan_id="plan-2", now=said.wait_until)
        assert [len(group.files) for group in then.rewrites[0].groups] == [5]

    def test_the_youngest_do_not_count_and_the_others_wait_for_them(self) -> None:
        metadata = coming([], NOW, 32 * MIB).metadata
        files = [replace(f, snapshot_id=20 if n > 3 else 19) for n, f in enumerate(sized(*[4 * MIB] * 38))]
        made = plan(observe(files, metadata), files, self.under)
        assert (made.verdicts[0].verdict, made.verdicts[0].reason.code) == (Verdict.WAIT, "young-files")

    def test_when_partitions_were_rewritten_is_asked_where_there_is_a_busy_writer_alone(self) -> None:
        busy, calm = coming(sized(MIB), NOW, MIB), observe(sized(MIB))
        assert asks_for_rewrites(busy, self.under, NOW)
        assert not asks_for_rewrites(calm, self.under, NOW)
        assert asks_for_rewrites(calm, policy(Trigger.MSE), NOW)
        assert not asks_for_rewrites(busy, policy(Trigger.COST_BENEFIT), NOW)


def rewritten(observation: Observation, at: int) -> Observation:
    """The same, with a rewrite of ours at that time."""
    return replace(observation, rewritten_at={HERE: at})


KNOWN = [
    ({}, (0, 49), Trigger.LEVELS, 600.0),
    ({}, (0, 50), Trigger.COST_BENEFIT, 5.0),
    ({}, (70_000, 30_000), Trigger.COST_BENEFIT, 10_000.0),
    ({"icewright.trigger": "levels"}, (70_000, 0), Trigger.LEVELS, 600.0),
    ({"icewright.trigger": "mse"}, (70_000, 0), Trigger.MSE, 600.0),
    ({"icewright.cost-benefit.scans-per-day": "5"}, (70_000, 0), Trigger.COST_BENEFIT, 5.0),
]


@each_case(("properties", "weeks", "trigger", "scans_per_day"), KNOWN)
def test_where_queries_are_known_the_default_is_cost_benefit(
    properties: Mapping[str, str], weeks: tuple[int, int], trigger: Trigger, scans_per_day: float
) -> None:
    known = with_known_queries(effective_policy(table(properties=properties), ()), weeks, 10 * DAY_MS)
    assert (known.trigger, known.scans_per_day) == (trigger, scans_per_day)
    if weeks == (0, 50):
        (said, *_) = rules(observe(sized(MIB)), known, None)
        assert "trigger cost-benefit (default for 50 counted queries)" in said.text


def days_known(days: Sequence[int]) -> list[bool]:
    """For each day from the first Monday on, whether the queries of days are known by its evening."""
    weeks = [list(days[first : first + 7]) for first in range(0, len(days), 7)]
    counted = [sum(week) for week in weeks]
    return [
        are_queries_known([0] * KNOWN_WEEKS + counted[:number] + [sum(week[: day + 1])])
        for number, week in enumerate(weeks)
        for day in range(len(week))
    ]


def changes(known: Sequence[bool]) -> int:
    return sum(one != other for one, other in pairwise(known))


@pytest.mark.parametrize("a_day", range(5, 15))
@pytest.mark.parametrize("at_weekends", [0, 1])
def test_a_steady_number_of_queries_does_not_change_the_trigger(a_day: int, at_weekends: int) -> None:
    """Also where nobody works at weekends: from day to day a window of some days would count more, then fewer."""
    week = [a_day] * 5 + [a_day * at_weekends] * 2
    known = days_known(week * 12)
    assert changes(known) <= 1
    assert known[-1] == (sum(week) >= QUERIES_A_WEEK)


def test_queries_about_the_bound_change_the_trigger_once_and_far_fewer_change_it_back() -> None:
    around = [52, 47, 44, 51, 38, 49, 55, 45]
    for weeks, last in ((around, True), ([*around, 24, 25, 0], False), ([52, 0, 50, 0, 50], True)):
        found = [are_queries_known([*weeks[:number], 0]) for number in range(1, len(weeks) + 1)]
        assert changes(found) <= 1
        assert found[-1] is last
    assert are_queries_known([60, 0, 0])  # only one of the two has ended
    assert not are_queries_known([60, 0, 0, 0])
    assert not are_queries_known([])


@given(st.lists(st.integers(26, 49), min_size=1, max_size=30), st.sampled_from([0, 50]))
def test_between_the_bounds_nothing_changes(weeks: list[int], first: int) -> None:
    found = {are_queries_known([first, *weeks[:number], 0]) for number in range(len(weeks))}
    assert found == {first == QUERIES_A_WEEK}


def test_under_levels_the_settings_of_other_triggers_mean_nothing() -> None:
    usual, other = default_policy(), default_policy(trigger_target_size_bytes=1, scans_per_day=0.0, mse_ratio=1.0)
    files = sized(*[MIB] * 8)
    assert opinion(files, usual) == opinion(files, other)
    assert opinion(files, usual).rule == Rule(usual.min_input_files)


SUMMARIES: list[tuple[list[Mapping[str, str]], float | None]] = [
    ([], None),
    ([{"added-files-size": "600"}], None),
    ([{"added-files-size": "600"}] * 10, None),  # a burst
    ([{"added-files-size": "600"}] * 11, 600 / MINUTE_MS),
    ([{"added-files-size": "9000"}, *[{"added-files-size": "600"}] * 30], 600 / MINUTE_MS),
    ([{"added-files-size": "x" * 99}, {"added-files-size": "-1"}, {}] * 4, None),
    ([{}, {}, {"added-files-size": "9" * 30}] * 4, None),
]


@each_case(("summaries", "rate"), SUMMARIES)
def test_how_fast_data_comes(summaries: list[Mapping[str, str]], rate: float | None) -> None:
    commits = [
        snapshot(number, NOW + number * MINUTE_MS, summary=summary) for number, summary in enumerate(summaries, 1)
    ]
    assert arrival_bytes_per_ms(table(commits)) == rate
    assert commits_since(table(commits), NOW) == tuple(one.committed_at for one in reversed(commits))
    assert len(commits_since(table(commits), NOW + 6 * MINUTE_MS)) == max(0, len(commits) - 5)


def test_when_we_last_rewrote_a_partition_is_told_by_the_manifests_of_our_commits() -> None:
    ours = {TASK_ID_KEY: "t1"}
    metadata = table(
        [
            snapshot(1, NOW - 5),
            snapshot(2, NOW - 4, Operation.REPLACE, ours),
            snapshot(3, NOW - 3, Operation.REPLACE, ours),
            snapshot(4, NOW + DAY_MS, Operation.REPLACE, ours),
            snapshot(5, NOW - 2, Operation.REPLACE, {**ours, "manifests-replaced": "7"}),
            snapshot(6, NOW - 1, Operation.REPLACE, {**ours, "manifests-replaced": "1", "added-data-files": "2"}),
        ]
    )
    some = observe(sized(MIB)).inventory.partitions[0].counts
    none = replace(some, data_files=0)

    def manifest(
        number: int, partitions: Mapping[int, Any], content: FileContent = FileContent.DATA
    ) -> ManifestSummary:
        shares = {month(one): PartitionSummary(counts, 1, frozenset(), 0) for one, counts in partitions.items()}
        return ManifestSummary(ManifestKey(f"m{number}", 1, number), content, shares)

    summaries = [
        manifest(1, {1: some, 2: some, 3: some}),
        manifest(2, {1: some, 2: some, 4: none}),
        manifest(3, {1: some}),
        manifest(3, {2: some}, FileContent.POSITION_DELETES),
        manifest(4, {3: some}),
        manifest(5, {1: some, 3: some}),
        manifest(6, {4: some}),
    ]
    commits = our_commits(metadata, [summary.key for summary in summaries], NOW)
    assert commits == {2: NOW - 4, 3: NOW - 3, 6: NOW - 1}
    assert rewritten_at(commits, summaries) == {month(1): NOW - 3, month(2): NOW - 4, month(4): NOW - 1}
