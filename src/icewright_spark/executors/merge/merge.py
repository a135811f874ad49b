"""Many Parquet files of one partition in, one or a few out, with a proof.

Rows stay in the order of the group's files, or, where all of these are sorted by a layout, are merged by its key. What
is taken over the rows on their way in is taken again as the other library reads them back from the files that were
written: a digest of all rows in order, or else a hash of the multiset of rows, and the order is looked at besides.
Unequal ones mean no commit. Since neither would see a wrong decode of the inputs, a sample of them is decoded by the
other library too, with the rows that delete files remove taken out a second time.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final, cast

import pyarrow as pa
import xxhash

from icewright.core.errors import InvalidMessage, NotSorted
from icewright.model.actions.actions import Executor, FileGroup, InputFile
from icewright.model.iceberg.layouts import Layout as RowOrder
from icewright.model.iceberg.tables import Json
from icewright.model.iceberg.writer_settings import WriterSettings
from icewright.model.work.jobs import GroupFigures, Receipt
from icewright_spark.executors.merge import independent_reader
from icewright_spark.executors.merge.by_key import Key, SortedFile, SortedRows, merged, sorted_at_once
from icewright_spark.executors.merge.deletes import Positions, deleted_positions, without
from icewright_spark.executors.merge.dictionary import dictionary_ids
from icewright_spark.executors.merge.digest import Digest, RowsDigest
from icewright_spark.executors.merge.output import OutputFile, Stream, Written, output_file, output_is_written
from icewright_spark.executors.merge.proof import Proof, Proving, RowsMultiset, difference
from icewright_spark.executors.merge.read import (
    BATCH_BYTES,
    RowsOfTable,
    decode_arrow_rs,
    decode_pyarrow,
    first_row_of,
    joined,
)
from icewright_spark.executors.merge.write import Layout, Writer, choose_writer, dictionary_paths, write_new_file
from icewright_spark.parquet.errors import FileUnreadable, ProofFailed, UnsupportedColumn, UnsupportedFile
from icewright_spark.parquet.lineage import LAST_UPDATED, inherited, with_lineage
from icewright_spark.parquet.metrics import metrics_of
from icewright_spark.parquet.partition_values import holds_only, partition_scalars
from icewright_spark.parquet.places import Seen
from icewright_spark.parquet.proof_cost import ProofCost
from icewright_spark.parquet.schema import leaves
from icewright_spark.parquet.statistics.check import StatedCheck, check_of
from icewright_spark.parquet.statistics.pages import check_pages
from icewright_spark.parquet.storage import LOCAL, Storage, same_file

_HELD_BYTES: Final = 256 << 20
"""Decoded bytes of all files that are merged by key, together, if they overlap at one place."""
_HELD_BYTES_MIN: Final = 1 << 20
"""Of each of them, however many there are."""

SORTED_BYTES_MAX: Final = 256 << 20
"""Decoded bytes of a group that is sorted at once. They are there three times for a moment: as they were read, in one
piece, and in order. That is within a worker's 1.5 GB."""

FILES_PER_SAMPLE = 16
"""One input in so many, and one at least, is decoded by both libraries."""


@dataclass(frozen=True, slots=True)
class MergeJob:
    """One group to be merged into ``output_paths`` (locations as Iceberg has them; must not exist).

    ``sorted_by`` is the layout by which each file of the group is sorted: then rows are merged by it, into files of
    equal numbers of rows; so they are if the group's executor is ``sort``, whatever the order of its files. Without it
    rows keep their order, and there is one output.

    ``schema_fields`` is the JSON of the table's current schema, ``metrics_modes`` (``none``, ``counts``, ``full``,
    ``truncate(n)``) go by field id of the leaf and are ``truncate(16)`` where none is given.
    ``identity_values`` are the values of the partition's identity transforms by source id, as the partition has them
    in JSON; None, not known, refuses files of a partitioned table that lack a column. ``row_lineage`` is whether the
    table's rows have ids (format version 3): then they are written, and are part of the proof. ``storage`` is how all
    these files are reached.
    """

    group: FileGroup
    schema_fields: tuple[Json, ...]
    output_paths: tuple[str, ...]
    settings: WriterSettings = field(default_factory=WriterSettings)
    metrics_modes: Mapping[int, str] = field(default_factory=dict)
    identity_values: Mapping[int, Any] | None = None
    row_lineage: bool = False
    storage: Storage = LOCAL
    sorted_by: RowOrder | None = None

    @property
    def file_fields(self) -> tuple[Json, ...]:
        """The columns of the output. Raises :class:`UnsupportedColumn` when a name is taken by row lineage."""
        return with_lineage(self.schema_fields) if self.row_lineage else self.schema_fields


