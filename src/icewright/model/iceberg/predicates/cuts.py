"""Cut layouts: a binary tree of comparisons taken from the filters of queries (qd-tree, Yang et al. 2020).

A row goes to the left of a cut where ``column operator literal`` holds, and where the column is NULL; to the right
otherwise, NaN among them. Its leaf is where it ends; leaves are numbered from left to right.

The text of a tree is JSON of one version with its cuts in preorder, ``null`` for a leaf. It comes from a table property
that anybody may have written: :func:`parse_cuts` takes nothing that is not within the bounds below.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, Final

from icewright.model.iceberg.predicates.comparisons import Literal, LiteralKind, Operator

VERSION: Final = 1
TEXT_LENGTH_MAX: Final = 16_384
"""Of the property: it is read with the metadata of the table at each commit."""
CUTS_MAX: Final = 255
COLUMNS_MAX: Final = 8
DEPTH_MAX: Final = 64
"""Cuts from the root to a leaf."""
LITERAL_LENGTH_MAX: Final = 256
"""Characters: as many as the sample has of a string by which files are divided."""
NAME_LENGTH_MAX: Final = 255
PATH_LENGTH_MAX: Final = 32
ID_LENGTH: Final = 16

OPERATORS: Final = (Operator.LT, Operator.LT_EQ)
"""All that a cut may be: what bounds of files can tell apart. Every other comparison is made of these."""

_KINDS: Final = frozenset(
    {LiteralKind.BOOLEAN, LiteralKind.NUMBER, LiteralKind.STRING, LiteralKind.DATE, LiteralKind.TIMESTAMP}
)
_NUMBER: Final = re.compile(r"-?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,3})?", re.ASCII)
_KINDS_OF_TYPES: Final = (
    (re.compile(r"boolean"), frozenset({LiteralKind.BOOLEAN})),
    (re.compile(r"int|long|float|double|decimal\(.*\)", re.DOTALL), frozenset({LiteralKind.NUMBER})),
    (re.compile(r"string"), frozenset({LiteralKind.STRING})),
    (re.compile(r"date"), frozenset({LiteralKind.DATE})),
    (re.compile(r"timestamp(tz)?(_ns)?"), frozenset({LiteralKind.DATE, LiteralKind.TIMESTAMP})),
)
"""Iceberg's types that may be cut, and the literals of each."""


class CutsError(ValueError):
    """What is no tree of cuts; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Cut:
    """``column operator literal``; ``column`` is a place among those of the tree."""

    column: int
    operator: Operator
    literal: Literal


@dataclass(frozen=True)
class CutTree:
    """Cuts in preorder, None for a leaf. ``columns`` are paths from the outermost struct inwards."""

    columns: tuple[tuple[str, ...], ...]
    cuts: tuple[Cut | None, ...]

    @cached_property
    def text(self) -> str:
        """What :func:`parse_cuts` reads back as this tree: the same text for the same tree."""
        cuts = [
            None if cut is None else [cut.column, cut.operator.value, cut.literal.kind.value, cut.literal.text]
            for cut in self.cuts
        ]
        said = {"version": VERSION, "columns": [list(path) for path in self.columns], "cuts": cuts}
        return json.dumps(said, separators=(",", ":"), ensure_ascii=False)

    @cached_property
    def id(self) -> str:
        """The same for the same text: what snapshots say of the files in this order."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:ID_LENGTH]

    def __str__(self) -> str:
        return self.text


def parse_cuts(text: str) -> CutTree:
    """The tree that a text says. Raises :class:`CutsError`."""
    if len(text) > TEXT_LENGTH_MAX:
        raise CutsError(f"it has more than {TEXT_LENGTH_MAX:,} characters")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CutsError("it is not JSON") from error
    if not isinstance(said, dict) or said.keys() != {"version", "columns", "cuts"}:
        raise CutsError("it is not an object of version, columns and cuts")
    if type(said["version"]) is not int or said["version"] != VERSION:
        raise CutsError(f"it is not of version {VERSION}: another release wrote it")
    columns, cuts = said["columns"], said["cuts"]
    if not isinstance(columns, list) or not all(isinstance(path, list) for path in columns):
        raise CutsError("columns are no list of paths")
    if not isinstance(cuts, list) or len(cuts) > 2 * CUTS_MAX + 1:
        raise CutsError(f"cuts are no list of at most {CUTS_MAX} cuts")
    tree = CutTree(tuple(map(tuple, columns)), tuple(map(_cut, cuts)))
    check_cuts(tree)
    return tree


