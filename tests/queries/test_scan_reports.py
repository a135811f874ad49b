"""Iceberg's scan reports become records; the samples are what Iceberg 1.12 itself writes for the REST catalog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.core import codec
from icewright.core.errors import InvalidMessage
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import Filter, Literal, LiteralKind, LiteralPolicy, Operator, QueryRecord
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.scan_reports import read_report
from tests.cases import each_case
from tests.narrowing import not_none

SAMPLES = (Path(__file__).parent / "samples" / "scan_reports_1_12.jsonl").read_text().splitlines()
NAME = TableName("lake", ("db",), "orders")
KEEP = LiteralRules(LiteralPolicy.KEEP)


def sample(index: int) -> Any:
    return json.loads(SAMPLES[index])


def read(report: Any, rules: LiteralRules = KEEP) -> QueryRecord:
    return not_none(read_report(report, NAME, "reporter", 1_000, rules))


def filters(index: int) -> str:
    return "; ".join(
        " ".join((one.column, one.operator, *(f"{literal.kind}:{literal.text}" for literal in one.literals)))
        for one in read(sample(index)).tables[0].filters
    )


def test_a_report_of_iceberg() -> None:
    record = read(sample(1))
    (table,) = record.tables
    assert (record.engine, record.user, record.started_at, record.duration_ms) == (
        "spark 4.1.4",
        "reporter",
        1_000,
        None,
    )
    assert (record.sql, record.bytes_read, record.succeeded) == ("", None, True)
    assert (table.table, table.columns) == (NAME, ("id", "day", "city", "amount", "ts", "spot.x", "spot.y"))
    assert (table.files_read, table.files_skipped, table.bytes_planned, table.bytes_read) == (1, 0, 3087, None)
    assert table.snapshot_id == sample(1)["snapshot-id"]


def test_filters_of_iceberg() -> None:
    assert [filters(index) for index in range(len(SAMPLES))] == [
        "id eq dropped:2-digit-int",
        "day eq dropped:date; amount gt hashed:079eeec8; city starts-with hashed:1dac175f",
        "city in hashed:793f441c hashed:67843148; ts gt-eq dropped:timestamp",
        "spot is-null; city not-eq hashed:3e9a9b1b",
        "",
        "city in hashed:3c2569b2 hashed:15de7e03",
        "id other",  # of a transform, bucket[16]
    ]


@each_case(
    ("expression", "found"),
    [
        ({"type": "literal", "value": False}, ()),
        ({"type": "is-nan", "term": "a"}, (Filter("a", Operator.OTHER),)),
        ({"type": "not-starts-with", "term": "a", "value": "x"}, (Filter("a", Operator.OTHER),)),
        (
            {"type": "not", "child": {"type": "in", "term": "a", "values": [1, 2.5]}},
            (Filter("a", Operator.NOT_IN, (Literal(LiteralKind.NUMBER, "1"), Literal(LiteralKind.NUMBER, "2.5"))),),
        ),
        (
            {"type": "or", "left": {"type": "eq", "term": "a", "value": 1}, "right": {"type": "is-null", "term": "b"}},
            (Filter("a", Operator.OTHER), Filter("b", Operator.OTHER)),
        ),
        (
            {"type": "eq", "term": {"type": "reference", "term": "a"}, "value": True},
            (Filter("a", Operator.EQ, (Literal(LiteralKind.BOOLEAN, "true"),)),),
        ),
        (
            {"type": "lt", "term": "a", "value": "2026-01-31"},
            (Filter("a", Operator.LT, (Literal(LiteralKind.DATE, "2026-01-31"),)),),
        ),
        (
            {"type": "lt", "term": "a", "value": "(secret)"},
            (Filter("a", Operator.LT, (Literal(LiteralKind.STRING, "(secret)"),)),),
        ),
        (
            {"type": "lt", "term": "a", "value": "(date-3-days-ago)"},
            (Filter("a", Operator.LT, (Literal(LiteralKind.DROPPED, "date-3-days-ago"),)),),
        ),
    ],
)
def test_expressions(expression: Any, found: tuple[Filter, ...]) -> None:
    assert read({**sample(0), "filter": expression}).tables[0].filters == found


def test_the_same_report_is_the_same_query() -> None:
    one = sample(0)
    again = dict(reversed(one.items()))
    assert read(one).query_id == read(again).query_id
    other = sample(0)
    other["metrics"]["total-planning-duration"]["total-duration"] += 1
    assert read(one).query_id != read(other).query_id
    elsewhere = not_none(read_report(one, TableName("lake", ("db",), "other"), "reporter", 1_000, KEEP))
    assert read(one).query_id != elsewhere.query_id


def test_a_commit_report_is_no_record() -> None:
    assert read_report({"report-type": "commit-report"}, NAME, "u", 1, KEEP) is None


def test_strings_that_a_client_did_not_hash_are_hashed() -> None:
    report = {**sample(0), "filter": {"type": "eq", "term": "a", "value": "secret"}}
    encoded = codec.dumps(read(report, LiteralRules(LiteralPolicy.HASH, b"a key of the installation")))
    assert "secret" not in encoded


@each_case(
    ("key", "value"),
    [
        ("filter", []),
        ("filter", None),
        ("filter", {"type": "and", "left": True}),
        ("filter", {"type": "eq"}),
        ("filter", {"type": "eq", "term": 3}),
        ("filter", {"type": "in", "term": "a", "values": 3}),
        ("metrics", []),
        ("metrics", {"result-data-files": {"value": -1}}),
        ("projected-field-names", [1]),
        ("snapshot-id", "x"),
        ("other", float("nan")),
    ],
)
def test_what_is_no_report_is_refused(key: str, value: Any) -> None:
    with pytest.raises(InvalidMessage):
        read({**sample(0), key: value})
    with pytest.raises(InvalidMessage):
        read_report([], NAME, "u", 1, KEEP)


def test_an_expression_that_is_nested_too_deeply_is_refused() -> None:
    expression: Any = True
    for _ in range(100_000):
        expression = {"type": "not", "child": expression}
    with pytest.raises(InvalidMessage):
        read({**sample(0), "filter": expression})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["and", "eq", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "left", "right", "child", "term", "value", "values"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["filter", "metrics", "metadata", "projected-field-names", "snapshot-id"]), JSON)
def test_any_report_is_a_record_or_refused(key: str, value: Any) -> None:
    try:
        record = read({**sample(0), key: value})
    except InvalidMessage:
        return
    assert codec.loads(QueryRecord, codec.dumps(record).encode()) == record
