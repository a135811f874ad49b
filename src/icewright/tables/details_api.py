"""What one table is made of: files, manifests, metadata, sizes and bounds, each read within limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Query, Request, Response

from icewright.core.errors import InvalidMessage
from icewright.footprint.storage_views import StorageReader, StorageView
from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Permission
from icewright.model.iceberg.files import Partition
from icewright.observation.lookups import NOT_FOUND, OfCatalog
from icewright.observation.observer import Observer
from icewright.ports.store import TableStore
from icewright.tables.detail_views import (
    BoundsView,
    FilesView,
    HistogramView,
    ManifestPlace,
    ManifestsView,
    MetadataView,
)
from icewright.tables.details import (
    COLUMNS_MAX,
    FILES_READ_MAX,
    PARTITIONS_READ_MAX,
    FileReader,
    bounds_fields,
    bounds_view,
    files_view,
    histogram_view,
    manifests_view,
    metadata_view,
    spans_asked,
)
from icewright.tables.lookups import Looked
from icewright.web.bounded_reads import BoundedRead, Reads, Until
from icewright.web.deps import BY_LEADER_FOR_LONG, Led, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, encode_cursor, render
from icewright.web.schema import operation

router = APIRouter(prefix="/tables/{uuid}", tags=["tables"])

_NAME_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class _FilesCursor:
    """Where a page of files ended: of which metadata, in which order."""

    metadata_location: str
    sort: str
    position: int


@router.get("/files", dependencies=[needs(Permission.READ, On.TABLE)], **operation(FilesView, problems=NOT_FOUND))
def list_table_files(
    request: Request,
    lookups: Looked,
    observer: Service[Observer],
    uuid: str,
    *,
    sort: Annotated[
        str,
        Query(pattern="^-?(size|records|partition)$", description="What to sort by; with `-` the greatest first."),
    ] = "-size",
    spec_id: Annotated[int | None, Query(description="With `partition`: the spec that it is of.")] = None,
    partition: Annotated[
        str | None, Query(max_length=_NAME_MAX, description="Only this partition: the `values` of a partition.")
    ] = None,
    small: Annotated[bool, Query(description="Only small files.")] = False,
    catalog: OfCatalog = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The live data files of the current snapshot.

    At most 50,000 are read, for at most 10 seconds: `truncated` says so. A page whose table has changed meanwhile is
    refused; begin again.
    """
    record, begin = lookups.record(uuid, catalog), decode_cursor(_FilesCursor, cursor)
    if (spec_id is None) is not (partition is None):
        raise InvalidMessage("a partition is its spec_id and its values", hint="give both, or neither")
    wanted = None if spec_id is None or partition is None else Partition(spec_id, partition)

    def read(until: Until) -> Response:
        metadata, policy = lookups.metadata(record), lookups.policy(record)
        location = metadata.metadata_location
        if begin is not None and (begin.metadata_location, begin.sort) != (location, sort):
            raise InvalidMessage("the table or the order is another one by now", hint="begin without a cursor")
        after = 0 if begin is None else min(max(0, begin.position), FILES_READ_MAX)
        found = _files_of(request).read(observer.catalog(record.name.catalog), metadata, until)
        view, position = files_view(found, policy, sort, limit=limit, after=after, wanted=wanted, only_small=small)
        following = None if position is None else encode_cursor(_FilesCursor(location, sort, position))
        return render(replace(view, next_cursor=following))

    return _bounded(request, read)


@router.get(
    "/manifests", dependencies=[needs(Permission.READ, On.TABLE)], **operation(ManifestsView, problems=NOT_FOUND)
)
def list_manifests(
    request: Request,
    table_store: Service[TableStore],
    lookups: Looked,
    uuid: str,
    catalog: OfCatalog = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The manifests of the last observed snapshot, by path, with what their live entries add up to.

    From the store: no manifest is read. At most 10,000 are looked at, for at most 10 seconds.
    """
    record, after = lookups.record(uuid, catalog), decode_cursor(ManifestPlace, cursor)

    def read(until: Until) -> Response:
        summaries = table_store.manifest_summaries(record.table_id)
        view, ended = manifests_view(summaries, until, limit=limit, after=after)
        return render(replace(view, next_cursor=None if ended is None else encode_cursor(ended)))

    return _bounded(request, read)


@router.get("/metadata", dependencies=[needs(Permission.READ, On.TABLE)], **operation(MetadataView, problems=NOT_FOUND))
def show_metadata(lookups: Looked, uuid: str, catalog: OfCatalog = None) -> Response:
    """Schema, partition specs, sort order and properties, by the table's metadata as it is now."""
    return render(metadata_view(lookups.metadata(lookups.record(uuid, catalog))))


@router.get(
    "/histogram", dependencies=[needs(Permission.READ, On.TABLE)], **operation(HistogramView, problems=NOT_FOUND)
)
def show_histogram(table_store: Service[TableStore], lookups: Looked, uuid: str, catalog: OfCatalog = None) -> Response:
    """The sizes of the data files as of the last observed snapshot, with the target size. From the store."""
    record = lookups.record(uuid, catalog)
    found = table_store.partitions(record.table_id, limit=PARTITIONS_READ_MAX + 1)
    return render(histogram_view(record.snapshot_id, found, lookups.policy(record)))


@router.get("/bounds", dependencies=[needs(Permission.READ, On.TABLE)], **operation(BoundsView, problems=NOT_FOUND))
def show_bounds(
    request: Request,
    lookups: Looked,
    observer: Service[Observer],
    uuid: str,
    column: Annotated[
        list[str],
        Query(min_length=1, max_length=COLUMNS_MAX, description="One column or two, by their dotted names."),
    ],
    catalog: OfCatalog = None,
) -> Response:
    """From which value to which each data file of the current snapshot reaches, and how many a lookup opens.

    At most 50,000 files are read, for at most 10 seconds: `truncated` says so. Of more than 5,000 every so many are
    shown: `sampled` says so. The overlap is that of all files which were read.
    """
    record = lookups.record(uuid, catalog)

    def read(until: Until) -> Response:
        metadata = lookups.metadata(record)
        found = bounds_fields(metadata, column)
        files = _files_of(request).read(observer.catalog(record.name.catalog), metadata, until, spans_asked(found))
        return render(bounds_view(files, found))

    return _bounded(request, read)


@router.get(
    "/storage",
    dependencies=[needs(Permission.READ, On.TABLE), BY_LEADER_FOR_LONG],
    **operation(StorageView, problems={**NOT_FOUND, 422: "It takes longer than there is time for an answer."}),
)
def show_storage(
    request: Request, lookups: Looked, storage: Led[StorageReader], uuid: str, catalog: OfCatalog = None
) -> Response:
    """Where the bytes of the table are: live, kept for branches and tags, in old snapshots; and what expiry would free.

    Reads all metadata of the table, each manifest once, and is refused where that takes more than 10 seconds. What the
    table does not need at all is in `unneeded` of its own address.
    """
    record = lookups.record(uuid, catalog)
    return _bounded(request, lambda until: render(storage.view(record.name, until)))


def _files_of(request: Request) -> FileReader:
    return cast("FileReader", request.app.state.file_reader)


def _bounded(request: Request, read: Any) -> Response:
    return BoundedRead(cast("Reads", request.app.state.reads), read)
