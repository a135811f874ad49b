"""How an expiry of data is taken back where something was committed since: its rows are inserted again, as new files.

Never twice, and only while the table's history still goes through the expiry: a table that was set back to before it
has the rows. They are those that were live right before the expiry, so that no row comes back which somebody deleted
after the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final, TypeAlias

from icewright.core import wording
from icewright.inventory.applied_deletes import DeleteIndex
from icewright.model.actions.actions import Executor, FileGroup, UndoExpireData
from icewright.model.actions.expire_data import ExpireData, ExpiringFile, ExpiringPartition, tag_of
from icewright.model.actions.undo import MOVED_FILES_MAX, UndoExpireDataPrediction, inserted_already
from icewright.model.iceberg.column_types import all_fields, children, first_not_kept, spark_keeps
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent
from icewright.model.iceberg.tables import Json, Operation, RefKind, Schema, Snapshot, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.plans.eligibility import encryption_obstacle, recovery_obstacle
from icewright.plans.standalone_plan import Decided

_PROMOTED: Final = frozenset({("int", "long"), ("float", "double")})
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.ASCII)


DataUndoDecision: TypeAlias = Decided[UndoExpireData, UndoExpireDataPrediction]
"""``notes`` say how the new rows differ from those that expired."""


def frame_of(task_id: str, expiry: ExpireData, made: Snapshot, metadata: TableMetadata) -> UndoExpireData | Reason:
    """The action without its files: from where to where rows go. ``made`` is the snapshot that the expiry made.

    A reason where it is not known what was live right before the expiry.
    """
    if made.parent_id is None or metadata.snapshot(made.parent_id) is None:
        return Reason("base-gone", "the snapshot right before it has expired, which says what was deleted of its rows")
    return UndoExpireData(
        undone_task_id=task_id,
        base_snapshot_id=made.parent_id,
        expiry_snapshot_id=made.snapshot_id,
        tagged_snapshot_id=expiry.base_snapshot_id,
        schema_id=metadata.current_schema_id,
        spec_id=metadata.default_spec_id,
        groups=(),
    )


def data_undo_conflict(action: UndoExpireData, metadata: TableMetadata) -> Reason | None:
    """Why the rows cannot be inserted into the table as it is now, None where they can. Its files are not looked at."""
    line = metadata.ancestors()
    ids = [snapshot.snapshot_id for snapshot in line]
    if action.expiry_snapshot_id not in ids:
        text = (
            f"the table's history does not reach back to snapshot {action.expiry_snapshot_id}, which expired the rows"
        )
        return Reason("base-gone", f"{text}: they may be there again", {"snapshot_id": action.expiry_snapshot_id})
    summaries = {snapshot.snapshot_id: snapshot.summary for snapshot in metadata.snapshots}
    for snapshot in line[: ids.index(action.expiry_snapshot_id)]:
        already = inserted_already(snapshot.snapshot_id, action.undone_task_id, summaries.get)
        if already is not None:
            return already
    if metadata.snapshot(action.base_snapshot_id) is None:
        return Reason("base-gone", f"snapshot {action.base_snapshot_id}, right before it, has expired")
    if action.schema_id != metadata.current_schema_id:
        text = f"planned for schema {action.schema_id}, now it is {metadata.current_schema_id}"
        return Reason("schema-changed", text)
    if action.spec_id != metadata.default_spec_id:
        text = f"planned for partition spec {action.spec_id}, now it is {metadata.default_spec_id}"
        return Reason("spec-changed", text)
    return _tag_problem(action, metadata)


def _tag_problem(action: UndoExpireData, metadata: TableMetadata) -> Reason | None:
    name = tag_of(action.undone_task_id)
    tag = next((ref for ref in metadata.refs if ref.name == name), None)
    if tag is None:
        return Reason("tag-gone", f"the tag {name}, which keeps its files, is not there any more")
    if tag.kind is not RefKind.TAG or tag.snapshot_id != action.tagged_snapshot_id:
        was = f"the tag {name} is at snapshot {tag.snapshot_id}, and was made at {action.tagged_snapshot_id}"
        return Reason("tag-moved", f"{was}: nothing keeps its files")
    return None


def data_undo_obstacle(frame: UndoExpireData, metadata: TableMetadata, policy: Policy) -> Reason | None:
    """Why a table's rows cannot be inserted again, before any file is looked at; None where they can."""
    return (
        recovery_obstacle(metadata, policy)
        or encryption_obstacle(metadata)
        or data_undo_conflict(frame, metadata)
        or _column_obstacle(schema_then(frame, metadata).fields, metadata.schema.fields)
    )


