"""Everything that the commands print goes through here: safe for a terminal, plain when piped, JSON on request.

Names of tables and the like come from strangers. What a terminal would act on is shown as an escape sequence, and
nothing is ever read as rich's markup.
"""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeVar

from icewright.core.codec import to_json
from icewright.core.errors import IcewrightError, NotAllowed, Rejected, Unsupported
from icewright.core.wording import safe
from icewright.terminal.tables import Column, fit, row_lines, short_id, title_line

if TYPE_CHECKING:
    from rich.console import Console

FINE, FOUND, WRONG_USE = 0, 1, 2
"""Exit statuses: all is well; something was found, refused or did not answer; the request itself is wrong."""

T = TypeVar("T")
_PIPED_WIDTH = 100_000
_PROSE_WIDTH_MIN = 30
_COLUMN_WIDTH_MIN = 12
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REFUSALS = (NotAllowed, Unsupported)


class Terminal:
    """Where one command prints. Results go to standard output, everything said about them to standard error."""

    def __init__(self, *, as_json: bool, verbose: bool = False) -> None:
        self.as_json, self.verbose = as_json, verbose
        self._in_list = False

    @cached_property
    def out(self) -> Console:
        """Standard output."""
        return _console(sys.stdout)

    @cached_property
    def err(self) -> Console:
        """Standard error."""
        return _console(sys.stderr)

    def document(self, value: Any) -> None:
        """Print a value as JSON, in ASCII: whole for every program, harmless for every terminal."""
        sys.stdout.write(json.dumps(to_json(value), indent=2) + "\n")

    def documents(self, values: Iterable[Any], next_cursor: str | None = None) -> int:
        """Print a list as ``{"items": [...], "next_cursor": ...}``, one item at a time; the number of items."""
        count, self._in_list = 0, True
        sys.stdout.write('{\n"items": [')
        for value in values:
            sys.stdout.write((",\n" if count else "\n") + json.dumps(to_json(value)))
            count += 1
        sys.stdout.write(f'\n],\n"next_cursor": {json.dumps(next_cursor)}\n}}\n')
        self._in_list = False
        return count

    def say(self, text: str = "", *, style: str = "") -> None:
        """Print a line of the result."""
        _print(self.out, text, style)

    def prose(self, text: str, *, indent: int = 0, style: str = "") -> None:
        """Print a sentence, broken between words where a terminal is too narrow; piped, it stays one line."""
        for line in _wrapped(self.out, text, indent, indent):
            _print(self.out, line, style)

    def note(self, text: str) -> None:
        """Print a remark to standard error; programs that read JSON do not need it."""
        for line in () if self.as_json else _wrapped(self.err, text):
            _print(self.err, line, "dim")

    def aside(self, text: str) -> None:
        """Print what was asked for beside the result, to standard error."""
        _print(self.err, text, "")

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], *, styles: Sequence[str] = ()) -> None:
        """Print a table. ``styles`` has a style per row, where there is one.

        A pipe gets all of it. On a terminal, ids of plans and tasks are short, and what there is no room for stands
        below its row or is left out, by importance (:mod:`icewright.terminal.tables`); where that is not enough, cells
        are folded, or, where that would leave columns of a few letters, each row is a block of names and values.
        """
        rows = [tuple(map(safe, row)) for row in rows]
        if not self.out.is_terminal:
            self._drawn(columns, rows, styles)
            return
        shown, width = [tuple(map(short_id, row)) for row in rows], self.out.width
        laid = fit(columns, shown, width)
        if laid is None and not _fits(columns, shown, width):
            self._blocks(columns, rows)
            return
        if laid is None:
            self._drawn(columns, shown, styles)
            return
        _print(self.out, title_line(columns, laid), "bold")
        for index, row in enumerate(shown):
            for line in row_lines(columns, row, laid):
                _print(self.out, line, styles[index] if styles else "")
        if laid.left_out:
            names = ", ".join(columns[index].title for index in laid.left_out)
            self.note(f"left out, for want of room: {names}")

    def _blocks(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        for index, row in enumerate(rows):
            if index:
                self.say()
            self.pairs(zip((column.title for column in columns), row, strict=True))

    def _drawn(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], styles: Sequence[str]) -> None:
        """All cells, folded where a terminal is too narrow."""
        from rich.table import Table  # noqa: PLC0415 - `--help` stays quick
        from rich.text import Text  # noqa: PLC0415 - see above

        drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for column in columns:
            is_whole = column.is_number or not self.out.is_terminal or _has_ids(columns, rows, column)
            overflow = {"no_wrap": True} if is_whole else {"overflow": "fold"}
            drawn.add_column(Text(column.title), justify="right" if column.is_number else "left", **overflow)
        for index, row in enumerate(rows):
            drawn.add_row(*(Text(cell) for cell in row), style=styles[index] if styles else None)
        if self.out.is_terminal:
            self.out.print(drawn, crop=False)
            return
        with self.out.capture() as captured:
            self.out.print(drawn, crop=False)
        # rich fills the last column with blanks, which a pipe has no use for.
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))

    def page(
        self,
        found: Sequence[T],
        next_cursor: str | None,
        columns: Sequence[Column],
        cells: Callable[[T], Sequence[str]],
        *,
        none: str,
    ) -> None:
        """Print a page of a list as JSON, or as a table and how to go on; ``none`` is said of a list of nothing."""
        if self.as_json:
            self.documents(found, next_cursor)
            return
        if not found:
            self.say(none)
            return
        self.table(columns, [cells(one) for one in found])
        if next_cursor is not None:
            self.aside(f"there are more: --cursor {next_cursor}")

    def pairs(self, rows: Iterable[tuple[str, str]]) -> None:
        """Print names and values, one pair a line, without those that have no value."""
        kept = [(name, value) for name, value in rows if value]
        width = max((len(name) for name, _ in kept), default=0)
        for name, value in kept:
            for line in _wrapped(self.out, value, width + 2, width + 2, first=f"{name:<{width}}  "):
                self.say(line)

    def problem(self, error: IcewrightError) -> int:
        """Print an error as one line and a hint, or as JSON; the exit status that it means."""
        if self.verbose:
            sys.stderr.write(safe_lines("".join(traceback.format_exception(error))))
        status = WRONG_USE if isinstance(error, Rejected) and not isinstance(error, _REFUSALS) else FOUND
        if self.as_json:
            document = {"error": {"code": error.code, "detail": error.message, "hint": error.hint}}
            # A list that broke off is no JSON any more; the error must not look like a part of it.
            stream = sys.stderr if self._in_list else sys.stdout
            stream.write(json.dumps(document, indent=2) + "\n")
            return status
        told = [(f"icewright: {error.message}", "red"), (f"hint: {error.hint}" if error.hint else "", "")]
        for text, style in told:
            for line in _wrapped(self.err, text) if text else ():
                _print(self.err, line, style)
        return status


