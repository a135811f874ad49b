"""The hash of a DataFrame's rows, taken in Spark's Python workers."""

from __future__ import annotations

import json
import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import input_file_name

from icewright_spark.staged.rows_hash import RowsHash, rows_hash


@dataclass(frozen=True, slots=True)
class HashedRows:
    """What the workers found. ``by_file`` counts the rows of each data file that has any, where they were asked to."""

    rows: RowsHash
    by_file: Mapping[str, int]
    cpu_ms: int
    peak_memory_bytes: int


def hash_rows(rows: DataFrame) -> HashedRows:
    """The hash of all rows, the order of the columns counting, and their names not."""
    return _hash(rows, _hash_partition)


def hash_rows_by_file(rows: DataFrame) -> HashedRows:
    """As :func:`hash_rows`, and the rows of each file besides. ``rows`` must be read from files, row by row.

    Spark's function is asked for the file, since Iceberg's metadata column cannot be had beside row lineage.
    """
    return _hash(rows.select("*", input_file_name()), _hash_partition_by_file)


def _hash(rows: DataFrame, partition: Any) -> HashedRows:
    # Names are Spark's to resolve, and some have dots or stand twice; numbers cannot be mistaken.
    numbered = rows.toDF(*(f"c{position}" for position in range(len(rows.columns))))
    total, by_file, cpu_ms, peak = RowsHash(), Counter[str](), 0, 0
    for (text,) in numbered.mapInArrow(partition, "found string").collect():
        found = json.loads(text)
        first, second = found["sums"]
        total += RowsHash(found["rows"], (first, second))
        by_file.update(found["by_file"])
        cpu_ms += found["cpu_ms"]
        peak = max(peak, found["peak_memory_bytes"])
    return HashedRows(total, dict(by_file), cpu_ms, peak)


def _hash_partition(batches: Iterable[Any]) -> Iterator[Any]:
    yield _found(batches, Counter())


def _hash_partition_by_file(batches: Iterable[Any]) -> Iterator[Any]:
    by_file: Counter[str] = Counter()

    def without_file() -> Iterator[Any]:
        for batch in batches:
            last = batch.num_columns - 1
            counts = batch.column(last).value_counts()
            by_file.update(dict(zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True)))
            yield batch.select(list(range(last)))

    yield _found(without_file(), by_file)


def _found(batches: Iterable[Any], by_file: Counter[str]) -> Any:
    started_ns = time.process_time_ns()
    found = rows_hash(batches)
    said = {
        "rows": found.rows,
        "sums": found.sums,
        "by_file": by_file,
        "cpu_ms": (time.process_time_ns() - started_ns) // 1_000_000,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    return pa.record_batch({"found": [json.dumps(said)]})
