"""One group stitched: the row groups of its files, copied byte for byte into one file, and proved.

Nothing is decoded to be written again. What is written is read back from the storage and compared with what was read
(:mod:`icewright_spark.executors.stitch.proof`), and one column of each row group is decoded through the new footer.
"""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass, field
from typing import Final

import pyarrow.parquet as pq

from icewright.core.errors import NotStitchable
from icewright.model.actions.actions import FileGroup, InputFile
from icewright.model.work.jobs import GroupFigures, Receipt
from icewright_spark.executors.merge.merge import MergeResult, check_group
from icewright_spark.executors.merge.output import OutputFile, output_is_written
from icewright_spark.executors.merge.read import expect_size
from icewright_spark.executors.stitch.compatible import common_fields
from icewright_spark.executors.stitch.copy import Copy
from icewright_spark.executors.stitch.proof import RowGroupSeen, compare, digest_of, metadata_of, seen
from icewright_spark.executors.stitch.rebase import ORDINAL_MAX
from icewright_spark.parquet.errors import FileChanged, FileUnreadable, ProofFailed, UnsupportedFile, reading
from icewright_spark.parquet.footer import FOOTER_BYTES_MAX, FileField, Footer, read_footer
from icewright_spark.parquet.indexes import INDEX_BYTES_MAX
from icewright_spark.parquet.metrics import ColumnMetrics
from icewright_spark.parquet.proof_cost import ProofCost
from icewright_spark.parquet.source import FileSource
from icewright_spark.parquet.storage import LOCAL, Storage
from icewright_spark.parquet.thrift import Struct

METHOD: Final = "row groups copied, xxh3-128 of their bytes where pyarrow finds them, read back"


@dataclass(frozen=True, slots=True)
class StitchJob:
    """One group to be stitched into ``output_path`` (a location as Iceberg has it; must not exist).

    ``metrics`` are what the manifests say of the files, put together: no footer has the NaN counts. ``storage`` is how
    all these files are reached.
    """

    group: FileGroup
    output_path: str
    metrics: ColumnMetrics = field(default_factory=ColumnMetrics)
    storage: Storage = LOCAL


def stitch_group(job: StitchJob) -> MergeResult:
    """Stitches a group.

    Raises :class:`NotStitchable` for files that cannot be put under one footer as they are, mostly before anything is
    written; :class:`ProofFailed` when the output is not what was copied; :class:`FileChanged`,
    :class:`UnsupportedFile`, :class:`UnsupportedLocation`, :class:`FileUnreadable`, :class:`OutputExists`,
    :class:`OutputUnwritable`, ``StorageRefused`` and ``StorageUnavailable``; :class:`InvalidMessage` for a group
    that is none. In every case all files stay where they are, a partial output too.
    """
    started_ns, started_cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    check_group(job.group)
    stitch = _Stitch(job)
    stitch.inspect()
    copied = stitch.write()
    output_is_written()
    with stitch.proving.of_process():
        size_bytes, output, found = stitch.read_back()
        compare(job.output_path, copied, found)
        rows = sum(group.rows for group in output.row_groups)
        stitch.decode_some(output)
        receipt = Receipt(
            group_id=job.group.group_id,
            method=METHOD,
            input_digest=digest_of(copied),
            output_digest=digest_of(found),
            records=rows,
        )
    figures = GroupFigures(
        group_id=job.group.group_id,
        input_files=len(job.group.files),
        input_bytes=job.group.size_bytes,
        output_paths=(job.output_path,),
        output_bytes=size_bytes,
        records=rows,
        cpu_ms=(time.process_time_ns() - started_cpu_ns) // 1_000_000,
        wall_ms=(time.perf_counter_ns() - started_ns) // 1_000_000,
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        proof_cpu_ms=stitch.proving.cpu_ms,
    )
    return MergeResult(receipt, figures, (_output_file(job, output, size_bytes),))


