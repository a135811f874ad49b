"""Files that nothing was found to need: as a listing has them, and as they are remembered from pass to pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from icewright.core.times import Instant
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import ListedObject
from icewright.model.iceberg.reachable_files import ReachableFile


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file in a listing. ``path`` is what it is compared by, ``listed.path`` what it is called where it is."""

    path: CanonicalPath
    listed: ListedObject


@dataclass(frozen=True, slots=True)
class Sighting:
    """An object that nothing needed whenever we looked, since ``first_seen_at`` by the store's clock.

    Size, time, etag and version are as it was seen: an object that differs in one of them is another one, whose
    sightings begin again. ``passes`` counts the passes that saw all there was to see, the first one included.
    """

    path: CanonicalPath
    size_bytes: int
    modified_at: Instant | None
    etag: str | None
    version_id: str | None
    first_seen_at: Instant
    last_seen_at: Instant
    passes: int

    @classmethod
    def first(cls, path: CanonicalPath, listed: ListedObject, at: Instant, passes: int) -> Sighting:
        """The first one of an object."""
        return cls(path, listed.size_bytes, listed.modified_at, listed.etag, listed.version_id, at, at, passes)

    def is_of(self, listed: ListedObject) -> bool:
        """Whether the object that is there now is the one that was seen."""
        seen = (self.size_bytes, self.modified_at, self.etag, self.version_id)
        return seen == (listed.size_bytes, listed.modified_at, listed.etag, listed.version_id)

    def since(self, at: Instant, now: Instant) -> Sighting:
        """As if it had been seen first at ``at``, in no pass, where that is later: the clock jumped then.

        What was seen later than ``now`` was seen before the clock was set back.
        """
        first_seen_at = max(at, min(self.first_seen_at, now))
        return self if first_seen_at == self.first_seen_at else replace(self, first_seen_at=first_seen_at, passes=0)

    def again(self, at: Instant, passes: int) -> Sighting:
        """One more, in a pass that counts for so many; the clock of the store may have been set back."""
        return replace(self, last_seen_at=max(at, self.last_seen_at), passes=self.passes + passes)


Mention: TypeAlias = ReachableFile | FoundFile | Sighting
"""What a spool may hold."""


@dataclass(frozen=True, slots=True)
class SeenFiles:
    """So many files of so many bytes."""

    files: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SeenOrphans:
    """What a pass saw without anything that needs it, each file in exactly one of the three; and since when.

    ``once``: in too few complete passes so far. ``waiting``: in enough of them, and not for long enough.
    ``removable``: it may go by now. ``first_seen_at`` is of the file that has waited for the longest time.
    """

    once: SeenFiles = SeenFiles()
    waiting: SeenFiles = SeenFiles()
    removable: SeenFiles = SeenFiles()
    first_seen_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class FinishedPass:
    """The last pass over a table that came to its end.

    ``files`` and ``size_bytes`` are what was seen without anything that needs it, and may go one day; ``seen`` says
    how far these are, None where a pass of an earlier version did not tell. ``existed_at`` is the earliest instant at
    which the table is known to have had files, over all passes.
    """

    number: int
    finished_at: Instant
    listing_is_complete: bool
    files: int
    size_bytes: int
    existed_at: Instant | None
    seen: SeenOrphans | None = None
    age_min_ms: int | None = None
    """How old a file had to be to go; None where a pass of an earlier version did not tell."""
