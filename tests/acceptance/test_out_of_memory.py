"""Two tables run out of memory, one in Spark's heap and one in a Python worker, and find a larger optimizer.

Nothing is pretended: the rows of a group do not fit. A server in mode ``act`` starts every optimizer, gives the tasks a
larger one, gives the normal queue more memory, and takes that back when it is not needed any more. For the last step
the decisions in the store are made a week older, since memory that was too little is not tried again before.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import BinaryType, LongType, NestedField

from icewright.api_client.client import Client
from tests.e2e.processes import Processes, wait_for
from tests.lakes.sqlite import files_of, make_lake, make_table, writer

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(3_600)]

LONG = bool(os.environ.get("ICEWRIGHT_ACCEPTANCE") or os.environ.get("ICEWRIGHT_CAMPAIGN"))
MIB = 1 << 20
SCHEMA = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "payload", BinaryType()))
FILES, ROWS_A_FILE, ROW_BYTES = 5, 2, 64 * MIB
"""640 MiB of rows, and little on the disk: each payload repeats itself."""
AT_ONCE = {
    "icewright.large-queue.successes": "1",
    "icewright.write-window": "PT0S",
    "icewright.rewrite-data-files.max-task-time-ratio": "1",
}
"""One success in the large queue is enough, and that rows are removed keeps no rewrite waiting."""
BLOOM = {"write.parquet.bloom-filter-enabled.column.id": "true"}
"""What a merge would drop: Spark itself reads and writes such a table."""
HEAP, WORKER, LARGE = "512m", "768m", "6g"
AUTOTUNE = f"""
[autotune]
mode = "act"
wait_ms = 1000
cool_down_ms = 1000
large_memory = "{LARGE}"
memory_step = "512m"
memory_max = "{LARGE}"
oom_cycles = 2
quiet_cycles = 2
"""
WEEK_MS = 8 * 24 * 3_600_000
IN_THE_HEAP = re.compile(r"OutOfMemoryError|exit code 52")
IN_A_WORKER = re.compile(r"MemoryError|Cannot allocate memory|realloc of size|malloc of size")


def payload(row: int, size: int) -> bytes:
    return (row.to_bytes(8) + bytes(range(256)) * 64) * (size // 16_392 + 1)


def fill(table: Table, first: int, *, rows: int, size: int) -> None:
    """Some commits, each with a file of so many rows."""
    for number in range(FILES):
        ids = [first + number * rows + row for row in range(rows)]
        data = {"id": pa.array(ids), "payload": pa.array([payload(row, size) for row in ids], pa.binary())}
        table.append(pa.table(data))


def check(table: Table, ids: range, size: int) -> None:
    """Every byte is read, and every path that a snapshot reaches is there."""
    table.refresh()
    found = {}
    for batch in table.scan().to_arrow_batch_reader():
        for row in batch.to_pylist():
            assert row["id"] not in found
            found[row["id"]] = row["payload"] == payload(row["id"], size)
    assert found == dict.fromkeys(ids, True)
    assert [path for path in files_of(table) if not Path(path.removeprefix("file:")).is_file()] == []


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Processes]:
    environ = {
        "ICEWRIGHT_OPTIMIZER__MASTER": "local[1]",
        "ICEWRIGHT_OPTIMIZER__MEMORY": HEAP,
        "ICEWRIGHT_OPTIMIZER__SLOTS": "1",
        "ICEWRIGHT_OPTIMIZER__SPARK_CONF": json.dumps({"spark.executor.pyspark.memory": WORKER}),
    }
    found = Processes(tmp_path, make_lake(tmp_path), environ=environ)
    text = found.configuration.read_text().replace("lease_ms = 4000", "lease_ms = 30000")
    found.configuration.write_text(text.replace('master = "local[2]"\n', "") + AUTOTUNE)
    try:
        yield found
    finally:
        found.end()


def of_table(client: Client, name: str) -> list[dict[str, Any]]:
    """Rewrites of a table, the oldest first, each with its attempts."""
    tasks = [task for task in client.tasks(limit=100).items if task["table"].endswith(f".{name}")]
    return [{**task, "attempts": client.attempts(task["task_id"]).items} for task in reversed(tasks)]


def decided(client: Client) -> list[tuple[str, str, str]]:
    """Queue, move and state of decisions, the oldest first."""
    found = client.decisions(only_standing=False, limit=100, cursor=None).items
    return [(one["queue"], one["move"], one["state"]) for one in reversed(found)]


def age(store: Path) -> None:
    """All decisions were made, and ended, a week earlier."""
    with closing(sqlite3.connect(store)) as connection, connection:
        rows = connection.execute("SELECT decision_id, decision FROM autotune_decisions").fetchall()
        for decision_id, text in rows:
            document = json.loads(text)
            for key in ("made_at", "ended_at"):
                document[key] = None if document[key] is None else document[key] - WEEK_MS
            connection.execute(
                "UPDATE autotune_decisions SET decision = ?, made_at = ?, ended_at = ? WHERE decision_id = ?",
                (json.dumps(document), document["made_at"], document["ended_at"], decision_id),
            )


if LONG:

    def test_tables_that_run_out_of_memory_find_a_larger_optimizer_and_come_back(lake: Processes) -> None:
        names = {"in_the_heap": BLOOM, "in_a_worker": {}}
        for name, more in names.items():
            table = make_table(lake.entry, ("db", name), schema=SCHEMA, properties={**AT_ONCE, **more})
            fill(table, 0, rows=ROWS_A_FILE, size=ROW_BYTES)
        lake.start("serve")
        client = lake.client()

        def succeeded(count: int) -> bool | None:
            done = [sum(task["state"] == "succeeded" for task in of_table(client, name)) >= count for name in names]
            return all(done) or None

        wait_for(lambda: succeeded(1), "both tables are rewritten by a larger optimizer", lake, 1_500.0)
        told = {name: of_table(client, name)[0] for name in names}
        print(json.dumps(told, indent=1), decided(client))  # noqa: T201 - for whoever runs it
        for name, pattern in (("in_the_heap", IN_THE_HEAP), ("in_a_worker", IN_A_WORKER)):
            first, *_, last = sorted(told[name]["attempts"], key=lambda one: int(one["attempt"]))
            assert pattern.search(json.dumps(first)), first
            assert "out-of-memory" in json.dumps(first)
            assert told[name]["lane"]["queue"] == "large"
            assert last["optimizer_id"] != first["optimizer_id"]
            check(writer(lake.entry).load_table(("db", name)), range(FILES * ROWS_A_FILE), ROW_BYTES)
        moves = decided(client)
        assert ("large", "start-optimizer", "done") in moves
        assert ("normal", "more-memory", "done") in moves

        # From now on their rows are small: each is back in the normal queue, and what it has suffices.
        for name in names:
            table = writer(lake.entry).load_table(("db", name))
            table.delete()
            fill(table, 0, rows=4, size=1_000)
        wait_for(lambda: succeeded(2), "both tables are rewritten in the normal queue", lake, 600.0)
        assert {of_table(client, name)[-1]["lane"]["queue"] for name in names} == {"normal"}
        for name in names:
            check(writer(lake.entry).load_table(("db", name)), range(FILES * 4), 1_000)
        serving = lake.running.pop("serve")
        serving.terminate()
        assert serving.wait(60) == 0
        age(lake.folder / "state" / "icewright.db")
        lake.start("serve")
        client = lake.client()
        less = ("normal", "less-memory", "done")
        wait_for(lambda: less in decided(client) or None, "memory comes back", lake, 300.0)
        assert decided(client).count(less) == decided(client).count(("normal", "more-memory", "done"))
