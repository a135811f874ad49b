from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.model.iceberg.layouts import COLUMN_CURVES, NO_LAYOUT, Curve, LayoutColumn, LayoutExpression
from icewright.policy.effective import effective_policy
from icewright.policy.layout_text import COLUMNS_MAX, LayoutTextError, parse_layout
from icewright.policy.settings import BY_KEY, LAYOUT_KEY, value_problem
from tests.builders.observations import table
from tests.cases import each_case


def column(*path: str, direction: str = "asc", null_order: str = "nulls-first") -> LayoutColumn:
    return LayoutColumn(path, direction, null_order)


WRITTEN = [
    ("sort(ts)", "sort(ts)", LayoutExpression(Curve.SORT, (column("ts"),))),
    (
        " SORT(ts\tDESC , id)\n",
        "sort(ts desc, id)",
        LayoutExpression(Curve.SORT, (column("ts", direction="desc", null_order="nulls-last"), column("id"))),
    ),
    (
        "sort(ts Desc Nulls First, id asc nulls last)",
        "sort(ts desc nulls first, id nulls last)",
        LayoutExpression(Curve.SORT, (column("ts", direction="desc"), column("id", null_order="nulls-last"))),
    ),
    (
        "CUTS( 0123456789abcdef )",
        "cuts(0123456789abcdef)",
        LayoutExpression(Curve.CUTS, (), cuts_id="0123456789abcdef"),
    ),
    ("zorder(a,b)", "zorder(a, b)", LayoutExpression(Curve.ZORDER, (column("a"), column("b")))),
    (
        "Hilbert( User_id , ts )",
        "hilbert(User_id, ts)",
        LayoutExpression(Curve.HILBERT, (column("User_id"), column("ts"))),
    ),
    (
        "sort(address . `zip``code`.städte, `2 x`)",
        "sort(address.`zip``code`.städte, `2 x`)",
        LayoutExpression(Curve.SORT, (column("address", "zip`code", "städte"), column("2 x"))),
    ),
    ("sort(desc desc, nulls nulls last)", "sort(desc desc, nulls nulls last)", None),
    ("none", "none", NO_LAYOUT),
]


@each_case(("text", "canonical", "expected"), WRITTEN)
def test_what_owners_write(text: str, canonical: str, expected: LayoutExpression | None) -> None:
    layout = parse_layout(text)
    assert str(layout) == canonical
    assert expected is None or layout == expected


WRONG = [
    ("", "at the end: sort, zorder, hilbert, cuts or none is missing"),
    ("range(a)", "at character 1, 'range(a)': sort, zorder, hilbert, cuts or none is missing"),
    ("sort ts", "at character 6, 'ts': ( is missing"),
    ("sort()", "at character 6, ')': a column is missing"),
    ("sort(a", "at the end: a comma or ) is missing"),
    ("sort(a,)", "at character 8, ')': a column is missing"),
    ("sort(a b)", "at character 8, 'b)': asc, desc, nulls first, nulls last, a comma or ) is missing"),
    ("sort(a desc asc)", "at character 13, 'asc)': asc, desc, nulls first, nulls last, a comma or ) is missing"),
    ("sort(a nulls)", "at character 13, ')': first or last is missing"),
    ("sort(a) , b", "at character 9, ', b': nothing may follow a layout"),
    ("cuts(a)", "at character 6, 'a)': the id of a tree of cuts is missing, 16 hexadecimal digits"),
    ("cuts(0123456789abcdef0)", "at character 22, '0)': ) is missing"),
    ("none()", "at character 5, '()': nothing may follow a layout"),
    ("sort(a..b)", "at character 8, '.b)': a column is missing"),
    ("sort(`a)", "at character 6, '`a)': a backtick that is not closed, or holds no name"),
    ("sort(``)", "at character 6, '``)': a backtick that is not closed, or holds no name"),
    ("sort(a, b, a)", "at character 12, 'a)': the same column again"),
    ("sort(a.b, a . `b`)", "at character 11, 'a . `b`)': the same column again"),
    ("hilbert(a)", "hilbert is for 2 to 4 columns, and sort for one"),
    ("hilbert(a, b, c, d, e)", "at character 21, 'e)': hilbert takes at most 4 columns"),
    ("zorder(a, b desc)", "at character 13, 'desc)': zorder knows no direction and no place for nulls, only sort does"),
    ("sort(a, \u202eb)", "at character 9, '\\u202eb)': a column is missing"),
]


@each_case(("text", "problem"), WRONG)
def test_what_is_wrong_is_said_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(LayoutTextError) as caught:
        parse_layout(text)
    assert str(caught.value) == problem


def test_as_a_setting() -> None:
    policy = effective_policy(table(properties={LAYOUT_KEY: "sort(ts, )"}), ())
    assert policy.layout is None
    (problem,) = policy.problems
    assert problem.problem.startswith("'sort(ts, )' is not sort(a, b.c desc nulls last), zorder(a, b), ")
    assert problem.problem.endswith(" or none: at character 10, ')': a column is missing")
    assert effective_policy(table(properties={LAYOUT_KEY: "none"}), ()).layout == NO_LAYOUT


names = st.text(min_size=1, max_size=8) | st.sampled_from(["desc", "nulls", "first", "a.b", "`", "none", "sort"])
paths = st.lists(names, min_size=1, max_size=3).map(tuple)
orders = st.tuples(st.sampled_from(["asc", "desc"]), st.sampled_from(["nulls-first", "nulls-last"]))


@st.composite
def layouts(draw: st.DrawFn) -> LayoutExpression:
    curve = draw(st.sampled_from(COLUMN_CURVES))
    least, most = (1, 6) if curve is Curve.SORT else (2, COLUMNS_MAX[curve])
    columns = draw(st.lists(paths, min_size=least, max_size=most, unique=True))
    order = orders if curve is Curve.SORT else st.just(("asc", "nulls-first"))
    return LayoutExpression(curve, tuple(LayoutColumn(path, *draw(order)) for path in columns))


@given(layouts() | st.just(NO_LAYOUT))
def test_the_text_of_a_layout_is_read_back_as_it(layout: LayoutExpression) -> None:
    assert parse_layout(str(layout)) == layout


@given(st.text() | st.text(alphabet="sort(),`. abdescnulls"))
def test_any_text_is_a_layout_or_a_problem_of_one_line(text: str) -> None:
    problem = value_problem(BY_KEY[LAYOUT_KEY], text)
    if problem is None:
        assert parse_layout(str(parse_layout(text))) == parse_layout(text)
    else:
        assert problem.isprintable()


def test_text_of_hostile_length_is_not_read() -> None:
    with pytest.raises(LayoutTextError, match="more than 10,000 characters"):
        parse_layout("sort(" + "a" * 1_000_000 + ")")
