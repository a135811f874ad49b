"""``analyze_queries``: read a sample of rows, the list of files and the query log, and try layouts on them.

Nothing is written. The sample has the columns that queries filter by, and those of the present layout; of some files
rows are read with all columns, by which the sizes of files in another order are predicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, StringType

from icewright.core import codec
from icewright.core.errors import Conflict, InvalidMessage
from icewright.model.actions.analyze_queries import AnalyzeQueries
from icewright.model.iceberg.names import identifier, sql_name
from icewright.model.queries.measurements import Measured
from icewright.model.queries.queries import Filter, QueryRecord, QuerySource, TableRead
from icewright.model.queries.recommendations import Rates, Recommendation
from icewright.model.work.jobs import Committed, TaskSpec
from icewright_spark.actions.done import Done, done_by_driver
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.planned_table import check_table
from icewright_spark.executors.staged.staging import staged
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.scan_tasks import tasks_of_files
from icewright_spark.iceberg.table_io import worker_storage
from icewright_spark.session.driver_cost import DriverCost, jvm_thread_clock
from icewright_spark.trials.format_sample import FormatSample, format_sample
from icewright_spark.trials.measure import Snapshots, measure
from icewright_spark.trials.recommend import Options, recommend
from icewright_spark.trials.sizes import shares_of_columns
from icewright_spark.trials.table_sample import BYTES, FILE, METRICS, PARTITION, PATH, ROWS, SPEC

QUERIES_MAX: Final = 50_000
"""Queries that layouts are tried on; of more, a sample by their ids, so that the same ones are taken each time."""
WHOLE_FILES_MAX: Final = 32
"""Files of which rows are read with all columns, to predict how much room they take in another order."""
WHOLE_BYTES_MAX: Final = 4 << 30
"""Of these files together, but for the first: all columns are read, whatever share of the rows is taken."""
WHOLE_ROWS: Final = 20_000

_SEED: Final = 1
_DAY_MS: Final = 86_400_000
_TEXT_MAX: Final = 64
"""Characters of a text that sizes are predicted by: whether it repeats shows in them."""
_NOT_READ: Final = ("variant", "unknown", "geometry", "geography")


def analyze_queries(
    spark: SparkSession,
    table: SparkTable,
    spec: TaskSpec,
    action: AnalyzeQueries,
    phase: Phase,
    hash_key: bytes | None = None,
) -> Done:
    """Carry out one attempt; ``hash_key`` is that of the digests in queries, None where this optimizer has none.

    The answer is JSON of a :class:`~icewright.model.queries.recommendations.Recommendation`, or of a
    :class:`~icewright.model.queries.measurements.Measured` where one is measured. Raises :class:`Conflict` when the
    snapshot has expired.
    """
    cost = DriverCost(jvm_thread_clock(table.jvm))
    check_table(table, spec)
    if table.java.snapshot(action.base_snapshot_id) is None:
        raise Conflict(f"snapshot {action.base_snapshot_id} of {spec.table_name} has expired")
    phase.name = "reading queries"
    found_queries = read_queries(spark, spec, action)
    queries = [query for query in found_queries if query is not None]
    unreadable = len(found_queries) - len(queries)
    phase.name = "reading rows" if action.measure is None else "reading files"
    files = _files(spark, spec, action.base_snapshot_id).toArrow()
    rows = _sample(spark, spec, action, _columns(table, queries, action)).toArrow()
    found: Recommendation | Measured
    if action.measure is None:
        whole = _whole(spark, table, spec, action, files)
        phase.name = "trying layouts"
        options = Options(
            current=action.current,
            modes=_modes(table),
            unreadable=unreadable,
            whole=whole,
            formats=lambda: _format_sample(spark, table, files),
            written_share=_written_share(spark, spec, action),
            hash_key=hash_key,
        )
        found = recommend(spec.table_name, rows, files, queries, options)
    else:
        before_id = action.measure.before_snapshot_id
        is_there = table.java.snapshot(before_id) is not None
        before = _files(spark, spec, before_id).toArrow() if is_there else None
        phase.name = "planning queries"
        snapshots = Snapshots(action.base_snapshot_id, rows, files, before)
        found = measure(spec.table_name, snapshots, queries, action.measure, unreadable)
    phase.name = "done"
    return done_by_driver(
        Committed(None),
        (),
        cost,
        input_files=files.num_rows,
        input_bytes=0,
        records=rows.num_rows,
        answer=codec.dumps(found),
    )


def read_queries(spark: SparkSession, spec: TaskSpec, action: AnalyzeQueries) -> list[QueryRecord | None]:
    """The queries of the table that the log has since then, each once, whatever was sent again.

    None for a row that is no query: the table is its owner's, who may write to it.
    """
    log = spark.table(sql_name(action.queries_table))
    ours = log.where((sql.col("table_uuid") == spec.table_id.uuid) & (sql.col("catalog") == spec.table_id.catalog))
    since = sql.timestamp_millis(sql.lit(action.since))
    found = ours.where((sql.col("started_at") >= since) & sql.col("succeeded"))
    once = found.dropDuplicates(["source", "query_id", "columns", "filters", "joined_on"])
    taken = once.orderBy(sql.xxhash64("source", "query_id")).limit(QUERIES_MAX)
    wanted = taken.withColumn("at_ms", sql.unix_millis("started_at")).drop("sql", "template", "started_at")
    return [_query(row.asDict(), spec) for row in wanted.toLocalIterator()]


def _query(row: Mapping[str, Any], spec: TaskSpec) -> QueryRecord | None:
    try:
        return _read(row, spec)
    except (InvalidMessage, TypeError, ValueError):
        return None


def _read(row: Mapping[str, Any], spec: TaskSpec) -> QueryRecord:
    def texts(column: str) -> tuple[str, ...]:
        return codec.loads(tuple[str, ...], row[column])

    read = TableRead(
        table=spec.table_name,
        columns=texts("columns"),
        filters=codec.loads(tuple[Filter, ...], row["filters"]),
        group_by=texts("group_by"),
        order_by=texts("order_by"),
        joined_on=texts("joined_on"),
        aggregates=texts("aggregates"),
        snapshot_id=row["snapshot_id"],
        files_read=row["files_read"],
        files_skipped=row["files_skipped"],
        bytes_planned=row["bytes_planned"],
        bytes_read=row["bytes_read"],
        rows_read=row["rows_read"],
        rows_after=row["rows_after"],
    )
    return QueryRecord(
        query_id=row["query_id"],
        source=QuerySource(row["source"]),
        engine=row["engine"],
        user=row["user_name"],
        started_at=row["at_ms"],
        duration_ms=row["duration_ms"],
        cpu_ms=row["cpu_ms"],
        limit=row["row_limit"],
        tables=(read,),
    )


def _files(spark: SparkSession, spec: TaskSpec, snapshot_id: int) -> DataFrame:
    """The data files of the snapshot, with what their bounds say."""
    files = spark.read.option("versionAsOf", snapshot_id).table(sql_name(spec.table_name, "files"))
    wanted = (PATH, ROWS, BYTES, PARTITION, SPEC, METRICS)
    return files.where(sql.col("content") == 0).select(*(name for name in wanted if name in files.columns))


def _sample(spark: SparkSession, spec: TaskSpec, action: AnalyzeQueries, columns: Iterable[str]) -> DataFrame:
    rows = spark.read.option("versionAsOf", action.base_snapshot_id).table(sql_name(spec.table_name))
    if action.measure is not None:
        return rows.limit(0).select(*map(identifier, columns), FILE)
    share = min(1.0, action.sample_rows / max(1, action.records))
    taken = rows if share == 1.0 else rows.sample(withReplacement=False, fraction=share, seed=_SEED)
    return taken.select(*map(identifier, columns), FILE)


def _whole(spark: SparkSession, table: SparkTable, spec: TaskSpec, action: AnalyzeQueries, files: Any) -> Any:
    """Rows of some files with all plain columns by which sizes are predicted, each file's rows in their order.

    None where there are no such columns, or no files. There are at most a hundred columns, however many the table has.
    """
    paths, records = _some_files(files)
    shares = shares_of_columns(files)
    plain = [field for field in table.schema_fields() if isinstance(field["type"], str)]
    names = [
        str(field["name"])
        for field in plain
        if (str(field["name"]),) in shares and not field["type"].startswith(_NOT_READ)
    ]
    if not paths or not names:
        return None
    tasks = tasks_of_files(table, action.base_snapshot_id, paths)
    with staged(spark, table, f"{spec.task_id}-{spec.attempt}-whole", tasks) as inputs:
        rows, share = inputs.rows_file_by_file(), min(1.0, WHOLE_ROWS / max(1, records))
        taken = rows if share == 1.0 else rows.sample(withReplacement=False, fraction=share, seed=_SEED)
        long = {field.name for field in rows.schema.fields if isinstance(field.dataType, StringType | BinaryType)}
        columns = [sql.col(identifier(name)) for name in names]
        short = [
            sql.substring(column, 1, _TEXT_MAX).alias(name) if name in long else column
            for name, column in zip(names, columns, strict=True)
        ]
        return taken.select(*short, FILE).toArrow()


def _format_sample(spark: SparkSession, table: SparkTable, files: Any) -> FormatSample:
    """Rows on which settings of the file format are tried. Raises ``Unsupported`` where no merge could read them."""
    storage = worker_storage(spark, table.java.io(), files[PATH][0].as_py())
    return format_sample(table.schema_fields(), table.properties, table.metrics_modes(), files, storage)


def _written_share(spark: SparkSession, spec: TaskSpec, action: AnalyzeQueries) -> float:
    """How often so many rows as the table has were written within the horizon before its last snapshot.

    By what snapshots say that they added. Where the first ones have expired, by the rate since the first that is there.
    """
    added = sql.col("summary").getItem("added-records").try_cast("long")
    listed = spark.table(sql_name(spec.table_name, "snapshots"))
    wanted = listed.select(sql.unix_millis("committed_at").alias("at"), added.alias("rows"), "parent_id")
    rows = sorted(((row["at"], row["rows"] or 0, row["parent_id"]) for row in wanted.collect()), key=itemgetter(0))
    last, horizon_ms = rows[-1][0], Rates().horizon_days * _DAY_MS
    within = [row for row in rows if row[0] > last - horizon_ms]
    written = sum(row[1] for row in within)
    if len(within) == len(rows) and rows[0][2] is not None:
        written *= horizon_ms / min(max(last - rows[0][0], _DAY_MS), horizon_ms)
    return float(written / max(1, action.records))


def _some_files(files: Any) -> tuple[list[str], int]:
    """Files with rows, evenly chosen by their paths, and how many rows they have."""
    listed = files.select([PATH, ROWS, BYTES]).filter(pc.greater(files[ROWS], 0)).sort_by(PATH)
    step = max(1, -(-listed.num_rows // WHOLE_FILES_MAX))
    chosen = listed.take(list(range(0, listed.num_rows, step))).to_pylist()
    within = list(accumulate(row[BYTES] for row in chosen))
    kept = [row for row, size in zip(chosen, within, strict=True) if size <= max(WHOLE_BYTES_MAX, within[0])]
    return [row[PATH] for row in kept], sum(row[ROWS] for row in kept)


def _columns(table: SparkTable, queries: Iterable[QueryRecord], action: AnalyzeQueries) -> list[str]:
    """Columns of the top level that anything of a query's filters or groups, or of the present layout, lies in."""
    reads = [read for query in queries for read in query.tables]
    names = [name for read in reads for name in (*read.group_by, *(one.column for one in read.filters))]
    named = {name.partition(".")[0].lower() for name in names}
    named |= {column.path[0].lower() for column in (action.current.columns if action.current is not None else ())}
    return [str(field["name"]) for field in table.schema_fields() if str(field["name"]).lower() in named]


def _modes(table: SparkTable) -> dict[tuple[str, ...], str]:
    """The metrics mode of each column, by its path."""
    schema = table.java.schema()
    return {
        tuple(str(schema.findColumnName(field_id)).split(".")): mode
        for field_id, mode in table.metrics_modes().items()
        if schema.findColumnName(field_id) is not None
    }
