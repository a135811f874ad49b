"""Documents of engines, read field by field: of a wrong shape is refused, absent is None."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from icewright.core.errors import InvalidMessage
from icewright.core.times import Instant

Object: TypeAlias = Mapping[str, Any]

COUNT_MAX: Final = 2**63 - 1
_INSTANT_MAX: Final = 253_402_300_799_999  # the end of the year 9999
_TEXT_LENGTH_MAX: Final = 1_000
_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")


def json_object(document: bytes | str) -> Object:
    """A JSON object. Raises :class:`InvalidMessage`."""
    try:
        data = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"not JSON: {type(error).__name__}") from None
    if not isinstance(data, dict):
        raise InvalidMessage("not a JSON object")
    return data


def json_or_none(text: str) -> Any:
    """What a text of JSON says; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def inner(parent: Object, key: str) -> Object:
    """A field that is an object; empty where it is absent."""
    return _of_type(parent, key, dict, "an object") or {}


def items(parent: Object, key: str) -> list[Any]:
    """A field that is an array; empty where it is absent."""
    return _of_type(parent, key, list, "an array") or []


def objects(parent: Object, key: str) -> list[Object]:
    """A field that is an array of objects; empty where it is absent."""
    found = items(parent, key)
    if not all(isinstance(item, dict) for item in found):
        raise InvalidMessage(f"{key} is not an array of objects")
    return found


def text(parent: Object, key: str, *, longest: int | None = _TEXT_LENGTH_MAX) -> str:
    """A field that is text of UTF-8, without NUL; empty where it is absent."""
    found: str = _of_type(parent, key, str, "text") or ""
    if longest is not None and len(found) > longest:
        raise InvalidMessage(f"{key} is longer than {longest} characters")
    if _NO_TEXT.search(found):
        raise InvalidMessage(f"{key} is not text of UTF-8 without NUL")
    return found


def required_text(parent: Object, key: str) -> str:
    """A field that is text, and not empty."""
    found = text(parent, key)
    if not found:
        raise InvalidMessage(f"{key} is missing")
    return found


def count_of(value: Any) -> int | None:
    """A value that is a whole number from 0, as a number or as digits; None for any other."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(COUNT_MAX)):
        value = int(value)
    return int(value) if isinstance(value, int) and type(value) is not bool and 0 <= value <= COUNT_MAX else None


def total_of(values: Iterable[int | None]) -> int | None:
    """The sum of counts; None where one is not known, where there are none, and where it is beyond all counts."""
    found = [*values]
    return None if not found or None in found else count_of(sum(value or 0 for value in found))


def whole(parent: Object, key: str) -> int | None:
    """A field that is a count."""
    found = count_of(parent.get(key))
    if found is None and parent.get(key) is not None:
        raise InvalidMessage(f"{key} is not a count")
    return found


def epoch_ms(parent: Object, key: str) -> Instant:
    """A field that is a time in milliseconds since the epoch."""
    found = whole(parent, key)
    if found is None or found > _INSTANT_MAX:
        raise InvalidMessage(f"{key} is not a time")
    return found


def seconds_as_ms(parent: Object, key: str) -> int | None:
    """A field that is a number of seconds, in milliseconds."""
    found = parent.get(key)
    if found is None:
        return None
    is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
    if not is_number or not math.isfinite(found) or not 0 <= found <= COUNT_MAX / 1000:
        raise InvalidMessage(f"{key} is not a number of seconds")
    return min(int(found * 1000 + 0.5), COUNT_MAX)


def instant(parent: Object, key: str) -> Instant | None:
    """A field that is a time of ISO 8601 with its offset."""
    said = text(parent, key)
    if not said:
        return None
    try:
        found = datetime.fromisoformat(said)
        return round(found.replace(tzinfo=found.tzinfo or UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise InvalidMessage(f"{key} is not a time") from None


def _of_type(parent: Object, key: str, kind: type[Any], what: str) -> Any:
    found = parent.get(key)
    if found is not None and not isinstance(found, kind):
        raise InvalidMessage(f"{key} is not {what}")
    return found
