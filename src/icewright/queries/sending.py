"""Queries read out of files, for ``icewright send-queries``: values are kept or not as the server says."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from icewright.core.errors import InvalidMessage, NotFound, Rejected
from icewright.model.queries.queries import LiteralPolicy, QueryRecord
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.spark_events import event_files, read_event_log
from icewright.queries.sources.sql import Defaults, TextQuery, record_of_text
from icewright.queries.sources.sql_text import SqlDialect, UnreadableSql

_KEEP_ALL: Final = LiteralRules(LiteralPolicy.KEEP)
_STATEMENT_END: Final = re.compile(r";[ \t]*(?:\n|\Z)")

Refused = Callable[[InvalidMessage], None]
"""Called for what is no query and is left out."""


def spark_queries(path: Path, refused: Refused) -> Iterator[QueryRecord]:
    """Of a log, or of all logs in a folder. Raises :class:`NotFound`."""
    _require(path)
    for log in [path] if event_files(path) else sorted(path.iterdir()):
        yield from read_event_log(log, _KEEP_ALL, refused)


def sql_queries(path: Path, catalog: str, dialect: str, refused: Refused) -> Iterator[QueryRecord]:
    """Of files of SQL, whose statements end with a semicolon at the end of a line, at the time of the file.

    Raises :class:`NotFound`, and ``Rejected`` for a dialect that is not known.
    """
    _require(path)
    if dialect not in tuple(SqlDialect):
        raise Rejected(f"no dialect {dialect!r}", hint=f"one of {', '.join(SqlDialect)}")
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        at = file.stat().st_mtime_ns // 1_000_000
        for number, statement in enumerate(_STATEMENT_END.split(file.read_text(encoding="utf-8"))):
            if not statement.strip():
                continue
            digest = hashlib.sha256(f"{file.name}:{number}:{statement}".encode()).hexdigest()
            asked = TextQuery(SqlDialect(dialect), at, query_id=digest)
            try:
                yield record_of_text(statement, asked, Defaults(catalog, ()), _KEEP_ALL)
            except UnreadableSql as error:
                refused(error)


def _require(path: Path) -> None:
    if not path.exists():
        raise NotFound(f"there is no {path}", hint="name a file, or a folder of event logs")
