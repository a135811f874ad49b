"""Which server looks at which tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from fastapi import APIRouter, Response

from icewright.core.servers import LinkState, SeenServer, leader_of
from icewright.core.times import Instant
from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Permission
from icewright.server.cluster.coordinator import Assigned
from icewright.server.cluster.differences import differences
from icewright.server.http.status import LeadingNow
from icewright.web.messages import render
from icewright.web.schema import operation

router = APIRouter(tags=["server"])


@dataclass(frozen=True, slots=True)
class ServerShare:
    """What a server looks at: its ``buckets``, and how many ``tables`` are in them.

    ``coming`` is how many buckets others are about to hand over to it. Without a ``session`` it looks at none: it has
    just come, or is dead. ``seen_at`` is when it last said that it looks at its tables. ``cpu`` is the share of the CPU
    that it can use, a core at most, that it used in the last minute; null where it does not say so. ``differs`` has the
    sections of the configuration in which it differs from the leader, ``catalogs`` and ``policies`` among them.
    """

    server_id: str
    url: str
    leads: bool
    session: int | None
    joined_at: Instant | None
    seen_at: Instant | None
    buckets: int
    tables: int
    coming: int
    cpu: float | None = None
    differs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BucketView:
    """A bucket, its owner since ``moved_at`` in this ``epoch``, and why it moved.

    ``first`` is the first assignment; then a server ``joined`` or ``left``, ``died``, was ``silent`` for too long, or
    its session with ZooKeeper ``expired``.
    ``moves_to`` is the server that it is about to be handed over to.
    """

    bucket: int
    server_id: str | None
    tables: int
    epoch: int
    moved_at: Instant
    moved_by: str
    moves_to: str | None


@dataclass(frozen=True, slots=True)
class CoordinatorView:
    """What says which servers are there: ``store`` or ``zookeeper``.

    ``state`` is that of the connection of the server that answers: ``connected``, ``suspended`` (it does not answer) or
    ``lost`` (for so long that it knows this server no more), ``since`` then by the clock of that server. While
    ZooKeeper is not connected with the leader, nothing is assigned.
    """

    coordinator: str
    state: LinkState
    since: Instant | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """Who looks at which tables at ``now``. All is empty where the store has one server alone, as on SQLite.

    ``version`` grows with each change of the assignment.
    """

    now: Instant | None
    version: int
    coordinator: CoordinatorView | None
    servers: tuple[ServerShare, ...]
    buckets: tuple[BucketView, ...]


@router.get("/cluster", dependencies=[needs(Permission.READ, On.EVERYTHING)], **operation(Cluster))
def show_cluster(leading: LeadingNow) -> Response:
    """Which server looks at which tables: servers, buckets, and what is on its way."""
    found, link = leading.assigned(), leading.link
    if found is None:
        return render(Cluster(None, 0, None, (), ()))
    servers = tuple(_shares(found, {one.server.server_id: one for one in leading.servers()}))
    names = {one.session: one.server_id for one in found.sessions}
    buckets = tuple(
        BucketView(
            bucket=one.bucket,
            server_id=None if one.session is None else names.get(one.session),
            tables=found.tables.get(one.bucket, 0),
            epoch=one.epoch,
            moved_at=one.moved_at,
            moved_by=one.moved_by,
            moves_to=None if one.target is None else names.get(one.target),
        )
        for one in found.buckets
    )
    coordinator = None if link is None else CoordinatorView(link.coordinator, link.state, link.since)
    return render(Cluster(found.now, found.version, coordinator, servers, buckets))


def _shares(found: Assigned, known: dict[str, SeenServer]) -> Iterator[ServerShare]:
    """First the servers that look at tables, then the others that are known."""
    leader = leader_of(known.values())
    leads = None if leader is None else leader.server.server_id
    differs = differences(found.sessions, leads)
    held, coming, tables = Counter[int | None](), Counter[int | None](), Counter[int | None]()
    for one in found.buckets:
        held[one.session] += 1
        coming[one.target] += 1
        tables[one.session] += found.tables.get(one.bucket, 0)
    for session in found.sessions:
        number, name = session.session, session.server_id
        yield ServerShare(
            server_id=name,
            url=known[name].server.url if name in known else "",
            leads=name == leads,
            session=number,
            joined_at=session.joined_at,
            seen_at=session.seen_at,
            buckets=held[number],
            tables=tables[number],
            coming=coming[number],
            cpu=known[name].cpu if name in known else None,
            differs=differs.get(name, ()),
        )
    there = {session.server_id for session in found.sessions}
    for name, one_known in known.items():
        if name not in there:
            yield ServerShare(name, one_known.server.url, name == leads, None, None, None, 0, 0, 0, one_known.cpu)
