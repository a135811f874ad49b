"""An event log that Spark writes is read while the session runs: rolled and compressed, as Spark does by default."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icewright.core.errors import InvalidMessage
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import Filter, Literal, LiteralKind, LiteralPolicy, Operator
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.spark_events import read_event_log

pytestmark = pytest.mark.spark


@pytest.fixture
def event_log(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The folder of the log of this session, from now on."""
    context: Any = spark.sparkContext._jsc.sc()
    jvm: Any = spark._jvm
    conf = context.getConf().set("spark.eventLog.compress", "true").set("spark.eventLog.rolling.enabled", "true")
    uri = jvm.java.net.URI.create(tmp_path.as_uri())
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "app", jvm.scala.Option.empty(), uri, conf, context.hadoopConfiguration()
    )
    listener.start()
    context.addSparkListener(listener)
    yield tmp_path / "eventlog_v2_app"
    context.removeSparkListener(listener)
    listener.stop()


def test_a_query_is_read_from_the_log_of_a_session(spark: SparkSession, lake: CatalogEntry, event_log: Path) -> None:
    table = f"{lake.name}.db.cities"
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {lake.name}.db")
    spark.sql(f"CREATE TABLE {table} (id BIGINT, city STRING) USING iceberg")
    for rows in ("(1, 'Bonn'), (2, 'Jena')", "(11, 'Kiel'), (12, 'Ulm')"):
        spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")  # noqa: S608 - the same
    query = f"SELECT city FROM {table} WHERE id > 10 AND city IN ('Kiel', 'Bonn')"  # noqa: S608 - names of this test
    assert [row["city"] for row in spark.sql(query).collect()] == ["Kiel"]
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    refused: list[InvalidMessage] = []
    (record,) = read_event_log(event_log, LiteralRules(LiteralPolicy.KEEP), refused.append)
    (read,) = record.tables
    assert refused == []
    assert read.table == TableName(lake.name, ("db",), "cities")
    assert {*read.filters} == {
        Filter("id", Operator.GT, (Literal(LiteralKind.NUMBER, "10"),)),
        Filter("city", Operator.IN, tuple(Literal(LiteralKind.STRING, city) for city in ("Kiel", "Bonn"))),
    }
    assert (read.files_read, read.files_skipped, read.rows_read, read.rows_after) == (1, 1, 2, 1)
    assert (record.succeeded, record.engine) == (True, f"spark {spark.version}")
