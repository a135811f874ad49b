"""Trino's events become records; the samples are events of Trino 476, with fields left out that nothing reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
from icewright.queries.sources.trino import read_event
from tests.cases import each_case
from tests.narrowing import not_none

SAMPLES = (Path(__file__).parent / "samples" / "trino_476_events.jsonl").read_text().splitlines()
KEEP = LiteralRules(LiteralPolicy.KEEP)
HASH = LiteralRules(LiteralPolicy.HASH, b"a key of the installation")
TS = Literal(LiteralKind.TIMESTAMP, "2023-01-01T00:00:00.000000+00:00")


def n(text: str) -> Literal:
    return Literal(LiteralKind.NUMBER, text)


def s(text: str) -> Literal:
    return Literal(LiteralKind.STRING, text)


def sample(index: int) -> Any:
    return json.loads(SAMPLES[index])


def read(event: Any, rules: LiteralRules = KEEP) -> QueryRecord:
    return not_none(read_event(json.dumps(event), rules))


def with_scan(details: list[str], predicate: str, query: str) -> tuple[Filter, ...]:
    """The filters of a query that scans ``db.t`` alone, planned so."""
    event = sample(0)
    event["ioMetadata"]["inputs"].pop()
    event["metadata"]["query"] = query
    node = {
        "id": "225",
        "name": "ScanFilter",
        "descriptor": {"table": "ice:db.t$data@1 constraint on [d]", "filterPredicate": predicate},
        "details": details,
        "children": [],
    }
    event["metadata"]["jsonPlan"] = json.dumps({"0": node})
    return read(event).tables[0].filters


def test_a_join_with_filters_on_both_sides() -> None:
    record = read(sample(0))
    assert (record.query_id, record.source, record.engine, record.user) == (
        "20261121_080147_00002_jkkzb",
        QuerySource.TRINO,
        "trino 476",
        "u",
    )
    assert (record.started_at, record.duration_ms, record.cpu_ms, record.splits) == (1795248107426, 1082, 88, 9)
    assert (record.bytes_read, record.rows_read, record.succeeded, record.limit) == (8950, 1333, True, None)
    assert record.sql.startswith("select a.d, count(*), max(p.b) from t a left join p")
    assert record.tables == (
        TableRead(
            TableName("ice", ("db",), "t"),
            ("d", "id", "ts"),
            (
                Filter("d", Operator.EQ, (s("d1"),)),
                Filter("id", Operator.GT_EQ, (n("500"),)),
                Filter("id", Operator.LT_EQ, (n("900"),)),
                Filter("ts", Operator.GT, (TS,)),
            ),
            group_by=("d",),
            joined_on=("id",),
            aggregates=("count(*)",),
            snapshot_id=1660786396858125318,
            files_read=1,
            files_skipped=7,
            bytes_planned=5325,
            bytes_read=5325,
            rows_read=333,
            rows_after=133,
        ),
        TableRead(
            TableName("ice", ("db",), "p"),
            ("b", "a"),
            # Trino has derived them from the other side; the SQL does not have them
            (Filter("a", Operator.GT_EQ, (n("500"),)), Filter("a", Operator.LT_EQ, (n("900"),))),
            joined_on=("a",),
            aggregates=("count(*)", "max(b)"),
            snapshot_id=3048055495129122570,
            files_read=1,
            files_skipped=0,
            bytes_planned=3625,
            bytes_read=3625,
            rows_read=1000,
            rows_after=401,
        ),
    )


def test_an_insert_of_values_reads_no_table() -> None:
    record = read(sample(1))
    assert (record.tables, record.succeeded, record.cpu_ms) == ((), True, 274)


def test_a_failed_query_did_not_succeed() -> None:
    record = read(sample(2))
    assert (record.succeeded, record.tables, record.sql) == (False, (), "select nope from t")


def test_a_query_that_was_only_created_is_no_record() -> None:
    assert read_event(SAMPLES[3], KEEP) is None


def test_other_events_are_no_records() -> None:
    assert read_event(b"{}", KEEP) is None
    assert read_event(json.dumps({"queryId": "q", "stageId": "1", "taskId": "1", "endTime": "x"}), KEEP) is None


def test_an_envelope_is_opened() -> None:
    assert read({"eventMetadata": {}, "eventPayload": sample(0)}) == read(sample(0))


def test_tables_that_are_not_of_iceberg_are_left_out() -> None:
    event = sample(0)
    event["ioMetadata"]["inputs"][0]["connectorName"] = "tpch"
    assert [one.table.name for one in read(event).tables] == ["p"]


def test_without_a_plan_the_sql_says_what_is_filtered() -> None:
    event = sample(0)
    del event["metadata"]["jsonPlan"]
    one, other = read(event).tables
    assert one.filters == read(sample(0)).tables[0].filters
    assert other.filters == ()
    assert (one.files_read, one.files_skipped, one.rows_after, one.rows_read) == (None, None, None, 333)


def test_a_table_that_is_read_twice_has_two_reads_with_filters_of_their_own() -> None:
    event = sample(0)
    event["metadata"]["query"] = "select 1 from t x join t y on x.id = y.id where x.d = 'd1' and y.ts is null"
    one = event["ioMetadata"]["inputs"][0]
    event["ioMetadata"]["inputs"] = [{**one, "columns": one["columns"][:2]}, {**one, "columns": one["columns"][1:]}]
    table = "ice:db.t$data@1660786396858125318"
    scans = [
        {"id": "1", "name": "ScanFilter", "descriptor": {"table": table, "filterPredicate": "(ts IS NULL)"}},
        {"id": "2", "name": "ScanFilter", "descriptor": {"table": table, "filterPredicate": "(d = varchar 'd1')"}},
    ]
    scans[0]["details"] = ["id := 1:id:bigint", "ts := 4:ts:timestamp(6) with time zone"]
    scans[1]["details"] = ["id := 1:id:bigint", "d := 2:d:varchar"]
    event["metadata"]["jsonPlan"] = json.dumps({"0": {"children": scans}})
    assert [one.filters for one in read(event).tables] == [
        (Filter("d", Operator.EQ, (s("d1"),)),),
        (Filter("ts", Operator.IS_NULL),),
    ]


D = "d := 2:d:varchar"
ID = "id := 1:id:bigint"


@each_case(
    ("details", "filters"),
    [
        ([D, "    :: [[d1], [d2]]"], (Filter("d", Operator.IN, (s("d1"), s("d2"))),)),
        (["2:d:varchar", "    :: [[d1]]"], (Filter("d", Operator.EQ, (s("d1"),)),)),
        ([D, "    :: [NULL]"], (Filter("d", Operator.IS_NULL),)),
        ([D, "    :: [(<min>, <max>)]"], (Filter("d", Operator.NOT_NULL),)),
        ([D, "    :: [NULL, [d1]]"], (Filter("d", Operator.OTHER),)),
        ([D, "    :: [[a, b]]"], (Filter("d", Operator.OTHER),)),  # one string with a comma, or a range
        ([D, "    :: [[a], [b]]]"], (Filter("d", Operator.OTHER),)),
        ([D, "    :: [[a)]]"], (Filter("d", Operator.OTHER),)),
        ([D, "    :: [(a, b]]"], (Filter("d", Operator.GT, (s("a"),)), Filter("d", Operator.LT_EQ, (s("b"),)))),
        ([ID, "    :: [[5, 9)]"], (Filter("id", Operator.GT_EQ, (n("5"),)), Filter("id", Operator.LT, (n("9"),)))),
        ([ID, "    :: [(<min>, 9)]"], (Filter("id", Operator.LT, (n("9"),)),)),
        ([ID, "    :: [(<min>, 5), (5, <max>)]"], (Filter("id", Operator.OTHER),)),
        (
            ["x := 7:x:date", "    :: [[2026-01-31]]"],
            (Filter("x", Operator.EQ, (Literal(LiteralKind.DATE, "2026-01-31"),)),),
        ),
        (["x := 7:x:uuid", "    :: [[abc]]"], (Filter("x", Operator.EQ, (Literal(LiteralKind.DROPPED),)),)),
        (["    :: [[d1]]"], ()),
        ([":: NONE"], ()),
    ],
)
def test_constraints_of_partitions(details: list[str], filters: tuple[Filter, ...]) -> None:
    assert with_scan(details, "", "select 1 from t") == filters


@each_case(
    ("predicate", "filters"),
    [
        ("(d_1 = varchar 'it''s')", (Filter("d", Operator.EQ, (s("it's"),)),)),
        ("(id_1 IN (bigint '1', bigint '2'))", (Filter("id", Operator.IN, (n("1"), n("2"))),)),
        ("$not(d_1 IS NULL)", (Filter("d", Operator.NOT_NULL),)),
        ("$like(d_1, varchar '$like(%')", (Filter("d", Operator.OTHER),)),
        ("(d_1 = varchar 'a') AND (id_1 @@ bigint '3')", (Filter("d", Operator.OTHER), Filter("id", Operator.OTHER))),
        ("(unknown = bigint '3')", ()),
    ],
)
def test_predicates_of_scans(predicate: str, filters: tuple[Filter, ...]) -> None:
    assert with_scan(["d_1 := 2:d:varchar", "id_1 := 1:id:bigint"], predicate, "select 1 from t") == filters


@each_case("evil", ["a := 1:", "a := 1:b:", "1:", ":"])
def test_a_detail_that_is_meant_to_keep_us_busy_is_read_once(evil: str) -> None:
    """A search from each place where a column may begin would take hours for it."""
    assert with_scan([evil * 100_000 + ":"], "", "select 1 from ice.db.t") == ()


def test_the_sql_says_what_the_plan_shows_no_more() -> None:
    values = [str(value) for value in range(33)]  # of more than 32 the plan shows the range
    query = f"select 1 from t where ts is not null and id in ({', '.join(values)})"  # noqa: S608 - read, not run
    assert with_scan([ID, "    :: [[0, 32]]"], "", query) == (
        Filter("id", Operator.IN, tuple(map(n, values))),
        Filter("ts", Operator.NOT_NULL),
    )


@pytest.mark.parametrize("document", [b"", b"[]", b"3", b"{", b"\xff", b"[" * 100_000, b'{"a":' * 100_000])
def test_what_is_no_json_object_is_refused(document: bytes) -> None:
    with pytest.raises(InvalidMessage):
        read_event(document, KEEP)


@each_case(
    ("path", "value"),
    [
        (("metadata", "queryId"), ""),
        (("metadata", "queryId"), 3),
        (("metadata", "queryId"), "q" * 1001),
        (("metadata", "queryState"), "RUNNING"),
        (("metadata", "query"), "select '\ud800'"),
        (("metadata",), []),
        (("context", "user"), {}),
        (("statistics", "cpuTime"), "1s"),
        (("statistics", "cpuTime"), float("nan")),
        (("statistics", "cpuTime"), -1),
        (("statistics", "physicalInputBytes"), 2**63),
        (("statistics", "physicalInputRows"), True),
        (("createTime",), "yesterday"),
        (("createTime",), None),
        (("ioMetadata", "inputs"), [1]),
        (("ioMetadata", "inputs", 0, "table"), "a\0b"),
        (("ioMetadata", "inputs", 0, "columns"), [{"name": 1}]),
    ],
)
def test_a_field_of_the_wrong_shape_is_refused(path: tuple[Any, ...], value: Any) -> None:
    event = sample(0)
    parent = event
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    with pytest.raises(InvalidMessage):
        read_event(json.dumps(event), KEEP)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("1.00ns"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_mutation_of_a_sample_is_a_record_or_refused(data: st.DataObject) -> None:
    event = sample(data.draw(st.sampled_from([0, 1, 2])))
    for _ in range(data.draw(st.integers(1, 3))):
        _mutate(event, data)
    try:
        record = read_event(json.dumps(event), HASH)
    except InvalidMessage:
        return
    if record is not None:
        assert codec.loads(QueryRecord, codec.dumps(record).encode()) == record


def _mutate(event: Any, data: st.DataObject) -> None:
    """One value somewhere becomes another one, or goes; texts of JSON in it are opened as well."""
    parent: Any = event
    while True:
        keys = [*parent] if isinstance(parent, dict) else [*range(len(parent))]
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        child = parent[key]
        if isinstance(child, str) and child.startswith("{") and data.draw(st.booleans()):
            opened = json.loads(child)
            _mutate(opened, data)
            parent[key] = json.dumps(opened)
            return
        if not isinstance(child, (dict, list)) or data.draw(st.integers(0, 3)) == 0:
            break
        parent = child
    if data.draw(st.booleans()):
        parent[key] = data.draw(JSON)
    elif isinstance(child, str) and child:
        place = data.draw(st.integers(0, len(child)))
        parent[key] = child[:place] + data.draw(st.text(max_size=3)) + child[place + data.draw(st.integers(0, 2)) :]
    else:
        del parent[key]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40_000), st.binary(max_size=4))
def test_a_sample_that_is_cut_or_damaged_is_a_record_or_refused(place: int, damage: bytes) -> None:
    raw = SAMPLES[0].encode()
    for document in (raw[:place], raw[:place] + damage + raw[place + len(damage) :]):
        try:
            record = read_event(document, HASH)
        except InvalidMessage:
            continue
        assert record is None or record.source is QuerySource.TRINO
