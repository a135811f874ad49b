"""Deleting files as values: what is to go and why, what was intended before anything was touched, what became of it.

A file goes in two steps. First it is moved out of the way (quarantined), from where it can be taken back byte for byte;
after a window it is purged. Before the first step an :class:`Intent` with all evidence is in the store. The floors in
this module are constants: settings may ask for more caution, and nothing can ask for less.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from icewright.core import codec
from icewright.core.completeness import Complete
from icewright.core.errors import Conflict, NotAllowed
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.objects import ListedObject

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS


class Cause(StrEnum):
    """Why files go."""

    ORPHAN = "orphan"
    """Nothing names them, and nobody knows who wrote them."""
    EXPIRED = "expired"
    """They were the table's, until a commit of ours that was verified."""


GRACE_FLOOR_MS: Final[Mapping[Cause, int]] = {Cause.ORPHAN: 72 * _HOUR_MS, Cause.EXPIRED: 24 * _HOUR_MS}
"""How long ago it must have been seen first that nothing needs a file: longer than any writer or reader takes."""
ORPHAN_GRACE_MS: Final = 7 * _DAY_MS
"""The same of an orphan, where nobody says otherwise."""
WINDOW_FLOOR_MS: Final = 7 * _DAY_MS
"""How long a file can be taken back."""
METADATA_FLOOR_MS: Final = 30 * _DAY_MS
"""How old a metadata file must be: by it a table is found again when its catalog is lost."""
FUTURE_MAX_MS: Final = 5 * 60_000
"""How far ahead of its storage's clock a file's time may be and still be believed."""
BUDGET_FILES: Final = 10_000
BUDGET_PERCENT: Final = 1
"""Of a table's bytes: a run over orphans that takes more of either needs somebody's approval."""
FILES_PER_MINUTE: Final = 6_000
"""How many files go at most, unless the settings say less."""


@dataclass(frozen=True, slots=True)
class DeleteSettings:
    """What an owner may ask for: more caution than the floors, never less."""

    orphan_grace_ms: int = ORPHAN_GRACE_MS
    expired_grace_ms: int = 24 * _HOUR_MS
    window_ms: int = WINDOW_FLOOR_MS
    budget_files: int = BUDGET_FILES
    files_per_minute: int = FILES_PER_MINUTE

    def grace_of(self, cause: Cause) -> int:
        """How long ago it must have been seen first that nothing needs a file, in ms."""
        asked = self.orphan_grace_ms if cause is Cause.ORPHAN else self.expired_grace_ms
        return max(GRACE_FLOOR_MS[cause], asked)

    @property
    def window(self) -> int:
        """How long files are kept in quarantine, in ms."""
        return max(WINDOW_FLOOR_MS, self.window_ms)

    @property
    def files_budget(self) -> int:
        """How many orphans one run may take without approval."""
        return min(BUDGET_FILES, self.budget_files)

    @property
    def pace(self) -> int:
        """Files a minute, at least one."""
        return max(1, min(FILES_PER_MINUTE, self.files_per_minute))


@dataclass(frozen=True, slots=True)
class Needs:
    """What a table needs of the paths that were asked about, as of one metadata file.

    Says nothing of paths that are not in ``asked``. ``table_bytes`` is the sum over all files that the table needs.
    """

    table_id: TableId
    metadata_location: str
    collects_garbage: bool
    """The table's ``gc.enabled``."""
    table_bytes: int
    asked: frozenset[CanonicalPath]
    needed: frozenset[CanonicalPath]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may go, as it was listed.

    ``first_seen_at`` is when it was first seen that nothing needs it, by the clock of its storage.
    """

    object: ListedObject
    first_seen_at: Instant


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """Which files of one table are to go. Made by :func:`plan_deletes` alone."""

    plan_id: str
    table_id: TableId
    table_name: TableName
    metadata_location: str
    cause: Cause
    table_bytes: int
    candidates: tuple[Candidate, ...]
    planned_at: Instant
    grace_ms: int | None = None
    """For how long all of them were of no need, at least; None for as long as the settings say."""
    doubtful: int = 0
    """Of so many of them it is in doubt whether they are the table's: without approval the plan is not begun."""

    @property
    def bytes(self) -> int:
        """All that would go."""
        return sum(candidate.object.size_bytes for candidate in self.candidates)

    @property
    def plan_hash(self) -> str:
        """What is approved, and what its run refers to."""
        return plan_hash_of(self.plan_id, self.table_id, self.cause, self.candidates)


