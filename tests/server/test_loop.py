"""Rounds: what is due is done once, and nobody's trouble is anybody else's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from icewright.core.errors import Conflict, OutcomeUnknown, StorageUnavailable, StoreUnavailable, Unavailable
from icewright.events.inbox import UNKNOWN_MAX
from icewright.events.reporting import GRACE_MS
from icewright.maintenance.table_maintainer import Looked
from icewright.model.events.events import Channel, CommitEvent, Lag
from icewright.model.iceberg.names import TableName
from icewright.model.work.retention import RETENTION, RowKind
from icewright.model.work.tasks import Task, TaskState
from icewright.observation.outages import CATALOG_PAUSE_MS, STORAGE_AWAY_MAX, STORAGE_PAUSE_MS
from icewright.ports.inbox import EventFilter
from icewright.ports.store import AT_ONCE
from icewright.retention import pruning as pruning_module
from icewright.retention.pruning import PRUNING_INTERVAL_MS
from icewright.server import loop as loop_module
from icewright.server.discovery import INTERVAL_MS as DISCOVERY_INTERVAL_MS
from icewright.server.loop import ROUND_MS_MAX
from tests.builders.lakehouse import AUTO, HOUR_MS, LEASE_MS, MINUTE_MS, NAME, SECOND_MS, Lakehouse
from tests.builders.worker import Worker, at_work
from tests.contracts.samples import REASON, new_task
from tests.narrowing import not_none

OTHER = TableName("lake", ("db",), "other")
FAR = TableName("far", ("db",), "events")
PARALLEL_LOOKS = 4


@pytest.fixture
def house() -> Lakehouse:
    return Lakehouse(others=["far"], parallel_looks=PARALLEL_LOOKS)


def state_of(house: Lakehouse) -> Any:
    """All that a round could have changed."""
    tasks = house.all_tasks()
    records = house.tables.records(limit=100)
    return (
        tasks,
        [house.tasks.history(task.task_id) for task in tasks],
        records,
        [house.tables.plans(record.table_id, limit=100) for record in records],
        house.tables.inbox(100),
    )


def test_the_whole_way_from_commit_to_verified(house: Lakehouse) -> None:
    house.create()
    house.control.loop.round()
    house.pass_time(HOUR_MS)
    house.notify(house.append(8))
    house.control.loop.round()
    assert house.tables.inbox(10) == []
    assert house.all_tasks() == []  # the files are too new
    house.rounds(70)
    Worker(house).carry_out()
    house.control.loop.round()
    assert house.only_task().state is TaskState.SUCCEEDED
    assert len(house.catalog.live_files(NAME)) == 1
    assert house.tables.plan(house.record().plan_id or "").reason.code == "well-laid-out"


def test_a_round_is_idempotent(house: Lakehouse) -> None:
    house.ready_table()
    house.notify(house.append(1))
    house.control.loop.round()
    once = state_of(house)
    house.control.loop.round()
    assert state_of(house) == once
    worker, spec = at_work(house)
    for step in (lambda: worker.commit(spec), lambda: worker.commit_unknown(spec), lambda: house.pass_time(LEASE_MS)):
        step()
        house.control.loop.round()
        once = state_of(house)
        house.control.loop.round()
        assert state_of(house) == once


def test_tables_that_nobody_told_us_of_are_found(house: Lakehouse) -> None:
    house.control.loop.round()
    house.create()
    house.catalogs["far"].create(FAR)
    house.pass_time(DISCOVERY_INTERVAL_MS - 1)
    house.control.loop.round()
    assert house.tables.record_by_name(NAME) is None
    house.pass_time(1)
    house.control.loop.round()
    assert house.record().name == NAME
    assert house.record(FAR).name == FAR


def test_a_commit_that_nobody_reported_is_found_by_the_sweep(house: Lakehouse) -> None:
    house.ready_table()
    house.control.loop.round()
    Worker(house).carry_out()
    house.control.loop.round()
    house.append(8)
    house.rounds(62, every_ms=MINUTE_MS)
    assert [task.state for task in house.all_tasks()] == [TaskState.SUCCEEDED, TaskState.QUEUED]


def test_a_conflict_tells_of_a_commit_that_nobody_reported(house: Lakehouse) -> None:
    house.ready_table()
    house.control.loop.round()
    worker, spec = at_work(house)
    house.catalog.delete(NAME, [house.catalog.live_files(NAME)[0].path])
    worker.report(spec, worker.try_commit(spec))
    house.control.loop.round()
    assert house.record().snapshot_id == house.metadata().current_snapshot_id
    assert house.tables.due(AT_ONCE, 9) == []


def test_work_that_turned_out_to_be_stale_is_planned_again_at_once(house: Lakehouse) -> None:
    house.ready_table()
    house.control.loop.round()
    house.catalog.delete(NAME, [house.catalog.live_files(NAME)[0].path])
    assert Worker(house).claim_if_any() is None
    house.control.loop.round()
    assert house.record().snapshot_id == house.metadata().current_snapshot_id


def test_events_of_unknown_tables_and_catalogs_are_done(house: Lakehouse) -> None:
    house.tables.receive(CommitEvent(TableName("lake", ("db",), "nothing"), 1))
    house.tables.receive(CommitEvent(TableName("nowhere", ("db",), "nothing"), 1))
    house.control.loop.round()
    assert house.tables.inbox(10) == []
    told = [one.trouble and one.trouble.code for one in house.tables.received(EventFilter(), limit=9)]
    assert told == ["not-found", "not-found"], "why nothing came of it"
    assert house.tables.records(limit=10) == []
    assert house.control.loop.unreadable == {}


def test_events_are_done_only_when_somebody_looked(house: Lakehouse) -> None:
    house.ready_table()
    house.control.loop.round()
    house.catalog.available = False
    house.notify(house.append(1))
    house.rounds(20)
    (waits,) = house.tables.inbox(10)
    assert waits.tries > 0
    assert not_none(waits.trouble).code == "unavailable"
    house.restart()
    house.control.loop.round()
    assert len(house.tables.inbox(10)) == 1
    house.catalog.available = True
    house.pass_time(CATALOG_PAUSE_MS)
    house.control.loop.round()
    assert house.tables.inbox(10) == []
    assert house.record().snapshot_id == house.metadata().current_snapshot_id


def test_repeated_events_cost_one_look(house: Lakehouse) -> None:
    house.ready_table()
    snapshots = [house.append(1) for _ in range(5)]
    assert [house.notify(s) for s in (*snapshots, *snapshots)] == [True] * 5 + [False] * 5
    house.control.loop.round()
    assert len(house.tables.plans(house.record().table_id, limit=100)) == 1


# Trouble stays where it is.


def test_a_catalog_that_is_away_is_left_alone_for_a_while(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house.ready_table()
    house.control.loop.round()
    asked: list[int] = []

    def away(*_name: TableName) -> Any:
        asked.append(house.clock.now())
        raise Unavailable("no answer")

    monkeypatch.setattr(house.catalog, "load", away)
    monkeypatch.setattr(house.catalog, "tables", away)
    house.notify(house.append(1))
    start = house.clock.now()
    house.rounds(2 * CATALOG_PAUSE_MS // SECOND_MS)
    assert asked == [start, start + CATALOG_PAUSE_MS]


def test_a_table_whose_storage_is_away_stops_no_other_table_of_its_catalog(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ready_table()
    house.ready_table(OTHER)
    house.control.loop.round()
    load, asked = house.catalog.load, list[int]()

    def some_away(name: TableName) -> Any:
        if name == NAME:
            asked.append(house.clock.now())
            raise StorageUnavailable("no answer")
        return load(name)

    monkeypatch.setattr(house.catalog, "load", some_away)
    start = house.clock.now()
    house.notify(house.append(1))
    house.notify(house.append(1, name=OTHER), OTHER)
    house.rounds(2 * STORAGE_PAUSE_MS // SECOND_MS)
    assert house.control.loop.paused_until("lake") is None
    assert house.record(OTHER).snapshot_id == house.metadata(OTHER).current_snapshot_id
    assert asked == [start, start + STORAGE_PAUSE_MS]  # the event is done; the table's time comes again
    monkeypatch.setattr(house.catalog, "load", load)
    house.rounds(STORAGE_PAUSE_MS // SECOND_MS)
    assert house.record().snapshot_id == house.metadata().current_snapshot_id


def test_storage_that_is_away_for_several_tables_is_that_of_the_catalog(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [TableName("lake", ("db",), f"t{number}") for number in range(2 * STORAGE_AWAY_MAX + PARALLEL_LOOKS)]
    for name in names:
        house.ready_table(name)
    house.control.loop.round()
    asked: list[TableName] = []

    def away(name: TableName) -> Any:
        asked.append(name)
        raise StorageUnavailable("no answer")

    monkeypatch.setattr(house.catalog, "load", away)
    for name in names:
        house.notify(house.append(1, name=name), name)
    house.control.loop.round()
    assert (
        STORAGE_AWAY_MAX <= len(asked) < STORAGE_AWAY_MAX + PARALLEL_LOOKS
    )  # others had begun as the last of them failed
    assert house.control.loop.paused_until("lake") is not None


def test_a_clock_that_is_set_back_lengthens_no_pause(house: Lakehouse) -> None:
    """Neither of a catalog that did not answer, nor until the next listing, nor until the next pruning."""
    house.catalog.available = False
    house.control.loop.round()
    house.catalog.available = True
    house.server_clock.ahead_ms = -HOUR_MS
    assert house.control.loop.paused_until("lake") is None
    house.control.loop.round()
    house.ready_table()
    house.server_clock.ahead_ms = -2 * HOUR_MS
    house.control.loop.round()
    assert house.record().snapshot_id == house.metadata().current_snapshot_id


def test_paused_catalogs_are_told(house: Lakehouse) -> None:
    house.catalog.available = False
    house.control.loop.round()
    assert house.control.loop.paused_until("lake") == house.clock.now() + CATALOG_PAUSE_MS
    assert house.control.loop.paused_until("far") is None
    house.pass_time(CATALOG_PAUSE_MS)
    assert house.control.loop.paused_until("lake") is None


def test_a_catalog_that_is_away_stops_no_other(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tables, events and tasks of it are in the way."""
    monkeypatch.setattr(loop_module, "BATCH_MAX", 3)
    names = [TableName("lake", ("db",), f"t{number}") for number in range(5)]
    for name in names:
        house.ready_table(name)
    house.catalogs["far"].create(FAR, properties=AUTO)
    worker = Worker(house)
    for _ in range(5):
        house.rounds(3)
    for name in names:
        spec = worker.claimed()
        assert spec.table_name in names
        worker.commit_unknown(spec)
        house.notify(house.append(1, name=name), name)
    house.pass_time(2 * HOUR_MS)
    house.catalog.available = False
    house.append(8, name=FAR)
    house.notify(house.append(8, name=FAR), FAR)
    house.control.loop.round()
    house.control.loop.round()
    assert house.tables.inbox(100)[-1].event.table_name in names
    assert house.record(FAR).snapshot_id == house.metadata(FAR).current_snapshot_id
    house.rounds(300)
    worker.introduce("far")
    far = not_none(worker.claim())
    assert far.table_name == FAR
    worker.report(far, worker.try_commit(far))
    house.control.loop.round()
    assert house.tasks.get(far.task_id).state is TaskState.SUCCEEDED
    house.catalog.available = True
    house.rounds(60)
    assert house.tables.inbox(100) == []
    assert {t.state for t in house.all_tasks()} <= {TaskState.SUPERSEDED, TaskState.QUEUED, TaskState.SUCCEEDED}


