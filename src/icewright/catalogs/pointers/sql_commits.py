"""How the pointer to a table's metadata is moved in a SQL catalog, which leaves writing the file to its clients."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.catalog.sql import IcebergTables
from sqlalchemy import update

from icewright.catalogs.metadata.translated_errors import asking
from icewright.catalogs.pointers.sql_pointers import SqlPointers
from icewright.model.iceberg.names import TableName


class SqlCommits(SqlPointers):
    """Pointers of a SQL catalog that can be moved: one conditional update, as all its clients do."""

    def move(self, name: TableName, before: str, after: str, _changes: Mapping[str, str | None]) -> bool:
        """Move the pointer, unless somebody else did since. Raises ``Unavailable``, also when nobody knows."""
        statement = (
            update(IcebergTables)
            .where(
                *self._own_tables(),
                IcebergTables.table_namespace == ".".join(name.namespace),
                IcebergTables.table_name == name.name,
                IcebergTables.metadata_location == before,
            )
            .values(metadata_location=after, previous_metadata_location=before)
        )
        engine = self._engine
        if engine.dialect.name == "postgresql":  # whose connections otherwise only look
            engine = engine.execution_options(isolation_level="READ COMMITTED", postgresql_readonly=False)
        with asking(self._name), engine.begin() as connection:
            return connection.execute(statement).rowcount == 1
