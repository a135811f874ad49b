"""One file that a merge cannot read fails neither the other files nor its table for ever."""

from __future__ import annotations

import pytest

from icewright.model.actions.actions import Executor
from icewright.model.work.tasks import TaskState
from icewright.work.tasks.retry import PUT_OFF_BASE_MS
from tests.builders.lakehouse import BONN, HOUR_MS, KYOTO, NAME, Lakehouse
from tests.builders.worker import Worker


@pytest.mark.parametrize("code", ["unsupported-file", "unsupported-column"])
@pytest.mark.parametrize("others", [8, 0], ids=["with another group", "alone"])
def test_r6_files_that_a_merge_refuses_are_staged_by_the_next_plan(code: str, others: int) -> None:
    """Manifests do not tell of INT96, nor of columns that files lack: the first attempt finds out."""
    house = Lakehouse()
    house.create()
    if others:
        house.append(others)
    files = house.files(8, KYOTO)
    house.catalog.append(NAME, files)
    house.pass_time(HOUR_MS)
    assert house.control.maintainer.look(NAME).enqueued is not None
    worker = Worker(house, unreadable={files[3].path}, failure=code)

    task = worker.carry_out()

    assert task.state is (TaskState.COMMITTED if others else TaskState.SUPERSEDED)
    if others:
        task = house.control.verifier.verify(task)
        assert {group.partition for group in task.rewrite.groups} == {BONN, KYOTO}
    enqueued = house.control.maintainer.look(NAME).enqueued
    assert enqueued is not None
    assert [(group.partition, group.executor) for group in enqueued.task.rewrite.groups] == [(KYOTO, Executor.STAGED)]
    assert {file.path for file in enqueued.task.rewrite.groups[0].files} == {file.path for file in files}
    worker.unreadable.clear()
    done = house.control.verifier.verify(worker.carry_out())
    assert done.state is TaskState.SUCCEEDED, done.outcome


def test_r6_files_that_cannot_be_staged_either_are_put_off() -> None:
    house = Lakehouse()
    house.create()
    files = house.files(8, KYOTO)
    house.catalog.append(NAME, files)
    house.pass_time(HOUR_MS)
    worker = Worker(house, unreadable={files[3].path}, failure="unsupported-file")
    tried: list[Executor] = []
    while house.control.maintainer.look(NAME).enqueued is not None:
        task = worker.carry_out()
        tried.append(*{group.executor for group in task.rewrite.groups})
    assert tried == [Executor.MERGE, Executor.STAGED]
    failed_at = max(head.updated_at for head in house.all_tasks())
    waiting = house.control.maintainer.look(NAME, plan_anew=True).plan
    assert waiting.look_again_at == failed_at + PUT_OFF_BASE_MS
