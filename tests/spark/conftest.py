"""What the shared Spark session is built with, and lakes that it can reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icewright.core.fault_points import Fault, arm
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.work.optimizers import OptimizerSettings
from icewright.queries.spool import QuerySpool
from icewright_spark.session.session import java_gateway
from tests.builders.deletions import Died
from tests.doubles.clock import ManualClock
from tests.lakes.sqlite import make_lake
from tests.servers.java import jars_for_spark
from tests.spark.beginnings import Beginnings
from tests.spark.loop import SparkLoop

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""To compile each query takes more CPU than its few rows do. The optimizers that tests start compile, as users' do."""


def settings(catalogs: tuple[CatalogEntry, ...] = (), **changes: Any) -> OptimizerSettings:
    settings = OptimizerSettings(
        server_url="http://127.0.0.1:1",
        token="none",  # noqa: S106 - nobody is asked
        optimizer_id="optimizer-test",
        resource_group="default",
        slots=2,
        batch_tasks=1,
        batch_bytes=1 << 20,
        master="local[2]",
        driver_memory="2g",
        packages=(),
        jars=jars_for_spark(),
        spark_conf={"spark.sql.shuffle.partitions": "2", **INTERPRETED},
        spark_conf_keys=(*INTERPRETED,),
        catalogs=catalogs,
        poll_interval_ms=100,
        recycle_after_tasks=1000,
        recycle_memory_bytes=8 * 1024**3,
    )
    return replace(settings, **changes)


def keep_checksums(spark: SparkSession, *, wanted: bool) -> None:
    """Whether Hadoop keeps a file of checksums beside each file on a local disk, and reads by it, as it does by itself.

    The processes that tests start do; in the shared session it takes CPU, and a process to set the mode of each.
    """
    hadoop = java_gateway(spark).org.apache.hadoop.fs
    local = hadoop.FileSystem.getLocal(spark.sparkContext._jsc.hadoopConfiguration())
    local.setWriteChecksum(wanted)
    local.setVerifyChecksum(wanted)


def make_reached_lake(spark: SparkSession, folder: Path, node: pytest.Item | pytest.Collector) -> CatalogEntry:
    """A fresh lake, reachable from the session under a name that no other test or module uses."""
    entry = make_lake(folder, f"lake{abs(hash(node.nodeid))}")
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    return entry


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> CatalogEntry:
    """A lake of the test's own."""
    return make_reached_lake(spark, tmp_path, request.node)


@pytest.fixture
def loop(spark: SparkSession, lake: CatalogEntry, tmp_path: Path) -> Iterator[SparkLoop]:
    """That lake under icewright's care, with a log of queries; modules that need none have a loop of their own."""
    with closing(QuerySpool(tmp_path / "queries.db", 1 << 26, ManualClock())) as spool:
        yield SparkLoop(spark, lake, spool=spool)


@pytest.fixture(scope="module")
def beginnings(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Beginnings]:
    """Tables that tests of the module begin with."""
    found = Beginnings(spark, make_reached_lake(spark, tmp_path_factory.mktemp("beginnings"), request.node))
    yield found
    found.check()


@pytest.fixture
def rows(spark: SparkSession) -> Callable[[str], list[str]]:
    """All rows of a table as Spark reads their bytes, sorted; ``count(*)`` would be answered from metadata."""

    def read(name: str) -> list[str]:
        return sorted(str(row) for row in spark.table(name).collect())

    return read


@pytest.fixture
def dying_at() -> Iterator[Callable[[Fault], None]]:
    """Has the job die whenever it comes by a place."""

    def at(point: Fault) -> None:
        def hook(found: Fault) -> None:
            if found is point:
                raise Died

        arm(hook)

    yield at
    arm(None)
