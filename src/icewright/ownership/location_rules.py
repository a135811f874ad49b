"""What an administrator says of places: names of storages, and where the tables of a catalog may lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.locations import Aliases, declared, storage_and_key


@dataclass(frozen=True, slots=True)
class PlaceRules:
    """What holds of all tables; places are canonical.

    ``aliases`` has the names of storages as each catalog means them. ``allowed`` has the only places where tables of a
    catalog may lie, for catalogs where that is said. ``reserved`` are icewright's own, such as those of its quarantine;
    ``held`` has, by catalog, those of them where removed files of its tables wait.
    ``storages`` are those that ``roots`` or aliases name: each is known to be itself, and none of the others. A
    quarantine does not say so: whoever gives each name of a cluster one does not mean that they are two.
    """

    aliases: Mapping[str, Aliases] = field(default_factory=dict)
    allowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reserved: tuple[str, ...] = ()
    storages: frozenset[str] = frozenset()
    real: Callable[[str], str] = str
    """The folder that a place of this machine leads to where its path goes by links; of others, the place itself."""
    held: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def aliases_of(self, catalog: str) -> Aliases:
        """Names of storages as a catalog means them; of one that is not configured, those that everybody knows."""
        return self.aliases.get(catalog, Aliases())


def place_rules(
    entries: Sequence[CatalogEntry], reserved: Iterable[str] = (), real: Callable[[str], str] = str
) -> PlaceRules:
    """The rules by these catalogs, and by further places of icewright's own, as spelled; ``real`` follows links.

    What one catalog declares holds for the others as well, unless they declare something else. Quarantines are
    icewright's own.
    """
    aliases = {entry.name: _aliases(entry, entries) for entry in entries}
    allowed = {
        entry.name: tuple(sorted({aliases[entry.name].folder(root) for root in entry.roots}))
        for entry in entries
        if entry.roots
    }
    everywhere = Aliases() if not entries else _aliases(None, entries)
    held = {
        entry.name: tuple(sorted(everywhere.folder(place) for place in entry.quarantine))
        for entry in entries
        if entry.quarantine
    }
    own = tuple(sorted({*map(everywhere.folder, reserved), *(place for places in held.values() for place in places)}))
    named = {storage_and_key(place)[0] for places in allowed.values() for place in places}
    meant = {storage for found in aliases.values() for storage in found.authorities.values()}
    return PlaceRules(aliases, allowed, own, frozenset(named | meant), real, held)


def _aliases(entry: CatalogEntry | None, entries: Sequence[CatalogEntry]) -> Aliases:
    """The aliases of one catalog and, as far as they contradict neither it nor each other, those of all others."""
    own = {} if entry is None else dict(entry.aliases)
    others = {other: storage for one in entries for other, storage in one.aliases.items()}
    try:
        return declared({**others, **own})
    except InvalidConfiguration:
        return declared(own)
