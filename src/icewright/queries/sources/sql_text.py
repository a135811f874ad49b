"""SQL of an engine as a syntax tree, within limits: the text comes from strangers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from icewright.core.errors import InvalidMessage

LENGTH_MAX: Final = 100_000
"""Characters of a text that is read at all: half a second of CPU for an ordinary one, a few for the worst."""
_NODES_MAX: Final = 100_000
_STEPS_A_TOKEN_MAX: Final = 3
"""How often the parser may move for each token: ordinary queries take 1 to 2; nested arrays double it by each level."""
_STEPS_FREE: Final = 1_000


class UnreadableSql(InvalidMessage):
    """A text that is no query in the dialect that it should be in, or one beyond the limits."""

    code = "unreadable-sql"


class SqlDialect(StrEnum):
    """Whose SQL a text is."""

    TRINO = "trino"
    SPARK = "spark"
    ATHENA = "athena"
    BIGQUERY = "bigquery"
    CLICKHOUSE = "clickhouse"
    DORIS = "doris"
    DREMIO = "dremio"
    DUCKDB = "duckdb"
    HIVE = "hive"
    POSTGRES = "postgres"
    PRESTO = "presto"
    REDSHIFT = "redshift"
    SNOWFLAKE = "snowflake"
    STARROCKS = "starrocks"

    @property
    def folds_case(self) -> bool:
        """Whether names are lower case wherever the engine keeps them."""
        return self in {SqlDialect.TRINO, SqlDialect.PRESTO, SqlDialect.ATHENA, SqlDialect.HIVE}


@dataclass(frozen=True, slots=True)
class ParsedSql:
    """A text, its tokens, and its first statement."""

    text: str
    dialect: SqlDialect
    tokens: tuple[Token, ...]
    statement: exp.Expr


class _TooManySteps(Exception):
    """The parser goes back and forth."""


def parse(text: str, dialect: SqlDialect) -> ParsedSql:
    """The one statement of a text. Raises :class:`UnreadableSql`, in time and memory that the length bounds."""
    tokens = tokenize(text, dialect)
    parser = _parser_of(dialect)(dialect=_dialect_of(dialect), max_nodes=_NODES_MAX)
    parser.steps_left = _STEPS_FREE + _STEPS_A_TOKEN_MAX * len(tokens)
    try:
        statements = [statement for statement in parser.parse([*tokens], text) if statement is not None]
    except RecursionError as error:
        raise UnreadableSql("the SQL is nested too deeply", hint="send the parts as queries of their own") from error
    except _TooManySteps as error:
        raise UnreadableSql("the SQL takes too long to read", hint="it nests what cannot be read quickly") from error
    except Exception as error:  # noqa: BLE001 - a parser of others, a text of strangers: nothing else may come out
        raise UnreadableSql(f"not SQL of {dialect}: {_place(error)}", hint="check the dialect") from None
    if len(statements) != 1:
        raise UnreadableSql(f"{len(statements)} statements in one text", hint="send one query in each text")
    return ParsedSql(text, dialect, tokens, statements[0])


def tokenize(text: str, dialect: SqlDialect) -> tuple[Token, ...]:
    """The words of a text. Raises :class:`UnreadableSql`."""
    if len(text) > LENGTH_MAX:
        raise UnreadableSql(
            f"the SQL has {len(text):,} characters; {LENGTH_MAX:,} are read",
            hint="generated lists of values are what is usually so long: join with a table instead",
        )
    try:
        return tuple(_dialect_of(dialect).tokenize(text))
    except Exception as error:  # noqa: BLE001 - as above
        raise UnreadableSql(f"not SQL of {dialect}: {_place(error)}", hint="check the dialect") from None


STRINGS: Final = frozenset(
    {
        TokenType.STRING,
        TokenType.NATIONAL_STRING,
        TokenType.RAW_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.UNICODE_STRING,
        TokenType.BYTE_STRING,
        TokenType.HEX_STRING,
        TokenType.BIT_STRING,
    }
)
"""Tokens whose text is a value of type string, or as good as one."""
NUMBERS: Final = frozenset({TokenType.NUMBER})


def _place(error: Exception) -> str:
    """Where a parser gave up. What it says quotes the text, which may have secrets."""
    known = error.errors if isinstance(error, ParseError) else []
    place = f" at line {known[0].get('line')}, column {known[0].get('col')}" if known else ""
    return f"{type(error).__name__}{place}"


@cache
def _dialect_of(dialect: SqlDialect) -> Dialect:
    return Dialect.get_or_raise(dialect.value)


@cache
def _parser_of(dialect: SqlDialect) -> type[_Counting]:
    """The parser of a dialect, which ends where it goes back and forth too often."""
    base: type[Parser] = _dialect_of(dialect).parser_class
    return type(f"Counting{base.__name__}", (_Counting, base), {})


class _Counting(Parser):
    """Counts its steps."""

    steps_left: int = 0

    def _advance(self, times: int = 1) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise _TooManySteps
        super()._advance(times)

    def _warn_unsupported(self) -> None:
        """Says nothing: the warning quotes the text."""
