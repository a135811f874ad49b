"""Files that nothing needs go, come back and are purged, while the server dies over that; and whether all agrees then.

Read from the bytes: what is below a table, what is in the quarantine, and what the store has written down of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from urllib.parse import urlsplit
from uuid import uuid4

from pyiceberg.table import Table

from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.api_client.client import Client
from icewright.core.fault_points import Fault
from icewright.model.actions.deletion import Intent, IntentState
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.tables import Json
from icewright.ports.deletions import HELD_STATES, DeletionStore
from icewright.store.engine import open_store
from tests.e2e.kills import DELETER, Mortals
from tests.e2e.processes import wait_for
from tests.lakes.house import DAY_MS, all_there, files, litter, location
from tests.lakes.sqlite import append, make_table, table_name, writer
from tests.lakes.sqlite import rows as rows_of

SETTLING = (Fault.DELETION_SETTLE_BEFORE, Fault.DELETION_SETTLE_AFTER)
"""Where only those come by who find what a death has left."""
MOVING = (
    *SETTLING,
    Fault.DELETION_STEP_BEFORE,
    Fault.DELETION_STEP_BEGUN,
    Fault.DELETION_FILE_DONE,
    Fault.DELETION_RECORD_BEFORE,
    Fault.DELETION_RECORD_AFTER,
)
"""Where whoever moves files comes by: into quarantine, back, and out of it for good."""
REMOVING = tuple(kill.point for kill in DELETER if kill.point is not Fault.DELETION_LEFT)
"""Where a removal comes by."""
BACK, PURGED = IntentState.RESTORED, IntentState.PURGED


@dataclass(frozen=True)
class Story:
    """A removal, and what becomes of its files: at which place the server dies over the one and the other."""

    removal: Fault
    then: IntentState
    at: Fault


LITTERED = tuple(
    Story(removal, then, at)
    for removal, (then, at) in zip(
        cycle(REMOVING), [(then, at) for then in (BACK, PURGED) for at in MOVING], strict=False
    )
)
"""Of orphan files: every place of all three ways."""
EXPIRED = tuple(Story(removal, BACK, at) for removal, at in zip(REMOVING, cycle(MOVING), strict=False))
"""Of files of expired snapshots, that come back with these: every place of both ways."""
LITTERED_SHORT = (
    Story(Fault.DELETION_BEGIN_AFTER, BACK, Fault.DELETION_FILE_DONE),
    Story(Fault.DELETION_STEP_BEGUN, PURGED, Fault.DELETION_RECORD_BEFORE),
    Story(Fault.DELETION_SETTLE_AFTER, PURGED, Fault.DELETION_SETTLE_BEFORE),
)
EXPIRED_SHORT = (
    Story(Fault.DELETION_BEGIN_BEFORE, BACK, Fault.DELETION_STEP_BEFORE),
    Story(Fault.DELETION_CHECKED, BACK, Fault.DELETION_RECORD_AFTER),
    Story(Fault.DELETION_CLOSED, BACK, Fault.DELETION_STEP_BEGUN),
)


@dataclass(frozen=True)
class Garbage:
    """A table before anything went: the rows of each snapshot, all its files, and which of them are to go."""

    table: Table
    rows: dict[int, list[int]]
    files: dict[str, bytes]
    going: frozenset[str]


def make_littered(lake: Mortals, name: str) -> Garbage:
    """A table with a tag, and beside its files those of a write that was aborted; the server does nothing unasked."""
    table = make_table(lake.entry, ("db", name), properties={"icewright.mode": "approve"})
    tagged = append(table, range(5))
    table.manage_snapshots().create_tag(tagged, "kept").commit()
    append(table, range(5, 10))
    left = [
        litter(table, f"{number:05d}-0-{uuid4()}-00001.parquet", content=b"PAR1 %d" % number)[0] for number in range(3)
    ]
    return _garbage(table, {str(path) for path in left})


def make_outdated(lake: Mortals, name: str) -> Garbage:
    """A table with a snapshot that needs files of its own, and that no ref holds; its files may go by themselves."""
    properties = {"icewright.mode": "auto", "icewright.expire-snapshots.remove-files": "true"}
    table = make_table(lake.entry, ("db", name), properties=properties)
    tagged = append(table, range(5))
    table.manage_snapshots().create_tag(tagged, "kept").commit()
    append(table, range(5, 10))
    table.overwrite(rows_of(range(20, 25)))
    table.refresh()
    needed = _reached(table, tagged) | _reached(table, table.metadata.refs["main"].snapshot_id)
    ever = {path for one in table.metadata.snapshots for path in _reached(table, one.snapshot_id)}
    return _garbage(table, ever - needed)


def _garbage(table: Table, going: set[str]) -> Garbage:
    assert len(going) > 1  # some are moved when the first one has been
    return Garbage(table.refresh(), _rows(table), files(location(table)), frozenset(going))


def _rows(table: Table) -> dict[int, list[int]]:
    """Of each snapshot, by reading it."""
    return {
        one.snapshot_id: sorted(table.scan(snapshot_id=one.snapshot_id).to_arrow()["id"].to_pylist())
        for one in table.metadata.snapshots
    }


def _reached(table: Table, snapshot_id: int) -> set[str]:
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    paths = {snapshot.manifest_list}
    for manifest in snapshot.manifests(table.io):
        paths.add(manifest.manifest_path)
        paths |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)}
    return {urlsplit(path).path for path in paths}


# What a person asks for.


def see_garbage(lake: Mortals, garbage: Garbage) -> None:
    """Have the orphan files of a table seen for the first time, a week before they are asked for."""
    lake.done(lambda client: _looked_for(lake, garbage, client), "a table is looked at")
    lake.later(8 * DAY_MS)


def ask_for_removal(lake: Mortals, garbage: Garbage) -> str:
    """Have orphan files looked for, and removed. The task's id."""
    return lake.applied(lambda client: _looked_for(lake, garbage, client), "a removal")


