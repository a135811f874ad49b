"""Files that an executor turns out not to be able to do: the table is planned with another one for a day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from icewright.core.times import Instant
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.files import FileContent
from icewright.model.iceberg.layouts import Level
from icewright.model.iceberg.names import TableId
from icewright.model.policy.policy import Mode
from icewright.model.work.jobs import PROTOCOL_VERSION, CommitUnknown, Failed, GroupLeft, TaskReport
from icewright.model.work.tasks import TaskHead, TaskState
from icewright.observation.executor_exclusions import NOT_SORTED, NOT_STITCHABLE, ExecutorExclusions
from icewright.ports.findings import EXCLUSION_KEPT_MS
from icewright.ports.store import AT_ONCE
from icewright.work.optimizers.file_backoff import with_failed_files
from icewright.work.store.table_store import SqlTableStore
from icewright.work.tasks.retry import PUT_OFF_BASE_MS
from tests.actions.rewrite_data_files.layouts.test_levels_service import grow, laid_out, work
from tests.builders.lakehouse import AUTO, BONN, MIB, MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import FINAL, Worker, at_work
from tests.doubles.clock import ManualClock
from tests.doubles.lake import MemoryFile
from tests.lakes.stores import new_store

TWO_WRITERS = Failed(NOT_STITCHABLE, "a.parquet and b.parquet are written by other writers", retryable=False)


def with_large_row_groups(house: Lakehouse, properties: dict[str, str]) -> None:
    house.create(NAME, properties)
    files = [replace(file, row_groups=1) for file in house.files(8, size_bytes=5 * MIB)]
    house.catalog.append(NAME, files)
    house.pass_time(10 * MINUTE_MS)


def planned(house: Lakehouse) -> set[Executor]:
    plan = house.control.maintainer.look(NAME).plan
    return {group.executor for action in plan.rewrites for group in action.groups}


def put_off(house: Lakehouse, heads: Sequence[TaskHead]) -> Mapping[str, Instant]:
    return with_failed_files(house.control.observer.observe(NAME), house.tasks, heads).put_off


def test_what_cannot_be_stitched_is_merged_next() -> None:
    house = Lakehouse()
    with_large_row_groups(house, AUTO)
    assert planned(house) == {Executor.STITCH}
    worker = Worker(house)

    task = worker.report(worker.claimed(), TWO_WRITERS)

    assert task.state is TaskState.SUPERSEDED
    assert NAME in [record.name for record in house.tables.due(AT_ONCE, 9)]
    assert planned(house) == {Executor.MERGE}
    assert {group.executor for group in worker.claimed().rewrite.groups} == {Executor.MERGE}


def test_a_group_that_is_left_is_told_as_well() -> None:
    house = Lakehouse()
    with_large_row_groups(house, AUTO)
    house.control.maintainer.look(NAME)
    spec = Worker(house).claimed()
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
    plan = house.control.maintainer.look(NAME).plan
    house.control.dispatcher.apply(plan.plan_id)
    worker = Worker(house)
    worker.report(worker.claimed(), TWO_WRITERS)
    assert planned(house) == {Executor.MERGE}


def due_for_level_2() -> Lakehouse:
    """Three runs of Level 1 lie side by side: 60 MiB of files that are all said to be in order."""
    house = laid_out()
    for _ in range(2):
        work(house)
        grow(house)
    house.control.maintainer.look(NAME)
    worker = Worker(house)
    house.control.verifier.verify(worker.carry_out())  # the last Level 1
    house.pass_time(2 * MINUTE_MS)
    return house


def test_what_is_not_sorted_is_shuffled_next_and_not_put_off() -> None:
    house = due_for_level_2()
    assert planned(house) == {Executor.MERGE}
    worker, spec = at_work(house)
    worker.unreadable, worker.failure = {spec.rewrite.groups[0].files[0].path}, NOT_SORTED

    task = worker.report(spec, worker.try_commit(spec))

    assert task.state is TaskState.SUPERSEDED
    assert put_off(house, [task]) == {}
    assert planned(house) == {Executor.SHUFFLE}
    worker.unreadable = set()
    assert house.control.verifier.verify(worker.carry_out()).state is TaskState.SUCCEEDED


def test_a_file_that_was_to_be_kept_in_its_order_and_has_none_is_put_off() -> None:
    """It has no other executor: planned again at once, it would fail again, for ever."""
    house = laid_out()
    work(house)
    (file, *_) = [one for one in house.catalog.live_files(NAME) if one.partition == BONN]
    kind, half = FileContent.POSITION_DELETES, file.record_count // 2
    deletes = MemoryFile("d.parquet", BONN, 100, half, content=kind, referenced_data_file=file.path)
    house.catalog.overwrite(NAME, add=[deletes], remove=[])
    house.pass_time(90 * MINUTE_MS)
    assert planned(house) == {Executor.MERGE}
    worker, spec = at_work(house)
    assert (spec.rewrite.level, spec.rewrite.layout is None) == (Level.LEVEL_0, False)
    worker.unreadable, worker.failure = {file.path}, NOT_SORTED
    task = worker.report(spec, replace(FINAL, code=NOT_SORTED))
    assert task.state is TaskState.FAILED
    assert put_off(house, [task]) == {file.path: task.updated_at + PUT_OFF_BASE_MS}
    assert planned(house) == set()


def test_other_trouble_speaks_against_no_row_groups() -> None:
    house = Lakehouse()
    with_large_row_groups(house, AUTO)
    house.control.maintainer.look(NAME)
    worker = Worker(house)
    worker.report(worker.claimed(), Failed("storage-away", "no route", retryable=True))
    observation = house.control.observer.observe(NAME)
    assert (observation.not_stitched, observation.not_sorted) == ("", "")


def test_it_is_forgotten_after_a_day() -> None:
    clock = ManualClock()
    tables, table = SqlTableStore(new_store(), clock), TableId("lake", "1")
    ExecutorExclusions(tables, clock).note(table, NOT_STITCHABLE, "two writers")
    book = ExecutorExclusions(tables, clock)  # of another server
    clock.advance(EXCLUSION_KEPT_MS - 1)
    assert book.why(table) == {NOT_STITCHABLE: "two writers"}
    clock.advance(1)
    assert book.why(table) == {}
