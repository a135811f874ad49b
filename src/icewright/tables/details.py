"""What one table is made of: read from its metadata and manifests within limits, which answers say where they end.

A read ends after so many files or manifests, when its time is over, and when the caller is gone. What was read last of
a few tables is kept by their metadata location, so that the pages of a list and the next picture read nothing again.
"""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from icewright.actions.rewrite_data_files.layouts.depth import opened_by_both, opened_by_bounds
from icewright.catalogs.metadata.values import single_value
from icewright.catalogs.port import Catalog
from icewright.core.errors import NotFound, Rejected
from icewright.inventory.partitions import partition_path
from icewright.model.access.redacted_text import names_a_secret
from icewright.model.iceberg.column_types import all_fields
from icewright.model.iceberg.files import DataFile, Partition, Span
from icewright.model.iceberg.inventory import BUCKETS_PER_OCTAVE, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import PartitionSpec, SortField, TableMetadata
from icewright.model.policy.policy import Policy
from icewright.policy.schema_views import columns, sort_order_text, spec_text
from icewright.tables.detail_views import (
    BoundsColumn,
    BoundsView,
    FileBounds,
    FilesView,
    HistogramView,
    ManifestPlace,
    ManifestsView,
    MetadataView,
    Overlap,
    OverlapOfBoth,
    PartitionSpecView,
    SizeBucket,
    SortOrderView,
    ValueBounds,
)
from icewright.tables.views import FileView, ManifestView, file_view, id_text, manifest_view

FILES_READ_MAX: Final = 50_000
MANIFESTS_READ_MAX: Final = 10_000
PARTITIONS_READ_MAX: Final = 20_000
FILES_DRAWN_MAX: Final = 5_000
"""Of more files a picture shows every so many."""
COLUMNS_MAX: Final = 2
_KEPT_MAX: Final = 4
_HIDDEN: Final = "***"
_VALUE: Final = 1
"""The rank of a value in a span; nulls come before or after."""

Ends = Callable[[], bool]
"""Whether a read has to end now."""


