"""Filters find the rows that Arrow and DuckDB find, and the files that PyIceberg's evaluator keeps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNull,
    StartsWith,
)
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestamptzType,
)

from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator
from icewright_spark.trials.predicates import (
    Columns,
    condition_of,
    files_that_may_match,
    flat_columns,
    rows_that_match,
)
from icewright_spark.trials.table_sample import FILE, TableSample, table_sample
from tests.spark_side.trials.trial_tables import number, text

PATH = ("x",)
COMPARISONS = (Operator.EQ, Operator.NOT_EQ, Operator.LT, Operator.LT_EQ, Operator.GT, Operator.GT_EQ)
SQL = dict(zip(COMPARISONS, ("=", "<>", "<", "<=", ">", ">="), strict=True))
ARROW = dict(
    zip(COMPARISONS, (pc.equal, pc.not_equal, pc.less, pc.less_equal, pc.greater, pc.greater_equal), strict=True)
)
ICEBERG: dict[Operator, Any] = {
    **dict(
        zip(COMPARISONS, (EqualTo, NotEqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual), strict=True)
    ),
    Operator.IN: In,
    Operator.NOT_IN: NotIn,
    Operator.IS_NULL: IsNull,
    Operator.NOT_NULL: NotNull,
    Operator.STARTS_WITH: StartsWith,
}


def day(value: date) -> Literal:
    return Literal(LiteralKind.DATE, value.isoformat())


def moment(value: datetime) -> Literal:
    return Literal(LiteralKind.TIMESTAMP, value.isoformat())


SMALL = st.integers(-4, 4)
MOMENTS = st.builds(lambda n: datetime(2026, 3, 1, tzinfo=UTC) + timedelta(microseconds=n), SMALL)
WORDS = st.text("abé\U0001f600", max_size=4)
KINDS: dict[str, tuple[Any, PrimitiveType, st.SearchStrategy[Any], Any, str]] = {
    "long": (pa.int64(), LongType(), SMALL | st.sampled_from([2**63 - 1, -(2**63)]), number, "BIGINT"),
    "double": (pa.float64(), DoubleType(), st.floats(allow_nan=False, allow_infinity=False), number, "DOUBLE"),
    "decimal": (pa.decimal128(9, 2), DecimalType(9, 2), st.decimals(-9, 9, places=2), number, "DECIMAL(9, 2)"),
    "wide decimal": (pa.decimal128(38, 2), DecimalType(38, 2), st.decimals(-9, 9, places=2), number, "DECIMAL(38, 2)"),
    "string": (pa.string(), StringType(), WORDS, text, "VARCHAR"),
    "date": (pa.date32(), DateType(), st.dates(date(2026, 2, 1), date(2026, 2, 9)), day, "DATE"),
    "timestamptz": (pa.timestamp("us", "UTC"), TimestamptzType(), MOMENTS, moment, "TIMESTAMPTZ"),
}


def sample_of(rows: Any, lower: Any = None, upper: Any = None, **counts: list[int | None]) -> TableSample:
    """A sample of one column; of two bounds for each file, if there are any."""
    files: dict[str, Any] = {"file_path": ["f"], "record_count": [100], "file_size_in_bytes": [1]}
    if lower is not None:
        number_of = len(lower)
        nothing: list[int | None] = [None] * number_of
        said = {
            "value_count": pa.array(counts.get("values", nothing), pa.int64()),
            "null_value_count": pa.array(counts.get("nulls", nothing), pa.int64()),
            "nan_value_count": pa.array(counts.get("nans", nothing), pa.int64()),
            "lower_bound": lower,
            "upper_bound": upper,
        }
        column = pa.StructArray.from_arrays(list(said.values()), list(said))
        files = {
            "file_path": [f"f{place}" if place else "f" for place in range(number_of)],
            "record_count": [10] * number_of,
            "file_size_in_bytes": [1] * number_of,
            "readable_metrics": pa.StructArray.from_arrays([column], ["x"]),
        }
    return table_sample(
        {PATH: rows, (FILE,): pa.array(["f"] * len(rows), pa.string())}, pa.table(files), [PATH], {PATH: "full"}
    )


def found(table: TableSample, item: Filter) -> list[bool] | None:
    column = table.columns[PATH]
    condition = condition_of(item, PATH, column.scale)
    return None if condition is None else [bool(it) for it in rows_that_match(condition, column.rows)]


def kept(table: TableSample, item: Filter) -> list[bool]:
    column = table.columns[PATH]
    condition = condition_of(item, PATH, column.scale)
    assert condition is not None
    return [bool(it) for it in files_that_may_match(condition, column.bounds)]


@given(st.data(), st.sampled_from(list(KINDS)), st.sampled_from(COMPARISONS))
def test_comparisons_find_the_rows_that_arrow_finds(data: st.DataObject, name: str, operator: Operator) -> None:
    kind, _, values, literal, _ = KINDS[name]
    if name == "double":
        values = values | st.just(float("nan"))
    rows = pa.array(data.draw(st.lists(st.none() | values, max_size=20)), kind)
    sought = data.draw(values.filter(lambda value: value == value))  # noqa: PLR0124 - NaN does not equal itself
    expected = ARROW[operator](rows, pa.scalar(sought, kind)).fill_null(False).to_pylist()
    assert found(sample_of(rows), Filter("x", operator, (literal(sought),))) == expected


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@given(data=st.data(), name=st.sampled_from(list(KINDS)))
def test_filters_find_the_rows_that_duckdb_finds(
    database: duckdb.DuckDBPyConnection, data: st.DataObject, name: str
) -> None:
    kind, _, values, literal, sql = KINDS[name]
    rows = pa.array(data.draw(st.lists(st.none() | values, min_size=1, max_size=20)), kind)
    sought = data.draw(st.lists(values, min_size=1, max_size=3))
    listed = ", ".join(f"CAST('{literal(value).text}' AS {sql})" for value in sought)
    filters = {
        f"x IN ({listed})": Filter("x", Operator.IN, tuple(literal(value) for value in sought)),
        f"x NOT IN ({listed})": Filter("x", Operator.NOT_IN, tuple(literal(value) for value in sought)),
        f"x IN ({listed}, NULL)": Filter(
            "x", Operator.IN, (*(literal(value) for value in sought), Literal(LiteralKind.NULL))
        ),
        f"x NOT IN ({listed}, NULL)": Filter(
            "x", Operator.NOT_IN, (*(literal(value) for value in sought), Literal(LiteralKind.NULL))
        ),
        "x = NULL": Filter("x", Operator.EQ, (Literal(LiteralKind.NULL),)),
        "x <> NULL": Filter("x", Operator.NOT_EQ, (Literal(LiteralKind.NULL),)),
        "x IS NULL": Filter("x", Operator.IS_NULL),
        "x IS NOT NULL": Filter("x", Operator.NOT_NULL),
    }
    if name == "string":
        filters[f"starts_with(x, '{sought[0]}')"] = Filter("x", Operator.STARTS_WITH, (literal(sought[0]),))
    table = sample_of(rows)
    columns = ", ".join(f"coalesce({condition}, false)" for condition in filters)
    database.register("sampled", pa.table({"x": rows}))
    answers = database.execute(f"SELECT {columns} FROM sampled").fetchall()  # noqa: S608 - words of this test
    for place, item in enumerate(filters.values()):
        assert found(table, item) == [row[place] for row in answers], item


def iceberg_expression(operator: Operator, sought: list[Any]) -> Any:
    if operator in (Operator.IS_NULL, Operator.NOT_NULL):
        return ICEBERG[operator]("x")
    return ICEBERG[operator]("x", sought if operator in (Operator.IN, Operator.NOT_IN) else sought[0])


@given(st.data(), st.sampled_from(list(KINDS)), st.sampled_from([it for it in Operator if it is not Operator.OTHER]))
def test_files_are_kept_as_by_pyiceberg(data: st.DataObject, name: str, operator: Operator) -> None:
    kind, iceberg, values, literal, _ = KINDS[name]
    if operator is Operator.STARTS_WITH and name != "string":
        return
    ends = [sorted(data.draw(st.tuples(values, values))) for _ in range(4)]
    known = data.draw(st.lists(st.sampled_from(["both", "lower", "upper", "none"]), min_size=4, max_size=4))
    lower = [low if which in ("both", "lower") else None for (low, _), which in zip(ends, known, strict=True)]
    upper = [high if which in ("both", "upper") else None for (_, high), which in zip(ends, known, strict=True)]
    nulls = data.draw(st.lists(st.sampled_from([None, 0, 3, 10]), min_size=4, max_size=4))
    counted = [None, 0, 10] if name == "double" else [None]
    nans = data.draw(st.lists(st.sampled_from(counted), min_size=4, max_size=4))
    sought = data.draw(st.lists(values, min_size=1, max_size=3, unique=True))
    literals = tuple(literal(value) for value in sought)
    if operator in (Operator.IS_NULL, Operator.NOT_NULL):
        literals = ()
    elif operator not in (Operator.IN, Operator.NOT_IN):
        literals = literals[:1]
    table = sample_of(
        pa.array([], kind), pa.array(lower, kind), pa.array(upper, kind), values=[10] * 4, nulls=nulls, nans=nans
    )
    schema = Schema(NestedField(1, "x", iceberg, required=False))
    evaluator = _InclusiveMetricsEvaluator(schema, iceberg_expression(operator, sought))
    expected = [
        evaluator.eval(data_file(iceberg, low, high, null, nan))
        for low, high, null, nan in zip(lower, upper, nulls, nans, strict=True)
    ]
    assert kept(table, Filter("x", operator, literals)) == expected


def data_file(kind: PrimitiveType, low: Any, high: Any, nulls: int | None, nans: int | None) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path="f",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=10,
        file_size_in_bytes=1,
        value_counts={1: 10},
        null_value_counts={} if nulls is None else {1: nulls},
        nan_value_counts={} if nans is None else {1: nans},
        lower_bounds={} if low is None else {1: to_bytes(kind, low)},
        upper_bounds={} if high is None else {1: to_bytes(kind, high)},
    )


def test_nan_as_a_bound_cannot_be_relied_upon() -> None:
    nan = pa.array([float("nan")])
    table = sample_of(pa.array([], pa.float64()), nan, nan)
    for operator in COMPARISONS:
        assert kept(table, Filter("x", operator, (number(1),))) == [True]


def test_an_in_of_many_literals_skips_no_file() -> None:
    table = sample_of(pa.array([], pa.int64()), pa.array([5_000]), pa.array([5_000]))
    assert kept(table, Filter("x", Operator.IN, tuple(number(value) for value in range(200)))) == [False]
    assert kept(table, Filter("x", Operator.IN, tuple(number(value) for value in range(201)))) == [True]


@pytest.mark.parametrize(
    ("kind", "rows", "operator", "literal", "expected"),
    [
        (pa.int32(), [3, 4, None], Operator.LT, number("3.5"), [True, False, False]),
        (pa.int32(), [3, 4], Operator.GT_EQ, number("3.5"), [False, True]),
        (pa.int32(), [3, 4], Operator.EQ, number("3.5"), [False, False]),
        (pa.int32(), [-4, -3], Operator.LT, number("-3.5"), [True, False]),
        (pa.int64(), [2**63 - 1], Operator.LT, number(2**63), [True]),
        (pa.int64(), [-(2**63)], Operator.GT, number("-1e40"), [True]),
        (pa.int64(), [1], Operator.LT, number("1e999999"), [True]),
        (pa.int64(), [1], Operator.GT, number("1e-999999"), [True]),
        (pa.decimal128(38, 37), [Decimal("0.5")], Operator.LT, number("0." + "5" * 60), [True]),
        (pa.decimal128(38, 0), [Decimal(5)], Operator.LT, number(10**40), [True]),
        (pa.decimal128(38, 0), [Decimal(-5)], Operator.LT, number("-4.5"), [True]),
        (pa.float64(), [1.0, float("inf")], Operator.LT, number("1e400"), [True, False]),
        (pa.bool_(), [True, False, None], Operator.EQ, Literal(LiteralKind.BOOLEAN, "true"), [True, False, False]),
        (pa.date32(), [date(2026, 1, 1), date(2026, 1, 2)], Operator.LT, text("2026-01-01T12:00"), [True, False]),
        (pa.timestamp("ms"), [datetime(2026, 1, 1)], Operator.LT, text("2026-01-01 00:00:00.000001"), [True]),  # noqa: DTZ001 - without a zone
        (
            pa.timestamp("ns", "UTC"),
            [datetime(2026, 1, 1, 12, tzinfo=UTC)],
            Operator.EQ,
            moment(datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))),
            [True],
        ),
        (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, tzinfo=UTC)], Operator.EQ, day(date(2026, 1, 1)), [True]),
        # As Iceberg prints them in Spark's plans.
        (pa.date32(), [date(2026, 1, 2), date(2026, 1, 3), None], Operator.EQ, number(20455), [True, False, False]),
        (pa.date32(), [date(2026, 1, 1), date(2026, 1, 2), None], Operator.GT_EQ, number(20455), [False, True, False]),
        (
            pa.timestamp("us", "UTC"),
            [datetime(2026, 1, 3, tzinfo=UTC), datetime(2026, 1, 2, 23, 59, 59, 999_999, tzinfo=UTC)],
            Operator.GT_EQ,
            number(1767398400000000),
            [True, False],
        ),
        (pa.timestamp("us"), [datetime(2026, 1, 3)], Operator.EQ, number(1767398400000000), [True]),  # noqa: DTZ001 - ditto
        (pa.timestamp("ns"), [datetime(2026, 1, 3)], Operator.EQ, number(1767398400000000000), [True]),  # noqa: DTZ001 - ditto
        (pa.string(), ["a", "é", "zz"], Operator.STARTS_WITH, text(""), [True, True, True]),
    ],
)
def test_literals_are_compared_as_what_they_are(
    kind: Any, rows: list[Any], operator: Operator, literal: Literal, expected: list[bool]
) -> None:
    assert found(sample_of(pa.array(rows, kind)), Filter("x", operator, (literal,))) == expected


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        (pa.int64(), Filter("x", Operator.EQ, (Literal(LiteralKind.HASHED, "ab"),))),
        (pa.int64(), Filter("x", Operator.IN, (number(1), Literal(LiteralKind.DROPPED)))),
        (pa.int64(), Filter("x", Operator.OTHER, (number(1),))),
        (pa.int64(), Filter("x", Operator.EQ, (text("one"),))),
        (pa.int64(), Filter("x", Operator.EQ, (number("NaN"),))),
        (pa.int64(), Filter("x", Operator.EQ, (day(date(2026, 1, 1)),))),
        (pa.int64(), Filter("x", Operator.LT, (number(1), number(2)))),
        (pa.int64(), Filter("x", Operator.EQ)),
        (pa.int64(), Filter("x", Operator.STARTS_WITH, (text("1"),))),
        (pa.string(), Filter("x", Operator.EQ, (number(1),))),
        (pa.timestamp("us"), Filter("x", Operator.EQ, (moment(datetime(2026, 1, 1, tzinfo=UTC)),))),
        (pa.timestamp("us"), Filter("x", Operator.EQ, (text("yesterday"),))),
        (pa.time64("us"), Filter("x", Operator.EQ, (text("12:00:00"),))),
        (pa.bool_(), Filter("x", Operator.EQ, (number(1),))),
        (pa.timestamp("ms"), Filter("x", Operator.EQ, (number(1),))),  # Iceberg has none
        (pa.date32(), Filter("x", Operator.EQ, (number("NaN"),))),
    ],
)
def test_what_cannot_be_evaluated_is_no_condition(kind: Any, item: Filter) -> None:
    assert found(sample_of(pa.array([None], kind)), item) is None


def test_names_are_matched_whatever_their_case_unless_that_is_ambiguous() -> None:
    columns = Columns([("UserId",), ("a", "b"), ("x",), ("X",)])
    assert columns.find("userid") == ("UserId",)
    assert columns.find("A.B") == ("a", "b")
    assert [columns.find(name) for name in ("x", "X", "b", "user_id", "")] == [None] * 5


def test_columns_in_structs_are_found_by_their_paths() -> None:
    nested = pa.array([{"b": 1, "c": {"d": "x"}}, None])
    flat = flat_columns(pa.table({"a": nested, "l": pa.array([[1], []])}))
    assert {path: values.to_pylist() for path, values in flat.items()} == {
        ("l",): [[1], []],
        ("a", "b"): [1, None],
        ("a", "c", "d"): ["x", None],
    }


def test_nothing_matches_a_comparison_with_null_whatever_the_rows() -> None:
    table = sample_of(pa.array([1, None]), pa.array([1]), pa.array([1]))
    assert kept(table, Filter("x", Operator.EQ, (Literal(LiteralKind.NULL),))) == [False]
    assert np.asarray(found(table, Filter("x", Operator.LT, (Literal(LiteralKind.NULL),)))).sum() == 0
