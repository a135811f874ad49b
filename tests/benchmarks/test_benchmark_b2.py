"""The benchmark of triggers: its peer keeps the procedure's rules, its costs fit, and every target is judged."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import b2
from benchmarks.results import dumps, loads
from benchmarks.rewriters import ICEWRIGHT, PEER
from benchmarks.traces import (
    HOUR_MS,
    JUDGING,
    MB,
    MINUTE_MS,
    START_AT,
    TRAINING,
    Commit,
    Costs,
    Cron,
    OurCosts,
    Writer,
    paper_policy,
    replay,
    replay_cron,
    trickle,
)
from icewright.model.policy.policy import Trigger
from tests.cases import each_case

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
COSTS = Costs(0.5, 0.005, 2e-8)
OURS = OurCosts(COSTS, Costs(0.5, 0.001, 1e-9), 0.01)
T = 512 * MB


def chance() -> random.Random:
    return random.Random(5)  # noqa: S311 - a trace, no secret


def test_the_short_form_runs_and_judges_every_target() -> None:
    costs = b2.constants(RESULTS, {ICEWRIGHT: 0.5, PEER: 0.5})
    result = b2.run(costs, b2.short(seed=3), lambda _: None)
    assert loads(dumps(result)) == result
    assert {(case.case, case.metric) for case in result.cases if case.met is not None} == {
        ("all judging writers", f"{metric}, {trigger}")
        for metric in ("cpu_ratio of policy and executor", "cpu_ratio of the policy alone", "files_ratio")
        for trigger in ("levels", "cost-benefit")
    }
    assert {case.case for case in result.cases} >= {*TRAINING, *JUDGING}, "each writer has its figures"
    alike = {case.metric for case in result.cases if case.metric.startswith("cpu_ratio of the policy alone, ")}
    assert len(alike) == len(Trigger), "each trigger is also priced as the peer is"
    assert result.cases == b2.run(costs, b2.short(seed=3), lambda _: None).cases


@given(st.integers(1, 50), st.integers(0, 90), st.integers(1, 60))
def test_costs_are_found_again(each: int, by_file: int, by_mb: int) -> None:
    true = Costs(each / 10, by_file / 10_000, by_mb / 1000 / MB)
    sizes = [(400, 104 * MB), (64, 320 * MB), (5, MB)]
    found = b2.fitted([(files, size_bytes, true.of(files, size_bytes)) for files, size_bytes in sizes])
    for files, size_bytes in sizes:
        assert found.of(files, size_bytes) == pytest.approx(true.of(files, size_bytes))
    assert min(found.each_s, found.file_s, found.byte_s) >= 0


def test_costs_are_never_below_zero() -> None:
    found = b2.fitted([(400, 104 * MB, 4.0), (64, 320 * MB, 12.0), (5, MB, 2.0)])
    assert min(found.each_s, found.file_s, found.byte_s) >= 0


CRON = [
    ([MB] * 4, 0, []),
    ([MB] * 5, 5, [5 * MB]),
    ([400 * MB, MB], 0, []),
    ([MB] * 5 + [384 * MB], 5, [5 * MB]),
    ([MB] * 5 + [383 * MB], 6, [388 * MB]),
    ([300 * MB] * 2, 2, [T, 88 * MB]),
    ([380 * MB] * 5, 5, [T, T, T, 364 * MB]),
    ([360 * MB] * 3, 3, [540 * MB + 5120, 540 * MB - 5120]),
    ([1000 * MB], 1, [T, 488 * MB]),
    ([900 * MB], 0, []),
]


@each_case(("sizes", "selected", "outputs"), CRON)
def test_the_cron_keeps_the_rules_of_the_procedure(sizes: list[int], selected: int, outputs: list[int]) -> None:
    found = Cron(T).rewrites({str(number): size_bytes for number, size_bytes in enumerate(sizes)})
    assert (len(found[0]), found[1]) == (selected, outputs)


@given(st.integers(1, 40 * T))
def test_the_cron_loses_no_byte(size_bytes: int) -> None:
    assert sum(Cron(T).outputs(size_bytes)) == size_bytes


@each_case("writer", [*TRAINING.values(), *JUDGING.values()])
def test_commits_come_in_order_and_the_same_for_one_seed(writer: Writer) -> None:
    commits, again = (list(writer(chance(), 8)) for _ in range(2))
    assert commits == again
    assert all(one.at <= other.at for one, other in pairwise(commits))
    assert all(START_AT <= commit.at < START_AT + 9 * HOUR_MS for commit in commits)
    for commit in commits:
        assert sorted(commit.sizes) == sorted(size for its in commit.by_partition().values() for size in its)


def test_files_count_for_as_long_as_they_live() -> None:
    commits = [Commit(START_AT + number * MINUTE_MS, (MB,)) for number in range(10)]
    never = replace(paper_policy(), min_input_files=1_000)
    assert replay(commits, 1, never, OURS).mean_files == pytest.approx(sum(range(51, 61)) / 60)
    cron = replay_cron(commits, 2, Cron(T), COSTS)
    assert cron.mean_files == pytest.approx((sum(range(51, 61)) + 60) / 120)
    assert (cron.rewrites, cron.rewritten_bytes, cron.cpu_s) == (1, 10 * MB, COSTS.of(10, 10 * MB))


@each_case("trigger", list(Trigger))
def test_each_trigger_keeps_every_byte_and_pays_for_each_look(trigger: Trigger) -> None:
    commits = list(trickle(chance(), 5))
    outcome = replay(commits, 5, replace(paper_policy(), trigger=trigger), OURS)
    assert outcome.written_bytes == sum(sum(commit.sizes) for commit in commits)
    assert outcome.cpu_s >= len(commits) * OURS.look_s + outcome.rewrites * COSTS.each_s
    assert outcome.rewrites > 0
    assert outcome.mean_files < len(commits) / 2
