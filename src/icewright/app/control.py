"""Wires the control plane from a configuration: real catalogs, the SQL store, the system's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from icewright.adapters.clock import SystemClock, SystemIds
from icewright.adapters.objects.opened import CatalogObjects, CatalogQuarantine
from icewright.adapters.pyiceberg.catalog import PyIcebergCatalog
from icewright.adapters.pyiceberg.expiry import PyIcebergExpiry
from icewright.adapters.pyiceberg.rollback import PyIcebergRollbacks
from icewright.adapters.pyiceberg.second_tables import PyIcebergSecondTables
from icewright.adapters.pyiceberg.table_files import PyIcebergTableFiles
from icewright.adapters.spool import open_disk_spool
from icewright.adapters.sql.answers import SqlAnswers
from icewright.adapters.sql.audit import SqlAudit
from icewright.adapters.sql.claims import SqlClaims
from icewright.adapters.sql.cursors import SqlCursors
from icewright.adapters.sql.deletion_store import SqlDeletionStore
from icewright.adapters.sql.engine import store_engine
from icewright.adapters.sql.identity import SqlIdentities
from icewright.adapters.sql.kept import SqlKept
from icewright.adapters.sql.message_store import SqlMessages
from icewright.adapters.sql.policies import SqlPolicies
from icewright.adapters.sql.sightings import SqlSightings
from icewright.adapters.sql.table_store import SqlTableStore
from icewright.adapters.sql.task_store import SqlTaskStore
from icewright.adapters.sql.times import tell_times
from icewright.app.alone import alone_with
from icewright.app.notifications import telling
from icewright.config.model import Config
from icewright.config.own_places import own_places
from icewright.config.secrets import resolve, resolve_entry
from icewright.domain.catalogs import CatalogEntry, CatalogKind
from icewright.domain.errors import InvalidConfiguration
from icewright.domain.locations import Aliases
from icewright.planning.place_rules import place_rules
from icewright.ports.answers import Answers
from icewright.ports.audit import AuditLog
from icewright.ports.clock import Clock
from icewright.ports.event_sources import Cursors
from icewright.ports.identity import IdentityStore
from icewright.ports.removals import CatalogFiles, RemovalPorts
from icewright.services.audit_keeping import KeptAudit
from icewright.services.control import ControlPlane, build_control_plane
from icewright.services.dispatcher import DispatchLimits
from icewright.services.telemetry import note_statement

_DAY_MS: Final = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Opened:
    """A control plane over a store that is ours; ``check_alone`` as in :class:`icewright.app.alone.Alone`."""

    control: ControlPlane
    check_alone: Callable[[], None]
    identities: IdentityStore
    audit: AuditLog
    cursors: Cursors
    answers: Answers


def _files_of(entry: CatalogEntry, aliases: Aliases, clock: Clock) -> CatalogFiles:
    """What a catalog's tables keep where, and where removed files wait."""
    roots = [aliases.canonical(root) for root in entry.quarantine]
    return CatalogFiles(PyIcebergTableFiles(entry), CatalogObjects(entry, clock), CatalogQuarantine(entry, roots))


def _without_prefix(entries: Sequence[CatalogEntry]) -> Mapping[str, str]:
    """The catalog whose addresses have no prefix, where it can only be one."""
    names = [entry.name for entry in entries if entry.kind is CatalogKind.REST]
    return {"": names[0]} if len(names) == 1 else {}


@contextmanager
def open_control_plane(config: Config, environ: Mapping[str, str]) -> Iterator[Opened]:
    """The control plane over the store and the catalogs of a configuration, closed behind the block.

    Raises :class:`InvalidConfiguration` without catalogs, :class:`~icewright.domain.errors.NotAllowed` while another
    server holds the store, and what opening the store raises.
    """
    if not config.catalogs:
        raise InvalidConfiguration(
            "no catalogs are configured", hint="`icewright config init` writes a configuration to start from"
        )
    entries = [resolve_entry(entry, environ) for entry in config.catalogs]
    password = config.server.store_password
    if password is not None:
        password = resolve(password, key="server.store_password", environ=environ)
    engine = store_engine(config.server.store_url, password=password)
    tell_times(engine, note_statement)
    try:
        with alone_with(engine) as alone:
            audit = SqlAudit(alone.engine)
            clock, places = SystemClock(), place_rules(entries, own_places(config, entries))
            control = build_control_plane(
                {entry.name: PyIcebergCatalog(entry) for entry in entries},
                SqlTableStore(alone.engine),
                SqlTaskStore(alone.engine),
                clock,
                SystemIds(),
                RemovalPorts(
                    SqlDeletionStore(alone.engine),
                    SqlSightings(alone.engine),
                    open_disk_spool,
                    {entry.name: _files_of(entry, places.aliases_of(entry.name), clock) for entry in entries},
                ),
                rules=config.rules,
                policies=SqlPolicies(alone.engine),
                limits=DispatchLimits(lease_ms=config.server.lease_ms),
                keep_tasks_ms=config.server.keep_tasks_days * _DAY_MS,
                audit=KeptAudit(audit, config.server.keep_audit_days * _DAY_MS),
                expiries={entry.name: PyIcebergExpiry(entry, clock) for entry in entries},
                places=places,
                claims=SqlClaims(alone.engine),
                kept=SqlKept(alone.engine),
                rollbacks={entry.name: PyIcebergRollbacks(entry, clock) for entry in entries},
                seconds={
                    entry.name: PyIcebergSecondTables(entry) for entry in entries if entry.kind is CatalogKind.REST
                },
                event_prefixes={**_without_prefix(entries), **config.events.prefixes},
                telling=telling(config, environ, SqlMessages(alone.engine)),
            )
            yield Opened(
                control,
                alone.check,
                SqlIdentities(alone.engine),
                audit,
                SqlCursors(alone.engine),
                SqlAnswers(alone.engine),
            )
    finally:
        engine.dispose()
