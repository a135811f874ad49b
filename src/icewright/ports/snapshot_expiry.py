"""The expiry port: snapshots and refs leave the metadata of a table, and come back. No file is ever touched."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from icewright.model.actions.expire_snapshots import ExpireSnapshots, Hold
from icewright.model.actions.undo import UndoExpiry
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.reachable_files import Roots
from icewright.model.iceberg.tables import TableMetadata


@dataclass(frozen=True, slots=True)
class Expired:
    """The commit of an expiry: the state that it was made on, None where that is not there any more, and its own."""

    before: TableMetadata | None
    after: TableMetadata


class SnapshotExpiry(Protocol):
    """Expires snapshots of the tables of one catalog.

    All methods raise ``NotFound``, ``Unavailable`` and ``Unreadable`` before anything was changed, and
    :class:`~icewright.core.errors.Conflict` (``TableReplaced`` for another table of that name) when the table is not
    what it was any more. ``may_commit`` is called right before each try; what it raises passes through.
    """

    def expire(
        self,
        name: TableName,
        table_id: TableId,
        action: ExpireSnapshots,
        *,
        may_commit: Callable[[], None],
        keep: Callable[[bytes], None],
        holds: Iterable[Hold] = (),
    ) -> None:
        """Carry out the action, in one commit, or do nothing. Nothing is done where all is gone already.

        Commits of others meanwhile stay. The rule of the action is asked of the table as it is right before the
        commit; ``holds`` are those of today. ``keep`` is given what the action is about to take, before each try; what
        it raises passes through, and nothing is done.

        Raises ``Unsupported`` and ``NotAllowed`` where the table or the catalog refuses, and
        ``OutcomeUnknown`` when the answer to the commit was lost and the table does not tell.
        Nothing is ever cleaned up.
        """

    def commit_of(self, name: TableName, table_id: TableId, action: ExpireSnapshots) -> Expired | None:
        """The commit that carried the action out, by the table's log of metadata files; None where there is none."""

    def read_taken(self, name: TableName, content: bytes) -> TableMetadata:
        """What :meth:`expire` gave to be kept: the table of then with what was taken, and no other snapshot or ref.

        Raises ``Unreadable`` for what it did not give.
        """

    def put_back(
        self,
        name: TableName,
        table_id: TableId,
        action: UndoExpiry,
        content: bytes,
        *,
        task_id: str,
        may_commit: Callable[[], None],
        first_missing: Callable[[Roots], str | None],
    ) -> None:
        """Put what the action names back into the metadata as it is now, as it is in ``content``, signed by the task.

        Nothing is done where that task did so already, or all is back. ``first_missing`` is given the table as it would
        be. It names a file that a snapshot which comes back needs and that is not there, None when all are. Raises as
        :meth:`expire`, ``NotAllowed`` where the catalog takes nothing back, and ``Conflict`` when anything of that name
        or id is there, or a file is not.
        """
