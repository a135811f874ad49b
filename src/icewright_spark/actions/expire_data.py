"""``expire_data``: delete exactly the planned files from the table's metadata, with a tag made before, in one commit.

The job chooses nothing and computes no age: which files go is the planner's. It reads the table's manifests through
Iceberg's own readers to see that each is still what was planned, and looks at a clock of its own only to refuse. No
file is removed from storage, here or by Iceberg (decision 0036).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection
from typing import Final

from icewright.core.errors import Conflict
from icewright.core.fault_points import Fault, fault
from icewright.model.actions.expire_data import CLOCK_SLACK_MS, TAG_AGE_MS, ExpireData, tag_of
from icewright.model.work.jobs import Receipt, TaskSpec
from icewright_spark.actions.done import ONE_GROUP, Done, done_by_driver
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.planned_table import check_table
from icewright_spark.iceberg.commits.commit import make_tag
from icewright_spark.iceberg.commits.data import commit_data, found_files, gone_files
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.session.driver_cost import DriverCost, jvm_thread_clock

METHOD: Final = "data-files-sha256"
"""The planned files with their sequence numbers, and what the table has of them right before."""


def expire_data(
    table: SparkTable,
    spec: TaskSpec,
    action: ExpireData,
    phase: Phase,
    may_commit: Callable[[], None],
    clock: Callable[[], float] = time.time,
) -> Done:
    """Carry out one attempt. ``clock`` gives seconds since 1970.

    Raises :class:`Conflict` when the table is not what was planned any more, or the clock that ages were told by was
    ahead of this one; then nothing has been committed but the tag, at most.
    """
    cost = DriverCost(jvm_thread_clock(table.jvm))
    check_table(table, spec)
    now = int(clock() * 1000)
    if now + CLOCK_SLACK_MS < action.as_of:
        raise Conflict(f"ages were computed as of {action.as_of}, and it is {now} here: one of two clocks is wrong")
    phase.name = "proving"
    with cost.proof():
        found = found_files(table, action)
    gone = gone_files(action, found)
    if gone:
        raise Conflict(f"{gone[0]} is no longer in the table as it was planned (of {len(gone)} such files)")
    receipt = Receipt(
        ONE_GROUP,
        METHOD,
        _digest({(file.path, file.data_sequence_number) for file in action.files}),
        _digest(found.items()),
        0,
        action.records,
    )
    fault(Fault.DATA_CHECKED)
    phase.name = "committing"
    tag = tag_of(spec.task_id)
    make_tag(table, tag, action.base_snapshot_id, max_ref_age_ms(table, action, now), may_commit)
    result = commit_data(table, spec, action, proof=proof_of(action, receipt, tag), may_commit=may_commit)
    phase.name = "done"
    return done_by_driver(
        result, (receipt,), cost, input_files=len(action.files), input_bytes=action.size_bytes, records=0
    )


def proof_of(action: ExpireData, receipt: Receipt, tag: str) -> str:
    """The proof for the snapshot summary: method, figures, the tag and the files."""
    figures = f"files={len(action.files)};records={action.records};tag={tag}"
    return f"{METHOD};{figures};digest={receipt.input_digest}"


def max_ref_age_ms(table: SparkTable, action: ExpireData, now: int) -> int:
    """For how long the tag stays: Iceberg counts that from when its snapshot was committed, the window begins now."""
    snapshot = table.java.snapshot(action.base_snapshot_id)
    if snapshot is None:
        raise Conflict(f"the planned snapshot {action.base_snapshot_id} has expired")
    return TAG_AGE_MS + max(0, max(now, action.as_of) - int(snapshot.timestampMillis()))


def _digest(files: Collection[tuple[str, int]]) -> str:
    digest = hashlib.sha256()
    for path, sequence_number in sorted(files):
        digest.update(f"{path}\0{sequence_number}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
