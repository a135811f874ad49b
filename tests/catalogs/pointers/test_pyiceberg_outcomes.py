"""G7: every outcome of the server's own commits against every answer, by PyIceberg's client and a real REST catalog.

As ``tests/spark/test_commit_outcomes.py`` has it for the commits of optimizers. Death is in the kill matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from icewright.actions.expire_snapshots.iceberg import PyIcebergExpiry
from icewright.actions.expire_snapshots.plan import decide_expiry
from icewright.actions.rollback.iceberg import PyIcebergRollbacks
from icewright.catalogs.pointers import rest_pointers
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import Conflict, NotAllowed, OutcomeUnknown, Unavailable
from icewright.core.system_clock import SystemClock
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.actions.rollback import Rollback
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.policy.effective import effective_policy
from tests.contracts.undoing import Shelf
from tests.lakes.sqlite import SCHEMA, files_of, rows
from tests.servers.fault_proxy import Answer, Cell, FaultProxy
from tests.servers.rest import RestCatalogServer

NAMESPACE = "own_outcomes"
SNAPSHOTS = 3
CELLS: list[tuple[Answer, bool]] = [
    (answer, applied) for answer in Answer for applied in (True, False) if answer is not Answer.KILLED
]


@dataclass(frozen=True)
class Rig:
    """The server reaches the catalog through the proxy, everybody else directly."""

    entry: CatalogEntry
    proxy: FaultProxy
    direct: CatalogEntry
    catalog: Catalog


@pytest.fixture(scope="module")
def rig(rest_catalog: RestCatalogServer) -> Iterator[Rig]:
    proxy = FaultProxy(rest_catalog.port)
    catalog = load_catalog("lake", type="rest", uri=rest_catalog.uri)
    catalog.create_namespace(NAMESPACE)
    entry, direct = (CatalogEntry("lake", CatalogKind.REST, uri, "") for uri in (proxy.uri, rest_catalog.uri))
    try:
        yield Rig(entry, proxy, direct, catalog)
    finally:
        proxy.close()


def make_table(rig: Rig, name: str) -> Table:
    table = rig.catalog.create_table((NAMESPACE, name), SCHEMA)
    for number in range(SNAPSHOTS):
        table.append(rows([number]))
    return table.refresh()


def seen(rig: Rig, name: TableName) -> TableMetadata:
    return PyIcebergCatalog(rig.direct).load(name)


def expiry(rig: Rig, name: TableName, _task_id: str) -> Callable[[], None]:
    """All snapshots but the current one expire."""
    now = seen(rig, name)
    rule = ExpiryRule(0, 1)
    action = decide_expiry(now, effective_policy(now, ()), rule, now.updated_at + 60_000, can_put_back=True).action
    assert action is not None

    def carry_out() -> None:
        port = PyIcebergExpiry(rig.entry, SystemClock())
        port.expire(name, now.table_id, action, may_commit=lambda: None, keep=Shelf().keep)

    return carry_out


def rollback(rig: Rig, name: TableName, task_id: str) -> Callable[[], None]:
    """``main`` goes back to the first snapshot."""
    now = seen(rig, name)
    oldest, newest = now.snapshots[0], now.snapshots[-1]
    action = Rollback(newest.snapshot_id, oldest.snapshot_id)

    def carry_out() -> None:
        port = PyIcebergRollbacks(rig.entry, SystemClock())
        port.roll_back(name, now.table_id, action, task_id=task_id, may_commit=lambda: None)

    return carry_out


def is_done(rig: Rig, name: TableName, what: str) -> bool:
    """Whether it took effect, wholly; asserted that it did so wholly or not at all, and harmed nothing."""
    table = rig.catalog.load_table((NAMESPACE, name.name))
    assert [path for path in files_of(table) if not Path(urlsplit(path).path).is_file()] == []
    found = sorted(table.scan().to_arrow()["id"].to_pylist())
    if what == "expiry":
        assert found == list(range(SNAPSHOTS))
        assert len(table.metadata.snapshots) in {1, SNAPSHOTS}
        return len(table.metadata.snapshots) == 1
    assert len(table.metadata.snapshots) == SNAPSHOTS
    assert found in ([0], list(range(SNAPSHOTS)))
    return found == [0]


@pytest.mark.parametrize("what", ["expiry", "rollback"])
@pytest.mark.parametrize(("answer", "applied"), CELLS, ids=[f"{a}, {'applied' if b else 'dropped'}" for a, b in CELLS])
def test_g7_c1_c2_what_the_server_says_of_its_own_commits_is_true(
    rig: Rig, answer: Answer, what: str, monkeypatch: pytest.MonkeyPatch, *, applied: bool
) -> None:
    monkeypatch.setattr(rest_pointers, "ANSWER_TIMEOUT_MS", 1_500)
    name = TableName("lake", (NAMESPACE,), f"{what}{CELLS.index((answer, applied))}")
    make_table(rig, name.name)
    plan = expiry if what == "expiry" else rollback
    carry_out = plan(rig, name, "task-1")
    rig.proxy.cell = cell = Cell(answer, applied=applied)
    said = "done"
    try:
        carry_out()
    except (Conflict, NotAllowed):
        said = "not done"
    except (OutcomeUnknown, Unavailable):
        said = "unknown"
    finally:
        rig.proxy.cell = None
    assert cell.met == 1
    done = is_done(rig, name, what)
    assert done or said != "done"
    assert not done or said != "not done"
    if not done:
        carry_out()  # nothing was cleaned up that it would need
    assert is_done(rig, name, what)
    commits = len(rig.proxy.commits)
    if what == "rollback":
        carry_out()  # by its signature it is known to be done
        assert len(rig.proxy.commits) == commits
