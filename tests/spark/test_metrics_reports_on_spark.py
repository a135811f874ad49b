"""A commit of Spark's is reported by Iceberg's own client, through a proxy that mirrors that route."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from examples.mirror_metrics import Mirror
from icewright.model.events.events import Channel
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Operation
from tests.builders.served import TOKEN, Served, at_a_port
from tests.lakes.sqlite import make_table
from tests.servers.rest import RestCatalogServer
from tests.waiting import until

pytestmark = pytest.mark.spark


@pytest.fixture
def served() -> Served:
    served = Served()
    served.control.intake._prefixes = {"": "lake"}
    return served


@pytest.fixture
def mirror(served: Served, rest_catalog: RestCatalogServer) -> Iterator[Mirror]:
    rest_catalog.forget()
    with at_a_port(served.control) as url, Mirror(0, rest_catalog.uri, url, TOKEN) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield proxy
        proxy.shutdown()


def test_sparks_own_client_reports_commits_and_scans(spark: SparkSession, served: Served, mirror: Mirror) -> None:
    entry = CatalogEntry("mirrored", CatalogKind.REST, f"http://127.0.0.1:{mirror.server_port}", "")
    table = make_table(entry, ("db", "events"))
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    spark.sql("INSERT INTO mirrored.db.events VALUES (1, 'Bonn'), (2, 'Jena')")
    assert spark.sql("SELECT city FROM mirrored.db.events WHERE id = 2").collect()[0]["city"] == "Jena"
    # The client sends behind its user's back, and so does the mirror.
    until(lambda: served.control.tables.inbox(9) and served.control.intake.passed_over)
    (stored,) = served.control.tables.inbox(9)
    assert stored.channel is Channel.METRICS_REPORT
    event, snapshot = stored.event, table.refresh().current_snapshot()
    assert snapshot is not None
    assert (event.table_name, event.snapshot_id) == (TableName("lake", ("db",), "events"), snapshot.snapshot_id)
    assert (event.operation, event.added_records) == (Operation.APPEND, 2)
    assert set(served.control.intake.passed_over) == {"scan-report"}
