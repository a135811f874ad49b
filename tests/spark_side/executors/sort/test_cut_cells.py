"""Rows of a cut layout are where Python says that they are: in their leaf, and in files that are whole leaves."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.core.errors import Unsupported
from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.predicates.comparisons import Literal, LiteralKind, Operator
from icewright.model.iceberg.predicates.cuts import CUTS_MAX, OPERATORS, Cut, CutTree
from icewright_spark.executors.sort.cells import Cells, cells_of
from icewright_spark.executors.sort.literals import as_cut
from tests.builders.orders import KINDS, Kind, array_of, field

LT, LT_EQ = OPERATORS
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - as the column has it


def number(value: Any) -> Literal:
    return Literal(LiteralKind.NUMBER, str(value))


def tree_of(columns: int, *cuts: Cut | None) -> CutTree:
    return CutTree(tuple((f"f{place}",) for place in range(columns)), cuts)


def cells(sample: Any, tree: CutTree, files: int) -> Cells:
    layout = Layout(Curve.CUTS, (field(),) * len(tree.columns), cuts=tree)
    found: Cells = pickle.loads(pickle.dumps(cells_of(sample, layout, files)))  # noqa: S301 - as Spark sends it
    return found


def placed(made: Cells, table: Any) -> tuple[Any, Any]:
    found = made.place(table.combine_chunks().to_batches()[0])
    return np.asarray(found["cell"]), np.asarray(found["key"])


def test_a_leaf_is_a_file_and_null_is_left_and_nan_right() -> None:
    tree = tree_of(2, Cut(0, LT, number(10)), Cut(1, LT_EQ, number(0.5)), None, None, None)
    x = [1, 9, None, 5, 10, 11, 12, 99]
    y = [0.5, -0.0, None, math.nan, 0.0, math.nan, None, 7.0]
    table = pa.table({"x": pa.array(x, pa.int64()), "y": pa.array(y, pa.float64())})
    keys = placed(cells(table, tree, 1), table)[1].tolist()
    assert keys == [0, 0, 0, 1, 2, 2, 2, 2]
    files, keys = placed(cells(table, tree, 2), table)
    assert files.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def literals(kind: Kind) -> st.SearchStrategy[Literal]:
    """Values of the type as a query says them."""
    if pa.types.is_boolean(kind.type):
        return st.booleans().map(lambda value: Literal(LiteralKind.BOOLEAN, str(value).lower()))
    if pa.types.is_string(kind.type) or pa.types.is_large_string(kind.type):
        return kind.values.map(lambda value: Literal(LiteralKind.STRING, value))
    if pa.types.is_date(kind.type):
        days = st.integers(-700_000, 2_900_000).map(lambda day: (EPOCH + timedelta(days=day)).date().isoformat())
        return days.map(lambda said: Literal(LiteralKind.DATE, said))
    if pa.types.is_timestamp(kind.type):
        zone = "" if kind.type.tz is None else "+00:00"
        limit = 9 * 10**15 if kind.type.unit == "ns" else 6 * 10**16
        moments = st.integers(-limit, limit).map(lambda value: (EPOCH + timedelta(microseconds=value)).isoformat())
        return moments.map(lambda said: Literal(LiteralKind.TIMESTAMP, said + zone))
    finite = kind.values.filter(lambda value: not isinstance(value, float) or math.isfinite(value))
    return finite.map(lambda value: number(f"{value:f}" if isinstance(value, Decimal) else repr(value)))


def value_of(literal: Literal, kind: Kind) -> Any:
    """A literal as a value that Python compares with those of the column, in units of temporal types."""
    match literal.kind:
        case LiteralKind.BOOLEAN:
            return literal.text == "true"
        case LiteralKind.STRING:
            return literal.text
        case LiteralKind.DATE:
            return (datetime.fromisoformat(literal.text) - EPOCH).days
        case LiteralKind.TIMESTAMP:
            moment = datetime.fromisoformat(literal.text).replace(tzinfo=None)
            return (moment - EPOCH) // timedelta(microseconds=1) * (1_000 if kind.type.unit == "ns" else 1)
        case _:
            return float(literal.text) if pa.types.is_floating(kind.type) else Decimal(literal.text)


CUT_KINDS = [name for name in KINDS if name not in ("time", "uuid", "binary", "fixed")]


@settings(max_examples=300)
@given(data=st.data(), files=st.integers(1, 6))
def test_rows_are_in_the_leaf_that_python_finds(data: st.DataObject, files: int) -> None:
    names = [data.draw(st.sampled_from(CUT_KINDS)) for _ in range(data.draw(st.integers(1, 2)))]
    kinds = [KINDS[name] for name in names]
    cuts: list[Cut | None] = []
    open_sides = 1
    while open_sides:
        missing = set(range(len(kinds))) - {cut.column for cut in cuts if cut is not None}
        if missing or (len(cuts) < 12 and data.draw(st.booleans())):
            column = min(missing) if missing else data.draw(st.integers(0, len(kinds) - 1))
            literal = data.draw(literals(kinds[column]))
            cuts.append(Cut(column, data.draw(st.sampled_from(OPERATORS)), literal))
            open_sides += 1
        else:
            cuts.append(None)
            open_sides -= 1
    rows = data.draw(
        st.lists(st.tuples(*(st.one_of(st.none(), kind.values) for kind in kinds)), min_size=1, max_size=40)
    )
    table = pa.table({f"f{n}": array_of(kind, [row[n] for row in rows]) for n, kind in enumerate(kinds)})
    count = data.draw(st.integers(0, len(rows)))
    made = cells(table.slice(0, count), tree_of(len(kinds), *cuts), files)
    files_of, keys = placed(made, table)
    found = [leaf_of(row, kinds, cuts) for row in rows]
    # Leaves of the tree may be divided, but keep their order; and files are in the order of leaves.
    pairs = sorted(zip(found, keys.tolist(), strict=True))
    assert all(one[1] <= other[1] for one, other in pairwise(pairs))
    assert all(one[1] < other[1] for one, other in pairwise(pairs) if one[0] < other[0])
    ordered = sorted(zip(keys.tolist(), files_of.tolist(), strict=True))
    assert [file for _, file in ordered] == sorted(files_of.tolist())
    assert all(0 <= file < files for file in files_of.tolist())


def leaf_of(row: Sequence[Any], kinds: Sequence[Kind], cuts: Sequence[Cut | None]) -> int:
    """The leaf by Python's own comparison: cuts in preorder, those on the other side passed over."""
    at = leaf = 0
    while (cut := cuts[at]) is not None:
        at += 1
        if not is_left(row[cut.column], cut, kinds[cut.column]):
            at, leaves = behind(cuts, at)
            leaf += leaves
    return leaf


