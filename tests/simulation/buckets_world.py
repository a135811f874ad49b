"""Servers that share the looks by buckets, seeded: they die, stand still for longer than a death takes, come and leave.

Sessions, assignment and fences are the real ones, over a real store; what a look does is one write. Each server has a
clock of its own, which goes faster or slower than the database's. One leads, by a lease; it may stand still as well.
What looks say of places is kept now and then, for all of them at once: by then a bucket may be another server's.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Engine, bindparam, select, update

from icewright.core.errors import BucketLost, CoordinatorUnavailable, StoreTaken, StoreUnavailable
from icewright.model.iceberg.names import TableName
from icewright.ownership.claim_book import ClaimBook
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.model import Claim, SeenClaim
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.server.cluster.share import Share, SharedPart
from icewright.store.documents import load
from icewright.store.schema import LISTED_CHANGED, SERVER_EPOCH, claims, counters
from icewright.store.scope_filters import bucket_of
from icewright.store.servers_schema import buckets, server_sessions
from icewright.store.transactions import EPOCH, SHARES, reading, writing
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store
from tests.simulation.writers import Broken

POLL_MS: Final = 500
HEARTBEAT_MS: Final = 2_000
DEAD_MS: Final = 6_000
LEASE_MS: Final = 3_000
LOOK_MS_MAX: Final = 4_000
KEEPS: Final = 0.2
"""How often claims are kept behind a poll."""
LATE_MS: Final = DEAD_MS + 2 * HEARTBEAT_MS + 2 * POLL_MS
"""How long a bucket may be with a server that does nothing: until it is dead, a beat before that, one more where the
leader itself stood still and lets the others speak first, and two polls to assign it. While no leader does anything,
until its lease ends and another one is elected, time does not count."""
SERVERS_MAX: Final = 5
TABLES: Final = [TableName("lake", ("db",), f"t{number}") for number in range(40)]
_OWNERS: Final = select(buckets.c.bucket, buckets.c.session, buckets.c.epoch)
_OWNER: Final = select(buckets.c.session).where(buckets.c.bucket == bindparam("of"))
_WRITE: Final = update(counters).where(counters.c.name == LISTED_CHANGED).values(value=counters.c.value + 1)
_CLAIMS: Final = select(claims.c.claim)
_LIVE: Final = select(server_sessions.c.session).where(server_sessions.c.ended_at.is_(None))


@dataclass
class Look:
    """A look that goes on, in a thread of its own, as it were."""

    name: TableName
    working: AbstractContextManager[bool]
    context: Context
    session: int
    until: int
    book: ClaimBook
    commits: int
    """Of the table, when it was read."""


@dataclass(eq=False)
class Server:
    """A server's part: its share, the part of its loop, and what it is at."""

    name: str
    share: Share
    looks: list[Look] = field(default_factory=list)
    part: SharedPart | None = None
    book: ClaimBook = field(default_factory=lambda: ClaimBook(None))
    epoch: int | None = None
    halted_until: int = 0
    is_dead: bool = False


class AwayNowAndThen(SqlCoordinator):
    """Which does not answer while the store is away."""

    is_away: Callable[[], bool] = staticmethod(lambda: False)

    def __getattribute__(self, name: str) -> Any:
        if name in ("join", "beat", "leave", "version", "held", "hand_over", "assign", "now") and self.is_away():
            raise StoreUnavailable("it is away")
        return super().__getattribute__(name)


