"""The layouts that owners write: ``sort(ts desc, id)``, ``zorder(a, b)``, ``hilbert(user_id, ts)``, ``none``.

Of a tree of cuts it is the id, ``cuts(ID)``; the tree is a setting of its own.

Names are those of the table, with dots into structs; what is not a plain word stands in backticks, doubled inside.
Keywords may be in any case. Whether a table has the columns is not asked here: a rule may be for many tables.
"""

from __future__ import annotations

import re
from typing import NoReturn

from icewright.model.iceberg.layouts import COLUMN_CURVES, NO_LAYOUT, Curve, LayoutColumn, LayoutExpression

TEXT_LENGTH_MAX = 10_000
COLUMNS_MAX = {Curve.SORT: 32, Curve.ZORDER: 8, Curve.HILBERT: 4}
"""More columns than these add nothing to a sort; of a curve they leave each of them too few bits."""

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\W][\w-]*")
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")
_CURVES = {curve.value: curve for curve in COLUMN_CURVES}
_CUTS_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
_SHOWN = 30


class LayoutTextError(ValueError):
    """Text that is no layout; the message says what is wrong with it, and where."""


def parse_layout(text: str) -> LayoutExpression:
    """The layout that a text asks for. Raises :class:`LayoutTextError`."""
    if len(text) > TEXT_LENGTH_MAX:
        raise LayoutTextError(f"it has more than {TEXT_LENGTH_MAX:,} characters")
    return _Reader(text).layout()


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def layout(self) -> LayoutExpression:
        self._skip_space()
        start, word = self._at, self._word()
        if word == "none":
            self._end()
            return NO_LAYOUT
        if word == Curve.CUTS:
            return self._cuts()
        curve = _CURVES.get(word)
        if curve is None:
            self._wrong("sort, zorder, hilbert, cuts or none is missing", start)
        self._need("(")
        columns = [self._column(curve, [])]
        while self._take(","):
            columns.append(self._column(curve, columns))
        self._need(")", "a comma or )")
        self._end()
        if curve is not Curve.SORT and len(columns) == 1:
            raise LayoutTextError(f"{curve} is for 2 to {COLUMNS_MAX[curve]} columns, and sort for one")
        return LayoutExpression(curve, tuple(columns))

    def _cuts(self) -> LayoutExpression:
        self._need("(")
        self._skip_space()
        found = _CUTS_ID.match(self._text, self._at)
        if found is None:
            self._wrong("the id of a tree of cuts is missing, 16 hexadecimal digits")
        self._at = found.end()
        self._need(")")
        self._end()
        return LayoutExpression(Curve.CUTS, (), cuts_id=found[0])

    def _column(self, curve: Curve, before: list[LayoutColumn]) -> LayoutColumn:
        self._skip_space()
        start = self._at
        path = [self._name()]
        while self._take("."):
            path.append(self._name())
        if any(column.path == tuple(path) for column in before):
            self._wrong("the same column again", start)
        if len(before) == COLUMNS_MAX[curve]:
            self._wrong(f"{curve} takes at most {COLUMNS_MAX[curve]} columns", start)
        self._skip_space()
        start = self._at
        column = self._ordered(tuple(path))
        if curve is not Curve.SORT and self._at != start:
            self._wrong(f"{curve} knows no direction and no place for nulls, only sort does", start)
        return column

    def _ordered(self, path: tuple[str, ...]) -> LayoutColumn:
        word = self._word()
        direction = word if word in ("asc", "desc") else "asc"
        null_order = "nulls-last" if direction == "desc" else "nulls-first"
        word = self._word() if word == direction else word
        if word == "nulls":
            start, which = self._at, self._word()
            if which not in ("first", "last"):
                self._wrong("first or last is missing", start)
            null_order = f"nulls-{which}"
        elif word:
            self._wrong("asc, desc, nulls first, nulls last, a comma or ) is missing", self._at - len(word))
        self._skip_space()
        return LayoutColumn(path, direction, null_order)

    def _name(self) -> str:
        self._skip_space()
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is not None:
            self._at = quoted.end()
            return quoted[1].replace("``", "`")
        if self._text.startswith("`", self._at):
            self._wrong("a backtick that is not closed, or holds no name")
        plain = _WORD.match(self._text, self._at)
        if plain is None:
            self._wrong("a column is missing")
        self._at = plain.end()
        return plain[0]

    def _word(self) -> str:
        """The next keyword, in lower case; empty where there is none."""
        self._skip_space()
        found = _WORD.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0].lower()

    def _take(self, sign: str) -> bool:
        self._skip_space()
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def _need(self, sign: str, said: str = "") -> None:
        if not self._take(sign):
            self._wrong(f"{said or sign} is missing")

    def _end(self) -> None:
        self._skip_space()
        if self._at != len(self._text):
            self._wrong("nothing may follow a layout")

    def _skip_space(self) -> None:
        self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr] # matches the empty text

    def _wrong(self, what: str, at: int | None = None) -> NoReturn:
        place = self._at if at is None else at
        rest = self._text[place : place + _SHOWN]
        where = f"at character {place + 1}, {rest!r}" if rest else "at the end"
        raise LayoutTextError(f"{where}: {what}")
