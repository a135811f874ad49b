"""The port of second tables over the catalog in memory."""

from __future__ import annotations

from collections.abc import Mapping

from icewright.core.errors import TableReplaced
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.reachable_files import FileClass, NamedFile, Roots
from icewright.model.iceberg.tables import TableMetadata
from tests.doubles.catalog import MemoryCatalog


class MemorySecondTables:
    """Registers tables beside those of a catalog in memory."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog

    def read(self, table: TableMetadata, metadata_location: str) -> Roots:
        """The table as an earlier metadata file of its has it."""
        return Roots(
            self._catalog.earlier(table, metadata_location), (NamedFile(metadata_location, FileClass.METADATA),)
        )

    def register(self, name: TableName, metadata_location: str) -> None:
        """Register a metadata file as a table."""
        self._catalog.register(name, metadata_location)

    def say(self, name: TableName, table_id: TableId, properties: Mapping[str, str]) -> None:
        """Set properties of a table."""
        now = self._catalog.load(name)
        if now.table_id != table_id:
            raise TableReplaced(f"{name} is another table now")
        self._catalog.change(now, properties)
