"""Where tables are, asked of the SQL catalog's own two tables: one query per question, no metadata file read.

PyIceberg's ``SqlCatalog`` is not used for this: on opening it creates a catalog that is not there, and it has no
way to ask for the pointer alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from urllib.parse import quote

import structlog
from pyiceberg.catalog.sql import ICEBERG_TABLE_TYPE, IcebergTables
from sqlalchemy import ColumnElement, Engine, NullPool, create_engine, inspect, or_, select

from icewright.adapters.pyiceberg.translate import asking
from icewright.domain.catalogs import BUSY_TIMEOUT_MS, CatalogEntry
from icewright.domain.errors import InvalidName, NotFound
from icewright.domain.names import TableName

_log = structlog.get_logger(__name__)


class SqlPointers:
    """The pointers that a SQL catalog on SQLite keeps: table name -> metadata location."""

    def __init__(self, entry: CatalogEntry) -> None:
        self._name = entry.name
        self._engine = _engine(entry)

    def tables(self) -> Iterator[TableName]:
        """All tables. Rows that no name can be made of (an empty part) are logged and passed over."""
        with asking(self._name), self._engine.connect() as connection:
            query = select(IcebergTables.table_namespace, IcebergTables.table_name).where(*self._own_tables())
            rows = connection.execute(query).all()
        for namespace, table in rows:
            try:
                yield TableName(self._name, tuple(namespace.split(".")), table)
            except InvalidName as error:
                _log.warning("table_without_usable_name", catalog=self._name, problem=str(error))

    def metadata_location(self, name: TableName) -> str:
        """The present metadata file. Raises ``NotFound`` and ``Unavailable``."""
        with asking(self._name), self._engine.connect() as connection:
            query = select(IcebergTables.metadata_location).where(
                *self._own_tables(),
                IcebergTables.table_namespace == ".".join(name.namespace),
                IcebergTables.table_name == name.name,
            )
            location = connection.execute(query).scalar_one_or_none()
        if location is None or name.catalog != self._name:
            raise NotFound(f"no table {name} in catalog {self._name}")
        return location

    def _own_tables(self) -> list[ColumnElement[bool]]:
        """Tables of this catalog, without the views that other writers keep beside them since schema V1."""
        conditions: list[ColumnElement[bool]] = [IcebergTables.catalog_name == self._name]
        columns = {column["name"] for column in inspect(self._engine).get_columns(IcebergTables.__tablename__)}
        if "iceberg_type" in columns:
            conditions.append(
                or_(IcebergTables.iceberg_type == ICEBERG_TABLE_TYPE, IcebergTables.iceberg_type.is_(None))
            )
        return conditions


def _engine(entry: CatalogEntry) -> Engine:
    # mode=rw: a catalog that is not there must not be created by looking at it. No pool: a pooled connection would
    # go on reading a file that was deleted or replaced.
    uri = f"file:{quote(entry.sqlite_path)}?mode=rw"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_MS / 1000)

    return create_engine("sqlite://", creator=connect, poolclass=NullPool)
