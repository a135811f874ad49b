"""The whole loop on HDFS: a real name node and data node, the server without Hadoop, Spark with its own."""

from __future__ import annotations

import socket
from collections import Counter
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyarrow.fs import FileType
from pyiceberg.catalog import load_catalog
from pyiceberg.io import PY_IO_IMPL
from pyspark.sql import SparkSession

from icewright.catalogs.pointers.file_io import PatientFiles
from icewright.catalogs.storage.hdfs_files import open_hdfs
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.plans.observation import WorkerAccess
from icewright.model.work.tasks import TaskState
from tests.lakes.sqlite import with_tables
from tests.servers.hdfs import Hdfs
from tests.spark.loop import SparkLoop
from tests.spark.tables import reachable_paths

pytestmark = pytest.mark.spark

ASKED_AGAIN = "dfs.client.block.write.locateFollowingBlock.initial.delay.ms"


@pytest.fixture(scope="module")
def cluster(hdfs_cluster: Hdfs) -> Hdfs:
    return hdfs_cluster


@pytest.fixture
def loop(cluster: Hdfs, spark: SparkSession, tmp_path: Path) -> SparkLoop:
    entry = with_tables(CatalogEntry("onhdfs", CatalogKind.SQL, f"sqlite:///{tmp_path}/c.db", f"{cluster.uri}/wh"))
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    # A file is closed once its data node has told of it, a moment later; else Hadoop asks again after 0.4 s.
    spark.conf.set(f"spark.sql.catalog.onhdfs.hadoop.{ASKED_AGAIN}", "10")
    return SparkLoop(spark, entry)


def fill(spark: SparkSession) -> None:
    """A merge-on-read table with eight small files, whose partition is nothing that a path could hold, and deletes."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS onhdfs.db")
    spark.sql(
        "CREATE TABLE onhdfs.db.events (id BIGINT, city STRING) USING iceberg PARTITIONED BY (city) "
        "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    for number in range(8):
        spark.sql(
            f"INSERT INTO onhdfs.db.events SELECT id, 'a b/c;d?e#f%' FROM range({number * 10}, {number * 10 + 6}, 1, 1)"  # noqa: S608 - numbers
        )
    spark.sql("DELETE FROM onhdfs.db.events WHERE id % 10 = 3")


def rows_by_spark(spark: SparkSession) -> Counter[int]:
    return Counter(row["id"] for row in spark.table("onhdfs.db.events").collect())


def rows_by_pyiceberg(entry: CatalogEntry) -> Counter[int]:
    files = f"{PatientFiles.__module__}.{PatientFiles.__qualname__}"
    catalog = load_catalog(entry.name, **entry.pyiceberg_properties(), **{PY_IO_IMPL: files})
    return Counter(catalog.load_table("db.events").scan().to_arrow()["id"].to_pylist())


def missing_paths(spark: SparkSession, name: TableName, cluster: Hdfs) -> list[str]:
    system = open_hdfs("hdfs", urlsplit(cluster.uri).netloc)
    plain = [path.removeprefix(cluster.uri) for path in reachable_paths(spark, name)]
    return [info.path for info in system.get_file_info(plain) if info.type is not FileType.File]


def test_from_commit_to_verified(loop: SparkLoop, spark: SparkSession, cluster: Hdfs) -> None:
    fill(spark)
    name = TableName("onhdfs", ("db",), "events")
    before = rows_by_spark(spark)
    assert sum(before.values()) == 8 * 5

    loop.control.maintainer.look(name)
    (report,) = loop.probe()
    assert report.access is WorkerAccess.REFUSED, "Arrow needs Hadoop's own library for HDFS, which is not here"
    spec = loop.claim(name)
    assert {group.executor for group in spec.rewrite.groups} == {Executor.STAGED}
    task = loop.verified(loop.attempt(spec))
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert rows_by_spark(spark) == before
    assert rows_by_pyiceberg(loop.entry) == before
    assert len(spark.table("onhdfs.db.events.data_files").collect()) == 1
    assert missing_paths(spark, name, cluster) == []


def test_a_name_node_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icewright.catalogs.storage.hdfs_files.ANSWER_TIMEOUT_MS", 500)
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        system = open_hdfs("hdfs", f"127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(TimeoutError, match="HDFS said nothing"):
            system.get_file_info("/a")
        with pytest.raises(TimeoutError):
            system.open_input_file("/a")
