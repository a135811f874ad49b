"""What one table lays claim to, read from its metadata alone.

Besides the location there are four properties that send new files elsewhere, and a table that was moved or registered
from elsewhere has files where neither says so: its metadata file and its manifest lists tell of such places. Names and
locations are input from strangers: nothing here trusts that they are what they seem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from icewright.core.errors import InvalidLocation
from icewright.model.iceberg.locations import Aliases, coarsened, is_ambiguous, tidied, topmost
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.model import Claim

PATH_KEYS: Final = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""What sends a table's new files elsewhere (Iceberg's ``TableProperties`` and ``LocationProviders``, 1.12)."""
REACHES_MAX: Final = 50
"""Places outside its roots that are kept of a table; with more of them, what lies deepest is told by its parent."""
_CLONE_KEY: Final = "snapshot"
"""Spark's procedure ``snapshot`` marks its tables so, beside ``gc.enabled=false`` (``SnapshotTableSparkAction``)."""


def claim(metadata: TableMetadata, aliases: Aliases, places: Iterable[str] = ()) -> Claim:
    """What a table lays claim to. ``places`` are further folders that are known to have files of it, as spelled."""
    named = _named(metadata, aliases)
    files = (
        metadata.metadata_location,
        *(entry.location for entry in metadata.metadata_log),
        *(snapshot.manifest_list for snapshot in metadata.snapshots),
        *(one.path for one in metadata.statistics),
        *(one.path for one in metadata.partition_statistics),
    )
    reached = _Folders(aliases, ({file.rpartition("/")[0] for file in files if file}).union(places))
    roots = topmost(named.found)
    outside = topmost(place for place in reached.found if not place.startswith(roots))
    return Claim(
        name=metadata.name,
        uuid=uuid_of(metadata),
        roots=roots,
        location=next(iter(_Folders(aliases, (metadata.location,)).found), None),
        reaches=coarsened(outside, REACHES_MAX),
        unplaced=tuple(sorted(named.unplaced | reached.unplaced)),
        ambiguous=tuple(sorted(named.ambiguous)),
        gc_enabled=metadata.collects_garbage,
        is_clone=metadata.properties.get(_CLONE_KEY, "").lower() == "true",
    )


def claim_of_other(name: TableName, places: Iterable[str], aliases: Aliases) -> Claim:
    """What a table of another format lays claim to. A location that names no place is none of a storage known here."""
    named = _Folders(aliases, places)
    return Claim(name, None, topmost(named.found), ambiguous=tuple(sorted(named.ambiguous)))


def followed(made: Claim, real: Callable[[str], str]) -> Claim:
    """The claim with the folders that its places lead to by links: what lies there is needed by either path."""
    roots = topmost((*made.roots, *map(real, made.roots)))
    reaches = topmost(place for place in (*made.reaches, *map(real, made.reaches)) if not place.startswith(roots))
    led = {place: real(place) for place in made.reaches}
    linked = tuple(
        place
        for place, to in led.items()
        if to != place and (to.startswith(roots) or any(root.startswith(to) for root in roots))
    )
    return replace(made, roots=roots, reaches=coarsened(reaches, REACHES_MAX), linked=linked)


def uuid_of(metadata: TableMetadata) -> str | None:
    """A table's uuid in one spelling, None where it has none."""
    return metadata.table_id.uuid.strip().lower() if metadata.has_uuid else None


def outside(metadata: TableMetadata, aliases: Aliases, places: Iterable[str]) -> frozenset[str]:
    """Of some folders, as spelled, those that are not below a root of the table, or are none."""
    roots = topmost(_named(metadata, aliases).found)
    return frozenset(place for place in places if not _is_below(place, roots, aliases))


def _is_below(place: str, roots: tuple[str, ...], aliases: Aliases) -> bool:
    try:
        return not is_ambiguous(place.rstrip("/") + "/") and aliases.folder(place).startswith(roots)
    except InvalidLocation:
        return False


def _named(metadata: TableMetadata, aliases: Aliases) -> _Folders:
    """Where a table says that its new files go."""
    properties = metadata.properties
    return _Folders(aliases, (metadata.location, *(properties[key] for key in PATH_KEYS if key in properties)))


class _Folders:
    """Locations of strangers as canonical folders, and those that are none, or more than one."""

    def __init__(self, aliases: Aliases, spelled: Iterable[str]) -> None:
        self.found: dict[str, None] = {}
        self.unplaced: set[str] = set()
        self.ambiguous: set[str] = set()
        for location in spelled:
            self._add(aliases, location)

    def _add(self, aliases: Aliases, location: str) -> None:
        try:
            folder, ambiguous = aliases.folder(location), is_ambiguous(location.rstrip("/") + "/")
        except InvalidLocation:
            self.unplaced.add(location)
            return
        self.found[folder] = None
        if ambiguous:
            self.ambiguous.add(location)
            self.found[tidied(folder)] = None
