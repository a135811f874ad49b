"""What a Hive Metastore's notifications say of a table, as far as it concerns Iceberg.

The message of a notification is JSON with the table in it as Thrift's JSON (``TJSONProtocol``: fields by number, maps
as ``[key type, value type, size, {...}]``), in Hive 4 gzipped and in base64. Whoever may change tables writes it.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icewright.model.events.messages import ID_MAX

_MESSAGE_BYTES_MAX: Final = 16 << 20
_PARAMETERS: Final = "9"
"""The number of the field ``parameters`` in the struct ``Table`` (hive_metastore.thrift)."""
_ID_DIGITS_MAX: Final = len(str(ID_MAX))
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_MAP_PARTS: Final = 4
_AFTER: Final = ("tableObjAfterJson", "tableObjJson")
_BEFORE: Final = "tableObjBeforeJson"


@dataclass(frozen=True, slots=True)
class TableSaid:
    """The parameters of a table before and after a change; None where the message does not tell."""

    before: Mapping[str, str] | None
    after: Mapping[str, str] | None

    @property
    def may_be_iceberg(self) -> bool:
        """Whether it is a table of Iceberg's, as far as the message tells."""
        return self.after is None or "metadata_location" in self.after

    @property
    def is_commit(self) -> bool:
        """Whether the table's pointer moved, or may have moved."""
        if self.after is None:
            return True
        location = self.after.get("metadata_location")
        return location is not None and (self.before is None or self.before.get("metadata_location") != location)

    @property
    def snapshot_id(self) -> int | None:
        """The current snapshot behind the change, where the writer says it, as Iceberg's Java client does."""
        said = (self.after or {}).get("current-snapshot-id", "")
        if len(said) > _ID_DIGITS_MAX or not (said.isascii() and said.isdigit()):
            return None  # before anything makes a number of it: int() refuses thousands of digits
        number = int(said)
        return number if number <= ID_MAX else None


def table_said(message: Any, message_format: Any) -> TableSaid:
    """What a message tells of its table; nothing, where it is of a shape that nobody here knows."""
    try:
        document = json.loads(_plain(message, message_format))
        after = next((document[key] for key in _AFTER if key in document), None)
        return TableSaid(_parameters(document.get(_BEFORE)), _parameters(after))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, binascii.Error, zlib.error):
        return TableSaid(None, None)


def _plain(message: Any, message_format: Any) -> bytes | str:
    if "gzip" not in str(message_format or ""):
        return str(message or "")
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    plain = unpacker.decompress(base64.b64decode(message), _MESSAGE_BYTES_MAX)
    if unpacker.unconsumed_tail:
        raise ValueError("a message that is too long")
    return plain


def _parameters(table: Any) -> Mapping[str, str] | None:
    if table is None:
        return None
    found = json.loads(table)[_PARAMETERS]["map"]
    if len(found) != _MAP_PARTS or not isinstance(found[-1], dict):
        raise ValueError("not a map")
    return {str(key): str(value) for key, value in found[-1].items()}
