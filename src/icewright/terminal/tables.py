"""Tables in the width of a terminal: what stands in a row, what below it, and what is left out, by importance.

Nothing is cut and no name is broken. Where a table is wider than the terminal, first the columns that may stand below
their rows do so, then columns are left out in the order that the table says; a name that is longer than its column
has a line of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

_GAP: Final = "  "
_INDENT: Final = "  "
_SHORT: Final = 8
_TAIL_MIN: Final = 20
_OFTEN: Final = 0.9
"""So many of the names are to have room in their column; longer ones have a line of their own."""
_ID = re.compile(r"(?:plan|task)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a printed table.

    ``drop`` says when it is left out where there is no room, the lowest number first, and ``below`` when it stands
    below its row instead; 0: never. ``is_titled``: there its title stands before it.
    """

    title: str
    is_number: bool = False
    drop: int = 0
    below: int = 0
    is_titled: bool = False


def headings(*titles: str, drop: Sequence[str] = (), below: Sequence[str] = ()) -> tuple[Column, ...]:
    """The columns of a printed table; ``#`` before a title: of numbers.

    Where a terminal is too narrow, the first of ``below`` stands below its row, then those of ``drop`` are left out,
    then the others of ``below`` stand there as well: in this order, and no more of them than needed. With a colon
    behind the name the title stands there too. Raises ``ValueError`` for one that is no column behind the first.
    """
    names, moved = [title.removeprefix("#") for title in titles], [name.removesuffix(":") for name in below]
    if unknown := {*drop, *moved} - {*names[1:]}:
        raise ValueError(f"no columns behind the first: {sorted(unknown)}")
    return tuple(
        Column(
            name,
            title.startswith("#"),
            drop.index(name) + 1 if name in drop else 0,
            moved.index(name) + 1 if name in moved else 0,
            f"{name}:" in below,
        )
        for title, name in zip(titles, names, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns in the rows with their widths, those below the rows, and those left out, all by their numbers."""

    width: int
    widths: dict[int, int]
    below: tuple[int, ...]
    left_out: tuple[int, ...]

    @property
    def begins(self) -> int:
        """Where a text begins that stands behind the row."""
        return sum(self.widths.values()) + len(_GAP) * len(self.widths)

    @property
    def has_tail(self) -> bool:
        """Whether short texts stand behind the row, in place of below it."""
        return len(self.below) == 1 and self.width - self.begins >= _TAIL_MIN


def short_id(cell: str) -> str:
    """The id of a plan or a task by its last 8 characters: these are random, the first ones are those of its minute."""
    return cell[-_SHORT:] if _ID.fullmatch(cell) else cell


def fit(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> Layout | None:
    """How a table fits into a width; None where it does not, whatever is left out."""
    sizes = [
        max(_length(text) for text in (column.title, *(row[index] for row in rows)))
        for index, column in enumerate(columns)
    ]
    everything = range(len(columns))
    names = sorted(_length(row[0]) for row in rows) or [0]
    least = max(_length(columns[0].title), names[math.ceil(_OFTEN * len(names)) - 1])
    gone: set[int] = set()

    def room(*more: int) -> int:
        """What is left for the first column."""
        return width - sum(sizes[index] + len(_GAP) for index in everything[1:] if index not in gone or index in more)

    below = sorted((one for one in everything if columns[one].below), key=lambda one: columns[one].below)
    drop = sorted((one for one in everything if columns[one].drop), key=lambda one: columns[one].drop)
    for index in (*below[:1], *drop, *below[1:]):
        if room() < least and index not in gone:
            gone.add(index)
        least = min(least, width // 2)
    if room() < least:
        return None
    for index in reversed(drop):  # a wide column may have made room for narrow ones that went before it
        if index in gone and room(index) >= least:
            gone.remove(index)
    widths = {index: sizes[index] for index in everything if index not in gone}
    widths[0] = min(sizes[0], room())
    return Layout(width, widths, tuple(sorted({*below} & gone)), tuple(sorted({*drop} & gone)))


def title_line(columns: Sequence[Column], laid: Layout) -> str:
    """The titles over the rows."""
    line = _line(columns, [column.title for column in columns], laid.widths)
    return line.ljust(laid.begins) + columns[laid.below[0]].title if laid.has_tail else line


def row_lines(columns: Sequence[Column], row: Sequence[str], laid: Layout) -> list[str]:
    """The lines of one row: itself, and what stands below it; a first cell that is too long stands above."""
    found = [_line(columns, row, laid.widths)]
    if _length(row[0]) > laid.widths[0]:
        found = [row[0], _line(columns, ["", *row[1:]], laid.widths)]
    said = ": ".join(
        f"{columns[index].title} {row[index]}" if columns[index].is_titled else row[index]
        for index in laid.below
        if row[index]
    )
    if laid.has_tail and laid.begins + _length(said) <= laid.width:
        line = found.pop()
        found.append((line + " " * (laid.begins - _length(line)) + said).rstrip())
        said = ""
    found += wrap(
        said,
        laid.width,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT * 2,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [found[0], *(line for line in found[1:] if line)]


def _line(columns: Sequence[Column], row: Sequence[str], widths: dict[int, int]) -> str:
    cells = []
    for index, size in widths.items():
        blank = " " * (size - _length(row[index]))
        cells.append(blank + row[index] if columns[index].is_number else row[index] + blank)
    return _GAP.join(cells).rstrip()


def _length(text: str) -> int:
    from rich.cells import cell_len  # noqa: PLC0415 - `--help` stays quick

    return cell_len(text)
