"""Wires the control plane from a configuration: real catalogs, the SQL store, the system's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from sqlalchemy import Engine

from icewright.actions.expire_snapshots.iceberg import PyIcebergExpiry
from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.actions.remove_files.adapters.local_quarantine import LocalQuarantine
from icewright.actions.remove_files.adapters.opened import CatalogObjects, CatalogQuarantine
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.remove_files.removals_port import CatalogFiles, RemovalPorts
from icewright.actions.rollback.iceberg import PyIcebergRollbacks
from icewright.actions.rollback.port import Rollbacks
from icewright.actions.undo.second_tables_iceberg import PyIcebergSecondTables
from icewright.actions.undo.second_tables_port import SecondTables
from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.audit.sql import SqlAudit
from icewright.catalogs.local_spool import open_disk_spool
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.properties import PyIcebergProperties
from icewright.catalogs.pointers.table_files import PyIcebergTableFiles
from icewright.catalogs.port import Catalog
from icewright.catalogs.properties_port import TableProperties
from icewright.catalogs.storage.local import STORAGE, real_folder
from icewright.config.agreement import said_configuration
from icewright.config.model import Config
from icewright.config.secrets import resolve, resolve_entry
from icewright.core.clock import Clock
from icewright.core.errors import (
    InvalidConfiguration,
    InvalidLocation,
    NotAllowed,
    StorageUnavailable,
    Unreadable,
    Unsupported,
)
from icewright.core.system_clock import SystemClock, SystemIds, system_uptime
from icewright.identity.sql import SqlIdentities
from icewright.maintenance.dispatch.dispatcher import DispatchLimits
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.objects import prefix_of
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.wiring import open_delivery
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.location_rules import PlaceRules, place_rules
from icewright.ownership.model import Missing
from icewright.ownership.own_paths import own_places
from icewright.policy.rules.sql import SqlPolicies
from icewright.ports.snapshot_expiry import SnapshotExpiry
from icewright.ports.telemetry import note_statement
from icewright.queries.sql import SqlQuerySums
from icewright.queries.wiring import OpenedSpool, build_query_log, open_spool
from icewright.recommendations.sql import SqlRecommendations
from icewright.retention.history import HistoryProgress
from icewright.retention.history_wiring import history_progress
from icewright.retention.pruning import Keeping
from icewright.retention.prunings_sql import SqlPrunings
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.server.cluster.differences import catalogs_elsewhere
from icewright.server.cluster.load import CpuShare
from icewright.server.cluster.servers_sql import SqlServers
from icewright.server.cluster.share import ALL_TABLES, Part
from icewright.server.control import ControlPlane, build_control_plane
from icewright.store.engine import report_statement_times, store_engine
from icewright.store.timeouts import Timeouts
from icewright.store.transactions import FOLLOWS, SHARES, require_lead
from icewright.store_admin.leader_lock import LeaderElection, open_leader_election
from icewright.terminal.address import QUERIES_KEY, lasting_secret
from icewright.web.idempotent_answers_sql import SqlAnswers
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore


@dataclass(frozen=True)
class Opened:
    """A store at which this process has a election, and the catalogs: what control planes are made of.

    What any server does is written by ``engine``; see :class:`.leader_lock.LeaderElection` for what the leader writes.
    """

    config: Config
    environ: Mapping[str, str]
    entries: Sequence[CatalogEntry]
    engine: Engine
    election: LeaderElection
    catalogs: Mapping[str, Catalog]
    spool: OpenedSpool | None

    def follow(self, wake: Callable[[], None] = lambda: None) -> ControlPlane:
        """The control plane of a server that answers, whichever leads: its loop never turns.

        It has no hands on any file, and nothing that commits to a table. ``wake`` is called when events come in.
        """
        engine = self.engine.execution_options(**{FOLLOWS: True})
        return self._plane(engine, _removals(engine, {}), wake=wake)

    @property
    def is_shared(self) -> bool:
        """Whether there may be other servers of the store."""
        return self.engine.dialect.name != "sqlite"

    def look(self, part: Part) -> ControlPlane:
        """The control plane of a server that follows and looks at its part of the tables; it has no hands either."""
        engine = self.engine.execution_options(**{FOLLOWS: True, SHARES: True})
        return self._plane(engine, _removals(engine, {}), part=part)

    def lead(self, engine: Engine, part: Part = ALL_TABLES) -> ControlPlane:
        """The control plane of the server that leads, over the engine that it was given for that."""
        clock, places = SystemClock(), self._places
        files = {
            entry.name: _files_of(entry, places.aliases_of(entry.name), clock, lambda: require_lead(engine))
            for entry in self.entries
        }
        rest = [entry for entry in self.entries if entry.kind is CatalogKind.REST]
        return self._plane(
            engine,
            _removals(engine, files),
            expiries={entry.name: PyIcebergExpiry(entry, clock) for entry in self.entries},
            rollbacks={entry.name: PyIcebergRollbacks(entry, clock) for entry in self.entries},
            properties={entry.name: PyIcebergProperties(entry, clock) for entry in self.entries},
            seconds={entry.name: PyIcebergSecondTables(entry) for entry in rest},
            history=history_progress(self.config),
            part=part,
        )

    @property
    def identities(self) -> SqlIdentities:
        """Who may come in, at any server."""
        return SqlIdentities(self.engine)

    @property
    def audit(self) -> SqlAudit:
        """What was done, by any server."""
        return SqlAudit(self.engine)

    @property
    def answers(self) -> SqlAnswers:
        """What was answered to requests with a key, by any server."""
        return SqlAnswers(self.engine)

    @property
    def servers(self) -> SqlServers:
        """Who is there; this server says with each beat how much CPU it uses."""
        return SqlServers(self.engine, cpu=CpuShare(processes=self.config.server.processes).share)

    def _elsewhere(self) -> Sequence[Missing]:
        return catalogs_elsewhere(SqlCoordinator(self.engine).latest_sessions(), said_configuration(self.config))

    @property
    def _places(self) -> PlaceRules:
        return place_rules(self.entries, own_places(self.config, self.entries), real_folder)

    def _plane(
        self,
        engine: Engine,
        removals: RemovalPorts,
        *,
        expiries: Mapping[str, SnapshotExpiry] = MappingProxyType({}),
        rollbacks: Mapping[str, Rollbacks] = MappingProxyType({}),
        properties: Mapping[str, TableProperties] = MappingProxyType({}),
        seconds: Mapping[str, SecondTables] = MappingProxyType({}),
        wake: Callable[[], None] | None = None,
        history: HistoryProgress | None = None,
        part: Part = ALL_TABLES,
    ) -> ControlPlane:
        config, tables = self.config, SqlTableStore(engine)
        return build_control_plane(
            self.catalogs,
            tables,
            SqlTaskStore(engine),
            SystemClock(),
            SystemIds(),
            removals,
            SqlUndoRecordStore(engine),
            open_delivery(config, self.environ, SqlMessages(engine)),
            rules=config.rules,
            groups=config.groups,
            policies=SqlPolicies(engine),
            limits=DispatchLimits(lease_ms=config.server.lease_ms),
            keeping=Keeping(config.server.retention, SqlAudit(engine), SqlPrunings(engine), history),
            expiries=expiries,
            places=self._places,
            claims=SqlClaims(engine, is_shared=self.is_shared, declares=part.leads),
            rollbacks=rollbacks,
            properties=properties,
            recommendations=SqlRecommendations(engine),
            decisions=SqlDecisions(engine),
            elsewhere=self._elsewhere if self.is_shared else tuple,
            seconds=seconds,
            event_prefixes={**_without_prefix(self.entries), **config.events.prefixes},
            wake=wake,
            part=part,
            parallel_looks=config.server.parallel_looks,
            queries=build_query_log(
                config, self.catalogs.keys(), tables, SystemClock(), self.spool, SqlQuerySums(engine)
            ),
        )


def _removals(engine: Engine, files: Mapping[str, CatalogFiles]) -> RemovalPorts:
    return RemovalPorts(SqlDeletionStore(engine), SqlSightings(engine), open_disk_spool, files, system_uptime)


def _files_of(entry: CatalogEntry, aliases: Aliases, clock: Clock, may_change: Callable[[], None]) -> CatalogFiles:
    """What a catalog's tables keep where, and where removed files wait; ``may_change`` is asked before each change."""
    roots = [aliases.canonical(root) for root in entry.quarantine]
    return CatalogFiles(
        PyIcebergTableFiles(entry), CatalogObjects(entry, clock), CatalogQuarantine(entry, roots, may_change)
    )


