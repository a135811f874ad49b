"""Which executor carries a group out, and why; or why none can.

Row groups that are large enough for readers are copied as they are, stitched, which is cheapest by far. A merge decodes
and encodes Parquet by field ids in Spark's Python workers. What it cannot keep goes through Spark's own reader and
writer, staged; what that cannot do either, or nobody can prove, is left alone.
Whether the *table* may be touched at all is asked elsewhere (:mod:`icewright.plans.eligibility`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from icewright.core import wording
from icewright.core.errors import InvalidConfiguration, Unsupported
from icewright.core.times import Instant
from icewright.model.actions.actions import Action, Executor, RewriteDataFiles
from icewright.model.iceberg.column_types import (
    all_fields,
    children,
    first_not_kept,
    has_variant,
    merge_keeps,
    spark_keeps,
)
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, FileFormat
from icewright.model.iceberg.tables import ROW_LINEAGE_SINCE, TableMetadata
from icewright.model.iceberg.writer_settings import bloom_filter_property, shredding_property, writer_settings
from icewright.model.plans.observation import WorkerAccess
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.plans.branches import branch_obstacle
from icewright.plans.eligibility import (
    encryption_obstacle,
    format_obstacle,
    hadoop_obstacle,
    identity_obstacle,
    other_optimizer_obstacle,
    policy_obstacle,
    snapshot_obstacle,
)

_NAME_MAPPING = "schema.name-mapping.default"

ROW_GROUP_BYTES_MIN: Final = 4 << 20
"""Row groups of a group of files are copied from this size on, on average. Measured on this release: from 4 MiB a file
of many row groups is read as cheaply as one of a single one; below 2 MiB full scans of two columns cost up to 1.8
times as much, and a file of 0.25 MiB ones 4.6 times."""


SORTED_BYTES_MAX: Final = 32 << 20
"""Groups of at most so many bytes are sorted by one worker. In a shuffle of many, each takes some 3 CPU seconds even
where it has next to no rows (B11), in a worker a tenth of that. A worker holds the decoded rows three times for a
moment: 1.1 GB were measured for 164 MB of Parquet, so these come to some 0.65 GB."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What carries a group out.

    ``reason`` says why it is staged, or shuffled though all of its files are in order; None for the others, which need
    no reason.
    """

    executor: Executor
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class TableExecutors:
    """What is true of all groups of a table: why none can be merged, staged, stitched or merged by key, None if so.

    ``refused`` says why a merge refused files, by path.
    """

    not_merged: Reason | None
    not_staged: Reason | None
    not_stitched: Reason | None
    not_by_key: Reason | None
    refused: Mapping[str, str]


MERGED = Choice(Executor.MERGE)
STITCHED = Choice(Executor.STITCH)
MERGED_BY_KEY = Choice(Executor.MERGE)
"""Files in the order of a layout, merged by it without a shuffle."""
SORTED = Choice(Executor.SORT)
"""Few rows, put in order by one worker that holds them all."""
SHUFFLED = Choice(Executor.SHUFFLE)
"""What puts files in order. It reads and writes as the staged rewrite does: what that cannot keep, it cannot either."""


def table_executors(
    metadata: TableMetadata,
    access: WorkerAccess,
    access_detail: str = "",
    not_stitched: str = "",
    not_sorted: str = "",
    not_merged_files: Mapping[str, str] = MappingProxyType({}),
) -> TableExecutors:
    """What the table allows, whatever its files are. The rest is as in an observation."""
    checks = (
        _type_obstacle(metadata),
        _default_obstacle(metadata),
        _evolution_obstacle(metadata),
        _property_obstacle(metadata),
        _access_obstacle(access, access_detail),
    )
    not_merged = next((reason for reason in checks if reason is not None), None)
    stitching = _stitching_obstacle(metadata, access, access_detail, not_stitched)
    by_key = not_merged
    if by_key is None and not_sorted:
        text = f"files in its order could not be merged by their key: {wording.cut(not_sorted)}"
        by_key = Reason("not-sorted", text)
    unknown = first_not_kept(metadata.schema.fields, spark_keeps)
    if unknown is None:
        return TableExecutors(not_merged, _shredding_obstacle(metadata), stitching, by_key, not_merged_files)
    text = f"Spark cannot keep the type {wording.name(unknown[1])} of column {wording.name(unknown[0])}"
    return TableExecutors(not_merged, Reason("unsupported-type", text), stitching, by_key, not_merged_files)


def neither(table: TableExecutors) -> Reason | None:
    """Why nothing can carry out anything on the table, or None."""
    if table.not_merged is None or table.not_staged is None:
        return None
    return Reason(table.not_merged.code, f"{table.not_merged.text}, and {table.not_staged.text}")


def executor_obstacle(action: RewriteDataFiles, metadata: TableMetadata) -> Reason | None:
    """Why the executors that an action was planned with cannot carry it out on the table as it is now, or None."""
    table = table_executors(metadata, WorkerAccess.PROVED)
    reasons = {
        Executor.MERGE: table.not_merged,
        Executor.SORT: table.not_merged,  # the same readers and writers
        Executor.STAGED: table.not_staged,
        Executor.STITCH: table.not_stitched,
        Executor.SHUFFLE: table.not_staged,  # the same reader and writer
    }
    found = (reasons[group.executor] for group in action.groups)
    return next((reason for reason in found if reason is not None), None)


def choose_executor(
    table: TableExecutors, files: Sequence[DataFile], deletes: Sequence[DeleteFile], policy: Policy
) -> Choice | Reason:
    """The executor of one group of ``files`` with their ``deletes``, or why there is none."""
    if table.not_stitched is None and not deletes and _are_large_row_groups(files):
        return STITCHED
    not_merged = table.not_merged or _group_obstacle(table, files, deletes, policy)
    if not_merged is None:
        return MERGED
    if table.not_staged is None:
        return Choice(Executor.STAGED, not_merged)
    return Reason(not_merged.code, f"{not_merged.text}, and {table.not_staged.text}")


def choose_for_order(
    table: TableExecutors,
    files: Sequence[DataFile],
    deletes: Sequence[DeleteFile],
    policy: Policy,
    *,
    by_columns: bool,
    in_order: bool,
) -> Choice | Reason:
    """What puts one group of ``files`` in order, or why nothing can.

    ``by_columns`` says that a merge can compare rows by the layout, ``in_order`` that all files are in order besides,
    and few enough to be merged.
    """
    not_by_key = table.not_by_key or _group_obstacle(table, files, deletes, policy)
    if in_order and not_by_key is None:
        return MERGED_BY_KEY
    if by_columns and not_by_key is None and _are_few(files, policy):
        return SORTED
    if table.not_staged is not None:
        return table.not_staged
    return Choice(Executor.SHUFFLE, not_by_key) if in_order else SHUFFLED


def _are_few(files: Sequence[DataFile], policy: Policy) -> bool:
    size_bytes = sum(file.size_bytes for file in files)
    return size_bytes <= SORTED_BYTES_MAX and len(files) <= policy.max_file_group_files


def _group_obstacle(
    table: TableExecutors, files: Sequence[DataFile], deletes: Sequence[DeleteFile], policy: Policy
) -> Reason | None:
    refused = next((table.refused[file.path] for file in files if file.path in table.refused), None)
    if refused is not None:
        return Reason("not-merged", f"a merge refused a file of it: {wording.cut(refused)}")
    others = sorted({file.file_format.value for file in files if file.file_format is not FileFormat.PARQUET})
    if others:
        return Reason("not-parquet", f"it has files of format {', '.join(others)}, and a merge can only do Parquet")
    if any(delete.content is FileContent.EQUALITY_DELETES for delete in deletes):
        return Reason("equality-deletes", "equality deletes apply to it, which a merge cannot do")
    if any(delete.file_format not in (FileFormat.PARQUET, FileFormat.PUFFIN) for delete in deletes):
        return Reason("not-parquet", "it has position deletes that are not Parquet, which a merge cannot read")
    size_bytes = sum(file.size_bytes for file in files)
    if size_bytes > policy.max_file_group_size_bytes:
        limit = wording.size(policy.max_file_group_size_bytes)
        return Reason("file-too-large", f"its {wording.size(size_bytes)} are more than a merge may hold ({limit})")
    return None


def row_group_bytes(files: Sequence[DataFile]) -> int | None:
    """How large the row groups of files are on average; None where a writer did not say how many there are."""
    counts = [file.row_groups for file in files if file.row_groups]
    return sum(file.size_bytes for file in files) // sum(counts) if counts and len(counts) == len(files) else None


def _are_large_row_groups(files: Sequence[DataFile]) -> bool:
    size_bytes = row_group_bytes(files)
    parquet = all(file.file_format is FileFormat.PARQUET for file in files)
    return parquet and size_bytes is not None and size_bytes >= ROW_GROUP_BYTES_MIN


def _stitching_obstacle(
    metadata: TableMetadata, access: WorkerAccess, access_detail: str, not_stitched: str
) -> Reason | None:
    if metadata.format_version >= ROW_LINEAGE_SINCE:
        # A row without an id of its own has its file's first one plus its position.
        return Reason("row-lineage", "its rows have ids that would change with their place in a file")
    if not_stitched:
        return Reason("not-stitchable", f"its row groups could not be copied: {wording.cut(not_stitched)}")
    file_format = metadata.properties.get("write.format.default", "parquet").lower()
    if file_format != "parquet":
        return Reason("writer-property", f"its owner wants {wording.cut(file_format)} files")
    return _type_obstacle(metadata) or _access_obstacle(access, access_detail)


def _type_obstacle(metadata: TableMetadata) -> Reason | None:
    found = first_not_kept(metadata.schema.fields, merge_keeps)
    if found is None:
        return None
    path, kind = found
    return Reason(
        "unsupported-type", f"a merge cannot keep the type {wording.name(kind)} of column {wording.name(path)}"
    )


def _default_obstacle(metadata: TableMetadata) -> Reason | None:
    for path, field in all_fields(metadata.schema.fields):
        if field.get("initial-default") is not None:
            text = f"a merge cannot keep the initial default of column {wording.name(path)}"
            return Reason("column-default", text)
    return None


def _evolution_obstacle(metadata: TableMetadata) -> Reason | None:
    shapes = {field["id"]: _shape(field["type"]) for field in metadata.schema.fields}
    for schema in metadata.schemas:
        for field in schema.fields:
            if shapes.get(field["id"], "dropped") not in ("dropped", "plain", _shape(field["type"])):
                return Reason(
                    "nested-evolution",
                    f"the nested column {wording.name(field['name'])} was of another shape in schema "
                    f"{schema.schema_id}, and a merge cannot bring such files together",
                )
    return None


def _property_obstacle(metadata: TableMetadata) -> Reason | None:
    if _NAME_MAPPING in metadata.properties:
        return Reason(
            "name-mapping",
            f"{_NAME_MAPPING} is set: some of its files may have no field ids, and a merge needs them",
        )
    bloom_filter = bloom_filter_property(metadata.properties)
    if bloom_filter is not None:
        text = f"{wording.name(bloom_filter)} asks for a bloom filter, which a merge would drop"
        return Reason("bloom-filters", text)
    try:
        writer_settings(metadata.properties)
    except Unsupported as error:
        return Reason("writer-property", f"a merge cannot write as a property asks for: {wording.cut(error.message)}")
    except InvalidConfiguration:
        return None  # an obstacle for the whole table, whoever writes
    return None


def _shredding_obstacle(metadata: TableMetadata) -> Reason | None:
    asking = shredding_property(metadata.properties)
    if asking is None or not has_variant(metadata.schema.fields):
        return None
    text = f"{wording.name(asking)} asks for shredded variants, which Spark's rewrites do not write"
    return Reason("writer-property", text)


def _access_obstacle(access: WorkerAccess, detail: str) -> Reason | None:
    if access is not WorkerAccess.REFUSED:
        return None
    text = "the optimizers' Python workers cannot read and write where it keeps its files, which a merge needs"
    text += f": {wording.cut(detail)}" if detail else ""
    return Reason("worker-access", text)


def _shape(kind: Any) -> object:
    """What must not have changed for files to be brought together: ids, names and types inside a nested type.

    ``plain`` for primitive types, whose promotions merging can do.
    """
    if isinstance(kind, str):
        return "plain"
    return tuple(
        (f["id"], f["name"], f["type"] if isinstance(f["type"], str) else _shape(f["type"])) for f in children(kind)
    )


def rewrite_obstacle(_action: Action, metadata: TableMetadata, policy: Policy, now: Instant) -> Reason | None:
    """Of an action that writes rows again."""
    return table_obstacle(metadata, policy) or branch_obstacle(metadata, policy, now)


def table_obstacle(
    metadata: TableMetadata, policy: Policy, access: WorkerAccess = WorkerAccess.PROVED
) -> Reason | None:
    """Why no rows of this table can be rewritten whatever its files are, or None.

    ``access`` as in an observation; a task is not asked about it, which was planned when it was known.
    """
    checks = (
        identity_obstacle(metadata),
        hadoop_obstacle(metadata),
        policy_obstacle(policy),
        snapshot_obstacle(metadata),
        format_obstacle(metadata),
        _schema_obstacle(metadata, access),
        encryption_obstacle(metadata),
        _writer_obstacle(metadata),
        None if policy.ignore_other_optimizers else other_optimizer_obstacle(metadata),
    )
    return next((reason for reason in checks if reason is not None), None)


def _schema_obstacle(metadata: TableMetadata, access: WorkerAccess) -> Reason | None:
    if all(schema.schema_id != metadata.current_schema_id for schema in metadata.schemas):
        return Reason("schema-missing", f"the metadata does not have its current schema {metadata.current_schema_id}")
    return neither(table_executors(metadata, access))


def _writer_obstacle(metadata: TableMetadata) -> Reason | None:
    try:
        writer_settings(metadata.properties)
    except Unsupported:
        return None  # what a merge cannot write, Spark's own writer may
    except InvalidConfiguration as error:
        return Reason("writer-property", f"a property of the writer cannot be used: {wording.cut(error.message)}")
    return None
