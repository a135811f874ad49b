"""What the latest tasks of a table tell about the next one, where rows are removed from it."""

from __future__ import annotations

from icewright.inventory.row_removals import duration_ms
from icewright.model.plans.observation import TaskThroughput
from icewright.model.work.jobs import Conflicted
from icewright.model.work.tasks import TaskState
from icewright.work.tasks.task_throughput import PACE_MAX, experience
from tests.builders.lakehouse import BONN, KYOTO, MIB, MINUTE_MS, NAME, SECOND_MS, Lakehouse
from tests.builders.worker import Worker
from tests.predictions import estimated


def house_with_a_busy_partition() -> Lakehouse:
    """Two partitions of 1,200 MiB, of which one lost rows a minute ago, as it does every minute."""
    house = Lakehouse()
    house.create(properties={"write.target-file-size-bytes": str(512 * MIB)})
    for partition in (BONN, KYOTO):
        house.catalog.append(NAME, house.files(30, partition, 40 * MIB))
    for _ in range(3):
        house.pass_time(MINUTE_MS)
        house.catalog.append(NAME, house.files(1, KYOTO))
        lost_rows(house)
    house.pass_time(4 * MINUTE_MS)
    return house


def lost_rows(house: Lakehouse) -> None:
    path = next(file.path for file in house.catalog.live_files(NAME) if file.partition == BONN)
    house.catalog.overwrite(NAME, add=house.files(1, BONN, 40 * MIB), remove=[path])


def test_the_pace_is_what_tasks_took_against_what_was_expected() -> None:
    house = house_with_a_busy_partition()
    assert experience(house.tasks, []) == TaskThroughput(1.0, was_tight=False)
    task = house.control.maintainer.look(NAME).enqueued
    assert task is not None
    expected_ms = duration_ms(estimated(task.task).cpu_ms, 1.0)
    worker = Worker(house)
    for wall_ms, pace in ((round(3 * expected_ms), 3.0), (10**9, PACE_MAX)):
        worker.wall_ms = wall_ms
        done = house.control.verifier.verify(worker.carry_out())
        assert done.state is TaskState.SUCCEEDED
        assert abs(experience(house.tasks, [house.tasks.get(done.task_id)]).pace - pace) < 0.01
        house.catalog.append(NAME, house.files(30, KYOTO, 40 * MIB))
        house.pass_time(5 * MINUTE_MS)
        house.control.maintainer.look(NAME)


def test_a_busy_partition_and_the_others_take_turns_also_where_its_tasks_come_to_nothing() -> None:
    """Five tasks in a row that come to nothing would have the table left alone for a day."""
    house = house_with_a_busy_partition()
    worker, turns = Worker(house, wall_ms=MINUTE_MS), []
    for _ in range(4):
        house.control.maintainer.look(NAME, plan_anew=True)
        spec = worker.claimed()
        partitions = {group.partition for group in spec.rewrite.groups}
        turns.append(partitions)
        if BONN in partitions:
            lost_rows(house)
            assert worker.report(spec, Conflicted("rows were removed")).state is TaskState.SUPERSEDED
        else:
            house.control.verifier.verify(worker.report(spec, worker.try_commit(spec)))
            house.catalog.append(NAME, house.files(30, KYOTO, 40 * MIB))
        house.pass_time(4 * MINUTE_MS + 30 * SECOND_MS)
    assert turns == [{BONN}, {KYOTO}, {BONN}, {KYOTO}]