def test_overdue_tables_of_a_catalog_that_is_away_fill_no_batch(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module, "BATCH_MAX", 3)
    for number in range(5):
        house.create(TableName("lake", ("db",), f"t{number}"))
    house.create(FAR)
    house.control.loop.round()
    house.pass_time(2 * HOUR_MS)
    house.control.maintainer.postpone(FAR, house.clock.now())  # the others are longer overdue
    house.catalog.available = False
    house.append(1, name=FAR)
    house.rounds(4)
    assert house.record(FAR).snapshot_id == house.metadata(FAR).current_snapshot_id


@pytest.mark.parametrize("are_known", [False, True], ids=["discovered", "swept"])
def test_many_tables_that_take_long_keep_no_event_waiting(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch, *, are_known: bool
) -> None:
    """Each look takes a second: a commit that is told is seen behind a few of them, and then the others are."""
    house.create(FAR)
    house.control.loop.round()
    names = [TableName("lake", ("db",), f"t{number}") for number in range(20)]
    for name in names:
        house.create(name)
    if are_known:
        house.rounds(3, every_ms=MINUTE_MS)
        for name in names:
            house.append(1, name=name)  # or they would be passed over
        house.pass_time(2 * HOUR_MS)
    else:
        house.pass_time(MINUTE_MS)
    looks: list[TableName] = []
    look = house.control.maintainer.look

    def slow_look(name: TableName, *, plan_anew: bool = False) -> Looked:
        looks.append(name)
        house.clock.advance(1_000)
        return look(name, plan_anew=plan_anew)

    monkeypatch.setattr(house.control.maintainer, "look", slow_look)
    house.control.loop.turn()
    assert 1 <= len(looks) <= 4, "each of two steps, for two seconds"
    house.notify(house.append(1, name=FAR), FAR)
    house.control.loop.turn()
    assert house.record(FAR).snapshot_id == house.metadata(FAR).current_snapshot_id
    for _ in range(20):
        house.control.loop.turn()
    assert set(names) <= set(looks)


