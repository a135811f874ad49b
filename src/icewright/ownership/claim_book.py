"""The claims that were seen, by name and by uuid, and the copy of them in the store, which outlives the process."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from icewright.core import wording
from icewright.core.errors import BucketLost
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.iceberg.names import TableName
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.model import Claim, GoneUuid, Missing, SeenClaim, as_declared
from icewright.store.scope_filters import bucket_of
from icewright.store.transactions import Held, held_now

SEEN_AGAIN_MS: Final = 600_000
"""How often it is noted that a pointer is where it was."""
KEPT_AGAIN_MS: Final = 6 * 3_600_000
"""How often it is written down that a claim that has not changed was seen again."""
GONE_KEPT_MS: Final = 30 * 24 * 3_600_000
"""How long a table's claim counts that its catalog shows no more: dropped, or hidden, or registered elsewhere.

So it does where nothing is beside it, however many there are: another table's place may come to be there meanwhile.
"""
UNREAD: Final = Reason("unclaimed", "nothing is known of its places; it has not been looked at lately")
HALF_READ: Final = Reason("not-all-read", "not all of its snapshots have been read")
NOT_YET: Final = Reason("not-yet-read", "it has changed, and as many others were read before it as may be at once")
MOVED: Final = Reason("changed", "it is committed to faster than it can be read")


@dataclass(frozen=True, slots=True)
class CatalogPointers:
    """What a catalog said just now: where the pointers of its tables are that were read, and what is not known."""

    pointers: Mapping[TableName, str] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()


def within(span_ms: int, since: Instant | None, now: Instant) -> bool:
    """Whether something noted at ``since`` is less than ``span_ms`` ago; what lies in the future is not."""
    return since is not None and since <= now < since + span_ms


def _is_another(before: SeenClaim, now: Claim) -> bool:
    """Whether a name is another table's by now, and the one before had files where that has none.

    What lies in the very place of the new one keeps it from owning that by its metadata there.
    """
    if before.claim.uuid is None or before.claim.uuid == now.uuid or not before.metadata_location:
        return False
    return not all(place.startswith(now.roots) for place in (*before.claim.roots, *before.claim.reaches))


def _lease_of(name: TableName) -> Held | None:
    """By what this thread works on the table; None for the leader where it works on others than that of its bucket."""
    held = held_now()
    return held if held is not None and held.bucket == bucket_of(name) else None


class ClaimBook:
    """What is in it is read and changed under ``lock``, but for :meth:`load` and :meth:`keep`, which take it."""

    def __init__(self, store: SqlClaims | None) -> None:
        self.lock, self.store = threading.RLock(), store
        self._read_to = 0
        """The number of the last change in the store that was taken over."""
        self._seen: dict[TableName, SeenClaim] = {}
        self._named: defaultdict[str, set[TableName]] = defaultdict(set)
        """By uuid, the names under which a table was seen."""
        self._gone: dict[str, tuple[GoneUuid, ...]] = {}
        """By uuid, which tables lay in the place of one before: it may be renamed."""
        self._others: dict[str, tuple[Instant, tuple[Claim, ...]]] = {}
        """By catalog, when it was asked last, and what its tables of other formats claimed then."""
        self._kept_at: dict[TableName, Instant] = {}
        self._dirty: dict[TableName, Held | None] = {}
        """Names whose claims the store does not have, or still has, each with the lease by which that was noted."""
        self.taken_over = 0
        """How many claims were taken over from the store so far, where this process had none or an earlier one."""
        self._taken: list[TableName] = []
        """Names of which :meth:`keep` took over what the store has, until :meth:`take_over` tells of them."""
        self._loaded = threading.Event()

    def get(self, name: TableName) -> SeenClaim | None:
        """What was last seen of a table."""
        return self._seen.get(name)

    def __contains__(self, name: TableName) -> bool:
        return name in self._seen

    def __iter__(self) -> Iterator[SeenClaim]:
        return iter(tuple(self._seen.values()))

    def claims(self) -> tuple[Claim, ...]:
        """All claims."""
        return tuple(seen.claim for seen in self._seen.values())

    def others(self) -> tuple[Claim, ...]:
        """All claims of tables of other formats."""
        return tuple(one for _, claims in self._others.values() for one in claims)

    def knows_others(self, catalog: str) -> bool:
        """Whether this process has an answer of the catalog."""
        return catalog in self._others

    def put_others(self, catalog: str, claims: tuple[Claim, ...], asked_at: Instant, now: Instant) -> bool:
        """Take down what tables of other formats of a catalog claim, unless a later answer is there.

        Returns whether it is news. An answer from the future, before the clock was set back, is no later one.
        """
        former_at, before = self._others.get(catalog, (None, ()))
        if former_at is not None and asked_at < former_at <= now:
            return False
        self._others[catalog] = asked_at, claims
        return before != claims

    def is_known(self, name: TableName, location: str | None) -> bool:
        """Whether all is known of a table whose pointer is there."""
        seen = self._seen.get(name)
        return seen is not None and seen.is_complete and seen.metadata_location == location

    def seen_again(self, name: TableName, at: Instant) -> None:
        """A pointer is where it was."""
        seen = self._seen.get(name)
        if seen is not None and not within(SEEN_AGAIN_MS, seen.seen_at, at):
            self.put(replace(seen, seen_at=at), is_news=False)

    def is_lost(self, name: TableName, location: str | None) -> bool:
        """Whether a table was declared lost at this pointer; at another one that counts no more."""
        seen = self._seen.get(name)
        if seen is None or seen.lost_at is None:
            return False
        if seen.lost_at != (location or ""):
            self.put(replace(seen, lost_at=None, lost_by=""))
            return False
        return True

    def withdrawn(self, uuid: str) -> tuple[GoneUuid, ...]:
        """What was declared gone from the place of a table, and is not any more."""
        return tuple(one for one in self._gone.get(uuid, ()) if not one.declared_at)

    def names_of(self, uuid: str) -> frozenset[TableName]:
        """Under which names a table was seen."""
        return frozenset(name for name in self._named.get(uuid, ()) if self._seen[name].gone_at is None)

    def lost(self) -> tuple[SeenClaim, ...]:
        """The tables that are declared lost."""
        return tuple(seen for seen in self if seen.lost_at is not None)

    def begun(self, claim: Claim, now: Instant) -> SeenClaim:
        """A claim of which nothing was read yet; what was declared gone from a table's place goes with it."""
        gone = () if claim.uuid is None else self._gone.get(claim.uuid, ())
        return SeenClaim(claim, "", now, read_since=now, gone=gone)

    def put(self, seen: SeenClaim, *, is_news: bool = True) -> None:
        """Take down a claim in place of an earlier one; ``is_news`` where the store should have it soon.

        What another table of that name claimed counts on, as of one that is not shown any more.
        """
        self._put(seen, _lease_of(seen.claim.name), is_news=is_news)

    def _put(self, seen: SeenClaim, lease: Held | None, *, is_news: bool) -> None:
        name = seen.claim.name
        before = self._seen.get(name)
        if before is not None:
            self._unname(before.claim)
            if _is_another(before, seen.claim):
                called = replace(name, name=f"{name.name} {before.claim.uuid}")
                claim = replace(before.claim, name=called, is_gone=True)
                self._put(replace(before, claim=claim, gone_at=before.gone_at or seen.seen_at), lease, is_news=True)
        self._seen[name] = seen
        if seen.claim.uuid is not None:
            self._named[seen.claim.uuid].add(name)
            if seen.gone:
                self._gone[seen.claim.uuid] = seen.gone
        kept_at = self._kept_at.get(name)
        if is_news or kept_at is None or not kept_at <= seen.seen_at < kept_at + KEPT_AGAIN_MS:
            self._mark(name, lease)

    def _mark(self, name: TableName, lease: Held | None) -> None:
        """What goes on from a claim that was noted by a lease holds no longer than that."""
        self._dirty[name] = lease or self._dirty.get(name)

    def drop(self, name: TableName) -> bool:
        """Forget a table; whether it was there."""
        before = self._seen.pop(name, None)
        if before is not None:
            self._unname(before.claim)
        self._kept_at.pop(name, None)
        self._mark(name, _lease_of(name))
        return before is not None

    def retire(self, name: TableName, now: Instant) -> bool:
        """A table is not shown any more; whether it was. What it claimed counts for :data:`GONE_KEPT_MS`."""
        seen = self._seen.get(name)
        if seen is None:
            return False
        if not seen.metadata_location:
            return self.drop(name)
        if seen.gone_at is None:
            self.put(replace(seen, claim=replace(seen.claim, is_gone=True), gone_at=now))
        return seen.gone_at is None

    def returned(self, name: TableName) -> bool:
        """A table is shown, and has to be read if it was not before; whether that is so."""
        seen = self._seen.get(name)
        if seen is None or seen.gone_at is None:
            return False
        self.put(replace(seen, claim=replace(seen.claim, is_gone=False), gone_at=None, is_complete=False))
        return True

    def drop_gone(self, now: Instant) -> int:
        """Forget tables that have not been shown for long; how many."""
        old = [
            seen.claim.name
            for seen in self._seen.values()
            if seen.gone_at is not None and now - seen.gone_at >= GONE_KEPT_MS
        ]
        return sum(map(self.drop, old))

    def load(self, counts: Callable[[SeenClaim], bool]) -> tuple[TableName, ...]:
        """Take over, once, what an earlier process saw and what counts of it. Raises ``Unavailable``."""
        if self.store is None or self._loaded.is_set():
            return ()
        stored = list(self.store.claims())
        with self.lock:
            if self._loaded.is_set():
                return ()
            self._loaded.set()
            new = [seen for seen in stored if seen.claim.name not in self._seen | dict.fromkeys(self._dirty)]
            for seen in new:
                name = seen.claim.name
                if counts(seen):
                    self.taken_over += 1
                    self._kept_at[name] = seen.seen_at
                    self.put(seen, is_news=False)
                else:
                    self._dirty[name] = None
            return tuple(seen.claim.name for seen in new)

    def take_over(self) -> tuple[TableName, ...]:
        """Take over what other servers saw later than this one, where there are others. Raises ``Unavailable``.

        What people declared of a table is as this server knows it where they tell it: see :func:`.model.as_declared`.
        """
        if self.store is None or not self.store.is_shared:
            return ()
        changed, number = self.store.changed_since(self._read_to)
        with self.lock:
            taken, self._taken = self._taken, []
            taken += [self._take(seen) for seen in changed if self._is_later(seen)]
            self._read_to = max(self._read_to, number)
            return tuple(taken)

    def _take(self, seen: SeenClaim) -> TableName:
        name = seen.claim.name
        self.taken_over += 1
        self._kept_at[name] = seen.seen_at
        declared = self._as_declared(seen) if self.store is not None and self.store.declares else seen
        self.put(declared, is_news=declared != seen)
        return name

    def _as_declared(self, seen: SeenClaim) -> SeenClaim:
        uuid = seen.claim.uuid
        gone = () if uuid is None else self._gone.get(uuid, ())
        return as_declared(replace(seen, gone=gone), self._seen.get(seen.claim.name))

    def _is_later(self, seen: SeenClaim) -> bool:
        mine = self._seen.get(seen.claim.name)
        return seen.claim.name not in self._dirty and (mine is None or mine.seen_at < seen.seen_at)

    def keep(self, said_of: TableName | None = None) -> None:
        """Write down what has changed. Raises ``Unavailable``; then the next call does it.

        What was noted in a bucket that has moved since is left out, and what the store has of it is taken over. Then it
        raises :class:`~icewright.core.errors.BucketLost`: of any table, or of the one that somebody has ``said_of``
        something; all else is written.
        """
        if self.store is None:
            return
        with self.lock:
            dirty, self._dirty = self._dirty, {}
            seen = [self._seen[name] for name in dirty if name in self._seen]
            forget = [name for name in dirty if name not in self._seen]
        try:
            others = self.store.keep(seen, forget, dirty)
        except BaseException:
            with self.lock:
                meanwhile, self._dirty = self._dirty, dirty
                for name, lease in meanwhile.items():
                    self._mark(name, lease)
            raise
        with self.lock:
            self._kept_at.update({one.claim.name: one.seen_at for one in seen})
            self._taken += [self._take(one) for name, one in others.items() if name not in self._dirty]
        if others if said_of is None else said_of in others:
            told = f"another server looks at {wording.count(len(others), 'table')} by now"
            raise BucketLost(told, hint="what it has kept of their places counts")

    def _unname(self, claim: Claim) -> None:
        if claim.uuid is not None:
            self._named[claim.uuid].discard(claim.name)
            if not self._named[claim.uuid]:
                del self._named[claim.uuid]
