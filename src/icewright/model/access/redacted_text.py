"""What is not shown: secrets in properties, and tables of others in the sentences of those who may not read them.

Reasons are stored once, for all readers, and some name a table that shares its uuid or its place with the one that they
are about. Which one is shown to those who may read it; to all others it is "another table".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from icewright.core.errors import InvalidName
from icewright.model.access.permissions import Scope
from icewright.model.iceberg.names import quote_part, split_parts

SENTENCE_FIELDS: Final = frozenset({"text", "detail", "hint", "explanation", "why"})
"""Fields of documents that hold sentences. All others hold names, paths and figures of what was asked for."""
OTHER_TABLE: Final = "another table"
_NAMED_MIN: Final = 3
_CUT: Final = "..."
# Quoted, perhaps without an end since long names are cut; or a plain word.
_PART: Final = r"(?:`(?:[^`]|``)*(?:`|\Z)|[^\W][\w-]*)"


class Words:
    """What is shown of sentences about tables of some catalogs."""

    def __init__(self, catalogs: Iterable[str]) -> None:
        # The longest first, or a catalog would be taken for another one whose name it begins with.
        quoted = sorted((re.escape(quote_part(one)) for one in catalogs), key=len, reverse=True)
        named = rf"(?<![\w.-])(?:{'|'.join(quoted)})(?:\.{_PART})+(?:{re.escape(_CUT)})?"
        self._named = re.compile(named) if quoted else None

    def of(self, sentence: str, may_read: Callable[[Scope], bool]) -> str:
        """The sentence for somebody who may read these scopes."""
        if self._named is None:
            return sentence
        return self._named.sub(lambda found: _shown(found.group(), may_read), sentence)

    def within(self, document: Any, may_read: Callable[[Scope], bool]) -> Any:
        """A JSON document with all sentences in it as :meth:`of` says them."""
        match document:
            case dict():
                return {key: self._field(key, value, may_read) for key, value in document.items()}
            case list():
                return [self.within(one, may_read) for one in document]
            case _:
                return document

    def _field(self, key: str, value: Any, may_read: Callable[[Scope], bool]) -> Any:
        match value:
            case str() if key in SENTENCE_FIELDS:
                return self.of(value, may_read)
            case list() if key in SENTENCE_FIELDS:
                return [self.of(one, may_read) if isinstance(one, str) else self.within(one, may_read) for one in value]
            case _:
                return self.within(value, may_read)


def _shown(named: str, may_read: Callable[[Scope], bool]) -> str:
    """A name of a table, or what names none of those that are not to be seen."""
    is_cut = named.endswith(_CUT)
    try:
        parts = split_parts(named.removesuffix(_CUT))
    except InvalidName:
        return OTHER_TABLE  # it was cut within quotes
    if len(parts) < _NAMED_MIN and not is_cut:
        return named  # a namespace, or a setting
    return named if may_read(Scope(parts[0], tuple(parts[1:-1]))) else OTHER_TABLE


_SECRET_KEY: Final = re.compile(
    r"password|passwd|passphrase|(?<![a-z])pwd|secret|token|credential|(?:access|account|api)[-_.]?key|sas|private|auth"
    r"|sse\.key$|encryption[-_.]key$",
    re.IGNORECASE,
)


def names_a_secret(key: str) -> bool:
    """Whether the value of a property of that name may be a secret."""
    return _SECRET_KEY.search(key) is not None
