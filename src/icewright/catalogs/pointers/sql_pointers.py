"""Where tables are, asked of the SQL catalog's own two tables, and moved there: one query each, no metadata file read.

PyIceberg's ``SqlCatalog`` is not used for this: on opening it creates a catalog that is not there, and it has no
way to ask for the pointer alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import structlog
from pyiceberg.catalog.sql import ICEBERG_TABLE_TYPE, IcebergTables
from pyiceberg.io import FileIO
from sqlalchemy import ColumnElement, Engine, NullPool, bindparam, create_engine, event, inspect, or_, select, update

from icewright.catalogs.metadata.translated_errors import asking
from icewright.catalogs.pointers.pointers import CatalogFiles, Pointed, read_metadata
from icewright.catalogs.port import TablePointers
from icewright.core.errors import InvalidName, NotFound, Unreadable
from icewright.core.extras import require_extra
from icewright.model.iceberg.catalog_entries import ANSWER_TIMEOUT_MS, CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.sql_urls import BUSY_TIMEOUT_MS, PostgresqlDatabase, SqlDatabase, SqliteFile

_log = structlog.get_logger(__name__)

_BESIDE: Final = ":"
"""Between the name of a catalog and that of another one in its database."""
_CONNECTIONS: Final = 2
_CONNECTION_S_MAX: Final = 600
_WITHOUT_VIEWS: Final[Mapping[bool, Sequence[ColumnElement[bool]]]] = {
    True: (or_(IcebergTables.iceberg_type == ICEBERG_TABLE_TYPE, IcebergTables.iceberg_type.is_(None)),),
    False: (),
}
"""The condition that a row is a table, by whether the catalog has the column for views."""
_LOCATION: Final = {
    tells_views: select(IcebergTables.metadata_location).where(
        *conditions,
        IcebergTables.catalog_name == bindparam("of_catalog"),
        IcebergTables.table_namespace == bindparam("of_namespace"),
        IcebergTables.table_name == bindparam("of_table"),
    )
    for tells_views, conditions in _WITHOUT_VIEWS.items()
}
"""The pointer of a table, by the same. Made once: to put it together takes longer than to execute it."""


class SqlPointers:
    """The pointers that a SQL catalog on SQLite or PostgreSQL keeps: table name -> metadata location."""

    def __init__(self, entry: CatalogEntry, others: Iterable[CatalogEntry] = ()) -> None:
        """``others`` are further catalogs that are configured: those in the same database answer for themselves."""
        self._name = entry.name
        self._known = {one.name for one in others if _is_beside(entry, one)} - {entry.name}
        self._engine = _engine(entry.sql_database)
        self._files = CatalogFiles(entry)
        self._has_views = False
        """Whether the catalog has the column for views; once it is there, it stays."""

    def tables(self) -> Iterator[TableName]:
        """All tables. Rows that no name can be made of (an empty part) are logged and passed over."""
        for catalog, namespace, table, _ in self._rows():
            if catalog != self._name:
                continue
            try:
                yield TableName(self._name, tuple(namespace.split(".")), table)
            except InvalidName as error:
                _log.warning("table_without_usable_name", catalog=self._name, problem=str(error))

    def all_shown(self) -> TablePointers:
        """All pointers, by one query: also of catalogs in the same database that are not configured.

        Clients make one of each name that they give theirs; here it is called after this one and that name. Raises
        ``Unreadable`` where a table has no usable name.
        """
        try:
            return TablePointers(
                {
                    TableName(self._called(catalog), tuple(namespace.split(".")), table): location
                    for catalog, namespace, table, location in self._rows()
                    if catalog not in self._known
                }
            )
        except InvalidName as error:
            raise Unreadable(f"catalog {self._name} has a table without a usable name: {error}") from error

    def _called(self, catalog: str) -> str:
        return catalog if catalog == self._name else f"{self._name}{_BESIDE}{catalog}"

    def _rows(self) -> Sequence[Any]:
        columns = IcebergTables.catalog_name, IcebergTables.table_namespace, IcebergTables.table_name
        with asking(self._name), self._engine.connect() as connection:
            query = select(*columns, IcebergTables.metadata_location).where(*self._without_views())
            return connection.execute(query).all()

    def load(self, name: TableName) -> Pointed:
        """The present metadata, read from its file."""
        location = self.metadata_location(name)
        return read_metadata(self.file_io(location), name, location)

    def file_io(self, location: str) -> FileIO:
        """What reads the files of a table."""
        return self._files.file_io(location)

    def metadata_location(self, name: TableName) -> str:
        """The present metadata file. Raises ``NotFound`` and ``Unavailable``."""
        if name.catalog != self._name and not name.catalog.startswith(f"{self._name}{_BESIDE}"):
            raise NotFound(f"no table {name} in catalog {self._name}")
        with asking(self._name), self._engine.connect() as connection:
            key = {
                "of_catalog": name.catalog.removeprefix(f"{self._name}{_BESIDE}"),
                "of_namespace": ".".join(name.namespace),
                "of_table": name.name,
            }
            location = connection.execute(_LOCATION[self._tells_views()], key).scalar_one_or_none()
        if location is None:
            raise NotFound(f"no table {name} in catalog {self._name}")
        return location

    def _own_tables(self) -> list[ColumnElement[bool]]:
        """Tables of this catalog alone."""
        return [*self._without_views(), IcebergTables.catalog_name == self._name]

    def _without_views(self) -> Sequence[ColumnElement[bool]]:
        """Tables, without the views that other writers keep beside them since schema V1."""
        return _WITHOUT_VIEWS[self._tells_views()]

    def _tells_views(self) -> bool:
        if not self._has_views:
            columns = {column["name"] for column in inspect(self._engine).get_columns(IcebergTables.__tablename__)}
            self._has_views = "iceberg_type" in columns
        return self._has_views


def _is_beside(entry: CatalogEntry, other: CatalogEntry) -> bool:
    return other.kind is CatalogKind.SQL and other.sql_database == entry.sql_database


def _engine(database: SqlDatabase) -> Engine:
    match database:
        case SqliteFile():
            return _sqlite(database)
        case PostgresqlDatabase():
            return _postgresql(database)


def _sqlite(database: SqliteFile) -> Engine:
    # mode=rw: a catalog that is not there must not be created by looking at it. No pool: a pooled connection would
    # go on reading a file that was deleted or replaced.
    uri = f"file:{quote(database.path)}?mode=rw"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_MS / 1000)

    return create_engine("sqlite://", creator=connect, poolclass=NullPool)


def _postgresql(database: PostgresqlDatabase) -> Engine:
    require_extra("postgresql", "catalogs on PostgreSQL")
    engine = _engine_of_postgresql(database)

    @event.listens_for(engine, "connect")
    def only_look(connection: Any, _record: Any) -> None:
        # By SET and not as an option of the connection, which PgBouncer does not know.
        connection.execute("SET default_transaction_read_only = on")
        connection.execute(f"SET statement_timeout = {ANSWER_TIMEOUT_MS}")

    return engine


def _engine_of_postgresql(database: PostgresqlDatabase) -> Engine:
    return create_engine(
        database.sqlalchemy_url,
        # A statement's limit is the server's, set below; a server that went silent is given up by the network's.
        connect_args={"tcp_user_timeout": ANSWER_TIMEOUT_MS},
        isolation_level="AUTOCOMMIT",
        pool_pre_ping=True,
        pool_size=_CONNECTIONS,
        pool_recycle=_CONNECTION_S_MAX,
        hide_parameters=True,
    )


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
