"""Typical tables, and all that their owners are told of the plan: stored text, so that each change of it is read.

``ICEWRIGHT_WRITE_STORIES=1`` writes the texts anew; look at the difference before committing it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.core import wording
from icewright.maintenance.explain import explain
from icewright.model.iceberg.files import DataFile, DeleteFile
from icewright.model.iceberg.tables import Operation
from icewright.model.plans.observation import Observation, Removals, WorkerAccess
from icewright.model.plans.plans import Plan
from icewright.model.policy.policy import PolicyRule
from icewright.policy.effective import effective_policy
from tests.builders.observations import (
    DAY_MS,
    FIELDS,
    HOUR_MS,
    MIB,
    MINUTE_MS,
    NOW,
    WHOLE,
    data_file,
    data_files,
    deletion_vector,
    equality_deletes,
    month,
    observe,
    position_deletes,
    snapshot,
    table,
)
from tests.cases import each_case

STORED = Path(__file__).parent / "level0"
Told = tuple[Observation, list[DataFile], list[DeleteFile]]


def streaming_appends() -> Told:
    """A table that gets a small file each minute, one of them just now; icewright may act by itself."""
    metadata = table([snapshot(1), snapshot(2, NOW - 20_000)], {"write.target-file-size-bytes": str(128 * MIB)})
    files = [*data_files(month(1), 412, MIB // 2), data_file(month(1), 412, MIB // 2, snapshot_id=2)]
    files += data_files(month(0), 3, 120 * MIB)
    return observe(files, metadata), files, []


def well_laid_out() -> Told:
    """Files near the target, a few small ones beside them."""
    files = [file for number in range(4) for file in data_files(month(number), 6, 180 * MIB)]
    files += [data_file(month(3), 99), data_file(month(3), 98)]
    return observe(files), files, []


def a_long_backlog() -> Told:
    """More than one task may take: the worst partitions go first, a person has to approve it."""
    files = [file for number in range(24) for file in data_files(month(number), 300 + 50 * number, MIB)]
    return observe(files, table(properties={"icewright.mode": "approve"})), files, []


def deletes_and_merges() -> Told:
    """A MERGE every ten minutes that runs for up to an hour, beside quiet months and one with position deletes."""
    files = [file for number in range(3) for file in data_files(month(number), 20)]
    removals = Removals({month(2): NOW - 12 * MINUTE_MS}, writer_run_ms_max=55 * MINUTE_MS)
    metadata = table(properties={"icewright.mode": "observe"})
    deletes = [position_deletes(month(1), number) for number in range(4)]
    observation = observe(files, metadata, removals=removals, interval_ms=10 * MINUTE_MS, deletes=deletes)
    return observation, files, deletes


def merge_on_read() -> Told:
    """Large files: one has a third of its rows deleted, one less, a third one ten delete files; small dangling ones."""
    files = [*data_files(month(1), 3, 160 * MIB), *data_files(month(2), 2, 300 * MIB)]
    for_one = [position_deletes(month(1), 0, files[0].record_count // 3, of=files[0])]
    for_another = [position_deletes(month(1), 1, files[1].record_count // 5, of=files[1])]
    many = [position_deletes(month(1), 10 + number, 1, of=files[2]) for number in range(10)]
    dangling = [position_deletes(month(2), 0, sequence_number=0)]
    deletes = [*for_one, *for_another, *many, *dangling]
    return observe(files, table(properties={"icewright.mode": "auto"}), deletes=deletes), files, deletes


def deletion_vectors() -> Told:
    """Format version 3: small files with deletion vectors, and a large file of which nothing is left."""
    files = [data_file(month(1), number, first_row_id=number * 10_000) for number in range(7)]
    files.append(data_file(month(2), 0, 200 * MIB, first_row_id=100_000))
    deletes = [deletion_vector(files[0], 500), deletion_vector(files[1], 7), deletion_vector(files[-1], 2_097_152)]
    metadata = table(format_version=3, properties={"icewright.mode": "auto"})
    return observe(files, metadata, deletes=deletes), files, deletes


def no_row_ids_yet() -> Told:
    """A table that was upgraded to format version 3 and has not been committed to since."""
    files = data_files(month(1), 7)
    return observe(files, table(format_version=3)), files, []


def equality_deletes_of_a_stream() -> Told:
    """A stream of upserts: each minute equality deletes in its month, beside a month that they do not touch."""
    files = [*data_files(month(1), 12), *data_files(month(2), 8)]
    deletes = [equality_deletes(month(1), number) for number in range(30)]
    return observe(files, table(properties={"icewright.mode": "auto"}), deletes=deletes), files, deletes


def neither_executor() -> Told:
    """A column of times, which Spark does not know, and equality deletes, which a merge cannot do."""
    fields = (*FIELDS, {"id": 3, "name": "at", "type": "time", "required": False})
    files = data_files(month(1), 12)
    deletes = [equality_deletes(month(1), 0)]
    return observe(files, table(fields=fields), deletes=deletes), files, deletes


def storage_that_nobody_has_tried() -> Told:
    """A table on an object store, and no optimizer has shown that its workers can reach it."""
    files = data_files(month(1), 12)
    return observe(files, table(location="s3://lake/t"), access=WorkerAccess.UNKNOWN), files, []


def storage_that_workers_cannot_reach() -> Told:
    """The same, and the workers cannot."""
    files = data_files(month(1), 12)
    return observe(files, table(location="s3://lake/t"), access=WorkerAccess.REFUSED), files, []


def only_waiting() -> Told:
    """All that could be merged has to wait, for different reasons."""
    metadata = table([snapshot(1, NOW - HOUR_MS), snapshot(2, NOW - 10_000)])
    files = [*data_files(month(1), 6, snapshot_id=2), *data_files(month(2), 6)]
    files += [data_file(month(3), 0, 90 * MIB), *(data_file(month(3), number) for number in range(1, 5))]
    return observe(files, metadata, removals=Removals({month(2): NOW - MINUTE_MS})), files, []


def equality_deletes_everywhere() -> Told:
    """A table that was unpartitioned once and still has equality deletes from that time."""
    files = [*data_files(WHOLE, 3), *data_files(month(1), 9), *data_files(month(2), 9)]
    deletes = [equality_deletes(WHOLE, number) for number in range(2)]
    return observe(files, deletes=deletes), files, deletes


def somebody_else_is_at_it() -> Told:
    """Another engine compacts the table each night."""
    night = snapshot(
        2,
        NOW - DAY_MS,
        Operation.REPLACE,
        {"added-data-files": "3", "deleted-data-files": "90", "engine-name": "spark"},
    )
    files = data_files(month(1), 40)
    return observe(files, table([snapshot(1), night, snapshot(3, NOW - HOUR_MS)])), files, []


def mistyped_settings() -> Told:
    """Two settings that cannot be used; the namespace's ``auto`` does not step in."""
    metadata = table(properties={"icewright.mode": "automatic", "icewright.write-windw": "PT2H"})
    files = data_files(month(1), 40)
    return observe(files, metadata), files, []


