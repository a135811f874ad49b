"""A table's next metadata file: as the present one is, but for one change and its own history.

The raw JSON is edited rather than rendered by PyIceberg's models, which leave out what they do not know and cannot
write tables of version 3 at all.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from typing import Any

from icewright.core.times import Instant

_NUMBERED = re.compile(r"(\d{1,9})-[^/]*\Z", re.ASCII)
_COUNT = re.compile(r"\d{1,10}", re.ASCII)
_PREVIOUS_VERSIONS = "write.metadata.previous-versions-max"
_PREVIOUS_VERSIONS_DEFAULT = 100
_COMPRESSION = "write.metadata.compression-codec"


def with_properties(metadata: Mapping[str, Any], changes: Mapping[str, str | None]) -> dict[str, Any]:
    """The metadata with other properties; those whose value is None are removed."""
    properties = {**(metadata.get("properties") or {}), **changes}
    return {**metadata, "properties": {key: text for key, text in properties.items() if text is not None}}


def next_metadata(
    metadata: Mapping[str, Any], changed: Mapping[str, Any], location: str, now: Instant
) -> dict[str, Any]:
    """The metadata behind ``metadata`` in ``location``: ``changed``, with a time and a log of its own."""
    log = [*(metadata.get("metadata-log") or ())]
    log.append({"timestamp-ms": metadata["last-updated-ms"], "metadata-file": location})
    return {
        **changed,
        "last-updated-ms": max(now, int(metadata["last-updated-ms"])),
        "metadata-log": log[-_kept(changed.get("properties") or {}) :],
    }


def next_location(location: str, metadata: Mapping[str, Any], unique: str) -> str:
    """Where the next metadata file goes: beside the present one, wherever properties or location of the table point.

    Named as Iceberg names them: ``00004-<unique>.metadata.json``.
    """
    folder, _, name = location.rpartition("/")
    numbered = _NUMBERED.match(name)
    number = int(numbered[1]) + 1 if numbered else 0
    suffix = ".gz.metadata.json" if _is_packed(metadata) else ".metadata.json"
    return f"{folder}/{number:05}-{unique}{suffix}"


def content(metadata: Mapping[str, Any]) -> bytes:
    """The bytes of a metadata file, packed where the table's properties ask for it."""
    text = json.dumps(metadata, separators=(",", ":")).encode("ascii")
    return gzip.compress(text) if _is_packed(metadata) else text


def _is_packed(metadata: Mapping[str, Any]) -> bool:
    properties = metadata.get("properties") or {}
    return str(properties.get(_COMPRESSION, "none")).lower() == "gzip"


def _kept(properties: Mapping[str, str]) -> int:
    text = properties.get(_PREVIOUS_VERSIONS, "")
    return max(1, int(text)) if _COUNT.fullmatch(text) else _PREVIOUS_VERSIONS_DEFAULT
