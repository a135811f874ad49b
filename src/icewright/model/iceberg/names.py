"""Names and identities of tables.

A name can be reused and a table renamed, so everything durable is keyed by :class:`TableId` (catalog, uuid);
:class:`TableName` is for people and for asking the catalog. Names are input from strangers: any character may
occur in a part, and :meth:`TableName.__str__` and :meth:`TableName.parse` are inverse for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from icewright.core.errors import InvalidName

_PLAIN_PART = re.compile(r"[^\W][\w-]*\Z", re.UNICODE)
_PARTS_MIN = 3  # catalog, at least one level of namespace, table
PART_LENGTH_MAX = 10_000
_ALIKE_MIN = 0.7
_ALIKE_SHOWN = 3
_ALIKE_LENGTH_MAX = 200
_NO_CATALOG_TAKES = re.compile("[\0\ud800-\udfff]")
"""NUL, and lone surrogates: no database, no URL and no file can hold them."""


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """The identity of a table: it survives a rename and changes when the table is dropped and created again."""

    catalog: str
    uuid: str

    def __str__(self) -> str:
        return f"{self.catalog}:{self.uuid}"


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """Where a catalog keeps a table: catalog, namespace (one part or more) and name."""

    catalog: str
    namespace: tuple[str, ...]
    name: str

    def __post_init__(self) -> None:
        parts = (self.catalog, *self.namespace, self.name)
        if not self.namespace or not all(parts):
            raise InvalidName(
                f"not a table name: {parts!r}", hint="write catalog.namespace.table; no part may be empty"
            )
        if any(len(part) > PART_LENGTH_MAX for part in parts):
            raise InvalidName(f"a part of the table name is longer than {PART_LENGTH_MAX} characters")
        require_text(*parts)

    def __str__(self) -> str:
        return ".".join(quote_part(part) for part in (self.catalog, *self.namespace, self.name))

    @property
    def path(self) -> tuple[str, ...]:
        """Namespace and name, without the catalog."""
        return (*self.namespace, self.name)

    @classmethod
    def parse(cls, text: str, *, default_catalog: str | None = None) -> TableName:
        """``catalog.ns.table`` (parts with other characters in backticks, doubled inside) as a name.

        With ``default_catalog``, a name of two parts is taken to be in that catalog.
        Raises :class:`InvalidName`.
        """
        parts = split_parts(text)
        if default_catalog is not None and len(parts) == _PARTS_MIN - 1:
            parts = [default_catalog, *parts]
        if len(parts) < _PARTS_MIN:
            raise InvalidName(
                f"not a full table name: {text!r}",
                hint="write catalog.namespace.table, as `icewright scan` does",
            )
        return cls(parts[0], tuple(parts[1:-1]), parts[-1])


def require_text(*parts: str) -> None:
    """Raises :class:`InvalidName` for what cannot be written as UTF-8, or has a NUL: no catalog can be asked for it."""
    for part in parts:
        if _NO_CATALOG_TAKES.search(part):
            raise InvalidName(f"not a name: {part[:100]!r}", hint="names are UTF-8 text without NUL")


def alike(name: TableName, others: Iterable[TableName]) -> tuple[TableName, ...]:
    """Up to three other names that this one may be a misspelling of, the likeliest first."""
    scored = [(_likeness(name, other), other) for other in {*others} - {name}]
    found = sorted((-score, other) for score, other in scored if score)
    return tuple(other for _, other in found[:_ALIKE_SHOWN])


def _likeness(name: TableName, other: TableName) -> float:
    """How alike two names are, part by part; 0 where they are not."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - only where a name is wrong

    pairs = zip(*((one.catalog, ".".join(one.namespace), one.name) for one in (name, other)), strict=True)
    score = 1.0
    for given, there in pairs:
        if given != there:
            matcher = SequenceMatcher(None, given.casefold(), there.casefold())
            is_hopeless = max(len(given), len(there)) > _ALIKE_LENGTH_MAX or matcher.quick_ratio() < _ALIKE_MIN
            score *= 0.0 if is_hopeless else matcher.ratio()
    return score if score >= _ALIKE_MIN else 0.0


def did_you_mean(name: TableName, others: Iterable[TableName]) -> str:
    """``did you mean lake.db.events?``; nothing where none of the others is alike."""
    found = " or ".join(map(str, alike(name, others)))
    return f"did you mean {found}?" if found else ""


def quote_part(part: str) -> str:
    """A part as people write it: bare when it is a plain word, else in backticks with backticks doubled."""
    return part if _PLAIN_PART.match(part) else identifier(part)


def identifier(part: str) -> str:
    """A part as SQL reads it everywhere: always in backticks, backticks doubled.

    What people may leave bare (``my-table``, ``2024``, ``städte``) is no identifier to Spark's parser.
    """
    return "`" + part.replace("`", "``") + "`"


def split_parts(text: str) -> list[str]:
    """The parts of a dotted name, quotes removed. Raises :class:`InvalidName` on stray quotes and empty parts."""
    parts: list[str] = []
    position = 0
    while True:
        if position < len(text) and text[position] == "`":
            part, position = _quoted_part(text, position)
        else:
            end = text.find(".", position)
            end = len(text) if end < 0 else end
            part, position = text[position:end], end
            if "`" in part:
                raise InvalidName(f"stray backtick in {text!r}", hint="quote the whole part: `a``b`")
        if not part:
            raise InvalidName(f"empty part in the name {text!r}")
        parts.append(part)
        if position == len(text):
            return parts
        if text[position] != ".":
            raise InvalidName(f"expected a dot at character {position} of {text!r}")
        position += 1


def _quoted_part(text: str, start: int) -> tuple[str, int]:
    """The part whose opening backtick is at ``start``, and the position behind its closing one."""
    position = start + 1
    while True:
        end = text.find("`", position)
        if end < 0:
            raise InvalidName(f"unclosed backtick in {text!r}")
        if text[end + 1 : end + 2] != "`":
            return text[start + 1 : end].replace("``", "`"), end + 1
        position = end + 2


def sql_name(name: TableName, metadata_table: str | None = None) -> str:
    """A table, or one of its metadata tables, as Spark's SQL names it: every part in backticks."""
    parts = (name.catalog, *name.path, *(() if metadata_table is None else (metadata_table,)))
    return ".".join(map(identifier, parts))