def safe_lines(text: str) -> str:
    """:func:`safe`, but for line feeds."""
    return "\n".join(safe(line) for line in text.split("\n"))


def _console(stream: Any) -> Console:
    from rich.console import Console  # noqa: PLC0415 - `--help` stays quick

    width = None if stream.isatty() else _PIPED_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def _has_ids(columns: Sequence[Column], rows: Sequence[Sequence[str]], column: Column) -> bool:
    index = columns.index(column)
    return any(_ID.search(row[index]) for row in rows)


def _fits(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether a table has room: its numbers and ids whole, and of each other column a width that words fit into."""
    from rich.cells import cell_len  # noqa: PLC0415 - `--help` stays quick

    least = 2 * (len(columns) - 1)
    for index, column in enumerate(columns):
        longest = max(cell_len(text) for text in (column.title, *(row[index] for row in rows)))
        is_whole = column.is_number or _has_ids(columns, rows, column)
        least += longest if is_whole else min(longest, _COLUMN_WIDTH_MIN)
    return least <= width


def _wrapped(console: Console, text: str, indent: int = 0, hanging: int = 0, *, first: str | None = None) -> list[str]:
    """The lines of a text: as wide as a terminal, or one where there is none. Words that are too long stay whole.

    ``first`` stands before the first line, in place of ``indent`` blanks.
    """
    begin = " " * indent if first is None else first
    room = console.width
    if not console.is_terminal or len(begin) + len(text) <= room or room - hanging < _PROSE_WIDTH_MIN:
        return [begin + text]
    return wrap(
        safe(text),
        room,
        initial_indent=begin,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _print(console: Console, text: str, style: str) -> None:
    from rich.text import Text  # noqa: PLC0415 - `--help` stays quick

    console.print(Text(safe(text), style=style), soft_wrap=True)
