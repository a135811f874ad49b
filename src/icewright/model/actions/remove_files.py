"""Removing orphan files, and files of expired snapshots: the actions, their figures, and what each would bring.

An orphan is a file below a table's own roots that nothing in its metadata names, and that was seen so again and again
for longer than any writer takes to commit. The action has what is known of each of them; whoever carries it out
compares that with what is there, and looks once more whether the table needs it by then.

Files of expired snapshots are what snapshots needed that expiries of ours took, and nothing needs any more; no listing
is asked for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, Literal

from icewright.core.times import Instant
from icewright.model.access.permissions import Permission
from icewright.model.actions.deletion import (
    BUDGET_FILES,
    BUDGET_PERCENT,
    GRACE_FLOOR_MS,
    ORPHAN_GRACE_MS,
    Candidate,
    Cause,
)
from icewright.model.actions.traits import ActionTraits, RunsOn
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import ListedObject

_DAY_MS: Final = 24 * 3_600_000

AGE_MIN_MS: Final = ORPHAN_GRACE_MS
"""How long a file is left alone where nobody says otherwise: after it was written, and after it was first seen."""
AGE_FLOOR_MS: Final = GRACE_FLOOR_MS[Cause.ORPHAN]
"""The least that anybody can ask for. A lower number is raised to it, wherever it comes from."""
FLINK_AGE_MIN_MS: Final = 14 * _DAY_MS
"""The least for tables that Flink writes: what a checkpoint holds is not in any snapshot yet."""
PASSES_MIN: Final = 2
"""In how many complete passes a file was seen without anything that needs it, the last one included."""
FILES_MAX: Final = 50_000
"""The most files of one action; what is left over is for the next one."""

REFUSALS: Final = frozenset(
    {
        "place-unknown",
        "place-not-owned",
        "place-changed",
        "not-all-known",
        "odd-entry",
        "outside-root",
        "other-table-format",
        "spelled-otherwise",
        "spellings-collide",
        "views-disagree",
        "nothing-in-common",
    }
)
"""Why a search tells nothing of any file: as long as that is so, nothing can be removed."""
NO_QUARANTINE: Final = "no-quarantine"
"""Why nothing can be removed though files were found: nowhere could they wait."""


@dataclass(frozen=True, slots=True)
class OrphanBudget:
    """What may be removed in one run without a person: the lesser of a share of the table's bytes and of files.

    Neither can be raised: beyond what is the usual, the Deleter begins nothing that nobody has approved.
    """

    share_of_bytes: float = BUDGET_PERCENT / 100
    files: int = BUDGET_FILES

    @property
    def files_max(self) -> int:
        """So many files."""
        return min(max(self.files, 0), BUDGET_FILES)

    def bytes_of(self, table_bytes: int) -> int:
        """The share of a table whose reachable files are of so many bytes."""
        asked = int(table_bytes * min(max(self.share_of_bytes, 0.0), 1.0))
        return min(asked, table_bytes * BUDGET_PERCENT // 100)


@dataclass(frozen=True, slots=True)
class OrphanPolicy:
    """What an owner may ask for. ``age_min_ms`` below :data:`AGE_FLOOR_MS` is raised to that."""

    age_min_ms: int = AGE_MIN_MS
    budget: OrphanBudget = field(default_factory=OrphanBudget)


class Doubt(StrEnum):
    """Why a file goes only after a person has seen and approved it; the codes that people see."""

    UNFAMILIAR = "unfamiliar-name"
    """No writer at hand calls its files so: it may be anybody's."""
    GONE_TABLE = "of-a-gone-table"
    """A table lay here before that was declared gone: the file is of either of the two."""
    NOTHING_KNOWN = "nothing-known-here"
    """All that the table needs was found below its other roots: no file here was ever seen to be the table's."""
    BEFORE_TABLE = "older-than-the-table"
    """Older than any file that is known of the table, as what a full refresh has left is."""