def quarantine_problems(entries: Sequence[CatalogEntry]) -> dict[str, str]:
    """Why removed files of local tables could not wait in the quarantine of their catalog, by catalogs.

    Told from where the configuration says that tables lie: what only a table says is told by its first search.
    """
    rules, found = place_rules(entries), dict[str, str]()
    for entry in entries:
        aliases = rules.aliases_of(entry.name)
        held = [root for root in map(aliases.canonical, entry.quarantine) if root.startswith(STORAGE)]
        named = entry.roots or ((entry.warehouse,) if entry.warehouse else ())
        places = [place for place in _folders(aliases, named) if place.startswith(STORAGE)]
        for place in (places or map(prefix_of, held)) if entry.quarantine else ():
            try:
                LocalQuarantine(held).check(CanonicalPath(f"{place}any"))
            except (NotAllowed, Unsupported, StorageUnavailable, Unreadable) as error:
                hint = "" if error.hint is None else f": {error.hint}"
                found.setdefault(entry.name, f"no file could be removed below {place}: {error.message}{hint}")
    return found


def _folders(aliases: Aliases, named: Iterable[str]) -> Iterator[str]:
    """Locations as folders; a warehouse may be called by a name instead."""
    for location in named:
        with suppress(InvalidLocation):
            yield aliases.folder(location)


