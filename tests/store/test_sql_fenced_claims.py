"""Claims of places beside moves of buckets, on PostgreSQL: none is kept by a lease that ends meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest
from sqlalchemy import Connection, Engine, event, text

from icewright.model.iceberg.names import TableName
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.model import Claim, SeenClaim
from icewright.server.cluster.coordinator import Bucket, SqlCoordinator
from icewright.store.locks import ASSIGNED
from icewright.store.scope_filters import bucket_of
from icewright.store.transactions import WRITES, Held, holding, lost_leases, writing
from tests.lakes.stores import new_store
from tests.store.together import meanwhile, most_at_once
from tests.waiting import PATIENCE_S

NAMES = tuple(TableName("lake", ("db",), f"t{number}") for number in range(12))


@pytest.fixture
def coordinator(engine: Engine) -> SqlCoordinator:
    return SqlCoordinator(engine)


@pytest.fixture
def first(coordinator: SqlCoordinator, engine: Engine) -> Iterator[int]:
    """The session that has all buckets, which are to go to another one."""
    with engine.connect() as one, engine.connect() as other:
        pids = [connection.scalar(text("SELECT pg_backend_pid()")) or 0 for connection in (one, other)]
        first = coordinator.join("first", pids[0])
        coordinator.assign(engine, first)
        second = coordinator.join("second", pids[1])
        with writing(engine) as connection:
            connection.execute(text("UPDATE buckets SET target = :to"), {"to": second})
        yield first


def seen(name: TableName, metadata: str) -> SeenClaim:
    return SeenClaim(Claim(name, "u", ("s3://b/t/",)), metadata, 1)


def leases(held: dict[int, Bucket], *names: TableName) -> dict[TableName, Held | None]:
    own = {name: held[bucket_of(name)] for name in names}
    return {name: Held(one.session or 0, one.bucket, one.epoch) for name, one in own.items()}


@pytest.mark.parametrize("leaves", [False, True])
def test_a_move_waits_for_what_is_kept(
    engine: Engine, coordinator: SqlCoordinator, first: int, *, leaves: bool
) -> None:
    name, held = NAMES[0], {one.bucket: one for one in coordinator.held(first)}
    own, claims = held[bucket_of(name)], SqlClaims(engine, is_shared=True)
    move = partial(coordinator.leave, first) if leaves else partial(coordinator.hand_over, first, [own])
    keep = partial(claims.keep, [seen(name, "in time")], (), leases(held, name))
    with _before_the_commit(engine, keep) as go_on, meanwhile(engine, move) as moving:
        assert moving.waits(), "the bucket moved while claims of it were kept"
        go_on()
        moving.answer()
    late = claims.keep([seen(name, "too late")], (), leases(held, name))
    assert [one.metadata_location for one in late.values()] == ["in time"]
    assert [one.metadata_location for one in claims.claims()] == ["in time"]


def test_what_is_kept_waits_for_a_move_that_has_begun(engine: Engine, coordinator: SqlCoordinator, first: int) -> None:
    name, held = NAMES[0], {one.bucket: one for one in coordinator.held(first)}
    claims = SqlClaims(engine, is_shared=True)
    claims.keep([seen(name, "new")])
    keep = partial(claims.keep, [seen(name, "old")], (), leases(held, name))
    with (
        _before_the_commit(engine, partial(coordinator.hand_over, first, held.values())) as go_on,
        meanwhile(engine, keep) as keeping,
    ):
        assert keeping.waits(), "claims were kept by a lease that was ending"
        go_on()
        assert list(keeping.answer()) == [name]  # type: ignore[call-overload]  # what others have kept, by name
    assert [one.metadata_location for one in claims.claims()] == ["new"]


def test_those_who_keep_claims_do_not_wait_for_each_others_leases(
    engine: Engine, coordinator: SqlCoordinator, first: int
) -> None:
    held = {one.bucket: one for one in coordinator.held(first)}

    def asks(name: TableName) -> None:
        asked = [one for one in leases(held, name).values() if one is not None]
        with writing(engine, (ASSIGNED,)) as connection:
            assert lost_leases(connection, asked) == frozenset()

    assert most_at_once(engine, [partial(asks, name) for name in NAMES[:4]]) == 4


def test_leases_are_compared_only_where_none_can_move_meanwhile() -> None:
    store = new_store()
    with pytest.raises(RuntimeError, match="shares the store has no"), writing(store, ()) as connection:
        lost_leases(connection, [Held(1, 1, 1)])
    for locks in (None, (ASSIGNED,)):
        with writing(store, locks) as connection:
            assert lost_leases(connection, [Held(1, 1, 1)]) == {Held(1, 1, 1)}, "nobody has the bucket"


def test_a_move_that_waits_for_claims_keeps_no_other_writer_waiting(
    engine: Engine, coordinator: SqlCoordinator, first: int
) -> None:
    """Or two that lock rows of several buckets could wait for each other."""
    by_bucket = sorted(NAMES, key=bucket_of)
    held = {one.bucket: one for one in sorted(coordinator.held(first), key=lambda one: one.bucket)}
    keep = partial(SqlClaims(engine, is_shared=True).keep, [seen(by_bucket[-1], "m")], (), leases(held, by_bucket[-1]))
    move = partial(coordinator.hand_over, first, held.values())
    with _before_the_commit(engine, keep) as go_on, meanwhile(engine, move) as moving:
        assert moving.waits()
        own = held[bucket_of(by_bucket[0])]
        with holding(Held(first, own.bucket, own.epoch)), writing(engine, ()) as connection:
            assert connection.scalar(text("SELECT epoch FROM buckets WHERE bucket = :of"), {"of": own.bucket})
        go_on()
        moving.answer()


@contextmanager
def _before_the_commit(engine: Engine, call: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """A call in another thread, whose transaction is held before its commit until it may go on."""
    there, go_on = threading.Event(), threading.Event()
    threads: list[int] = []

    def begun() -> None:
        threads.append(threading.get_ident())
        call()

    def reached(connection: Connection) -> None:
        if connection.get_execution_options().get(WRITES) and threading.get_ident() in threads:
            there.set()
            go_on.wait(PATIENCE_S)

    event.listen(engine, "commit", reached)
    try:
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(begun)
            try:
                assert there.wait(PATIENCE_S)
                yield go_on.set
            finally:
                go_on.set()
            found.result(PATIENCE_S)
    finally:
        event.remove(engine, "commit", reached)
