"""What a text of SQL reads of which tables."""
# ruff: noqa: S608 - no text is run

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import (
    Filter,
    Literal,
    LiteralKind,
    LiteralPolicy,
    Operator,
    QuerySource,
    TableRead,
)
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.sql import Defaults, SqlReads, TextQuery, reads_of, record_of_text
from icewright.queries.sources.sql_text import LENGTH_MAX, SqlDialect, UnreadableSql, parse
from tests.cases import each_case

T, U = TableName("ice", ("db",), "t"), TableName("ice", ("db",), "u")
HERE = Defaults("ice", ("db",))
KNOWN = Defaults("ice", ("db",), {T: ("id", "Day", "s"), U: ("id", "kind")})


def reads(text: str, dialect: SqlDialect = SqlDialect.TRINO, defaults: Defaults = HERE) -> tuple[TableRead, ...]:
    return reads_of(parse(text, dialect), defaults).tables


def read(text: str, dialect: SqlDialect = SqlDialect.TRINO, defaults: Defaults = HERE) -> TableRead:
    (one,) = reads(text, dialect, defaults)
    return one


def shown(filters: tuple[Filter, ...]) -> str:
    """Filters as people would write them."""
    return "; ".join(
        " ".join((one.column, one.operator, *(f"{literal.kind}:{literal.text}" for literal in one.literals)))
        for one in filters
    )


@each_case(
    ("where", "filters"),
    [
        ("id = 5", "id eq number:5"),
        ("5 < id", "id gt number:5"),
        ("id = -5 and d = 1.50", "id eq number:-5; d eq number:1.5"),
        ("id != 5 or false", "id other"),
        ("id in (1, 2, 3)", "id in number:1 number:2 number:3"),
        ("id in (1)", "id eq number:1"),
        ("id not in (1, 2)", "id not-in number:1 number:2"),
        ("id = 1 or (id = 2 or id in (3, 1))", "id in number:1 number:2 number:3"),
        ("id = 1 or day = 2", "id other; day other"),
        ("id = 1 or id > 5", "id other"),
        ("id = 1 or (id = 2 and day = 3)", "id other; day other"),
        ("id between 1 and 5", "id gt-eq number:1; id lt-eq number:5"),
        ("id not between 1 and 5", "id other"),
        ("not (id = 1 or day is null)", "id not-eq number:1; day not-null"),
        ("not (id < 1 and id >= 5)", "id other"),
        ("id is null and day is not null", "id is-null; day not-null"),
        ("id = null", "id other"),
        ("flag and not gone", "flag eq boolean:true; gone not-eq boolean:true"),
        ("flag is true", "flag eq boolean:true"),
        ("s like 'abc%'", "s starts-with string:abc"),
        ("s like 'abc'", "s eq string:abc"),
        ("s like '%abc' and z like 'a_c%' and y not like 'a%'", "s other; z other; y other"),
        ("starts_with(s, 'abc')", "s starts-with string:abc"),
        ("day = date '2026-01-31'", "day eq date:2026-01-31"),
        ("day >= cast('2026-1-3' as date)", "day gt-eq date:2026-01-03"),
        ("ts < timestamp '2026-01-31 10:00'", "ts lt timestamp:2026-01-31T10:00:00.000000"),
        ("ts < timestamp '2026-01-31 10:00:01.5 +02:00'", "ts lt timestamp:2026-01-31T10:00:01.500000+02:00"),
        ("ts < timestamp '2026-01-31 10:00:00 Europe/Berlin'", "ts lt dropped:"),
        ("ts < timestamp '2026-01-31 10:00:00.1234567'", "ts lt dropped:"),
        ("id = bigint '500' and d = decimal '1.5'", "id eq number:500; d eq number:1.5"),
        ("day > current_date - interval '7' day", "day gt dropped:"),
        ("id = ?", "id eq dropped:"),
        ("id = 1e400", "id eq dropped:"),
        ("x = X'65'", "x eq dropped:"),
        ("day = id", "day other; id other"),
        ("id + 1 = 5 and cast(ts as date) = date '2026-01-31'", "id other; ts other"),
        ("id > random()", "id other"),
        ("(id, day) = (1, 2)", "id eq number:1; day eq number:2"),
        ("(id, day) in ((1, 2), (3, 4))", "id other; day other"),
        ("m['k'] = 'v' and s.x.y = 5", "m other; s.x.y eq number:5"),
        ("1 = 1", ""),
        ("ID = 5", "id eq number:5"),
        ("t.id = 5 and db.t.day = 6 and ice.db.t.x = 7", "id eq number:5; day eq number:6; x eq number:7"),
    ],
)
def test_filters(where: str, filters: str) -> None:
    assert shown(read(f"select 1 from t where {where}").filters) == filters


