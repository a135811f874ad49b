"""Typical tables, and all that their owners are told of the plan: stored text, so that each change of it is read.

``ICEWRIGHT_WRITE_STORIES=1`` writes the texts anew; look at the difference before committing it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from icewright.domain.files import DataFile
from icewright.domain.observation import Observation, Removals
from icewright.domain.plans import Plan
from icewright.domain.policy import PolicyRule
from icewright.domain.tables import Operation
from icewright.planning import wording
from icewright.planning.check_plan import check_plan
from icewright.planning.explain import explain
from icewright.planning.level0 import plan_level0
from icewright.planning.policy import effective_policy
from icewright.planning.shortlist import shortlist
from tests.planning.observations import (
    DAY_MS,
    HOUR_MS,
    MIB,
    MINUTE_MS,
    NOW,
    WHOLE,
    Deletes,
    data_file,
    data_files,
    month,
    observe,
    snapshot,
    table,
)

STORED = Path(__file__).parent / "level0"
Told = tuple[Observation, list[DataFile]]


def streaming_appends() -> Told:
    """A table that gets a small file each minute, one of them just now; icewright may act by itself."""
    metadata = table(
        [snapshot(1), snapshot(2, NOW - 20_000)],
        {"write.target-file-size-bytes": str(128 * MIB)},
    )
    files = [*data_files(month(1), 412, MIB // 2), data_file(month(1), 412, MIB // 2, snapshot_id=2)]
    files += data_files(month(0), 3, 120 * MIB)
    return observe(files, metadata), files


def well_laid_out() -> Told:
    """Files near the target, a few small ones beside them."""
    files = [file for number in range(4) for file in data_files(month(number), 6, 180 * MIB)]
    files += [data_file(month(3), 99), data_file(month(3), 98)]
    return observe(files), files


def a_long_backlog() -> Told:
    """More than one task may take: the worst partitions go first, a person has to approve it."""
    files = [file for number in range(24) for file in data_files(month(number), 300 + 50 * number, MIB)]
    return observe(files, table(properties={"icewright.mode": "approve"})), files


def deletes_and_merges() -> Told:
    """A MERGE every ten minutes that runs for up to an hour, beside quiet months and one with delete files."""
    files = [file for number in range(3) for file in data_files(month(number), 20)]
    removals = Removals({month(2): NOW - 12 * MINUTE_MS}, writer_run_ms_max=55 * MINUTE_MS)
    metadata = table(properties={"icewright.mode": "observe"})
    deletes = {month(1): Deletes(4)}
    return observe(files, metadata, removals=removals, interval_ms=10 * MINUTE_MS, deletes=deletes), files


def only_waiting() -> Told:
    """All that could be merged has to wait, for different reasons."""
    metadata = table([snapshot(1, NOW - HOUR_MS), snapshot(2, NOW - 10_000)])
    files = [*data_files(month(1), 6, snapshot_id=2), *data_files(month(2), 6)]
    files += [data_file(month(3), 0, 90 * MIB), *(data_file(month(3), number) for number in range(1, 5))]
    return observe(files, metadata, removals=Removals({month(2): NOW - MINUTE_MS})), files


def equality_deletes_everywhere() -> Told:
    """A table that was unpartitioned once and still has equality deletes from that time."""
    files = [*data_files(WHOLE, 3), *data_files(month(1), 9), *data_files(month(2), 9)]
    return observe(files, deletes={WHOLE: Deletes(equality=2)}), files


def somebody_else_is_at_it() -> Told:
    """Another engine compacts the table each night."""
    night = snapshot(
        2,
        NOW - DAY_MS,
        Operation.REPLACE,
        {"added-data-files": "3", "deleted-data-files": "90", "engine-name": "spark"},
    )
    files = data_files(month(1), 40)
    return observe(files, table([snapshot(1), night, snapshot(3, NOW - HOUR_MS)])), files


def mistyped_settings() -> Told:
    """Two settings that cannot be used; the namespace's ``auto`` does not step in."""
    metadata = table(properties={"icewright.mode": "automatic", "icewright.write-windw": "PT2H"})
    files = data_files(month(1), 40)
    return observe(files, metadata), files


STORIES: list[Callable[[], Told]] = [
    streaming_appends,
    well_laid_out,
    a_long_backlog,
    deletes_and_merges,
    only_waiting,
    equality_deletes_everywhere,
    somebody_else_is_at_it,
    mistyped_settings,
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_what_owners_are_told(story: Callable[[], Told]) -> None:
    observation, files = story()
    rules = (PolicyRule("lake", ("sales",), {"icewright.mode": "auto"}),)
    policy = effective_policy(observation.metadata, rules)
    verdicts = shortlist(observation, policy, NOW)
    plan = plan_level0(observation, policy, verdicts, files, plan_id="plan-1", now=NOW)
    assert check_plan(plan, observation, policy, {file.path: file for file in files}) == ()
    text = f"{story.__doc__}\n\n" + "\n".join([*explain(plan), *_action(plan), ""])
    stored = STORED / f"{story.__name__}.txt"
    if os.environ.get("ICEWRIGHT_WRITE_STORIES"):
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")


def test_no_story_is_left_over() -> None:
    assert {path.stem for path in STORED.iterdir()} == {story.__name__ for story in STORIES}


def _action(plan: Plan) -> list[str]:
    groups = [group for action in plan.actions for group in action.groups]
    lines = [
        f"group {group.group_id}: {group.partition_path}, {wording.count(len(group.files), 'file')}, "
        f"{wording.size(group.size_bytes)}, {wording.count(group.record_count, 'row')}"
        for group in groups[:6]
    ]
    return [*lines, f"and {len(groups) - 6} more groups"] if len(groups) > 6 else lines
