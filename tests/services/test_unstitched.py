"""Row groups that cannot be copied: the attempt fails, and the table is planned with another executor for a day."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.adapters.memory.clock import ManualClock
from icewright.domain.actions import Executor
from icewright.domain.jobs import PROTOCOL_VERSION, CommitUnknown, Failed, GroupLeft, TaskReport
from icewright.domain.names import TableId
from icewright.domain.policy import Mode
from icewright.domain.tasks import TaskState
from icewright.services import unstitched
from icewright.services.unstitched import NOT_STITCHABLE, REMEMBERED_MS, Unstitched
from tests.services.lakehouse import AUTO, MIB, MINUTE_MS, NAME, Lakehouse
from tests.services.worker import Worker

TWO_WRITERS = Failed(NOT_STITCHABLE, "a.parquet and b.parquet are written by other writers", retryable=False)


def with_large_row_groups(house: Lakehouse, properties: dict[str, str]) -> None:
    house.create(NAME, properties)
    files = [replace(file, row_groups=1) for file in house.files(8, size_bytes=5 * MIB)]
    house.catalog.append(NAME, files)
    house.pass_time(10 * MINUTE_MS)


def planned(house: Lakehouse) -> set[Executor]:
    plan = house.control.keeper.look(NAME).plan
    return {group.executor for action in plan.actions for group in action.groups}


def test_what_cannot_be_stitched_is_merged_next() -> None:
    house = Lakehouse()
    with_large_row_groups(house, AUTO)
    assert planned(house) == {Executor.STITCH}
    worker = Worker(house)

    task = worker.report(worker.claimed(), TWO_WRITERS)

    assert task.state is TaskState.SUPERSEDED
    assert NAME in list(house.control.dispatcher.moved())
    assert planned(house) == {Executor.MERGE}
    assert {group.executor for group in worker.claimed().action.groups} == {Executor.MERGE}


def test_a_group_that_is_left_is_told_as_well() -> None:
    house = Lakehouse()
    with_large_row_groups(house, AUTO)
    house.control.keeper.look(NAME)
    worker = Worker(house)
    spec = worker.claimed()
    left = GroupLeft(0, NOT_STITCHABLE, TWO_WRITERS.detail, retryable=False)
    unknown = CommitUnknown("the catalog closed the connection")
    house.control.dispatcher.report(
        TaskReport(PROTOCOL_VERSION, spec.task_id, spec.attempt, spec.fencing_token, unknown, (), (), 1, 1, (left,))
    )
    assert house.control.observer.observe(NAME).not_stitched == TWO_WRITERS.detail


def test_a_plan_that_awaits_approval_is_made_anew() -> None:
    """Else a person would apply the same plan again, which fails again."""
    house = Lakehouse(rules=())
    with_large_row_groups(house, {**AUTO, "icewright.mode": Mode.APPROVE.value})
    plan = house.control.keeper.look(NAME).plan
    house.control.dispatcher.apply(plan.plan_id)
    worker = Worker(house)
    worker.report(worker.claimed(), TWO_WRITERS)
    assert planned(house) == {Executor.MERGE}


def test_other_trouble_speaks_against_no_row_groups() -> None:
    house = Lakehouse()
    with_large_row_groups(house, AUTO)
    house.control.keeper.look(NAME)
    worker = Worker(house)
    worker.report(worker.claimed(), Failed("storage-away", "no route", retryable=True))
    assert house.control.observer.observe(NAME).not_stitched == ""


def test_it_is_forgotten_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    book, tables = Unstitched(clock), [TableId("lake", str(number)) for number in range(3)]
    book.note(tables[0], "two writers")
    clock.advance(REMEMBERED_MS - 1)
    assert book.why(tables[0]) == "two writers"
    clock.advance(1)
    assert book.why(tables[0]) == ""
    monkeypatch.setattr(unstitched, "REMEMBERED_MAX", 2)
    for table in tables:
        book.note(table, "two schemas")
    assert [book.why(table) for table in tables] == ["", "two schemas", "two schemas"]