def plan_hash_of(plan_id: str, table_id: TableId, cause: Cause, candidates: tuple[Candidate, ...]) -> str:
    """SHA-256, in hexadecimal, of which files of which table go, and why, with all that tells each from another one.

    What the table was at the time is no part of it: that is looked at anew before each batch.
    """
    said = codec.dumps(_Named(plan_id, table_id, cause, candidates))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class _Named:
    plan_id: str
    table_id: TableId
    cause: Cause
    candidates: tuple[Candidate, ...]


def plan_deletes(
    known: Complete[Needs],
    cause: Cause,
    candidates: Iterable[Candidate],
    *,
    plan_id: str,
    table_name: TableName,
    planned_at: Instant,
    grace_ms: int | None = None,
    bytes_max: int | None = None,
    doubtful: int = 0,
) -> DeletePlan:
    """A plan, which only complete knowledge can make.

    ``bytes_max`` is what was seen of the table's bytes: its manifests may claim more.

    Raises :class:`NotAllowed` for a candidate that the table needs, that was not asked about or that is there twice,
    and for a table whose ``gc.enabled`` is false.
    """
    needs, chosen = known.value, tuple(candidates)
    paths = {candidate.object.path for candidate in chosen}
    if not needs.collects_garbage:
        raise NotAllowed("gc.enabled is false: another table may need the files of this one")
    if paths & needs.needed or not paths <= needs.asked or len(paths) < len(chosen):
        raise NotAllowed("the candidates are not what is left when all that the table needs is subtracted")
    return DeletePlan(
        plan_id=plan_id,
        table_id=needs.table_id,
        table_name=table_name,
        metadata_location=needs.metadata_location,
        cause=cause,
        table_bytes=needs.table_bytes if bytes_max is None else min(needs.table_bytes, bytes_max),
        candidates=chosen,
        planned_at=planned_at,
        grace_ms=grace_ms,
        doubtful=doubtful,
    )


@dataclass(frozen=True, slots=True)
class DeletionRun:
    """The carrying out of one plan, with the evidence that all its intents have in common.

    ``epoch`` is that of the server that began it, ``fencing_token`` that of its task, if it has one. While it is
    ``open``, something is still to be quarantined, and no other run of the table may begin. Nothing is quarantined
    before ``next_at``, by the store's clock, nor what is of no need for less than ``grace_ms``, if that is said; never
    less than the floor.
    """

    run_id: str
    plan_id: str
    plan_hash: str
    table_id: TableId
    table_name: TableName
    metadata_location: str
    cause: Cause
    table_bytes: int
    epoch: int
    fencing_token: int | None
    approved_by: str | None
    begun_at: Instant
    next_at: Instant
    is_open: bool = True
    grace_ms: int | None = None


class IntentState(StrEnum):
    """What became of a file that was to go."""

    PLANNED = "planned"
    """Intended; nothing was done."""
    UNKNOWN = "unknown"
    """A step was begun, and nobody has recorded how it went: it is looked up, never repeated blindly."""
    QUARANTINED = "quarantined"
    PURGED = "purged"
    RESTORED = "restored"
    SKIPPED = "skipped"
    """Left where it is, for the reason that the intent has."""


class Step(StrEnum):
    """What is done with a file."""

    QUARANTINE = "quarantine"
    RESTORE = "restore"
    PURGE = "purge"


INTENT_TRANSITIONS: Final[Mapping[IntentState, frozenset[IntentState]]] = {
    IntentState.PLANNED: frozenset({IntentState.UNKNOWN, IntentState.SKIPPED}),
    IntentState.UNKNOWN: frozenset(
        {
            IntentState.UNKNOWN,
            IntentState.PLANNED,
            IntentState.QUARANTINED,
            IntentState.RESTORED,
            IntentState.PURGED,
            IntentState.SKIPPED,
        }
    ),
    IntentState.QUARANTINED: frozenset({IntentState.UNKNOWN}),
    IntentState.PURGED: frozenset(),
    IntentState.RESTORED: frozenset(),
    IntentState.SKIPPED: frozenset(),
}
"""Every step goes through ``UNKNOWN``: it is recorded as begun before it is begun."""


