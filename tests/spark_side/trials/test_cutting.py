"""Cuts from the filters of older queries, tried on newer ones as every other layout is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icewright.model.iceberg.layouts import Curve, LayoutColumn, LayoutExpression
from icewright.model.iceberg.predicates.comparisons import LiteralKind, Operator
from icewright.model.iceberg.predicates.cuts import CUTS_MAX, TEXT_LENGTH_MAX, Cut, CutTree, check_cuts, parse_cuts
from icewright.model.queries.queries import Filter, QueryRecord
from icewright.model.queries.recommendations import LayoutChange, Recommendation
from icewright_spark.trials.cutting import cut_tree
from icewright_spark.trials.predicates import Columns, flat_columns
from icewright_spark.trials.recommend import Options, recommend
from icewright_spark.trials.simulation import Simulation, scanned
from icewright_spark.trials.table_sample import TableSample, table_sample
from icewright_spark.trials.workload import Workload, reads_of, workload_of
from tests.spark_side.trials.trial_tables import TABLE, Made, between, equals, in_files, number, queries, text

ROWS, FILES = 48_000, 32


def of_a_log(seed: int) -> tuple[Made, Callable[[int], Sequence[Filter]]]:
    """Few users and sizes have most rows; queries ask for a time and one of user, size or status."""
    rng = np.random.default_rng(seed)
    made = in_files(
        {
            "at": rng.integers(0, 10**6, ROWS),
            "user": np.minimum((rng.pareto(1.2, ROWS) * 10).astype(np.int64), 10**5),
            "status": rng.choice(5, ROWS, p=[0.8, 0.1, 0.05, 0.03, 0.02]),
            "size": rng.lognormal(3, 2, ROWS),
        },
        FILES,
    )
    chance = np.random.default_rng(seed + 100)

    def filters(place: int) -> Sequence[Filter]:
        low = int(chance.integers(400_000, 800_000))
        size = str(round(float(chance.lognormal(6, 1)), 2))
        others = (
            equals("user", number(int(chance.integers(1, 200)))),
            equals("status", number(int(chance.integers(1, 5)))),
            Filter("size", Operator.GT, (number(size),)),
        )
        return [*between("at", low, low + 200_000), others[place % 3]]

    return made, filters


def workload(table: TableSample, asked: Sequence[QueryRecord]) -> Workload:
    reads, _ = reads_of(asked, TABLE, Columns(list(table.columns)))
    return workload_of(reads, table.columns)[0]


def sampled(made: Made, rows_per_file: int = 100, partitions: Sequence[str] | None = None) -> TableSample:
    names = [(name,) for name in made.rows.column_names]
    return table_sample(flat_columns(made.sample(rows_per_file)), made.listed(partitions), names, {})


def tree_of(made: Made, asked: Sequence[QueryRecord], partitions: Sequence[str] | None = None) -> CutTree | None:
    table = sampled(made, partitions=partitions)
    return cut_tree(workload(table, asked), table.columns, Simulation(table), list(table.columns))


def share_read(table: TableSample, layout: LayoutExpression, asked: Workload) -> float:
    then = scanned(asked.conditions, Simulation(table).under(layout))
    return float((then.bytes * asked.weights).sum() / asked.weights.sum() / table.files.bytes.sum())


@pytest.mark.parametrize("seed", range(4))
def test_on_a_skewed_log_later_queries_read_less_under_cuts_than_under_any_curve(seed: int) -> None:
    made, filters = of_a_log(seed)
    asked = queries(400, filters)
    found = recommend(TABLE, made.sample(100), made.listed(), asked)
    assert isinstance(found.candidate, LayoutChange)
    tree = found.candidate.layout.cuts
    assert tree is not None, found.candidate
    assert parse_cuts(tree.text) == tree
    table = sampled(made, 400)
    later = workload(table, queries(300, filters, first=400))
    others = [
        trial.candidate.layout
        for trial in found.trials
        if isinstance(trial.candidate, LayoutChange) and trial.candidate.layout.curve is not Curve.CUTS
    ]
    assert {layout.curve for layout in others} == {Curve.SORT, Curve.ZORDER, Curve.HILBERT}
    best = min(share_read(table, layout, later) for layout in others)
    assert share_read(table, found.candidate.layout, later) < 0.95 * best
    assert {caveat.code for caveat in found.caveats} >= {"cuts-age"}


def test_what_cuts_would_read_is_not_what_they_were_made_from() -> None:
    """Half of the older queries predict the other half: queries that never come again gain no cut its place."""
    made, filters = of_a_log(9)
    asked = queries(200, filters)
    trials = {type(one.candidate).__name__ + str(one.candidate): one for one in recommended(made, asked).trials}
    (by_cuts,) = [trial for name, trial in trials.items() if "cuts(" in name]
    assert isinstance(by_cuts.candidate, LayoutChange)
    table = sampled(made)
    older = workload(table, asked[:100])
    assert by_cuts.train.bytes_share > 1.05 * share_read(table, by_cuts.candidate.layout, older) / now(table, older)


def test_the_cuts_that_the_table_has_are_tried_where_they_are_values_of_its_columns() -> None:
    made, filters = of_a_log(5)
    asked = queries(100, filters)
    tree = tree_of(made, asked[:50])
    assert tree is not None
    own = LayoutExpression.by_cuts(tree)
    found = recommend(TABLE, made.sample(100), made.listed(), asked, Options(current=own))
    assert str(own) in {str(trial.candidate) for trial in found.trials}
    cuts = tuple(None if cut is None else replace(cut, literal=text("a")) for cut in tree.cuts)
    other = LayoutExpression.by_cuts(replace(tree, cuts=cuts))
    found = recommend(TABLE, made.sample(100), made.listed(), asked, Options(current=other))
    assert str(other) not in {str(trial.candidate) for trial in found.trials}
    unknown = LayoutExpression(Curve.CUTS, (), cuts_id=tree.id)
    assert recommend(TABLE, made.sample(100), made.listed(), asked, Options(current=unknown)).trials


def now(table: TableSample, asked: Workload) -> float:
    found = scanned(asked.conditions, Simulation(table).now())
    return float((found.bytes * asked.weights).sum() / asked.weights.sum() / table.files.bytes.sum())


def recommended(made: Made, asked: Sequence[QueryRecord]) -> Recommendation:
    return recommend(TABLE, made.sample(100), made.listed(), asked, Options())


def test_the_same_queries_give_the_same_tree() -> None:
    made, filters = of_a_log(3)
    asked = queries(100, filters)
    tree = tree_of(made, asked)
    assert tree is not None
    assert tree_of(made, asked[::-1]) == tree
    check_cuts(tree)


def test_cuts_are_where_filters_begin_and_end() -> None:
    rng = np.random.default_rng(2)
    made = in_files({"x": rng.integers(0, 1_000, ROWS), "s": [f"k{n:03}" for n in rng.integers(0, 500, ROWS)]}, FILES)
    filters = [
        between("x", 200, 299),
        [equals("x", number(500), number(700))],
        [Filter("x", Operator.GT, (number("899.5"),))],
        [Filter("s", Operator.STARTS_WITH, (text("k1"),))],
        [Filter("x", Operator.NOT_EQ, (number(7),)), Filter("s", Operator.OTHER)],
    ]
    tree = tree_of(made, queries(100, lambda place: filters[place % 5]))
    assert tree is not None
    cuts = {(tree.columns[cut.column][0], cut.operator.value, cut.literal.text) for cut in tree.cuts if cut is not None}
    ends = {("x", "lt", "200"), ("x", "lt-eq", "299"), ("x", "lt-eq", "899"), ("s", "lt", "k1"), ("s", "lt", "k2")}
    values = {("x", operator, value) for operator in ("lt", "lt-eq") for value in ("500", "700")}
    assert ends <= cuts <= ends | values


def test_a_cut_that_partitions_make_already_gains_nothing() -> None:
    """All queries ask for days, each of which is a partition; within them only y tells rows apart, all days alike."""
    rng = np.random.default_rng(2)
    day = np.repeat(np.arange(8), ROWS // 8)
    made = in_files({"day": day, "y": rng.integers(0, 1_000, ROWS)}, FILES)
    partitions = [f"day={file // 4}" for file in range(FILES)]

    def filters(place: int) -> Sequence[Filter]:
        low = place // 8 * 70 % 900
        return [equals("day", number(place % 8)), *between("y", low, low + 99)]

    tree = tree_of(made, queries(100, filters), partitions)
    assert tree is not None
    assert tree.columns == (("y",),)
    without = tree_of(made, queries(100, filters))
    assert without is not None
    assert ("day",) in without.columns


DAYS = 16
DAYS_OF_FILES = [f"day={file // 4}" for file in range(4 * DAYS)]


def of_days(seed: int) -> Made:
    """A partition a day, of four files each; customers and devices on every day."""
    rng = np.random.default_rng(seed)
    columns = {"customer": rng.integers(0, 1_000, 2 * ROWS), "device": rng.integers(0, 1_000, 2 * ROWS)}
    return in_files({"day": np.repeat(np.arange(DAYS), 2 * ROWS // DAYS), **columns}, 4 * DAYS)


def changed_habits(first_new: int) -> Callable[[int], Sequence[Filter]]:
    """Queries of days before ``first_new`` ask for customers, those of later days for devices."""
    chance = np.random.default_rng(7)

    def filters(place: int) -> Sequence[Filter]:
        low = int(chance.integers(0, 90)) * 10
        if place % 2:
            return [Filter("day", Operator.LT, (number(first_new),)), *between("customer", low, low + 99)]
        return [Filter("day", Operator.GT_EQ, (number(first_new),)), *between("device", low, low + 99)]

    return filters


@pytest.mark.parametrize("first_new", [4, 8, 13])
def test_ranges_of_partitions_that_are_asked_for_other_columns_get_cuts_of_their_own(
    first_new: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, filters = of_days(first_new), changed_habits(first_new)
    table = sampled(made, partitions=DAYS_OF_FILES)
    asked, later = workload(table, queries(200, filters)), workload(table, queries(200, filters, first=200))
    tree = cut_tree(asked, table.columns, Simulation(table), list(table.columns))
    assert tree is not None
    check_cuts(tree)
    root = tree.cuts[0]
    assert root is not None
    assert (tree.columns[root.column], root.operator, root.literal) == (("day",), Operator.LT, number(first_new))
    of_sides = [{tree.columns[cut.column] for cut in side if cut is not None} for side in sides(tree)]
    assert of_sides == [{("customer",)}, {("device",)}]
    with monkeypatch.context() as undivided:
        undivided.setattr("icewright_spark.trials.cutting.DIVISION_GAIN_MIN", np.inf)
        for_all = cut_tree(asked, table.columns, Simulation(table), list(table.columns))
    assert for_all is not None
    others = [LayoutExpression.by_cuts(for_all), *(sorted_by(name) for name in ("customer", "device"))]
    best = min(share_read(table, layout, later) for layout in others)
    assert share_read(table, LayoutExpression.by_cuts(tree), later) < 0.8 * best


def sides(tree: CutTree) -> tuple[Sequence[Cut | None], Sequence[Cut | None]]:
    """The subtrees of the root."""
    wanted, place = 1, 1
    while wanted:
        wanted += -1 if tree.cuts[place] is None else 1
        place += 1
    return tree.cuts[1:place], tree.cuts[place:]


def sorted_by(name: str) -> LayoutExpression:
    return LayoutExpression(Curve.SORT, (LayoutColumn((name,)),))


def test_partitions_are_not_divided_where_all_are_asked_for_the_same() -> None:
    made, filters = of_days(1), changed_habits(8)
    mixed = [
        replace(one, tables=tuple(replace(it, filters=it.filters[1:]) for it in one.tables))
        for one in queries(200, filters)
    ]
    tree = tree_of(made, mixed, DAYS_OF_FILES)
    assert tree is not None
    assert set(tree.columns) == {("customer",), ("device",)}


def test_partitions_whose_files_may_have_what_is_asked_for_are_read_also_where_the_sample_has_none() -> None:
    """One row of each file is above what all others have: a query for those opens every file that bounds leave."""
    made, chance = of_days(1), np.random.default_rng(5)
    amount = np.arange(2 * ROWS) % 97
    amount[:: 2 * ROWS // (4 * DAYS)] = 1_000
    made = replace(made, rows=made.rows.append_column("amount", pa.array(amount)))
    assert pc.sum(pc.equal(made.sample(100)["amount"], 1_000)).as_py() < DAYS
    lows = [int(chance.integers(0, 90)) * 10 for _ in range(100)]

    def tree(*more: Filter) -> CutTree | None:
        table = sampled(made, partitions=DAYS_OF_FILES)
        asked = workload(
            table, queries(100, lambda place: [*more, *between("customer", lows[place], lows[place] + 99)])
        )
        return cut_tree(asked, table.columns, Simulation(table), [("customer",)])

    for_all = tree()
    assert for_all is not None
    assert tree(Filter("amount", Operator.GT, (number(500),))) == for_all


def test_two_ranges_of_partitions_are_recommended_as_one_layout() -> None:
    made = of_days(3)
    found = recommend(TABLE, made.sample(100), made.listed(DAYS_OF_FILES), queries(400, changed_habits(8)))
    assert isinstance(found.candidate, LayoutChange)
    tree = found.candidate.layout.cuts
    assert tree is not None, found.candidate
    assert {("day",), ("customer",), ("device",)} == set(tree.columns)


def test_values_that_share_what_bounds_have_of_them_are_not_told_apart() -> None:
    rng = np.random.default_rng(2)
    made = in_files({"s": [f"{'p' * 40}{value:03}" for value in rng.integers(0, 500, ROWS)]}, FILES)
    assert tree_of(made, queries(100, lambda place: [equals("s", text(f"{'p' * 40}{place:03}"))])) is None


@pytest.mark.parametrize(
    "filters",
    [
        lambda _: [],
        lambda _: [Filter("x", Operator.IS_NULL), Filter("x", Operator.NOT_EQ, (number(5),))],
        lambda place: [equals("x", text(f"no number {place}"))],
        lambda _: [equals("x", *(number(value) for value in range(300)))],
    ],
    ids=["none", "no ends", "no values", "too many"],
)
def test_filters_that_no_cut_answers_make_none(filters: Callable[[int], Sequence[Filter]]) -> None:
    assert tree_of(in_files({"x": np.arange(ROWS) % 997}, FILES), queries(50, filters)) is None


def test_a_tree_is_never_larger_than_a_property_may_be() -> None:
    rng = np.random.default_rng(2)
    names = ["".join(map(chr, rng.integers(0x4E00, 0x9000, 200))) for _ in range(300)]
    made = in_files({"s": [names[n] for n in rng.integers(0, 300, 60_000)]}, 600)
    tree = tree_of(made, queries(300, lambda place: [equals("s", text(names[place % 300]))]))
    assert tree is not None
    check_cuts(tree)
    assert TEXT_LENGTH_MAX / 2 < len(tree.text) <= TEXT_LENGTH_MAX
    made = in_files({"x": rng.permutation(60_000)}, 600)
    tree = tree_of(made, queries(500, lambda place: list(between("x", place * 100, place * 100 + 99))))
    assert tree is not None
    assert len([cut for cut in tree.cuts if cut is not None]) == CUTS_MAX
    assert {cut.literal.kind for cut in tree.cuts if cut is not None} == {LiteralKind.NUMBER}
