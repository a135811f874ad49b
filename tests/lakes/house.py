"""A lake on a real file system with a quarantine beside it, and a whole server over it whose clock tests move."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import uvicorn
from pyiceberg.table import Table

from icewright.actions.expire_snapshots.iceberg import PyIcebergExpiry
from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.actions.remove_files.adapters.opened import CatalogObjects, CatalogQuarantine
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.remove_files.removals_port import CatalogFiles, RemovalPorts
from icewright.actions.undo.second_tables_iceberg import PyIcebergSecondTables
from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.audit.sql import SqlAudit
from icewright.catalogs.local_spool import open_disk_spool
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.table_files import PyIcebergTableFiles
from icewright.catalogs.storage.local import real_folder
from icewright.core.clock import Uptime
from icewright.core.system_clock import SystemIds
from icewright.identity.authentication import Access, loopback_hosts
from icewright.identity.sql import SqlIdentities
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Plan
from icewright.model.work.tasks import Task
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.service import MessageDelivery
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.location_rules import place_rules
from icewright.ports.store import TaskFilter
from icewright.server.control import ControlPlane, build_control_plane
from icewright.server.http.app import create_app
from icewright.server.server import listen
from icewright.store.engine import open_store
from icewright.terminal.address import ServerAddress, lasting_secret, write_address
from icewright.web.idempotent_answers_sql import SqlAnswers
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.doubles.clock import ManualClock
from tests.lakes.sqlite import append, files_of, make_lake, make_table
from tests.lakes.stores import sqlite_store
from tests.servers.in_threads import serving_web

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
OWNED = {"icewright.mode": "auto", "icewright.remove-orphan-files.enabled": "true"}


class House:
    """A lake, a quarantine beside it, and a server that can be started anew."""

    def __init__(
        self,
        folder: Path,
        *,
        quarantine: bool = True,
        limited: bool = True,
        entry: CatalogEntry | None = None,
        rounds_a_day: float = 1,
    ) -> None:
        self.folder, self.clock = folder, ManualClock(int(time.time() * 1000))
        self.rounds_a_day = rounds_a_day
        self.held = folder / "quarantine"
        self.held.mkdir()
        entry = entry or make_lake(folder)
        entry = entry if entry.roots or not limited else replace(entry, roots=(entry.warehouse,))
        self.entry = replace(entry, quarantine=(str(self.held),)) if quarantine else entry
        self.engine = open_store(sqlite_store(folder / "store.db"))
        self._watching = sqlite3.connect(folder / "store.db", isolation_level=None, check_same_thread=False)
        self.ids = SystemIds(self.clock)
        self.jumped_ms, self.boot = 0, 1
        """How far the clock is ahead of what the machine has counted, and since which start that counts."""
        self.delivery = MessageDelivery(SqlMessages(self.engine, self.clock))
        self.one_person = False
        self.control = self.restart()

    def restart(self) -> ControlPlane:
        places = place_rules([self.entry], real=real_folder)
        roots = [places.aliases_of(self.entry.name).canonical(root) for root in self.entry.quarantine]
        quarantine = CatalogQuarantine(self.entry, roots)
        own = CatalogFiles(PyIcebergTableFiles(self.entry), CatalogObjects(self.entry, self.clock), quarantine)
        self.control = build_control_plane(
            {self.entry.name: PyIcebergCatalog(self.entry)},
            SqlTableStore(self.engine, self.clock),
            SqlTaskStore(self.engine, self.clock),
            self.clock,
            self.ids,
            RemovalPorts(
                SqlDeletionStore(self.engine, self.clock),
                SqlSightings(self.engine, self.clock),
                open_disk_spool,
                {self.entry.name: own},
                lambda: Uptime(self.clock.now() - self.jumped_ms, self.boot),
            ),
            SqlUndoRecordStore(self.engine),
            self.delivery,
            expiries={self.entry.name: PyIcebergExpiry(self.entry, self.clock)},
            decisions=SqlDecisions(self.engine, self.clock),
            seconds={self.entry.name: PyIcebergSecondTables(self.entry)} if self.entry.kind is CatalogKind.REST else {},
            places=places,
            claims=SqlClaims(self.engine),
            pause=self.pause,
        )
        return self.control

    def jump(self, span_ms: int) -> None:
        """Set the clock, ahead or back; no time has passed."""
        self.clock.advance(span_ms)
        self.jumped_ms += span_ms

    def pause(self, wait_ms: int) -> None:
        self.clock.advance(wait_ms)

    def table(self, name: str = "events", **properties: str) -> Table:
        made = make_table(self.entry, ("db", name), properties={**OWNED, **properties})
        for number in range(3):
            append(made, range(number * 100, number * 100 + 100))
        return made

    def days(self, count: float, *, a_day: float | None = None) -> None:
        """Let time pass, with so many rounds of the server a day, and one at the end of a shorter time."""
        rounds = max(1, round(count * (a_day or self.rounds_a_day)))
        for _ in range(rounds):
            self.clock.advance(round(count * DAY_MS) // rounds)
            self.round()

    def round(self) -> None:
        """Three rounds of the server; what comes behind one that wrote nothing at this time would write nothing."""
        for _ in range(3):
            before = self._moment()
            self.control.loop.round()
            if self._moment() == before:
                return

    def _moment(self) -> tuple[int, int]:
        """The time, and a number that changes with every commit of the store."""
        (version,) = self._watching.execute("PRAGMA data_version").fetchone()
        return self.clock.now(), version

    def look(self, name: TableName, asked: RemoveOrphanFilesRequest | None = None) -> Plan:
        return self.control.maintainer.plan_asked(name, asked or RemoveOrphanFilesRequest())

    def tasks(self) -> list[Task]:
        found = self.control.tasks.tasks(TaskFilter(kind=ActionKind.REMOVE_ORPHAN_FILES), limit=100)
        return sorted(found, key=lambda task: task.task_id)

    def undo(self, task_id: str) -> Task:
        plan = self.control.undoer.plan(task_id)
        task = self.control.dispatcher.apply(plan.plan_id)
        self.round()
        return self.control.tasks.get(task.task_id)


def location(table: Table) -> Path:
    return on_disk(table.location())


def on_disk(path: str) -> Path:
    """Where a file is: PyIceberg writes ``file:///``, and Hadoop's paths in Java ``file:/``."""
    return Path(path.removeprefix("file://").removeprefix("file:"))


