"""The hash of a DataFrame's rows, taken in Spark's Python workers."""

from __future__ import annotations

import json
import pickle
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import input_file_name

from icewright.model.iceberg.tables import Json
from icewright_spark.parquet.places import Place, places
from icewright_spark.parquet.rows_hash import RowsHash, rows_hash
from icewright_spark.parquet.statistics.check import StatedCheck
from icewright_spark.session.worker import settle_in


class Watch(Protocol):
    """Looks at the rows of a partition as they go by, besides their hash."""

    def add(self, file: str, columns: Any) -> None:
        """A record batch of the columns that are looked at: the next rows of a file."""

    def found(self, file: str) -> Any:
        """What is to be known of a file, as JSON has it; asked behind its last row."""


@dataclass(frozen=True, slots=True)
class HashedRows:
    """What the workers found, for each data file that has rows, by its path; ``watched`` is what a watch did.

    A file that Spark reads in several parts has been watched as often. ``misstated`` says of what a file states of its
    rows what does not hold, where something does not. ``zeros`` are the ids of float columns that have a zero.
    """

    by_file: Mapping[str, RowsHash]
    cpu_ms: int
    peak_memory_bytes: int
    watched: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    misstated: Mapping[str, str] = field(default_factory=dict)
    zeros: frozenset[int] = frozenset()


def hash_rows(
    rows: DataFrame,
    watched: Sequence[Column] = (),
    watch: Callable[[], Watch] | None = None,
    stated: Mapping[str, StatedCheck] = MappingProxyType({}),
    fields: Sequence[Json] = (),
) -> HashedRows:
    """The hashes of all rows, the order of their columns counting, and their names not.

    ``rows`` must be read from files, row by row: Spark's function is asked for the file, since Iceberg's metadata
    column cannot be had beside row lineage. ``watch`` makes what looks at the columns ``watched`` of each partition.
    ``stated`` are checks of files by path, which must be read whole, each by one task, its rows in their order.
    ``fields`` are those of the table's schema, which the rows begin with, where zeros are looked for: not in lists and
    maps, of which Iceberg's readers filter nothing.
    """
    floats = [place for place in places(fields) if place.leaf.type in ("float", "double") and not place.leaf.repeated]
    shown = rows.select("*", *watched, input_file_name())
    # Names are Spark's to resolve, and some have dots or stand twice; numbers cannot be mistaken.
    numbered = shown.toDF(*(f"c{position}" for position in range(len(shown.columns))))
    by_file: dict[str, RowsHash] = {}
    seen: dict[str, list[Any]] = {}
    misstated: dict[str, str] = {}
    zeros: set[int] = set()
    cpu_ms = peak = 0
    checks = {path: pickle.dumps(check) for path, check in stated.items()}
    run = _partition_hash(len(rows.columns), watch, checks, floats)
    for (text,) in numbered.mapInArrow(run, "found string").collect():
        said = json.loads(text)
        for path, (count, first, second) in said["by_file"].items():
            by_file[path] = by_file.get(path, RowsHash()) + RowsHash(count, (first, second))
        for path, found in said["watched"].items():
            seen.setdefault(path, []).append(found)
        misstated |= said["misstated"]
        zeros.update(said["zeros"])
        cpu_ms += said["cpu_ms"]
        peak = max(peak, said["peak_memory_bytes"])
    return HashedRows(by_file, cpu_ms, peak, seen, misstated, frozenset(zeros))


def _partition_hash(
    hashed: int,
    watch: Callable[[], Watch] | None,
    stated: Mapping[str, bytes] = MappingProxyType({}),
    floats: Sequence[Place] = (),
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """For record batches whose first ``hashed`` columns count, whose last one is the file, and the rest watched."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        settle_in()
        started_ns = time.process_time_ns()
        by_file: dict[str, RowsHash] = {}
        watching = None if watch is None else watch()
        checks: dict[str, StatedCheck] = {}
        zeros: set[int] = set()
        for batch in batches:
            for path, part in _by_file(batch):
                rows = part.select(list(range(hashed)))
                by_file[path] = by_file.get(path, RowsHash()) + rows_hash([rows])
                looked_at = [place for place in floats if place.leaf.field_id not in zeros]
                zeros.update(place.leaf.field_id for place in looked_at if _has_zero(place.of(rows)))
                if path in stated and path not in checks:  # each task only needs those of its own files
                    checks[path] = pickle.loads(stated[path])  # noqa: S301 - the driver's own
                if path in checks:
                    checks[path].update(rows)
                if watching is not None:
                    watching.add(path, part.select(list(range(hashed, part.num_columns - 1))))
        said = {
            "by_file": {path: (found.rows, *found.sums) for path, found in by_file.items()},
            "watched": {} if watching is None else {path: watching.found(path) for path in by_file},
            "zeros": sorted(zeros),
            "misstated": {path: text for path, check in checks.items() if (text := check.difference) is not None},
            "cpu_ms": (time.process_time_ns() - started_ns) // 1_000_000,
            "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        yield pa.record_batch({"found": [json.dumps(said)]})

    return run


def _has_zero(array: Any) -> bool:
    return bool(pc.any(pc.equal(array, 0.0)).as_py())


def _by_file(batch: Any) -> Iterator[tuple[str, Any]]:
    """The runs of rows of one file, in the order of the batch."""
    start, runs = 0, pc.run_end_encode(batch.column(batch.num_columns - 1))
    for path, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield path, batch.slice(start, end - start)
        start = end
