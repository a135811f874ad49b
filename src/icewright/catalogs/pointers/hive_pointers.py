"""Where tables are, asked of a Hive Metastore by PyIceberg's Thrift client.

PyIceberg's ``HiveCatalog`` is not used for this: its connections wait for ever, and it loads tables through models that
refuse what they do not know. A metastore also has tables and views that are not Iceberg's; where such tables lie is
told apart, since their files may lie in an Iceberg table's place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import MetaException, NoSuchObjectException, UnknownDBException
from hive_metastore.ttypes import Table as HiveTable
from pyiceberg.io import FileIO
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from icewright.catalogs.metadata.translated_errors import asking
from icewright.catalogs.pointers.pointers import CatalogFiles, Pointed, read_metadata
from icewright.catalogs.port import TablePointers
from icewright.core.errors import InvalidName, NotFound, Unavailable, Unreadable
from icewright.model.iceberg.catalog_entries import ANSWER_TIMEOUT_MS, CONNECT_TIMEOUT_MS, CatalogEntry
from icewright.model.iceberg.names import TableName

_log = structlog.get_logger(__name__)

_PORT: Final = 9083
_TABLES_AT_ONCE: Final = 200
_TEXT_BYTES_MAX: Final = 64 << 20
_ELEMENTS_MAX: Final = 10_000_000
"""What a server that speaks another protocol seems to announce is never allocated."""
_NAMESPACE_LEVELS: Final = 1
_TABLE_TYPE: Final = "table_type"
_ICEBERG: Final = "iceberg"
_METADATA_LOCATION: Final = "metadata_location"


class HivePointers:
    """The pointers that a Hive Metastore keeps in the parameters of its tables."""

    def __init__(self, entry: CatalogEntry) -> None:
        self._name = entry.name
        self._addresses = tuple(_address(uri.strip()) for uri in entry.uri.split(","))
        self._user = entry.properties.get("ugi")
        self._files = CatalogFiles(entry)

    def tables(self) -> Iterator[TableName]:
        """All Iceberg tables, database by database."""
        for database, name, table in self._all():
            if table is None or not _is_iceberg(table):
                continue
            try:
                yield TableName(self._name, (database,), name)
            except InvalidName as error:
                _log.warning("table_without_usable_name", catalog=self._name, problem=str(error))

    def all_shown(self) -> TablePointers:
        """All pointers, some hundred at once, and where tables of other formats lie, such as ``migrate``'s backups.

        What the metastore cannot describe may be an Iceberg table, too. Partitions that lie elsewhere than their table
        are not asked for. Raises ``Unreadable`` where an Iceberg table has no usable name.
        """
        pointers: dict[TableName, str | None] = {}
        others: dict[TableName, Sequence[str]] = {}
        for number, (database, name, table) in enumerate(self._all()):
            is_other = table is not None and not _is_iceberg(table)
            try:
                called = TableName(self._name, (database,), name)
            except InvalidName as error:
                if not is_other:
                    raise Unreadable(f"catalog {self._name} has a table without a usable name: {error}") from error
                called = TableName(self._name, (f"without a usable name {number}",), "table")
            if table is None or not is_other:
                pointers[called] = None if table is None else (table.parameters or {}).get(_METADATA_LOCATION) or None
            elif places := _places(table):
                others[called] = places
        return TablePointers(pointers, others)

    def _all(self) -> list[tuple[str, str, HiveTable | None]]:
        """Every table of every database, of whatever format; None for one that cannot be described."""
        with self.client() as client:
            return [
                (database, name, table)
                for database in client.get_all_databases()
                for name, table in self._described_of(client, database).items()
            ]

    def metadata_location(self, name: TableName) -> str:
        """The present metadata file."""
        table = self._described(name)
        if not _is_iceberg(table):
            raise NotFound(f"{name} is no Iceberg table")
        location: str | None = (table.parameters or {}).get(_METADATA_LOCATION)
        if not location:
            raise Unreadable(f"the metastore does not say where the metadata of table {name} is")
        return location

    def load(self, name: TableName) -> Pointed:
        """The present metadata, read from its file."""
        location = self.metadata_location(name)
        return read_metadata(self.file_io(location), name, location)

    def file_io(self, location: str) -> FileIO:
        """What reads the files of a table."""
        return self._files.file_io(location)

    def _described_of(self, client: Client, database: str) -> dict[str, HiveTable | None]:
        """The tables of a database by their names."""
        try:
            names = client.get_all_tables(database)
        except (NoSuchObjectException, UnknownDBException):
            return {}  # dropped since the databases were listed
        asked = (names[start : start + _TABLES_AT_ONCE] for start in range(0, len(names), _TABLES_AT_ONCE))
        return {name: table for some in asked for name, table in self._by_name(client, database, some).items()}

    def _by_name(self, client: Client, database: str, names: Sequence[str]) -> dict[str, HiveTable | None]:
        """Several tables at once; one by one where the metastore cannot, None for one that is in trouble."""
        try:
            found = client.get_table_objects_by_name(database, names)
            # What it lists and does not describe, as of no right to see it, may be any table.
            return {**dict.fromkeys(names), **{table.tableName: table for table in found}}
        except (MetaException, TApplicationException) as error:
            if len(names) > 1:
                each = [self._by_name(client, database, [name]) for name in names]
                return {name: table for one in each for name, table in one.items()}
            _log.warning("table_passed_over", catalog=self._name, table=f"{database}.{names[0]}", problem=error.message)
            return {names[0]: None}

    def _described(self, name: TableName) -> HiveTable:
        if name.catalog != self._name or len(name.namespace) != _NAMESPACE_LEVELS:
            raise NotFound(f"no table {name} in catalog {self._name}")
        with self.client() as client:
            try:
                table = client.get_table(name.namespace[0], name.name)
            except (NoSuchObjectException, UnknownDBException) as error:
                raise NotFound(f"no table {name} in catalog {self._name}") from error
            except (MetaException, TApplicationException) as error:  # it answers: this table alone is in trouble
                raise Unreadable(f"the metastore cannot say what table {name} is: {error.message}") from error
        # The metastore does not tell upper from lower case; one table must not be known by two names.
        if (table.dbName, table.tableName) != name.path:
            raise NotFound(f"no table {name} in catalog {self._name}; it is called {table.dbName}.{table.tableName}")
        return table

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A connection of its own: a Thrift client belongs to one thread, and a metastore closes those that idle."""
        with asking(self._name), _connected(self._name, self._addresses) as transport:
            limits = {"string_length_limit": _TEXT_BYTES_MAX, "container_length_limit": _ELEMENTS_MAX}
            client = Client(TBinaryProtocol(transport, **limits))
            if self._user is not None:
                user, *groups = self._user.split(":")
                client.set_ugi(user, groups)
            yield client


