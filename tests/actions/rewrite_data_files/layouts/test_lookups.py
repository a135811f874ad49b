"""What is said of lookups before a rewrite, by the bounds of the files and by the layout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.rewrite_data_files.layouts.depth import opened_by_bounds
from icewright.actions.rewrite_data_files.layouts.lookups import FEW_VALUES, few_values, lookups, said
from icewright.model.actions.actions import FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.files import Span
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.plans.plans import Lookup
from tests.actions.rewrite_data_files.layouts.test_levels import CURVED, SORTED
from tests.builders.observations import MIB, data_file, month, table
from tests.cases import each_case

MANY = 10 * FEW_VALUES


def spanning(low: Any, high: Any) -> Span:
    return ((1, low), (1, high))


def planned(
    *files: tuple[Span | None, ...], layout: Layout = SORTED, level: Level = Level.LEVEL_1, made: int = 3
) -> tuple[Lookup, ...]:
    listed = [replace(data_file(month(1), number), spans=spans) for number, spans in enumerate(files)]
    inputs = tuple(InputFile(f"f{number}", MIB, 1_000, 1) for number in range(4))
    group = FileGroup(0, month(1), "month=1", inputs, output_files=made)
    action = RewriteDataFiles(1, 0, (group,), 512 * MIB, level, layout)
    return lookups(table(), action, {month(1): listed, month(2): []})


def test_all_files_that_may_have_a_value_are_opened_and_two_afterwards() -> None:
    (found,) = planned((spanning(0, 9),), (spanning(5, 7),), (spanning(7, 20),), (spanning(30, MANY),))
    assert found == Lookup("carrier", "month=1", 3, 2, 1.6, 1.0)
    assert said(found) == (
        "one value of carrier in month=1 is in 1.6 of these files now (3 at most), in 1.0 afterwards (2 at most)"
    )


def test_a_file_without_bounds_may_have_any_value_and_so_it_is_said() -> None:
    (found,) = planned((spanning(0, MANY),), (None,), (None,))
    assert (found.files_before, found.files_after, found.unknown_files) == (3, 2, 2)
    assert said(found).endswith("; 2 of them have no bounds of it")
    (found,) = planned((None,), (None,))
    assert (found.files_before, found.files_after, found.mean_after) == (2, 3, 3)
    assert said(planned((spanning("a", "b"),), (None,))[0]).endswith("; 1 of them has no bounds of it")


@pytest.mark.parametrize("curve", [Curve.HILBERT, Curve.ZORDER])
def test_each_column_of_a_curve_has_its_own(curve: Curve) -> None:
    everywhere = (spanning(0, MANY), spanning("a", "z"))
    found = planned(*[everywhere] * 16, layout=replace(CURVED, curve=curve), made=16)
    assert [(one.column, one.mean_before) for one in found] == [("carrier", 16), ("month", 16)]
    assert all(4 <= one.mean_after < one.files_after < 16 for one in found)


def test_nothing_is_predicted_of_cuts() -> None:
    """How many files are on each side of a cut depends on rows, which no plan knows."""
    everywhere = (spanning(0, MANY), spanning("a", "z"))
    assert planned(*[everywhere] * 16, layout=replace(CURVED, curve=Curve.CUTS), made=16) == ()


def test_a_column_of_few_values_is_said_to_be_one_and_counts_as_such() -> None:
    carrier, months = planned(*[(spanning(0, MANY), spanning(1, 2))] * 16, layout=CURVED, made=16)
    assert (months.values_at_most, carrier.values_at_most) == (2, None)
    assert months.mean_after == pytest.approx(8.5, rel=0.1)
    assert carrier.mean_after == pytest.approx(2.5, rel=0.1)
    assert said(months).endswith("; it has at most 2 values")


def test_nothing_is_said_of_merges() -> None:
    assert planned((spanning(0, 9),), level=Level.LEVEL_0) == ()


@each_case(
    ("spans", "values"),
    [
        ([spanning(3, 5), spanning(9, 9)], 7),
        ([((0, None), (1, 5)), spanning(5, 5)], 2),
        ([spanning(False, True)], 2),
        ([((0, None), (0, None))], 1),
        ([spanning("a", "a")], 1),
        ([spanning("a", "b")], None),
        ([spanning(0.0, 1.0)], None),
        ([spanning(0, FEW_VALUES)], None),
        ([spanning(0, 1), None], None),
        ([], None),
    ],
)
def test_bounds_tell_how_many_values_there_are_at_most(spans: list[Span | None], values: int | None) -> None:
    assert few_values(spans) == values


ends = st.integers(0, 8)
some_spans = st.lists(st.none() | st.tuples(ends, ends).map(lambda pair: spanning(min(pair), max(pair))), max_size=12)


@given(some_spans)
def test_the_mean_is_over_all_ends(spans: list[Span | None]) -> None:
    found = opened_by_bounds(spans)
    values = sorted({end for span in spans if span is not None for end in span})
    counts = [sum(span is None or span[0] <= value <= span[1] for span in spans) for value in values]
    assert found.mean == pytest.approx(sum(counts) / len(counts) if counts else len(spans))
    assert found.worst == max(counts, default=len(spans))
