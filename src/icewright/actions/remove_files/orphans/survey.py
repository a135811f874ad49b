"""A listing against everything that a table needs, part by part: which files nothing needs, and whether to believe it.

Both sides come from elsewhere, and each may be wrong: a storage known by two names, a key that one client encodes,
a link. Where the two views disagree nothing is believed at all. Memory holds one part, and sums.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from icewright.actions.remove_files.orphans.metadata_anchors import MetadataAnchors
from icewright.actions.remove_files.orphans.metadata_files import is_metadata_file
from icewright.actions.remove_files.orphans.rules import (
    COMMIT_MS_MAX,
    Kept,
    OrphanRules,
    age_min_ms,
    flink_prefixes,
    is_evidence,
    partition_prefixes,
)
from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.inventory.footprint import Amount, distinct
from icewright.inventory.reference_bits import ReferenceBits
from icewright.model.actions.orphans import FoundFile, Mention, Sighting
from icewright.model.iceberg.locations import CanonicalPath, checksummed
from icewright.model.iceberg.path_aliasing import comparison_key
from icewright.model.iceberg.reachable_files import FileClass, ReachableFile
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.model import Place

MISSING_SHARE_MAX: Final = 0.01
"""Of the files that a table needs below a root: when more of them were not in the listing, nothing is believed."""
KNOWN_BEFORE: Final = 1
"""The bit of what snapshots need that were there before the listing began."""
_UNCOUNTED: Final = frozenset({FileClass.METADATA, FileClass.VERSION_HINT})
"""Needed files that may well not be there: hints that no catalog wrote, logs whose files another tool removed."""


def references_before(before: TableMetadata) -> ReferenceBits:
    """Tells what was needed before the listing from what came while it went on, which it need not have.

    What the table needs whatever its snapshots counts as new; metadata files come with every commit.
    """
    bits = {snapshot.snapshot_id: KNOWN_BEFORE for snapshot in before.snapshots}
    return ReferenceBits(refs={}, other_refs=0, expiries=(), of_snapshots=bits, refs_mask=0, everything=0)


@dataclass(slots=True)
class _Below:
    """What is needed below one root."""

    needed: int = 0
    missing: int = 0
    found: int = 0


@dataclass(slots=True)
class Survey:
    """Gathers what all parts of a spool tell together; asked for rules, or why there are none, after the last one."""

    table: TableMetadata
    place: Place
    as_of: Instant
    listing_is_complete: bool
    gone: Collection[CanonicalPath] = ()
    """Metadata files of tables that lay here before, and were declared gone."""
    listed: Amount = field(default_factory=Amount)
    needed: Amount = field(default_factory=Amount)
    needed_listed: Amount = field(default_factory=Amount)
    """What of the needed files was found, in the bytes that the storage says."""
    kept: dict[Kept, int] = field(default_factory=dict)
    anchors: MetadataAnchors = field(init=False)
    _below: dict[str, _Below] = field(init=False)
    _elsewhere: int = 0
    """Needed files below no root."""
    _existed_at: Instant | None = None
    _slowest_commit_ms: int = 0
    _disagreements: dict[str, Reason] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.anchors = MetadataAnchors(self.as_of, self.table.metadata_location)
        self._below = {root: _Below() for root in self.place.roots}

    def part(self, mentions: Iterable[Mention]) -> Iterator[FoundFile | Sighting]:
        """What nothing needs of one part: files, each followed by its last sighting where there was one.

        A sighting of what was not listed comes alone, and only where the listing may have missed it.
        """
        sides = _sides(mentions)
        for reason in sides.collisions:
            self._disagree(reason)
        needed = {file.path: file for file in distinct(sides.needed)}
        self.needed += _amount(file.size_bytes for file in needed.values())
        self.listed += _amount(found.listed.size_bytes for found in sides.found.values())
        for file in needed.values():
            self._count_needed(file, sides.found.get(file.path))
        self._see(one for one in sides.found.values() if one.path not in self.gone)
        unneeded = [path for path in sides.found if path not in needed]
        alike = self._alike(unneeded, needed, sides.found)
        stays = _like_needed(unneeded, needed).union(alike, sides.changed)
        for path in _by_file(unneeded):
            if checksummed(path) in stays:
                self.keep(Kept.CHECKSUM)
            elif path in stays:
                self.keep(Kept.ALIKE if path in alike else Kept.CHANGED)
            else:
                yield sides.found[path]
                if (sighting := sides.sightings.get(path)) is not None:
                    yield sighting
        if not self.listing_is_complete:
            absent = sides.sightings.keys() - sides.found.keys() - needed.keys()
            yield from (sides.sightings[path] for path in absent)

    def _see(self, found: Iterable[FoundFile]) -> None:
        """What the listing has of the table's metadata files, needed or not."""
        for one in found:
            self.anchors.see(one)
            if is_metadata_file(one.path):
                self._witness(one.listed.modified_at)

    def keep(self, why: Kept) -> None:
        """Count an unneeded file that stays."""
        self.kept[why] = self.kept.get(why, 0) + 1

    def disagreement(self) -> Reason | None:
        """Why listing and metadata are not to be believed together; None when they are."""
        found = next(iter(self._disagreements.values()), None)
        if found is not None:
            return found
        for root, below in self._below.items():
            if below.missing > MISSING_SHARE_MAX * below.needed:
                text = f"{below.missing:,} of {below.needed:,} files that the table needs below {wording.quoted(root)}"
                figures = {"missing": below.missing, "needed": below.needed}
                return Reason("views-disagree", f"{text} are not in the listing", figures)
        if not any(below.found for below in self._below.values()):
            return Reason("nothing-in-common", "not one file that the table needs is in the listing")
        return None

    def rules(
        self, *, asked_age_ms: int, existed_before: Instant | None, quarantine: tuple[str, ...] = ()
    ) -> OrphanRules:
        """The rules for each unneeded file; ``existed_before`` is what earlier passes knew of the table's age."""
        all_below = self._below.values()
        return OrphanRules(
            place=self.place,
            as_of=self.as_of,
            age_min_ms=age_min_ms(asked_age_ms, self.table, self._slowest_commit_ms),
            existed_at=min((at for at in (self._existed_at, existed_before) if at is not None), default=None),
            known_roots=tuple(root for root, below in self._below.items() if below.found),
            anchors=self.anchors,
            quarantine=quarantine,
            jobs=flink_prefixes(self.table),
            fields=partition_prefixes(self.table),
            all_found=self.listing_is_complete and not self._elsewhere and not any(b.missing for b in all_below),
            gone=self.gone,
        )

    def _alike(
        self,
        unneeded: Sequence[CanonicalPath],
        needed: Mapping[CanonicalPath, ReachableFile],
        found: Collection[CanonicalPath],
    ) -> frozenset[CanonicalPath]:
        """Unneeded files that a needed one is like. When that one itself was not found, this may be it."""
        by_key: dict[str, list[CanonicalPath]] = {}
        for path in unneeded:
            by_key.setdefault(comparison_key(path), []).append(path)
        alike: set[CanonicalPath] = set()
        for file in needed.values() if by_key else ():
            if (like := by_key.get(comparison_key(file.path))) is not None:
                alike.update(like)
                if file.path not in found and file.file_class is not FileClass.VERSION_HINT:
                    self._disagree(_other_spelling(file.path))
        return frozenset(alike)

    def _count_needed(self, file: ReachableFile, found: FoundFile | None) -> None:
        below = next((self._below[root] for root in self.place.roots if file.path.startswith(root)), None)
        if below is None:
            self._elsewhere += file.file_class is not FileClass.VERSION_HINT
            return
        if found is not None:
            below.found += 1
            self.needed_listed += Amount(1, found.listed.size_bytes)
            if self._witness(found.listed.modified_at) and file.added_at is not None:
                took_ms = file.added_at - (found.listed.modified_at or 0)
                if took_ms <= COMMIT_MS_MAX:
                    self._slowest_commit_ms = max(self._slowest_commit_ms, took_ms)
        if file.file_class not in _UNCOUNTED and file.kept_by & KNOWN_BEFORE:
            below.needed += 1
            below.missing += found is None

    def _witness(self, modified_at: Instant | None) -> bool:
        """Whether a file that is the table's, needed or not, has a time that tells that the table was there by then."""
        if modified_at is None or not is_evidence(modified_at, self.as_of):
            return False
        self._existed_at = min(self._existed_at or modified_at, modified_at)
        return True

    def _disagree(self, reason: Reason) -> None:
        self._disagreements.setdefault(reason.code, reason)


