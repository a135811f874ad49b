"""What one table is made of, as the API shows it: files, manifests, metadata, sizes, and the bounds of columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icewright.core.times import Instant
from icewright.model.iceberg.tables import PartitionField, SortField
from icewright.policy.schema_views import ColumnView
from icewright.tables.views import FileView, ManifestView


@dataclass(frozen=True, slots=True)
class FilesView:
    """A page of the live data files of a snapshot.

    ``truncated`` says that reading ended before all of ``files_total`` were read: the order is that of ``files_read``.
    """

    items: tuple[FileView, ...]
    next_cursor: str | None
    snapshot_id: str | None
    files_read: int
    files_total: int
    truncated: bool


@dataclass(frozen=True, slots=True, order=True)
class ManifestPlace:
    """Where a manifest is in the list: what identifies it."""

    path: str
    length_bytes: int
    added_snapshot_id: int


@dataclass(frozen=True, slots=True)
class ManifestsView:
    """A page of the manifests of the last observed snapshot, by path; ``truncated`` says that not all were read."""

    items: tuple[ManifestView, ...]
    next_cursor: str | None
    truncated: bool


@dataclass(frozen=True, slots=True)
class PartitionSpecView:
    """A partition spec; ``text`` is empty where it has no fields. New files go by the default one."""

    spec_id: int
    is_default: bool
    text: str
    fields: tuple[PartitionField, ...]


@dataclass(frozen=True, slots=True)
class SortOrderView:
    """The sort order of the table; without fields there is none."""

    order_id: int
    text: str
    fields: tuple[SortField, ...]


@dataclass(frozen=True, slots=True)
class MetadataView:
    """A table by its metadata as it is now. Values of properties that may be secrets are ``***``."""

    table: str
    uuid: str
    format_version: int
    location: str
    metadata_location: str
    updated_at: Instant
    current_snapshot_id: str | None
    schema_id: int
    columns: tuple[ColumnView, ...]
    partition_specs: tuple[PartitionSpecView, ...]
    sort_order: SortOrderView
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SizeBucket:
    """Data files of at least ``from_bytes`` and less than ``to_bytes``."""

    from_bytes: int
    to_bytes: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class HistogramView:
    """The sizes of data files as of the last observed snapshot: a bucket for each power of two, empty ones among them.

    Files below ``small_file_size_bytes`` are small. ``truncated`` says that there are more partitions than were read.
    """

    snapshot_id: str | None
    target_file_size_bytes: int
    small_file_size_bytes: int
    buckets: tuple[SizeBucket, ...]
    partitions_read: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class BoundsColumn:
    """A column whose bounds are shown."""

    name: str
    type: str
    field_id: int


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """The least and the greatest value of a column in a file as texts, and as numbers where they are some.

    Of dates and times the numbers are days and microseconds since 1970. Writers cut long texts off. The ranks say where
    both stand among all values at which a file of the answer begins or ends, from 0: in the order of the column's type.
    """

    min: str
    max: str
    lower: float | None
    upper: float | None
    min_rank: int
    max_rank: int


@dataclass(frozen=True, slots=True)
class FileBounds:
    """A data file, and the bounds of each column that was asked for."""

    path: str
    partition: str
    size_bytes: int
    records: int
    bounds: tuple[ValueBounds, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many of ``files`` a lookup of one value of a column opens by the bounds: at worst, and on the mean.

    The mean is over all values at which a file begins or ends. The ``unknown_files`` among them have no bounds and may
    have any value. Beside them, ``null_files`` have nothing but nulls in the column: a lookup of a value opens none.
    """

    column: str
    files: int
    unknown_files: int
    null_files: int
    depth_max: int
    depth_mean: float


@dataclass(frozen=True, slots=True)
class OverlapOfBoth:
    """How many of ``files`` a lookup of a value of each of two columns opens by the bounds: at worst, and on the mean.

    The mean is over all pairs of values at which a file begins or ends in its column.
    """

    files: int
    depth_max: int
    depth_mean: float


@dataclass(frozen=True, slots=True)
class BoundsView:
    """The data files of a snapshot from least to greatest value of one column or two, by the first one's least.

    ``items`` leaves out the ``unknown_files`` that have no bounds of a column, or nothing but nulls in it; ``sampled``
    says that it has only every so many of the others. ``overlap`` is over all files that were read, and so is ``both``,
    which is null for one column and for more than 5,000 files; ``truncated`` says that those are not all.
    """

    snapshot_id: str | None
    columns: tuple[BoundsColumn, ...]
    files_total: int
    files_read: int
    unknown_files: int
    sampled: bool
    truncated: bool
    overlap: tuple[Overlap, ...]
    both: OverlapOfBoth | None
    items: tuple[FileBounds, ...]
