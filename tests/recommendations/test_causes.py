"""What was saved and spent is told apart by cause only where it can be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.model.actions.actions import ActionKind, RewriteFigures
from icewright.model.iceberg.layouts import Level
from icewright.model.work.tasks import ListedTask
from icewright.ports.store import TaskFilter
from icewright.recommendations.causes import Cause, CauseBenefit, cause_of, summed, with_saved
from tests.builders.lakehouse import NAME, Lakehouse
from tests.builders.worker import Worker

COSTS = (
    CauseBenefit(Cause.COMPACTION, tasks=2, cpu_ms=300, written_bytes=1_000),
    CauseBenefit(Cause.ANALYSIS, tasks=1, cpu_ms=50),
    CauseBenefit(Cause.COMPACTION, tasks=1, cpu_ms=100, written_bytes=500),
)
MERGED = CauseBenefit(Cause.COMPACTION, tasks=3, cpu_ms=400, written_bytes=1_500)
ANALYZED = CauseBenefit(Cause.ANALYSIS, tasks=1, cpu_ms=50)


@pytest.fixture(scope="module")
def merge() -> ListedTask:
    """A task that merged small files."""
    house = Lakehouse()
    house.ready_table()
    house.control.maintainer.look(NAME)
    Worker(house).carry_out()
    (task,) = house.tasks.listed(TaskFilter(kind=ActionKind.REWRITE_DATA_FILES), limit=2)
    return task


def test_a_task_is_done_for_one_cause(merge: ListedTask) -> None:
    figures = merge.figures
    assert isinstance(figures, RewriteFigures)
    assert cause_of(merge) is Cause.COMPACTION
    assert cause_of(replace(merge, figures=replace(figures, delete_files=1))) is Cause.DELETES
    for level in (Level.LEVEL_1, Level.LEVEL_2):
        assert cause_of(replace(merge, figures=replace(figures, level=level, delete_files=1))) is Cause.LAYOUT
    assert cause_of(replace(merge, figures=replace(figures, layout="sort(a)"))) is Cause.COMPACTION  # in order already


def test_costs_are_summed_by_cause_and_nothing_is_saved_where_nothing_is_compared() -> None:
    assert with_saved(COSTS, None, None, None) == (MERGED, ANALYZED)
    assert with_saved([CauseBenefit(Cause.DELETES)], None, None, None) == ()  # nobody measured it


@pytest.mark.parametrize(
    ("change", "costs", "cause", "predicted"),
    [
        (Cause.LAYOUT, COSTS, Cause.LAYOUT, 7.0),
        (Cause.PROPERTIES, COSTS, Cause.PROPERTIES, 7.0),
        (Cause.SEVERAL, COSTS, Cause.SEVERAL, None),
        (None, COSTS, Cause.COMPACTION, None),
        (None, (*COSTS, CauseBenefit(Cause.DELETES, tasks=1)), Cause.SEVERAL, None),
        (None, (*COSTS, CauseBenefit(Cause.LAYOUT, tasks=1)), Cause.SEVERAL, None),
        (None, (), Cause.SEVERAL, None),
    ],
)
def test_what_was_saved_counts_for_the_one_change(
    change: Cause | None, costs: tuple[CauseBenefit, ...], cause: Cause, predicted: float | None
) -> None:
    found = {one.cause: one for one in with_saved(costs, change, -20.0, 7.0)}
    assert found[cause].saved_cpu_ms == -20.0
    assert found[cause].predicted_cpu_ms == predicted
    assert [one.saved_cpu_ms for one in found.values() if one.cause is not cause] == [None] * (len(found) - 1)
    assert sum(one.cpu_ms for one in found.values()) == sum(one.cpu_ms for one in costs)


ANY = st.builds(
    CauseBenefit,
    st.sampled_from(Cause),
    st.none() | st.integers(-9, 9).map(float),
    st.none() | st.integers(-9, 9).map(float),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 9),
)


@given(st.lists(ANY))
def test_sums_lose_nothing_and_have_each_cause_once(some: list[CauseBenefit]) -> None:
    found = summed(some)
    assert [one.cause for one in found] == [cause for cause in Cause if cause in {one.cause for one in some}]
    for name in ("tasks", "cpu_ms", "written_bytes", "saved_cpu_ms", "predicted_cpu_ms"):
        assert sum(getattr(one, name) or 0 for one in found) == sum(getattr(one, name) or 0 for one in some)
