"""The catalogs of a configuration, opened without a server, and what an administrator says there of places.

Nothing is changed but properties, where a person asks for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.properties import PyIcebergProperties
from icewright.catalogs.pointers.table_files import PyIcebergTableFiles
from icewright.config.secrets import resolve_entry
from icewright.core.errors import IcewrightError, NotFound
from icewright.core.system_clock import SystemClock
from icewright.model.iceberg.locations import Aliases
from icewright.model.iceberg.names import TableName, did_you_mean
from icewright.ownership.location_rules import place_rules
from icewright.ownership.own_paths import own_places
from icewright.ownership.registry import Registry
from icewright.terminal.invocation import no_catalogs

if TYPE_CHECKING:
    from icewright.catalogs.port import Catalog
    from icewright.catalogs.properties_port import TableProperties
    from icewright.config.model import Config
    from icewright.model.iceberg.tables import TableMetadata

_NAMES_MAX: Final = 10_000


class OfflineCatalogs:
    """The catalogs of a configuration, opened one by one as they are asked for."""

    def __init__(self, config: Config) -> None:
        if not config.catalogs:
            raise no_catalogs(config)
        self._config = config
        self.places: Final = place_rules(config.catalogs, own_places(config, config.catalogs))
        self.registry: Final = Registry({}, SystemClock(), self.places)
        """What the tables that were planned say of places."""
        self._opened: dict[str, Catalog] = {}

    def catalog(self, name: str) -> Catalog:
        """One catalog. Raises :class:`~icewright.core.errors.NotFound` and ``InvalidConfiguration``."""
        if name not in self._opened:
            self._opened[name] = PyIcebergCatalog(resolve_entry(self._config.catalog(name), os.environ))
        return self._opened[name]

    def properties(self, name: str) -> TableProperties:
        """What changes properties of one catalog's tables. Raises as :meth:`catalog`."""
        return PyIcebergProperties(resolve_entry(self._config.catalog(name), os.environ), SystemClock())

    def table_files(self, name: str) -> PyIcebergTableFiles:
        """What reads files of one catalog's tables. Raises as :meth:`catalog`."""
        return PyIcebergTableFiles(resolve_entry(self._config.catalog(name), os.environ))

    def aliases(self, name: str) -> Aliases:
        """Other names of storages, as declared with the catalogs. Raises ``NotFound``."""
        return self.places.aliases_of(self._config.catalog(name).name)

    def metadata_file_bytes(self, table: TableMetadata) -> int:
        """How large the present metadata file of a table is, 0 where its storage does not say."""
        files = self.table_files(table.name.catalog)
        try:
            return files.size_bytes(table, table.metadata_location)
        except IcewrightError:
            return 0

    @contextmanager
    def suggesting(self, name: TableName) -> Iterator[None]:
        """Says which tables of the catalog are spelt like one that it does not have."""
        try:
            yield
        except NotFound as error:
            said = did_you_mean(name, islice(self.catalog(name.catalog).tables(), _NAMES_MAX))
            raise NotFound(error.message, hint=said or error.hint) from error

    def names(self, catalog: str) -> Iterator[TableName]:
        """The tables of one catalog, by name."""
        yield from sorted(self.catalog(catalog).tables())
