"""Tables at which a look would find nothing: the sweep passes them over by their pointers (decision 0074).

A look that leaves nothing in hand notes what it went by, and until when time alone changes nothing of it. As long as
all of that is as it was, another look would find the same plan and queue nothing. Whatever is not known is looked at.
"""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from icewright.actions.expire_snapshots.plan import automatic_rule
from icewright.catalogs.port import Catalog
from icewright.core.clock import Clock
from icewright.core.errors import IcewrightError, Unavailable
from icewright.core.times import Instant
from icewright.inventory.snapshot_retention import next_of_age
from icewright.maintenance.upkeep import KeptUp
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.observation import WorkerAccess
from icewright.model.plans.plans import Plan
from icewright.model.policy.policy import Mode, Policy
from icewright.model.policy.time_windows import window_of
from icewright.model.work.tasks import TaskHead, TaskState
from icewright.observation.access import PROVED_FOR_MS, storage_root
from icewright.observation.observer import Seen
from icewright.observation.sweep import next_look
from icewright.ownership.registry import Registry
from icewright.policy.source import PolicySource
from icewright.ports.store import TableStore
from icewright.ports.table_records import BeforeLook, DueLook, LaterLook, SinceLooks

FULL_LOOK_MS: Final = 6 * 3_600_000
"""How long a table is passed over at most. What only reading its files tells, such as that one of them is damaged, and
how it looks by a clock, may be so much older than the sweep."""
LISTED_MS: Final = 30_000
"""How long an answer of a catalog counts that lists its pointers. The next look is counted from the question on, so
that no commit stays unseen for longer by it."""
LISTING_REST: Final = 20
"""How many times as long as it took an answer counts at least: listing is at most a twentieth of a catalog's time."""
LISTED_FROM: Final = 20
"""For so many tables of a catalog all of its pointers are listed; for fewer, it is asked for each."""
ASKING_MS_MAX: Final = 1_000
"""How long catalogs are asked table by table at most, in one sweep; the other tables are looked at."""
_NOTHING_IN_HAND: Final = frozenset({TaskState.SUCCEEDED, TaskState.CANCELLED, TaskState.SUPERSEDED})


@dataclass(frozen=True, slots=True)
class _Quiet:
    """What a look went by that left nothing in hand; ``until`` when that holds by any clock."""

    name: TableName
    pointer: str
    revision: int
    policies: int
    tasks: bytes
    root: str | None
    access_at: Instant | None
    looked_at: Instant
    until: Instant


@dataclass(frozen=True, slots=True)
class _Listed:
    """When a catalog listed its pointers, until when that counts, and those that were as noted."""

    at: Instant
    until: Instant
    same: Mapping[TableId, str]


