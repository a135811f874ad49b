"""What a person asks for by command, and an optimizer does: plan, look, apply; the plan of that id and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table import Table
from pyspark.sql import SparkSession

from icewright.model.actions.expire_data import tag_of
from icewright.model.iceberg.tables import TASK_ID_KEY, Json
from icewright.model.work.tasks import TERMINAL_STATES, TaskState
from tests.builders.command_line import icewright
from tests.e2e.processes import Processes, wait_for
from tests.lakes.sqlite import writer
from tests.readers.duck import duckdb_with_iceberg

OLD, NEW, DELETED = range(4), range(100, 200), range(100, 103)
"""Ids of rows of 2020, of rows of today, and of those of today that were deleted."""
_PROPERTIES = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "icewright.mode": "approve",
    "icewright.ignore-other-optimizers": "true",
    "icewright.expire-data.field": "at",
    "icewright.expire-data.older-than": "P30D",
}


@dataclass(frozen=True)
class Aged:
    """A table with rows of 2020, and a delete file that dangles since Iceberg's own rewrite folded it in."""

    processes: Processes
    name: str

    def table(self) -> Table:
        """As it is now."""
        return writer(self.processes.entry).load_table(self.name)

    def rows(self) -> list[int]:
        """Read from the bytes, by two readers that are not ours."""
        table = self.table()
        found = sorted(table.scan().to_arrow()["id"].to_pylist())
        by_duck = duckdb_with_iceberg().execute("SELECT id FROM iceberg_scan(?) ORDER BY id", [table.metadata_location])
        assert [row[0] for row in by_duck.fetchall()] == found
        return found

    def deletes(self) -> int:
        """Delete files of the current snapshot."""
        return int(self.table().inspect.delete_files().num_rows)


def make_aged(processes: Processes, spark: SparkSession) -> Aged:
    """By Spark's SQL, as users do."""
    entry = processes.entry
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    table = f"{entry.name}.db.aged"
    said = ", ".join(f"'{key}' = '{value}'" for key, value in _PROPERTIES.items())
    old = ", ".join(f"({number}, TIMESTAMP '2020-02-0{1 + number % 2} 12:00:00')" for number in OLD)
    rewrite = "table => 'db.aged', where => 'id >= 100', options => map('rewrite-all', 'true')"
    for statement in (
        f"CREATE NAMESPACE IF NOT EXISTS {entry.name}.db",
        f"CREATE TABLE {table} (id BIGINT, at TIMESTAMP) PARTITIONED BY (days(at)) TBLPROPERTIES ({said})",
        f"INSERT INTO {table} VALUES {old}",  # noqa: S608 - a test
        f"INSERT INTO {table} SELECT id, current_timestamp() FROM range(100, 200)",  # noqa: S608 - the same
        f"DELETE FROM {table} WHERE id < 103 AND id >= 100",  # noqa: S608 - the same
        f"CALL {entry.name}.system.rewrite_data_files({rewrite})",
    ):
        spark.sql(statement)
    return Aged(processes, "db.aged")


def applied(aged: Aged, action: str) -> Json:
    """Have an action planned and applied by command; its task, once that has ended."""
    processes = aged.processes
    command = ("--config", str(processes.configuration))
    planned = icewright(*command, "plan", f"{processes.entry.name}.{aged.name}", "--action", action, "--json")
    assert planned.status == 1, planned
    plan_id = planned.json["plan"]["plan_id"]
    queued = icewright(*command, "apply", plan_id, "--json")
    assert queued.status == 0, queued

    def ended() -> Json | None:
        with processes.client() as client:
            task = client.task(queued.json["task_id"])["task"]
        return task if TaskState(task["state"]) in TERMINAL_STATES else None

    task = wait_for(ended, f"{action} ends", processes)
    assert (task["state"], task["plan_id"]) == (TaskState.SUCCEEDED, plan_id), task
    return task


def check_asked(aged: Aged) -> None:
    """Statistics, dangling deletes, data that expires: each is done once, and changes nothing but what it says."""
    rows = sorted({*OLD, *NEW} - {*DELETED})
    assert (aged.rows(), aged.deletes()) == (rows, 1)

    applied(aged, "compute-statistics")
    after = aged.table()
    assert [one.snapshot_id for one in after.metadata.statistics] == [after.metadata.current_snapshot_id]
    assert (aged.rows(), aged.deletes()) == (rows, 1)

    dangling = applied(aged, "remove-dangling-deletes")
    assert (aged.rows(), aged.deletes()) == (rows, 0)

    expired = applied(aged, "expire-data")
    assert aged.rows() == sorted({*NEW} - {*DELETED})
    after = aged.table()
    tagged = after.metadata.refs[tag_of(expired["task_id"])].snapshot_id
    assert sorted(after.scan(snapshot_id=tagged).to_arrow()["id"].to_pylist()) == rows
    signed = [
        str(one.summary[TASK_ID_KEY]) for one in after.metadata.snapshots if one.summary and one.summary[TASK_ID_KEY]
    ]
    assert signed == [dangling["task_id"], expired["task_id"]]
