"""Nothing that a stranger named reaches the terminal as anything but text."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import (
    Conflict,
    IcewrightError,
    InvalidConfiguration,
    InvalidName,
    NotAllowed,
    NotFound,
    Unavailable,
    Unsupported,
)
from icewright.core.wording import safe
from icewright.terminal.cli import FOUND, WRONG_USE, Terminal
from icewright.terminal.tables import Column
from tests.builders.command_line import Screen
from tests.cases import each_case


@given(st.text())
def test_safe_text_prints_and_is_stable(text: str) -> None:
    shown = safe(text)
    assert shown.isprintable()
    assert safe(shown) == shown
    shown.encode()


@each_case(
    ("text", "shown"),
    [("a\x1b[31m", "a\\x1b[31m"), ("a\nb", "a\\nb"), ("\u202eb", "\\u202eb"), ("ünï 🧊", "ünï 🧊"), ("\x9b", "\\x9b")],
)
def test_what_a_terminal_would_act_on_is_escaped(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_a_table_has_one_line_per_row_whatever_is_in_it(names: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", stream := io.StringIO())
        Terminal(as_json=False).table([Column("name"), Column("n", is_number=True)], [(name, "1") for name in names])
    lines = stream.getvalue().split("\n")
    assert len(lines) == len(names) + 2
    assert all(line.isprintable() for line in lines)
    assert all(safe(name).rstrip() in line for name, line in zip(names, lines[1:], strict=False))


def test_markup_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(as_json=False)
    terminal.say("[bold]x[/bold] :ice:")
    terminal.table([Column("[red]")], [["[link=http://x]y[/link]"]])
    assert capsys.readouterr().out == "[bold]x[/bold] :ice:\n[red]\n[link=http://x]y[/link]\n"


def test_long_cells_are_neither_cut_nor_wrapped_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(as_json=False).table([Column("a"), Column("b")], [["x" * 500, "y" * 500]])
    assert capsys.readouterr().out == f"a{' ' * 501}b\n{'x' * 500}  {'y' * 500}\n"


def narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout", screen := Screen())
    return screen


def test_sentences_break_between_words_of_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = narrow_terminal(monkeypatch)
    Terminal(as_json=False).prose(f"{'word ' * 30}/{'x' * 90}", indent=2)
    Terminal(as_json=False).pairs([("plan", "p"), ("because", "word " * 20)])
    lines = [line.rstrip() for line in narrow.getvalue().splitlines()]
    assert [line for line in lines if len(line) > 80] == ["  /" + "x" * 90]
    assert all(line.startswith("  word") for line in lines[:2])
    assert lines[-2:] == ["because  " + ("word " * 14).rstrip(), "         " + ("word " * 6).rstrip()]


def test_a_table_that_has_no_room_is_printed_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = narrow_terminal(monkeypatch)
    plan_id = "plan-01a214ed-5b5f-7000-bae1-53f09aa947f4"
    names = ("table", "seen", "action", "since", "until", "because")
    columns = [Column("plan"), *(Column(name) for name in names)]
    row = (
        plan_id,
        "lake.sales.fat",
        "2026-11-25 22:57:09 UTC",
        "2026-11-25 22:57:09 UTC",
        "rewrite_data_files",
        "2026-11-25 22:57:09 UTC",
        "in mode approve each waits",
    )
    Terminal(as_json=False).table(columns, [row, row])
    lines = narrow.getvalue().splitlines()
    assert lines[:2] == [f"plan     {plan_id}", "table    lake.sales.fat"]
    assert lines[7] == ""
    assert max(map(len, lines)) <= 80


def test_cells_are_folded_where_words_have_room_and_ids_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = narrow_terminal(monkeypatch)
    uuid = "01a214ed-5b5f-7000-bae1-53f09aa947f4"
    Terminal(as_json=False).table([Column("table"), Column("because")], [(uuid, "word " * 20)])
    lines = narrow.getvalue().splitlines()
    assert lines[0].split() == ["table", "because"], lines
    assert lines[1].startswith(f"{uuid}  word")
    assert max(len(line.rstrip()) for line in lines) <= 80


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colours_only_on_a_terminal_that_wants_them(
    monkeypatch: pytest.MonkeyPatch, no_color: str, *, coloured: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr("sys.stdout", screen := Screen())
    Terminal(as_json=False).say("careful", style="red")
    assert ("\x1b[31m" in screen.getvalue()) is coloured
    monkeypatch.setattr("sys.stdout", pipe := io.StringIO())
    Terminal(as_json=False).say("careful", style="red")
    assert pipe.getvalue() == "careful\n"


@each_case(
    ("error", "status"),
    [
        (InvalidName("x"), WRONG_USE),
        (InvalidConfiguration("x"), WRONG_USE),
        (NotFound("x"), WRONG_USE),
        (NotAllowed("x"), FOUND),
        (Unsupported("x"), FOUND),
        (Conflict("x"), FOUND),
        (Unavailable("x"), FOUND),
    ],
)
def test_errors_are_one_line_a_hint_and_a_status(
    capsys: pytest.CaptureFixture[str], error: IcewrightError, status: int
) -> None:
    error.message, error.hint = "it is \x1b[2Jwrong", "do\nthis"
    assert Terminal(as_json=False).problem(error) == status
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "icewright: it is \\x1b[2Jwrong\nhint: do\\nthis\n")
    assert Terminal(as_json=True).problem(error) == status
    printed = capsys.readouterr()
    assert json.loads(printed.out)["error"] == {"code": error.code, "detail": error.message, "hint": error.hint}
    assert (printed.err, printed.out.isascii()) == ("", True)


def test_where_an_error_came_from_is_shown_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(as_json=False, verbose=True).problem(NotFound("no \x1b[2J"))
    printed = capsys.readouterr().err
    assert "icewright.core.errors.NotFound" in printed
    assert "\x1b" not in printed


@given(st.lists(st.dictionaries(st.text(), st.text())))
def test_lists_are_whole_json_although_printed_one_by_one(items: list[dict[str, str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", stream := io.StringIO())
        assert Terminal(as_json=True).documents(iter(items), "next") == len(items)
    assert json.loads(stream.getvalue()) == {"items": items, "next_cursor": "next"}
    assert stream.getvalue().isascii()