@dataclass(frozen=True, slots=True)
class Held:
    """Where a quarantined file is.

    Moved or copied files have their ``place``. On a bucket with versions the file stays where it is, as ``version_id``
    behind a delete marker of ours, ``marker_id``.
    """

    place: CanonicalPath
    etag: str | None = None
    version_id: str | None = None
    marker_id: str | None = None


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What is at a file's own place now, and what of it is in quarantine."""

    original: ListedObject | None
    held: Held | None


@dataclass(frozen=True, slots=True)
class Checked:
    """What was known when a step was begun: the table as of this metadata file, by the server of this epoch."""

    metadata_location: str
    epoch: int
    checked_at: Instant


@dataclass(frozen=True, slots=True)
class Intent:
    """One file of a run: the evidence for it, and what became of it.

    ``step`` is what was begun last, ``held_at`` when it was quarantined, by the latest of the clocks concerned.
    ``version`` grows with each change. Everything that the plan knew of the file is in ``object``: path as listed,
    size, time, etag, version.
    """

    run_id: str
    number: int
    object: ListedObject
    first_seen_at: Instant
    state: IntentState
    version: int
    changed_at: Instant
    step: Step | None = None
    checked: Checked | None = None
    held: Held | None = None
    held_at: Instant | None = None
    why: Reason | None = None


def changed(stored: Intent, new: Intent, now: Instant) -> Intent:
    """An intent as it is to be stored in place of another one.

    Raises :class:`Conflict` when it was read in another version, :class:`NotAllowed` for a step that is none, and for
    evidence that is not what it was.
    """
    if new.version != stored.version:
        raise Conflict(f"file {new.number} of run {new.run_id} has version {stored.version}, not {new.version}")
    if new.state not in INTENT_TRANSITIONS[stored.state]:
        raise NotAllowed(f"a file that is {stored.state.value} cannot become {new.state.value}")
    if (new.object, new.first_seen_at) != (stored.object, stored.first_seen_at):
        raise NotAllowed("the evidence for a file does not change")
    return replace(new, version=stored.version + 1, changed_at=now)


def settled(intent: Intent, found: Whereabouts) -> Intent:
    """What became of a file whose last step has no known outcome, by where it is.

    Bytes that are in quarantine count for more than anything else: as long as they are known to be there, they can be
    taken back. Where neither is found, the outcome stays unknown, but for a purge.
    """
    same = found.original is not None and same_object(intent.object, found.original)
    match intent.step:
        case Step.PURGE if found.held is None:
            return replace(intent, state=IntentState.PURGED)
        case Step.RESTORE if found.held is None and found.original is not None:
            return replace(intent, state=IntentState.RESTORED)
        case Step.QUARANTINE if found.held is None and not same:
            gone = Reason("file-changed", "it was missing, or another file, before it could be moved")
            return replace(intent, state=IntentState.SKIPPED, why=gone)
        case Step.QUARANTINE if same:  # what may lie in quarantine is a copy that was to come first
            return replace(intent, state=IntentState.PLANNED)
        case _ if found.held is not None:
            return replace(intent, state=IntentState.QUARANTINED, held=intent.held or found.held)
        case _:
            return replace(intent, why=Reason("not-found", "it is neither at its place nor in quarantine"))


def intents_of(plan: DeletePlan, run_id: str, now: Instant) -> tuple[Intent, ...]:
    """What is written down before anything is done."""
    return tuple(
        Intent(run_id, number, candidate.object, candidate.first_seen_at, IntentState.PLANNED, 0, now)
        for number, candidate in enumerate(plan.candidates)
    )


def same_object(expected: ListedObject, found: ListedObject) -> bool:
    """Whether what is there is what was listed, as far as either tells: size, time, etag and version.

    The listing of a bucket with versions does not tell them; a version that was asked for must be the same.
    """
    return (
        (expected.path, expected.size_bytes, expected.modified_at) == (found.path, found.size_bytes, found.modified_at)
        and expected.etag == found.etag
        and expected.version_id in (None, found.version_id)
    )
