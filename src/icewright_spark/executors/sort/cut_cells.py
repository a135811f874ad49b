"""Cells of a cut layout: every row goes to its leaf, and files are whole leaves as far as they can be about equal.

Files are dealt to the two sides of each cut by the rows that a sample has there, from the root on. A cut that would
leave a side with less than half a file divides no files: that side goes into the next file. A leaf of several files is
divided further where the sample divides it, by the columns of the tree in turn (a k-d tree, Bentley 1975), so that what
no query asked for when the cuts were taken is in an order as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icewright.core.errors import Unsupported
from icewright.model.iceberg.predicates.comparisons import Operator
from icewright.model.iceberg.predicates.cuts import Cut, CutsError, CutTree, check_cuts
from icewright_spark.executors.sort.cuts import Cuts
from icewright_spark.executors.sort.literals import code_of, mark_of
from icewright_spark.executors.sort.scale import Codes, Column, Scale

FILE_SHARE_MIN: Final = 0.5
"""Of a file: what a side of a cut must have to be files of its own."""

_LEAF: Final = -1
"""The column of a node that is a leaf."""


@dataclass(frozen=True, slots=True)
class LeafTree:
    """Nodes by number, the root first: a row goes to the left whose code of the node's column is below its threshold.

    ``leaf`` is the number of a leaf from left to right. A leaf has itself on both sides.
    """

    scales: tuple[Scale, ...]
    column: Codes
    threshold: Codes
    left: Codes
    right: Codes
    leaf: Codes
    depth: int

    def leaves(self, columns: Sequence[Any]) -> Codes:
        """The leaf of each row."""
        codes = np.stack([scale.read(column) for scale, column in zip(self.scales, columns, strict=True)])
        return self.leaf[self._ends(codes)]

    def _ends(self, codes: Codes) -> Codes:
        node, rows = np.zeros(codes.shape[1], np.int64), np.arange(codes.shape[1])
        for _ in range(self.depth):
            below = codes[np.maximum(self.column[node], 0), rows] < self.threshold[node]
            node = np.where(below, self.left[node], self.right[node])
        return node


@dataclass(slots=True)
class _Node:
    """``mark`` and ``equal`` are of a division by the sample: below the mark, or up to it. None is NULL."""

    cut: Cut | None = None
    column: int = _LEAF
    mark: Any = None
    equal: bool = False
    left: int = 0
    right: int = 0
    leaf: int = 0


@dataclass(slots=True)
class _Builder:
    """Deals files to the nodes of a tree. ``codes`` are those of the sample, by column, on scales of all its values."""

    tree: CutTree
    scales: Sequence[Scale]
    codes: Sequence[Codes]
    nodes: list[_Node] = field(default_factory=list)
    starts: list[tuple[int, float]] = field(default_factory=list)
    """For each file the leaf that it begins in, and the share of the leaf's rows that is before it."""
    leaves: int = 0
    depth: int = 0
    at: int = 0
    """The next cut of the tree."""

    def build(self, rows: Codes, files: int, depth: int, *, begun: bool) -> int:
        """A node for the next subtree, whose sampled rows these are; ``begun``: its first file began before it."""
        cut = self.tree.cuts[self.at]
        self.at += 1
        if cut is None:
            return self._divided(rows, files, depth, begun=begun)
        below = self.codes[cut.column][rows] < threshold_of(cut, self.scales[cut.column])
        node = self._node(_Node(cut, cut.column), depth)
        counts = int(below.sum()), int(len(rows) - below.sum())
        left, right = _dealt(counts, files) or ((0, files) if counts[0] < counts[1] else (files, 0))
        self.nodes[node].left = self.build(rows[below], left, depth + 1, begun=begun)
        self.nodes[node].right = self.build(rows[~below], right, depth + 1, begun=0 in (left, right))
        return node

    def _divided(self, rows: Codes, files: int, depth: int, *, begun: bool) -> int:
        """A leaf of the tree, divided further if it is of several files."""
        for turn in range(len(self.codes) if files > 1 else 0):
            column = (depth + turn) % len(self.codes)
            found = self._division(column, rows, files)
            if found is not None:
                code, equal, below, dealt = found
                mark = None if code == 1 else self.scales[column].marks[int(code) // 2 - 1].as_py()
                node = self._node(_Node(None, column, mark, equal), depth)
                self.nodes[node].left = self._divided(rows[below], dealt[0], depth + 1, begun=begun)
                self.nodes[node].right = self._divided(rows[~below], dealt[1], depth + 1, begun=False)
                return node
        node = self._node(_Node(leaf=self.leaves), depth)
        self.nodes[node].left = self.nodes[node].right = node
        self.starts += [(self.leaves, number / files) for number in range(int(begun), files)]
        if files == 0 and not begun:
            self.starts.append((self.leaves, 0.0))
        self.leaves += 1
        return node

    def _division(self, column: int, rows: Codes, files: int) -> tuple[int, bool, Any, tuple[int, int]] | None:
        """Where the rows are divided so that whole files come out: a code, whether its rows are below it, and which."""
        if not len(rows):
            return None
        codes = self.codes[column][rows]
        aim = len(rows) * (files // 2) / files
        code = int(np.partition(codes, int(aim))[int(aim)])
        sides = [(abs(float(below.sum()) - aim), equal, below) for equal, below in _sides(codes, code)]
        _, equal, below = min(sides, key=lambda side: side[:2])
        dealt = _dealt((int(below.sum()), int(len(rows) - below.sum())), files)
        return None if dealt is None else (code, equal, below, dealt)

    def _node(self, node: _Node, depth: int) -> int:
        self.nodes.append(node)
        self.depth = max(self.depth, depth)
        return len(self.nodes) - 1


@dataclass(frozen=True, slots=True)
class CutPlaces:
    """Where rows go under a tree: the leaf is the key, and leaves are dealt to files by :class:`Cuts`."""

    tree: LeafTree
    cuts: Cuts

    @classmethod
    def of(cls, tree: CutTree, columns: Sequence[Column], files: int) -> CutPlaces:
        """From the tree and a sample of its columns. Raises :class:`Unsupported` for a tree that is not of them."""
        try:
            check_cuts(tree)
        except CutsError as error:
            raise Unsupported(f"the cuts of the layout cannot be carried out: {error}") from error
        marks = [_literal_marks(tree, place, column) for place, column in enumerate(columns)]
        scales = [
            _scale(column, [*its, *pc.unique(column.values.drop_null()).to_pylist()])
            for column, its in zip(columns, marks, strict=True)
        ]
        codes = [scale.codes(column.values) for scale, column in zip(scales, columns, strict=True)]
        builder = _Builder(tree, scales, codes)
        builder.build(np.arange(len(codes[0])), files, 0, begun=False)
        nodes = builder.nodes
        for node in nodes:
            if node.column != _LEAF and node.cut is None and node.mark is not None:
                marks[node.column].append(node.mark)
        small = tuple(_scale(column, its) for column, its in zip(columns, marks, strict=True))
        leaf_tree = LeafTree(
            small,
            np.array([node.column for node in nodes], np.int64),
            np.array([_threshold(node, small) for node in nodes], np.int64),
            np.array([node.left for node in nodes], np.int64),
            np.array([node.right for node in nodes], np.int64),
            np.array([node.leaf for node in nodes], np.int64),
            builder.depth,
        )
        return cls(leaf_tree, Cuts.at(builder.starts[1:]))

    def leaves(self, columns: Sequence[Any]) -> Codes:
        """The leaf of each row."""
        return self.tree.leaves(columns)

    def cells(self, leaves: Codes, ties: Any) -> npt.NDArray[np.int32]:
        """The file of each row."""
        return self.cuts.cells(2 * leaves + 1, ties)


def threshold_of(cut: Cut, scale: Scale) -> int:
    """The code from which on values are to the right of a cut. Raises :class:`Unsupported` for another type's."""
    code = code_of(cut.literal, scale)
    if code is None:
        raise Unsupported(
            f"a cut by the {cut.literal.kind} {cut.literal.text[:40]!r} is of no value of a column of {scale.kind}",
            hint="have the queries of the table analyzed again",
        )
    return code + 1 if cut.operator is Operator.LT_EQ and code % 2 else code


def _threshold(node: _Node, scales: Sequence[Scale]) -> int:
    if node.column == _LEAF:
        return 0
    scale = scales[node.column]
    if node.cut is not None:
        return threshold_of(node.cut, scale)
    code = int(scale.codes(pa.array([node.mark], scale.marks.type))[0])
    return code + int(node.equal)


def _dealt(rows: tuple[int, int], files: int) -> tuple[int, int] | None:
    """The files of both sides, by their rows; None where one of them has too few."""
    if files <= 1 or min(rows) * files < FILE_SHARE_MIN * sum(rows) or not min(rows):
        return None
    left = min(max(round(files * rows[0] / sum(rows)), 1), files - 1)
    return left, files - left


def _sides(codes: Codes, code: int) -> list[tuple[bool, Any]]:
    return [(False, codes < code), (True, codes <= code)]


def _literal_marks(tree: CutTree, place: int, column: Column) -> list[Any]:
    marks = [mark_of(cut.literal, column.kind) for cut in tree.cuts if cut is not None and cut.column == place]
    return [mark for mark in marks if mark is not None]


def _scale(column: Column, marks: Sequence[Any]) -> Scale:
    values = pa.array(sorted(set(marks)), column.values.type)
    return Scale(column.kind, values, descending=False, nulls_last=False)
