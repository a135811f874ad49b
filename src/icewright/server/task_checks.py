"""Looking what became of tasks: those in doubt are settled, and those that committed are verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import structlog

from icewright.maintenance.dispatch.verifier import Verifier
from icewright.model.actions.actions import traits_of
from icewright.model.actions.traits import RunsOn
from icewright.model.iceberg.names import TableName
from icewright.model.work.tasks import Task, TaskState
from icewright.ports.store import TableStore, TaskFilter, TaskStore
from icewright.server.cluster.share import Part

_log = structlog.get_logger("icewright.loop")


class TaskChecks:
    """Two steps of a loop. Of what optimizers carry out it checks the tasks of its own tables.

    What the server carries out itself the leader checks: the files that it moves are known to that alone.
    """

    def __init__(
        self,
        tasks: TaskStore,
        tables: TableStore,
        verifier: Verifier,
        part: Part,
        *,
        asking: Callable[[str, Task], AbstractContextManager[None]],
        answers: Callable[[str], bool],
        look: Callable[[TableName, bool], object],
        page: int,
    ) -> None:
        """``asking`` surrounds the check of a task, ``answers`` tells whether a catalog can be asked.

        ``look`` looks at a table, and plans it anew or not; ``page`` tasks are read at a time.
        """
        self._tasks, self._tables, self._verifier, self._part = tasks, tables, verifier, part
        self._asking, self._answers, self._look, self._page = asking, answers, look, page

    def settle_doubts(self) -> None:
        """Settle what is in doubt."""
        for task in self._answerable(TaskState.IN_DOUBT):
            with self._part.working(task.table_name) as is_ours:
                if self._may_check(task, is_ours=is_ours):
                    with self._asking("settle", task):
                        settled = self._verifier.settle(task)
                        if settled.state is TaskState.SUPERSEDED:
                            self._look_after(settled.table_name, is_ours=is_ours, plan_anew=True)

    def verify_commits(self) -> None:
        """Verify what committed."""
        for task in self._answerable(TaskState.COMMITTED):
            with self._part.working(task.table_name) as is_ours:
                if self._may_check(task, is_ours=is_ours):
                    with self._asking("verify", task):
                        self._verify(task, is_ours=is_ours)

    def _verify(self, task: Task, *, is_ours: bool) -> None:
        verified = self._verifier.verify(task)
        if verified is task:
            return
        _log.info("task verified", task=task.task_id, table=str(task.table_name), state=verified.state.value)
        self._look_after(verified.table_name, is_ours=is_ours, plan_anew=verified.state is TaskState.FAILED)

    def _answerable(self, state: TaskState) -> Iterator[Task]:
        """All tasks in a state whose catalogs can be asked, page by page: none is hidden behind others that wait."""
        only, before = TaskFilter(states=frozenset({state})), None
        while page := self._tasks.tasks(only, limit=self._page, before=before):
            yield from (task for task in page if self._answers(task.table_name.catalog))
            before = page[-1].task_id

    def _may_check(self, task: Task, *, is_ours: bool) -> bool:
        return self._part.leads if traits_of(task.kind).runs_on is not RunsOn.OPTIMIZER else is_ours

    def _look_after(self, name: TableName, *, is_ours: bool, plan_anew: bool) -> None:
        """Look at the table of a task, or have its server look."""
        if is_ours:
            self._look(name, plan_anew)
        else:
            self._tables.look_at_once(name)
