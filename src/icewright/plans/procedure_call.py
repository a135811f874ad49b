"""The Spark ``CALL`` that comes nearest to an action: for people who know Iceberg's procedures, never run by us.

Nearest only: a procedure picks its files itself and proves nothing, while an action names each file. Which options come
nearest is said by each action.

Names are input from strangers, so everything is rendered by two escaping functions: identifiers in backticks, and
string literals as Spark's default parser reads them (``spark.sql.parser.escapedStringLiterals=false``).
"""

from __future__ import annotations

import unicodedata

from icewright.model.iceberg.names import TableName, identifier

_BMP_MAX = 0xFFFF
_ESCAPES = {"'": "\\'", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Characters that a terminal or an editor would act on or hide: controls, format characters (among them the
# bidirectional overrides), unpaired surrogates, and the separators of lines and paragraphs.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def procedure_call(name: TableName, procedure: str, *arguments: str) -> str:
    """The call of one of Iceberg's procedures on a table, with these ``arguments`` behind the table's own."""
    table = literal(".".join(identifier(part) for part in name.path))
    return f"CALL {identifier(name.catalog)}.system.{procedure}({', '.join((f'table => {table}', *arguments))})"


def literal(text: str) -> str:
    r"""``text`` as a Spark string literal: ``'`` and ``\`` escaped, and what does not print as ``\uXXXX``."""
    return "'" + "".join(_escape(character) for character in text) + "'"


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if unicodedata.category(character) in _HIDDEN:
        code = ord(character)
        return f"\\u{code:04x}" if code <= _BMP_MAX else f"\\U{code:08x}"
    return character
