"""Queries that ran, planned by the bounds of the files of two snapshots: what an accepted layout has brought.

Pure, as :mod:`icewright_spark.trials.recommend`, and by the same code: a file is opened unless its bounds exclude it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from icewright.model.actions.analyze_queries import Measure
from icewright.model.iceberg.names import TableName
from icewright.model.queries.measurements import MEASURED_QUERIES_MAX, FileSums, Measured, MeasuredQuery
from icewright.model.queries.queries import QueryRecord
from icewright_spark.trials.predicates import Columns, Path, flat_columns
from icewright_spark.trials.simulation import Files, scanned
from icewright_spark.trials.table_sample import FILE, table_sample
from icewright_spark.trials.workload import Read, Unit, reads_of, workload_of


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The files of the table now and before, as rows of its metadata table ``files``; before is None where it expired.

    ``schema`` is an Arrow table with the table's columns and ``_file``; it needs no rows.
    """

    snapshot_id: int
    schema: Any
    files: Any
    files_before: Any | None


def measure(
    table: TableName, found: Snapshots, queries: Sequence[QueryRecord], asked: Measure, unreadable: int = 0
) -> Measured:
    """What queries open before and after. Those that run between the acceptance and the rewrite count for nothing."""
    flat = flat_columns(found.schema)
    reads, unusable = reads_of(queries, table, Columns([path for path in flat if path != (FILE,)]))
    later = [read for read in reads if read.at >= asked.later_than]
    judged = [read for read in reads if asked.judged_since <= read.at <= asked.judged_until]
    wanted = list(dict.fromkeys(path for read in reads for path, _ in read.filters))
    after = _Side.of(flat, found.files, wanted)
    before = None if found.files_before is None else _Side.of(flat, found.files_before, wanted)
    counted = Counter(unusable) + Counter({"unreadable-row": unreadable})
    rows = []
    for some in (later, judged):
        those, of_no_use = _measured(some, after, before)
        counted += Counter(of_no_use)
        rows.append(those)
    return Measured(
        recommendation_id=asked.recommendation_id,
        snapshot_id=found.snapshot_id,
        table=after.sums,
        table_before=None if before is None else before.sums,
        later=rows[0],
        judged=rows[1],
        unusable=dict(counted),
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """The table at one snapshot."""

    columns: Mapping[Path, Any]
    files: Files
    sums: FileSums

    @classmethod
    def of(cls, flat: Mapping[Path, Any], files: Any, wanted: Sequence[Path]) -> _Side:
        found = table_sample(flat, files, wanted, {})
        size = found.files.bytes
        bounds = {path: column.bounds for path, column in found.columns.items()}
        return cls(found.columns, Files(size.astype(np.float64), bounds), FileSums(len(size), int(size.sum())))

    def opened(self, reads: Sequence[Read]) -> tuple[dict[str, tuple[Unit, int, int]], Mapping[str, int]]:
        """What each query opens, by its key; also how many say nothing, by the reason."""
        workload, unusable = workload_of(reads, self.columns)
        found = scanned(workload.conditions, self.files)
        rows = {
            unit.key: (unit, int(files), int(size))
            for unit, files, size in zip(workload.units, found.files, found.bytes, strict=True)
        }
        hidden = sum(unit.weight for unit in workload.hidden)
        return rows, {**unusable, **({"hidden-literals": hidden} if hidden else {})}


def _measured(
    reads: Sequence[Read], after: _Side, before: _Side | None
) -> tuple[tuple[MeasuredQuery, ...], Mapping[str, int]]:
    now, unusable = after.opened(reads)
    then = {} if before is None else before.opened(reads)[0]
    found = []
    for key in sorted(now)[:MEASURED_QUERIES_MAX]:
        unit, files, size = now[key]
        _, files_before, bytes_before = then.get(key, (unit, None, None))
        found.append(MeasuredQuery(key, unit.weight, files, size, files_before, bytes_before))
    return tuple(found), unusable