def files(folder: Path) -> dict[str, bytes]:
    """All files below a folder, and what is in them."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def litter(table: Table, *names: str, content: bytes = b"PAR1 nobody needs this") -> list[Path]:
    """What an aborted write of Iceberg has left behind, called as its writers do; the same name gives the same file."""
    made = [location(table) / "data" / f"00000-0-{uuid5(NAMESPACE_URL, name)}-00001.parquet" for name in names]
    for path in made:
        path.write_bytes(content)
    return made


def rows(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def all_there(table: Table) -> bool:
    """Whether every file is there that any snapshot of the table reaches."""
    table.refresh()
    return all(on_disk(path).exists() for path in files_of(table))


def own_access(house: House, token: str, port: int) -> Access:
    """Who gets in to a house: its owner, and whoever its store knows."""
    identities, audit = SqlIdentities(house.engine, house.clock), SqlAudit(house.engine, house.clock)
    answers = SqlAnswers(house.engine, house.clock)
    return Access(
        token, loopback_hosts("127.0.0.1", port), identities, audit, answers=answers, one_person=house.one_person
    )


@contextmanager
def serving(house: House) -> Iterator[None]:
    """The house behind a socket, for clients and for commands that run in its folder."""
    state = house.folder / "state"
    with listen("127.0.0.1", 0) as listening:
        port = int(listening.getsockname()[1])
        address = ServerAddress(f"http://127.0.0.1:{port}", lasting_secret(state, "token"), os.getpid())
        app = create_app(house.control, own_access(house, address.token, port))
        write_address(state / "server.json", address)
        web = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
        with serving_web(web, listening):
            yield
