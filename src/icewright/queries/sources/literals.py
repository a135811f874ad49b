"""What is kept of the values in queries: they may name people, and be secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from icewright.core.errors import InvalidConfiguration
from icewright.model.queries.literal_digests import literal_digest
from icewright.model.queries.queries import (
    SQL_LENGTH_MAX,
    Filter,
    Literal,
    LiteralKind,
    LiteralPolicy,
    QueryRecord,
    QuerySource,
    TableRead,
)
from icewright.queries.sources.values import date, timestamp

if TYPE_CHECKING:
    from icewright.queries.sources.sql_text import ParsedSql

KEY_LENGTH_MIN: Final = 16
VALUES_MAX: Final = 50
"""Literals of one filter that are kept; of more, only their number."""
_HASHED_KINDS: Final = {LiteralKind.STRING, LiteralKind.HASHED}
_OF_SPARK: Final = {QuerySource.SPARK, QuerySource.SQL}
"""Sources whose texts are in the dialect of Spark."""
_GLUED: Final = re.compile(r"[\w']\Z")
"""The end of a word that a quote behind it would be taken into."""
_TYPES_BEFORE_DATES: Final = {"DATE": date, "TIMESTAMP": timestamp}


@dataclass(frozen=True, slots=True)
class LiteralRules:
    """The policy of an installation, with the key of its digests: who does not have it cannot try values."""

    policy: LiteralPolicy
    key: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if self.policy is LiteralPolicy.HASH and len(self.key) < KEY_LENGTH_MIN:
            raise InvalidConfiguration(f"the key that strings are hashed with has fewer than {KEY_LENGTH_MIN} bytes")

    def record(self, record: QueryRecord, parsed: ParsedSql | None) -> QueryRecord:
        """A record as it may be kept: ``record.sql`` is the whole text, ``parsed`` the same, if it could be read."""
        return replace(record, sql=self._text(record.sql, parsed), tables=tuple(map(self._read, record.tables)))

    def _read(self, read: TableRead) -> TableRead:
        return replace(read, filters=tuple(dict.fromkeys(map(self._filter, read.filters))))

    def _filter(self, one: Filter) -> Filter:
        if len(one.literals) > VALUES_MAX:
            number = Literal(LiteralKind.DROPPED, f"{len(one.literals)} values")
            return replace(one, literals=(number,))
        return replace(one, literals=tuple(map(self.literal, one.literals)))

    def literal(self, literal: Literal) -> Literal:
        """A literal as it may be kept."""
        match self.policy:
            case LiteralPolicy.KEEP:
                return literal
            case LiteralPolicy.HASH:
                is_hashed = literal.kind in _HASHED_KINDS
                return Literal(LiteralKind.HASHED, self._digest(literal.text)) if is_hashed else literal
            case LiteralPolicy.DROP:
                return Literal(LiteralKind.DROPPED)

    def _text(self, text: str, parsed: ParsedSql | None) -> str:
        if self.policy is LiteralPolicy.KEEP:
            return text[:SQL_LENGTH_MAX]
        return "" if parsed is None else self._without_values(parsed)[:SQL_LENGTH_MAX]

    def _without_values(self, parsed: ParsedSql) -> str:
        """The words of a text with blanks between them: comments, and all else between words, are left out."""
        from icewright.queries.sources.sql_text import NUMBERS, STRINGS  # noqa: PLC0415 - with sqlglot, which takes 0.7 s of CPU to load

        pieces: list[str] = []
        length, end, before = 0, 0, ""
        for token in parsed.tokens:
            said = parsed.text[token.start : token.end + 1]
            if token.token_type in STRINGS:
                said = said if self._is_date(before, token.text) else self._string(token.text)
            elif token.token_type in NUMBERS and self.policy is LiteralPolicy.DROP:
                said = "?"
            # What only touched is kept apart: b"x" is two words of Doris, and b'hash-1' is a wrong number.
            is_apart = token.start > end or (said.startswith("'") and pieces and _GLUED.search(pieces[-1]) is not None)
            pieces.append(f" {said}" if is_apart and pieces else said)
            length += len(pieces[-1])
            end, before = token.end + 1, said.upper()
            if length > SQL_LENGTH_MAX:
                break
        return "".join(pieces)

    def _is_date(self, type_before: str, text: str) -> bool:
        """Whether it is the value of ``DATE '2026-01-01'``, which stays as numbers do."""
        read = _TYPES_BEFORE_DATES.get(type_before)
        is_kept = self.policy is LiteralPolicy.HASH and read is not None
        return is_kept and read is not None and read(text).kind in {LiteralKind.DATE, LiteralKind.TIMESTAMP}

    def _string(self, text: str) -> str:
        return "?" if self.policy is LiteralPolicy.DROP else f"'hash-{self._digest(text)}'"

    def _digest(self, text: str) -> str:
        return literal_digest(self.key, text)


def parsed_sql(query: QueryRecord) -> ParsedSql | None:
    """The text of a query, in the dialect of where it comes from; None where it cannot be read."""
    from icewright.queries.sources.sql_text import SqlDialect, UnreadableSql, parse  # noqa: PLC0415 - with sqlglot, which takes 0.7 s of CPU to load

    try:
        return parse(query.sql, SqlDialect.SPARK if query.source in _OF_SPARK else SqlDialect.TRINO)
    except UnreadableSql:
        return None