class _Stitch:
    """The steps of one stitch over its common facts."""

    def __init__(self, job: StitchJob) -> None:
        self._job, self._storage = job, job.storage
        self._footers: list[Footer] = []
        self._fields: Struct = {}
        self.proving = ProofCost()

    def inspect(self) -> None:
        """Refuses what can be refused before there is an output."""
        if self._job.group.delete_files:
            raise NotStitchable(f"rows of group {self._job.group.group_id} are deleted")
        if any(file.first_row_id is not None for file in self._job.group.files):
            raise NotStitchable(f"rows of group {self._job.group.group_id} have ids by their place in a file")
        length = 0
        for file in self._job.group.files:
            self._footers.append(self._footer(file))
            length += len(self._footers[-1].tail)
            if length > FOOTER_BYTES_MAX:
                raise NotStitchable(f"its footers have more than {FOOTER_BYTES_MAX} bytes, up to {file.path}")
        self._fields = common_fields(self._footers)
        count = sum(len(footer.row_groups) for footer in self._footers)
        if not 0 < count <= ORDINAL_MAX:
            raise NotStitchable(f"group {self._job.group.group_id} has {count} row groups")
        chunks = (chunk for footer in self._footers for group in footer.row_groups for chunk in group.chunks)
        indexes = sum(index.size for chunk in chunks for index in (chunk.column_index, chunk.offset_index) if index)
        if indexes > INDEX_BYTES_MAX:
            raise NotStitchable(f"the page indexes of group {self._job.group.group_id} have {indexes} bytes")

    def write(self) -> list[RowGroupSeen]:
        """Writes the output; gives the row groups of the inputs as they were read."""
        read: list[RowGroupSeen] = []
        with self._storage.create(self._job.output_path) as file:
            copy = Copy(file, self._job.output_path, self.proving)
            for footer, source in zip(self._footers, self._job.group.files, strict=True):
                with self.proving.of_thread():
                    metadata = metadata_of(footer)
                with self._storage.open_input(source.path) as opened:
                    pieces = FileSource(opened, source.path, source.size_bytes)
                    for number, group in enumerate(footer.row_groups):
                        copied = copy.row_group(footer, group, pieces)
                        with self.proving.of_thread():
                            read.append(seen(footer, metadata, number, copied))
            copy.finish(self._fields)
        return read

    def read_back(self) -> tuple[int, Footer, list[RowGroupSeen]]:
        """Size, footer and row groups of the output. Raises :class:`ProofFailed` for what cannot be read."""
        location = self._job.output_path
        try:
            size_bytes = self._storage.size(location)
            footer = read_footer(self._storage, location, size_bytes)
            metadata = metadata_of(footer)
            with self._storage.open_input(location) as opened:
                source = FileSource(opened, location, size_bytes)
                found = [seen(footer, metadata, number, source) for number in range(len(footer.row_groups))]
        except (FileUnreadable, UnsupportedFile, NotStitchable) as error:
            raise ProofFailed(f"{location} as written cannot be read back: {error}") from error
        if _of_the_file(footer.fields) != _of_the_file(self._fields):
            raise ProofFailed(f"the footer of {location} is not the one that was written")
        return size_bytes, footer, found

    def decode_some(self, output: Footer) -> None:
        """Decodes one column of each row group through the new footer, another one each time.

        Raises :class:`ProofFailed` when it cannot be decoded to as many rows as it should have.
        """
        location = self._job.output_path
        try:
            with reading(location):
                file = pq.ParquetFile(self._storage.source(location), pre_buffer=False, page_checksum_verification=True)
                for number, group in enumerate(output.row_groups):
                    position = number % output.leaves
                    table = file.reader.read_row_group(number, column_indices=[position], use_threads=False)
                    if table.num_rows != group.rows:
                        raise ValueError(f"{table.num_rows} rows of {group.rows} in column {position} of {number}")
        except FileUnreadable as error:
            raise ProofFailed(f"{location} as written cannot be decoded: {error}") from error

    def _footer(self, file: InputFile) -> Footer:
        expect_size(file.path, file.size_bytes, self._storage)
        footer = read_footer(self._storage, file.path, file.size_bytes)
        rows = sum(group.rows for group in footer.row_groups)
        if rows != file.record_count:
            raise FileChanged(f"{file.path} has {rows} rows, its manifest says {file.record_count}")
        return footer


def _of_the_file(fields: Struct) -> Struct:
    """What a footer says of the file as a whole."""
    return {field_id: field for field_id, field in fields.items() if field_id != FileField.ROW_GROUPS}


def _output_file(job: StitchJob, output: Footer, size_bytes: int) -> OutputFile:
    return OutputFile(
        path=job.output_path,
        size_bytes=size_bytes,
        record_count=sum(group.rows for group in output.row_groups),
        split_offsets=tuple(group.chunks[0].pages.start for group in output.row_groups),
        metrics=job.metrics,
    )
