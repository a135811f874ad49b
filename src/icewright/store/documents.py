"""How values lie in the database: as JSON text, and long names beside a digest that an index can hold."""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any, Final, TypeVar, get_args

from icewright.core import codec
from icewright.core.errors import InvalidMessage, Unreadable

T = TypeVar("T")
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True)


def dump(value: Any) -> str:
    """``value`` as JSON of ASCII characters only.

    Escapes keep what strangers put into names, such as NUL, which PostgreSQL's text cannot hold, and lone surrogates,
    which no database can.
    """
    return _ENCODER.encode(codec.to_json(value))


def dump_optional(value: Any | None) -> str | None:
    """As :func:`dump`; None stays None (a NULL, not the JSON ``null``)."""
    return None if value is None else dump(value)


def load(cls: type[T], text: str | bytes) -> T:
    """A stored value, of a dataclass or of a union of them. Raises :class:`~icewright.core.errors.Unreadable`."""
    try:
        return codec.loads(cls, text)
    except InvalidMessage as error:
        raise Unreadable(f"a stored {_name(cls)} cannot be read: {error.message}") from error


def load_optional(cls: type[T], text: str | None) -> T | None:
    """As :func:`load`; NULL stays None."""
    return None if text is None else load(cls, text)


def text_of(stored: str) -> str:
    """A text that was dumped as it is: it may hold what no column can."""
    return str(json.loads(stored))


def pack(value: Any) -> bytes:
    """``value`` as compressed JSON, for documents that are many, long and repetitive."""
    return zlib.compress(dump(value).encode("ascii"))


def unpack(cls: type[T], data: bytes) -> T:
    """What :func:`pack` packed. Raises :class:`~icewright.core.errors.Unreadable`."""
    try:
        text = zlib.decompress(data)
    except zlib.error as error:
        raise Unreadable(f"a stored {_name(cls)} cannot be unpacked: {error}") from error
    return load(cls, text)


def _name(cls: Any) -> str:
    return " or ".join(getattr(member, "__name__", str(member)) for member in get_args(cls) or (cls,))


def digest(value: Any) -> str:
    """SHA-256 of a value's JSON, in hexadecimal: stands in for a long key, since indexes limit theirs."""
    return hashlib.sha256(dump(value).encode("ascii")).hexdigest()
