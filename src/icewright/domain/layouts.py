"""Layouts: in which order the rows of a partition are spread over its files.

An owner names columns (:class:`LayoutExpression`); a plan names fields by their ids (:class:`Layout`), which stay the
same when columns are renamed. A layout is icewright's own matter: the table's sort order, which binds every writer, is
another thing, though a table without a layout of its own is laid out by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from icewright.domain.tables import SortField


class Curve(StrEnum):
    """How several columns become one order."""

    SORT = "sort"
    """The first column leads, the next one decides among equals."""
    ZORDER = "zorder"
    """Bits of all columns interleaved (Morton 1966)."""
    HILBERT = "hilbert"
    """Neighbours on the curve are neighbours in every column (Hilbert 1891); 2 to 4 columns."""


class Level(StrEnum):
    """How much a rewrite does for a partition, and costs."""

    LEVEL_0 = "level-0"
    """Small files merged, rows in the order in which they came."""
    LEVEL_1 = "level-1"
    """What has gathered since the last Level 1, ordered by the layout as a run of its own."""
    LEVEL_2 = "level-2"
    """The whole partition ordered anew."""


@dataclass(frozen=True, slots=True)
class LayoutColumn:
    """A column of a layout as its owner writes it. ``path`` are the names from the outermost struct inwards."""

    path: tuple[str, ...]
    direction: str = "asc"
    null_order: str = "nulls-first"


@dataclass(frozen=True, slots=True)
class LayoutExpression:
    """What an owner asks for: ``hilbert(user_id, ts)``."""

    curve: Curve
    columns: tuple[LayoutColumn, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """An order of rows by the fields of one table. ``sort_order_id`` is that of the table's own order, if it is it.

    Curves go by identity transforms, ascending, nulls first.
    """

    curve: Curve
    fields: tuple[SortField, ...]
    sort_order_id: int | None = None

    @property
    def key(self) -> str:
        """The same text for the same order, whatever the columns are called: ``hilbert(3,7)``, ``sort(2 desc)``.

        What a snapshot's summary says of the files that it added.
        """
        return f"{self.curve}({','.join(_text(field) for field in self.fields)})"


def _text(field: SortField) -> str:
    text = str(field.source_id) if field.transform == "identity" else f"{field.transform}({field.source_id})"
    usual = "nulls-first" if field.direction == "asc" else "nulls-last"
    text += "" if field.direction == "asc" else f" {field.direction}"
    return text if field.null_order == usual else f"{text} {field.null_order}"
