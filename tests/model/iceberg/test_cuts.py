"""Trees of cuts as text: the same tree comes back, and what is none is refused with what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core import codec
from icewright.model.iceberg.layouts import Curve, Layout, LayoutExpression, run_of
from icewright.model.iceberg.predicates.comparisons import Literal, LiteralKind, Operator
from icewright.model.iceberg.predicates.cuts import (
    CUTS_MAX,
    DEPTH_MAX,
    LITERAL_LENGTH_MAX,
    OPERATORS,
    TEXT_LENGTH_MAX,
    Cut,
    CutsError,
    CutTree,
    fits_type,
    parse_cuts,
)
from icewright.model.iceberg.tables import LAYOUT_KEY, LEVEL_KEY, TASK_ID_KEY, Operation, Snapshot, SortField
from tests.cases import each_case


def number(text: str) -> Literal:
    return Literal(LiteralKind.NUMBER, text)


LITERALS = st.one_of(
    st.integers().filter(lambda value: abs(value) < 10**40).map(lambda value: number(str(value))),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: number(repr(value))),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(lambda it: Literal(LiteralKind.STRING, it)),
    st.booleans().map(lambda value: Literal(LiteralKind.BOOLEAN, str(value).lower())),
    st.dates().map(lambda value: Literal(LiteralKind.DATE, value.isoformat())),
    st.datetimes().map(lambda value: Literal(LiteralKind.TIMESTAMP, value.isoformat())),
)


@st.composite
def trees(draw: st.DrawFn) -> CutTree:
    """Trees of any shape, whose columns all have a cut."""
    count = draw(st.integers(1, 8))
    cuts: list[Cut | None] = []
    open_sides = 1
    while open_sides:
        columns = {cut.column for cut in cuts if cut is not None}
        missing = set(range(count)) - columns
        if missing or (len(cuts) < 40 and draw(st.booleans())):
            column = min(missing) if missing else draw(st.integers(0, count - 1))
            cuts.append(Cut(column, draw(st.sampled_from(OPERATORS)), draw(LITERALS)))
            open_sides += 1
        else:
            cuts.append(None)
            open_sides -= 1
    names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10)
    paths = st.lists(names, min_size=1, max_size=3).map(tuple)
    return CutTree(tuple(draw(st.lists(paths, min_size=count, max_size=count, unique=True))), tuple(cuts))


@given(trees())
def test_the_text_of_a_tree_is_read_back_as_it(tree: CutTree) -> None:
    assert parse_cuts(tree.text) == tree
    assert parse_cuts(json.dumps(json.loads(tree.text), indent=1)).id == tree.id
    assert codec.loads(CutTree, codec.dumps(tree)) == tree


def said(**changes: Any) -> str:
    """A tree of one cut, with changes."""
    return json.dumps({"version": 1, "columns": [["a"]], "cuts": [[0, "lt", "number", "5"], None, None], **changes})


ONE = [0, "lt", "number", "5"]


def test_a_tree_says_the_same_id_in_every_release() -> None:
    tree = parse_cuts(said())
    assert tree == CutTree((("a",),), (Cut(0, Operator.LT, number("5")), None, None))
    assert tree.text == '{"version":1,"columns":[["a"]],"cuts":[[0,"lt","number","5"],null,null]}'
    assert tree.id == "08a8d6d2de468b12"
    assert str(LayoutExpression.by_cuts(tree)) == f"cuts({tree.id})"


WRONG = [
    ("", "not JSON"),
    ("[" * 10_000, "not JSON"),
    ("{" * 20_000, "characters"),
    (said(cuts=[[0, "lt", "string", "x" * TEXT_LENGTH_MAX], None, None]), "characters"),
    ("[]", "not an object"),
    (said(more=1), "not an object"),
    (said(version=2), "another release"),
    (said(version=True), "another release"),
    (said(columns="a"), "list of paths"),
    (said(columns=["a"]), "list of paths"),
    (said(columns=[]), "columns that differ"),
    (said(columns=[["a"], ["a"]]), "columns that differ"),
    (said(columns=[[""]]), "no name"),
    (said(columns=[[5]]), "no name"),
    (said(columns=[[]]), "no name"),
    (said(columns=[[["a"]]]), "no name"),
    (said(columns=[[{}]]), "no name"),
    (said(columns=[["\ud800"]]), "no name"),
    (said(columns=[["a"], ["b"]]), "a column has no cut"),
    (said(cuts=[None]), "0 cuts"),
    (said(cuts={}), "no list"),
    (said(cuts=[ONE, None]), "no leaf"),
    (said(cuts=[ONE, None, None, None]), "follows the last leaf"),
    (said(cuts=[[1, "lt", "number", "5"], None, None]), "no column of the tree"),
    (said(cuts=[[-1, "lt", "number", "5"], None, None]), "no column of the tree"),
    (said(cuts=[[True, "lt", "number", "5"], None, None]), "no list of column"),
    (said(cuts=[[0, "eq", "number", "5"], None, None]), "no operator of cuts"),
    (said(cuts=[[0, "<", "number", "5"], None, None]), "unknown"),
    (said(cuts=[[0, "lt", "hashed", "5"], None, None]), "no value"),
    (said(cuts=[[0, "lt", "number", "NaN"], None, None]), "no value"),
    (said(cuts=[[0, "lt", "number", "1e99999"], None, None]), "no value"),
    (said(cuts=[[0, "lt", "number", "\u0665"], None, None]), "no value"),
    (said(cuts=[[0, "lt", "boolean", "yes"], None, None]), "no value"),
    (said(cuts=[[0, "lt", "date", "2026-02-30"], None, None]), "no value"),
    (said(cuts=[[0, "lt", "string", "\udfff"], None, None]), "no value"),
    (said(cuts=[[0, "lt", "timestamp", "2026-01-01\ud80012:00:00"], None, None]), "no value"),
    (said(cuts=[[0, "lt", "timestamp", "0001-01-01T00:00:00+01:00"], None, None]), "no value"),
    (said(cuts=[[0, "lt", "string", "x" * (LITERAL_LENGTH_MAX + 1)], None, None]), "too long"),
    (said(cuts=[ONE] * (CUTS_MAX + 1) + [None] * (CUTS_MAX + 2)), "at most"),
    (said(cuts=[ONE] * (DEPTH_MAX + 1) + [None] * (DEPTH_MAX + 2)), "cuts deep"),
]


@each_case(("text", "problem"), WRONG)
def test_what_is_no_tree_is_refused(text: str, problem: str) -> None:
    with pytest.raises(CutsError, match=problem):
        parse_cuts(text)


def test_the_deepest_and_the_largest_tree_are_taken() -> None:
    assert parse_cuts(said(cuts=[ONE] * DEPTH_MAX + [None] * (DEPTH_MAX + 1))).cuts[DEPTH_MAX] is None

    def full(depth: int) -> list[Any]:
        return [None] if depth == 0 else [ONE, *full(depth - 1), *full(depth - 1)]

    assert len(parse_cuts(said(cuts=full(8))).cuts) == 2 * CUTS_MAX + 1


FITS = [
    ("int", number("5"), True),
    ("long", number("5.5"), True),
    ("decimal(20, 2)", number("5"), True),
    ("double", number("1e+16"), True),
    ("string", number("5"), False),
    ("int", Literal(LiteralKind.STRING, "5"), False),
    ("date", Literal(LiteralKind.DATE, "2026-01-01"), True),
    ("date", Literal(LiteralKind.TIMESTAMP, "2026-01-01T00:00:00"), False),
    ("timestamp", Literal(LiteralKind.TIMESTAMP, "2026-01-01T00:00:00"), True),
    ("timestamp", Literal(LiteralKind.TIMESTAMP, "2026-01-01T00:00:00+00:00"), False),
    ("timestamptz", Literal(LiteralKind.TIMESTAMP, "2026-01-01T00:00:00+00:00"), True),
    ("timestamp", Literal(LiteralKind.DATE, "2026-01-01"), True),
    ("boolean", Literal(LiteralKind.BOOLEAN, "true"), True),
    ("uuid", Literal(LiteralKind.STRING, "x"), False),
    ("binary", Literal(LiteralKind.STRING, "x"), False),
    ({"type": "struct", "fields": []}, number("5"), False),
]


@each_case(("kind", "literal", "fits"), FITS)
def test_a_literal_is_a_value_of_a_type_or_is_none(kind: Any, literal: Literal, *, fits: bool) -> None:
    assert fits_type(literal, kind) is fits


def test_snapshots_say_the_id_alone_and_are_read_back() -> None:
    tree = parse_cuts(said())
    layout = Layout(Curve.CUTS, (SortField(1, "identity", "asc", "nulls-first"),), cuts=tree)
    assert layout.key == f"cuts({tree.id})"
    summary = {TASK_ID_KEY: "task-1", LEVEL_KEY: "level-1", LAYOUT_KEY: layout.key}
    run = run_of(Snapshot(1, None, 1, 0, Operation.REPLACE, "x", 0, summary))
    assert run is not None
    assert run.layout == layout.key
    for other in ("cuts()", "cuts(0123456789ABCDEF)", "cuts(0123456789abcdef0)", f"cuts({tree.text})"):
        assert run_of(Snapshot(1, None, 1, 0, Operation.REPLACE, "x", 0, {**summary, LAYOUT_KEY: other})) is None