@each_case(
    ("text", "filters"),
    [
        ("select * from (select id as a from t) where a = 1", {T: "id eq number:1"}),
        ("select * from (select * from t) x where x.id = 1", {T: "id eq number:1"}),
        (
            "with c as (select id + 1 as a, day from t) select 1 from c where a = 1 and day = 2",
            {T: "id other; day eq number:2"},
        ),
        ("with c (a, b) as (select id, day from t) select 1 from c where b = 2", {T: "day eq number:2"}),
        ("with t as (select id from t) select 1 from t where id = 1", {T: "id eq number:1"}),
        (
            "select 1 from (select id a from t union all select key from u) where a = 1",
            {T: "id eq number:1", U: "key eq number:1"},
        ),
        ("select 1 from (select id from t limit 5) where id = 1", {T: ""}),
        ("select 1 from (select id, row_number() over (order by day) r from t) where id = 1 and r = 1", {T: ""}),
        ("select 1 from (select id, count(*) n from t group by 1) where id = 1 and n > 5", {T: "id eq number:1"}),
        ("select 1 from (select max(id) id from t) where id = 1", {T: ""}),
        ("select day, count(*) from t group by day having day > 1 and count(*) > 5", {T: "day gt number:1"}),
        (
            "select 1 from t join u on t.id = u.id and t.a = 1 and u.b = 2 where t.c = 3",
            {T: "c eq number:3; a eq number:1", U: "b eq number:2"},
        ),
        (
            "select 1 from t left join u on t.id = u.id and t.a = 1 and u.b = 2 where u.c is null and u.d = 4",
            {T: "", U: "d eq number:4; b eq number:2"},
        ),
        ("select 1 from t right join u on t.id = u.id and t.a = 1 and u.b = 2", {T: "a eq number:1", U: ""}),
        ("select 1 from t full join u on t.id = u.id and t.a = 1 and u.b = 2", {T: "", U: ""}),
        ("select 1 from t where id in (select id from u where kind = 1)", {T: "", U: "kind eq number:1"}),
        (
            "select 1 from t where exists (select 1 from u where u.id = t.id and u.kind = 1 and t.x = 5)",
            {T: "", U: "kind eq number:1"},
        ),
        ("select 1 from t x where x.id = (select max(id) from u)", {T: "id other", U: ""}),
        ("select 1 from t, unnest(t.tags) as w(tag) where tag = 'x' and t.id = 1", {T: "id eq number:1"}),
        ("select 1 from (t join u on t.id = u.id) where t.a = 1 and u.b = 2", {T: "a eq number:1", U: "b eq number:2"}),
        ("delete from t where id = 1", {T: "id eq number:1"}),
        ("update t set id = 2 where day = 1", {T: "day eq number:1"}),
        (
            "merge into t using u on t.id = u.id and t.day = 1 and u.kind = 2 when matched then delete",
            {U: "", T: "day eq number:1"},
        ),
        ("insert into u select * from t where id = 1", {T: "id eq number:1"}),
        ("create table u as select * from t where id = 1", {T: "id eq number:1"}),
        ("create view u as select * from t where id = 1", {}),
        (
            "with recursive c(x) as (select id from t where id = 1 union all select x + 1 from c) select * from c",
            {T: "id eq number:1"},
        ),
        ('select * from "t$files" where id = 1', {}),
        ("select * from information_schema.tables where id = 1", {}),
        ("show tables", {}),
        ("values (1, 'x')", {}),
    ],
)
def test_filters_reach_the_tables_that_they_are_about(text: str, filters: dict[TableName, str]) -> None:
    assert {one.table: shown(one.filters) for one in reads(text)} == filters


