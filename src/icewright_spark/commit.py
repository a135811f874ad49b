"""The only place that commits to Iceberg.

A commit ends in one of three ways, and each asks for another next step: *committed*, *conflict* (the table is as it
was; observe and plan again) and *unknown* (look before anything else). Whatever happens, nothing here deletes a file:
leftovers are the business of orphan removal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JError

from icewright.domain.actions import RewriteDataFiles
from icewright.domain.jobs import Committed, CommitUnknown, Conflicted, TaskSpec
from icewright.domain.tables import ATTEMPT_KEY, PROOF_KEY, TASK_ID_KEY
from icewright_spark.iceberg import OutputEntry, SparkTable, java_class

_TRIES_MAX: Final = 8
"""Tries against writers that are merely faster. Each re-validates from the planned snapshot; no work is redone."""
_PAUSE_S_MAX: Final = 5.0
_SEQUENCE_NUMBERS_SINCE: Final = 2

_EXCEPTIONS: Final = "org.apache.iceberg.exceptions."
_CONFLICT: Final = f"{_EXCEPTIONS}ValidationException"
_FASTER: Final = f"{_EXCEPTIONS}CommitFailedException"

CommitResult = Committed | Conflicted | CommitUnknown


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What takes the place of one file group."""

    group_id: int
    entry: OutputEntry


def commit_rewrite(
    table: SparkTable,
    spec: TaskSpec,
    outputs: Sequence[Rewritten],
    *,
    proof: str,
    may_commit: Callable[[], None],
    pause: Callable[[float], None] = time.sleep,
) -> CommitResult:
    """Replace the input files of every group by its output, validated from the planned snapshot.

    ``may_commit`` is called right before each try and raises
    :class:`~icewright.domain.errors.LeaseLost` when the attempt has been fenced; that passes through, uncommitted.
    The summary of the snapshot carries task id, attempt and proof, by which the commit can be found again.
    """
    for attempt in range(_TRIES_MAX):
        may_commit()
        operation = _rewrite(table, spec, outputs, proof)
        try:
            operation.commit()
        except Py4JError as error:
            kind = java_class(error)
            if kind == _CONFLICT:
                return Conflicted(first_line(error))
            if kind != _FASTER:
                return _look(table, spec, first_line(error))
            pause(min(_PAUSE_S_MAX, 0.1 * 2**attempt))
            table.refresh()
            continue
        return _look(table, spec, "the commit was reported as done, but its snapshot is not in the table")
    return Conflicted(f"{_TRIES_MAX} commits of other writers came first, one after the other")


def first_line(error: BaseException) -> str:
    """What a Java exception says, without its trace."""
    exception = getattr(error, "java_exception", None)
    text = str(error) if exception is None else str(exception.toString())
    return text.splitlines()[0] if text else type(error).__name__


def _rewrite(table: SparkTable, spec: TaskSpec, outputs: Sequence[Rewritten], proof: str) -> Any:
    action: RewriteDataFiles = spec.action
    entries = {output.group_id: output.entry for output in outputs}
    operation = table.java.newRewrite().validateFromSnapshot(action.base_snapshot_id)
    if table.format_version >= _SEQUENCE_NUMBERS_SINCE:
        base = table.java.snapshot(action.base_snapshot_id)
        operation = operation.dataSequenceNumber(base.sequenceNumber())
    for group in action.groups:
        for file in group.files:
            operation.deleteFile(
                table.data_file(
                    group.partition, path=file.path, size_bytes=file.size_bytes, record_count=file.record_count
                )
            )
        operation.addFile(table.output_file(group.partition, entries[group.group_id]))
    operation.set(TASK_ID_KEY, spec.task_id)
    operation.set(ATTEMPT_KEY, str(spec.attempt))
    operation.set(PROOF_KEY, proof)
    return operation


def _look(table: SparkTable, spec: TaskSpec, detail: str) -> CommitResult:
    """What the table itself says about the commit."""
    try:
        table.refresh()
        snapshot_id = table.snapshot_of_task(spec.task_id, TASK_ID_KEY)
    except Py4JError as error:
        return CommitUnknown(f"{detail}; looking again failed: {first_line(error)}")
    return CommitUnknown(detail) if snapshot_id is None else Committed(snapshot_id)