def test_a_commit_that_cannot_be_verified_hides_no_other(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "BATCH_MAX", 1)
    house.ready_table()
    house.ready_table(OTHER)
    house.control.maintainer.look(NAME)
    house.control.maintainer.look(OTHER)
    worker = Worker(house)
    worker.carry_out()
    worker.carry_out()
    older, newer = house.all_tasks()
    snapshot = not_none(house.metadata(newer.table_name).current_snapshot)
    house.catalog.damage(snapshot.manifest_list)
    house.control.loop.round()
    assert house.tasks.get(older.task_id).state is TaskState.SUCCEEDED
    assert house.tasks.get(newer.task_id).state is TaskState.COMMITTED


def test_a_table_that_brings_the_planner_down_stops_no_other(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house.ready_table()
    house.ready_table(OTHER)
    plan_observed = house.control.planner.plan_observed

    def brittle(observation: Any) -> Any:
        if observation.metadata.name == NAME:
            raise ZeroDivisionError("a defect")
        return plan_observed(observation)

    monkeypatch.setattr(house.control.planner, "plan_observed", brittle)
    house.notify(house.append(1))
    house.control.loop.round()
    assert [task.table_name for task in house.all_tasks()] == [OTHER]
    problem = not_none(house.record().problem)
    assert (problem.code, problem.text) == ("defect", "ZeroDivisionError: a defect")
    assert house.record().next_look_at > house.clock.now() + MINUTE_MS


def test_an_unreadable_table_stops_no_other_and_is_listed(house: Lakehouse) -> None:
    house.ready_table()
    house.ready_table(OTHER)
    house.catalog.damage(house.metadata().metadata_location)
    house.control.loop.round()
    assert [task.table_name for task in house.all_tasks()] == [OTHER]
    first = house.control.loop.unreadable[NAME]
    assert (first.code, first.figures["since"]) == ("unreadable", house.clock.now())
    house.pass_time(DISCOVERY_INTERVAL_MS)
    house.control.loop.round()
    assert house.control.loop.unreadable[NAME] == first, "since when is kept"
    house.append(1)  # new metadata
    house.pass_time(DISCOVERY_INTERVAL_MS)
    house.control.loop.round()
    assert house.control.loop.unreadable == {}


def test_a_known_table_keeps_its_problem_in_its_record(house: Lakehouse) -> None:
    house.ready_table()
    house.control.loop.round()
    house.notify(house.append(1))
    house.catalog.damage(house.metadata().metadata_location)
    house.control.loop.round()
    assert house.control.loop.unreadable == {}
    assert house.record().problem is not None
    assert house.tables.inbox(10) == []


def test_a_listing_asks_the_store_once_however_many_tables_there_are(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        house.ready_table(TableName("lake", ("db",), f"t{number}"), AUTO)
    house.rounds(3)
    asked: list[TableName] = []
    monkeypatch.setattr(house.tables, "record_by_name", asked.append)
    monkeypatch.setattr(house.control.loop._maintainer, "look", lambda *_args, **_more: pytest.fail("nothing is due"))
    house.pass_time(DISCOVERY_INTERVAL_MS)
    house.control.loop._discover()
    assert asked == []


def test_a_catalog_is_not_listed_again_and_again_while_the_store_does_not_answer(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.create()
    listed: list[str] = []
    real = house.catalogs["lake"].tables

    def tables() -> Iterator[TableName]:
        listed.append("lake")
        return real()

    monkeypatch.setattr(house.catalogs["lake"], "tables", tables)

    def away(_catalog: str, _names: object) -> frozenset[TableName]:
        raise StoreUnavailable("the store does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(house.tables, "unknown", away)
        for _ in range(3):
            house.control.loop.round()
    assert listed == ["lake"]
    house.pass_time(DISCOVERY_INTERVAL_MS)
    house.control.loop.round()
    assert house.record().name == NAME


def test_an_unreadable_table_that_is_dropped_is_listed_no_more(house: Lakehouse) -> None:
    house.ready_table()
    house.catalog.damage(house.metadata().metadata_location)
    house.control.loop.round()
    house.catalog.drop(NAME)
    house.pass_time(DISCOVERY_INTERVAL_MS)
    house.control.loop.round()
    assert house.control.loop.unreadable == {}


def test_a_catalog_that_is_not_configured_any_more_stops_nothing(house: Lakehouse) -> None:
    house.ready_table()
    house.ready_table(FAR, properties=AUTO)
    house.control.loop.round()
    worker = Worker(house)
    worker.introduce("far")
    spec = not_none(worker.claim())
    worker.commit_unknown(spec)
    house.notify(house.append(1, name=FAR), FAR)
    house.restart(without=frozenset({"far"}))
    house.rounds(70, every_ms=MINUTE_MS)
    record = house.record(FAR)
    assert record.problem is not None
    assert record.problem.code == "catalog-not-configured"
    assert record.problem.text == "catalog far is not configured on the server that looks at this table"
    assert record.dropped_at is None
    assert house.tasks.get(spec.task_id).state is TaskState.IN_DOUBT
    house.restart()
    house.rounds(70, every_ms=MINUTE_MS)
    assert house.record(FAR).problem is None
    assert house.tasks.get(spec.task_id).state is TaskState.SUPERSEDED


@pytest.mark.parametrize("error", [Conflict("it changed"), Unavailable("the store is busy"), ZeroDivisionError()])
def test_one_task_in_trouble_stops_no_other(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    for name in (NAME, OTHER, TableName("far", ("db",), "third")):
        house.ready_table(name, properties=AUTO)
    house.control.loop.round()
    worker = Worker(house)
    worker.introduce("lake", "far")
    while (spec := worker.claim()) is not None:
        worker.report(spec, worker.try_commit(spec))
    verify = house.control.verifier.verify

    def brittle(task: Task) -> Task:
        if task.table_name == NAME:
            raise error
        return verify(task)

    monkeypatch.setattr(house.control.verifier, "verify", brittle)
    house.control.loop.round()
    states = {task.table_name: task.state for task in house.all_tasks()}
    assert states[NAME] is TaskState.COMMITTED
    assert states[TableName("far", ("db",), "third")] is TaskState.SUCCEEDED
    monkeypatch.undo()
    house.pass_time(CATALOG_PAUSE_MS)
    house.control.loop.round()
    assert {task.state for task in house.all_tasks()} == {TaskState.SUCCEEDED}


def test_a_table_that_moves_while_it_is_looked_at_is_looked_at_again(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ready_table()
    house.control.loop.round()
    house.notify(house.append(1))

    def moved(*_args: Any) -> Any:
        raise Conflict("the manifest belongs to another snapshot")

    monkeypatch.setattr(house.catalog, "manifests", moved)
    house.control.loop.round()
    assert len(house.tables.inbox(10)) == 1
    assert house.record().problem is None
    monkeypatch.undo()
    house.control.loop.round()
    assert house.tables.inbox(10) == []


def test_a_step_that_fails_stops_no_other_step(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house.ready_table()

    def broken(*_args: Any, **_kwargs: Any) -> Any:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(house.tables, "reported_tables", broken)
    monkeypatch.setattr(house.tasks, "expired", broken)
    house.control.loop.round()
    assert house.only_task().state is TaskState.QUEUED


def test_an_expired_lease_whose_report_is_faster(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    house.ready_table()
    house.control.loop.round()
    worker, spec = at_work(house)
    stale = house.only_task()
    worker.report(spec, worker.try_commit(spec))
    monkeypatch.setattr(house.tasks, "expired", lambda _limit: [stale])
    house.control.loop.round()
    assert house.only_task().state is TaskState.SUCCEEDED


def test_it_runs_until_it_is_stopped_and_wakes_when_told(house: Lakehouse) -> None:
    house.create()
    rounds = threading.Semaphore(0)
    turn = house.control.loop.turn

    def counted() -> None:
        turn()
        rounds.release()

    house.control.loop.turn = counted  # type: ignore[method-assign]  # counts
    thread = threading.Thread(target=house.control.loop.run, args=(3600.0,))
    thread.start()
    assert rounds.acquire(timeout=30)
    house.control.loop.wake()
    assert rounds.acquire(timeout=30)
    house.control.loop.stop()
    thread.join(30)
    assert not thread.is_alive()


def test_old_events_are_forgotten_once_an_hour(house: Lakehouse) -> None:
    house.create()
    house.control.loop.round()
    house.pass_time(PRUNING_INTERVAL_MS // 2)
    event = CommitEvent(NAME, 1, house.metadata().table_id.uuid, None, None, None)
    assert house.tables.receive(event)
    house.control.loop.round()
    house.pass_time(RETENTION.spans_ms[RowKind.EVENTS] - MINUTE_MS)
    house.control.loop.round()
    house.pass_time(2 * MINUTE_MS)  # old enough now, but pruned two minutes ago
    house.control.loop.round()
    assert not house.tables.receive(event)
    house.pass_time(PRUNING_INTERVAL_MS)
    house.control.loop.round()
    assert house.tables.receive(event)


def test_tasks_that_ended_long_ago_are_forgotten_in_batches(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning_module, "TASKS_AT_ONCE", 2)
    monkeypatch.setattr(pruning_module, "BATCHES_MAX", 2)
    for number in range(5):
        house.tasks.enqueue(new_task(f"task-{number}", table=number))
        house.tasks.request_cancel(f"task-{number}", REASON)
    house.tasks.enqueue(new_task("task-waiting", table=9))
    house.control.loop.round()
    house.pass_time(RETENTION.spans_ms[RowKind.TASKS])
    house.control.loop.round()
    assert house.tasks.counts()[TaskState.CANCELLED] == 5
    house.pass_time(PRUNING_INTERVAL_MS)
    house.control.loop.round()
    assert house.tasks.counts()[TaskState.CANCELLED] == 1
    house.pass_time(1)  # there was more than one round forgets: it goes on with the next
    house.control.loop.round()
    assert [task.task_id for task in house.all_tasks()] == ["task-waiting"]


def test_a_log_that_cannot_be_written_does_not_end_the_loop(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, rounds = house.control.loop, 0

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    def broken() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            loop.stop()
        loop.wake()
        raise RuntimeError("a defect")

    monkeypatch.setattr("icewright.server.loop._log", type("Full", (), {"exception": full})())
    monkeypatch.setattr(loop, "_work_inbox", broken)
    broken.__name__ = "_work_inbox"
    began_at = house.clock.now()
    loop.run(0)
    assert rounds == 3
    house.pass_time(ROUND_MS_MAX)
    assert loop.stalled_since is None
    house.pass_time(1)
    assert loop.stalled_since == began_at


def test_many_new_tables_are_looked_at_over_several_rounds(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "BATCH_MAX", 3)
    names = [TableName("lake", ("db",), f"new{number}") for number in range(7)]
    for name in names:
        house.create(name)
    known = []
    for _ in range(3):
        house.rounds(1, every_ms=1)
        known.append(sum(house.tables.record_by_name(name) is not None for name in names))
    assert known == [3, 6, 7]


@pytest.mark.parametrize(
    ("store", "write"),
    [
        ("tables", "apply_inventory"),
        ("tables", "save_plan"),
        ("tables", "save_record"),
        ("tasks", "enqueue"),
        ("tasks", "change"),
    ],
)
@pytest.mark.parametrize("applied", [False, True])
def test_a_write_that_nobody_heard_of_again_is_looked_for_and_made_once(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch, store: str, write: str, *, applied: bool
) -> None:
    """Each kind of write of the loop, each time it is made: its answer is lost, whether it took effect or not."""
    owner = getattr(house, store)
    real, heard = getattr(owner, write), [False]

    def unheard(*arguments: object, **named: object) -> object:
        heard[0] = not heard[0]
        if heard[0] and not applied:
            raise OutcomeUnknown("the store went away in the middle of a commit")
        answer = real(*arguments, **named)
        if heard[0]:
            raise OutcomeUnknown("the store went away in the middle of a commit")
        return answer

    monkeypatch.setattr(owner, write, unheard)
    house.ready_table()
    with capture_logs() as logs:
        for _ in range(6):
            house.rounds(1)
            house.pass_time(HOUR_MS)
    assert [entry for entry in logs if entry["log_level"] == "error"] == []
    assert house.control.loop.paused_until("lake") is None
    assert house.control.loop.unreadable == {}
    assert house.only_task().state is TaskState.QUEUED
    monkeypatch.setattr(owner, write, real)
    task = Worker(house).carry_out()
    monkeypatch.setattr(owner, write, unheard)
    house.rounds(3)
    assert house.only_task().task_id == task.task_id
    assert house.tasks.get(task.task_id).state is TaskState.SUCCEEDED


def test_a_store_that_is_away_is_not_taken_for_a_catalog_that_is(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> object:
        raise StoreUnavailable("the database is locked")

    house.ready_table()
    with monkeypatch.context() as patch:
        patch.setattr(house.tables, "save_plan", away)
        house.rounds(1)
    assert house.control.loop.paused_until("lake") is None
    house.rounds(1)
    task = Worker(house).carry_out()
    with monkeypatch.context() as patch:
        patch.setattr(house.tasks, "change", away)
        house.rounds(1)
    assert house.control.loop.paused_until("lake") is None
    house.rounds(1)
    assert house.tasks.get(task.task_id).state is TaskState.SUCCEEDED


def test_t13_events_of_tables_that_are_not_known_keep_no_known_table_waiting(house: Lakehouse) -> None:
    house.ready_table()
    house.control.loop.round()
    made_up = [CommitEvent(TableName("lake", ("db",), f"made-up-{number}"), 1) for number in range(3 * UNKNOWN_MAX)]
    house.tables.receive(*made_up)
    snapshot = house.append(1)
    house.notify(snapshot)
    house.control.loop.turn()
    assert house.record().snapshot_id == snapshot.snapshot_id
    assert len(house.tables.inbox(1_000)) == 2 * UNKNOWN_MAX
    house.rounds(2)
    assert house.tables.inbox(1_000) == []


def test_when_a_commit_was_made_is_taken_from_the_table(house: Lakehouse) -> None:
    house.ready_table()
    house.control.loop.round()
    snapshot = house.append(1)
    house.pass_time(2_000)
    house.notify(snapshot)
    house.tables.receive(CommitEvent(NAME, 12345))
    house.pass_time(3_000)
    house.control.loop.turn()
    (figures,) = house.tables.event_figures(limit=1).channels
    assert figures.commit_to_receipt == Lag(1, 2_000, 2_000)
    assert figures.receipt_to_look == Lag(2, 3_000, 3_000)


def test_commits_that_no_event_told_of_are_counted_for_their_table(house: Lakehouse) -> None:
    house.ready_table()
    house.control.loop.round()
    told = house.append(1)
    house.notify(told)
    house.append(1)
    house.control.loop.turn()
    house.pass_time(GRACE_MS)
    house.control.maintainer.look(NAME)
    reporting = not_none(house.record().reporting)
    assert (reporting.told, reporting.untold, reporting.sweep_only) == ({Channel.HTTP: 1}, (), 1)
