"""The rollback port: ``main`` is set to another snapshot of its table. Nothing leaves the metadata."""

from collections.abc import Callable
from typing import Protocol

from icewright.model.actions.rollback import Rollback
from icewright.model.iceberg.names import TableId, TableName


class Rollbacks(Protocol):
    """Sets ``main`` of the tables of one catalog."""

    def roll_back(
        self,
        name: TableName,
        table_id: TableId,
        action: Rollback,
        *,
        task_id: str,
        may_commit: Callable[[], None],
    ) -> None:
        """Carry out the action, in one commit that is signed by the task. Nothing is done where that is there already.

        The settings of ``main`` stay. ``may_commit`` is called right before each try; what it raises passes through.
        Raises ``Conflict`` when ``main`` is anywhere else, or the snapshot is gone, ``TableReplaced`` for another table
        of the name, ``NotFound``, ``Unavailable`` and ``Unreadable`` before anything was changed, ``Unsupported`` and
        ``NotAllowed`` where table or catalog refuse, and ``OutcomeUnknown`` when the answer to
        the commit was lost and the table does not tell.
        """
