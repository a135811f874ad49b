"""Spark's event logs become records; the sample is a log of Spark 4.1.4 with Iceberg 1.12, reduced to what is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icewright.core import codec
from icewright.core.errors import InvalidMessage
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import (
    Filter,
    Literal,
    LiteralKind,
    LiteralPolicy,
    Operator,
    QueryRecord,
    QuerySource,
    TableRead,
)
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.spark_events import SparkEventLog, event_files, read_event_log
from icewright.queries.sources.spark_plans import read_plan
from tests.cases import each_case
from tests.queries.test_sql_reads import shown

SAMPLE = Path(__file__).parent / "samples" / "spark_4_1_event_log.jsonl"
LINES = SAMPLE.read_bytes().splitlines(keepends=True)
KEEP = LiteralRules(LiteralPolicy.KEEP)
HASH = LiteralRules(LiteralPolicy.HASH, b"a key of the installation")
ORDERS, CITIES = TableName("lake", ("db",), "orders"), TableName("lake", ("db",), "cities")


def never(error: InvalidMessage) -> None:
    raise error


def records(path: Path, refused: Callable[[InvalidMessage], None] = never) -> dict[int, QueryRecord]:
    """The records of a log by the number of their execution."""
    return {int(one.query_id.rpartition("/")[2]): one for one in read_event_log(path, KEEP, refused)}


FOUND = records(SAMPLE)


def test_a_lookup() -> None:
    record = FOUND[15]
    assert record.query_id == "local-1795719122878/15"
    assert (record.source, record.engine, record.user) == (QuerySource.SPARK, "spark 4.1.4", "root")
    assert (record.started_at, record.duration_ms, record.cpu_ms) == (1795719202687, 14099, 355)
    assert (record.bytes_read, record.rows_read, record.splits, record.limit) == (3087, 100, 1, None)
    assert (record.succeeded, record.sql) == (True, "")
    assert record.tables == (
        TableRead(
            ORDERS,
            ("id", "city"),
            (Filter("id", Operator.EQ, (Literal(LiteralKind.NUMBER, "42"),)),),
            snapshot_id=1525977642267537985,
            files_read=1,
            files_skipped=3,
            bytes_planned=3051,
            rows_read=100,
            rows_after=1,
        ),
    )


def test_filters_of_all_queries() -> None:
    assert {number: [shown(one.filters) for one in record.tables] for number, record in FOUND.items()} == {
        15: ["id eq number:42"],
        16: ["day eq number:20455; amount gt number:200"],  # a date is its day
        17: ["id gt-eq number:150; id lt-eq number:260; city in string:city1 string:city2"],
        18: ["city in string:city1 string:O'Brien, [x]; ts gt-eq number:1767398400000000"],
        19: ["day gt-eq number:20456", "country eq string:DE"],
        20: ["id other; city other; ts other"],  # functions of columns
        21: ["spot is-null; city starts-with string:city"],
        22: ["spot.x gt number:300"],
        23: ["city other; id other"],  # an OR over two columns
        24: ["id eq number:7"],
        25: ["city not-in string:a string:b; id eq number:5; day not-eq number:20454"],
        27: ["id eq number:399", "id eq number:399"],  # a DELETE looks for files, and reads them
        29: ["city eq string:city1", "amount lt number:100"],  # a join of a table with itself
        30: ["id gt number:390"],
        32: ["id other; city other"],  # a string that looks like two filters
    }


def test_files_and_rows_before_and_after_filters() -> None:
    figures = {
        number: [(one.files_read, one.files_skipped, one.rows_read, one.rows_after) for one in record.tables]
        for number, record in FOUND.items()
    }
    assert figures[17] == [(2, 2, 200, 31)]
    assert figures[19] == [(2, 0, 200, 200), (1, 1, 1, 1)]
    assert figures[20] == [(4, 0, 400, 29)]
    assert figures[29] == [(4, 0, 399, 57), (1, 3, 100, 67)]
    assert figures[25] == [(0, 3, None, None)]  # nothing was left to read


def test_joins_groups_orders_and_limits() -> None:
    orders, cities = FOUND[19].tables
    assert (orders.table, orders.joined_on, cities.table, cities.joined_on) == (ORDERS, ("city",), CITIES, ("name",))
    (grouped,) = FOUND[22].tables
    assert (grouped.group_by, grouped.order_by, grouped.aggregates) == (("city",), ("city",), ("sum(amount)",))
    assert FOUND[17].tables[0].aggregates == ("count(city)",)
    assert (FOUND[23].limit, FOUND[32].limit, FOUND[32].tables[0].order_by) == (5, 3, ("id",))


def test_a_failed_query_did_not_succeed() -> None:
    assert [number for number, record in FOUND.items() if not record.succeeded] == [24]


def test_metadata_tables_and_what_reads_no_table_are_left_out() -> None:
    assert not {14, 26, 28, 31} & {*FOUND}


def test_a_description_that_is_sql_is_kept() -> None:
    assert FOUND[30].sql == "select city from lake.db.orders where id > 390 -- asked by the Thrift server"
    (one,) = [one for one in read_event_log(SAMPLE, LiteralRules(LiteralPolicy.DROP), never) if one.sql]
    assert one.sql == "select city from lake.db.orders where id > ?"


def test_a_log_that_is_being_written(tmp_path: Path) -> None:
    log = tmp_path / "app.inprogress"
    whole = SAMPLE.read_bytes()
    ends = [number for number, line in enumerate(LINES) if b"SQLExecutionEnd" in line and b':15,"time"' in line]
    log.write_bytes(b"".join(LINES[: ends[0] + 1])[:-1])  # the last line has not its end yet
    assert records(log) == {}
    log.write_bytes(whole[: len(whole) // 2])
    assert 15 in records(log)
    assert records(log).items() < FOUND.items()
    log.write_bytes(whole)
    assert records(log) == FOUND


def compressed(data: bytes, path: Path) -> None:
    with pa.output_stream(str(path), compression="zstd") as stream:
        stream.write(data)


def test_a_rolled_log_that_is_compressed(tmp_path: Path) -> None:
    first, second = b"".join(LINES[:60]), b"".join(LINES[60:])
    compressed(first, tmp_path / "events_9_app.zstd")
    compressed(second, tmp_path / "events_10_app.zstd")
    (tmp_path / ".events_9_app.zstd.crc").write_bytes(b"crc")
    (tmp_path / "appstatus_app").touch()
    assert [file.name for file in event_files(tmp_path)] == ["events_9_app.zstd", "events_10_app.zstd"]
    assert records(tmp_path) == FOUND


def test_a_compressed_log_that_is_being_written(tmp_path: Path) -> None:
    compressed(SAMPLE.read_bytes(), tmp_path / "whole.zstd")
    data = (tmp_path / "whole.zstd").read_bytes()
    for part in (0, 3, len(data) // 2, len(data) - 5):
        (tmp_path / "app.zstd.inprogress").write_bytes(data[:part])
        assert records(tmp_path / "app.zstd.inprogress").items() <= FOUND.items()


def test_what_was_compacted_is_not_read_twice(tmp_path: Path) -> None:
    for name in ("events_1_app", "events_2_app", "events_2_app.compact", "events_3_app"):
        (tmp_path / name).touch()
    assert [file.name for file in event_files(tmp_path)] == ["events_2_app.compact", "events_3_app"]


def test_another_compression_is_refused(tmp_path: Path) -> None:
    (tmp_path / "events_1_app.lz4").touch()
    with pytest.raises(InvalidMessage, match="lz4"):
        records(tmp_path)


def test_lines_that_are_none_are_told_and_the_rest_is_read(tmp_path: Path) -> None:
    log, refused = tmp_path / "app", list[InvalidMessage]()
    broken = [b"\n", b"nonsense\n", b'{"Event":"SparkListenerTaskEnd","Stage ID":\n', b'{"Event":"Unknown"}\n']
    log.write_bytes(b"".join([*LINES[:50], *broken, *LINES[50:]]))
    assert records(log, refused.append) == FOUND
    assert len(refused) == 2


def scan(filters: str, output: str = "id#1L, city#2") -> Any:
    text = f"BatchScan lake.db.t[{output}] IcebergScan(table=lake.db.t, schemaId=0, snapshotId=7, branch=null, "
    text += f"filters={filters}, runtimeFilters=, groupedBy=) RuntimeFilters: []"
    return {"nodeName": "BatchScan lake.db.t", "simpleString": text, "children": [], "metrics": []}


@each_case(
    ("filters", "found"),
    [
        ("", ""),
        ("true", ""),
        (
            "id = -5, id != 6, id < 7, id <= 8.5, id > 1.0E10",
            "id eq number:-5; id not-eq number:6; id lt number:7; id lt-eq number:8.5; id gt number:10000000000",
        ),
        ("NOT (id IN (1, 2))", "id not-in number:1 number:2"),
        ("NOT ((id = 1 AND city = 'x'))", "id other; city other"),
        ("(id = 1 OR (id = 2 OR id = 3))", "id in number:1 number:2 number:3"),
        ("((id = 1 AND city IS NULL) AND id < 9)", "id eq number:1; city is-null; id lt number:9"),
        ("city LIKE 'a%b%'", "city starts-with string:a%b"),
        ("city NOT LIKE 'a%'", "city other"),
        ("is_nan(id)", "id other"),
        ("city = true", "city eq boolean:true"),
        ("city = 'it's', id = 1", "city eq string:it's; id eq number:1"),
        ("city = 'a', other = 'b'", "city other"),  # no column of that name: the string has a quote
        ("bucket[16](id) = 3", "id other"),
        ("id = ", "id other"),
        ("id IS NOT NULL, id = 3", "id eq number:3"),
        ("id IS NOT NULL", "id not-null"),
        ("(" * 200 + "id = 1" + ")" * 200, "id other"),
    ],
)
def test_filters_as_iceberg_prints_them(filters: str, found: str) -> None:
    (one,) = read_plan(scan(filters)).scans
    assert shown(one.filters) == found


def test_columns_are_not_known_where_spark_cuts_them() -> None:
    (one,) = read_plan(scan("other = 1", "id#1L, ... 30 more fields")).scans
    assert (one.columns, shown(one.filters)) == ((), "other eq number:1")


def test_scans_of_earlier_versions_of_iceberg() -> None:
    node = scan("")
    node["simpleString"] = (
        "BatchScan lake.db.t[id#1L] lake.db.t (branch=null) "
        "[filters=id IS NOT NULL, id = 5, groupedBy=] RuntimeFilters: []"
    )
    (one,) = read_plan(node).scans
    assert (one.table, one.columns, shown(one.filters)) == (TableName("lake", ("db",), "t"), ("id",), "id eq number:5")


def test_scans_that_are_not_of_iceberg_are_left_out() -> None:
    node = {"nodeName": "BatchScan parquet", "simpleString": "BatchScan parquet file:/x[id#1L] ParquetScan [filters=]"}
    assert read_plan(node).scans == ()
    assert read_plan(None).scans == read_plan([]).scans == ()


@each_case(
    ("name", "evil"),
    [
        ("BatchScan", "Iceberg(table=a, "),
        ("BatchScan", "Iceberg"),
        ("BatchScan", "a (branch="),
        ("BatchScan", "a"),
        ("BatchScan", "a] "),
        ("HashAggregate", "keys=["),
        ("HashAggregate", "keys=[a], functions=["),
        ("HashAggregate", "keys=[], functions=[partial_"),
        ("SortMergeJoin", "], ["),
        ("TakeOrderedAndProject(", "orderBy=[]"),
        ("Sort [", "a]"),
    ],
)
def test_a_plan_that_is_meant_to_keep_us_busy_is_read_once(name: str, evil: str) -> None:
    """A search from each place where something may begin would take hours for it."""
    texts = (
        f"{name} {evil * 100_000}",
        f"{name} a[id#1L] {evil * 100_000}",
        f"{name}keys=[], functions=[{evil * 100_000}]",
    )
    nodes = [{"nodeName": name, "simpleString": text, "children": []} for text in texts]
    (one,) = read_plan({**scan("id = 1"), "children": nodes}).scans
    assert shown(one.filters) == "id eq number:1"


def test_a_filter_over_very_many_columns_is_read_once() -> None:
    """A search of its text for each of them would take a quarter of an hour."""
    attributes = [f"c{number}#{number}L" for number in range(40_000)]
    text = "Filter " + " AND ".join(f"(isnotnull({each}) AND (abs({each}) = 1))" for each in attributes[::2])
    node = {"nodeName": "Filter", "simpleString": text, "children": [scan("", ", ".join(attributes))]}
    (one,) = read_plan(node).scans
    assert one.filters == tuple(Filter(f"c{number}", Operator.OTHER) for number in range(0, 40_000, 2))


def test_what_must_only_have_a_value_is_not_compared() -> None:
    node = {"nodeName": "Filter", "simpleString": "Filter isnotnull(id#1L)", "children": [scan("")]}
    (one,) = read_plan(node).scans
    assert one.filters == ()


MARKS = "жψ語"


@settings(max_examples=200, deadline=None)
@given(
    st.text(alphabet=MARKS + "'\"(), =%x\\", min_size=1, max_size=12),
    st.sampled_from(["city = '{}'", "city IN ('a', '{}')", "city LIKE '{}%', id = 1", "(city = '{}' OR id = 1)"]),
)
def test_no_string_of_a_plan_is_in_a_record(secret: str, form: str) -> None:
    plan = scan(form.format(secret))
    log = SparkEventLog(HASH)
    kind = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
    start = {"Event": f"{kind}Start", "executionId": 1, "time": 1, "description": "collect", "sparkPlanInfo": plan}
    assert log.read(json.dumps(start).encode()) is None
    record = log.read(json.dumps({"Event": f"{kind}End", "executionId": 1, "time": 2, "errorMessage": ""}).encode())
    assert record is not None
    assert record.tables[0].filters
    assert not {*MARKS} & {*codec.dumps(record)}


JSON: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([]) | st.just({})
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_mutation_of_a_log_gives_records_or_refusals(data: st.DataObject) -> None:
    lines, refused = [*LINES[:40]], 0
    for _ in range(3):
        place = data.draw(st.integers(0, len(lines) - 1))
        event: Any = json.loads(lines[place])
        parent, key = event, data.draw(st.sampled_from([*event]))
        while isinstance(parent[key], (dict, list)) and parent[key] and data.draw(st.integers(0, 3)):
            parent = parent[key]
            key = data.draw(st.sampled_from([*parent] if isinstance(parent, dict) else [*range(len(parent))]))
        parent[key] = data.draw(JSON)
        lines[place] = json.dumps(event).encode()
    log = SparkEventLog(HASH)
    for line in lines:
        try:
            record = log.read(line)
        except InvalidMessage:
            refused += 1
            continue
        assert record is None or codec.loads(QueryRecord, codec.dumps(record).encode()) == record
    assert refused <= 3 * len(lines)
