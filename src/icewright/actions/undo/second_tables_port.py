"""The port of second tables: an old metadata file is registered under another name, and both tables are guarded."""

from collections.abc import Mapping
from typing import Protocol

from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.reachable_files import Roots
from icewright.model.iceberg.tables import TableMetadata


class SecondTables(Protocol):
    """Registers tables beside the tables of one catalog. All methods raise ``Unavailable`` and ``Unreadable``."""

    def read(self, table: TableMetadata, metadata_location: str) -> Roots:
        """The table as an earlier metadata file of its has it; ``Unreadable`` where that is not there any more."""

    def register(self, name: TableName, metadata_location: str) -> None:
        """Register a metadata file as a table. Nothing of it is changed or copied.

        Raises :class:`~icewright.core.errors.Conflict` when the name is taken, ``NotAllowed`` where the catalog
        refuses, and ``Unavailable`` also when its answer was lost: whoever looks finds out.
        """

    def say(self, name: TableName, table_id: TableId, properties: Mapping[str, str]) -> None:
        """Set properties of a table, in one commit of metadata alone; nothing is done where it says so already.

        Raises as :meth:`icewright.catalogs.properties_port.TableProperties.change`.
        """
