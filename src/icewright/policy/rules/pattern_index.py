"""Values by patterns of names: those that a name matches, without a comparison with all the others.

Names that are told in full are found at once. Of other patterns the parts without a star, from the beginning or from
the end of a name, lead through a tree to the few that may match; then the characters before the next star tell. Only
patterns that begin and end with a star are compared with every name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Generic, TypeVar

from icewright.model.iceberg.names import TableName
from icewright.policy.rules.name_patterns import Glob, NamePattern

T = TypeVar("T")


@dataclass(slots=True)
class _Node(Generic[T]):
    """Patterns that tell the parts on the way here: ``here`` those that tell no more, by how the next part begins."""

    below: dict[str, _Node[T]] = field(default_factory=dict)
    here: dict[str, list[tuple[NamePattern, T]]] = field(default_factory=dict)
    lengths: set[int] = field(default_factory=set)
    """Of the beginnings."""

    def add(self, globs: Sequence[Glob], pattern: NamePattern, value: T) -> None:
        node, plain = self, _plain(globs)
        for part in plain:
            node = node.below.setdefault(part, _Node())
        begins = globs[len(plain)].pieces[0] if len(globs) > len(plain) else ""
        node.here.setdefault(begins, []).append((pattern, value))
        node.lengths.add(len(begins))

    def find(self, parts: Sequence[str]) -> Iterator[tuple[NamePattern, T]]:
        """Those that may match. One with nothing behind the last part matches no such name: it asks for more."""
        node: _Node[T] | None = self
        for part in parts:
            if node is None:
                return
            for length in node.lengths:
                if length <= len(part):
                    yield from node.here.get(part[:length], ())
            node = node.below.get(part)


class PatternIndex(Generic[T]):
    """Built once; safe for use by several threads."""

    def __init__(self, values: Iterable[tuple[NamePattern, T]]) -> None:
        self._full: dict[tuple[str, ...], list[tuple[NamePattern, T]]] = {}
        self._forwards, self._backwards = _Node[T](), _Node[T]()
        for pattern, value in values:
            backwards = pattern.head[::-1] if pattern.tail is None else pattern.tail[::-1]
            told, told_at_end = _plain(pattern.head), _plain(backwards)
            if pattern.tail is None and len(told) == len(pattern.head):
                self._full.setdefault(told, []).append((pattern, value))
            elif told_at_end and len(told_at_end) >= len(told):  # there are more names of tables than of catalogs
                self._backwards.add(backwards, pattern, value)
            else:
                self._forwards.add(pattern.head, pattern, value)

    def matches(self, name: TableName) -> list[T]:
        """The values whose patterns a name matches, in no order."""
        return [value for pattern, value in self._candidates(name) if pattern.matches(name)]

    def _candidates(self, name: TableName) -> Iterator[tuple[NamePattern, T]]:
        parts = (name.catalog, *name.namespace, name.name)
        yield from self._full.get(parts, ())
        yield from self._forwards.find(parts)
        yield from self._backwards.find(parts[::-1])


def _plain(globs: Sequence[Glob]) -> tuple[str, ...]:
    """The parts without a star that come first."""
    return tuple(glob.pieces[0] for glob in takewhile(lambda one: one.is_plain, globs))
