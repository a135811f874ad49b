"""One pass over one table in search of orphan files: list first, read its metadata after, subtract.

What is committed while the listing goes on is then needed and not listed, which harms nobody; the other way round it
would be taken for garbage. A listing that breaks off makes fewer orphans. Metadata of which anything is not known
makes none. Nothing is deleted here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from icewright.actions.remove_files.orphans.check import OrphanEvidence, check_orphans
from icewright.actions.remove_files.orphans.foreign_metadata import (
    ForeignMetadata,
    MetadataUuids,
    TablesAround,
    metadata_elsewhere,
)
from icewright.actions.remove_files.orphans.plan import SIGHTINGS_MAX, Selection, predict, remove_orphan_files
from icewright.actions.remove_files.orphans.rules import other_format
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.remove_files.orphans.survey import Survey, counts, references_before
from icewright.catalogs.local_spool import DiskSpool, OpenSpool
from icewright.catalogs.objects import Objects
from icewright.catalogs.table_files_port import TableFiles
from icewright.core import wording
from icewright.core.completeness import Complete, Gap, Known, Partial
from icewright.core.errors import (
    InvalidLocation,
    NotAllowed,
    StorageUnavailable,
    TableReplaced,
    Unreadable,
    Unsupported,
)
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.inventory.footprint import Amount
from icewright.model.actions.orphans import FinishedPass, FoundFile, Sighting
from icewright.model.actions.remove_files import (
    NO_QUARANTINE,
    OrphanPolicy,
    RemoveOrphanFiles,
    RemoveOrphanFilesPrediction,
)
from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.objects import Listed, OddEntry
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.model import Place
from icewright.ownership.reachable import Progress, Reachable, reachable
from icewright.plans.repository import refuse_wrong

PLACE_UNKNOWN: Final = "place-unknown"
"""Why nothing is said of any file while not all tables are known."""
_PORTION: Final = 5_000
"""SqlSightings handed to the store at a time: some 170 kB there."""


@dataclass(frozen=True, slots=True)
class OrphansRefused:
    """Nothing is said of any file, and nothing is remembered of this pass; ``gaps`` are what was not known."""

    reason: Reason
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class OrphansFound:
    """A pass that came to its end. ``action`` is what may go by now, None where nothing may.

    ``listing_gaps`` are roots that could not be listed to their ends: there may be more below them. ``kept`` counts
    unneeded files that stay, by the code of the reason. ``graces_since`` is when the clock jumped last, 0 for never:
    what was seen before it counts as seen then. ``unheld`` is why files could not wait in any quarantine.
    ``orphans`` are all that may go, in this action or later ones.
    """

    table: TableMetadata
    finished: FinishedPass
    listing_gaps: tuple[Gap, ...]
    listed: Amount
    needed: Amount
    orphans: Amount
    kept: Mapping[str, int]
    age_min_ms: int
    graces_since: Instant
    unheld: Reason | None
    action: RemoveOrphanFiles | None
    prediction: RemoveOrphanFilesPrediction | None


OrphanPass: TypeAlias = OrphansFound | OrphansRefused
_Gone: TypeAlias = Mapping[CanonicalPath, str]
"""Metadata files of tables of before, and their uuids."""


class _Refusal(Exception):
    def __init__(self, reason: Reason, gaps: tuple[Gap, ...] = ()) -> None:
        super().__init__(reason.text)
        self.refused = OrphansRefused(reason, gaps)


class OrphanFinder:
    """Looks for the orphan files of the tables of one catalog.

    ``aliases`` are those that the places were told by. ``uuids`` remembers whose metadata was found in listings.
    ``quarantine`` are folders in canonical form, with a slash at their ends, where removed files wait; ``limits`` those
    below which alone tables of the catalog may lie.
    """

    def __init__(
        self,
        files: TableFiles,
        objects: Objects,
        sightings: SqlSightings,
        open_spool: OpenSpool,
        *,
        aliases: Aliases,
        uuids: MetadataUuids,
        quarantine: tuple[str, ...] = (),
        limits: tuple[str, ...] = (),
        graces_since: Callable[[], Instant] = lambda: 0,
        can_hold: Callable[[CanonicalPath], None] = lambda _path: None,
        progress: Progress = lambda _step, _done, _total: None,
    ) -> None:
        self._files, self._objects, self._sightings = files, objects, sightings
        self._open_spool, self._aliases, self._uuids = open_spool, aliases, uuids
        self._quarantine, self._progress, self._graces_since = quarantine, progress, graces_since
        self._can_hold = can_hold
        self._around = TablesAround(objects, uuids, aliases, limits)

    def look(
        self, name: TableName, place_of: Callable[[TableMetadata], Known[Place]], policy: OrphanPolicy
    ) -> OrphanPass:
        """One pass. ``place_of`` is asked what the table alone owns, before the listing and after it.

        Raises ``TableReplaced`` when the name belongs to another table by the end of the listing, ``Conflict`` when
        another pass over the table has begun meanwhile, and ``Unavailable`` where catalog, storage or store stop
        answering: as if there had been no pass. Raises ``PlanRejected`` when what may go is not what the rules say,
        told in another way.
        """
        before = self._files.roots(name).metadata
        try:
            place = _owned(place_of(before), before)
            listed_at, _ = self._clocks(place)
            with self._open_spool(0) as listed:
                files, gaps, gone = self._list(before, place, listed)
                filled = self._filled(listed, files, before.table_id)
                with reachable(
                    self._files,
                    name,
                    lambda _after: references_before(before),
                    filled,
                    aliases=self._aliases,
                    progress=self._progress,
                ) as known:
                    needed = _complete(known)
                    _require_same(before, needed.value.metadata, place, place_of)
                    found = self._subtract(needed, place, policy, listed_at, gaps, gone)
                    self._check(found, needed, place, listed, gone)
                    return found
        except _Refusal as refusal:
            return refusal.refused

    def _list(self, before: TableMetadata, place: Place, listed: DiskSpool) -> tuple[int, tuple[Gap, ...], _Gone]:
        """Everything below the roots, put down as it comes: how many files, and which folders are not all of it.

        Metadata of the table that lies elsewhere is looked at as well. With it all come the metadata files of tables
        that lay there before and were declared gone.
        """
        gaps: list[Gap] = []
        files = 0
        foreign = ForeignMetadata(self._objects, place, self._uuids, before, self._aliases)
        for root in place.roots:
            try:
                for entry in foreign.watched(self._objects.list(CanonicalPath(root))):
                    listed.add(self._found(root, entry))
                    files += 1
            except (StorageUnavailable, Unreadable) as error:
                gaps.append(Gap(root, Reason(error.code, error.message)))
        for folder in metadata_elsewhere(before, self._aliases, place.roots):
            try:
                for entry in self._objects.list_folder(CanonicalPath(folder)):
                    foreign.look(entry)
            except (StorageUnavailable, Unreadable, Unsupported, InvalidLocation) as error:
                gaps.append(Gap(folder, Reason(error.code, error.message)))
        _owned_alone(foreign.place())
        if (reason := self._around.refusal(place)) is not None:
            raise _Refusal(reason)
        return files, tuple(gaps), foreign.gone()

    def _found(self, root: str, entry: Listed) -> FoundFile:
        if isinstance(entry, OddEntry):
            said = f"{wording.quoted(entry.path)}: {entry.reason.text}"
            raise _Refusal(Reason("odd-entry", f"below a root there is {said}"))
        path = _canonical(self._aliases, entry.path)
        if not path.startswith(root):
            raise _Refusal(Reason("outside-root", f"a listing of {root!r} has {wording.quoted(path)}"))
        if (other := other_format(path, root)) is not None:
            said = f"{wording.quoted(path)} is of a table of {other}, which needs files of its own"
            raise _Refusal(Reason("other-table-format", said))
        return FoundFile(path, entry)

    def _filled(self, listed: DiskSpool, files: int, table_id: TableId) -> OpenSpool:
        """Opens spools that have the listing and the last sightings in them already."""
        last = self._sightings.finished(table_id)

        @contextmanager
        def opened(expected: int) -> Iterator[DiskSpool]:
            remembered = 0 if last is None else last.files
            with self._open_spool(expected + files + remembered) as spool:
                for part in listed.parts():
                    for mention in part:
                        spool.add(mention)
                for sighting in self._sightings.sightings(table_id):
                    spool.add(sighting)
                yield spool

        return opened

    def _subtract(
        self,
        needed: Complete[Reachable],
        place: Place,
        policy: OrphanPolicy,
        listed_at: Instant,
        gaps: tuple[Gap, ...],
        gone: _Gone,
    ) -> OrphansFound:
        """What nothing needs; remembered, and planned where it has been so for long enough."""
        table = needed.value.metadata
        as_of, seen_at = self._clocks(place)
        graces_since = self._graces_since()
        last = self._sightings.finished(table.table_id)
        survey = Survey(table, place, as_of, listing_is_complete=not gaps, gone=gone.keys())
        with self._open_spool(0) as unneeded:
            remembered = 0
            for part in needed.value.spool.parts():
                for one in survey.part(part):
                    unneeded.add(one)
                    remembered += isinstance(one, Sighting)
            if (reason := survey.disagreement()) is not None:
                raise _Refusal(reason, gaps)
            rules = survey.rules(
                asked_age_ms=policy.age_min_ms,
                existed_before=None if last is None else last.existed_at,
                quarantine=self._quarantine,
            )
            selection = Selection(survey, rules, seen_at, SIGHTINGS_MAX - remembered, graces_since)
            number = self._sightings.begin(table.table_id)
            found = (one for part in unneeded.parts() for one in part if isinstance(one, FoundFile | Sighting))
            for portion in _portions(selection.sightings(found)):
                self._sightings.add(table.table_id, number, portion)
        finished = FinishedPass(
            number=number,
            finished_at=self._sightings.now(),
            listing_is_complete=not gaps,
            files=selection.remembered.files,
            size_bytes=selection.remembered.size_bytes,
            existed_at=rules.existed_at,
            seen=selection.seen,
            age_min_ms=rules.age_min_ms,
        )
        of_before = tuple(sorted(set(gone.values())))
        action = None
        if not gaps:  # what was not listed may be another table's metadata, by which nothing here would go
            action = remove_orphan_files(selection, policy.budget, min(listed_at, as_of), of_before)
        self._sightings.finish(table.table_id, finished)
        return OrphansFound(
            table=table,
            finished=finished,
            listing_gaps=gaps,
            listed=survey.listed,
            needed=survey.needed,
            orphans=selection.orphans,
            kept=counts(survey.kept),
            age_min_ms=rules.age_min_ms,
            graces_since=graces_since,
            unheld=self._unheld(place),
            action=action,
            prediction=None if action is None else predict(selection, action),
        )

    def _check(
        self, found: OrphansFound, needed: Complete[Reachable], place: Place, listed: DiskSpool, gone: _Gone
    ) -> None:
        if found.action is None:
            return
        evidence = OrphanEvidence(
            table=found.table,
            place=place,
            needed=needed,
            listed=(one for part in listed.parts() for one in part if isinstance(one, FoundFile)),
            sightings=self._sightings.sightings(found.table.table_id),
            aliases=self._aliases,
            quarantine=self._quarantine,
            gone=gone,
            listing_is_complete=found.finished.listing_is_complete,
        )
        wrong = check_orphans(found.action, evidence)
        refuse_wrong(f"what is said to be orphan files of {found.table.name} is not", wrong)

    def _unheld(self, place: Place) -> Reason | None:
        """Why files below a root could not be moved into a quarantine: told by the first pass, not when they go."""
        for root in place.roots:
            try:
                self._can_hold(CanonicalPath(f"{root}any"))
            except (NotAllowed, Unsupported) as error:
                hint = "" if error.hint is None else f": {error.hint}"
                return Reason(NO_QUARANTINE, f"nothing could be removed: {error.message}{hint}")
        return None

    def _clocks(self, place: Place) -> tuple[Instant, Instant]:
        """The earliest and the latest of the store's clock and those of the storages.

        A file is as old as the earliest makes it, and its first sighting as late as the latest: a clock that is wrong
        makes files younger.
        """
        clocks = [self._sightings.now(), *(self._objects.now(CanonicalPath(root)) for root in place.roots)]
        return min(clocks), max(clocks)


def _owned(known: Known[Place], table: TableMetadata) -> Place:
    """What this very table owns alone."""
    match known:
        case Partial(gaps=gaps):
            raise _Refusal(_place_unknown(gaps, known.gaps_count), gaps)
        case Complete(value=place):
            pass
    if not table.has_uuid or place.uuid is None or place.uuid.lower() != table.table_id.uuid.lower():
        raise _Refusal(Reason("place-not-owned", f"the place is that of table {place.uuid}"))
    return _owned_alone(place)


def _place_unknown(gaps: Sequence[Gap], count: int) -> Reason:
    """Why it is not known whose place it is: the first table or catalog that keeps it, by name."""
    first = f"{wording.cut(gaps[0].what)} is not known ({gaps[0].reason.text})" if gaps else "a table is not known"
    others = f", nor are {count - 1:,} others" if count > 1 else ""
    return Reason(PLACE_UNKNOWN, f"{first}{others}, and may keep files here", {"unknown": count})


def _owned_alone(place: Place) -> Place:
    if not place.roots:
        said = "; ".join(reason.text for reason in place.findings) or "it owns no place"
        raise _Refusal(Reason("place-not-owned", f"the table owns no place alone: {said}"))
    for root in place.roots:
        if not root.endswith("/") or root.endswith("//"):
            raise _Refusal(Reason("place-not-owned", f"{wording.quoted(root)} is no folder"))
    return place


def _complete(known: Known[Reachable]) -> Complete[Reachable]:
    if isinstance(known, Partial):
        what = wording.count(known.gaps_count, "thing")
        raise _Refusal(Reason("not-all-known", f"{what} that the table may need could not be read"), known.gaps)
    return known


def _require_same(
    before: TableMetadata, after: TableMetadata, place: Place, place_of: Callable[[TableMetadata], Known[Place]]
) -> None:
    """Whether it is still the table that was listed, in the place that was listed."""
    if after.table_id != before.table_id:
        raise TableReplaced(f"table {before.name} was replaced while it was listed")
    found = _owned(place_of(after), after)
    if (found.roots, found.gone) != (place.roots, place.gone):
        raise _Refusal(Reason("place-changed", "what the table owns changed while it was listed"))


def _canonical(aliases: Aliases, path: CanonicalPath) -> CanonicalPath:
    try:
        return aliases.canonical(path)
    except InvalidLocation as error:
        raise _Refusal(Reason("outside-root", f"the listing has {wording.quoted(path)}, which is no path")) from error


def _portions(sightings: Iterable[Sighting]) -> Iterator[list[Sighting]]:
    portion: list[Sighting] = []
    for sighting in sightings:
        portion.append(sighting)
        if len(portion) == _PORTION:
            yield portion
            portion = []
    if portion:
        yield portion