@dataclass(frozen=True, slots=True)
class OrphanFile:
    """One orphan, with all that tells it from another object at the same path.

    ``path`` is the one that the listing gave: the only one that may be deleted. ``modified_at``, ``etag`` and
    ``version_id`` are as listed. ``first_seen_at`` is by the store's clock; ``passes`` are the complete passes since
    then that found this very object and nothing that needs it. With a ``doubt`` a person has to approve it.
    """

    path: str
    size_bytes: int
    modified_at: Instant
    etag: str | None
    version_id: str | None
    first_seen_at: Instant
    passes: int
    doubt: Doubt | None = None

    @property
    def candidate(self) -> Candidate:
        """As the Deleter takes it."""
        listed = ListedObject(CanonicalPath(self.path), self.size_bytes, self.modified_at, self.etag, self.version_id)
        return Candidate(listed, self.first_seen_at)


@dataclass(frozen=True, slots=True)
class RemoveOrphanFilesFigures:
    """What lists show of the action: everything but its files, which may be many thousands."""

    kind: ClassVar[Literal["remove_orphan_files"]] = "remove_orphan_files"
    base_snapshot_id: int | None
    files: int
    size_bytes: int
    age_min_ms: int
    roots: tuple[str, ...]
    needs_approval: bool


@dataclass(frozen=True, slots=True)
class RemoveOrphanFiles:
    """Remove these files, each only while it is still what it was and nothing needs it.

    ``roots`` are the places that the table alone owns, each with a slash at its end; every file is below one of them.
    ``base_metadata_location`` is the metadata file that nothing of them was reachable from. ``listed_at`` is when the
    listing began and ``as_of`` when ages were told, both by the earliest of the clocks at hand; every file was written
    and first seen at least ``age_min_ms`` before that. ``orphan_files`` and ``orphan_bytes`` are all that may go by
    these rules, of which ``files`` are the first by when they were first seen; with more than ``budget_files``, or
    ``budget_bytes``, and with files in doubt, a person has to approve. ``budget_bytes`` is a share of what was listed
    of the table's files, whatever its manifests say of them. ``gone`` are the uuids of tables that lay here before and
    were declared gone: a file may have been of one of them.
    """

    kind: ClassVar[Literal["remove_orphan_files"]] = "remove_orphan_files"
    base_metadata_location: str
    base_snapshot_id: int | None
    roots: tuple[str, ...]
    files: tuple[OrphanFile, ...]
    listed_at: Instant
    as_of: Instant
    age_min_ms: int
    orphan_files: int
    orphan_bytes: int
    budget_files: int
    budget_bytes: int
    gone: tuple[str, ...] = ()

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Its files as the Deleter takes them."""
        return tuple(file.candidate for file in self.files)

    @property
    def listed_table_bytes(self) -> int:
        """What of the table's files was listed, in bytes, as far as the budget tells."""
        return self.budget_bytes * 100 // BUDGET_PERCENT

    @property
    def size_bytes(self) -> int:
        """Bytes of the files of this action."""
        return sum(file.size_bytes for file in self.files)

    @property
    def needs_approval(self) -> bool:
        """Whether a person has to approve: it is beyond the budget, or some of its files are in doubt."""
        return self.is_beyond_budget or any(file.doubt is not None for file in self.files)

    @property
    def is_beyond_budget(self) -> bool:
        """Whether there are more orphans than may go without a person, in this action or left for the next."""
        return self.orphan_files > self.budget_files or self.orphan_bytes > self.budget_bytes

    @property
    def figures(self) -> RemoveOrphanFilesFigures:
        """The action without its files."""
        return RemoveOrphanFilesFigures(
            base_snapshot_id=self.base_snapshot_id,
            files=len(self.files),
            size_bytes=self.size_bytes,
            age_min_ms=self.age_min_ms,
            roots=self.roots,
            needs_approval=self.needs_approval,
        )


