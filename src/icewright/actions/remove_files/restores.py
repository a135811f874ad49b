"""Planning to put removed files back: what is still in quarantine of a task that removed them."""

from __future__ import annotations

from collections.abc import Callable

from icewright.actions.remove_files.service import Remover
from icewright.core import wording
from icewright.core.clock import Clock, Ids
from icewright.core.errors import NotAllowed, NotFound, TableReplaced
from icewright.model.actions.undo import RestoreFiles, RestoreFilesPrediction
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Policy
from icewright.model.work.tasks import TERMINAL_STATES, Task
from icewright.observation.observer import Observer
from icewright.plans.repository import keep_plan
from icewright.plans.standalone_plan import Decided, build_standalone_plan
from icewright.ports.store import TableStore


class RestorePlanner:
    """Makes plans that put files back, and keeps them in the store."""

    def __init__(
        self,
        remover: Remover,
        observer: Observer,
        tables: TableStore,
        clock: Clock,
        ids: Ids,
        policy: Callable[[TableMetadata], Policy],
    ) -> None:
        self._remover, self._observer, self._tables = remover, observer, tables
        self._clock, self._ids, self._policy = clock, ids, policy

    def plan(self, task: Task) -> Plan:
        """The plan that puts back what a task removed. It is kept to be applied, and never queued by itself.

        Raises :class:`NotAllowed` while the task is under way, and where nothing of it is in quarantine (any more);
        ``TableReplaced`` where its name now leads to another table, and what loading the table raises.
        """
        if task.state not in TERMINAL_STATES:
            raise NotAllowed(f"task {task.task_id} is {task.state}: cancel it, or wait for its end")
        try:
            held, purged = self._remover.held(task.task_id)
        except NotFound as error:
            raise NotAllowed(f"task {task.task_id} removed no file") from error
        if not held.files:
            gone = f", {purged.files:,} were purged" if purged.files else ""
            raise NotAllowed(f"nothing that task {task.task_id} removed is in quarantine{gone}")
        record = self._tables.record(task.table_id)
        name = task.table_name if record is None else record.name
        metadata = self._observer.catalog(name.catalog).load(name)
        if metadata.table_id != task.table_id:
            raise TableReplaced(f"{name} is another table now (uuid {metadata.table_id.uuid})")
        text = f"{wording.count(held.files, 'file')} ({wording.size(held.bytes)}) that task {task.task_id} removed"
        decided = Decided(
            Reason("restore-files", f"{text} can be restored", {"files": held.files, "bytes": held.bytes}),
            RestoreFiles(task.task_id, held.files, held.bytes),
            RestoreFilesPrediction(held.files, held.bytes, purged.files),
        )
        policy, now = self._policy(metadata), self._clock.now()
        plan = build_standalone_plan(self._ids.new("plan"), metadata, policy, decided, now, asked=True)
        return keep_plan(self._tables, plan)
