"""Many Parquet files of one partition in, one out, rows in the order of the group's files, with a proof.

The rows are digested on their way to the writer and again as the other library reads them back from the file;
unequal digests mean no commit. Since neither digest would see a wrong decode of the inputs, a sample of
them is decoded by the other library too, with the rows that delete files remove taken out a second time.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import xxhash

from icewright.domain.actions import FileGroup, InputFile
from icewright.domain.errors import InvalidMessage
from icewright.domain.faults import Fault, fault
from icewright.domain.jobs import GroupFigures, Receipt
from icewright.domain.tables import Json
from icewright.domain.writer_settings import WriterSettings
from icewright_spark.merge import second_opinion
from icewright_spark.merge.deletes import Positions, deleted_positions, without
from icewright_spark.merge.dictionary import dictionary_ids
from icewright_spark.merge.digest import Digest, RowsDigest
from icewright_spark.merge.errors import FileUnreadable, ProofFailed, UnsupportedColumn, UnsupportedFile
from icewright_spark.merge.lineage import LAST_UPDATED, inherited, with_lineage
from icewright_spark.merge.metrics import ColumnMetrics, MetricsOfRows, metrics_mode
from icewright_spark.merge.read import RowsOfTable, decode_arrow_rs, decode_pyarrow, joined, open_footer
from icewright_spark.merge.schema import arrow_schema, leaf_ids, leaves, shape
from icewright_spark.merge.storage import LOCAL, Storage, same_file
from icewright_spark.merge.write import Layout, Writer, choose_writer, dictionary_paths, write_new_file

FILES_PER_SAMPLE = 16
"""One input in so many, and one at least, is decoded by both libraries."""


@dataclass(frozen=True, slots=True)
class MergeJob:
    """One group to be merged into ``output_path`` (a location as Iceberg has it; must not exist).

    ``schema_fields`` is the JSON of the table's current schema, ``metrics_modes`` (``none``, ``counts``, ``full``,
    ``truncate(n)``) go by field id of the leaf and are ``truncate(16)`` where none is given.
    ``identity_source_ids`` are the source ids of the identity transforms of the group's partition spec; None, not
    known, refuses files of a partitioned table that lack a column. ``row_lineage`` is whether the table's rows have
    ids (format version 3): then they are written, and are part of the proof. ``storage`` is how all these files are
    reached.
    """

    group: FileGroup
    schema_fields: tuple[Json, ...]
    output_path: str
    settings: WriterSettings = field(default_factory=WriterSettings)
    metrics_modes: Mapping[int, str] = field(default_factory=dict)
    identity_source_ids: frozenset[int] | None = None
    row_lineage: bool = False
    storage: Storage = LOCAL

    @property
    def file_fields(self) -> tuple[Json, ...]:
        """The columns of the output. Raises :class:`UnsupportedColumn` when a name is taken by row lineage."""
        return with_lineage(self.schema_fields) if self.row_lineage else self.schema_fields


@dataclass(frozen=True, slots=True)
class OutputFile:
    """The file written, with all that Iceberg's ``DataFile`` says of it; mappings are by field id.

    Bounds are in Iceberg's single-value binary serialization.
    """

    path: str
    size_bytes: int
    record_count: int
    split_offsets: tuple[int, ...]
    column_sizes: dict[int, int]
    value_counts: dict[int, int]
    null_counts: dict[int, int]
    nan_counts: dict[int, int]
    lower_bounds: dict[int, bytes]
    upper_bounds: dict[int, bytes]


@dataclass(frozen=True, slots=True)
class MergeResult:
    """A merged group: what proves it, what it cost, and the file to commit."""

    receipt: Receipt
    figures: GroupFigures
    output: OutputFile


def merge_group(job: MergeJob, *, writer: Writer | None = None) -> MergeResult:
    """Merges a group. ``writer`` is chosen by the schema unless given.

    Raises :class:`ProofFailed` when rows written are not the rows read, or not those that the plan promised;
    :class:`UnsupportedFile`, :class:`UnsupportedColumn`, :class:`UnsupportedLocation` for what cannot be merged;
    :class:`FileUnreadable`, :class:`OutputExists`, :class:`OutputUnwritable`, :class:`StorageRefused` and
    :class:`StorageAway`; :class:`InvalidMessage` for a group that is none. In every case all files stay where they
    are, a partial output too.
    """
    started_ns, started_cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    _check_group(job.group)
    with _frugal_memory():
        merge = _Merge(job, writer)
        encoded_bytes = merge.inspect()
        digest, metrics = merge.write(encoded_bytes)
        fault(Fault.WORKER_WRITTEN)
        merge.check_samples()
        read_back = merge.read_back(digest)
        output = _output_file(job, digest.rows, metrics)
    receipt = Receipt(
        group_id=job.group.group_id,
        method=f"ordered xxh3-128, written by {merge.writer.name}, read back by the other library",
        input_digest=digest.text,
        output_digest=read_back.text,
        records=digest.rows,
        deleted_records=merge.deleted_records,
    )
    figures = GroupFigures(
        group_id=job.group.group_id,
        input_files=len(job.group.files),
        input_bytes=job.group.size_bytes,
        output_paths=(job.output_path,),
        output_bytes=output.size_bytes,
        records=digest.rows,
        cpu_ms=(time.process_time_ns() - started_cpu_ns) // 1_000_000,
        wall_ms=(time.perf_counter_ns() - started_ns) // 1_000_000,
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )
    return MergeResult(receipt, figures, output)


def sampled(files: Sequence[InputFile]) -> frozenset[str]:
    """Paths of the inputs that both libraries decode: the same for the same files, spread as by chance.

    Where delete files apply to any, one of those is among them.
    """
    count = -(-len(files) // FILES_PER_SAMPLE)
    ranked = sorted(files, key=lambda file: (xxhash.xxh3_64_intdigest(file.path.encode()), file.path))
    with_deletes = [file for file in ranked if file.deletes]
    return frozenset(file.path for file in [*ranked[:count], *with_deletes[:1]])


class _Merge:
    """The steps of one merge over its common facts."""

    def __init__(self, job: MergeJob, writer: Writer | None) -> None:
        self._job = job
        unpartitioned = job.group.partition.values == "[]"
        identity_ids = frozenset[int]() if unpartitioned else job.identity_source_ids
        self._fields = job.file_fields
        self._rows = RowsOfTable(self._fields, identity_ids, job.storage)
        self._schema = self._rows.schema
        self._leaves = leaves(self._fields)
        self.writer = writer or choose_writer(self._leaves, job.metrics_modes)
        self._sampled = sampled(job.group.files)
        self._sample_digests: dict[str, Digest] = {}
        self._deleted: Mapping[str, Positions] = {}
        self.deleted_records = 0

    def inspect(self) -> int:
        """Refuses what can be refused before there is an output; gives the bytes of all the inputs' columns."""
        encoded_bytes = sum(self._rows.inspect(file) for file in self._job.group.files)
        self._deleted = deleted_positions(self._job.group, self._job.storage)
        self.deleted_records = sum(len(positions) for positions in self._deleted.values())
        return encoded_bytes

    def write(self, encoded_bytes: int) -> tuple[Digest, ColumnMetrics]:
        """Writes the output; gives digest and metrics of the rows handed to the writer.

        The writers count the rows of a row group, not its bytes; rows are taken to be as long as in the inputs.
        """
        group = self._job.group
        locations = [file.path for file in group.files]
        identities = dictionary_ids(locations, self._job.storage) | {LAST_UPDATED}
        layout = Layout(
            schema=self._schema,
            settings=self._job.settings,
            dictionary=dictionary_paths(self._leaves, identities),
            row_group_rows=max(
                1, self._job.settings.row_group_size_bytes * group.record_count // max(1, encoded_bytes)
            ),
        )
        digest = RowsDigest(self._schema)
        metrics = MetricsOfRows(self._fields, self._job.metrics_modes)
        rows = self._measured(digest, metrics)
        write_new_file(self._job.storage, self._job.output_path, rows, self.writer, layout)
        result = digest.result()
        if result.rows + self.deleted_records != group.record_count:
            deleted = f" and {self.deleted_records} deleted" if self.deleted_records else ""
            raise ProofFailed(f"group {group.group_id}: {result.rows} rows read{deleted}, {group.record_count} planned")
        return result, metrics.result()

    def check_samples(self) -> None:
        """The other library must decode the sampled inputs to the same rows. Raises :class:`ProofFailed`."""
        for file in self._job.group.files:
            if file.path in self._sampled:
                digest = RowsDigest(self._schema)
                batches = partial(self._rows.checked_batches, file, decode_arrow_rs)
                rows = second_opinion.live_rows(
                    self._job.group, file, batches, self._job.storage, row_lineage=self._job.row_lineage
                )
                for batch in rows:
                    digest.update(batch)
                self._compare(f"{file.path} decoded by arrow-rs", self._sample_digests[file.path], digest.result())

    def read_back(self, expected: Digest) -> Digest:
        """Reads the output with the other library. Raises :class:`ProofFailed` when it is not what was written."""
        digest = RowsDigest(self._schema)
        location = self._job.output_path
        try:
            for batch in self._rows.batches(location, self.writer.read_back):
                digest.update(batch)
        except (FileUnreadable, UnsupportedFile, UnsupportedColumn) as error:
            raise ProofFailed(f"{location} as written cannot be read back: {error}") from error
        self._compare(f"{location} read back", expected, digest.result())
        return digest.result()

    def _measured(self, digest: RowsDigest, metrics: MetricsOfRows) -> Iterator[pa.RecordBatch]:
        """All rows of the group, in order, digested and measured on their way."""
        for batch in joined(self._all_rows()):
            digest.update(batch)
            metrics.update(batch)
            yield batch

    def _all_rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the group, file after file; sampled files are digested by themselves."""
        for file in self._job.group.files:
            own = RowsDigest(self._schema) if file.path in self._sampled else None
            for batch in self._live_rows(file):
                if own is not None:
                    own.update(batch)
                yield batch
            if own is not None:
                self._sample_digests[file.path] = own.result()

    def _live_rows(self, file: InputFile) -> Iterator[pa.RecordBatch]:
        """The rows of a file that are not deleted, with their lineage where the table has one."""
        deleted = self._deleted.get(file.path)
        read = live = 0
        for batch in self._rows.checked_batches(file, decode_pyarrow):
            rows = without(inherited(batch, read, file) if self._job.row_lineage else batch, read, deleted)
            read, live = read + batch.num_rows, live + rows.num_rows
            yield rows
        if live + len(deleted or ()) != file.record_count:
            raise ProofFailed(f"{file.path}: {live} rows of {file.record_count} left, {len(deleted or ())} deleted")

    def _compare(self, what: str, expected: Digest, found: Digest) -> None:
        if expected == found:
            return
        columns = zip(self._schema.names, expected.columns, found.columns, strict=True)
        differing = [f"{name}: {old} -> {new}" for name, old, new in columns if old != new]
        raise ProofFailed(
            f"group {self._job.group.group_id}: {what} differs; rows {expected.rows} -> {found.rows}; "
            f"columns {'; '.join(differing) or 'equal'}",
            hint="nothing was committed; keep the files, they are the evidence",
        )


def _check_group(group: FileGroup) -> None:
    if not group.files:
        raise InvalidMessage(f"group {group.group_id} has no files")
    if len({same_file(file.path) for file in group.files}) != len(group.files):
        raise InvalidMessage(f"group {group.group_id} names a file twice")


def _output_file(job: MergeJob, rows: int, metrics: ColumnMetrics) -> OutputFile:
    file = open_footer(job.output_path, job.storage)
    if shape(file.schema_arrow) != shape(arrow_schema(job.file_fields)):
        raise ProofFailed(f"{job.output_path} was not written with the table's schema: {file.schema_arrow}")
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    sizes: dict[int, int] = {}
    for position, identity in enumerate(leaf_ids(file.schema_arrow)):
        if identity is not None and metrics_mode(job.metrics_modes.get(identity, "full")).counts:
            sizes[identity] = sum(group.column(position).total_compressed_size for group in groups)
    return OutputFile(
        path=job.output_path,
        size_bytes=job.storage.size(job.output_path),
        record_count=rows,
        split_offsets=tuple(_first_byte(group.column(0)) for group in groups),
        column_sizes=sizes,
        value_counts=metrics.value_counts,
        null_counts=metrics.null_counts,
        nan_counts=metrics.nan_counts,
        lower_bounds=metrics.lower_bounds,
        upper_bounds=metrics.upper_bounds,
    )


def _first_byte(chunk: Any) -> int:
    offsets: tuple[int | None, int] = (chunk.dictionary_page_offset, chunk.data_page_offset)
    return min(offset for offset in offsets if offset)


@contextmanager
def _frugal_memory() -> Iterator[None]:
    """Arrow's allocator for the time of a merge: jemalloc, or else the system's.

    The kernel was measured with jemalloc. With mimalloc, pyarrow's default, CPU time varied with a worker's history;
    the memory of the two was not compared with all else equal.
    """
    before = pa.default_memory_pool()
    jemalloc = "jemalloc" in pa.supported_memory_backends()
    pa.set_memory_pool(pa.jemalloc_memory_pool() if jemalloc else pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