@dataclass(frozen=True, slots=True)
class MergeResult:
    """A merged group: what proves it, what it cost, and the files to commit, which have rows unless there are none."""

    receipt: Receipt
    figures: GroupFigures
    outputs: tuple[OutputFile, ...]


def merge_group(job: MergeJob, *, writer: Writer | None = None) -> MergeResult:
    """Merges a group. ``writer`` is chosen by the schema unless given.

    Raises :class:`ProofFailed` when rows written are not the rows read, or not those that the plan promised;
    :class:`UnsupportedFile`, :class:`UnsupportedColumn`, :class:`UnsupportedLocation` for what cannot be merged;
    :class:`FileUnreadable`, :class:`OutputExists`, :class:`OutputUnwritable`, :class:`StorageRefused` and
    :class:`StorageUnavailable`; :class:`InvalidMessage` for a group that is none. In every case all inputs stay where
    they are.
    """
    started_ns, started_cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    _check_job(job)
    with _frugal_memory():
        merge = _Merge(job, writer)
        encoded_bytes = merge.inspect()
        with merge.taken_back():
            taken, written = merge.write(encoded_bytes)
            output_is_written()
            with merge.proving.of_process():
                merge.check_samples()
                read_back, seen = merge.read_back(taken, written)
            outputs = merge.outputs(written, seen)
    receipt = Receipt(
        group_id=job.group.group_id,
        method=f"{merge.proof}, written by {merge.writer.name}, read back by the other library",
        input_digest=taken.text,
        output_digest=read_back.text,
        records=read_back.rows,
        deleted_records=merge.deleted_records,
    )
    figures = GroupFigures(
        group_id=job.group.group_id,
        input_files=len(job.group.files),
        input_bytes=job.group.size_bytes,
        output_paths=tuple(output.path for output in outputs),
        output_bytes=sum(output.size_bytes for output in outputs),
        records=read_back.rows,
        cpu_ms=(time.process_time_ns() - started_cpu_ns) // 1_000_000,
        wall_ms=(time.perf_counter_ns() - started_ns) // 1_000_000,
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        proof_cpu_ms=merge.proving.cpu_ms,
    )
    return MergeResult(receipt, figures, outputs)


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
        values: Mapping[int, Any] | None = {} if unpartitioned else job.identity_values
        self._fields = job.file_fields
        self._scalars = None if values is None else partition_scalars(values, self._fields)
        batch_bytes = BATCH_BYTES
        self._key: Key | None = None
        if job.sorted_by is not None:
            self._key = Key(self._fields, job.sorted_by)
            if job.group.executor is not Executor.SORT:
                batch_bytes = min(batch_bytes, max(_HELD_BYTES // len(job.group.files), _HELD_BYTES_MIN))
        self._rows = RowsOfTable(self._fields, self._scalars, job.storage, batch_bytes)
        self._schema = self._rows.schema
        self._leaves = leaves(self._fields)
        self.writer = writer or choose_writer(self._leaves, job.metrics_modes)
        self._sampled = sampled(job.group.files)
        self._sample_digests: dict[str, Digest] = {}
        self._deleted: Mapping[str, Positions] = {}
        self.deleted_records = 0
        self._whole: list[str] = []
        self.proving = ProofCost()

    def inspect(self) -> int:
        """Refuses what can be refused before there is an output; gives the bytes of all the inputs' columns."""
        encoded_bytes = sum(self._rows.inspect(file) for file in self._job.group.files)
        self._deleted = deleted_positions(self._job.group, self._job.storage)
        self.deleted_records = sum(len(positions) for positions in self._deleted.values())
        return encoded_bytes

    def write(self, encoded_bytes: int) -> tuple[Proof, list[Written]]:
        """Writes the outputs; gives what was taken over the rows that were read, and what was written.

        The writers count the rows of a row group, not its bytes; rows are taken to be as long as in the inputs.
        """
        group = self._job.group
        locations = [file.path for file in group.files]
        identities = dictionary_ids(locations, self._job.storage) | {LAST_UPDATED}
        layout = Layout(
            fields=self._fields,
            schema=self._schema,
            settings=self._job.settings,
            dictionary=dictionary_paths(self._leaves, identities, self._job.settings.plain_columns),
            row_group_rows=max(
                1, self._job.settings.row_group_size_bytes * group.record_count // max(1, encoded_bytes)
            ),
        )
        taking = self._proving()
        stream = Stream(self._joined_rows(taking) if self._key is None else self._rows_by_key(taking, self._key))
        written = []
        for path, rows in self._shares(group.record_count - self.deleted_records):
            before = stream.taken
            write_new_file(self._job.storage, path, stream.next_rows(rows), self.writer, layout)
            written.append(Written(path, stream.taken - before))
            self._whole.append(path)
        self._job.storage.settle([file.path for file in written])
        taken = taking.result()
        if taken.rows + self.deleted_records != group.record_count:
            deleted = f" and {self.deleted_records} deleted" if self.deleted_records else ""
            raise ProofFailed(f"group {group.group_id}: {taken.rows} rows read{deleted}, {group.record_count} planned")
        return taken, written

    @contextmanager
    def taken_back(self) -> Iterator[None]:
        """Files that are whole go again when the group fails all the same, but for the evidence of a failed proof."""
        try:
            yield
        except ProofFailed:
            raise
        except BaseException:
            self._job.storage.take_back(self._whole)
            raise

    def check_samples(self) -> None:
        """The other library must decode the sampled inputs to the same rows. Raises :class:`ProofFailed`."""
        for file in self._job.group.files:
            if file.path in self._sampled:
                digest = RowsDigest(self._schema)
                batches = partial(self._rows.checked_batches, file, decode_arrow_rs)
                rows = independent_reader.live_rows(
                    self._job.group, file, batches, self._job.storage, row_lineage=self._job.row_lineage
                )
                for batch in rows:
                    digest.update(batch)
                self._compare(f"{file.path} decoded by arrow-rs", self._sample_digests[file.path], digest.result())

    def read_back(self, taken: Proof, written: Sequence[Written]) -> tuple[Proof, list[Mapping[int, Seen]]]:
        """Reads the outputs with the other library; gives what was taken over their rows, and seen of each file's.

        Raises :class:`ProofFailed` when they are not what was written, or when what they state of their rows does not
        hold.
        """
        taking, order = self._proving(), None if self._key is None else SortedRows(self._key)
        checks = {}
        for file in written:
            rows = 0
            try:
                checks[file.path] = stated = self._stated(file)
                for batch in self._rows.batches(file.path, self.writer.read_back):
                    taking.update(batch)
                    stated.update(batch)
                    rows += batch.num_rows
                    if order is not None and not order.update(batch):
                        raise ProofFailed(f"{file.path} read back is not in the order of {self._job.sorted_by}")
            except (FileUnreadable, UnsupportedFile, UnsupportedColumn) as error:
                raise ProofFailed(f"{file.path} as written cannot be read back: {error}") from error
            if order is not None and rows != file.rows:
                raise ProofFailed(f"{file.path} read back has {rows} rows, {file.rows} were written")
        found = taking.result()
        self._compare(f"{', '.join(file.path for file in written)} read back", taken, found)
        return found, [self._finished(file, checks[file.path]) for file in written]

    def outputs(self, written: Sequence[Written], seen: Sequence[Mapping[int, Seen]]) -> tuple[OutputFile, ...]:
        """What Iceberg is told of the outputs, by what was seen of their rows."""
        modes, storage = self._job.metrics_modes, self._job.storage
        outputs = []
        for file, its in zip(written, seen, strict=True):
            other = self._other_than_partition(its)
            metrics = metrics_of(self._fields, modes, file.rows, its, left_out=other)
            outputs.append(output_file(self._fields, modes, storage, file, metrics))
        return tuple(outputs)

    def _other_than_partition(self, seen: Mapping[int, Seen]) -> frozenset[int]:
        """The ids of identity partition columns in which a file holds anything else than the partition's value.

        Some readers take the one and some the other (:mod:`.partition_values`), so that rows stay
        as they are and nothing may be said of them. Raises :class:`NotSorted` where rows were sorted by such a column:
        a reader of the partition's value would find them in another order.
        """
        scalars = self._scalars or {}
        found = frozenset(
            leaf.field_id
            for leaf in self._leaves
            if leaf.field_id in scalars and not holds_only(leaf, scalars[leaf.field_id], seen[leaf.field_id])
        )
        if self._key is not None and found & {field.source_id for field in self._key.fields}:
            raise NotSorted(
                f"files of group {self._job.group.group_id} hold other values in a partition column than the partition",
                hint="plan it as a shuffle",
            )
        return found

    def _finished(self, file: Written, stated: StatedCheck) -> Mapping[int, Seen]:
        seen = stated.finish(file.path)
        if file.rows:
            check_pages(self._job.storage, file.path, self._job.storage.size(file.path))
        return seen

    def _stated(self, file: Written) -> StatedCheck:
        """What an output states of its rows; one without rows nothing."""
        storage = self._job.storage
        if not file.rows:
            return StatedCheck(self._fields, {})
        return check_of(storage, file.path, storage.size(file.path), self._fields)

    @property
    def proof(self) -> str:
        """What is taken over rows, for the receipt."""
        return "ordered xxh3-128" if self._key is None else "multiset of rows, two 64-bit hashes summed in 128 bits"

    def _proving(self) -> Proving:
        return RowsDigest(self._schema) if self._key is None else RowsMultiset()

    def _shares(self, rows: int) -> Iterator[tuple[str, int | None]]:
        """Each output with its number of rows; None is all of them. No output is without rows while there are any."""
        paths = self._job.output_paths
        if self._key is None:
            yield paths[0], None
            return
        files = min(len(paths), max(rows, 1))
        for number in range(files):
            is_last = number == files - 1
            yield paths[number], None if is_last else rows * (number + 1) // files - rows * number // files

    def _joined_rows(self, taking: Proving) -> Iterator[pa.RecordBatch]:
        """All rows of the group, in order, taken on their way."""
        for batch in joined(self._all_rows()):
            with self.proving.of_thread():
                taking.update(batch)
            yield batch

    def _rows_by_key(self, taking: Proving, key: Key) -> Iterator[pa.RecordBatch]:
        """All rows of the group by their key, taken as they are read."""
        if self._job.group.executor is Executor.SORT:
            files_in_turn = (self._rows_of(file, taking) for file in self._job.group.files)
            return joined(sorted_at_once(chain.from_iterable(files_in_turn), key, SORTED_BYTES_MAX))
        fields = [self._fields[position] for position in sorted(key.columns)]
        first_rows = RowsOfTable(fields, self._scalars, self._job.storage)
        key_of_first = Key(fields, cast("RowOrder", self._job.sorted_by))
        decode = first_row_of({field["id"] for field in fields})
        files = []
        for number, file in enumerate(self._job.group.files):
            first = next(first_rows.batches(file.path, decode), None)
            values = None if first is None else key_of_first.values(first)
            files.append(SortedFile(number, file.path, values, self._rows_of(file, taking), key))
        return joined(merged(files, key))

    def _all_rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the group, file after file."""
        for file in self._job.group.files:
            yield from self._rows_of(file)

    def _rows_of(self, file: InputFile, taking: Proving | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a file, taken on their way where that is asked for; a sampled file is digested by itself."""
        own = RowsDigest(self._schema) if file.path in self._sampled else None
        for batch in self._live_rows(file):
            with self.proving.of_thread():
                for each in (own, taking):
                    if each is not None:
                        each.update(batch)
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

    def _compare(self, what: str, expected: Proof, found: Proof) -> None:
        if expected == found:
            return
        raise ProofFailed(
            f"group {self._job.group.group_id}: {what} differs; rows {expected.rows} -> {found.rows}; "
            f"{difference(self._schema.names, expected, found)}",
            hint="nothing was committed; keep the files, they are the evidence",
        )


def check_group(group: FileGroup) -> None:
    """Raises :class:`InvalidMessage` for a group without files, and for one that names a file twice."""
    if not group.files:
        raise InvalidMessage(f"group {group.group_id} has no files")
    if len({same_file(file.path) for file in group.files}) != len(group.files):
        raise InvalidMessage(f"group {group.group_id} names a file twice")


def _check_job(job: MergeJob) -> None:
    group = job.group
    check_group(group)
    by_key = job.sorted_by is not None
    if not job.output_paths or (not by_key and (len(job.output_paths) > 1 or group.executor is Executor.SORT)):
        raise InvalidMessage(f"group {group.group_id} cannot become {len(job.output_paths)} files in this order")


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