class QuietTables:
    """What was noted of tables, by this process alone. Safe for use by several threads."""

    def __init__(
        self,
        catalogs: Mapping[str, Catalog],
        tables: TableStore,
        policies: PolicySource,
        registry: Registry,
        clock: Clock,
        chance: Callable[[], float],
    ) -> None:
        self._catalogs, self._tables, self._policies = catalogs, tables, policies
        self._registry, self._clock, self._chance = registry, clock, chance
        self._lock = threading.Lock()
        self._quiet: dict[TableId, _Quiet] = {}
        self._listed: dict[str, _Listed] = {}
        """By catalog, what it listed last."""
        self.passed_over = self.listings = self.questions = 0
        """How many tables were passed over so far, and how often catalogs listed pointers or answered for one table."""

    def note(self, seen: Seen, found: BeforeLook, policies: int, until: Instant | None) -> None:
        """A look has written its record; ``until`` is when another one may find more, None where it may at once."""
        record, metadata = seen.record, seen.observation.metadata
        quiet = None
        if until is not None:
            quiet = _Quiet(
                name=metadata.name,
                pointer=metadata.metadata_location,
                revision=record.revision + 1,
                policies=policies,
                tasks=_digest((task.task_id, task.version) for task in found.tasks),
                root=record.storage_root,
                access_at=None if found.stored.access is None else found.stored.access.decided_at,
                looked_at=found.now,
                until=min(until, found.now + FULL_LOOK_MS, seen.observation.observed_at + FULL_LOOK_MS),
            )
        with self._lock:
            if quiet is None:
                self._quiet.pop(metadata.table_id, None)
            else:
                self._quiet[metadata.table_id] = quiet

    def forget(self, table_id: TableId) -> None:
        """The table has to be looked at."""
        with self._lock:
            self._quiet.pop(table_id, None)

    def pass_over(self, due: Sequence[DueLook], answering: AbstractSet[str]) -> Sequence[DueLook]:
        """Put those off whose looks would find nothing; the others are given back, in their order.

        Only catalogs that are ``answering`` are asked.
        Raises ``Unavailable`` and ``OutcomeUnknown`` for the store; what a catalog does not answer is looked at.
        """
        noted = [(one, quiet) for one in due if (quiet := self._noted(one, answering)) is not None]
        if not noted:
            return due
        roots = {(one.table_id.catalog, quiet.root) for one, quiet in noted if quiet.root is not None}
        since = self._tables.since_looks([one.table_id for one, _ in noted], roots)
        with self._policies.held(since.policies) as present:
            revision = present.revision
        same = [(one, quiet) for one, quiet in noted if _is_same(one.table_id, quiet, since, revision)]
        later: dict[TableId, LaterLook] = {}
        for catalog, tables in _by_catalog(same).items():
            asked = self._pointers_same(catalog, tables)
            for one, quiet in tables:
                at = self._next(one, quiet, asked.get(one.table_id))
                if at is not None:
                    later[one.table_id] = LaterLook(one.table_id, one.revision, at)
        if later:
            self._tables.look_later(list(later.values()), policies=since.policies)
            self.passed_over += len(later)
        return [one for one in due if one.table_id not in later]

    def _noted(self, one: DueLook, answering: AbstractSet[str]) -> _Quiet | None:
        """What was noted of a table, where that may still hold."""
        if one.name.catalog not in answering:
            return None
        with self._lock:
            quiet = self._quiet.get(one.table_id)
        if quiet is None or (quiet.name, quiet.revision) != (one.name, one.revision):
            return None
        return quiet if self._clock.now() < quiet.until else None

    def _next(self, one: DueLook, quiet: _Quiet, asked_at: Instant | None) -> Instant | None:
        """When a table is looked at next whose pointer was the same at ``asked_at``; None where it is at once."""
        if asked_at is None or not self._is_known(one.name, quiet.pointer):
            return None
        at = next_look(
            asked_at,
            commit_interval_ms=one.commit_interval_ms,
            changed_at=one.changed_at,
            jitter=self._chance(),
            look_again_at=quiet.until,
        )
        return at if at > self._clock.now() else None

    def _is_known(self, name: TableName, pointer: str) -> bool:
        """Whether a look would read nothing more of where the table has files: the claim is of all its snapshots."""
        book = self._registry.book()
        with book.lock:
            return book.is_known(name, pointer)

    def _pointers_same(self, catalog_name: str, tables: Sequence[tuple[DueLook, _Quiet]]) -> Mapping[TableId, Instant]:
        """Of which tables the pointer is where it was, and when that was asked."""
        catalog, now = self._catalogs[catalog_name], self._clock.now()
        listed = self._listed.get(catalog_name)
        if listed is None or not listed.at <= now < listed.until:
            self._listed.pop(catalog_name, None)
            if not catalog.lists_pointers or len(tables) < LISTED_FROM:
                return self._asked(catalog, tables)
            listed = self._list(catalog)
            if listed is None:
                return {}
            self._listed[catalog_name] = listed
        # A look may have noted another pointer since.
        found = {one.table_id: listed.at for one, quiet in tables if listed.same.get(one.table_id) == quiet.pointer}
        return {**found, **self._asked(catalog, [each for each in tables if each[0].table_id not in found])}

    def _list(self, catalog: Catalog) -> _Listed | None:
        asked_at = self._clock.now()
        try:
            pointers = catalog.pointers().tables
        except IcewrightError:
            return None  # unknown: the look at each tells why
        self.listings += 1
        with self._lock:
            noted = [(table_id, quiet) for table_id, quiet in self._quiet.items() if table_id.catalog == catalog.name]
        same = {table_id: quiet.pointer for table_id, quiet in noted if pointers.get(quiet.name) == quiet.pointer}
        took_ms = max(0, self._clock.now() - asked_at)
        return _Listed(asked_at, asked_at + max(LISTED_MS, LISTING_REST * took_ms), same)

    def _asked(self, catalog: Catalog, tables: Iterable[tuple[DueLook, _Quiet]]) -> Mapping[TableId, Instant]:
        found: dict[TableId, Instant] = {}
        begun_at = self._clock.now()
        for one, quiet in tables:
            asked_at = self._clock.now()
            if not begun_at <= asked_at < begun_at + ASKING_MS_MAX:
                break
            self.questions += 1
            try:
                if catalog.metadata_location(one.name) == quiet.pointer:
                    found[one.table_id] = asked_at
            except Unavailable:
                break  # unknown: the looks tell why
            except IcewrightError:
                continue
        return found


