"""What is kept of the values in queries: no string of a query is in its record, unless strings are kept."""
# ruff: noqa: S608 - no text is run

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from icewright.core import codec
from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import (
    SQL_LENGTH_MAX,
    Filter,
    Literal,
    LiteralKind,
    LiteralPolicy,
    Operator,
    QueryRecord,
    QuerySource,
    TableRead,
)
from icewright.queries.sources.literals import VALUES_MAX, LiteralRules
from icewright.queries.sources.sql import Defaults, reads_of
from icewright.queries.sources.sql_text import SqlDialect, UnreadableSql, parse
from icewright.queries.sources.trino import read_event
from tests.cases import each_case

KEY = b"a key of the installation"
KEEP, DROP = LiteralRules(LiteralPolicy.KEEP), LiteralRules(LiteralPolicy.DROP)
HASH = LiteralRules(LiteralPolicy.HASH, KEY)
EXECUTED = Literal(LiteralKind.STRING, "p using 'secret'")
EVENT = (Path(__file__).parent / "samples" / "trino_476_events.jsonl").read_text().splitlines()[0]


def kept(text: str, rules: LiteralRules, dialect: SqlDialect = SqlDialect.TRINO) -> QueryRecord:
    """The record of a text alone."""
    try:
        parsed = parse(text, dialect)
        reads = reads_of(parsed, Defaults("lake", ("db",))).tables
    except UnreadableSql:
        parsed, reads = None, ()
    record = QueryRecord("q", QuerySource.SQL, dialect, "u", 1, sql=text, tables=reads)
    return rules.record(record, parsed)


def test_strings_are_hashed_and_the_rest_stays() -> None:
    text = (
        "select 1 from t where a = 'Ann' and b in ('Bob', 'Ann') and c like 'Ca%' and d = 5 and e < date '2026-01-31'"
    )
    record = kept(text, HASH)
    literals = {one.column: one.literals for one in record.tables[0].filters}
    (ann,) = literals["a"]
    assert ann.kind is LiteralKind.HASHED
    assert literals["b"][1] == ann != literals["b"][0]
    assert literals["c"][0].kind is LiteralKind.HASHED
    assert (literals["d"][0].text, literals["e"][0].text) == ("5", "2026-01-31")
    assert record.sql == (
        f"select 1 from t where a = 'hash-{ann.text}' and b in ('hash-{literals['b'][0].text}', 'hash-{ann.text}') "
        f"and c like 'hash-{HASH.literal(Literal(LiteralKind.STRING, 'Ca%')).text}' and d = 5 and e < date '2026-01-31'"
    )


def test_a_digest_needs_the_key() -> None:
    secret = Literal(LiteralKind.STRING, "Ann")
    assert HASH.literal(secret) == LiteralRules(LiteralPolicy.HASH, KEY).literal(secret)
    assert HASH.literal(secret) != LiteralRules(LiteralPolicy.HASH, KEY[::-1]).literal(secret)
    with pytest.raises(InvalidConfiguration):
        LiteralRules(LiteralPolicy.HASH, b"short")
    assert KEY.decode() not in repr(HASH)


def test_what_a_client_has_hashed_is_hashed_by_the_key_as_well() -> None:
    told = Literal(LiteralKind.HASHED, "27fa7cc0")
    assert HASH.literal(told).text != "27fa7cc0"
    assert KEEP.literal(told) == told


def test_nothing_is_kept_of_dropped_values() -> None:
    record = kept("select 1 from t where a = 'Ann' and b = 5 and c = date '2026-01-31' and d = true", DROP)
    assert {one.literals for one in record.tables[0].filters} == {(Literal(LiteralKind.DROPPED),)}
    assert record.sql == "select ? from t where a = ? and b = ? and c = date ? and d = true"


def test_values_that_become_equal_are_one_filter() -> None:
    record = kept("select 1 from t where a < 5 and a < 6", DROP)
    assert record.tables[0].filters == (Filter("a", Operator.LT, (Literal(LiteralKind.DROPPED),)),)


@each_case(
    ("text", "sql"),
    [
        ("select 1 -- secret\nfrom t", "select 1 from t"),
        ("select /* secret */ 1", "select 1"),
        ("select 1 from t where a = 'never ended", ""),
        ("select 1 from t where where 'secret'", ""),
        ("execute p using 'secret'", f"execute 'hash-{HASH.literal(EXECUTED).text}'"),
        ('select "a b"  from\n\tt', 'select "a b" from t'),
    ],
)
def test_texts_without_their_strings(text: str, sql: str) -> None:
    assert kept(text, HASH).sql == sql


