"""Data files and delete files, as manifests describe them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias


class FileFormat(StrEnum):
    """Formats of data and delete files in the spec."""

    PARQUET = "parquet"
    AVRO = "avro"
    ORC = "orc"
    PUFFIN = "puffin"


class FileContent(StrEnum):
    """What a file in a manifest holds."""

    DATA = "data"
    POSITION_DELETES = "position-deletes"
    EQUALITY_DELETES = "equality-deletes"


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """A partition of one spec.

    ``values`` is canonical JSON (no spaces): an array with one element per field of the spec, each by the spec's
    JSON single-value serialization (Appendix D); ``[]`` where the table is unpartitioned.
    Two partitions are the same if and only if spec id and ``values`` are equal.
    """

    spec_id: int
    values: str


UNPARTITIONED = "[]"

SortKey: TypeAlias = tuple[Any, ...]
"""Lower bounds of a file in the table's sort order, comparable among files of one table."""

Span: TypeAlias = tuple[Any, Any]
"""Least and greatest value of one column in a file by its bounds, comparable among files of one table."""


DeleteKey: TypeAlias = tuple[str, int | None]
"""Path and, of a deletion vector, offset: many vectors share one Puffin file."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A live data file of a snapshot, with what planning needs to know of it.

    ``snapshot_id`` is the snapshot that added the file. ``sort_key`` is None when the table has no sort order that
    min-max bounds can follow, or the file has no bounds. ``first_row_id`` is the ``_row_id`` of its first row (spec,
    "Row Lineage"), inherited from the manifest where the entry has none; None before format version 3, and in a
    table that was upgraded and has not been committed to since. ``spans`` are of the columns that were asked for, None
    where the file has no bounds of one. ``row_groups`` are as many as its split offsets (of Parquet, row groups; of
    others, blocks or stripes), None where its writer did not say. ``misstated`` says what its metrics say of a
    column that its partition gives the value of and is not so, where spans were asked for: readers would skip it.
    """

    path: str
    file_format: FileFormat
    partition: Partition
    size_bytes: int
    record_count: int
    snapshot_id: int
    data_sequence_number: int
    sort_key: SortKey | None = None
    first_row_id: int | None = None
    spans: tuple[Span | None, ...] = ()
    row_groups: int | None = None
    misstated: str = ""

    @property
    def span(self) -> Span | None:
        """The span of the first column that was asked for; None where none was, or it is not known."""
        return self.spans[0] if self.spans else None


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A live delete file of a snapshot, a deletion vector among them (``file_format`` is then ``puffin``).

    ``referenced_data_file`` is the one data file it applies to, None where there may be several.
    ``content_offset`` and ``content_size_bytes`` say where a deletion vector's blob is in its Puffin file.
    ``path_lower`` and ``path_upper`` are the bounds of the ``file_path`` column of position deletes, None when
    unknown; ``equality_ids`` are the field ids of equality deletes. Which data files it applies to is the spec's
    ("Scan Planning"), by partition and data sequence number.
    """

    path: str
    content: FileContent
    file_format: FileFormat
    partition: Partition
    size_bytes: int
    record_count: int
    snapshot_id: int
    data_sequence_number: int
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_bytes: int | None = None
    path_lower: str | None = None
    path_upper: str | None = None
    equality_ids: tuple[int, ...] = ()

    @property
    def key(self) -> DeleteKey:
        """What tells it from the others of a snapshot."""
        return self.path, self.content_offset
