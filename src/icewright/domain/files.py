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


@dataclass(frozen=True, slots=True)
class DataFile:
    """A live data file of a snapshot, with what planning needs to know of it.

    ``snapshot_id`` is the snapshot that added the file. ``sort_key`` is None when the table has no sort order that
    min-max bounds can follow, or the file has no bounds.
    """

    path: str
    file_format: FileFormat
    partition: Partition
    size_bytes: int
    record_count: int
    snapshot_id: int
    data_sequence_number: int
    sort_key: SortKey | None = None