def test_a_kept_text_is_as_it_came_also_where_it_cannot_be_read() -> None:
    assert kept("select 1 -- why\n from 'x", KEEP).sql == "select 1 -- why\n from 'x"


def test_a_long_text_is_cut_behind_the_policy() -> None:
    text = "select 1 from t where a in (" + ", ".join(f"'secret{i}'" for i in range(2_000)) + ")"
    for rules in (KEEP, HASH, DROP):
        assert len(kept(text, rules).sql) == SQL_LENGTH_MAX
    assert "secret" not in kept(text, HASH).sql


def test_of_many_values_only_their_number_stays() -> None:
    values = tuple(Literal(LiteralKind.NUMBER, str(value)) for value in range(VALUES_MAX + 1))
    read = TableRead(TableName("lake", ("db",), "t"), filters=(Filter("a", Operator.IN, values),))
    record = replace(kept("select 1", KEEP), tables=(read,))
    for rules in (KEEP, HASH, DROP):
        (one,) = rules.record(record, None).tables[0].filters
        assert one == Filter("a", Operator.IN, (Literal(LiteralKind.DROPPED, "51 values"),))


# Strings that nothing else in a record can contain, with what ends or escapes strings among them.
SECRETS = st.lists(
    st.sampled_from(
        [
            "ж",
            "ψ",
            "語",
            "'",
            "''",
            '"',
            "\\",
            "--",
            "/*",
            "*/",
            "%",
            "_",
            "(",
            ")",
            ", ",
            " AND ",
            "\n",
            "`",
            "$",
            "{{",
        ]
    ),
    min_size=1,
    max_size=8,
).map("".join)
MARKS = "жψ語"


def quoted(secret: str) -> str:
    return "'" + secret.replace("'", "''") + "'"


@settings(max_examples=300, deadline=None)
@given(
    st.lists(SECRETS, min_size=1, max_size=4),
    st.sampled_from(
        ["a = {}", "a in ({}, 'x')", "a like {}", "f(a, {}) = b", "m[{}] = 1", "not (a <> {})", "a > {} or b = 1"]
    ),
    st.sampled_from([SqlDialect.TRINO, SqlDialect.SPARK, SqlDialect.POSTGRES]),
    st.sampled_from([HASH, DROP]),
)
def test_no_string_of_a_text_is_in_its_record(
    secrets: list[str], form: str, dialect: SqlDialect, rules: LiteralRules
) -> None:
    where = " and ".join(form.format(quoted(secret)) for secret in secrets)
    text = f"select max({quoted(secrets[0])}), count(*) from t where {where} group by concat(a, {quoted(secrets[-1])})"
    encoded = codec.dumps(kept(text, rules, dialect))
    assert not {*MARKS} & {*encoded}
    in_text = {*MARKS} & {*text[:SQL_LENGTH_MAX]}
    assert in_text <= {*codec.dumps(kept(text, KEEP, dialect))}  # so that there was something to find


@settings(max_examples=100, deadline=None)
@given(SECRETS, SECRETS, st.sampled_from([HASH, DROP]))
def test_no_string_of_trinos_plans_is_in_a_record(in_constraint: str, in_predicate: str, rules: LiteralRules) -> None:
    event: Any = json.loads(EVENT)
    plan = json.loads(event["metadata"]["jsonPlan"])
    scan = plan["1"]["children"][0]["children"][0]
    assert scan["name"] == "ScanFilterProject"
    scan["details"][-1] = f"    :: [[{in_constraint}]]"
    scan["descriptor"]["filterPredicate"] = f"(d = varchar {quoted(in_predicate)})"
    event["metadata"]["jsonPlan"] = json.dumps(plan)
    event["metadata"]["query"] = f"select 1 from t where d = {quoted(in_predicate)}"
    record = read_event(json.dumps(event), rules)
    assert record is not None
    assert {one.column for one in record.tables[0].filters} == {"d"}
    assert not {*MARKS} & {*codec.dumps(record)}


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet="ab'\"-/* \n", max_size=30), st.sampled_from([*SqlDialect]))
@example('b""', SqlDialect.DORIS)
@example("""'a'"b\"""", SqlDialect.DORIS)
def test_a_text_of_any_kind_is_readable_behind_the_policy_or_gone(text: str, dialect: SqlDialect) -> None:
    sql = kept(f"select {text}", HASH, dialect).sql
    assume(sql)
    assert parse(sql, dialect).statement is not None
