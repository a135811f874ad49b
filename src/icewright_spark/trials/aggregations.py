"""What queries sum up, and how small a table of such sums would be: recorded for later, since nothing builds it yet.

A query could be answered from sums over its *dimensions*: the columns that it groups or filters by. How many cells they
have, distinct combinations of their values, is extrapolated from the sample to all rows (Chao et al. 2014), on 20,000
rows at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import QueryRecord, TableRead
from icewright.model.queries.recommendations import AGGREGATIONS_MAX, RECORDED_NAME_LENGTH_MAX, AggregationCandidate
from icewright_spark.trials.distinct import combined, distinct_among
from icewright_spark.trials.predicates import Columns, Path
from icewright_spark.trials.table_sample import TableSample

ROWS_MAX: Final = 20_000
DIMENSIONS_MAX: Final = 10
"""Of more, no table of sums is small."""
AGGREGATES_MAX: Final = 20
"""That are named; and :data:`AGGREGATE_LENGTH_MAX` characters of each."""
AGGREGATE_LENGTH_MAX: Final = 100


@dataclass(slots=True)
class _Asked:
    queries: int = 0
    bytes_read: int = 0
    aggregates: dict[str, None] = field(default_factory=dict)


def aggregating_reads(queries: Sequence[QueryRecord], table: TableName) -> Iterator[TableRead]:
    """The reads of a table that sum it up, of queries that did not fail."""
    for query in queries:
        for read in query.tables if query.succeeded else ():
            if read.table == table and (read.group_by or read.aggregates):
                yield read


def dimensions(read: TableRead, columns: Columns) -> tuple[Path, ...] | None:
    """The columns that a read groups or filters by; None where one is none of the table's, or too long to record."""
    paths = {columns.find(name) for name in (*read.group_by, *(one.column for one in read.filters))}
    found = sorted(path for path in paths if path is not None and len(".".join(path)) <= RECORDED_NAME_LENGTH_MAX)
    return tuple(found) if found and len(found) == len(paths) <= DIMENSIONS_MAX else None


def aggregations(
    queries: Sequence[QueryRecord], table: TableName, sample: TableSample
) -> tuple[AggregationCandidate, ...]:
    """The sets of dimensions by which queries sum a table up, those first that would spare the most rows."""
    columns, asked = Columns(list(sample.columns)), dict[tuple[Path, ...], _Asked]()
    for read in aggregating_reads(queries, table):
        paths = dimensions(read, columns)
        if paths is not None:
            one = asked.setdefault(paths, _Asked())
            one.queries += 1
            one.bytes_read += max(0, read.bytes_read or 0)
            one.aggregates.update(dict.fromkeys(name[:AGGREGATE_LENGTH_MAX] for name in read.aggregates))
    most = sorted(asked, key=lambda paths: (-asked[paths].queries, paths))[: 5 * AGGREGATIONS_MAX]
    found = [_candidate(paths, asked[paths], sample) for paths in most] if sample.rows else []
    return tuple(sorted(found, key=lambda one: (-one.spared_rows, one.dimensions))[:AGGREGATIONS_MAX])


def _candidate(paths: tuple[Path, ...], asked: _Asked, sample: TableSample) -> AggregationCandidate:
    some = np.arange(sample.rows)[:: max(1, -(-sample.rows // ROWS_MAX))]
    cells = combined([sample.columns[path].rows.codes[some] for path in paths])
    counts = np.bincount(cells).astype(np.float64)
    rows = int(sample.files.rows.sum())
    return AggregationCandidate(
        dimensions=tuple(".".join(path) for path in paths),
        aggregates=tuple(sorted(asked.aggregates)[:AGGREGATES_MAX]),
        queries=asked.queries,
        bytes_read=asked.bytes_read,
        rows=rows,
        cells=max(1, min(rows, round(distinct_among(counts, len(some), float(rows))))),
    )