def test_a_table_that_is_named_twice_is_read_twice() -> None:
    one, other = reads("select 1 from t a join t b on a.id = b.parent where a.day = 1 and b.day = 2")
    assert (shown(one.filters), one.joined_on) == ("day eq number:1", ("id",))
    assert (shown(other.filters), other.joined_on) == ("day eq number:2", ("parent",))


def test_groups_orders_aggregates_and_joins() -> None:
    one, other = reads(
        "select date_trunc('day', t.ts) d, u.kind, count(*), sum(t.price), count(distinct t.id), approx_distinct(t.id) "
        "from t join u using (id) where t.id in (select id from u) group by 1, u.kind order by u.kind desc, 1 limit 10"
    )[:2]
    assert one.group_by == ("date_trunc(day, ts)",)
    assert one.aggregates == ("count(*)", "sum(price)", "count(distinct id)", "approx_distinct(id)")
    assert one.joined_on == ("id",)
    assert (other.group_by, other.order_by, other.joined_on) == (("kind",), ("kind",), ("id",))


def test_the_limit_is_that_of_the_whole_query() -> None:
    text = "select 1 from t limit 10"
    assert reads_of(parse(text, SqlDialect.TRINO), HERE).limit == 10
    assert reads_of(parse("select 1 from t fetch first 7 rows only", SqlDialect.TRINO), HERE).limit == 7
    assert reads_of(parse(f"select 1 from ({text})", SqlDialect.TRINO), HERE).limit is None


def test_columns_are_those_that_the_query_names() -> None:
    assert read("select a, f(b) from t where c = 1 group by d order by e").columns == ("a", "b", "c", "d", "e")
    assert read("select * from t").columns == ()
    assert read("select count(*) from t").columns == ()
    assert read("select a from (select * from t)").columns == ("a",)


def test_known_schemas_resolve_columns_and_their_spelling() -> None:
    one, other = reads("select day, kind from t, u where DAY = 1 and s.x = 2 and t.id = u.id", defaults=KNOWN)
    assert shown(one.filters) == "Day eq number:1; s.x eq number:2"
    assert (one.columns, other.columns) == (("Day", "s.x", "id"), ("kind", "id"))
    assert read("select * from t", defaults=KNOWN).columns == ("id", "Day", "s")


def test_a_column_that_may_be_of_either_table_is_of_none() -> None:
    one, other = reads("select 1 from t, u where x = 1 and t.y = 2")
    assert (shown(one.filters), shown(other.filters)) == ("y eq number:2", "")


@each_case(
    ("text", "name", "snapshot_id"),
    [
        ("select 1 from a.b.t", TableName("a", ("b",), "t"), None),
        ("select 1 from a.b.c.t", TableName("a", ("b", "c"), "t"), None),
        ("select 1 from b.t", TableName("ice", ("b",), "t"), None),
        ("select 1 from t version as of 123", T, 123),
        ("select 1 from t version as of 'tag'", T, None),
        ("select 1 from a.b.t.snapshot_id_123", TableName("a", ("b",), "t"), 123),
        ("select 1 from a.b.t.branch_audit", TableName("a", ("b",), "t"), None),
        ("select 1 from a.b.`T 1`", TableName("a", ("b",), "T 1"), None),
    ],
)
def test_names_of_spark(text: str, name: TableName, snapshot_id: int | None) -> None:
    one = read(text, SqlDialect.SPARK)
    assert (one.table, one.snapshot_id) == (name, snapshot_id)


def test_metadata_tables_of_spark_are_no_tables() -> None:
    assert reads("select * from a.b.t.files", SqlDialect.SPARK) == ()


