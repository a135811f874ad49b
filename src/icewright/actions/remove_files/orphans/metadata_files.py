"""Whose metadata a file is, told by its name and its first bytes: a table that lies where nobody said so.

Locations tell only of tables in catalogs that are known. A metadata file below a table's root tells of every table that
ever kept its metadata there: one that was dropped and made anew, one of a catalog that is not configured.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from icewright.core.errors import Unreadable
from icewright.model.iceberg.locations import CanonicalPath, checksummed
from icewright.model.iceberg.tables import TASK_ID_KEY

_NAME: Final = re.compile(r"\.metadata\.json(\.\w{1,10})?\Z", re.IGNORECASE)
"""``v3.metadata.json``, ``v3.gz.metadata.json`` (Iceberg's ``TableMetadataParser``), ``v3.metadata.json.gz`` of old."""
SCANNED_MAX: Final = 1 << 20
"""Bytes, unpacked, within which the uuid must stand: every writer at hand has it among the first three fields."""
_CHUNK: Final = 1 << 16
CONTENT_MAX: Final = 512 << 20
"""Bytes of a metadata file, unpacked, that is read in full."""
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WITH_HEADER: Final = 16 + zlib.MAX_WBITS
_UUID_KEY: Final = "table-uuid"
_UUID_LENGTH_MAX: Final = 100
# Strings, what opens and what closes; everything between them is of no interest. A string without its end is one, too,
# or each quote in it would be tried.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_VALUE: Final = re.compile(rb'\s*+:\s*+("(?:[^"\\]|\\.)*+")?', re.DOTALL)


def is_metadata_file(path: CanonicalPath) -> bool:
    """Whether a file may be a table's metadata, by its name; a checksum of one is none."""
    return _NAME.search(path) is not None and checksummed(path) is None


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


@dataclass(frozen=True, slots=True)
class History:
    """What a metadata file says of how its table came to be so.

    ``log`` are the metadata files before it as spelled, the oldest first, with the times of their states.
    ``written_at`` is its own, ``snapshots`` when each was committed. ``task_id`` is the task that signed the current
    one.
    """

    written_at: int
    current_snapshot_id: int | None
    snapshots: Mapping[int, int]
    log: tuple[tuple[int, str], ...]
    task_id: str | None = None

    @property
    def adds_a_snapshot(self) -> bool:
        """Whether it is what a commit of its current snapshot wrote: no state before it had that snapshot."""
        committed_at = self.snapshots.get(-1 if self.current_snapshot_id is None else self.current_snapshot_id)
        return committed_at == self.written_at and bool(self.log) and self.log[-1][0] < committed_at


def history_of(content: bytes) -> History:
    """The history that a metadata file tells. Raises :class:`Unreadable`."""
    try:
        raw = json.loads(b"".join(_unpacked(content, CONTENT_MAX)))
        current = raw.get("current-snapshot-id")
        signed = [one.get("summary") or {} for one in raw.get("snapshots") or () if one["snapshot-id"] == current]
        return History(
            written_at=int(raw["last-updated-ms"]),
            current_snapshot_id=None if current in (None, -1) else int(current),
            snapshots={int(one["snapshot-id"]): int(one["timestamp-ms"]) for one in raw.get("snapshots") or ()},
            log=tuple((int(one["timestamp-ms"]), str(one["metadata-file"])) for one in raw.get("metadata-log") or ()),
            task_id=next((str(summary[TASK_ID_KEY]) for summary in signed if TASK_ID_KEY in summary), None),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"it is no metadata of a table: {error}") from error


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


def _unpacked(content: bytes, bytes_max: int = SCANNED_MAX) -> Iterator[bytes]:
    """The beginning, unpacked if it is gzipped, in parts; never more of it than is looked at."""
    if not content.startswith(_GZIP_MAGIC):
        yield content[:bytes_max]
        return
    unpacker, rest, left = zlib.decompressobj(_GZIP_WITH_HEADER), content, bytes_max
    while rest and left > 0 and not unpacker.eof:
        try:
            part = unpacker.decompress(rest, min(_CHUNK, left))
        except zlib.error as error:
            raise Unreadable(f"it cannot be unpacked: {error}") from error
        left -= len(part)
        rest = unpacker.unconsumed_tail
        yield part
