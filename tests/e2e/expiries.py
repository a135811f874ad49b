"""Tables whose snapshots expire because a person asks for it, while the server dies over that."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

from pyiceberg.table import Table

from icewright.api_client.client import Client
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.tables import Json
from tests.e2e.kills import Mortals
from tests.lakes.sqlite import append, files_of, make_table, table_name, writer
from tests.readers.duck import duckdb_with_iceberg

COMMITS, TAGGED = 5, 2
"""Commits of a table, and which of them a tag holds; that one and the last stay, the others expire."""
ROWS_PER_COMMIT = 5


def make_history(lake: Mortals, name: str) -> Table:
    """A table with snapshots that may expire, on which the server does nothing unasked."""
    table = make_table(lake.entry, ("db", name), properties={"icewright.mode": "approve"})
    for number in range(1, COMMITS + 1):
        snapshot_id = append(table, _rows_of(number)[-ROWS_PER_COMMIT:])
        if number == TAGGED:
            table.manage_snapshots().create_tag(snapshot_id, "kept").commit()
    return table.refresh()


def ask_for_expiry(lake: Mortals, table: Table) -> str:
    """Have all snapshots expire that nothing holds; asked again when the server dies over it. The task's id."""
    name, snapshot = table_name(table), table.current_snapshot()
    assert snapshot is not None
    event = CommitEvent(name, snapshot.snapshot_id)

    def asked(client: Client) -> Json:
        client.notify(event)
        uuid = str(client.table(name)["uuid"])
        return client.plan_asked(uuid, lake.entry.name, ExpireSnapshotsRequest("PT0S", 1))

    return lake.applied(asked, "an expiry")


def ask_for_undo(lake: Mortals, task_id: str) -> str:
    """Have a task taken back. The task's id."""
    return lake.applied(lambda client: client.undo(task_id), "an undo")


def check_expired(lake: Mortals, before: Table) -> None:
    """One commit, which took what was to go and nothing else; what stays is read from its bytes by others than us."""
    after = writer(lake.entry).load_table(before.name())
    assert len(after.metadata.metadata_log) == len(before.metadata.metadata_log) + 1
    assert after.metadata.refs == before.metadata.refs
    kept = {after.metadata.refs["kept"].snapshot_id: TAGGED, after.metadata.refs["main"].snapshot_id: COMMITS}
    assert {snapshot.snapshot_id for snapshot in after.metadata.snapshots} == set(kept)
    for snapshot_id, commits in kept.items():
        assert sorted(after.scan(snapshot_id=snapshot_id).to_arrow()["id"].to_pylist()) == _rows_of(commits)
    query = "SELECT id FROM iceberg_scan(?) ORDER BY id"
    found = duckdb_with_iceberg().execute(query, [after.metadata_location]).fetchall()
    assert [row[0] for row in found] == _rows_of(COMMITS)
    for path in files_of(after):
        assert Path(urlsplit(path).path).is_file(), path


def check_back(lake: Mortals, before: Table) -> None:
    """Two commits, one there and one back: each snapshot is as it was, and read from its bytes."""
    after = writer(lake.entry).load_table(before.name())
    assert len(after.metadata.metadata_log) == len(before.metadata.metadata_log) + 2
    assert after.metadata.refs == before.metadata.refs
    raw = [json.loads(Path(urlsplit(one.metadata_location).path).read_bytes()) for one in (before, after)]
    assert raw[0]["snapshots"] == raw[1]["snapshots"]
    assert raw[0]["snapshot-log"] == raw[1]["snapshot-log"]
    for commits, snapshot in enumerate(after.metadata.snapshots, start=1):
        found = after.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["id"].to_pylist()
        assert sorted(found) == _rows_of(commits)


def _rows_of(commits: int) -> list[int]:
    """What the table has after so many commits."""
    return list(range(commits * ROWS_PER_COMMIT))