@each_case(
    ("text", "says"),
    [
        ("", "0 statements"),
        ("select 1; select 2", "2 statements"),
        ("selec 1", "not SQL of trino"),
        ("select 'it", "not SQL of trino"),
        ("select * from t where `a` = 1", "not SQL of trino"),
        ("select " + "(" * 2_000 + "1" + ")" * 2_000, "nested too deeply"),
        ("select " + "not " * 2_000 + "a", "nested too deeply"),
        ("select " + "array[" * 30 + "1" + "]" * 30, "takes too long"),
        ("select '" + "x" * LENGTH_MAX + "'", "100,000 are read"),
        (
            "with a as (select 1 x from t), "
            + ", ".join(
                f"a{i} as (select 1 x from a{i - 1 if i else ''} p, a{i - 1 if i else ''} q)" for i in range(40)
            )
            + " select * from a39",
            "more than 500 parts",
        ),
        (
            "select 1 from t" + "".join(f" join u{i} on t.a = u{i}.a and b{i} = 1" for i in range(900)),
            "too entangled",
        ),
        ('select * from "a".""."t"', "names a table that cannot be"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, says: str) -> None:
    with pytest.raises(UnreadableSql, match=says):
        reads(text)


def test_a_refusal_quotes_no_secret() -> None:
    for text in (
        "select 'secret",
        "select * from t where x = 'secret' and and",
        "select 'secret' secret secret secret",
    ):
        with pytest.raises(UnreadableSql) as refused:
            reads(text)
        assert "secret" not in f"{refused.value} {refused.value.hint} {refused.value.__cause__}"


def test_nothing_of_a_text_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert reads_of(parse("explain analyze select 'secret'", SqlDialect.TRINO), HERE) == SqlReads()
    assert caplog.records == []


def test_long_texts_of_one_kind_are_read() -> None:
    many = " and ".join(f"a{i} = {i}" for i in range(3_000))
    assert len(read(f"select 1 from t where {many}").filters) == 3_000
    many = " or ".join(f"a = {i}" for i in range(3_000))
    assert len(read(f"select 1 from t where {many}").filters[0].literals) == 3_000
    many = " union all ".join(["select a from t"] * 400)
    assert len(reads(many)) == 400


WORDS = st.sampled_from(
    [
        *("select", "from", "where", "t", "u", "t.id", "id", "*", "(", ")", ",", "=", "<", "and", "or", "not", "in"),
        *("is", "null", "'x'", "5", "join", "on", "left", "group", "by", "order", "limit", "with", "as", "c", "union"),
        *("all", "case", "when", "then", "end", "array", "[", "]", "over", "partition", "exists", "between", "like"),
        *("date", "interval", ".", "-", ";", '"', "`", "'", "/*", "*/", "--", "values", "merge", "delete", "{{", "$$"),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=40), st.sampled_from([SqlDialect.TRINO, SqlDialect.SPARK, SqlDialect.DUCKDB]))
def test_any_words_are_read_or_refused(words: list[str], dialect: SqlDialect) -> None:
    try:
        found = reads_of(parse(" ".join(["select", *words]), dialect), HERE)
    except UnreadableSql:
        return
    assert isinstance(found, SqlReads)


def test_every_dialect_is_known_to_the_parser() -> None:
    for dialect in SqlDialect:
        assert shown(read("select id from t where id = 5", dialect).filters) == "id eq number:5"


def test_a_text_with_what_is_known_of_it_is_a_record() -> None:
    asked = TextQuery(SqlDialect.SPARK, 1_000, user="ann", engine="spark 4.1")
    text, rules = "select id from t where city = 'Bonn' limit 3", LiteralRules(LiteralPolicy.DROP)
    record = record_of_text(text, asked, HERE, rules)
    assert (record.source, record.engine, record.user, record.started_at) == (
        QuerySource.SQL,
        "spark 4.1",
        "ann",
        1_000,
    )
    assert (record.limit, record.sql) == (3, "select id from t where city = ? limit ?")
    assert record.tables[0].filters == (Filter("city", Operator.EQ, (Literal(LiteralKind.DROPPED),)),)
    assert record_of_text(text, asked, HERE, rules) == record
    assert record_of_text(text, replace(asked, started_at=1_001), HERE, rules).query_id != record.query_id
    assert record_of_text(text, replace(asked, query_id="q"), HERE, rules).query_id == "q"
    with pytest.raises(UnreadableSql):
        record_of_text("select from where", asked, HERE, rules)
