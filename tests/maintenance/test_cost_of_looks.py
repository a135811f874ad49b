"""What a look at a table costs the store: the statements and transactions of a real database, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, Engine, event

from icewright.core.servers import BUCKETS, TableShare
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import PolicyRule
from icewright.store.transactions import WRITES
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.builders.lakehouse import AUTO, MINUTE_MS, NAME, Lakehouse
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store

STATEMENTS_MAX = 8
"""Of an unchanged look, with those that begin its transactions."""
FIRST_LOOK = (1, 1)
"""The transactions of a first look that queues nothing: reads and writes."""
FIRST_STATEMENTS_MAX = 8
"""Of such a look, with those that begin its transactions."""
ALL_UPKEEP = {
    f"icewright.{kind}.enabled": "true"
    for kind in ("expire-snapshots", "rewrite-manifests", "remove-orphan-files", "compute-statistics", "expire-data")
}


@contextmanager
def counted(engine: Engine) -> Iterator[Counter[str]]:
    """How many statements are said meanwhile, and how many transactions read and write."""
    found = Counter[str]()

    def begun(connection: Connection) -> None:
        found["writes" if connection.get_execution_options().get(WRITES) else "reads"] += 1

    def said(*_: object) -> None:
        found["statements"] += 1

    event.listen(engine, "begin", begun)
    event.listen(engine, "before_cursor_execute", said)
    try:
        yield found
    finally:
        event.remove(engine, "begin", begun)
        event.remove(engine, "before_cursor_execute", said)


def lakehouse(engine: Engine, mode: str, *, has_files: bool = False) -> Lakehouse:
    rule = PolicyRule("lake", (), {**AUTO, **ALL_UPKEEP, "icewright.mode": mode})
    return Lakehouse(
        rules=(rule,),
        stores=lambda clock: (SqlTableStore(engine, clock), SqlTaskStore(engine, clock)),
        has_files=has_files,
    )


@pytest.mark.parametrize("mode", ["observe", "approve", "auto"])
@pytest.mark.parametrize("has_files", [False, True])
def test_an_unchanged_look_reads_the_store_once_and_writes_it_once(mode: str, *, has_files: bool) -> None:
    engine = new_store()
    house = lakehouse(engine, mode, has_files=has_files)
    house.ready_table()
    house.rounds(2)
    for task in house.all_tasks():  # a task that waits is asked each time whether it still may run
        house.tasks.request_cancel(task.task_id, Reason("cancelled", "by a person"))
    for _ in range(3):
        house.control.maintainer.look(NAME)
        house.pass_time(1)
    with counted(engine) as found:
        looked = house.control.maintainer.look(NAME)
    assert not looked.is_new
    assert (found["reads"], found["writes"]) == (1, 1)
    assert found["statements"] <= STATEMENTS_MAX


@pytest.mark.parametrize("mode", ["observe", "approve"])  # in mode auto it queues a task besides
def test_a_first_look_asks_for_the_name_and_writes_inventory_plan_and_record_together(mode: str) -> None:
    engine = new_store()
    house = lakehouse(engine, mode)
    house.create()
    house.append(1)
    with counted(engine) as found:
        assert house.control.maintainer.look(NAME).is_new
    assert (found["reads"], found["writes"]) == FIRST_LOOK
    assert found["statements"] <= FIRST_STATEMENTS_MAX


def test_a_look_after_a_commit_reads_twice_and_writes_once() -> None:
    """Before it plans, and how the commit was reported; then inventory, plan and record together."""
    engine = new_store()
    house = lakehouse(engine, "observe")
    house.create()
    house.append(1)
    for _ in range(3):
        house.control.maintainer.look(NAME)
        house.pass_time(MINUTE_MS)
    house.append(1)
    with counted(engine) as found:
        assert house.control.maintainer.look(NAME).is_new
    assert (found["reads"], found["writes"]) == (2, 1)
    assert found["statements"] <= 14


def test_a_first_look_under_another_name_is_taken_again_by_the_id() -> None:
    engine = new_store()
    house = lakehouse(engine, "observe")
    house.create()
    house.append(1)
    house.control.maintainer.look(NAME)
    house.catalog.rename(NAME, other := TableName("lake", ("db",), "renamed"))
    with counted(engine) as found:
        house.control.maintainer.look(other)
    assert (found["reads"], found["writes"]) == (3, 2)
    assert house.tables.record_by_name(NAME) is None
    assert house.tables.record_by_name(other) is not None


def test_a_server_asks_for_its_share_with_as_many_parameters_however_many_buckets_it_has() -> None:
    engine = new_store()
    store, said = SqlTableStore(engine, ManualClock()), list[tuple[str, int]]()
    event.listen(engine, "before_cursor_execute", lambda *told: said.append((told[2], len(told[3]))))
    for buckets in (1, BUCKETS // 2, BUCKETS - 1):
        share = TableShare(frozenset(range(buckets)))
        store.due(0, 9, share)
        for known, tried in ((True, False), (False, False), (None, True)):
            store.reported_tables(9, known=known, tried=tried, share=share)
    assert len(set(said)) == len(said) / 3 == 4