def behind(cuts: Sequence[Cut | None], at: int) -> tuple[int, int]:
    open_sides, leaves = 1, 0
    while open_sides:
        open_sides += 1 if cuts[at] is not None else -1
        leaves += cuts[at] is None
        at += 1
    return at, leaves


def is_left(value: Any, cut: Cut, kind: Kind) -> bool:
    if value is None:
        return True
    literal, key = value_of(cut.literal, kind), kind.key
    if isinstance(value, (int, Decimal)) and isinstance(literal, Decimal):
        return value < literal or (cut.operator is LT_EQ and value == literal)
    one, other = key(value), key(literal)
    return one < other or (cut.operator is LT_EQ and one == other)


def test_files_are_about_equal_and_have_the_bounds_of_their_leaves() -> None:
    """Each side of a cut has files of its own, as many as its rows; a side of few rows goes with its neighbour."""
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 1_000, 40_000), rng.integers(0, 1_000, 40_000)
    table = pa.table({"x": x, "y": y})
    tree = tree_of(
        2, Cut(0, LT, number(250)), Cut(1, LT, number(5)), None, None, Cut(1, LT_EQ, number(499)), None, None
    )
    files, keys = placed(cells(table.slice(0, 10_000), tree, 8), table)
    rows = np.bincount(files, minlength=8)
    assert 4_500 <= rows.min() <= rows.max() <= 5_500
    bounds = [(x[files == n].min(), x[files == n].max(), y[files == n].min(), y[files == n].max()) for n in range(8)]
    assert sum(low >= 250 for low, *_ in bounds) == 6  # three quarters of the rows
    assert all(high < 250 or low >= 250 for low, high, *_ in bounds)
    right = [(low, high) for left, _, low, high in bounds if left >= 250]
    assert sum(high <= 499 for _, high in right) == 3
    assert sum(low >= 500 for low, _ in right) == 3
    # Leaves of several files are divided by a column: no file of the right has all of x.
    assert all(right - left < 749 for left, right, *_ in bounds if left >= 250)
    assert len(np.unique(keys)) > 8  # the cut that divides no file orders rows in it


