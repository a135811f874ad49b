"""Whose place is whose, kept as the looks at tables tell it, and asked anew right before anything is deleted.

Reading the metadata of every table before each delete would take hours where there are many. So each look at a table
leaves its claim here, with the places of all its snapshots, and a copy in the store outlives the process. Right before
a delete the pointers of all tables of all catalogs are compared with the metadata that the claims were read from: what
moved is read then, and what cannot be read is unknown, wherever it lies (decision 0060).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from icewright.catalogs.parallel_catalogs import SideBySide
from icewright.catalogs.port import Catalog
from icewright.core.clock import Clock
from icewright.core.completeness import Known
from icewright.core.errors import IcewrightError, NotAllowed, NotFound, StorageUnavailable, Unreadable
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.iceberg.locations import Aliases
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.claim_book import HALF_READ, MOVED, NOT_YET, UNREAD, CatalogPointers, ClaimBook, within
from icewright.ownership.claims import claim, claim_of_other, followed, outside, uuid_of
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.location_rules import PlaceRules
from icewright.ownership.model import Claim, Missing, Place, SeenClaim, key_of, packed_keys, unpacked_keys
from icewright.ownership.ownership import Ownership, ownership
from icewright.ownership.reachable_folders import AlreadyRead, Reach

CLAIM_FRESH_MS: Final = 24 * 3_600_000
"""How long a claim counts without another look; the loop looks at every table several times a day at least."""
LISTING_FRESH_MS: Final = 2 * 3_600_000
"""How long a listing of a catalog counts; the loop lists one as often as its answers allow."""
UNCONFIGURED_KEPT_MS: Final = 90 * 24 * 3_600_000
"""How long the claims still count of a catalog that is not configured any more: its tables may be there as ever."""
LOADED_MAX: Final = 200
"""Tables of a catalog read at most to answer one question; the others stay unknown until the next one."""
AWAY_MAX: Final = 3
"""After so many tables whose storage does not answer, no further one of their catalog is read for one question."""
LOOK_READS_MAX: Final = 200
"""Manifest lists and manifests read at most behind one look at a table; the next one goes on from there."""
ASKED_READS_MAX: Final = 5_000
"""As many as that of one table to answer a question right before a delete."""
READ_AGAIN_MS: Final = 3_600_000
"""How soon all snapshots of a table are read again to see whether it needs files elsewhere no more, since some went."""
ASKED_S_MAX: Final = 60
"""How long a catalog and its changed tables may take to answer; without an answer, all its tables are unknown."""
NO_ANSWER: Final = Reason("no-answer", f"it did not answer within {ASKED_S_MAX} s")
TRIES_MAX: Final = 3
"""How often all is asked again when tables were committed to while they were read."""


class Registry:
    """The claims of all tables of all catalogs. Safe for use by several threads at once.

    Without a ``store``, a process knows what it has looked at itself. ``elsewhere`` asks which catalogs others have.
    """

    def __init__(
        self,
        catalogs: Mapping[str, Catalog],
        clock: Clock,
        rules: PlaceRules | None = None,
        store: SqlClaims | None = None,
        elsewhere: Callable[[], Sequence[Missing]] = tuple,
    ) -> None:
        self._catalogs, self._clock, self._rules = catalogs, clock, rules or PlaceRules()
        self._book, self.elsewhere = ClaimBook(store), elsewhere
        self._lock = self._book.lock
        self._unknown: defaultdict[str, set[TableName]] = defaultdict(set)
        """By catalog, tables that were listed, and nothing more is known of them."""
        self._why: dict[TableName, Reason] = {}
        self._listed_at: dict[str, Instant] = {}
        self._not_listed: dict[str, Reason] = {}
        self._version = 0
        self._judged: tuple[tuple[int, int, frozenset[TableName]], Ownership] | None = None
        self._beside: defaultdict[str, set[str]] = defaultdict(set)
        """By catalog, it and those that are not configured and answered for by it."""
        self._side_by_side = SideBySide(ASKED_S_MAX)

    def aliases_of(self, catalog: str) -> Aliases:
        """Names of storages as a catalog means them."""
        return self._rules.aliases_of(catalog)

    def saw(self, metadata: TableMetadata) -> None:
        """A table was just loaded. Raises ``Unavailable`` when the store does not answer."""
        self._load()
        with self._lock:
            self._note(metadata, self._former(metadata))

    def read(
        self, catalog: Catalog, metadata: TableMetadata, read: AlreadyRead, reads_max: int = LOOK_READS_MAX
    ) -> None:
        """Read in which places those snapshots of a table have files that are new, behind :meth:`saw`.

        What fails of that is kept as the reason why the table is not known.
        """
        keys = {snapshot.snapshot_id: key_of(snapshot) for snapshot in metadata.snapshots}
        present = frozenset(keys.values())
        with self._lock:
            former = self._to_be_kept(self._former(metadata), present)
        known = unpacked_keys(former.snapshots)
        lacking = frozenset(snapshot_id for snapshot_id, key in keys.items() if key not in known)
        reach, reason = Reach(catalog, metadata, lacking, read), None
        try:
            reach.go_on(reads_max)
        except IcewrightError as error:
            reason = Reason(error.code, error.message)
        with self._lock:
            seen = self._book.get(metadata.name)
            if seen is None or seen.metadata_location != metadata.metadata_location:
                return  # another look has seen it since, and reads on
            aliases = self._rules.aliases_of(metadata.name.catalog)
            places = {*former.places, *outside(metadata, aliases, reach.places)}
            known |= {keys[snapshot_id] for snapshot_id in reach.done}
            kept = known if places else known & present
            former = replace(former, gone=seen.gone, lost_at=seen.lost_at, lost_by=seen.lost_by)  # said meanwhile
            self._note(metadata, replace(former, places=tuple(sorted(places)), snapshots=packed_keys(kept)))
            if reason is not None:
                self._why[metadata.name] = reason

    def limits_of(self, catalog: str) -> tuple[str, ...]:
        """Where the tables of a catalog may lie, as an administrator said; none where nobody did."""
        return self._rules.allowed.get(catalog, ())

    def claim(self, name: TableName) -> Claim | None:
        """What was last seen of a table."""
        with self._lock:
            seen = self._book.get(name)
            return None if seen is None else seen.claim

    def namesakes(self, name: TableName, uuid: str) -> frozenset[TableName]:
        """Under which other names, in any catalog, the same table was seen.

        Raises ``Unavailable`` when the store does not answer.
        """
        self._load(of_others=True)
        with self._lock:
            return self._book.names_of(uuid.strip().lower()) - {name}

    def _former(self, metadata: TableMetadata) -> SeenClaim:
        """What was known of the table; of another one of its name nothing. What was a root still has files of it."""
        seen, aliases = self._book.get(metadata.name), self._rules.aliases_of(metadata.name.catalog)
        if seen is None or seen.claim.uuid != uuid_of(metadata):
            now = self._clock.now()
            return self._book.begun(claim(metadata, aliases), now)
        left = outside(metadata, aliases, seen.claim.roots)
        return replace(seen, places=tuple(sorted(left.union(seen.places))))

    def _to_be_kept(self, former: SeenClaim, present: frozenset[int]) -> SeenClaim:
        """What need not be read again. Places may have come out of use where snapshots went that knew them."""
        went = former.places and unpacked_keys(former.snapshots) - present
        if not went or within(READ_AGAIN_MS, former.read_since, self._clock.now()):
            return former
        return replace(former, places=(), snapshots="", read_since=self._clock.now())

    def _note(self, metadata: TableMetadata, known: SeenClaim) -> None:
        """A table as it is by this metadata, with what is known of its snapshots. Under the lock."""
        made = followed(claim(metadata, self._rules.aliases_of(metadata.name.catalog), known.places), self._rules.real)
        now, name = self._clock.now(), made.name
        is_read = unpacked_keys(known.snapshots).issuperset(map(key_of, metadata.snapshots))
        is_complete = is_read and not metadata.statistics_problem
        at = metadata.metadata_location
        seen = replace(known, claim=made, metadata_location=at, seen_at=now, is_complete=is_complete, gone_at=None)
        if not made.unplaced or seen.lost_at != at:  # where its files are is known, or is asked anew
            seen = replace(seen, lost_at=None, lost_by="")
        before = self._book.get(name)
        news = before is None or (before.claim, before.places, before.is_complete) != (made, seen.places, is_complete)
        self._book.put(seen, is_news=news)
        self._version += before is None or before.claim != made
        self._unknown[name.catalog].discard(name)
        self._why.pop(name, None)
        if metadata.statistics_problem:
            self._why[name] = Reason("statistics-damaged", metadata.statistics_problem)

    def declare_lost(self, name: TableName, declared_by: str) -> str:
        """Let a table that cannot be read keep no file, as long as its pointer is where it is now; that is returned.

        So it is with one whose location names no place. What it last claimed still counts, unless its catalog does not
        show it any more: then it is forgotten. Raises ``NotFound``, ``NotAllowed`` for one that can be read, and
        ``Unavailable`` where its catalog or the store does not answer.
        """
        self._load()
        catalog, before = self._catalogs.get(name.catalog), self._book.get(name)
        if catalog is None:
            raise NotFound(f"no catalog {name.catalog!r} is configured")
        read, missing = self._read_now(catalog, [name])
        if not missing and name not in read and before is not None and before.metadata_location:  # it is gone for good
            with self._lock:
                self._version += self._book.drop(name)
            self.keep(name)
            return before.metadata_location
        try:
            pointer = catalog.metadata_location(name)
        except Unreadable:
            pointer = ""
        except NotFound:
            if name not in catalog.pointers().tables:
                raise
            pointer = ""  # listed, and not described
        if name in read and not ((found := self.claim(name)) and found.unplaced):
            raise NotAllowed(f"{name} can be read: what it needs is known")
        with self._lock:
            seen = self._book.get(name) or SeenClaim(Claim(name, None, ()), "", self._clock.now())
            self._book.put(replace(seen, lost_at=pointer, lost_by=declared_by))
            self._unknown[name.catalog].discard(name)
            self._version += 1
        self.keep(name)
        return pointer

    def withdraw_lost(self, name: TableName) -> str:
        """A table that was declared lost, at the pointer that is returned, may need any file. Raises ``NotFound``."""
        self._load()
        with self._lock:
            seen = self._book.get(name)
            if seen is None or seen.lost_at is None:
                raise NotFound(f"{name} was not declared lost")
            if seen.metadata_location:
                self._book.put(replace(seen, lost_at=None, lost_by=""))
            else:
                self.gone(name)
                self._unknown[name.catalog].add(name)
        self.keep(name)
        return seen.lost_at

    def book(self) -> ClaimBook:
        """The claims as they are kept. Raises ``Unavailable`` when the store does not answer."""
        self._load()
        return self._book

    def failed(self, name: TableName, reason: Reason) -> None:
        """A table could not be loaded. What it last claimed still counts, as long as that is fresh."""
        with self._lock:
            self._why[name] = reason
            if name not in self._book:
                self._unknown[name.catalog].add(name)

    def gone(self, name: TableName) -> None:
        """There is no table of that name, or it is not shown to us any more."""
        with self._lock:
            self._unknown[name.catalog].discard(name)
            self._why.pop(name, None)
            self._version += self._book.retire(name, self._clock.now())

    def forget_gone(self, uuid: str) -> None:
        """A table that no catalog shows any more claims nothing."""
        with self._lock:
            gone = [seen.claim.name for seen in self._book if seen.gone_at is not None and seen.claim.uuid == uuid]
            self._version += sum(map(self._book.drop, gone))

    def listed(self, catalog: str, names: Collection[TableName], asked_at: Instant) -> None:
        """All tables of a catalog, as of some moment after ``asked_at``."""
        with self._lock:
            if asked_at < self._listed_at.get(catalog, 0) <= self._clock.now():
                return  # there is a later answer
            self._listed_at[catalog] = asked_at
            self._not_listed.pop(catalog, None)
            known = frozenset(names)
            self._version += sum(map(self._book.returned, known))
            for seen in self._book:
                name = seen.claim.name
                if name.catalog == catalog and name not in known and seen.seen_at < asked_at:
                    self.gone(name)
            self._unknown[catalog] = {name for name in names if name not in self._book}

    def keep(self, said_of: TableName | None = None) -> None:
        """Write down what has changed, which may be what was ``said_of`` a table. Raises as the book does."""
        self._book.keep(said_of)
        self._load(of_others=True)

    def ownership(self) -> Ownership:
        """All claims as they were last seen. Raises ``Unavailable`` when the store does not answer."""
        self._load(of_others=True)
        with self._lock:
            missing, judge = tuple(self._missing()), self._judge()
        return judge().without(missing)

    def _judge(self) -> Callable[[], Ownership]:
        """Judges all claims as they are now, which takes long where there are many. Under the lock."""
        self._version += self._book.drop_gone(self._clock.now())
        lost = frozenset(seen.claim.name for seen in self._book.lost())
        # The book counts itself what it takes over: another thread may judge before the one that asked for it goes on.
        key = self._version, self._book.taken_over, lost
        claims, others = self._book.claims(), self._book.others()

        def judged() -> Ownership:
            former = self._judged
            if former is not None and former[0] == key:
                return former[1]
            self._judged = key, (found := ownership(claims, (), self._rules, lost, others))
            return found

        return judged

    def ownership_now(self) -> Ownership:
        """All claims as of now: every catalog is asked where the pointers of all its tables are.

        Tables whose pointers moved are read. Whatever cannot be is missing, and so are catalogs that other servers
        alone have. Raises ``Unavailable`` when the store does not answer.
        """
        self._load(of_others=True)
        elsewhere = self.elsewhere()
        for tries_left in reversed(range(TRIES_MAX)):
            asked = self._side_by_side.ask(self._catalogs, self._ask, self._no_answer)
            with self._lock:
                moved = [
                    Missing(name.catalog, str(name), MOVED)
                    for one in asked
                    for name, location in one.pointers.items()
                    if not self._book.is_known(name, location)
                ]
                judge = self._judge()
            if not (moved and tries_left):
                break
        return judge().without([*elsewhere, *(missing for one in asked for missing in one.missing), *moved])

    def place_now(self, metadata: TableMetadata) -> Known[Place]:
        """What a table alone owns by :meth:`ownership_now`; it was itself loaded just now."""
        self._load()
        self.saw(metadata)
        return self.ownership_now().place(metadata.name)

    def users_now(self, uuid: str, folders: Collection[str]) -> Known[frozenset[TableName]]:
        """Which tables have this uuid, or a place or files at, above or below these folders, as :meth:`ownership_now`.

        Complete only where all tables of all catalogs are known.
        """
        return self.ownership_now().users(uuid, folders)

    def place_of(self, name: TableName) -> Known[Place]:
        """As :meth:`place_now`, of a table that is loaded for it; of one that is gone nothing is known.

        Raises what :meth:`icewright.catalogs.port.Catalog.load` raises but for that.
        """
        self._load()  # or what an earlier process knew of a table that is gone would be forgotten
        catalog = self._catalogs.get(name.catalog)
        try:
            if catalog is not None:
                return self.place_now(catalog.load(name))
        except NotFound:
            self.gone(name)
        return ownership((), (), self._rules).place(name)

    def _load(self, *, of_others: bool = False) -> None:
        """Take over what an earlier process saw, once; and what other servers have seen since then."""
        now = self._clock.now()

        def counts(seen: SeenClaim) -> bool:
            return seen.claim.name.catalog in self._catalogs or within(UNCONFIGURED_KEPT_MS, seen.seen_at, now)

        new = (*self._book.load(counts), *(self._book.take_over() if of_others else ()))
        with self._lock:
            for name in new:
                self._unknown[name.catalog].discard(name)

    def _missing(self) -> Iterator[Missing]:
        """What is not known as last seen. Under the lock."""
        now = self._clock.now()
        for catalog in self._catalogs:
            if not within(LISTING_FRESH_MS, self._listed_at.get(catalog), now):
                told = Reason("not-listed", "it has not been asked lately which tables it has")
                yield Missing(catalog, catalog, self._not_listed.get(catalog, told))
            for name in self._unknown[catalog]:
                yield Missing(catalog, str(name), self._why.get(name, UNREAD))
        for seen in self._book:
            name = seen.claim.name
            fresh = within(CLAIM_FRESH_MS, seen.seen_at, now)
            is_needed = name.catalog in self._catalogs and seen.lost_at is None and seen.gone_at is None
            if is_needed and not (fresh and seen.is_complete):
                yield Missing(name.catalog, str(name), self._why.get(name, UNREAD if seen.is_complete else HALF_READ))

    def _ask(self, catalog: Catalog) -> CatalogPointers:
        """Compare the pointers of a catalog's tables with what is known of them, and read those that moved."""
        asked_at = self._clock.now()
        try:
            shown = catalog.pointers()
        except IcewrightError as error:
            reason = Reason(error.code, error.message)
            with self._lock:
                self._listed_at.pop(catalog.name, None)
                self._not_listed[catalog.name] = reason
            return self._no_answer(catalog.name, reason)
        pointers, aliases = shown.tables, self._rules.aliases_of(catalog.name)
        made = (claim_of_other(*one, aliases) for one in sorted(shown.others.items()))
        others = tuple(followed(one, self._rules.real) for one in made)
        with self._lock:
            self._version += self._book.put_others(catalog.name, others, asked_at, self._clock.now())
            self._beside[catalog.name] |= {catalog.name, *(name.catalog for name in pointers)}
            for one in self._beside[catalog.name]:
                self.listed(one, [name for name in pointers if name.catalog == one], asked_at)
            known = frozenset(name for name, location in pointers.items() if self._book.is_known(name, location))
            for name in known:
                self._book.seen_again(name, asked_at)
            behind = [name for name in pointers if name not in known]
            lost = {name: self._book.get(name) for name in behind if self._book.is_lost(name, pointers[name])}
        read, missing = self._read_now(catalog, behind)
        with self._lock:
            unknown = [
                Missing(name.catalog, str(name), reason)
                for name, reason in missing.items()
                if not self._book.is_lost(name, pointers[name])
            ]
            # It is listed and not described, and is no Iceberg table, or was dropped since: that shows next time.
            vague = [name for name in behind if pointers[name] is None and name not in read and name not in missing]
            unknown += [Missing(name.catalog, str(name), UNREAD) for name in vague if name not in lost]
            for seen in (lost.get(name) for name in vague):
                if seen is not None:
                    self._book.put(seen)
        same = {name: at for name, at in pointers.items() if at is not None and name in known}
        return CatalogPointers({**same, **read}, tuple(unknown))

    def _no_answer(self, catalog: str, reason: Reason = NO_ANSWER) -> CatalogPointers:
        """A catalog that does not answer: until it has once, its tables of other formats may be anywhere."""
        with self._lock:
            anywhere = self._catalogs[catalog].has_other_formats and not self._book.knows_others(catalog)
        return CatalogPointers(missing=(Missing("" if anywhere else catalog, catalog, reason),))

    def _read_now(
        self, catalog: Catalog, behind: Iterable[TableName]
    ) -> tuple[dict[TableName, str], dict[TableName, Reason]]:
        """Read tables whose pointers have moved: where they are now, and which are not known; others are gone."""
        found: dict[TableName, str] = {}
        missing: dict[TableName, Reason] = {}
        away = 0
        for number, name in enumerate(behind):
            if number >= LOADED_MAX or away >= AWAY_MAX:
                missing[name] = NOT_YET
                continue
            try:
                metadata = catalog.load(name)
                self.saw(metadata)
                self.read(catalog, metadata, AlreadyRead(), ASKED_READS_MAX)
            except NotFound:
                self.gone(name)
                continue
            except IcewrightError as error:
                self.failed(name, Reason(error.code, error.message))
                missing[name] = Reason(error.code, error.message)
                away += isinstance(error, StorageUnavailable)
                continue
            with self._lock:
                if self._book.is_known(name, metadata.metadata_location):
                    found[name] = metadata.metadata_location
                else:
                    missing[name] = self._why.get(name, HALF_READ)
        return found, missing
