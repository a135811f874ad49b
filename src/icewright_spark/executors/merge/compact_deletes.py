"""Several files of position deletes written as one, and the proof that they delete the same rows.

Two hands: the file is made by Parquet C++ from columns (filtered, made distinct, sorted). The proof reads inputs and
output with arrow-rs, row by row, and compares for every data file the set of positions that are deleted from it.
"""

from __future__ import annotations

import hashlib
import resource
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from icewright.model.actions.rewrite_delete_files import DeleteGroup, Target
from icewright.model.iceberg.files import DeleteFile
from icewright.model.iceberg.writer_settings import WriterSettings
from icewright_spark.executors.merge.deletes import FILE_PATH_ID, POSITION_ID, column_names
from icewright_spark.executors.merge.output import output_is_written
from icewright_spark.executors.merge.read import decode_arrow_rs, expect_size, open_footer
from icewright_spark.executors.merge.write import PYARROW, Layout
from icewright_spark.parquet.errors import FileChanged, FileUnreadable, ProofFailed, UnsupportedFile, reading
from icewright_spark.parquet.storage import Storage

_BATCH_ROWS: Final = 65_536
_ROW_GROUP_ROWS: Final = 1_000_000
_PATH, _POSITION = "file_path", "pos"
_COLUMNS: Final = ((_PATH, pa.string(), FILE_PATH_ID), (_POSITION, pa.int64(), POSITION_ID))

SCHEMA: Final = pa.schema(
    [
        pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(field_id)})
        for name, kind, field_id in _COLUMNS
    ]
)
"""The columns of position delete files (spec, "Position Delete Files")."""

_PLACES: Final = pa.schema([pa.field(_PATH, pa.int32()), pa.field(_POSITION, pa.int64())])

Deleted = Mapping[str, BitMap64]
"""The positions that are deleted from each data file, by its path; none without any."""


@dataclass(frozen=True, slots=True)
class CompactJob:
    """A group, with where its new file goes and how its storage is reached. Travels to a worker."""

    group: DeleteGroup
    output_path: str
    storage: Storage


@dataclass(frozen=True, slots=True)
class Compacted:
    """What became of a group: its new file, empty where there is none, its positions, and the digests of both sides."""

    group_id: int
    output_path: str
    size_bytes: int
    records: int
    input_digest: str
    output_digest: str
    cpu_ms: int
    proof_cpu_ms: int
    peak_memory_bytes: int


def compact(job: CompactJob) -> Compacted:
    """Write the group's new file, and prove it.

    Raises :class:`ProofFailed` where it would not delete the same rows, :class:`UnsupportedFile` for delete files with
    more than paths and positions, and what reading and writing raise. What was written stays, whatever happens.
    """
    started_ns = time.thread_time_ns()
    table = kept_positions(job)
    if table.num_rows:
        layout = Layout(SCHEMA, WriterSettings(), ((_PATH,),), _ROW_GROUP_ROWS)
        with job.storage.create(job.output_path) as file:
            PYARROW.write(rows_of(job, table), file, layout)
        output_is_written()
    written_ns = time.thread_time_ns()
    before = deleted_before(job)
    after = deleted_after(job) if table.num_rows else {}
    check_same(job.group, before, after)
    ended_ns = time.thread_time_ns()
    return Compacted(
        group_id=job.group.group_id,
        output_path=job.output_path if table.num_rows else "",
        size_bytes=job.storage.size(job.output_path) if table.num_rows else 0,
        records=table.num_rows,
        input_digest=digest(before),
        output_digest=digest(after),
        cpu_ms=(ended_ns - started_ns) // 1_000_000,
        proof_cpu_ms=(ended_ns - written_ns) // 1_000_000,
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def kept_positions(job: CompactJob) -> Any:
    """The rows of the new file as an Arrow table: the place of a target among all, and a position; distinct, in order.

    Twelve bytes for each row, where a path takes a hundred.
    """
    targets = in_order(job.group)
    parts = [part for delete in job.group.deletes for part in _kept_of(job, delete, targets)]
    table = pa.Table.from_batches(parts, _PLACES)
    distinct = table.group_by([_PATH, _POSITION], use_threads=False).aggregate([])
    return distinct.sort_by([(_PATH, "ascending"), (_POSITION, "ascending")]).select([_PATH, _POSITION])


def rows_of(job: CompactJob, kept: Any) -> Iterator[Any]:
    """The rows of :func:`kept_positions` with their paths, in batches."""
    paths = pa.array([target.path for target in in_order(job.group)], pa.string())
    for batch in kept.to_batches(max_chunksize=_BATCH_ROWS):
        yield pa.RecordBatch.from_arrays([paths.take(batch.column(0)), batch.column(1)], schema=SCHEMA)


def in_order(group: DeleteGroup) -> list[Target]:
    """The targets in the order of their paths, as Parquet compares these: by bytes."""
    return sorted(group.targets, key=lambda target: target.path.encode())


def _kept_of(job: CompactJob, delete: DeleteFile, targets: Sequence[Target]) -> Iterator[Any]:
    """What of one delete file is kept: positions of targets that are not younger than it."""
    names = check_delete_file(delete, job.storage)
    paths = pa.array([target.path for target in targets], pa.string())
    reached = pa.array([t.data_sequence_number <= delete.data_sequence_number for t in targets], pa.bool_())
    with reading(delete.path):
        file = pq.ParquetFile(
            job.storage.source(delete.path), memory_map=False, pre_buffer=False, page_checksum_verification=True
        )
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(names), use_threads=False):
            path, position = batch.column(names[0]).cast(pa.string()), batch.column(names[1]).cast(pa.int64())
            if path.null_count or position.null_count:
                raise FileUnreadable(f"{delete.path}: a position delete without path or position")
            if job.group.data_file is not None and not pc.all(pc.equal(path, job.group.data_file)).as_py():
                raise UnsupportedFile(
                    f"{delete.path} is said to be for {job.group.data_file}, and is for others as well"
                )
            places = pc.index_in(path, paths)
            wanted = pc.fill_null(reached.take(places), fill_value=False)
            yield pa.RecordBatch.from_arrays([places, position], schema=_PLACES).filter(wanted)


