"""Real processes over several catalogs at once, and what a stranger would check of a table behind their back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from icewright.api_client.client import Client
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TASK_ID_KEY, Json
from icewright_spark.iceberg.java_api import SparkTable
from tests.e2e.processes import Processes, free_port, wait_for
from tests.servers.java import jars_for_spark
from tests.spark.tables import reachable_paths

WAIT_S = 600.0
ENDED = frozenset({"succeeded", "failed", "cancelled", "superseded"})
_LINEAGE = ("_row_id", "_last_updated_sequence_number")


@dataclass
class House(Processes):
    """Processes over some catalogs at once, in mode ``auto``. What may be a secret is in their environment alone."""

    others: Sequence[CatalogEntry] = ()
    store_url: str = ""
    store_password: str = ""

    def __post_init__(self) -> None:
        lines = ["[server]", _toml("state_dir", str(self.folder / "state")), f"port = {free_port()}", "lease_ms = 4000"]
        if self.store_url:
            lines += [_toml("store_url", self.store_url), self._secret("store_password", self.store_password)]
        lines += ["[optimizer]", _toml("master", "local[2]"), "poll_interval_ms = 200"]
        lines += [f"jars = {json.dumps(jars_for_spark())}"]
        for entry in (self.entry, *self.others):
            lines += ["[[catalogs]]", _toml("name", entry.name), _toml("type", entry.kind.value)]
            lines += [self._secret("uri", entry.uri), _toml("mode", "auto")]
            lines += [_toml("warehouse", entry.warehouse)] if entry.warehouse else []
            lines += ["[catalogs.properties]", *(self._secret(key, text) for key, text in entry.properties.items())]
        self.configuration.write_text("\n".join(lines))

    def logs(self) -> str:
        """The ends of the logs."""
        return "\n".join(f"--- {name}\n{self.log(name)[-6000:]}" for name in self.running)

    def _secret(self, key: str, text: str) -> str:
        """A setting whose value the processes find in their environment."""
        name = f"HOUSE_{len(self.environ)}"
        self.environ[name] = text
        return _toml(key, f"env:{name}")


@contextmanager
def house(folder: Path, entries: Sequence[CatalogEntry], **options: Any) -> Iterator[House]:
    """A house whose processes have ended when the block is left."""
    found = House(folder, entries[0], others=entries[1:], **options)
    try:
        yield found
    finally:
        found.end()


def settled(house: House, client: Client, names: Sequence[TableName]) -> dict[str, list[Json]]:
    """Wait until every table has been worked on and nothing is left to do; all tasks, by table name."""
    wanted = {str(name) for name in names}

    def look() -> dict[str, list[Json]] | None:
        tasks: dict[str, list[Json]] = {}
        for task in client.tasks(limit=1000).items:
            tasks.setdefault(task["table"], []).append(task)
        if wanted - tasks.keys() or any(task["state"] not in ENDED for each in tasks.values() for task in each):
            return None
        return tasks

    try:
        return wait_for(look, f"work on {len(wanted)} tables ends", house, WAIT_S)
    except AssertionError as error:
        for table in client.tables().items:
            plan = table["plan"]
            error.add_note(f"{table['name']}: {None if plan is None else plan['reason']['text']}")
        raise


def executors_of(client: Client, task: Json) -> set[str]:
    """What carried the groups of a task out, as told by how each was proved."""
    last = client.task(task["task_id"])["attempts"][-1]
    report = client.attempt(task["task_id"], last["attempt"])["report"]
    methods = [receipt["method"] for receipt in (report or {"receipts": []})["receipts"]]
    said = {"row groups copied": "stitch", "shuffled by Spark": "shuffle", "written by Spark": "staged"}
    return {next((name for words, name in said.items() if words in method), "merge") for method in methods}


@dataclass(frozen=True)
class Contents:
    """``rows`` are sorted; ``files`` is how many data files they are in."""

    rows: list[str]
    files: int


def rows_of(spark: SparkSession, table: str, *, lineage: bool) -> Contents:
    """Every row, read from its bytes by Spark; with the row's id and last update where it has them."""
    columns = ["*", *_LINEAGE] if lineage else ["*"]
    found = spark.table(table).select(*columns, "_file").collect()
    return Contents(sorted(str(row[:-1]) for row in found), len({row[-1] for row in found}))


def rows_by_pyiceberg(entry: CatalogEntry, name: TableName) -> list[str]:
    """Every row as PyIceberg reads it, sorted."""
    table = load_catalog(entry.name, **entry.pyiceberg_properties()).load_table(name.path)
    return sorted(str(row) for row in table.scan().to_arrow().to_pylist())


def live_files(spark: SparkSession, table: str) -> list[Any]:
    """The data files of the current snapshot."""
    return spark.sql(f"SELECT file_path, file_format, record_count FROM {table}.data_files").collect()  # noqa: S608 - a name of the tests


def missing_paths(spark: SparkSession, name: TableName) -> list[str]:
    """Paths that some snapshot of the table reaches and that are not there."""
    io = SparkTable(spark, name).java.io()
    return [path for path in reachable_paths(spark, name) if not io.newInputFile(path).exists()]


def tasks_in_table(spark: SparkSession, name: TableName) -> list[str]:
    """The tasks that made snapshots of the table."""
    snapshots = SparkTable(spark, name).java.snapshots()
    return [str(one.summary()[TASK_ID_KEY]) for one in snapshots if one.operation() == "replace"]


def _toml(key: str, value: str) -> str:
    return f"{json.dumps(key)} = {json.dumps(value)}"