def _is_same(table_id: TableId, quiet: _Quiet, since: SinceLooks, policies: int) -> bool:
    """Whether the store has everything as it was for a look."""
    if not quiet.looked_at <= since.now < quiet.until or quiet.policies != policies:
        return False
    if _digest(since.tasks.get(table_id, ())) != quiet.tasks or table_id in since.remarked:
        return False
    return quiet.root is None or since.access.get((table_id.catalog, quiet.root)) == quiet.access_at


def _digest(tasks: Iterable[tuple[str, int]]) -> bytes:
    """Tasks and their versions in a few bytes: there may be twenty of each of a hundred thousand tables."""
    return hashlib.blake2b(repr(sorted(tasks)).encode(), digest_size=16).digest()


def _by_catalog(
    tables: Iterable[tuple[DueLook, _Quiet]],
) -> Mapping[str, Sequence[tuple[DueLook, _Quiet]]]:
    found: defaultdict[str, list[tuple[DueLook, _Quiet]]] = defaultdict(list)
    for one in tables:
        found[one[0].name.catalog].append(one)
    return found


def quiet_until(
    seen: Seen,
    found: BeforeLook,
    plan: Plan,
    kept: KeptUp,
    policy: Policy,
    tasks: Sequence[TaskHead],
    passes: Instant | None,
) -> Instant | None:
    """Until when another look at a table would find the same; None where something is in hand that may end at any time.

    ``kept`` is what was found due of upkeep, ``passes`` until when no search for unneeded files is, None where one is.
    What is not noted here the store shows: another revision of its record
    or of the policies, a change of its tasks, or a remark.
    """
    record, metadata = seen.record, seen.observation.metadata
    is_in_hand = (
        any(task.state not in _NOTHING_IN_HAND for task in tasks)
        or (plan.mode is Mode.AUTO and not plan.is_empty)
        or bool(found.refusals or found.stored.exclusions or found.analyzed)
        or record.reporting is None
        or bool(record.reporting.untold)
        or window_of(policy) is not None
        or kept.problem is not None
    )
    if is_in_hand or kept.quiet_until is None or passes is None:
        return None
    ends = [kept.quiet_until, passes]
    if plan.look_again_at is not None:
        ends.append(plan.look_again_at)
    if kept.look_at is not None:
        ends.append(kept.look_at)
    if storage_root(metadata) is not None:
        access = found.stored.access
        if access is None or access.access is not WorkerAccess.PROVED or found.stored.is_asked:
            return None
        ends.append(access.decided_at + PROVED_FOR_MS)
    ages = {policy.max_snapshot_age_ms, automatic_rule(policy).older_than_ms}
    of_age = next_of_age(metadata, ages, min(found.now, seen.observation.observed_at))
    return min(ends if of_age is None else [*ends, of_age])