def check_delete_file(delete: DeleteFile, storage: Storage) -> tuple[str, str]:
    """The names of its two columns. Raises :class:`UnsupportedFile`, and :class:`FileChanged` for another file."""
    expect_size(delete.path, delete.size_bytes, storage)
    footer = open_footer(delete.path, storage)
    if footer.metadata.num_rows != delete.record_count:
        raise FileChanged(f"{delete.path} has {footer.metadata.num_rows} rows, its manifest says {delete.record_count}")
    names = column_names(delete.path, footer.schema_arrow)
    if len(footer.schema_arrow) > len(names):
        raise UnsupportedFile(f"{delete.path} has deleted rows in addition to their positions, which would be lost")
    return names


def deleted_before(job: CompactJob) -> Deleted:
    """What the group's delete files delete from each target, by the other library and by other code."""
    numbers = {target.path: target.data_sequence_number for target in job.group.targets}
    found: dict[str, BitMap64] = {}
    for delete in job.group.deletes:
        for path, position in positions_in(delete.path, job.storage):
            if path in numbers and numbers[path] <= delete.data_sequence_number:
                found.setdefault(path, BitMap64()).add(position)
    return found


def deleted_after(job: CompactJob) -> Deleted:
    """What the new file deletes. Raises :class:`ProofFailed` where its rows are not in order, or not distinct."""
    found: dict[str, BitMap64] = {}
    last: tuple[bytes, int] = (b"", -1)
    for path, position in positions_in(job.output_path, job.storage):
        if (path.encode(), position) <= last:
            raise ProofFailed(f"{job.output_path} is not in the order of paths and positions")
        last = path.encode(), position
        found.setdefault(path, BitMap64()).add(position)
    return found


def check_same(group: DeleteGroup, before: Deleted, after: Deleted) -> None:
    """From every data file the same positions are deleted, and all of them are there. Raises :class:`ProofFailed`."""
    rows = {target.path: target.record_count for target in group.targets}
    for path in sorted(before.keys() | after.keys()):
        was, now = before.get(path, BitMap64()), after.get(path, BitMap64())
        if was != now:
            raise ProofFailed(
                f"{len(was)} rows of {path} were deleted, and {len(now)} would be: {len(was ^ now)} differ"
            )
        if was.max() >= rows[path]:
            raise ProofFailed(f"row {was.max()} of {path} is deleted, which has {rows[path]} rows")


def positions_in(location: str, storage: Storage) -> Iterator[tuple[str, int]]:
    """Paths and positions of a delete file as they stand there, by arrow-rs."""
    with reading(location):
        schema, batches = decode_arrow_rs(storage.source(location), _BATCH_ROWS)
        names = column_names(location, schema)
        for batch in batches:
            columns: Iterable[list[Any]] = (batch.column(name).to_pylist() for name in names)
            for path, position in zip(*columns, strict=True):
                if path is None or position is None or position < 0:
                    raise FileUnreadable(f"{location}: a position delete of {path!r} at {position}")
                yield path, position


def digest(deleted: Deleted) -> str:
    """SHA-256 of what is deleted from which data file."""
    found = hashlib.sha256()
    for path, positions in sorted(deleted.items()):
        found.update(hashlib.sha256(path.encode("utf-8", "surrogatepass")).digest())
        found.update(hashlib.sha256(positions.serialize()).digest())
    return found.hexdigest()