def check_cuts(tree: CutTree) -> None:
    """Refuse a tree that is out of bounds or is none, wherever it came from. Raises :class:`CutsError`."""
    if not all(1 <= len(path) <= PATH_LENGTH_MAX and all(map(_is_name, path)) for path in tree.columns):
        raise CutsError("a column has no name, or one that is too long")
    if not 1 <= len(tree.columns) <= COLUMNS_MAX or len(set(tree.columns)) < len(tree.columns):
        raise CutsError(f"it is not of 1 to {COLUMNS_MAX} columns that differ")
    cuts = [cut for cut in tree.cuts if cut is not None]
    if not 1 <= len(cuts) <= CUTS_MAX:
        raise CutsError(f"it has {len(cuts):,} cuts, and 1 to {CUTS_MAX} are allowed")
    for cut in cuts:
        if not 0 <= cut.column < len(tree.columns) or cut.operator not in OPERATORS:
            raise CutsError("a cut has no column of the tree, or no operator of cuts")
        if not is_value(cut.literal):
            raise CutsError("the literal of a cut is no value, or is too long")
    if {cut.column for cut in cuts} != set(range(len(tree.columns))):
        raise CutsError("a column has no cut")
    _check_shape(tree.cuts)
    if len(tree.text) > TEXT_LENGTH_MAX:
        raise CutsError(f"its text has more than {TEXT_LENGTH_MAX:,} characters")


def is_value(literal: Literal) -> bool:
    """Whether a literal is a value that a cut may have."""
    text = literal.text
    if literal.kind not in _KINDS or len(text) > LITERAL_LENGTH_MAX:
        return False
    match literal.kind:
        case LiteralKind.BOOLEAN:
            return text in ("true", "false")
        case LiteralKind.NUMBER:
            return _NUMBER.fullmatch(text) is not None
        case LiteralKind.STRING:
            return _is_text(text)
        case _:
            return _is_moment(literal)


def fits_type(literal: Literal, kind: Any) -> bool:
    """Whether a literal is a value of one of Iceberg's types, as a schema has it."""
    if not isinstance(kind, str):
        return False
    fits = any(known.fullmatch(kind) and literal.kind in kinds for known, kinds in _KINDS_OF_TYPES)
    if not fits or not kind.startswith("timestamp") or kind.startswith("timestamptz"):
        return fits
    return datetime.fromisoformat(literal.text).tzinfo is None


def _cut(said: Any) -> Cut | None:
    if said is None:
        return None
    if not isinstance(said, list) or [type(part) for part in said] != [int, str, str, str]:
        raise CutsError("a cut is no list of column, operator, kind of the literal and its text")
    try:
        return Cut(said[0], Operator(said[1]), Literal(LiteralKind(said[2]), said[3]))
    except ValueError as error:
        raise CutsError("a cut has an operator or a kind of literal that is unknown") from error


def _check_shape(cuts: Sequence[Cut | None]) -> None:
    """Whether the cuts in preorder are one tree, and how deep it is."""
    open_sides = [0]  # the depth of each subtree that is still to come, the next one last
    for cut in cuts:
        if not open_sides:
            raise CutsError("something follows the last leaf")
        depth = open_sides.pop()
        if cut is not None:
            if depth == DEPTH_MAX:
                raise CutsError(f"it is more than {DEPTH_MAX} cuts deep")
            open_sides += [depth + 1, depth + 1]
    if open_sides:
        raise CutsError("a cut has no leaf")


def _is_name(part: Any) -> bool:
    return isinstance(part, str) and 1 <= len(part) <= NAME_LENGTH_MAX and _is_text(part)


def _is_text(text: str) -> bool:
    """Without halves of surrogate pairs, which have no bytes."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def _is_moment(literal: Literal) -> bool:
    """Whether a date or a timestamp, in the years 1 to 9999 of UTC. Python takes any sign between date and time."""
    try:
        if literal.kind is LiteralKind.DATE:
            date.fromisoformat(literal.text)
        else:
            moment = datetime.fromisoformat(literal.text)
            if moment.tzinfo is not None:
                moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    return literal.text.isascii()
