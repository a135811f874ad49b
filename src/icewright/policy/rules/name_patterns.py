"""Patterns for names of tables, which people write into policy files.

``*`` is any run of characters within one part, ``**`` as a part is one part or more; everything else is itself. Parts
are separated by dots, and may be in backticks, as names are; a star within backticks is a star. There is nothing
that backtracks: the pieces between stars are found one after the other, each leftmost, so the time is that of a few
searches for plain text, whoever wrote the pattern and whatever the name is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from icewright.core.errors import InvalidName
from icewright.model.iceberg.names import TableName, split_parts
from icewright.model.policy.policies import TEXT_LENGTH_MAX

_STAR = "*"
_ANY_PARTS = "**"
_OTHER_GLOBS = frozenset("?[]{}!")
_PARTS_MIN = 3  # catalog, namespace, table


@dataclass(frozen=True, slots=True)
class Glob:
    """A text with stars, as the pieces between them: with one piece it is that text, and nothing else."""

    pieces: tuple[str, ...]

    @property
    def is_plain(self) -> bool:
        """Whether there is no star in it."""
        return len(self.pieces) == 1

    @property
    def characters(self) -> int:
        """How many characters it tells."""
        return sum(len(piece) for piece in self.pieces)

    def matches(self, text: str) -> bool:
        """Whether a text is one of those that it stands for."""
        first, last = self.pieces[0], self.pieces[-1]
        if self.is_plain:
            return text == first
        end = len(text) - len(last)
        if end < len(first) or not text.startswith(first) or not text.endswith(last):
            return False
        position = len(first)
        for piece in self.pieces[1:-1]:
            found = text.find(piece, position, end)
            if found < 0:
                return False
            position = found + len(piece)
        return True


@dataclass(frozen=True, slots=True, order=True)
class Specificity:
    """How much a pattern says of a name; of two patterns that match, the greater one is the more specific."""

    plain_parts: int = 0
    characters: int = 0
    parts: int = 0
    fixed_length: bool = False
    conditions: int = 0
    """What is asked beside the name: an owner, properties."""


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A pattern. ``tail`` is None where it has no ``**``; else what comes behind that."""

    head: tuple[Glob, ...]
    tail: tuple[Glob, ...] | None

    def matches(self, name: TableName) -> bool:
        """Whether it stands for that name."""
        parts = (name.catalog, *name.namespace, name.name)
        if self.tail is None:
            return len(parts) == len(self.head) and _all_match(self.head, parts)
        begin, end = len(self.head), len(parts) - len(self.tail)
        return begin < end and _all_match(self.head, parts[:begin]) and _all_match(self.tail, parts[end:])

    @property
    def specificity(self) -> Specificity:
        """How much it says of a name."""
        globs = (*self.head, *(self.tail or ()))
        return Specificity(
            sum(glob.is_plain for glob in globs),
            sum(glob.characters for glob in globs),
            len(globs),
            self.tail is None,
        )

    @property
    def is_everything(self) -> bool:
        """Whether it is written so that every name of some length, or of any, matches."""
        return self.specificity.characters == 0


def glob(text: str) -> Glob:
    """A text with stars; several in a row are one."""
    pieces = text.split(_STAR)
    return Glob((pieces[0], *(piece for piece in pieces[1:-1] if piece), *pieces[1:][-1:]))


@lru_cache(maxsize=10_000)
def name_pattern(text: str) -> NamePattern:
    """The pattern that a text is. Raises :class:`InvalidName`."""
    if len(text) > TEXT_LENGTH_MAX:
        raise InvalidName(f"a pattern is longer than {TEXT_LENGTH_MAX} characters")
    quoted = [text[:1] == "`", *_is_quoted(text)] if text else [False]
    parts = split_parts(text)
    stars = [n for n, part in enumerate(parts) if part == _ANY_PARTS and not quoted[n]]
    if len(stars) > 1:
        raise InvalidName(f"there is more than one ** in {text!r}", hint="write two patterns")
    if not stars and len(parts) < _PARTS_MIN:
        raise InvalidName(
            f"{text!r} is no full name, so it matches no table",
            hint=f"write catalog.namespace.table, or {text}.** for all tables below",
        )
    globs = [_part(part, text, is_quoted=quoted[n]) for n, part in enumerate(parts) if n not in stars]
    if not stars:
        return NamePattern(tuple(globs), None)
    return NamePattern(tuple(globs[: stars[0]]), tuple(globs[stars[0] :]))


def _is_quoted(text: str) -> list[bool]:
    """Whether each part but the first is in backticks: a dot outside of backticks, and then one."""
    found, inside = [], False
    for position, character in enumerate(text):
        if character == "`":
            inside = not inside
        elif character == "." and not inside:
            found.append(text[position + 1 : position + 2] == "`")
    return found


def _part(part: str, text: str, *, is_quoted: bool) -> Glob:
    if is_quoted:
        return Glob((part,))
    wrong = next((character for character in part if character in _OTHER_GLOBS), None)
    if wrong is not None:
        hint = "there are * and **; put a part with such characters in backticks"
        raise InvalidName(f"{wrong} in {text!r} is no pattern", hint=hint)
    if _ANY_PARTS in part:
        raise InvalidName(f"** in {text!r} is not a part of its own", hint="write lake.sales.**, or lake.sales*.**")
    return glob(part)


def _all_match(globs: Sequence[Glob], parts: Sequence[str]) -> bool:
    return all(one.matches(part) for one, part in zip(globs, parts, strict=True))
