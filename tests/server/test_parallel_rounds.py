"""Rounds that look at several tables at once come to what those come to that look at one after the other."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from icewright.core.errors import LookLost, StorageUnavailable, StoreUnavailable
from icewright.maintenance.table_maintainer import Looked
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableName
from icewright.model.work.tasks import TaskState
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.model import SeenClaim
from icewright.server import liveness
from icewright.server.cluster.share import Part
from icewright.store.scope_filters import bucket_of
from icewright.store.transactions import Held, held_now, holding
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.builders.lakehouse import HOUR_MS, MINUTE_MS, Lakehouse
from tests.builders.worker import Worker
from tests.lakes.stores import new_store

AT_ONCE_MAX = 4
TIMEOUT_S = 30
NAMES = [TableName("lake", ("db",), f"events_{number}") for number in range(12)]


def lakehouse(parallel_looks: int = AT_ONCE_MAX) -> Lakehouse:
    engine = new_store()
    house = Lakehouse(
        stores=lambda clock: (SqlTableStore(engine, clock), SqlTaskStore(engine, clock)), parallel_looks=parallel_looks
    )
    for number, name in enumerate(NAMES):
        house.create(name)
        for _ in range(2):
            house.append(1 + number % 5, name=name)
    return house


def day(house: Lakehouse) -> dict[TableName, tuple[object, ...]]:
    """What becomes of tables that are found, reported, swept and rewritten, and what is known of them at the end."""
    house.rounds(3)
    for number, name in enumerate(NAMES):
        snapshot = house.append(3, name=name)
        if number % 2:
            house.notify(snapshot, name)
    house.rounds(14, every_ms=10 * MINUTE_MS)
    for _ in range(len([task for task in house.all_tasks() if task.state is TaskState.QUEUED])):
        Worker(house).carry_out()
    house.rounds(2, every_ms=MINUTE_MS)
    records = {record.name: record for record in house.tables.records(limit=100)}
    return {
        name: (
            records[name].snapshot_id == house.metadata(name).current_snapshot_id,
            sum(one.counts.data_files for one in house.tables.partitions(records[name].table_id)),
            len(house.catalog.live_files(name)),
            Counter((task.kind, task.state) for task in house.all_tasks() if task.table_name == name),
            house.tables.plan(records[name].plan_id or "").reason.code,
        )
        for name in NAMES
    }


def test_a_day_ends_as_one_at_which_tables_are_looked_at_one_after_the_other() -> None:
    found = day(lakehouse())
    assert found == day(lakehouse(1))
    assert all(known and counted == live for known, counted, live, _, _ in found.values())
    assert all(states == {(ActionKind.REWRITE_DATA_FILES, TaskState.SUCCEEDED): 1} for *_, states, _ in found.values())


def meeting(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> Counter[TableName]:
    """Each look waits until so many are at it; gives how often each table is looked at."""
    look, meet, looked = house.control.maintainer.look, threading.Barrier(AT_ONCE_MAX), Counter[TableName]()

    def look_together(name: TableName, *, plan_anew: bool = False) -> Looked:
        looked[name] += 1
        meet.wait(TIMEOUT_S)
        return look(name, plan_anew=plan_anew)

    monkeypatch.setattr(house.control.maintainer, "look", look_together)
    return looked


def reported(house: Lakehouse) -> None:
    for name in NAMES:
        house.notify(house.append(1, name=name), name)


def asked_for(house: Lakehouse) -> None:
    for name in NAMES:
        house.tables.look_at_once(name)


def due(house: Lakehouse) -> None:
    house.pass_time(24 * HOUR_MS)


@pytest.mark.parametrize("happen", [reported, asked_for, due])
def test_tables_are_looked_at_at_the_same_time_whatever_made_us_look(
    monkeypatch: pytest.MonkeyPatch, happen: Callable[[Lakehouse], None]
) -> None:
    house = lakehouse()
    house.rounds(2)
    happen(house)
    looked = meeting(house, monkeypatch)
    house.control.loop.round()
    assert looked == Counter(NAMES)


def test_first_looks_are_made_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    house = lakehouse()
    looked = meeting(house, monkeypatch)
    house.control.loop.round()
    assert looked == Counter(NAMES)


def test_first_looks_that_events_ask_for_are_made_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the leader asks other servers for theirs."""
    house = lakehouse()
    reported(house)
    looked = meeting(house, monkeypatch)
    house.control.loop._work_inbox()
    assert looked == Counter(NAMES)


def test_a_store_that_is_away_ends_the_step_and_nothing_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    house = lakehouse()
    house.rounds(2)
    reported(house)

    def away(*_: object) -> None:
        raise StoreUnavailable("the store does not answer")

    with monkeypatch.context() as patched, capture_logs() as logs:
        patched.setattr(house.control.maintainer, "look", lambda *_, **__: away())
        house.control.loop.round()
    assert [entry["step"] for entry in logs if entry["event"] == "put off"] == ["work_inbox"]
    assert len(house.tables.inbox(100)) == len(NAMES)
    house.rounds(2)
    assert house.tables.inbox(100) == []
    assert all(house.record(name).snapshot_id == house.metadata(name).current_snapshot_id for name in NAMES)


