"""A group that fails by itself is not planned for ever, and stands in nobody's way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from icewright.core.times import Instant
from icewright.model.plans.plans import Verdict
from icewright.model.work.tasks import TaskHead, TaskState
from icewright.observation.executor_exclusions import NOT_STITCHABLE
from icewright.work.optimizers.file_backoff import with_failed_files
from icewright.work.tasks.retry import PUT_OFF_BASE_MS
from tests.builders.lakehouse import BONN, HOUR_MS, KYOTO, NAME, Lakehouse
from tests.builders.worker import Worker
from tests.narrowing import not_none


def house_with_a_bad_file() -> tuple[Lakehouse, Worker, list[str]]:
    """Eight files in Bonn, eight in Kyoto, of which one cannot be read; the files of Kyoto."""
    house = Lakehouse()
    house.create()
    house.append(8)
    files = house.files(8, KYOTO)
    house.catalog.append(NAME, files)
    house.pass_time(HOUR_MS)
    house.control.maintainer.look(NAME)
    return house, Worker(house, unreadable={files[3].path}), [file.path for file in files]


def verified(house: Lakehouse, worker: Worker) -> str:
    task = worker.carry_out()
    if task.state is TaskState.COMMITTED:
        task = house.control.verifier.verify(task)
    return not_none(task.outcome).reason.text


def put_off(house: Lakehouse, heads: Sequence[TaskHead]) -> Mapping[str, Instant]:
    return with_failed_files(house.control.observer.observe(NAME), house.tasks, heads).put_off


def test_the_others_are_committed_and_the_group_that_failed_waits() -> None:
    house, worker, files = house_with_a_bad_file()
    said = "1 of 2 groups: 8 files became 1, the same 80 rows; 1 failed (file-unreadable: a file is missing)"
    assert verified(house, worker) == said
    failed_at = house.only_task().updated_at
    looked = house.control.maintainer.look(NAME)
    assert looked.enqueued is None
    (kyoto,) = [verdict for verdict in looked.plan.verdicts if verdict.partition == KYOTO]
    assert (kyoto.verdict, kyoto.reason.code, kyoto.wait_until) == (
        Verdict.WAIT,
        "put-off",
        failed_at + PUT_OFF_BASE_MS,
    )
    assert looked.plan.look_again_at == failed_at + PUT_OFF_BASE_MS
    assert {file.path for file in house.only_task().rewrite.groups[1].files} == set(files)


def test_it_is_tried_again_after_a_while_and_each_time_later() -> None:
    house, worker, _ = house_with_a_bad_file()
    verified(house, worker)
    waits = []
    for _ in range(3):
        plan = house.control.maintainer.look(NAME, plan_anew=True).plan
        assert plan.look_again_at is not None
        waits.append(plan.look_again_at - house.clock.now())
        house.pass_time(waits[-1] - 1)
        assert house.control.maintainer.look(NAME, plan_anew=True).enqueued is None
        house.pass_time(1)
        assert house.control.maintainer.look(NAME).enqueued is not None
        assert worker.carry_out().state is TaskState.FAILED
    assert waits[1] > waits[0]
    assert waits[2] == 2 * waits[1]


def test_a_file_that_was_mended_is_rewritten() -> None:
    house, worker, _ = house_with_a_bad_file()
    verified(house, worker)
    worker.unreadable.clear()
    house.pass_time(PUT_OFF_BASE_MS)
    assert house.control.maintainer.look(NAME).enqueued is not None
    assert verified(house, worker) == "8 files became 1, the same 80 rows"


def test_new_files_beside_those_that_failed_do_not_wait() -> None:
    house, worker, files = house_with_a_bad_file()
    verified(house, worker)
    house.append(8, KYOTO)
    house.pass_time(PUT_OFF_BASE_MS // 2)
    enqueued = not_none(house.control.maintainer.look(NAME).enqueued)
    planned = {file.path for group in enqueued.task.rewrite.groups for file in group.files}
    assert len(planned) == 8
    assert planned.isdisjoint(files)


def test_a_group_that_could_not_be_stitched_has_another_executor_next_time_and_does_not_wait() -> None:
    house, worker, _ = house_with_a_bad_file()
    worker.failure = NOT_STITCHABLE
    verified(house, worker)
    assert put_off(house, [house.only_task()]) == {}
    assert house.control.maintainer.look(NAME).enqueued is not None


def test_conflicts_put_nothing_off_nor_do_tasks_that_nobody_tried() -> None:
    house, worker, _ = house_with_a_bad_file()
    worker.unreadable.clear()
    spec = worker.claimed()
    worker.lost[spec.task_id, spec.attempt] = {1: "a delete"}
    house.control.verifier.verify(worker.report(spec, worker.try_commit(spec)))
    heads = [house.only_task()]
    assert put_off(house, heads) == {}
    assert put_off(house, [replace(heads[0], state=TaskState.SUPERSEDED, attempt=0, outcome=None)]) == {}
    assert [group.partition for group in heads[0].rewrite.groups] == [BONN, KYOTO]