def _is_iceberg(table: HiveTable) -> bool:
    return bool((table.parameters or {}).get(_TABLE_TYPE, "").lower() == _ICEBERG)


def _places(table: HiveTable) -> Sequence[str]:
    """Where a table says that its files are: Spark keeps a path of its own beside Hive's. A view says nothing."""
    storage = table.sd
    path = None if storage is None or storage.serdeInfo is None else (storage.serdeInfo.parameters or {}).get("path")
    return [at for at in (None if storage is None else storage.location, path) if at]


@contextmanager
def _connected(catalog: str, addresses: Sequence[tuple[str, int]]) -> Iterator[Any]:
    """A connection to the first server that takes one. Raises ``Unavailable``."""
    transport, refused = None, []
    for host, port in addresses:
        socket = TSocket(host, port)
        socket.setTimeout(CONNECT_TIMEOUT_MS)
        candidate = TBufferedTransport(socket)
        try:
            candidate.open()
        except TTransportException as error:
            refused.append(f"{host}:{port}: {error.message}")
            continue
        socket.setTimeout(ANSWER_TIMEOUT_MS)
        transport = candidate
        break
    if transport is None:
        raise Unavailable(f"catalog {catalog} does not answer: {'; '.join(refused)}")
    try:
        yield transport
    finally:
        with suppress(TException, OSError):  # nothing of use is said on closing
            transport.close()


def _address(uri: str) -> tuple[str, int]:
    parts = urlsplit(uri)
    return str(parts.hostname), parts.port or _PORT
