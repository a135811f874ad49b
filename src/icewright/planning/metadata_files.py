"""Whose metadata a file is, told by its name and its first bytes: a table that lies where nobody said so.

Locations tell only of tables in catalogs that are known. A metadata file below a table's root tells of every table that
ever kept its metadata there: one that was dropped and made anew, one of a catalog that is not configured.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from typing import Final

from icewright.domain.errors import Unreadable
from icewright.domain.locations import CanonicalPath

_NAME: Final = re.compile(r"\.metadata\.json(\.\w{1,10})?\Z", re.IGNORECASE)
"""``v3.metadata.json``, ``v3.gz.metadata.json`` (Iceberg's ``TableMetadataParser``), ``v3.metadata.json.gz`` of old."""
SCANNED_MAX: Final = 1 << 20
"""Bytes, unpacked, within which the uuid must stand: every writer at hand has it among the first three fields."""
_CHUNK: Final = 1 << 16
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WITH_HEADER: Final = 16 + zlib.MAX_WBITS
_UUID_KEY: Final = "table-uuid"
_UUID_LENGTH_MAX: Final = 100
# Strings, what opens and what closes; everything between them is of no interest. A string without its end is one, too,
# or each quote in it would be tried.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_VALUE: Final = re.compile(rb'\s*+:\s*+("(?:[^"\\]|\\.)*+")?', re.DOTALL)


def is_metadata_file(path: CanonicalPath) -> bool:
    """Whether a file may be a table's metadata, by its name."""
    return _NAME.search(path) is not None


def uuid_of(content: bytes) -> str:
    """The uuid of the table whose metadata file begins so, in lower case.

    Raises :class:`Unreadable` where no uuid stands in the first :data:`SCANNED_MAX` bytes, unpacked.
    """
    head = b"".join(_unpacked(content))
    depth = 0
    for token in _TOKEN.finditer(head):
        match token[0]:
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
            case text if depth == 1 and _string(text) == _UUID_KEY:
                value = _VALUE.match(head, token.end())
                if value is not None and value[1] is not None:
                    return _uuid(_string(value[1]))
                if value is not None:
                    break
    raise Unreadable("no table-uuid stands at the beginning of it")


def _uuid(text: str | None) -> str:
    uuid = (text or "").strip().lower()
    if not uuid or len(uuid) > _UUID_LENGTH_MAX:
        raise Unreadable("its table-uuid is none")
    return uuid


def _string(token: bytes) -> str | None:
    try:
        found = json.loads(token)
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def _unpacked(content: bytes) -> Iterator[bytes]:
    """The beginning, unpacked if it is gzipped, in parts; never more of it than is looked at."""
    if not content.startswith(_GZIP_MAGIC):
        yield content[:SCANNED_MAX]
        return
    unpacker, rest, left = zlib.decompressobj(_GZIP_WITH_HEADER), content, SCANNED_MAX
    while rest and left > 0 and not unpacker.eof:
        try:
            part = unpacker.decompress(rest, min(_CHUNK, left))
        except zlib.error as error:
            raise Unreadable(f"it cannot be unpacked: {error}") from error
        left -= len(part)
        rest = unpacker.unconsumed_tail
        yield part