STORIES: list[Callable[[], Told]] = [
    streaming_appends,
    well_laid_out,
    a_long_backlog,
    deletes_and_merges,
    merge_on_read,
    deletion_vectors,
    no_row_ids_yet,
    equality_deletes_of_a_stream,
    neither_executor,
    storage_that_nobody_has_tried,
    storage_that_workers_cannot_reach,
    only_waiting,
    equality_deletes_everywhere,
    somebody_else_is_at_it,
    mistyped_settings,
]


@each_case("story", STORIES, ids=lambda story: story.__name__)
def test_what_owners_are_told(story: Callable[[], Told]) -> None:
    observation, files, deletes = story()
    rules = (PolicyRule("lake", ("sales",), {"icewright.mode": "auto"}),)
    policy = effective_policy(observation.metadata, rules)
    verdicts = shortlist(observation, policy, NOW)
    plan = plan_table(observation, policy, verdicts, files, deletes, plan_id="plan-1", now=NOW)
    assert check_plan(plan, observation, policy, {file.path: file for file in files}, deletes) == ()
    text = f"{story.__doc__}\n\n" + "\n".join([*explain(plan), *_action(plan), ""])
    stored = STORED / f"{story.__name__}.txt"
    if os.environ.get("ICEWRIGHT_WRITE_STORIES"):
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")


def test_no_story_is_left_over() -> None:
    assert {path.stem for path in STORED.iterdir()} == {story.__name__ for story in STORIES}


def _action(plan: Plan) -> list[str]:
    groups = [group for action in plan.rewrites for group in action.groups]
    lines = [
        f"group {group.group_id}: {group.partition_path}, {group.executor.value}, "
        f"{wording.count(len(group.files), 'file')}, {wording.size(group.size_bytes)}, "
        f"{wording.count(group.record_count, 'row')}, {wording.count(len(group.delete_files), 'delete file')}"
        for group in groups[:6]
    ]
    return [*lines, f"and {len(groups) - 6} more groups"] if len(groups) > 6 else lines
