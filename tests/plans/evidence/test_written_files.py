"""What earlier commits wrote is known from their tasks, and counts in the next plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from icewright.model.actions.actions import Executor
from icewright.model.iceberg.layouts import Level
from icewright.model.plans.observation import Written
from icewright.model.work.tasks import Task, TaskState
from icewright.plans.evidence.written_files import COMMITS_MAX, written
from tests.builders.lakehouse import MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import Worker
from tests.cases import each_case
from tests.predictions import estimated, predicted


def merged() -> tuple[Lakehouse, Task]:
    """A table of which eight files have become one."""
    house = Lakehouse().with_ready_table()
    house.control.maintainer.look(NAME)
    return house, house.control.verifier.verify(Worker(house).carry_out())


def figures_of(task: Task, **changes: Any) -> Task:
    """The task with other figures of its outcome."""
    assert task.outcome is not None
    reason = replace(task.outcome.reason, figures={**task.outcome.reason.figures, **changes})
    return replace(task, outcome=replace(task.outcome, reason=reason))


def test_the_manifests_tell_what_was_written_and_the_next_plan_goes_by_it() -> None:
    house, task = merged()
    assert task.outcome is not None
    (file,) = house.catalog.live_files(NAME)
    modelled = estimated(task).modelled_bytes
    assert task.outcome.reason.figures["output_bytes"] == file.size_bytes
    assert written([task]) == (Written(Level.LEVEL_0, Executor.MERGE, 1, modelled, file.size_bytes),)
    house.append(8)
    house.pass_time(5 * MINUTE_MS)
    plan = house.control.maintainer.look(NAME).plan
    assert plan.prediction is not None
    assert "since its latest 1 commit of level-0 wrote" in estimated(plan).output_reason.text


def test_no_more_than_the_latest_count() -> None:
    _, task = merged()
    older = figures_of(task, output_bytes=1)
    (found,) = written([*[task] * COMMITS_MAX, older])
    assert found.commits == COMMITS_MAX
    assert found.output_bytes == COMMITS_MAX * (written([task])[0].output_bytes)


@each_case(
    "changes",
    [
        {"groups_committed": 0},
        {"executors": "merge+staged"},
        {"executors": "magic"},
        {"level": "level-9"},
        {"output_bytes": "many"},
        {"output_bytes": 0},
    ],
)
def test_what_is_no_whole_commit_of_one_executor_tells_nothing(changes: dict[str, Any]) -> None:
    _, task = merged()
    assert written([figures_of(task, **changes)]) == ()


def test_tasks_that_did_not_succeed_tell_nothing() -> None:
    _, task = merged()
    assert written([replace(task, state=TaskState.FAILED)]) == ()
    assert written([replace(task, outcome=None)]) == ()
    assert written([replace(task, prediction=replace(predicted(task), estimate=None))]) == ()
