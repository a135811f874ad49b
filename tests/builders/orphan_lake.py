"""A lake of tables and objects for passes over orphans: every byte of it is in one dictionary, every path as given."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from icewright.actions.remove_files.orphans.foreign_metadata import MetadataUuids
from icewright.actions.remove_files.orphans.service import OrphanFinder, OrphanPass, OrphansFound, OrphansRefused
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.catalogs.local_spool import OpenSpool, open_disk_spool
from icewright.catalogs.objects import Objects
from icewright.catalogs.table_files_port import TableFiles
from icewright.core.completeness import Gap, Gaps, Known
from icewright.core.reasons import Reason
from icewright.model.actions.remove_files import OrphanBudget, OrphanPolicy
from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.objects import Listed, ListedObject
from icewright.model.iceberg.reachable_files import (
    FileClass,
    ListedFile,
    ListedManifest,
    ManifestListing,
    NamedFile,
    Roots,
)
from icewright.model.iceberg.tables import (
    MAIN_BRANCH,
    LoggedMetadata,
    Operation,
    PartitionField,
    PartitionSpec,
    Ref,
    RefKind,
    Schema,
    Snapshot,
    SortOrder,
    TableMetadata,
)
from icewright.ownership.model import Place
from tests.doubles.clock import ManualClock
from tests.doubles.objects import MemoryObjects, MemoryStorage
from tests.lakes.stores import new_store

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
START = 1_750_000_000_000
ALL = OrphanPolicy(budget=OrphanBudget(1.0, 10**9))
PLAIN = Aliases()


def owns(*roots: str, findings: tuple[Reason, ...] = (), uuid: str = "u0") -> Place:
    """What a table owns, as whoever keeps the registry says."""
    return Place(TableName("lake", ("db",), "t"), uuid, roots, findings)


def complete(place: Place) -> Known[Place]:
    return Gaps().judge(place)


@dataclass
class LakeTable(TableFiles):
    """One table. A commit has one manifest list and one manifest, with all files that are live by then."""

    lake: OrphanLake
    name: TableName
    location: str
    spelled: Callable[[str], str] = lambda path: path
    """How the metadata spells a path."""
    snapshots: list[Snapshot] = field(default_factory=list)
    refs: dict[str, Ref] = field(default_factory=dict)
    live: dict[int, tuple[str, ...]] = field(default_factory=dict)
    statistics: list[NamedFile] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    fields: tuple[PartitionField, ...] = ()
    versions: int = 0
    ids: int = 0
    added: dict[str, int] = field(default_factory=dict)
    """Which snapshot added a file."""
    gap: Gap | None = None
    uuid: str = "u"
    file_bytes: int = 10
    """Of each data file."""

    @property
    def root(self) -> str:
        return PLAIN.canonical(self.location).rstrip("/") + "/"

    @property
    def metadata_location(self) -> str:
        return f"{self.location}/metadata/{self.versions:05}-{self.uuid}.metadata.json"

    @property
    def metadata(self) -> TableMetadata:
        return TableMetadata(
            table_id=TableId(self.name.catalog, self.uuid),
            name=self.name,
            metadata_location=self.metadata_location,
            location=self.location,
            format_version=3,
            updated_at=self.lake.clock.now(),
            current_snapshot_id=self.snapshots[-1].snapshot_id if self.snapshots else None,
            snapshots=tuple(self.snapshots),
            refs=tuple(self.refs.values()),
            schemas=(Schema(0, ()),),
            current_schema_id=0,
            specs=(PartitionSpec(0, self.fields),),
            default_spec_id=0,
            sort_order=SortOrder(0, ()),
            properties={},
            metadata_log=tuple(LoggedMetadata(1, self.spelled(path)) for path in self.log),
        )

    def save(self) -> None:
        """A new metadata file; the one before is in its log."""
        if self.versions:
            self.log.append(self.metadata_location)
        self.versions += 1
        self.lake.write_metadata(self.metadata_location, self.uuid)

    def commit(
        self, *add: str, remove: tuple[str, ...] = (), staged: bool = False, summary: Mapping[str, str] | None = None
    ) -> Snapshot:
        """Files by their names below the location. They are there already, or are written now."""
        self.ids += 1
        before = self.live[self.snapshots[-1].snapshot_id] if self.snapshots else ()
        files = tuple(one for one in before if one not in remove) + tuple(f"{self.location}/{one}" for one in add)
        self.added.update({f"{self.location}/{one}": self.ids for one in add})
        manifest_list = f"{self.location}/metadata/snap-{self.ids}.avro"
        for path in (*files, manifest_list, manifest_list + ".m"):
            if self.lake.storage.objects.get(PLAIN.canonical(path)) is None:
                self.lake.write(path)
        totals = {"total-data-files": str(len(files)), "total-delete-files": "0", **(summary or {})}
        made = Snapshot(
            snapshot_id=self.ids,
            parent_id=self.snapshots[-1].snapshot_id if self.snapshots else None,
            sequence_number=self.ids,
            committed_at=self.lake.clock.now(),
            operation=Operation.APPEND,
            manifest_list=self.spelled(manifest_list),
            schema_id=0,
            summary=totals,
        )
        self.live[self.ids] = files
        if staged:
            self.snapshots.insert(max(len(self.snapshots) - 1, 0), made)
        else:
            self.snapshots.append(made)
            self.refs[MAIN_BRANCH] = Ref(MAIN_BRANCH, RefKind.BRANCH, self.ids)
        self.save()
        return made

    def tag(self, name: str, snapshot_id: int) -> None:
        self.refs[name] = Ref(name, RefKind.TAG, snapshot_id)
        self.save()

    def expire(self, *snapshot_ids: int) -> None:
        self.snapshots = [one for one in self.snapshots if one.snapshot_id not in snapshot_ids]
        self.save()

    def needed(self) -> set[CanonicalPath]:
        """Every path that the table needs, by sets."""
        found = {self.metadata_location, *self.log, *(one.path for one in self.statistics)}
        for one in self.snapshots:
            manifest_list = f"{self.location}/metadata/snap-{one.snapshot_id}.avro"
            found |= {manifest_list, manifest_list + ".m", *self.live[one.snapshot_id]}
        return {PLAIN.canonical(path) for path in found}

    # What the port has.

    def roots(self, _name: TableName) -> Roots:
        self.lake.read()
        own = [NamedFile(self.spelled(path), FileClass.METADATA) for path in (self.metadata_location, *self.log)]
        hint = NamedFile(f"{self.location}/metadata/version-hint.text", FileClass.VERSION_HINT)
        named = [replace(one, path=self.spelled(one.path)) for one in self.statistics]
        gaps = () if self.gap is None else (self.gap,)
        return Roots(self.metadata, (*own, hint, *named), gaps=gaps)

    def size_bytes(self, _table: TableMetadata, _path: str) -> int:
        self.lake.read()
        return 10

    def manifests(self, table: TableMetadata, path: str) -> ManifestListing:
        self.lake.read()
        (one,) = (one for one in table.snapshots if one.manifest_list == path)
        files = len(self.live[one.snapshot_id])
        return ManifestListing(10, (ListedManifest(path + ".m", 10, is_data=True, entries=files, live_files=files),))

    def live_files(self, table: TableMetadata, manifest: ListedManifest) -> Iterator[ListedFile]:
        self.lake.read()
        (one,) = (one for one in table.snapshots if one.manifest_list + ".m" == manifest.path)
        for path in self.live[one.snapshot_id]:
            yield ListedFile(self.spelled(path), FileClass.DATA, self.file_bytes, self.added.get(path))


@dataclass
class OrphanLake:
    """Tables, a storage, and clocks that go together unless somebody moves one."""

    clock: ManualClock = field(default_factory=lambda: ManualClock(START))
    store_clock: ManualClock = field(default_factory=lambda: ManualClock(START))
    open_spool: OpenSpool = open_disk_spool
    tables: list[LakeTable] = field(default_factory=list)
    reads: int = 0
    fault_at: int | None = None
    fault: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.storage = MemoryStorage(self.clock)
        self.sightings: SqlSightings = SqlSightings(new_store(), self.store_clock)
        self.objects: Objects = LakeObjects(self)

    def table(self, location: str = "s3://b/t", spelled: Callable[[str], str] = lambda path: path) -> LakeTable:
        number = len(self.tables)
        made = LakeTable(self, TableName("lake", ("db",), f"t{number}"), location, spelled, uuid=f"u{number}")
        self.tables.append(made)
        made.save()
        return made

    def write(self, path: str, *, modified_at: int | None = None, size_bytes: int = 10) -> ListedObject:
        return self.storage.write(PLAIN.canonical(path), bytes(size_bytes), modified_at=modified_at)

    def write_metadata(self, path: str, uuid: str) -> None:
        said = {"format-version": 3, "table-uuid": uuid, "last-updated-ms": 0, "current-snapshot-id": None}
        self.storage.write(PLAIN.canonical(path), json.dumps(said).encode())

    def pass_time(self, span_ms: int) -> None:
        self.clock.advance(span_ms)
        self.store_clock.advance(span_ms)

    def read(self) -> None:
        """Something is about to be read."""
        self.reads += 1
        if self.reads == self.fault_at:
            self.fault()

    def finder(self, table: LakeTable, *, aliases: Aliases = PLAIN, quarantine: tuple[str, ...] = ()) -> OrphanFinder:
        return OrphanFinder(
            table,
            self.objects,
            self.sightings,
            self.open_spool,
            aliases=aliases,
            uuids=MetadataUuids(),
            quarantine=quarantine,
        )

    def look(
        self,
        table: LakeTable,
        *,
        place: Place | None = None,
        policy: OrphanPolicy = ALL,
        aliases: Aliases = PLAIN,
        quarantine: tuple[str, ...] = (),
    ) -> OrphanPass:
        owned = place or owns(table.root, uuid=table.uuid)
        finder = self.finder(table, aliases=aliases, quarantine=quarantine)
        return finder.look(table.name, lambda _metadata: complete(owned), policy)

    def found(self, table: LakeTable, **how: object) -> OrphansFound:
        found = self.look(table, **how)  # type: ignore[arg-type]  # as look has them
        assert isinstance(found, OrphansFound), found
        return found

    def refused(self, table: LakeTable, **how: object) -> OrphansRefused:
        found = self.look(table, **how)  # type: ignore[arg-type]  # as look has them
        assert isinstance(found, OrphansRefused), found
        return found

    def candidates(self, table: LakeTable, *, days: int = 30, **how: object) -> set[str]:
        """What would go after two passes so far apart: nothing when either is refused."""
        self.look(table, **how)  # type: ignore[arg-type]  # as look has them
        self.pass_time(days * DAY_MS)
        return planned(self.look(table, **how))  # type: ignore[arg-type]  # as look has them


def planned(found: OrphanPass) -> set[str]:
    if isinstance(found, OrphansRefused) or found.action is None:
        return set()
    return {file.path for file in found.action.files}


@dataclass
class LakeObjects(Objects):
    """What the lake's storage has; each listed object counts as something read."""

    lake: OrphanLake

    def __post_init__(self) -> None:
        self.below = MemoryObjects(self.lake.storage)

    def now(self, path: CanonicalPath) -> int:
        return self.below.now(path)

    def list(self, root: CanonicalPath) -> Iterator[Listed]:
        self.lake.read()
        for one in self.below.list(root):
            self.lake.read()
            yield one

    def list_folder(self, folder: CanonicalPath) -> Iterator[Listed]:
        return self.below.list_folder(folder)

    def stat(self, path: CanonicalPath) -> ListedObject | None:
        return self.below.stat(path)

    def read(self, path: CanonicalPath, bytes_max: int) -> bytes:
        return self.below.read(path, bytes_max)
