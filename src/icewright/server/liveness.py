"""Signs of life of the threads beside the loop: whether one hangs, or is only long at something.

What they do may take hours, and tells so all the time: with each step, each task and each batch, and with what is read
of catalogs and storages. One that is silent for longer than :data:`SILENT_MS_MAX` hangs in a single call.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from icewright.actions.remove_files.quarantine_port import Quarantine
from icewright.actions.remove_files.removals_port import CatalogFiles, RemovalPorts
from icewright.catalogs.objects import Objects
from icewright.catalogs.port import Catalog, TablePointers
from icewright.catalogs.table_files_port import TableFiles
from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.model.actions.deletion import Held, Whereabouts
from icewright.model.iceberg.files import DataFile, DeleteFile, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.objects import Listed, ListedObject
from icewright.model.iceberg.reachable_files import ListedFile, ListedManifest, ManifestListing, Roots
from icewright.model.iceberg.tables import Snapshot, SortField, TableMetadata

_T = TypeVar("_T")

SILENT_MS_MAX: Final = 60 * 60_000
"""Nothing that goes on is silent for as long. Reads give up after minutes, tries again included; subtracting millions
of files from each other takes minutes; and of the files that are moved, each one is a sign."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What a thread beside the loop is at, and since when; ``heard_at`` is its last sign of life.

    ``is_silent``: that is so long ago that it hangs, or has ended.
    """

    thread: str
    step: str
    since: Instant
    heard_at: Instant
    is_silent: bool = False


class Liveness:
    """The last signs of life. A thread gives them for itself or for the one it works for; no other one is heard."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: dict[int, str] = {}
        self._doing: dict[str, Doing] = {}
        self._heard_at: dict[str, Instant] = {}
        self._heard_s: dict[str, float] = {}

    def begin(self, name: str, step: str = "") -> None:
        """The calling thread is called so, and begins a step; none while it rests."""
        now = self._clock.now()
        self._names[threading.get_ident()] = name
        self._heard_at[name], self._heard_s[name] = now, time.monotonic()
        self._doing[name] = Doing(name, step, now, now)

    @contextmanager
    def working_for(self, name: str) -> Iterator[None]:
        """Within the block, signs of life of the calling thread are those of the one that is called so."""
        own = threading.get_ident()
        self._names[own] = name
        try:
            yield
        finally:
            del self._names[own]

    def beat(self) -> None:
        """The calling thread is alive."""
        name = self._names.get(threading.get_ident())
        if name is not None:
            self._heard_at[name], self._heard_s[name] = self._clock.now(), time.monotonic()

    def silent_s(self, name: str) -> float:
        """For how long a thread has given no sign, by a clock that nobody sets; 0 for one that is not at anything."""
        heard_s = self._heard_s.get(name)
        return 0.0 if heard_s is None else time.monotonic() - heard_s

    def end(self) -> None:
        """The calling thread ends in order."""
        name = self._names.pop(threading.get_ident(), None)
        if name is not None:
            del self._doing[name], self._heard_s[name]

    @property
    def doing(self) -> tuple[Doing, ...]:
        """What the threads are at that do not rest, and those that are silent."""
        now, told = self._clock.now(), []
        for one in self._doing.copy().values():
            heard_at = self._heard_at[one.thread]
            told.append(replace(one, heard_at=heard_at, is_silent=now - heard_at > SILENT_MS_MAX))
        return tuple(one for one in told if one.step or one.is_silent)


def heard(ports: RemovalPorts, pulse: Liveness) -> RemovalPorts:
    """The same ports; each answer of a catalog or a storage is a sign of life of whoever asked."""
    own = {
        name: CatalogFiles(_Files(one.files, pulse), _Objects(one.objects, pulse), _Quarantine(one.quarantine, pulse))
        for name, one in ports.catalogs.items()
    }
    return replace(ports, catalogs=own)


