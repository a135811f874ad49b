"""The properties port: the one thing of a table that the control plane writes, and only for its owner."""

from collections.abc import Mapping
from typing import Protocol

from icewright.model.iceberg.tables import TableMetadata


class TableProperties(Protocol):
    """Changes properties of the tables of one catalog; never anything else of them."""

    def change(self, table: TableMetadata, changes: Mapping[str, str | None]) -> None:
        """Set properties, and remove those whose value is None, in one commit of metadata alone.

        ``table`` is what the owner saw. Commits of others meanwhile stay, unless they changed one of the same
        properties: then nothing is done. Nor is anything done where all is as wanted already.
        Raises :class:`~icewright.core.errors.Conflict` (``TableReplaced`` for another table of that name),
        ``NotFound``, ``Unavailable`` and ``Unreadable`` before anything was changed, ``Unsupported`` and ``NotAllowed``
        where the table or the catalog refuses, and ``OutcomeUnknown`` when the answer to the
        commit was lost and the table does not tell.
        """