class BucketsWorld:
    """Some servers and their store. The guards are real; a test takes one away."""

    coordinators: type[AwayNowAndThen] = AwayNowAndThen
    shares: type[Share] = Share
    late_ms = LATE_MS

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a simulation
        self.clock, self.engine = ManualClock(), new_store()
        self.counted: Counter[str] = Counter()
        self.servers: list[Server] = []
        self.ever: list[Server] = []
        self.leader: Server | None = None
        self.lead_until, self.epoch, self.away_until = 0, 0, 0
        self.idle_since: dict[tuple[int, int], int] = {}
        self.numbers = 0
        self.commits_chance = random.Random(seed)  # noqa: S311 - a simulation
        self.commits = dict.fromkeys(TABLES, 0)
        self.claimed: dict[TableName, int] = {}
        """The commit from which the latest claim is that was ever kept of each table."""
        self.judged_claims: AbstractSet[str] = frozenset()
        """The claims that were there when they were judged last."""
        for _ in range(3):
            self.start()

    def start(self) -> None:
        """One more server."""
        self.numbers += 1
        offset_s, rate = self.chance.uniform(-1e6, 1e6), self.chance.uniform(0.95, 1.05)

        def monotonic_s() -> float:
            return offset_s + rate * self.clock.now() / 1000

        name = f"server-{self.numbers}"
        coordinator = self.coordinator(name, monotonic_s)
        coordinator.is_away = lambda: self.is_away
        share = self.shares(
            coordinator, name, lambda: 0, heartbeat_ms=HEARTBEAT_MS, dead_ms=DEAD_MS, monotonic_s=monotonic_s
        )
        self.servers.append(Server(name, share))
        self.ever.append(self.servers[-1])

    def coordinator(self, name: str, monotonic_s: Callable[[], float]) -> AwayNowAndThen:
        """That of a server."""
        del name
        return self.coordinators(self.engine, self.clock, dead_ms=DEAD_MS, monotonic_s=monotonic_s)

    def may_lead(self, server: Server) -> bool:
        """Whether it is elected, as far as others than the store are concerned."""
        del server
        return True

    @property
    def is_away(self) -> bool:
        return self.clock.now() < self.away_until

    def runs(self, server: Server) -> bool:
        return not server.is_dead and server.halted_until <= self.clock.now()

    def run(self, ticks: int) -> None:
        """So many polls."""
        for _ in range(ticks):
            self.clock.advance(POLL_MS)
            for name in self.commits_chance.sample(TABLES, 4):
                self.commits[name] += 1
            self.trouble()
            self.elect()
            for server in self.chance.sample(self.servers, len(self.servers)):
                if self.runs(server):
                    self.step(server)
            self.judge_owners()

    def end(self) -> None:
        """Leave no look behind."""
        for server in self.ever:
            while server.looks:
                look = server.looks.pop()
                look.context.run(look.working.__exit__, None, None, None)

    def trouble(self) -> None:
        """Now and then, something happens."""
        now, running = self.clock.now(), [one for one in self.servers if self.runs(one)]
        happens = self.chance.random()
        if happens < 0.02 and len(running) > 1:
            victim = self.chance.choice(running)
            self.counted["killed the leader" if victim is self.leader else "killed"] += 1
            victim.is_dead = True
            self.servers.remove(victim)
        elif happens < 0.06 and len(running) > 1:
            victim = self.chance.choice(running)
            for_ms = self.chance.randrange(POLL_MS, 4 * DEAD_MS)
            self.counted["halted for longer than a death takes" if for_ms > LATE_MS else "halted"] += 1
            victim.halted_until = now + for_ms
        elif happens < 0.10 and len(self.servers) < SERVERS_MAX:
            self.counted["came"] += 1
            self.start()
        elif happens < 0.11 and len(running) > 1 and not self.is_away:
            victim = self.chance.choice(running)
            self.counted["left"] += 1
            victim.share.leave()
            victim.is_dead = True
            self.servers.remove(victim)
        elif happens < 0.115:
            self.counted["store away"] += 1
            self.away_until = now + self.chance.randrange(POLL_MS, 4 * DEAD_MS)

    def elect(self) -> None:
        """Another server leads where the leader has died, or not renewed its lease in time."""
        now, leader = self.clock.now(), self.leader
        if leader is not None and self.runs(leader):
            self.lead_until = now + LEASE_MS
        is_over = leader is None or leader.is_dead or now > self.lead_until or not self.may_lead(leader)
        able = [one for one in self.servers if self.runs(one) and self.may_lead(one)]
        if is_over and able and not self.is_away:
            self.leader, self.epoch = self.chance.choice(able), self.epoch + 1
            self.lead_until, self.leader.epoch = now + LEASE_MS, self.epoch
            self.leader.part = None
            with writing(self.engine) as connection:
                connection.execute(update(counters).where(counters.c.name == SERVER_EPOCH).values(value=self.epoch))

    def step(self, server: Server) -> None:
        """A poll of a server, and what its loop does until the next one."""
        try:
            server.share.keep()
            if server.epoch is not None:
                server.share.assign(self.engine.execution_options(**{EPOCH: server.epoch}))
        except StoreTaken:
            self.counted["leader of before"] += 1
            server.epoch, server.part = None, None
        except (StoreUnavailable, CoordinatorUnavailable):
            pass
        if server.share.session is not None and (server.part is None or not server.part.is_present):
            server.part = server.share.part(leads=server.epoch is not None)
            server.book = ClaimBook(SqlClaims(self.engine_of(server), is_shared=True))
        for look in [one for one in server.looks if one.until <= self.clock.now()]:
            server.looks.remove(look)
            look.context.run(self.finish, server, look)
        for name in self.chance.sample(TABLES, 6):
            if server.part is not None and server.share.session is not None:
                self.begin(server, server.part, name)
        if server.part is not None and not self.is_away and self.commits_chance.random() < KEEPS:
            self.keep(server.book, server.part)

    def engine_of(self, server: Server) -> Engine:
        """By which it writes: one that follows, for nothing but what it holds."""
        return self.engine if server.epoch is not None else self.engine.execution_options(**{SHARES: True})

    def begin(self, server: Server, part: SharedPart, name: TableName) -> None:
        """Begin a look, where the server may."""
        context, working = copy_context(), part.working(name)
        if not context.run(working.__enter__):
            context.run(working.__exit__, None, None, None)
            return
        self.counted["look"] += 1
        until = self.clock.now() + self.chance.randrange(LOOK_MS_MAX)
        live = self.live() if any(at.name == name for one in self.servers for at in one.looks) else set()
        others = [one for one in self.servers if any(at.name == name and at.session in live for at in one.looks)]
        look = Look(name, working, context, server.share.session or 0, until, server.book, self.commits[name])
        server.looks.append(look)
        context.run(self.note, look)
        if (
            others and server.share.session in live
        ):  # else it does not know yet that it is dead: its look writes nothing
            raise Broken(f"{server.name} and {others[0].name} look at {name} at once")

    def live(self) -> AbstractSet[int]:
        """The sessions that have not ended."""
        with reading(self.engine) as connection:
            return set(connection.scalars(_LIVE))

    def finish(self, server: Server, look: Look) -> None:
        """Write what a look came to, and end it."""
        if self.commits_chance.random() < 0.5:  # it has read more of what the table was
            self.note(look)
        try:
            if not self.is_away:
                with writing(self.engine_of(server)) as connection:
                    self.effect(connection, server, look)
                self.counted["written"] += 1
        except BucketLost:
            self.counted["fenced"] += 1
        finally:
            look.working.__exit__(None, None, None)

    def effect(self, connection: Connection, server: Server, look: Look) -> None:
        """What is written for a table is its owner's."""
        owner = connection.scalar(_OWNER, {"of": bucket_of(look.name)})
        if owner != look.session:
            raise Broken(f"{server.name} wrote for {look.name} by session {look.session}, which is {owner}'s")
        connection.execute(_WRITE)

    def note(self, look: Look) -> None:
        """What a look says of a table's places, by a clock that goes ahead or behind."""
        at = self.clock.now() + self.commits_chance.randrange(-DEAD_MS, DEAD_MS)
        look.book.put(SeenClaim(Claim(look.name, "u", ("s3://b/t/",)), str(look.commits), at))

    def keep(self, book: ClaimBook, part: SharedPart) -> None:
        """Keep what looks have said since the last time, and judge what is there then."""
        try:
            with part.as_server():
                book.keep()
            self.counted["claims kept"] += 1
            book.take_over()
        except BucketLost:
            self.counted["claims of a dead server" if book._dirty else "claims of the next owner"] += 1
        with reading(self.engine) as connection:
            present = connection.scalars(_CLAIMS).all()
        new = [load(SeenClaim, text) for text in present if text not in self.judged_claims]
        self.judged_claims = frozenset(present)
        for seen in new:
            commit, before = int(seen.metadata_location), self.claimed.get(seen.claim.name, 0)
            if commit < before:
                raise Broken(f"{seen.claim.name} claims what it did at commit {commit}, over that of commit {before}")
            self.claimed[seen.claim.name] = commit

    def judge_owners(self) -> None:
        """No bucket is with a server for long that does nothing."""
        if self.is_away:
            self.idle_since.clear()
            return
        now = self.clock.now()
        doing = {one.share.session for one in self.servers if self.runs(one)}
        with reading(self.engine) as connection:
            idle = {(bucket, epoch) for bucket, session, epoch in connection.execute(_OWNERS) if session not in doing}
        unled_ms = 0 if self.leader is not None and self.runs(self.leader) else POLL_MS
        self.idle_since = {key: self.idle_since.get(key, now) + unled_ms for key in idle}
        late = [key for key, since in self.idle_since.items() if now - since > self.late_ms]
        if late:
            raise Broken(f"buckets {sorted(late)[:5]} are with a server that does nothing for over {self.late_ms} ms")
