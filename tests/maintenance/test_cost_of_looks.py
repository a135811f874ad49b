"""What a look at a table costs the store: the statements and transactions of a real database, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, Engine, event

from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import PolicyRule
from icewright.store.transactions import WRITES
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.builders.lakehouse import AUTO, MINUTE_MS, NAME, Lakehouse
from tests.lakes.stores import new_store

STATEMENTS_MAX = 8
"""Of an unchanged look, with those that begin its transactions."""
FIRST_LOOK = (2, 3)
"""The transactions of a first look that queues nothing: reads and writes."""
FIRST_STATEMENTS_MAX = 20
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
def test_a_first_look_reads_by_name_and_by_id_and_writes_inventory_plan_and_record(mode: str) -> None:
    engine = new_store()
    house = lakehouse(engine, mode)
    house.create()
    house.append(1)
    with counted(engine) as found:
        assert house.control.maintainer.look(NAME).is_new
    assert (found["reads"], found["writes"]) == FIRST_LOOK
    assert found["statements"] <= FIRST_STATEMENTS_MAX


def test_a_look_after_a_commit_reads_once_before_it_plans() -> None:
    """Then it moves the inventory, keeps the plan and what lists show, and reads what planning asks for."""
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
    assert (found["reads"], found["writes"]) == (2, 3)
    assert found["statements"] <= 30