class _EveryPartition(frozenset[Partition]):
    """All partitions of a table, whichever there are."""

    __slots__ = ()

    def __contains__(self, _partition: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class FilesRead:
    """The live data files of a snapshot, as far as they were read."""

    metadata: TableMetadata
    files: tuple[DataFile, ...]
    is_truncated: bool

    @property
    def snapshot_id(self) -> str | None:
        """The snapshot that they are of."""
        return id_text(self.metadata.current_snapshot_id)

    @property
    def total(self) -> int:
        """How many the snapshot says there are; as many as were read where it does not say."""
        snapshot = self.metadata.current_snapshot
        said = None if snapshot is None else snapshot.number("total-data-files")
        return len(self.files) if said is None or not self.is_truncated else max(said, len(self.files))


class FileReader:
    """Reads the files of tables, and keeps what it read last. Safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[TableId, str, tuple[SortField, ...]], FilesRead] = OrderedDict()

    def read(
        self, catalog: Catalog, metadata: TableMetadata, ends: Ends, fields: tuple[SortField, ...] = ()
    ) -> FilesRead:
        """The files of the current snapshot, with the spans of some fields.

        Raises as the methods of the catalog do.
        """
        key = (metadata.table_id, metadata.metadata_location, fields)
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
                return known
        snapshot = metadata.current_snapshot
        if snapshot is None:
            return FilesRead(metadata, (), is_truncated=False)
        keys = catalog.manifests(metadata, snapshot)
        found: list[DataFile] = []
        is_truncated = False
        for file in catalog.data_files(metadata, snapshot, keys, _EveryPartition(), fields):
            if len(found) == FILES_READ_MAX or ends():
                is_truncated = True
                break
            found.append(file)
        read = FilesRead(metadata, tuple(found), is_truncated)
        if is_truncated and len(found) < FILES_READ_MAX:
            return read  # what a hurried read left out, the next one may have
        with self._lock:
            self._kept[key] = read
            while len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        return read


def files_view(
    read: FilesRead,
    policy: Policy,
    sort: str,
    *,
    limit: int,
    after: int,
    wanted: Partition | None = None,
    only_small: bool = False,
) -> tuple[FilesView, int | None]:
    """A page of files from a position on, and where the next one begins."""
    paths: dict[Partition, str] = {}
    for file in read.files:
        if file.partition not in paths:
            paths[file.partition] = partition_path(read.metadata, file.partition)
    files = [
        file
        for file in read.files
        if (wanted is None or file.partition == wanted)
        and (not only_small or file.size_bytes < policy.small_file_size_bytes)
    ]
    keys: Mapping[str, Callable[[DataFile], Any]] = {
        "size": lambda file: (file.size_bytes, file.path),
        "records": lambda file: (file.record_count, file.path),
        "partition": lambda file: (paths[file.partition], file.path),
    }
    files.sort(key=keys[sort.removeprefix("-")], reverse=sort.startswith("-"))
    items: tuple[FileView, ...] = tuple(file_view(file, paths, policy) for file in files[after : after + limit])
    view = FilesView(items, None, read.snapshot_id, len(read.files), read.total, read.is_truncated)
    return view, after + limit if len(files) > after + limit else None


def manifests_view(
    summaries: Iterable[ManifestSummary], ends: Ends, *, limit: int, after: ManifestPlace | None
) -> tuple[ManifestsView, ManifestPlace | None]:
    """A page of manifests by path, and where it ended."""
    left: list[tuple[ManifestPlace, ManifestView]] = []
    is_truncated = False
    for number, summary in enumerate(summaries):
        if number == MANIFESTS_READ_MAX or ends():
            is_truncated = True
            break
        place = ManifestPlace(summary.key.path, summary.key.length_bytes, summary.key.added_snapshot_id)
        if after is None or place > after:
            left.append((place, manifest_view(summary)))
    found = heapq.nsmallest(limit + 1, left, key=lambda one: one[0])
    view = ManifestsView(tuple(item for _, item in found[:limit]), None, is_truncated)
    return view, found[limit - 1][0] if len(found) > limit else None


def histogram_view(snapshot_id: int | None, partitions: Sequence[PartitionStatistics], policy: Policy) -> HistogramView:
    """The sizes of the data files of some partitions, one bucket for each power of two; one more is truncated."""
    sums: dict[int, list[int]] = {}
    for statistics in islice(partitions, PARTITIONS_READ_MAX):
        for bucket, (files, size_bytes) in statistics.counts.sizes.buckets.items():
            total = sums.setdefault(max(-1, bucket // BUCKETS_PER_OCTAVE), [0, 0])
            total[0] += files
            total[1] += size_bytes
    octaves = range(min(sums, default=0), max(sums, default=-1) + 1)
    return HistogramView(
        snapshot_id=id_text(snapshot_id),
        target_file_size_bytes=policy.target_file_size_bytes,
        small_file_size_bytes=policy.small_file_size_bytes,
        buckets=tuple(
            SizeBucket(0 if octave < 0 else 1 << octave, 1 << (octave + 1), *sums.get(octave, [0, 0]))
            for octave in octaves
        ),
        partitions_read=min(len(partitions), PARTITIONS_READ_MAX),
        truncated=len(partitions) > PARTITIONS_READ_MAX,
    )


def metadata_view(metadata: TableMetadata) -> MetadataView:
    """Schema, partition specs, sort order and properties; values of properties that may be secrets are hidden."""
    return MetadataView(
        table=str(metadata.name),
        uuid=metadata.table_id.uuid,
        format_version=metadata.format_version,
        location=metadata.location,
        metadata_location=metadata.metadata_location,
        updated_at=metadata.updated_at,
        current_snapshot_id=id_text(metadata.current_snapshot_id),
        schema_id=metadata.current_schema_id,
        columns=columns(metadata.schema),
        partition_specs=tuple(_spec_view(metadata, spec) for spec in metadata.specs),
        sort_order=SortOrderView(
            metadata.sort_order.order_id, sort_order_text(metadata, metadata.sort_order), metadata.sort_order.fields
        ),
        properties={
            key: _HIDDEN if names_a_secret(key) else value for key, value in sorted(metadata.properties.items())
        },
    )


def _spec_view(metadata: TableMetadata, spec: PartitionSpec) -> PartitionSpecView:
    is_default = spec.spec_id == metadata.default_spec_id
    return PartitionSpecView(spec.spec_id, is_default, spec_text(metadata, spec), spec.fields)


def bounds_fields(metadata: TableMetadata, names: Sequence[str]) -> tuple[BoundsColumn, ...]:
    """The columns of these dotted names. Raises ``NotFound``, and ``Rejected`` for one that has no bounds."""
    known = dict(all_fields(metadata.schema.fields))
    found = []
    for name in names:
        if name not in known:
            raise NotFound(f"the table has no column {name!r}", hint="its metadata lists them")
        kind = known[name]["type"]
        if not isinstance(kind, str):
            raise Rejected(f"the column {name!r} is nested and has no bounds", hint="name a field in it")
        found.append(BoundsColumn(name, kind, known[name]["id"]))
    return tuple(found)


def spans_asked(found: Sequence[BoundsColumn]) -> tuple[SortField, ...]:
    """What to ask the catalog for: each column with nulls last, for its least value, and first, for its greatest."""
    return tuple(
        SortField(column.field_id, "identity", "asc", null_order)
        for column in found
        for null_order in ("nulls-last", "nulls-first")
    )


def bounds_view(read: FilesRead, found: Sequence[BoundsColumn]) -> BoundsView:
    """The files from least to greatest value of each column, and how many of them a lookup opens."""
    spans = [tuple(_values(file, place) for place in range(len(found))) for file in read.files]
    known = [(_all_known(one), number) for number, one in enumerate(spans)]
    drawn = sorted(
        ((one, number) for one, number in known if one is not None),
        key=lambda each: (each[0], read.files[each[1]].path),
    )
    unknown_files, step = len(read.files) - len(drawn), -(-len(drawn) // FILES_DRAWN_MAX) or 1
    drawn = drawn[::step]
    ranks = [_ranks([one[place] for one, _ in drawn]) for place in range(len(found))]
    return BoundsView(
        snapshot_id=read.snapshot_id,
        columns=tuple(found),
        files_total=read.total,
        files_read=len(read.files),
        unknown_files=unknown_files,
        sampled=step > 1,
        truncated=read.is_truncated,
        overlap=tuple(_overlap(column.name, [one[place] for one in spans]) for place, column in enumerate(found)),
        both=_overlap_of_both(spans) if len(found) == COLUMNS_MAX and len(spans) <= FILES_DRAWN_MAX else None,
        items=tuple(
            _file_bounds(
                read,
                number,
                [_bounds(span, column.type, of) for span, column, of in zip(one, found, ranks, strict=True)],
            )
            for one, number in drawn
        ),
    )


@dataclass(frozen=True, slots=True)
class _Nulls:
    """A file that has nothing but nulls in a column: no lookup of a value opens it."""


_ONLY_NULLS: Final = _Nulls()


def _all_known(spans: tuple[Span | _Nulls | None, ...]) -> tuple[Span, ...] | None:
    known = tuple(span for span in spans if isinstance(span, tuple))
    return known if len(known) == len(spans) else None


def _ranks(spans: Iterable[Span]) -> Mapping[Any, int]:
    return {end: rank for rank, end in enumerate(sorted({end for span in spans for end in span}))}


def _values(file: DataFile, place: int) -> Span | _Nulls | None:
    """The least and greatest value of a column without its nulls; None where it is not known."""
    by_last, by_first = file.spans[2 * place], file.spans[2 * place + 1]
    if by_last is None or by_first is None:
        return None
    (lower_rank, lower), (upper_rank, upper) = by_last[0], by_first[1]
    if lower_rank != _VALUE or upper_rank != _VALUE:
        return _ONLY_NULLS
    return lower, upper


def _overlap(name: str, spans: Sequence[Span | _Nulls | None]) -> Overlap:
    asked = [span for span in spans if not isinstance(span, _Nulls)]
    opened = opened_by_bounds(asked)
    return Overlap(
        name,
        files=len(asked),
        unknown_files=sum(span is None for span in asked),
        null_files=len(spans) - len(asked),
        depth_max=opened.worst,
        depth_mean=opened.mean,
    )


def _overlap_of_both(spans: Sequence[tuple[Span | _Nulls | None, ...]]) -> OverlapOfBoth:
    asked = [(one, other) for one, other in spans if not isinstance(one, _Nulls) and not isinstance(other, _Nulls)]
    opened = opened_by_both(asked)
    return OverlapOfBoth(len(asked), opened.worst, opened.mean)


def _bounds(span: Span, type_name: str, ranks: Mapping[Any, int]) -> ValueBounds:
    lower, upper = span
    return ValueBounds(
        _text(lower, type_name), _text(upper, type_name), _number(lower), _number(upper), ranks[lower], ranks[upper]
    )


def _text(value: Any, type_name: str) -> str:
    said = single_value(value, type_name)
    if isinstance(said, bool):
        return str(said).lower()
    return str(value if said is None else said)


def _number(value: Any) -> float | None:
    if not isinstance(value, (int, float, Decimal)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) != float("inf") else None


def _file_bounds(read: FilesRead, number: int, bounds: Sequence[ValueBounds]) -> FileBounds:
    file = read.files[number]
    partition = partition_path(read.metadata, file.partition)
    return FileBounds(file.path, partition, file.size_bytes, file.record_count, tuple(bounds))