def schema_then(action: UndoExpireData, metadata: TableMetadata) -> Schema:
    """The schema of the rows that expired; the current one where the snapshot does not say, as Iceberg has it."""
    base = metadata.snapshot(action.base_snapshot_id)
    wanted = None if base is None else base.schema_id
    return next((schema for schema in metadata.schemas if schema.schema_id == wanted), metadata.schema)


def still_there(expiry: ExpireData, live: Iterable[DataFile]) -> Reason | None:
    """Why nothing is inserted: files that expired are in the table: they never went, or came back as they are.

    ``live`` are the files of their partitions by now.
    """
    paths = {file.path for file in expiry.files}
    there = sum(file.path in paths for file in live)
    if not there:
        return None
    return Reason("there-already", f"{wording.count(there, 'file')} of it {'is' if there == 1 else 'are'} in the table")


def plan_data_undo(
    frame: UndoExpireData,
    expiry: ExpireData,
    files: Iterable[DataFile],
    deletes: Iterable[DeleteFile],
    metadata: TableMetadata,
    policy: Policy,
) -> DataUndoDecision:
    """The action for a frame that nothing stands in the way of.

    ``files`` are the live data files of the expired partitions right before the expiry, ``deletes`` the delete files
    that may apply to them.
    """
    found, index = {file.path: file for file in files}, DeleteIndex(metadata, deletes)
    groups: list[FileGroup] = []
    for partition in expiry.partitions:
        for some in _packed(partition.files, policy.target_file_size_bytes):
            inputs = [found[file.path] for file in some if file.is_still(found.get(file.path), partition.partition)]
            if len(inputs) < len(some):
                text = f"a file of {partition.path or 'the table'} was not there, right before it, as it was planned"
                return Decided(Reason("files-changed", text))
            groups.append(_group(len(groups), partition, inputs, index, frame.spec_id))
    action = replace(frame, groups=tuple(groups))
    added = tuple(_added(schema_then(frame, metadata).fields, metadata.schema.fields))
    prediction = UndoExpireDataPrediction(
        tag=tag_of(frame.undone_task_id),
        partitions=len(expiry.partitions),
        files=action.figures.files,
        size_bytes=action.figures.size_bytes,
        records=action.record_count,
        delete_files=action.figures.delete_files,
        deleted_records=sum(_deleted_at_most(group) for group in groups),
        added_columns=added,
        is_moved=any(group.output_spec_id is not None for group in groups),
    )
    notes = tuple(_notes(prediction, _changes_since(frame, metadata)))
    return Decided(_reason(prediction), action, prediction, notes)


def _packed(files: Sequence[ExpiringFile], size_bytes: int) -> Iterator[list[ExpiringFile]]:
    """The files of a partition, some at a time, each time so many as become one file of about that size."""
    some: list[ExpiringFile] = []
    for file in files:
        if some and sum(each.size_bytes for each in some) + file.size_bytes > size_bytes:
            yield some
            some = []
        some.append(file)
    if some:
        yield some


def _group(
    number: int, partition: ExpiringPartition, files: Sequence[DataFile], index: DeleteIndex, spec_id: int
) -> FileGroup:
    inputs, deletes = index.inputs(files)
    moves = partition.partition.spec_id != spec_id
    return FileGroup(
        group_id=number,
        partition=partition.partition,
        partition_path=partition.path,
        files=inputs,
        executor=Executor.STAGED,
        delete_files=deletes,
        output_files=MOVED_FILES_MAX if moves else 1,
        output_spec_id=spec_id if moves else None,
    )


def _deleted_at_most(group: FileGroup) -> int:
    """How many rows of a group its delete files can remove: equality deletes say of none how many."""
    total = 0
    for file in group.files:
        deletes = [group.delete_files[place] for place in file.deletes]
        any_number = any(delete.content is FileContent.EQUALITY_DELETES for delete in deletes)
        removed = sum(delete.record_count for delete in deletes)
        total += file.record_count if any_number else min(file.record_count, removed)
    return total