def _looked_for(lake: Mortals, garbage: Garbage, client: Client) -> Json:
    name, snapshot = table_name(garbage.table), garbage.table.current_snapshot()
    assert snapshot is not None
    client.notify(CommitEvent(name, snapshot.snapshot_id))
    return client.plan_asked(str(client.table(name)["uuid"]), lake.entry.name, RemoveOrphanFilesRequest())


def approve_removal(lake: Mortals, garbage: Garbage) -> str:
    """Let the first removal of a table go that the server has planned by itself. The task's id."""

    def waiting(client: Client) -> Json | None:
        name = str(table_name(garbage.table))
        return next((dict(one) for one in client.waiting().items if one["table"] == name), None)

    return lake.applied(waiting, "a removal", by="Ada")


def deaths(point: Fault) -> tuple[Fault, ...]:
    """Where a server dies that is to die there: who finds what a death has left has had one before it."""
    return (Fault.DELETION_FILE_DONE, point) if point in SETTLING else (point,)


# What must hold.


@contextmanager
def record_of(lake: Mortals) -> Iterator[DeletionStore]:
    """What is written down of removals."""
    engine = open_store(f"sqlite:///{lake.folder}/state/icewright.db")
    try:
        yield SqlDeletionStore(engine)
    finally:
        engine.dispose()


def await_purge(lake: Mortals, task_id: str) -> None:
    """Wait until nothing of a removal is in quarantine any more, nor in doubt."""

    def is_gone(client: Client) -> bool | None:
        return None if task_id in {one["task_id"] for one in client.quarantine().items} else True

    lake.done(is_gone, "a purge ends")


def await_end(lake: Mortals, task_id: str) -> None:
    """Wait until nothing more will be done of a removal whose task has ended without it."""

    def is_closed() -> bool | None:
        lake.revive()
        with record_of(lake) as store:
            return None if store.run(task_id).is_open else True

    wait_for(is_closed, "a removal is given up", lake)


def check_files(lake: Mortals, garbage: Garbage, task_id: str, state: IntentState) -> None:
    """Each file that was to go is where its intent says, with its bytes, and nowhere else; all others are untouched.

    The table has had one removal, and the quarantine has nothing but what is written down. Every snapshot that is
    retained has its rows.
    """
    table = writer(lake.entry).load_table(garbage.table.name())
    with record_of(lake) as store:
        run = store.run(task_id)
        assert (run.is_open, [one.run_id for one in store.runs(table_id=run.table_id, limit=10)]) == (False, [task_id])
        intents = store.intents(task_id, frozenset(IntentState), limit=100)
        held = {
            _held(one) for each in store.with_held(limit=100) for one in store.intents(each, HELD_STATES, limit=100)
        }
    assert {urlsplit(one.object.path).path: one.state for one in intents} == dict.fromkeys(garbage.going, state)
    here = state in (BACK, IntentState.SKIPPED)
    there, gone = files(location(table)), frozenset[str]() if here else garbage.going
    assert {path: there.get(path) for path in garbage.files} == {
        path: None if path in gone else content for path, content in garbage.files.items()
    }
    assert {path.endswith(".metadata.json") for path in there.keys() - garbage.files.keys()} <= {True}
    quarantined = files(lake.held)
    assert quarantined.keys() == held
    if state is IntentState.QUARANTINED:
        assert {path: quarantined[_held(one)] for one in intents for path in [urlsplit(one.object.path).path]} == {
            path: garbage.files[path] for path in garbage.going
        }
    rows = _rows(table)
    assert rows == {snapshot_id: garbage.rows[snapshot_id] for snapshot_id in (garbage.rows if here else rows)}
    assert (table.metadata.refs, all_there(table)) == (garbage.table.metadata.refs, True)


def _held(intent: Intent) -> str:
    assert intent.held is not None
    return urlsplit(intent.held.place).path
