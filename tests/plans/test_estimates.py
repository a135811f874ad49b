from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.actions.rewrite_data_files.estimates import estimate
from icewright.inventory.commit_rate import commits_said
from icewright.model.actions.actions import Executor, FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.files import DeleteFile
from icewright.model.iceberg.tables import Snapshot
from icewright.model.plans.observation import Observation, Removals
from icewright.model.plans.plans import Risk
from icewright.policy.effective import effective_policy
from tests.builders.observations import HOUR_MS, MIB, MINUTE_MS, NOW, WHOLE, month, observe, snapshot, table
from tests.cases import each_case


def group(*deletes: DeleteFile, files: int = 4, executor: Executor = Executor.MERGE) -> FileGroup:
    inputs = tuple(InputFile(f"f{number}", 100 * MIB, 1_000, 1) for number in range(files))
    return FileGroup(0, month(1), "month=1", inputs, executor, tuple(deletes))


def rewrite(*groups: FileGroup) -> RewriteDataFiles:
    return RewriteDataFiles(1, 0, groups, 512 * MIB)


def observed(
    removals: Removals | None = None, interval_ms: int | None = None, commits: tuple[Snapshot, ...] = (snapshot(1),)
) -> Observation:
    found = observe([], table(commits))
    return replace(found, removals=removals or Removals(), commit_interval_ms=interval_ms)


@each_case(
    ("ages_ms", "said"),
    [
        ((HOUR_MS,), ""),
        ((500, 400, 300, 200, 100), "others last committed 0.1 s ago"),  # one burst is no rhythm
        ((90_000, 60_000, 30_000), "others commit every 30 s"),
        ((HOUR_MS + 60_000, HOUR_MS + 30_000, HOUR_MS), "others last committed 60.0 min ago"),  # it has ended
        ((3 * HOUR_MS, 2 * HOUR_MS), "others commit every 1 h"),
    ],
)
def test_a_burst_of_commits_is_no_rhythm_and_neither_is_one_that_ended(ages_ms: tuple[int, ...], said: str) -> None:
    commits = tuple(snapshot(number, NOW - age_ms) for number, age_ms in enumerate(ages_ms, start=1))
    assert commits_said(table(commits), NOW) == said


POLICY = effective_policy(table(), ())


def test_a_merge_takes_what_the_rates_of_the_policy_say() -> None:
    found = estimate(observed(), POLICY, rewrite(group()))
    assert found.output_bytes == found.modelled_bytes == pytest.approx(400 * MIB, rel=0.001)
    bytes_s = 400 * MIB / 200_000_000 + found.modelled_bytes / 85_000_000
    assert found.cpu_ms == round(400 + 4 * 1.0 + 1000 * bytes_s)


def test_the_dearer_executor_is_said_to_be_dearer() -> None:
    took = [
        estimate(observed(), POLICY, rewrite(group(executor=executor))).cpu_ms
        for executor in (Executor.STITCH, Executor.MERGE, Executor.SORT, Executor.STAGED, Executor.SHUFFLE)
    ]
    assert took == sorted(took)
    assert len(set(took)) == len(took)


def test_every_executor_has_a_rate() -> None:
    for executor in Executor:
        assert estimate(observed(), POLICY, rewrite(group(executor=executor))).cpu_ms > 0


@each_case(
    ("ago_ms", "risk"), [(24 * HOUR_MS, Risk.LOW), (5 * MINUTE_MS, Risk.MEDIUM), (10_000, Risk.HIGH), (-1, Risk.HIGH)]
)
def test_the_later_rows_were_removed_the_higher_the_risk(ago_ms: int, risk: Risk) -> None:
    removals = Removals({month(1): NOW - ago_ms})
    assert estimate(observed(removals), POLICY, rewrite(group())).risk is risk
    everywhere = Removals(everywhere_at=NOW - ago_ms)
    assert estimate(observed(everywhere), POLICY, rewrite(group())).risk is risk


def test_removals_elsewhere_are_no_risk_and_commits_are_told() -> None:
    commits = tuple(snapshot(number, NOW - 10_000 * (20 - number)) for number in range(1, 21))
    found = estimate(observed(Removals({WHOLE: NOW}), 10_000, commits), POLICY, rewrite(group()))
    assert found.risk is Risk.LOW
    assert found.risk_reason.text == "no rows were removed lately from its 1 partition; others commit every 10 s"