def _column_obstacle(then: Sequence[Json], now: Sequence[Json]) -> Reason | None:
    """Why rows of one schema cannot be written by another without loss; columns are told by their ids."""
    unread = first_not_kept(now, spark_keeps)
    if unread is not None:
        text = f"Spark cannot read and write column {wording.name(unread[0])}, of type {wording.cut(unread[1])}"
        return Reason("column-type", text)
    current = {field["id"]: field for _, field in all_fields(now)}
    for path, field in all_fields(then):
        name, found = wording.name(path), current.get(field["id"])
        if found is None:
            return Reason("column-dropped", f"column {name}, which its rows have, was dropped since")
        if not _is_readable(field["type"], found["type"]):
            return Reason("column-type", f"column {name} was of another type, which cannot be read as the present one")
        if found.get("required", False) and not field.get("required", False):
            return Reason("column-required", f"column {name} was optional, and nulls are not allowed in it any more")
    known = {field["id"] for _, field in all_fields(then)}
    for path, field in all_fields(now):
        if field["id"] not in known and field.get("required", False) and "initial-default" not in field:
            return Reason("column-required", f"column {wording.name(path)} is required, and its rows do not have it")
    return None


def _is_readable(then: Any, now: Any) -> bool:
    """Whether values of one type can be read as of another: the same, or promoted (spec, "Schema Evolution")."""
    if isinstance(then, str) and isinstance(now, str):
        before, after = _DECIMAL.fullmatch(then), _DECIMAL.fullmatch(now)
        if before is not None and after is not None:
            return before[2] == after[2] and int(before[1]) <= int(after[1])
        return then == now or (then, now) in _PROMOTED
    return not isinstance(then, str) and not isinstance(now, str) and then["type"] == now["type"]


def _added(then: Sequence[Json], now: Sequence[Json]) -> Iterator[str]:
    """The dotted names of fields that came since, the outermost alone."""
    known = {field["id"] for _, field in all_fields(then)}

    def walk(fields: Iterable[Json], prefix: str) -> Iterator[str]:
        for field in fields:
            path = prefix + str(field["name"])
            if field["id"] in known:
                yield from walk(children(field["type"]), path + ".")
            else:
                yield path

    yield from walk(now, "")


def _reason(said: UndoExpireDataPrediction) -> Reason:
    rows = wording.count(said.records, "row")
    if said.deleted_records:
        rows = f"what {wording.count(said.delete_files, 'delete file')} left of {rows}"
    text = (
        f"{rows} in {wording.count(said.files, 'file')} of {wording.count(said.partitions, 'partition')} would be "
        f"inserted again from the tag {said.tag}, as new files; they get new row ids and sequence numbers"
    )
    figures = {"records": said.records, "files": said.files, "partitions": said.partitions}
    return Reason("insert-again", text, figures)


def _changes_since(frame: UndoExpireData, metadata: TableMetadata) -> int:
    """How many commits of others since the expiry may have deleted rows, or replaced them by others."""
    since = takewhile(lambda one: one.snapshot_id != frame.expiry_snapshot_id, metadata.ancestors())
    return sum(one.task_id is None and one.operation not in (Operation.APPEND, Operation.REPLACE) for one in since)


def _notes(said: UndoExpireDataPrediction, changes: int) -> Iterator[Reason]:
    if said.added_columns:
        named = wording.shortened([wording.name(name) for name in said.added_columns])
        yield Reason("columns-added", f"columns that came since have no values in them, but their defaults: {named}")
    if said.is_moved:
        yield Reason("spec-changed", "they are written to partitions of the current spec, which is another one now")
    if changes:
        text = (
            f"{wording.count(changes, 'commit')} since the expiry may have deleted or replaced rows, but none that had "
            "expired: rows that would have been removed are restored, and a key that was written again is there twice"
        )
        yield Reason("changed-since", text, {"commits": changes})
    text = (
        "rows that were inserted again meanwhile, by hand or by their key, would be there twice: they cannot be "
        "distinguished"
    )
    yield Reason("by-hand", text)
