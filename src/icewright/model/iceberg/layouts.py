"""Layouts: in which order the rows of a partition are spread over its files.

An owner names columns, or a tree of cuts by its id (:class:`LayoutExpression`); a plan names fields by their ids
(:class:`Layout`), which stay the same when columns are renamed. A layout is icewright's own matter: the table's sort
order, which binds every writer, is another thing, though a table without a layout of its own is laid out by it.

The Hilbert curve is a table of states, by which the planner and the shuffle compute keys. Skilling's loop over bits
(*Programming the Hilbert curve*, AIP Conf. Proc. 707, 2004) turns and mirrors the lower bits by what the upper ones
are, so what it has done so far is one of a few states.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final, TypeAlias

from icewright.core.times import Instant
from icewright.model.iceberg.names import quote_part
from icewright.model.iceberg.predicates.cuts import CutTree
from icewright.model.iceberg.tables import LAYOUT_KEY, LEVEL_KEY, Operation, Snapshot, SortField, TableMetadata

_KEY_LENGTH_MAX: Final = 1_000
_FIELD: Final = r"(?:\d{1,10}|[a-z]+(?:\[\d{1,10}\])?\(\d{1,10}\))(?: desc)?(?: nulls-(?:first|last))?"
_KEY: Final = re.compile(rf"(?:sort|zorder|hilbert)\({_FIELD}(?:,{_FIELD})*\)|cuts\([0-9a-f]{{16}}\)", re.ASCII)

_USUAL_NULL_ORDER = {"asc": "nulls-first", "desc": "nulls-last"}
"""As Iceberg has it where nothing is said."""


class Curve(StrEnum):
    """How several columns become one order."""

    SORT = "sort"
    """The first column leads, the next one decides among equals."""
    ZORDER = "zorder"
    """Bits of all columns interleaved (Morton 1966)."""
    HILBERT = "hilbert"
    """Neighbours on the curve are neighbours in every column (Hilbert 1891); 2 to 4 columns."""
    CUTS = "cuts"
    """A tree of comparisons from the filters of queries (:mod:`icewright.model.iceberg.predicates.cuts`)."""


COLUMN_CURVES: Final = (Curve.SORT, Curve.ZORDER, Curve.HILBERT)
"""Those that columns alone say."""


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

    def __str__(self) -> str:
        name = ".".join(quote_part(part) for part in self.path)
        return name + order_text(self.direction, self.null_order.replace("-", " "))


@dataclass(frozen=True, slots=True)
class LayoutExpression:
    """What an owner asks for: ``hilbert(user_id, ts)``. As text it is what the owner would write.

    Without columns it is ``none``: no layout, also where the table has a sort order. ``cuts(ID)`` names a tree that
    stands elsewhere: ``cuts`` is that tree where it is known, ``cuts_id`` its id where it is not; then no columns are
    known either.
    """

    curve: Curve
    columns: tuple[LayoutColumn, ...]
    cuts: CutTree | None = None
    cuts_id: str = ""

    @classmethod
    def by_cuts(cls, tree: CutTree) -> LayoutExpression:
        """The layout by a tree."""
        return cls(Curve.CUTS, tuple(LayoutColumn(path) for path in tree.columns), tree)

    @property
    def is_none(self) -> bool:
        """Whether it asks for no layout."""
        return self.curve is not Curve.CUTS and not self.columns

    def __str__(self) -> str:
        if self.curve is Curve.CUTS:
            return f"cuts({self.cuts_id if self.cuts is None else self.cuts.id})"
        return f"{self.curve}({', '.join(map(str, self.columns))})" if self.columns else "none"


NO_LAYOUT = LayoutExpression(Curve.SORT, ())
"""What ``none`` means: rows stay as they come."""


@dataclass(frozen=True, slots=True)
class Layout:
    """An order of rows by the fields of one table. ``sort_order_id`` is that of the table's own order, if it is it.

    Curves go by identity transforms, ascending, nulls first. Under ``cuts`` the fields are those of the tree's columns.
    """

    curve: Curve
    fields: tuple[SortField, ...]
    sort_order_id: int | None = None
    cuts: CutTree | None = None

    @property
    def key(self) -> str:
        """The same text for the same order, whatever the columns are called: ``hilbert(3,7)``, ``sort(2 desc)``.

        What a snapshot's summary says of the files that it added. Of cuts it is the id of their tree: a column that is
        renamed makes another one.
        """
        if self.cuts is not None:
            return f"{self.curve}({self.cuts.id})"
        return f"{self.curve}({','.join(_text(field) for field in self.fields)})"


@dataclass(frozen=True, slots=True)
class Run:
    """The files that one commit of ours added, all ordered by ``layout`` (a :attr:`Layout.key`).

    A file belongs to the run of the snapshot that added it, as its manifest entry says.
    """

    level: Level
    layout: str
    committed_at: Instant


def run_of(snapshot: Snapshot) -> Run | None:
    """The run that a snapshot added, None where it is not ours, or does not say of its files how they are ordered.

    Summaries are input: what is none of our words counts for nothing, so that its files are taken for unordered ones.
    """
    level, layout = snapshot.summary.get(LEVEL_KEY, ""), snapshot.summary.get(LAYOUT_KEY, "")
    ours = snapshot.task_id is not None and snapshot.operation is Operation.REPLACE
    known = level in tuple(Level) and len(layout) <= _KEY_LENGTH_MAX and _KEY.fullmatch(layout) is not None
    return Run(Level(level), layout, snapshot.committed_at) if ours and known else None


def runs_of(metadata: TableMetadata) -> Mapping[int, Run]:
    """The runs that the snapshots of a table tell of, on any branch, by snapshot id."""
    return {s.snapshot_id: run for s in metadata.snapshots if (run := run_of(s)) is not None}


def _text(field: SortField) -> str:
    text = str(field.source_id) if field.transform == "identity" else f"{field.transform}({field.source_id})"
    return text + order_text(field.direction, field.null_order)


def order_text(direction: str, null_order: str) -> str:
    """`` desc nulls-first``, or nothing: only what is not usual."""
    usual = _USUAL_NULL_ORDER.get(direction, "nulls-last")
    text = "" if direction == "asc" else f" {direction}"
    return text if null_order.replace(" ", "-") == usual else f"{text} {null_order}"


KEY_BITS: Final = 63
"""The most bits of a place on a curve."""
MAX_COORDINATE_BITS: Final = 16

_HilbertTable: TypeAlias = tuple[tuple[int, ...], ...]
_State: TypeAlias = tuple[tuple[int, ...], int, int]
"""Which coordinate stands where, which of them are mirrored, and whether the output is turned over."""


@cache
def hilbert_table(columns: int) -> tuple[_HilbertTable, _HilbertTable]:
    """By state, and by one bit of each coordinate: the same number of bits of the curve, and the next state.

    State 0 is the first; the first coordinate's bit is ahead in what goes in.
    """
    first: _State = tuple(range(columns)), 0, 0
    found, outputs, states = {first: 0}, [], []
    for state in (queue := [first]):  # grows meanwhile
        steps = [_step(state, digits, columns) for digits in range(1 << columns)]
        for _, behind in steps:
            if behind not in found:
                found[behind] = len(found)
                queue.append(behind)
        outputs.append(tuple(output for output, _ in steps))
        states.append(tuple(found[behind] for _, behind in steps))
    return tuple(outputs), tuple(states)


def _step(state: _State, digits: int, columns: int) -> tuple[int, _State]:
    """Skilling's loops for one bit of each coordinate, the first one's ahead in ``digits`` and in what comes out."""
    order, mirrored, turned = list(state[0]), [state[1] >> place & 1 for place in range(columns)], state[2]
    bits = [(digits >> (columns - 1 - order[place]) & 1) ^ mirrored[place] for place in range(columns)]
    for place, bit in enumerate(bits):
        if bit:
            mirrored[0] ^= 1
        else:
            order[0], order[place] = order[place], order[0]
            mirrored[0], mirrored[place] = mirrored[place], mirrored[0]
    output = gray = 0
    for bit in bits:
        gray ^= bit
        output = output << 1 | gray ^ turned
    return output, (tuple(order), sum(bit << place for place, bit in enumerate(mirrored)), turned ^ gray)
