"""Time series as Netflix's Atlas leaves them: many partitions of many files, in each of which all metrics are.

The case that Iceberg was made for, as its makers told it: a month of metrics, 2.7 million files in 2,688 partitions,
and a query for the tags of one metric over six days. A month of 28 days has 96 partitions a day then; here these are
the hours, with four batches in each. Files have the rows of all metrics as they came, by time.

Files are written by pyarrow in processes of their own and appended day by day by PyIceberg, which costs neither
contestant anything.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, DoubleType, IntegerType, MapType, NestedField, StringType, TimestamptzType

from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName

FIRST_DAY: Final = date(2018, 2, 1)
BATCHES: Final = 4
"""Partitions of an hour."""
METRICS: Final = 2_400
ASKED_DAYS: Final = 6

SCHEMA: Final = Schema(
    NestedField(1, "name", StringType(), required=False),
    NestedField(2, "tags", MapType(8, StringType(), 9, StringType(), value_required=False), required=False),
    NestedField(3, "at", TimestamptzType(), required=False),
    NestedField(4, "value", DoubleType(), required=False),
    NestedField(5, "date", DateType(), required=False),
    NestedField(6, "hour", IntegerType(), required=False),
    NestedField(7, "batch", IntegerType(), required=False),
)
SPEC: Final = PartitionSpec(
    *(PartitionField(n, 995 + n, IdentityTransform(), SCHEMA.find_field(n).name) for n in (5, 6, 7))
)

_ARROW: Final = schema_to_pyarrow(SCHEMA)
_TAGS: Final = ("type", "app", "cluster", "zone", "node")
_TYPES: Final = ("counter", "gauge", "timer", "distribution", "monotonic")
_TYPES_OF_A_METRIC: Final = 3
_APPS, _CLUSTERS, _ZONES, _NODES = 200, 3, 9, 5_000
_SKEW: Final = 40
"""The metric of rank r is as frequent as 1 / (r + this)."""
_BATCH_US: Final = 900_000_000
_AREAS: Final = (
    *("aws", "cass", "chunk", "dns", "ec2", "evcache", "gc", "hystrix", "http", "ipc"),
    *("jvm", "kafka", "log", "mem", "net", "os", "play", "ribbon", "sys", "zuul"),
)
_THINGS: Final = (
    *("bytes", "calls", "conns", "errors", "fetch", "hits", "io", "latency"),
    *("lookups", "pool", "queue", "reads", "retries", "size", "writes"),
)
_KINDS: Final = ("active", "avg", "count", "dropped", "max", "open", "p50", "p99")


@dataclass(frozen=True, slots=True)
class Shape:
    """How many files there are, and of how many rows. ``files`` are dealt out to the partitions evenly."""

    days: int
    hours: int
    files: int
    rows_per_file: int

    @property
    def partitions(self) -> int:
        """All of them."""
        return self.days * self.hours * BATCHES

    @property
    def asked_days(self) -> tuple[date, date]:
        """The day before the first that is asked for, and the last one: the last six days."""
        last = FIRST_DAY + timedelta(self.days - 1)
        return last - timedelta(ASKED_DAYS), last

    def files_of(self, partition: int) -> int:
        """How many files a partition has."""
        return (partition + 1) * self.files // self.partitions - partition * self.files // self.partitions

    def partitions_of(self, day: int) -> range:
        """The numbers of the partitions of a day, counted from 0."""
        a_day = self.hours * BATCHES
        return range(day * a_day, (day + 1) * a_day)

    def key(self, partition: int) -> tuple[date, int, int]:
        """Day, hour and batch of a partition."""
        in_day, batch = divmod(partition, BATCHES)
        day, hour = divmod(in_day, self.hours)
        return FIRST_DAY + timedelta(day), hour, batch


@cache
def metrics() -> Any:
    """The names of all metrics, by rank: the frequent ones first, as by chance in the alphabet."""
    names = [f"{area}.{thing}.{kind}" for area in _AREAS for thing in _THINGS for kind in _KINDS]
    return pa.array(names).take(pa.array(np.random.default_rng(METRICS).permutation(len(names))))


def metric_of_rank(rank: int) -> str:
    """A metric's name."""
    return str(metrics()[rank])


