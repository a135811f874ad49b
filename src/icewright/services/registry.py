"""Whose place is whose, kept as the looks at tables tell it, and asked anew right before anything is deleted.

Reading the metadata of every table before each delete would take hours where there are many. So each look at a table
leaves its claim here, and a copy in the store outlives the process. What is too old is as good as unknown. Right before
a delete all catalogs are listed once more, what is new to us is read, and so are the table itself and its neighbours.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from icewright.domain.errors import IcewrightError, NotFound, StorageAway, Unavailable, Unreadable
from icewright.domain.knowledge import Known, Partial
from icewright.domain.locations import Aliases
from icewright.domain.names import TableName
from icewright.domain.ownership import Claim, Missing, Place, SeenClaim
from icewright.domain.reasons import Reason
from icewright.domain.tables import Instant, TableMetadata
from icewright.planning.claims import claim, outside, parent, still_reached, uuid_of
from icewright.planning.ownership import Ownership, ownership
from icewright.planning.place_rules import PlaceRules
from icewright.ports.catalog import Catalog
from icewright.ports.claims import ClaimStore
from icewright.ports.clock import Clock

CLAIM_FRESH_MS: Final = 24 * 3_600_000
"""How long a claim counts without another look; the loop looks at every table once an hour at least."""
LISTING_FRESH_MS: Final = 2 * 3_600_000
"""How long a listing of a catalog counts; the loop lists one as often as its answers allow."""
NOW_MS: Final = 60_000
"""How long ago something may have been seen to count as seen right now."""
KEPT_AGAIN_MS: Final = 6 * 3_600_000
"""How often it is written down that a claim that has not changed was seen again."""
UNCONFIGURED_KEPT_MS: Final = 90 * 24 * 3_600_000
"""How long the claims still count of a catalog that is not configured any more: its tables may be there as ever."""
LOADED_MAX: Final = 200
"""Tables read at most to answer one question; the others stay unknown until the loop has looked at them."""
NEIGHBOURS_MAX: Final = 100
"""Neighbours of a table whose pointers are looked at to answer one question, those that were seen longest ago first.
The others are unknown to this answer, and the next one looks at them."""


class Registry:
    """The claims of all tables of all catalogs. Safe for use by several threads at once.

    Without a ``store``, a process knows what it has looked at itself.
    """

    def __init__(
        self,
        catalogs: Mapping[str, Catalog],
        clock: Clock,
        rules: PlaceRules | None = None,
        store: ClaimStore | None = None,
    ) -> None:
        self._catalogs, self._clock, self._store = catalogs, clock, store
        self._rules = rules or PlaceRules()
        self._lock = threading.RLock()
        self._seen: dict[TableName, SeenClaim] = {}
        self._named: defaultdict[str, set[TableName]] = defaultdict(set)
        """By uuid, the names under which a table was seen."""
        self._kept_at: dict[TableName, Instant] = {}
        self._dirty: set[TableName] = set()
        """Names whose claims the store does not have, or still has."""
        self._loaded = threading.Event()
        self._unknown: defaultdict[str, set[TableName]] = defaultdict(set)
        """By catalog, tables that were listed, and nothing more is known of them."""
        self._why: dict[TableName, Reason] = {}
        self._listed_at: dict[str, Instant] = {}
        self._not_listed: dict[str, Reason] = {}
        self._version = 0
        self._judged: tuple[int, Ownership] | None = None

    def aliases_of(self, catalog: str) -> Aliases:
        """Names of storages as a catalog means them."""
        return self._rules.aliases_of(catalog)

    def saw(self, metadata: TableMetadata) -> None:
        """A table was just loaded. Raises ``Unavailable`` when the store does not answer."""
        self._load()
        before = self._former(metadata)
        live = frozenset(place for place, gone in before.items() if gone is None)
        self._note(metadata, still_reached(before, live, metadata))

    def reached(self, metadata: TableMetadata, came: Iterable[str], live: Callable[[], Iterable[str]]) -> None:
        """Manifests of a table that was just seen were read: in ``came`` they have their files.

        ``live`` tells of all its manifests; it is asked where that matters alone: of tables with files elsewhere.
        """
        aliases = self._rules.aliases_of(metadata.name.catalog)
        before = self._former(metadata)
        if before or outside(metadata, aliases, came):
            self._note(metadata, still_reached(before, outside(metadata, aliases, live()), metadata))

    def claim(self, name: TableName) -> Claim | None:
        """What was last seen of a table."""
        with self._lock:
            seen = self._seen.get(name)
            return None if seen is None else seen.claim

    def namesakes(self, name: TableName, uuid: str) -> frozenset[TableName]:
        """Under which other names, in any catalog, the same table was seen.

        Raises ``Unavailable`` when the store does not answer.
        """
        self._load()
        with self._lock:
            return frozenset(self._named.get(uuid.strip().lower(), ())) - {name}

    def _take_down(self, seen: SeenClaim) -> None:
        before = self._seen.get(seen.claim.name)
        if before is not None:
            self._unname(before.claim)
        self._seen[seen.claim.name] = seen
        if seen.claim.uuid is not None:
            self._named[seen.claim.uuid].add(seen.claim.name)

    def _unname(self, claim: Claim) -> None:
        if claim.uuid is not None:
            self._named[claim.uuid].discard(claim.name)
            if not self._named[claim.uuid]:
                del self._named[claim.uuid]

    def _former(self, metadata: TableMetadata) -> Mapping[str, int | None]:
        """Where the table was known to have files elsewhere; of one that was made anew nothing is."""
        with self._lock:
            seen = self._seen.get(metadata.name)
        return {} if seen is None or seen.claim.uuid != uuid_of(metadata) else seen.places

    def _note(self, metadata: TableMetadata, places: Mapping[str, int | None]) -> None:
        made = claim(metadata, self._rules.aliases_of(metadata.name.catalog), places)
        now = self._clock.now()
        with self._lock:
            name = made.name
            before = self._seen.get(name)
            self._take_down(SeenClaim(made, metadata.metadata_location, now, places))
            self._unknown[name.catalog].discard(name)
            self._why.pop(name, None)
            if before is None or before.claim != made:
                self._version += 1
            elif before.places == places and _within(KEPT_AGAIN_MS, self._kept_at.get(name), now):
                return
            self._dirty.add(name)

    def failed(self, name: TableName, reason: Reason) -> None:
        """A table could not be loaded. What it last claimed still counts, as long as that is fresh."""
        with self._lock:
            self._why[name] = reason
            if name not in self._seen:
                self._unknown[name.catalog].add(name)

    def gone(self, name: TableName) -> None:
        """There is no table of that name."""
        with self._lock:
            self._unknown[name.catalog].discard(name)
            self._why.pop(name, None)
            before = self._seen.pop(name, None)
            if before is not None:
                self._unname(before.claim)
                self._version += 1
            self._kept_at.pop(name, None)
            self._dirty.add(name)

    def listed(self, catalog: str, names: Collection[TableName], asked_at: Instant) -> None:
        """All tables of a catalog, as of some moment after ``asked_at``."""
        with self._lock:
            self._listed_at[catalog] = asked_at
            self._not_listed.pop(catalog, None)
            known = frozenset(names)
            for name, seen in list(self._seen.items()):
                if name.catalog == catalog and name not in known and seen.seen_at < asked_at:
                    self.gone(name)
            self._unknown[catalog] = {name for name in names if name not in self._seen}

    def keep(self) -> None:
        """Write down what has changed. Raises ``Unavailable``; then the next call does it."""
        if self._store is None:
            return
        with self._lock:
            dirty, self._dirty = self._dirty, set()
            seen = [self._seen[name] for name in dirty if name in self._seen]
            forget = [name for name in dirty if name not in self._seen]
        try:
            self._store.keep(seen, forget)
        except BaseException:
            with self._lock:
                self._dirty |= dirty
            raise
        with self._lock:
            self._kept_at.update({one.claim.name: one.seen_at for one in seen})

    def ownership(self) -> Ownership:
        """All claims as they were last seen. Raises ``Unavailable`` when the store does not answer."""
        return self._ownership(())

    def _ownership(self, unseen: Iterable[Missing]) -> Ownership:
        """All claims, where these tables are not known, whatever they last claimed."""
        self._load()
        with self._lock:
            version, judged = self._version, self._judged
            claims = [seen.claim for seen in self._seen.values()]
            missing = [*self._missing(), *unseen]
        if judged is None or judged[0] != version:
            judged = version, ownership(claims, (), self._rules)
            with self._lock:
                self._judged = judged
        return judged[1].without(missing)

    def place_now(self, metadata: TableMetadata) -> Known[Place]:
        """What a table alone owns, by what all catalogs say right now; it was itself loaded just now.

        Catalogs are listed, tables that are new to us or were not seen for long are read, and so are neighbours that
        have changed. Whatever cannot be, is unknown, however lately it was seen. Raises ``Unavailable`` when the store
        does not answer.
        """
        self._load()
        self.saw(metadata)
        for catalog in self._catalogs.values():
            self._list(catalog)
        self._read(self._unread())
        with self._lock:
            near = tuple({parent(root) for root in self._seen[metadata.name].claim.roots})
        unseen = self._look_around(near, metadata.name)
        return self._ownership(unseen).place(metadata.name)

    def users_now(self, uuid: str, folders: Collection[str]) -> Known[frozenset[TableName]]:
        """Which tables have this uuid, or a place or files at, above or below these folders: asked as of now.

        Every catalog is listed, however lately it was: what goes by this answer cannot be taken back. Complete only
        where all tables of all catalogs are known. Raises ``Unavailable`` when the store does not answer.
        """
        self._load()
        for catalog in self._catalogs.values():
            self._list(catalog, anew=True)
        self._read(self._unread())
        unseen = self._look_around(tuple({parent(parent(folder)) for folder in folders}), None)
        known = self._ownership(unseen).users(uuid, folders)
        found = known.found if isinstance(known, Partial) else known.value
        self._read(name for name in found if name.catalog in self._catalogs)  # one that is gone since is none
        return self._ownership(unseen).users(uuid, folders)

    def place_of(self, name: TableName) -> Known[Place]:
        """As :meth:`place_now`, of a table that is loaded for it; of one that is gone nothing is known.

        Raises what :meth:`icewright.ports.catalog.Catalog.load` raises but for that.
        """
        catalog = self._catalogs.get(name.catalog)
        try:
            if catalog is not None:
                return self.place_now(catalog.load(name))
        except NotFound:
            self.gone(name)
        return ownership((), (), self._rules).place(name)

    def _load(self) -> None:
        """Take over what an earlier process saw, once."""
        if self._store is None or self._loaded.is_set():
            return
        stored = list(self._store.claims())
        now = self._clock.now()
        with self._lock:
            if self._loaded.is_set():
                return
            self._loaded.set()
            for seen in stored:
                name = seen.claim.name
                if name in self._seen or name in self._dirty:
                    continue
                if name.catalog in self._catalogs or _within(UNCONFIGURED_KEPT_MS, seen.seen_at, now):
                    self._take_down(seen)
                    self._kept_at[name] = seen.seen_at
                    self._unknown[name.catalog].discard(name)
                else:
                    self._dirty.add(name)
            self._version += 1

    def _missing(self) -> Iterator[Missing]:
        now = self._clock.now()
        for catalog in self._catalogs:
            if not _within(LISTING_FRESH_MS, self._listed_at.get(catalog), now):
                told = Reason("not-listed", "it has not been asked lately which tables it has")
                yield Missing(catalog, catalog, self._not_listed.get(catalog, told))
        for name in self._unread_names(now):
            told = Reason("unclaimed", "nothing is known of its places; it has not been looked at lately")
            yield Missing(name.catalog, str(name), self._why.get(name, told))

    def _unread_names(self, now: Instant) -> Iterator[TableName]:
        """Tables of which nothing is known, and those that were not seen for too long."""
        for catalog in self._catalogs:
            yield from self._unknown[catalog]
        for name, seen in self._seen.items():
            if name.catalog in self._catalogs and not _within(CLAIM_FRESH_MS, seen.seen_at, now):
                yield name

    def _unread(self) -> list[TableName]:
        with self._lock:
            return list(self._unread_names(self._clock.now()))

    def _list(self, catalog: Catalog, *, anew: bool = False) -> None:
        asked_at = self._clock.now()
        if not anew and _within(NOW_MS, self._listed_at.get(catalog.name), asked_at):
            return
        try:
            self.listed(catalog.name, frozenset(catalog.tables()), asked_at)
        except IcewrightError as error:
            with self._lock:
                self._listed_at.pop(catalog.name, None)
                self._not_listed[catalog.name] = Reason(error.code, error.message)

    def _look_around(self, near: tuple[str, ...], name: TableName | None) -> list[Missing]:
        """Read the tables beside a table that have changed since they were last seen: the answer has the others.

        Those were too many, or could not be read. Where a catalog as a whole is not known, they are not named.
        """
        with self._lock:
            now = self._clock.now()
            around = [
                seen
                for seen in self._seen.values()
                if seen.claim.name != name
                and seen.claim.name.catalog in self._catalogs
                and not _within(NOW_MS, seen.seen_at, now)
                and any(place.startswith(near) for place in (*seen.claim.roots, *seen.claim.reaches))
            ]
        around.sort(key=lambda seen: seen.seen_at)
        self._read(seen.claim.name for seen in around[:NEIGHBOURS_MAX])
        told = Reason("unclaimed", "it lies beside the table, and what it claims by now has not been looked at")
        with self._lock:
            return [
                Missing(each.catalog, str(each), self._why.get(each, told))
                for each in (seen.claim.name for seen in around if self._seen.get(seen.claim.name) is seen)
                if each.catalog not in self._not_listed
            ]

    def _read(self, names: Iterable[TableName]) -> None:
        """Look at tables, at most :data:`LOADED_MAX`, as long as their catalogs answer."""
        away: set[str] = set()
        left = LOADED_MAX
        for name in names:
            if name.catalog in away:
                continue
            if not left:
                return
            left -= 1
            try:
                self._look(name)
            except NotFound:
                self.gone(name)
            except IcewrightError as error:
                self.failed(name, Reason(error.code, error.message))
                if isinstance(error, Unavailable) and not isinstance(error, Unreadable | StorageAway):
                    away.add(name.catalog)

    def _look(self, name: TableName) -> None:
        """Load a table, unless the catalog's pointer is where it was when it was last seen."""
        catalog = self._catalogs[name.catalog]
        with self._lock:
            seen = self._seen.get(name)
        if seen is None or catalog.metadata_location(name) != seen.metadata_location:
            self.saw(catalog.load(name))
            return
        with self._lock:
            if self._seen.get(name) == seen:
                self._seen[name] = replace(seen, seen_at=self._clock.now())


def _within(span_ms: int, since: Instant | None, now: Instant) -> bool:
    """Whether something noted at ``since`` is less than ``span_ms`` ago; what lies in the future is not."""
    return since is not None and since <= now < since + span_ms