def _without_prefix(entries: Sequence[CatalogEntry]) -> Mapping[str, str]:
    """The catalog whose addresses have no prefix, where it can only be one."""
    names = [entry.name for entry in entries if entry.kind is CatalogKind.REST]
    return {"": names[0]} if len(names) == 1 else {}


@contextmanager
def open_control_plane(config: Config, environ: Mapping[str, str], *, answers: bool = True) -> Iterator[Opened]:
    """The store and the catalogs of a configuration, closed behind the block.

    The spool of queries is that of a server that ``answers``. Raises :class:`InvalidConfiguration` without catalogs,
    and what taking an election at the store raises (:func:`icewright.store_admin.leader_lock.open_leader_election`).
    """
    if not config.catalogs:
        raise InvalidConfiguration(
            "no catalogs are configured", hint="`icewright config init` writes a configuration to start from"
        )
    entries = [resolve_entry(entry, environ) for entry in config.catalogs]
    password = config.server.store_password
    if password is not None:
        password = resolve(password, key="server.store_password", environ=environ)
    lease_ms = config.server.leader_lease_ms
    engine = store_engine(config.server.store_url, password=password, patience=Timeouts.of_lease(lease_ms))
    report_statement_times(engine, note_statement)
    try:
        with open_leader_election(engine, lease_ms) as election, ExitStack() as ending:
            catalogs = {entry.name: PyIcebergCatalog(entry, entries) for entry in entries}
            key, spool = partial(lasting_secret, config.server.state_dir, QUERIES_KEY), None
            if answers:
                spool = ending.enter_context(open_spool(config, environ, SystemClock(), key))
            yield Opened(config, environ, entries, engine, election, catalogs, spool)
    finally:
        engine.dispose()
