"""Tables fit into a terminal by importance: nothing is cut, no name is broken, and a pipe has all of it."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.wording import safe
from icewright.terminal.cli import Terminal
from icewright.terminal.tables import Column, fit, headings, row_lines, short_id, title_line
from tests.builders.command_line import Screen

TASKS = headings("task", "state", "table", "#files", "since", "because", drop=("since",), below=("because", "table"))
ID = "01a214ed-5b5f-7000-bae1-53f09aa947f4"
ROW = (f"task-{ID}", "queued", "lake.sales.orders", "1,204", "2026-11-25 22:57:09 UTC", "merge 12 small files into 2")


def printed(columns: tuple[Column, ...], rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        patch.setenv("TERM", "xterm")
        patch.setattr("sys.stdout", screen := Screen())
        patch.setattr("sys.stderr", noted := Screen())
        Terminal(as_json=False).table(columns, rows)
    return screen.plain.splitlines() + [f"({line})" for line in noted.plain.splitlines()]


def test_all_of_it_stands_in_a_row_where_there_is_room() -> None:
    assert printed(TASKS, [ROW], 110) == [
        "task      state   table              files  since                    because",
        "9aa947f4  queued  lake.sales.orders  1,204  2026-11-25 22:57:09 UTC  merge 12 small files into 2",
    ]


def test_what_explains_a_row_stands_below_it_first_then_columns_are_left_out() -> None:
    assert printed(TASKS, [ROW], 80) == [
        "task      state   table              files  since",
        "9aa947f4  queued  lake.sales.orders  1,204  2026-11-25 22:57:09 UTC",
        "  merge 12 small files into 2",
    ]
    assert printed(TASKS, [ROW], 50) == [
        "task      state   table              files",
        "9aa947f4  queued  lake.sales.orders  1,204",
        "  merge 12 small files into 2",
        "(left out, for want of room: since)",
    ]
    long = (ROW[0], "queued", f"lake.{'sales_' * 8}orders", *ROW[3:])
    assert printed(TASKS, [long], 70) == [
        "task      state   files  since",
        "9aa947f4  queued  1,204  2026-11-25 22:57:09 UTC",
        f"  lake.{'sales_' * 8}orders: merge",
        "    12 small files into 2",
    ]


def test_a_short_text_stands_behind_its_row_where_others_stand_below_theirs() -> None:
    columns = headings("part", "#score", "because", below=("because",))
    rows = [("files", "16", "180 of 180 data files are small"), ("deletes", "100", "no delete files")]
    assert printed(columns, rows, 45) == [
        "part     score  because",
        "files       16",
        "  180 of 180 data files are small",
        "deletes    100  no delete files",
    ]


def test_few_long_names_have_a_line_of_their_own_and_take_no_column_from_the_others() -> None:
    columns = headings("table", "#files", "mode", drop=("mode",))
    long = "lake." + "x" * 60
    rows = [*((f"lake.db.t{number}", "7", "auto") for number in range(10)), (long, "8", "observe")]
    assert printed(columns, rows, 40)[:2] == [f"{'table':<24}  files  mode", f"{'lake.db.t0':<24}      7  auto"]
    assert printed(columns, rows, 40)[-2:] == [long, f"{'':<24}      8  observe"]


def test_titles_say_which_is_which_below_a_row() -> None:
    columns = headings("table", "before", "after", below=("before:", "after:"))
    assert printed(columns, [("lake.db.a", "x" * 20, "y" * 20)], 30) == [
        "table",
        "lake.db.a",
        f"  before {'x' * 20}:",
        f"    after {'y' * 20}",
    ]


def test_ids_are_short_on_a_terminal_and_whole_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [short_id(f"{kind}-{ID}") for kind in ("plan", "task")] == ["9aa947f4"] * 2
    assert [short_id(text) for text in (ID, f"see task-{ID}", "task-1")] == [ID, f"see task-{ID}", "task-1"]
    monkeypatch.setattr("sys.stdout", pipe := io.StringIO())
    Terminal(as_json=False).table(TASKS, [ROW])
    (_, row) = pipe.getvalue().splitlines()
    assert row == "  ".join(ROW)


def test_a_column_that_gives_way_has_to_be_there() -> None:
    for wrong in ({"drop": ("size",)}, {"below": ("table",)}):
        with pytest.raises(ValueError, match="no columns behind the first"):
            headings("table", "#files", **wrong)


@given(
    rows=st.lists(st.tuples(*(st.text(max_size=60) for _ in TASKS)), min_size=1, max_size=12),
    width=st.integers(30, 120),
)
def test_no_width_cuts_or_breaks_anything(rows: list[tuple[str, ...]], width: int) -> None:
    shown = [tuple(safe(cell) for cell in row) for row in rows]
    laid = fit(TASKS, shown, width)
    if laid is None:
        return
    assert {*laid.widths} | {*laid.below} | {*laid.left_out} == {*range(len(TASKS))}
    assert all(title in title_line(TASKS, laid) for title in ("task", "state"))
    for row in shown:
        lines = row_lines(TASKS, row, laid)
        for index in laid.widths:
            assert any(row[index].rstrip() in line for line in lines)
        said = "".join("".join(lines).split())
        assert all("".join(row[index].split()) in said for index in laid.below)
