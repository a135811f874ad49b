"""What is checked of every group that Spark reads and writes, however its rows are arranged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icewright.core.errors import Unsupported
from icewright.model.actions.actions import FileGroup
from icewright.model.iceberg.column_types import has_variant
from icewright.model.iceberg.files import FileContent, FileFormat
from icewright.model.iceberg.writer_settings import encryption_property, shredding_property
from icewright.model.work.jobs import GroupFigures, Receipt
from icewright_spark.executors.staged.metrics import with_careful_metrics
from icewright_spark.iceberg.commits.commit import Rewritten
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.parquet.rows_hash import RowsHash


@dataclass(frozen=True, slots=True)
class StagedResult:
    """A rewritten group: what proves it, what it cost, and the files to commit."""

    receipt: Receipt
    figures: GroupFigures
    outputs: tuple[Rewritten, ...]


def refuse_what_would_be_lost(table: SparkTable) -> None:
    """The planner does not plan such; the job does not rely on it. Raises :class:`Unsupported`."""
    properties = table.properties
    encryption, shredding = encryption_property(properties), shredding_property(properties)
    if encryption is not None:
        raise Unsupported(f"the table is encrypted ({encryption} is set)")
    if shredding is not None and has_variant(table.schema_fields()):
        raise Unsupported(f"{shredding} asks for shredded variants, which Spark's rewrites do not write")


def check_rows_of_files(group: FileGroup, by_file: Mapping[str, int]) -> None:
    """Every file gave its rows, but for those that its deletes can have removed. Raises :class:`ProofFailed`.

    ``by_file`` has the rows that were read, by path. A deletion vector removes as many rows as it counts; position
    deletes at most that many, since they may name a row twice; equality deletes any number.
    """
    unknown = by_file.keys() - {file.path for file in group.files}
    if unknown:
        raise ProofFailed(f"rows were read from files that are not in the group: {', '.join(sorted(unknown))}")
    for file in group.files:
        rows, deletes = by_file.get(file.path, 0), [group.delete_files[position] for position in file.deletes]
        removed = sum(delete.record_count for delete in deletes)
        most = file.record_count
        least = most - removed
        if any(delete.content is FileContent.EQUALITY_DELETES for delete in deletes):
            least = 0
        elif deletes and all(delete.file_format is FileFormat.PUFFIN for delete in deletes):
            most = least
        if not max(0, least) <= rows <= most:
            raise ProofFailed(
                f"{rows} rows were read from {file.path}, which has {file.record_count}, and {len(deletes)} delete "
                f"files with {removed} entries apply to it"
            )


def checked_file(table: SparkTable, group: FileGroup, file: Any) -> Any:
    """Java's ``DataFile`` of a new file of the group, in no order that was proved, with metrics that lose no rows.

    Raises :class:`ProofFailed`.
    """
    size_bytes = int(table.java.io().newInputFile(file.location()).getLength())
    if size_bytes != file.fileSizeInBytes():
        raise ProofFailed(f"{file.location()} has {size_bytes} bytes, and was written with {file.fileSizeInBytes()}")
    if group.output_spec_id is None and not table.is_in_partition(file, group.partition):
        raise ProofFailed(f"{file.location()} was not written to partition {group.partition_path or '(all)'}")
    return table.unsorted(with_careful_metrics(table, file))


def check_same_rows(
    group: FileGroup, files: Sequence[Any], before: Mapping[str, RowsHash], after: Mapping[str, RowsHash], method: str
) -> Receipt:
    """The new ``files`` of a group hold the rows of its inputs, proved by a ``method``.

    ``before`` and ``after`` are the hashes of the rows of each file that has any, by path. Raises
    :class:`ProofFailed`.
    """
    check_rows_of_files(group, {path: found.rows for path, found in before.items()})
    written = {str(file.location()): int(file.recordCount()) for file in files}
    for path in written.keys() | after.keys():
        found = after.get(path, RowsHash()).rows
        if written.get(path) != found:
            raise ProofFailed(f"{path} is said to have {written.get(path)} rows, {found} were read")
    rows_in, rows_out = sum(before.values(), RowsHash()), sum(after.values(), RowsHash())
    if rows_in != rows_out:
        raise ProofFailed(
            f"group {group.group_id}: the rows of {', '.join(sorted(written))} are not those of its inputs; "
            f"rows {rows_in.rows} -> {rows_out.rows}; {rows_in.text} -> {rows_out.text}",
            hint="nothing was committed; keep the files, they are the evidence",
        )
    return Receipt(
        group_id=group.group_id,
        method=method,
        input_digest=rows_in.text,
        output_digest=rows_out.text,
        records=rows_out.rows,
        deleted_records=group.record_count - rows_in.rows,
    )