def test_tables_that_wait_long_for_their_own_storage_stop_no_other_of_their_catalog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They fail one right after the other, though another one was seen while they waited."""
    house = lakehouse()
    house.rounds(2)
    for name in NAMES[:AT_ONCE_MAX]:
        house.tables.look_at_once(name)
    look, outages, last = house.control.maintainer.look, house.control.loop._outages, NAMES[AT_ONCE_MAX - 1]
    meet, is_seen, see = threading.Barrier(AT_ONCE_MAX), threading.Event(), outages.seen

    def look_together(name: TableName, *, plan_anew: bool = False) -> Looked:
        meet.wait(TIMEOUT_S)
        if name == last:
            return look(name, plan_anew=plan_anew)
        assert is_seen.wait(TIMEOUT_S)
        raise StorageUnavailable("no answer")

    def seen(name: TableName) -> None:
        see(name)
        is_seen.set()

    monkeypatch.setattr(house.control.maintainer, "look", look_together)
    monkeypatch.setattr(outages, "seen", seen)
    house.control.loop.round()
    assert is_seen.is_set()
    assert house.control.loop.paused_until("lake") is None


def test_claims_of_an_earlier_process_are_read_before_several_looks_would_each_read_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are a hundred thousand of them: several times that is memory and time that a start has not."""
    house = lakehouse()
    claims, happened, look = SqlClaims(house.kept._engine), list[str](), house.control.maintainer.look

    def read_claims() -> Iterator[SeenClaim]:
        happened.append("claims")
        return iter(())

    def note_look(name: TableName, *, plan_anew: bool = False) -> Looked:
        happened.append("look")
        return look(name, plan_anew=plan_anew)

    monkeypatch.setattr(house.control.registry.book(), "store", claims)
    monkeypatch.setattr(house.control.registry.book(), "_loaded", threading.Event())
    monkeypatch.setattr(claims, "claims", read_claims)
    monkeypatch.setattr(house.control.maintainer, "look", note_look)
    house.control.loop.round()
    assert happened == ["claims", *["look"] * len(NAMES)]


def test_each_look_is_a_sign_of_life_of_the_loop_and_one_that_hangs_makes_it_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or a server would keep the lead and its tables for good, or give them away while it looks."""
    house = lakehouse(2)
    house.rounds(2)
    for name in NAMES[:2]:
        house.tables.look_at_once(name)
    loop, look, now_s, heard = house.control.loop, house.control.maintainer.look, [0.0], list[float]()
    meet, has_looked, goes_on, is_seen = threading.Barrier(2), *(threading.Event() for _ in range(3))

    def turn() -> None:
        loop._pulse.begin("loop")
        loop.turn()

    turning = threading.Thread(target=turn, daemon=True)

    def look_together(name: TableName, *, plan_anew: bool = False) -> Looked:
        meet.wait(TIMEOUT_S)
        if threading.current_thread() is turning:
            assert has_looked.wait(TIMEOUT_S)
            return look(name, plan_anew=plan_anew)
        now_s[0] += 100
        looked = look(name, plan_anew=plan_anew)
        heard.append(loop.silent_s)
        has_looked.set()
        goes_on.wait(TIMEOUT_S)
        return looked

    see = loop._outages.seen

    def seen(name: TableName) -> None:
        see(name)
        is_seen.set()

    monkeypatch.setattr(liveness, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    monkeypatch.setattr(house.control.maintainer, "look", look_together)
    monkeypatch.setattr(loop._outages, "seen", seen)
    turning.start()
    assert is_seen.wait(TIMEOUT_S), "the other one, while this one hangs"
    now_s[0] += 1_000
    assert (heard, loop.silent_s, turning.is_alive()) == ([0.0], 1_000, True)
    goes_on.set()
    turning.join(TIMEOUT_S)
    assert not turning.is_alive()


class Fenced(Part):
    """The part of a server that has each bucket in an epoch of its own."""

    @contextmanager
    def working(self, name: TableName) -> Iterator[bool]:
        with holding(lease_of(name)):
            yield True


def lease_of(name: TableName) -> Held:
    return Held(1, bucket_of(name), 100 + bucket_of(name))


@pytest.mark.parametrize("happen", [reported, asked_for, due])
def test_each_look_of_several_writes_by_the_lease_of_its_own_bucket(
    monkeypatch: pytest.MonkeyPatch, happen: Callable[[Lakehouse], None]
) -> None:
    house = lakehouse()
    house.rounds(2)
    happen(house)
    house.part = Fenced()
    house.restart()
    meet, held = threading.Barrier(AT_ONCE_MAX), dict[TableName, Held | None]()

    def note_lease(name: TableName, *, plan_anew: bool = False) -> Looked:
        del plan_anew
        meet.wait(TIMEOUT_S)
        held[name] = held_now()
        raise LookLost("nothing is written in this test")

    monkeypatch.setattr(house.control.maintainer, "look", note_lease)
    for writer, write in ((house.control.maintainer, "postpone"), (house.tables, "tried")):
        monkeypatch.setattr(writer, write, lambda *_, **__: None)
    house.control.loop.round()
    assert held == {name: lease_of(name) for name in NAMES}
    assert held_now() is None
