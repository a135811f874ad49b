"""Files that move to another partition spec, stated a second time, for :mod:`.check_plan`.

Nothing is imported that the planner moves files by: where rows may go, whose deletes would miss them and how many files
they may become is said here in another way, as a mistake has to be made twice to reach a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from icewright.core.times import Instant
from icewright.model.actions.actions import Executor, FileGroup
from icewright.model.iceberg.tables import PartitionField, TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.policy.policy import MigrateSpec, Policy
from icewright.plans.check_table import Wrong

_FILES_MADE_MAX: Final = 1_000
_QUIET_MS: Final = 24 * 60 * 60 * 1000
_DAYS: Final = {"date", "timestamp", "timestamptz"}
_HASHED: Final = {"int", "long", "string", "binary", "decimal", *_DAYS}
_SOURCES: Final[Mapping[str, set[str]]] = {
    "identity": {"boolean", *_HASHED},
    "bucket": _HASHED,
    "truncate": {"int", "long", "string", "binary", "decimal"},
    "year": _DAYS,
    "month": _DAYS,
    "day": _DAYS,
    "hour": _DAYS - {"date"},
}


def move_violations(group: FileGroup, observation: Observation, policy: Policy, planned_at: Instant) -> Iterator[Wrong]:
    """All that is wrong with a group whose rows are to move."""
    where, metadata = f"group {group.group_id}", observation.metadata
    if policy.migrate_spec is MigrateSpec.NEVER:
        yield "not-asked", f"{where} is to be moved, and the policy says never"
    if group.executor is not Executor.STAGED:
        yield "wrong-executor", f"{where} is to be moved by {group.executor}"
    if group.output_spec_id != metadata.default_spec_id or group.partition.spec_id == metadata.default_spec_id:
        text = f"{where} is to be moved from spec {group.partition.spec_id} to {group.output_spec_id}"
        yield "wrong-spec", f"{text}, the current one is {metadata.default_spec_id}"
    yield from _files(group, where, policy)
    why = _not_computed(metadata)
    if why is not None:
        yield "not-movable", f"{where} is to be moved, and {why}"
    last_at = _written_under(observation, group.partition.spec_id)
    if last_at is not None and last_at > planned_at - _QUIET_MS:
        yield "too-soon", f"{where} is to be moved, and equality deletes may still come under its spec ({last_at})"


def _files(group: FileGroup, where: str, policy: Policy) -> Iterator[Wrong]:
    size_bytes, made, files = sum(file.size_bytes for file in group.files), group.output_files, len(group.files)
    if files == 0:
        yield "group-too-few", f"{where} has no files"
    if not 1 <= made <= _FILES_MADE_MAX:
        yield "wrong-output-files", f"{where} is to become {made} files, {_FILES_MADE_MAX} at most"
    if policy.migrate_spec is MigrateSpec.TOUCHED and made > 1 and made >= files:
        yield "wrong-output-files", f"{where} is to become {made} files instead of {files}, which no setting asks for"
    if files > policy.max_file_group_files or (files > 1 and size_bytes > policy.target_file_size_bytes * made):
        yield "group-too-large", f"{where} has {files} files of {size_bytes} bytes, to become {made}"


def _not_computed(metadata: TableMetadata) -> str | None:
    """Why the partition of a row cannot be told under the current spec."""
    kinds: dict[int, Any] = {}
    pending = [
        field
        for schema in metadata.schemas
        if schema.schema_id == metadata.current_schema_id
        for field in schema.fields
    ]
    while pending:
        field = pending.pop()
        kinds[field["id"]] = field["type"]
        if not isinstance(field["type"], str):
            pending.extend(field["type"].get("fields", ()))
    wrong = [
        field
        for spec in metadata.specs
        if spec.spec_id == metadata.default_spec_id
        for field in spec.fields
        if not _is_known(field, kinds.get(field.source_id))
    ]
    return f"{wrong[0].transform} of field {wrong[0].source_id} cannot be computed" if wrong else None


def _is_known(field: PartitionField, kind: Any) -> bool:
    name, bracket, width = field.transform.partition("[")
    if bracket != ("[" if name in ("bucket", "truncate") else "") or not isinstance(kind, str):
        return False
    return kind.split("(")[0] in _SOURCES.get(name, set()) and (not bracket or width.rstrip("]").strip("0") != "")


def _written_under(observation: Observation, spec_id: int) -> Instant | None:
    """When somebody may last have written under a spec whose equality deletes reach its own partitions alone."""
    metadata = observation.metadata
    fields = [field for spec in metadata.specs if spec.spec_id == spec_id for field in spec.fields]
    if not {field.transform for field in fields} - {"void"}:
        return None  # they reach everywhere, also where the rows go
    partitions = [one for one in observation.inventory.partitions if one.partition.spec_id == spec_id]
    said = {key: number for snapshot in metadata.snapshots for key, number in snapshot.summary.items() if number != "0"}
    counted = any(one.counts.equality_delete_files for one in partitions)
    if not counted and not any("equality-delete" in key for key in said):
        return None
    lineage = metadata.ancestors()
    oldest_at = lineage[-1].committed_at if lineage else None
    times = [oldest_at if one.written_at is None else one.written_at for one in partitions]
    times += [observation.removals.removed_at.get(one.partition) for one in partitions]
    return max((at for at in (*times, observation.removals.everywhere_at) if at is not None), default=None)