@dataclass(slots=True)
class _Sides:
    needed: list[ReachableFile] = field(default_factory=list)
    found: dict[CanonicalPath, FoundFile] = field(default_factory=dict)
    sightings: dict[CanonicalPath, Sighting] = field(default_factory=dict)
    changed: set[CanonicalPath] = field(default_factory=set)
    collisions: list[Reason] = field(default_factory=list)


def _sides(mentions: Iterable[Mention]) -> _Sides:
    """Who says what in one part."""
    sides = _Sides()
    for mention in mentions:
        match mention:
            case ReachableFile():
                sides.needed.append(mention)
            case Sighting():
                sides.sightings[mention.path] = mention
            case FoundFile():
                before = sides.found.setdefault(mention.path, mention)
                if before.listed.path != mention.listed.path:
                    both = f"{wording.quoted(before.listed.path)} and {wording.quoted(mention.listed.path)}"
                    sides.collisions.append(Reason("spellings-collide", f"{both} would be the same object"))
                elif before != mention:
                    sides.changed.add(mention.path)
    return sides


def _like_needed(
    unneeded: Iterable[CanonicalPath], needed: Mapping[CanonicalPath, ReachableFile]
) -> frozenset[CanonicalPath]:
    """The files of which there are checksums, listed or not, that the table needs, or needs one like them."""
    files = {file for path in unneeded if (file := checksummed(path)) is not None}
    like = {comparison_key(path) for path in needed} if files else set()
    return frozenset(file for file in files if comparison_key(file) in like)


def _by_file(paths: Iterable[CanonicalPath]) -> list[CanonicalPath]:
    """Paths such that the checksum of a file comes right behind the file, where both are there."""
    return sorted(paths, key=lambda path: (checksummed(path) or path, checksummed(path) is not None))


def _amount(sizes: Iterable[int | None]) -> Amount:
    known = list(sizes)
    return Amount(len(known), sum(size or 0 for size in known), known.count(None))


def _other_spelling(path: CanonicalPath) -> Reason:
    said = f"{wording.quoted(path)} is needed and not in the listing, which has a file that may be it"
    return Reason("spelled-otherwise", f"{said} by another name of its storage, or another spelling")


def counts(kept: Mapping[Kept, int]) -> dict[str, int]:
    """What stays by its codes, for people and programs."""
    return {why.value: kept[why] for why in Kept if kept.get(why)}
