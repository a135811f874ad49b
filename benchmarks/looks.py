"""What looks cost: statements, transactions and CPU time of an unchanged look, and of a table that is passed over.

``python -m benchmarks.looks [TABLES] [URL of a store]``: real metadata in an SQL catalog, the real store, one thread.
The clock is moved by hand, so that nothing waits; the times are those of the processor.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, Engine, event

from benchmarks.many_tables import Kind, ManyTables
from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.system_clock import SystemIds
from icewright.maintenance.dispatch.dispatcher import DispatchLimits
from icewright.model.policy.policy import PolicyRule
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.service import MessageDelivery
from icewright.ownership.claims_sql import SqlClaims
from icewright.policy.rules.sql import SqlPolicies
from icewright.recommendations.sql import SqlRecommendations
from icewright.server.control import ControlPlane, build_control_plane
from icewright.store.engine import open_store
from icewright.store.transactions import WRITES
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.doubles.clock import ManualClock
from tests.doubles.removals import removal_ports

_HOUR_MS = 3_600_000
_RULE = PolicyRule(
    "many",
    (),
    {
        "icewright.mode": "auto",
        "icewright.expire-snapshots.enabled": "true",
        "icewright.rewrite-manifests.enabled": "true",
        "history.expire.min-snapshots-to-keep": "1000",
    },
)


def main(tables: int, url: str | None) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        lake = ManyTables(Path(folder), [Kind("12 files", 1, 4, 3)], tables, seed=1)
        lake.write(["icewright"])
        engine = open_store(url or f"sqlite:///{folder}/store.db")
        clock = ManualClock(int(time.time() * 1000))
        control = _control(lake, engine, clock)
        names = [lake.name(number) for number in range(tables)]

        def look() -> None:
            for name in names:
                control.maintainer.look(name)

        def sweep() -> None:
            clock.advance(_HOUR_MS)
            while control.tables.due(clock.now(), 1):
                control.loop.turn()

        print(f"{tables:,} tables of 40 snapshots and 4 manifests, store on {engine.dialect.name}")
        _measured("first look", tables, engine, look)
        look()
        clock.advance(_HOUR_MS)
        look()
        _measured("unchanged look", tables, engine, look)
        _measured("in an hourly sweep", tables, engine, sweep)
        _measured("in the next one", tables, engine, sweep)
        engine.dispose()


def _control(lake: ManyTables, engine: Engine, clock: ManualClock) -> ControlPlane:
    tables = SqlTableStore(engine, clock)
    return build_control_plane(
        {"many": PyIcebergCatalog(lake.entry("icewright"))},
        tables,
        SqlTaskStore(engine, clock),
        clock,
        SystemIds(clock),
        removal_ports(engine, clock),
        SqlUndoRecordStore(engine),
        MessageDelivery(SqlMessages(engine, clock)),
        rules=[_RULE],
        policies=SqlPolicies(engine, clock),
        limits=DispatchLimits(),
        claims=SqlClaims(engine),
        recommendations=SqlRecommendations(engine),
        decisions=SqlDecisions(engine, clock),
    )


def _measured(what: str, tables: int, engine: Engine, does: Callable[[], None]) -> None:
    found = Counter[str]()

    def begun(connection: Connection) -> None:
        found["writes" if connection.get_execution_options().get(WRITES) else "reads"] += 1

    def said(*_: object) -> None:
        found["statements"] += 1

    event.listen(engine, "begin", begun)
    event.listen(engine, "before_cursor_execute", said)
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    does()
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    event.remove(engine, "begin", begun)
    event.remove(engine, "before_cursor_execute", said)
    each = {name: count / tables for name, count in found.items()}
    said_of = [f"{each.get(name, 0):6.2f} {name}" for name in ("statements", "reads", "writes")]
    print(f"{what:20}", *said_of, f"{1000 * cpu_s / tables:6.2f} ms CPU", f"{tables / wall_s:7.1f} a second", sep="  ")


if __name__ == "__main__":
    count, store = (*sys.argv[1:], None, None)[:2]
    main(int(count or 2_000), store)
