"""Tables looked at without a server: straight through the catalogs, with nothing kept.

Nothing is changed but properties, where a person asks for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from icewright.catalogs.local_spool import open_disk_spool
from icewright.catalogs.metadata.table_files import PyIcebergTableFiles
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.properties import PyIcebergProperties
from icewright.config.secrets import resolve_entry
from icewright.core.errors import IcewrightError, InvalidConfiguration, Unavailable
from icewright.core.system_clock import SystemClock, SystemIds
from icewright.footprint.storage_views import StorageView, storage_view
from icewright.maintenance.planner import Planner
from icewright.maintenance.registry.services import plan_asked
from icewright.model.iceberg.locations import Aliases
from icewright.model.iceberg.names import TableName
from icewright.observation.observer import Observer
from icewright.observation.sql import SqlTableStore
from icewright.ownership.location_rules import place_rules
from icewright.ownership.own_paths import own_places
from icewright.ownership.registry import Registry
from icewright.plans.action_types import Planned
from icewright.policy.source import PolicySource
from icewright.store.engine import open_store
from icewright.terminal.found_server import found_server
from icewright.work.optimizers.access import assumed

if TYPE_CHECKING:
    from icewright.catalogs.port import Catalog
    from icewright.catalogs.properties_port import TableProperties
    from icewright.config.model import Config
    from icewright.model.actions.expire_snapshots import ExpiryRule
    from icewright.model.iceberg.tables import TableMetadata
    from icewright.model.plans.requests import Asked
    from icewright.model.policy.policies import Rule
    from icewright.ownership.reachable import Progress
    from icewright.terminal.invocation import Invocation


class Offline:
    """The catalogs of a configuration, opened one by one as they are asked for."""

    def __init__(self, config: Config, rules: Sequence[Rule] | None = None) -> None:
        """``rules`` are those to plan by, by default the configuration's alone."""
        if not config.catalogs:
            raise no_catalogs(config)
        self._config, self._rules = config, config.rules if rules is None else rules
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

    def plan(self, name: TableName, asked: Asked | None = None) -> Planned:
        """Observe and plan one table, from nothing: what was read goes with its store, so that no name meets another.

        No optimizer can be asked whether its workers reach the table's files; the observation says where that was
        assumed.
        Raises what :meth:`icewright.maintenance.planner.Planner.plan` raises.
        """
        clock = SystemClock()
        with _empty_store(clock) as tables:
            observer = Observer({name.catalog: self.catalog(name.catalog)}, tables, clock, registry=self.registry)
            planner = Planner(observer, tables, clock, SystemIds(clock), PolicySource(self._rules))
            observation = assumed(observer.observe(name))
            return planner.plan_observed(observation) if asked is None else plan_asked(planner, observation, asked)

    def aliases(self, name: str) -> Aliases:
        """Other names of storages, as declared with the catalogs. Raises ``NotFound``."""
        return self.places.aliases_of(self._config.catalog(name).name)

    def metadata_file_bytes(self, table: TableMetadata) -> int:
        """How large the present metadata file of a table is, 0 where its storage does not say."""
        files = PyIcebergTableFiles(resolve_entry(self._config.catalog(table.name.catalog), os.environ))
        try:
            return files.size_bytes(table, table.metadata_location)
        except IcewrightError:
            return 0

    def storage(self, name: TableName, rules: Sequence[ExpiryRule], progress: Progress) -> StorageView:
        """Where the bytes of one table are, and what such expiries would free.

        Raises as :func:`icewright.footprint.storage_views.storage_view`.
        """
        entry = resolve_entry(self._config.catalog(name.catalog), os.environ)
        return storage_view(
            PyIcebergTableFiles(entry),
            name,
            rules,
            open_disk_spool,
            aliases=self.aliases(name.catalog),
            progress=progress,
            now=SystemClock().now,
        )

    def names(self, catalog: str) -> Iterator[TableName]:
        """The tables of one catalog, by name."""
        yield from sorted(self.catalog(catalog).tables())


@contextmanager
def _empty_store(clock: SystemClock) -> Iterator[SqlTableStore]:
    """A store for one table, which is removed behind it."""
    with TemporaryDirectory(prefix="icewright-") as folder:
        engine = open_store(f"sqlite:///{folder}/tables.db")
        try:
            yield SqlTableStore(engine, clock)
        finally:
            engine.dispose()


def table_name(config: Config, text: str) -> TableName:
    """The table that a person means; the only catalog that is configured here need not be named."""
    only = config.catalogs[0].name if len(config.catalogs) == 1 else None
    return TableName.parse(text, default_catalog=only)


def reads_here(invocation: Invocation) -> bool:
    """Whether a command reads tables through the catalogs of the configuration; with none, it asks the server.

    One rule for all commands that can do both. Raises ``InvalidConfiguration`` where no server is known either.
    """
    if invocation.config.catalogs:
        return True
    try:
        found_server(invocation.config, os.environ)
    except Unavailable as error:
        raise no_catalogs(invocation.config) from error
    return False


def no_catalogs(config: Config) -> InvalidConfiguration:
    """The error for a configuration without any catalog, with what was found and cannot be used."""
    others = "".join(f"; {other.name} of {other.origin} cannot be used: {other.reason}" for other in config.unusable)
    return InvalidConfiguration(
        f"no catalogs are configured{others}",
        hint="`icewright config init` writes a configuration to start from, `icewright login` names a server to ask, "
        "and `icewright demo` shows one at work",
    )
