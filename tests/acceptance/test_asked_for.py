"""What owners ask for and apply: each trigger with the rule that fired, and files moved to the current partition spec.

The tables are in mode ``approve``: a person plans, reads the plan, and applies it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icewright.api_client.client import Client
from icewright.core.errors import NotFound
from icewright.model.actions.rewrite_data_files import RewriteDataFilesRequest
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Json
from icewright.model.plans.plans import Migration
from tests.acceptance.house import House, house, live_files, missing_paths, rows_by_pyiceberg, settled
from tests.e2e.processes import wait_for
from tests.lakes.sqlite import append, make_lake, make_table

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(600)]

RULES = {"levels": "small-files", "mse": "size-error", "tiered": "minor", "cost-benefit": "worth-it"}
"""The trigger, and the rule of it that fires for many tiny files."""
MOVED = TableName("asked", ("db",), "moved")
COMMITS = 14


def test_plans_are_made_by_the_trigger_that_is_asked_for_and_carried_out_as_applied(
    spark: SparkSession, tmp_path: Path
) -> None:
    entry = make_lake(tmp_path, "asked")
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    by_trigger = {trigger: TableName("asked", ("db",), trigger.replace("-", "_")) for trigger in RULES}
    for trigger, name in by_trigger.items():
        fill(entry, name, **{"icewright.trigger": trigger})
    fill(entry, MOVED)
    spark.sql(f"ALTER TABLE {MOVED} ADD PARTITION FIELD bucket(2, id)")
    names = [*by_trigger.values(), MOVED]
    before = {name: rows_by_pyiceberg(entry, name) for name in names}

    with house(tmp_path, [entry]) as processes:
        processes.start("serve")
        processes.start("optimizer")
        with processes.client() as client:
            for trigger, name in by_trigger.items():
                plan = planned(processes, client, name)
                assert [one["reason"]["code"] for one in plan["verdicts"]] == [RULES[trigger]], plan
                client.apply(plan["plan_id"])
            client.apply(planned(processes, client, MOVED, migrate=Migration.SPEC)["plan_id"])
            tasks = settled(processes, client, names)
        logs = processes.logs()

    for name in names:
        assert [task["state"] for task in tasks[str(name)]] == ["succeeded"], f"{tasks[str(name)]}\n{logs}"
        assert rows_by_pyiceberg(entry, name) == before[name]
        assert missing_paths(spark, name) == []
    assert [len(live_files(spark, str(name))) for name in by_trigger.values()] == [1] * len(RULES)
    specs = spark.sql(f"SELECT DISTINCT spec_id, partition.id_bucket_2 FROM {MOVED}.data_files").collect()  # noqa: S608 - a name of the tests
    assert sorted(tuple(row) for row in specs) == [(1, 0), (1, 1)]


def fill(entry: CatalogEntry, name: TableName, **properties: str) -> None:
    table = make_table(entry, name.path, properties={"icewright.mode": "approve", **properties})
    for number in range(COMMITS):
        append(table, range(number * 10, number * 10 + 10))


def planned(processes: House, client: Client, name: TableName, migrate: Migration | None = None) -> Json:
    """The plan of a table, as soon as the server knows that."""

    def look() -> Json | None:
        try:
            return client.table(name)
        except NotFound:
            return None

    table = wait_for(look, f"{name} is known", processes, 60)
    of = table["uuid"], table["catalog"]
    if migrate is not None:
        return client.plan_asked(*of, RewriteDataFilesRequest(migrate))
    plan: Json = client.look_at_table(*of)["plan"]
    return plan