@dataclass(frozen=True, slots=True)
class RemoveOrphanFilesPrediction:
    """What carrying out the action would bring.

    ``listed_files`` are all below the roots, ``reachable_files`` all that the table needs, wherever. ``kept`` counts
    unneeded files that stay, by the code of the reason. ``listing_is_complete``: whether all of the roots could be
    listed; more may be found when it is not. ``left_for_later`` may go too, and are beyond the size of one action.
    ``call`` is the Spark statement that comes nearest.
    """

    kind: ClassVar[Literal["remove_orphan_files"]] = "remove_orphan_files"
    files: int
    size_bytes: int
    listed_files: int
    listed_bytes: int
    reachable_files: int
    reachable_bytes: int
    kept: Mapping[str, int]
    listing_is_complete: bool
    left_for_later: int
    needs_approval: bool
    call: str


@dataclass(frozen=True, slots=True)
class RemoveOrphanFilesRequest:
    """Look for orphan files of a table now, and plan what may go of them.

    ``older_than`` is an age as an ISO-8601 duration (``P7D``); what is not said, the table's policy says. No age is
    below the floor.
    """

    kind: ClassVar[Literal["remove_orphan_files"]] = "remove_orphan_files"
    older_than: str | None = None


REMOVE_ORPHAN_FILES_TRAITS: Final = ActionTraits(
    RemoveOrphanFiles,
    RemoveOrphanFilesFigures,
    RemoveOrphanFilesPrediction,
    names=lambda action: len(action.files),
    permission=Permission.REMOVE,
    runs_on=RunsOn.SERVER_FILES,
    removes_files=True,
    asked=RemoveOrphanFilesRequest,
    settings=frozenset({"orphan_age_ms"}),
)


@dataclass(frozen=True, slots=True)
class RemoveExpiredFilesFigures:
    """What lists show of the action: everything but its files, which may be many thousands."""

    kind: ClassVar[Literal["remove_expired_files"]] = "remove_expired_files"
    base_snapshot_id: int | None
    expiry_task_ids: tuple[str, ...]
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RemoveExpiredFiles:
    """Remove these files, each only while it is still what it was and nothing needs it.

    ``expiry_task_ids`` are the verified expiries whose snapshots needed them. Each file was without use since the
    verification of its expiry, which is when it was first seen so. ``base_metadata_location`` is the metadata file that
    nothing of them was reachable from, ``as_of`` when that was seen.
    """

    kind: ClassVar[Literal["remove_expired_files"]] = "remove_expired_files"
    base_metadata_location: str
    base_snapshot_id: int | None
    expiry_task_ids: tuple[str, ...]
    files: tuple[Candidate, ...]
    as_of: Instant

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Its files as the Deleter takes them."""
        return self.files

    @property
    def size_bytes(self) -> int:
        """Bytes of the files of this action."""
        return sum(file.object.size_bytes for file in self.files)

    @property
    def figures(self) -> RemoveExpiredFilesFigures:
        """The action without its files."""
        return RemoveExpiredFilesFigures(self.base_snapshot_id, self.expiry_task_ids, len(self.files), self.size_bytes)


@dataclass(frozen=True, slots=True)
class RemoveExpiredFilesPrediction:
    """What carrying out the action would bring.

    ``needed_files`` of the expired snapshots stay, since others need them; ``gone_files`` are not there any more, or
    are other files by now. ``left_for_later`` are beyond the size of one action. No Spark statement comes near:
    Iceberg's own deletes such files at once, and for good.
    """

    kind: ClassVar[Literal["remove_expired_files"]] = "remove_expired_files"
    files: int
    size_bytes: int
    needed_files: int
    gone_files: int
    left_for_later: int
    call: str = ""


REMOVE_EXPIRED_FILES_TRAITS: Final = ActionTraits(
    RemoveExpiredFiles,
    RemoveExpiredFilesFigures,
    RemoveExpiredFilesPrediction,
    names=lambda action: len(action.files),
    permission=Permission.REMOVE,
    runs_on=RunsOn.SERVER_FILES,
    removes_files=True,
    settings=frozenset(),
)