def rows_of(shape: Shape, partition: int, file: int, seed: int) -> Any:
    """The rows of one file as an Arrow table: the same for the same arguments, unlike any other file's."""
    rng, rows = np.random.default_rng([seed, partition, file]), shape.rows_per_file
    day, hour, batch = shape.key(partition)
    ranks = np.searchsorted(_shares(), rng.random(rows), side="right")
    begins = datetime(day.year, day.month, day.day, hour, tzinfo=UTC) + timedelta(minutes=15 * batch)
    at = int(begins.timestamp()) * 1_000_000 + np.sort(rng.integers(0, _BATCH_US, rows))
    columns = [
        metrics().take(pa.array(ranks)),
        _tags(rng, ranks),
        pa.array(at).view(pa.timestamp("us", tz="UTC")),
        pa.array(rng.lognormal(3, 2, rows).round(3)),
        pa.repeat(pa.scalar(day), rows),
        pa.repeat(pa.scalar(hour, pa.int32()), rows),
        pa.repeat(pa.scalar(batch, pa.int32()), rows),
    ]
    arrays = [column.cast(field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_ARROW)


@cache
def _shares() -> npt.NDArray[np.float64]:
    """Of each rank the share of rows of that or a lower one, the last one's left out: it has the rest."""
    weights = 1 / (np.arange(METRICS) + _SKEW)
    return np.cumsum(weights / weights.sum())[:-1]


@cache
def _texts() -> Any:
    apps = [f"app{number:03}" for number in range(_APPS)]
    clusters = [f"{app}-{stack}" for app in apps for stack in ("main", "test", "canary")]
    zones = [f"{region}{zone}" for region in ("us-east-1", "us-west-2", "eu-west-1") for zone in "abc"]
    nodes = [f"i-{number * 2_654_435_761 % (1 << 32):08x}" for number in range(_NODES)]
    return pa.array([*_TYPES, *apps, *clusters, *zones, *nodes])


def _tags(rng: Any, ranks: npt.NDArray[np.int64]) -> Any:
    """A map of five tags for each row. A metric is of a few types; an instance is of one cluster and one zone."""
    rows = len(ranks)
    nodes = rng.integers(0, _NODES, rows)
    clusters = nodes % (_APPS * _CLUSTERS)
    texts = np.stack([(ranks + rng.integers(0, _TYPES_OF_A_METRIC, rows)) % len(_TYPES), *np.zeros((4, rows), int)], 1)
    first = len(_TYPES)
    for place, (numbers, size) in enumerate(
        ((clusters // _CLUSTERS, _APPS), (clusters, _APPS * _CLUSTERS), (nodes % _ZONES, _ZONES), (nodes, _NODES)), 1
    ):
        texts[:, place] = first + numbers
        first += size
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * len(_TAGS))
    keys = pa.array(_TAGS).take(pa.array(np.tile(np.arange(len(_TAGS)), rows)))
    return pa.MapArray.from_arrays(offsets, keys, _texts().take(pa.array(texts.ravel())))


@dataclass(frozen=True, slots=True)
class _Written:
    """A file as its writer describes it."""

    path: str
    partition: int
    size_bytes: int
    statistics: dict[str, Any]


def write_table(entry: CatalogEntry, name: TableName, shape: Shape, seed: int, processes: int) -> None:
    """Write all files of a table that is there, empty and partitioned by ``date, hour, batch``; a commit a day."""
    catalog = SqlCatalog(entry.name, **entry.pyiceberg_properties())
    table = catalog.load_table(name.path)
    folder = f"{urlsplit(table.location()).path}/data"
    for written in _days(folder, shape, seed, processes):
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            for file in written:
                append.append_data_file(_data_file(shape, file))
    catalog.close()


def _days(folder: str, shape: Shape, seed: int, processes: int) -> Iterator[Sequence[_Written]]:
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(write_day, folder, shape, day, seed) for day in range(shape.days)]
        for one in waiting:
            yield one.result()


def write_day(folder: str, shape: Shape, day: int, seed: int) -> list[_Written]:
    """Write the files of one day under ``folder``, and describe them."""
    plan, ids = compute_statistics_plan(SCHEMA, {}), parquet_path_to_id_mapping(SCHEMA)
    written = []
    for partition in shape.partitions_of(day):
        its_day, hour, batch = shape.key(partition)
        where = Path(folder) / f"date={its_day.isoformat()}" / f"hour={hour}" / f"batch={batch}"
        where.mkdir(parents=True)
        for file in range(shape.files_of(partition)):
            path, collected = where / f"{file:05}-{seed}.parquet", list[Any]()
            pq.write_table(
                rows_of(shape, partition, file, seed),
                path,
                compression="zstd",
                compression_level=3,
                store_schema=False,
                metadata_collector=collected,
            )
            found = data_file_statistics_from_parquet_metadata(collected[0], plan, ids)
            written.append(_Written(str(path), partition, path.stat().st_size, found.to_serialized_dict()))
    return written


def _data_file(shape: Shape, file: _Written) -> DataFile:
    day, hour, batch = shape.key(file.partition)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.path,
        file_format=FileFormat.PARQUET,
        partition=Record((day - date(1970, 1, 1)).days, hour, batch),
        file_size_in_bytes=file.size_bytes,
        sort_order_id=None,
        spec_id=0,
        equality_ids=None,
        key_metadata=None,
        **file.statistics,
    )
