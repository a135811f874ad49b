"""Which snapshots are believed when they say in which order their files are."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from icewright.model.iceberg.layouts import COLUMN_CURVES, Layout, Level, Run, run_of
from icewright.model.iceberg.tables import LAYOUT_KEY, LEVEL_KEY, TASK_ID_KEY, Operation, Snapshot, SortField
from tests.cases import each_case

SIGNED = {TASK_ID_KEY: "task-1", LEVEL_KEY: "level-1", LAYOUT_KEY: "hilbert(3,7)"}
OURS = Snapshot(5, None, 1, 77, Operation.REPLACE, "", None, SIGNED)

fields = st.builds(
    SortField,
    st.integers(1, 2**31 - 1),
    st.sampled_from(["identity", "bucket[16]", "truncate[4]", "day"]),
    st.sampled_from(["asc", "desc"]),
    st.sampled_from(["nulls-first", "nulls-last"]),
)
layouts = st.builds(Layout, st.sampled_from(COLUMN_CURVES), st.lists(fields, min_size=1, max_size=5).map(tuple))


def said(**changes: str) -> Snapshot:
    names = {"level": LEVEL_KEY, "layout": LAYOUT_KEY}
    return replace(OURS, summary={**SIGNED, **{names[key]: value for key, value in changes.items()}})


@given(layouts, st.sampled_from(Level))
def test_what_we_sign_is_what_we_read(layout: Layout, level: Level) -> None:
    assert run_of(said(layout=layout.key, level=level.value)) == Run(level, layout.key, 77)


@each_case("layout", ["", "sort()", "sort(a)", "sort(1", "SORT(1)", "sort(1)\n", "sort(١)", "x" * 5000])  # noqa: RUF001 - digits that are none of ours
def test_nonsense_is_no_layout(layout: str) -> None:
    assert run_of(said(layout=layout)) is None


def test_a_long_list_of_fields_is_nonsense() -> None:
    assert run_of(said(layout=f"sort({','.join(['1'] * 1000)})")) is None


@each_case("level", ["", "level-3", "LEVEL_1", "1"])
def test_nonsense_is_no_level(level: str) -> None:
    assert run_of(said(level=level)) is None


@each_case("operation", [*(o for o in Operation if o is not Operation.REPLACE), None])
def test_only_rewrites_are_believed(operation: Operation | None) -> None:
    assert run_of(replace(OURS, operation=operation)) is None


@each_case("missing", list(SIGNED))
def test_only_what_is_wholly_signed_is_believed(missing: str) -> None:
    assert run_of(replace(OURS, summary={k: v for k, v in SIGNED.items() if k != missing})) is None
