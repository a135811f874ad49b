"""Pausing, draining, stopping and resuming parts of the queue, and telling how far that is.

Nothing is told to anybody for it: each claim reads the halts in its transaction, each heartbeat is answered by them,
and what the server carries out itself asks as optimizers do. So it holds on all servers at once, and after a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from icewright.audit.acting import acting
from icewright.core.errors import NotFound
from icewright.core.times import Instant
from icewright.model.iceberg.names import TableName
from icewright.model.policy.resource_groups import DEFAULT_GROUP, OWN
from icewright.model.work.halts import EVERYTHING, Halt, HaltState, NewHalt, Part, PartKind
from icewright.model.work.tasks import ListedTask, TaskState
from icewright.policy.groups.definitions import Groups
from icewright.ports.store import TableStore, TaskFilter, TaskStore

_PAGE: Final = 200
_AT_WORK: Final = frozenset({TaskState.RUNNING, TaskState.IN_DOUBT})
"""States in which somebody may still commit."""


@dataclass(frozen=True, slots=True)
class HaltView:
    """A halt, and what still goes on in its part.

    ``running`` attempts may still commit; ``verifying`` tasks are committed and are only looked at by now. ``name`` is
    that of the group, the catalog or the table, with the ``catalog`` and ``uuid`` of a table; all null of everything.
    """

    kind: PartKind
    name: str | None
    catalog: str | None
    uuid: str | None
    state: HaltState
    why: str
    by: str
    since: Instant
    running: int
    verifying: int


class Halting:
    """Says of parts of the queue how they are, and changes it."""

    def __init__(
        self,
        tasks: TaskStore,
        tables: TableStore,
        groups: Groups,
        catalogs: Collection[str],
        wake: Callable[[], None],
    ) -> None:
        """``wake`` has the loop look at what it may go on with."""
        self._tasks, self._tables, self._known = tasks, tables, groups
        self._catalogs, self._wake = frozenset(catalogs), wake

    def part(self, kind: PartKind, name: str, *, halted: bool = False) -> Part:
        """The part of that name; ``halted``, where it may be gone by now, by the halt that there is.

        Raises ``NotFound`` for a group, catalog or table that nobody knows: a halt of nothing would be taken for one.
        """
        if kind is PartKind.EVERYTHING:
            return EVERYTHING
        if halted:
            found = [one.part for one in self._tasks.halts.present() if (one.part.kind, one.part.name) == (kind, name)]
            if found:
                return found[0]
        match kind:
            case PartKind.GROUP if name not in self.groups():
                known = ", ".join(sorted(self.groups()))
                raise NotFound(f"there is no resource group {name!r}", hint=f"known are {known}")
            case PartKind.CATALOG if name not in self._catalogs:
                raise NotFound(f"there is no catalog {name!r}", hint=f"known are {', '.join(sorted(self._catalogs))}")
            case PartKind.TABLE:
                table = TableName.parse(name)
                record = self._tables.record_by_name(table)
                if record is None:
                    raise NotFound(f"the server does not know a table {table}", hint="pause its catalog instead")
                return Part(kind, str(record.name), record.table_id)
            case _:
                return Part(kind, name)

    def halt(self, part: Part, state: HaltState, why: str) -> HaltView:
        """Pause, drain or stop a part of the queue. Raises ``InvalidMessage`` and ``NotAllowed``."""
        return self._view(self._tasks.halts.halt(NewHalt(part, state, why)))

    def preview(self, part: Part, state: HaltState, why: str) -> HaltView:
        """What :meth:`halt` would do, and what runs there now. Changes nothing. Raises ``InvalidMessage``."""
        new = NewHalt(part, state, why)
        return self._view(Halt(new.part, new.state, new.why, acting(), self._tasks.now()))

    def resume(self, part: Part, why: str) -> Halt | None:
        """Let exactly that part go on; None where it was not halted. What halts a part of it, or more, stays."""
        halt = self._tasks.halts.resume(part, why)
        if halt is not None:
            self._wake()
        return halt

    def views(self) -> tuple[HaltView, ...]:
        """All halts."""
        halts = self._tasks.halts.present()
        at_work = list(self._at_work()) if halts else []
        return tuple(_view(halt, at_work) for halt in halts)

    def _view(self, halt: Halt) -> HaltView:
        return _view(halt, list(self._at_work()))

    def _at_work(self) -> Iterator[ListedTask]:
        only, before = TaskFilter(_AT_WORK | {TaskState.COMMITTED}), None
        while page := self._tasks.listed(only, limit=_PAGE, before=before):
            yield from page
            before = page[-1].task_id

    def groups(self) -> frozenset[str]:
        """The resource groups that may be halted: of which somebody says something, of optimizers and submitters."""
        seen = {optimizer.hello.resource_group for optimizer in self._tables.optimizers()}
        asked_for = {one.submitter.resource_group for one in self._tables.submitters.noted()}
        return frozenset({DEFAULT_GROUP, *OWN, *self._known.present(), *seen, *asked_for})


def _view(halt: Halt, at_work: Sequence[ListedTask]) -> HaltView:
    part = halt.part
    found = Counter(task.state for task in at_work if part.covers(task.resource_group, task.table_id))
    return HaltView(
        kind=part.kind,
        name=part.name or None,
        catalog=None if part.table_id is None else part.table_id.catalog,
        uuid=None if part.table_id is None else part.table_id.uuid,
        state=halt.state,
        why=halt.why,
        by=halt.by,
        since=halt.since,
        running=sum(found[state] for state in _AT_WORK),
        verifying=found[TaskState.COMMITTED],
    )