def test_a_value_that_fills_files_is_dealt_out_among_them() -> None:
    table = pa.table({"x": np.full(9_000, 7)})
    files, _ = placed(cells(table, tree_of(1, Cut(0, LT, number(3)), None, None), 3), table)
    assert np.bincount(files).tolist() == pytest.approx([3_000] * 3, abs=50)


def test_without_a_sample_files_are_dealt_to_nobody() -> None:
    table = pa.table({"x": np.arange(100)})
    tree = tree_of(1, Cut(0, LT, number(50)), None, None)
    files, keys = placed(cells(table.slice(0, 0), tree, 4), table)
    assert (files.max() < 4, keys.tolist()) == (True, [0] * 50 + [1] * 50)


def test_the_largest_tree_has_places() -> None:
    def full(low: int, high: int) -> list[Cut | None]:
        middle = (low + high) // 2
        return [None] if high - low == 1 else [Cut(0, LT, number(middle)), *full(low, middle), *full(middle, high)]

    table = pa.table({"x": np.arange(25_600) % 256})
    tree = tree_of(1, *full(0, 256))
    assert len(tree.cuts) == 2 * CUTS_MAX + 1
    files, keys = placed(cells(table, tree, 256), table)
    assert files.tolist() == keys.tolist() == (np.arange(25_600) % 256).tolist()


WRONG = [
    tree_of(1, Cut(0, LT, Literal(LiteralKind.STRING, "a")), None, None),
    tree_of(1, Cut(0, Operator.EQ, number(5)), None, None),
    tree_of(1, Cut(0, LT, number(5)), None),
    tree_of(2, Cut(0, LT, number(5)), None, None),
]


@pytest.mark.parametrize("tree", WRONG)
def test_what_is_no_tree_of_the_columns_is_refused(tree: CutTree) -> None:
    with pytest.raises(Unsupported):
        cells(pa.table({f"f{n}": [1, 2, 3] for n in range(len(tree.columns))}), tree, 2)
    with pytest.raises(Unsupported, match="no tree"):
        cells_of(pa.table({"a": [1]}), Layout(Curve.CUTS, (field(),)), 2)


CUTS = [
    ("long", LT, number("5.5"), (LT_EQ, number("5"))),
    ("long", LT_EQ, number("-5.5"), (LT_EQ, number("-6"))),
    ("long", LT, number("1e400"), None),
    ("long", LT, Literal(LiteralKind.STRING, "7"), (LT, number("7"))),
    ("long", LT, Literal(LiteralKind.STRING, "seven"), None),
    ("double", LT, number("0.1"), (LT, number("0.1"))),
    ("decimal(9,2)", LT, number("1.005"), (LT_EQ, number("1.00"))),
    ("string", LT, Literal(LiteralKind.STRING, "x" * 257), None),
    ("string", LT, number("5"), None),
    ("date", LT, Literal(LiteralKind.STRING, "2026-01-02"), (LT, Literal(LiteralKind.DATE, "2026-01-02"))),
    (
        "date",
        LT,
        Literal(LiteralKind.TIMESTAMP, "2026-01-02T12:00:00"),
        (LT_EQ, Literal(LiteralKind.DATE, "2026-01-02")),
    ),
    (
        "timestamptz",
        LT_EQ,
        Literal(LiteralKind.TIMESTAMP, "2026-01-02T03:00:00+02:00"),
        (LT_EQ, Literal(LiteralKind.TIMESTAMP, "2026-01-02T01:00:00+00:00")),
    ),
    ("timestamptz", LT, Literal(LiteralKind.TIMESTAMP, "0001-01-01T00:00:00+01:00"), None),
    ("timestamptz", LT, Literal(LiteralKind.TIMESTAMP, "9999-12-31T23:59:59-01:00"), None),
    (
        "timestamp",
        LT,
        Literal(LiteralKind.DATE, "2026-01-02"),
        (LT, Literal(LiteralKind.TIMESTAMP, "2026-01-02T00:00:00")),
    ),
    ("boolean", LT, Literal(LiteralKind.STRING, "TRUE"), (LT, Literal(LiteralKind.BOOLEAN, "true"))),
]


@pytest.mark.parametrize(("kind", "operator", "literal", "found"), CUTS)
def test_a_cut_is_by_a_value_of_its_column(kind: str, operator: Operator, literal: Literal, found: Any) -> None:
    assert as_cut(operator, literal, KINDS[kind].type) == found