class HeardCatalog:
    """A catalog whose answers are signs of life of the thread that asks: a look at a large table takes minutes."""

    def __init__(self, catalog: Catalog, pulse: Liveness) -> None:
        self._catalog, self._pulse = catalog, pulse

    @property
    def name(self) -> str:
        """See the port."""
        return self._catalog.name

    @property
    def takes_snapshots_back(self) -> bool:
        """See the port."""
        return self._catalog.takes_snapshots_back

    def tables(self) -> Iterator[TableName]:
        """See the port."""
        return self._each(self._catalog.tables())

    @property
    def has_other_formats(self) -> bool:
        """See the port."""
        return self._catalog.has_other_formats

    @property
    def lists_pointers(self) -> bool:
        """See the port."""
        return self._catalog.lists_pointers

    def pointers(self) -> TablePointers:
        """See the port."""
        self._pulse.beat()
        return self._catalog.pointers()

    def load(self, name: TableName) -> TableMetadata:
        """See the port."""
        self._pulse.beat()
        return self._catalog.load(name)

    def earlier(self, table: TableMetadata, metadata_location: str) -> TableMetadata:
        """See the port."""
        self._pulse.beat()
        return self._catalog.earlier(table, metadata_location)

    def metadata_location(self, name: TableName) -> str:
        """See the port."""
        self._pulse.beat()
        return self._catalog.metadata_location(name)

    def manifests(self, table: TableMetadata, snapshot: Snapshot) -> Sequence[ManifestKey]:
        """See the port."""
        self._pulse.beat()
        return self._catalog.manifests(table, snapshot)

    def summarize(
        self,
        table: TableMetadata,
        snapshot: Snapshot,
        keys: Sequence[ManifestKey],
        runs: AbstractSet[int] = frozenset(),
    ) -> Iterator[ManifestSummary]:
        """See the port."""
        return self._each(self._catalog.summarize(table, snapshot, keys, runs))

    def data_files(
        self,
        table: TableMetadata,
        snapshot: Snapshot,
        keys: Sequence[ManifestKey],
        partitions: frozenset[Partition],
        fields: Sequence[SortField] = (),
    ) -> Iterator[DataFile]:
        """See the port."""
        return self._each(self._catalog.data_files(table, snapshot, keys, partitions, fields))

    def delete_files(
        self, table: TableMetadata, snapshot: Snapshot, keys: Sequence[ManifestKey], partitions: frozenset[Partition]
    ) -> Iterator[DeleteFile]:
        """See the port."""
        return self._each(self._catalog.delete_files(table, snapshot, keys, partitions))

    def first_written_at(self, table: TableMetadata, snapshot: Snapshot) -> Instant | None:
        """See the port."""
        self._pulse.beat()
        return self._catalog.first_written_at(table, snapshot)

    def _each(self, answers: Iterator[_T]) -> Iterator[_T]:
        self._pulse.beat()
        for answer in answers:
            self._pulse.beat()
            yield answer


class _Files:
    def __init__(self, files: TableFiles, pulse: Liveness) -> None:
        self._files, self._pulse = files, pulse

    def roots(self, name: TableName) -> Roots:
        self._pulse.beat()
        return self._files.roots(name)

    def size_bytes(self, table: TableMetadata, path: str) -> int:
        self._pulse.beat()
        return self._files.size_bytes(table, path)

    def manifests(self, table: TableMetadata, path: str) -> ManifestListing:
        self._pulse.beat()
        return self._files.manifests(table, path)

    def live_files(self, table: TableMetadata, manifest: ListedManifest) -> Iterator[ListedFile]:
        self._pulse.beat()
        yield from self._files.live_files(table, manifest)


class _Objects:
    def __init__(self, objects: Objects, pulse: Liveness) -> None:
        self._objects, self._pulse = objects, pulse

    def now(self, path: CanonicalPath) -> Instant:
        self._pulse.beat()
        return self._objects.now(path)

    def list(self, root: CanonicalPath) -> Iterator[Listed]:
        for entry in self._objects.list(root):
            self._pulse.beat()
            yield entry

    def list_folder(self, folder: CanonicalPath) -> Iterator[Listed]:
        for entry in self._objects.list_folder(folder):
            self._pulse.beat()
            yield entry

    def stat(self, path: CanonicalPath) -> ListedObject | None:
        self._pulse.beat()
        return self._objects.stat(path)

    def read(self, path: CanonicalPath, bytes_max: int) -> bytes:
        self._pulse.beat()
        return self._objects.read(path, bytes_max)


class _Quarantine:
    """The Deleter's door, handed through: nobody else is given it by this."""

    def __init__(self, quarantine: Quarantine, pulse: Liveness) -> None:
        self._quarantine, self._pulse = quarantine, pulse

    @property
    def roots(self) -> Sequence[CanonicalPath]:
        return self._quarantine.roots

    def check(self, path: CanonicalPath) -> None:
        self._pulse.beat()
        self._quarantine.check(path)

    def quarantine(self, run_id: str, expected: ListedObject) -> Held:
        self._pulse.beat()
        return self._quarantine.quarantine(run_id, expected)

    def restore(self, run_id: str, expected: ListedObject, held: Held) -> None:
        self._pulse.beat()
        self._quarantine.restore(run_id, expected, held)

    def purge(self, run_id: str, expected: ListedObject, held: Held) -> None:
        self._pulse.beat()
        self._quarantine.purge(run_id, expected, held)

    def look(self, run_id: str, expected: ListedObject) -> Whereabouts:
        self._pulse.beat()
        return self._quarantine.look(run_id, expected)
