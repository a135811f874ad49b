"""How the output of a merge is to be written, from the table's properties with Iceberg's defaults.

Planner and merge both ask here, so that no plan is made which the merge then refuses for a property.

Names and defaults: Iceberg's ``TableProperties`` (``write.parquet.*``) and, for the levels of the codecs,
parquet-java's own defaults (zstd 3), which differ from those of the libraries that write here (pyarrow: zstd 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icewright.core.errors import InvalidConfiguration, Unsupported

DEFAULT_LEVELS: Mapping[str, int | None] = {"zstd": 3, "gzip": 6, "brotli": 1, "snappy": None, "uncompressed": None}
"""Codecs that both writers write and every reader reads, with parquet-java's level. Not lz4: parquet-java's name for
it means Hadoop's framing, which neither writer offers."""

_LEVEL_RANGES: Mapping[str, range] = {"zstd": range(1, 23), "gzip": range(10), "brotli": range(12)}

_PREFIX = "write.parquet."
CODEC_KEY = _PREFIX + "compression-codec"
LEVEL_KEY = _PREFIX + "compression-level"
ROW_GROUP_KEY = _PREFIX + "row-group-size-bytes"
DICTIONARY_PREFIX = _PREFIX + "dict-encoding-enabled.column."
"""Followed by the name of a column; ``false`` is the only value that says something."""
_BLOOM_FILTER = _PREFIX + "bloom-filter-enabled.column."
_SHREDDING = _PREFIX + "shred-variants"
_ENCRYPTION = "encryption."


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """Settings of the Parquet writer. ``compression_level`` is None for codecs without levels.

    ``plain_columns`` are the names of columns that get no dictionary, whatever their values.
    """

    codec: str = "zstd"
    compression_level: int | None = 3
    row_group_size_bytes: int = 134_217_728
    page_size_bytes: int = 1_048_576
    page_row_limit: int = 20_000
    dictionary_size_bytes: int = 2_097_152
    plain_columns: frozenset[str] = frozenset()


def writer_settings(properties: Mapping[str, str]) -> WriterSettings:
    """The settings that table ``properties`` ask for.

    Raises :class:`InvalidConfiguration` for values that are no settings, :class:`Unsupported` for what a merge
    would not carry over: another file format, bloom filters, encryption, a codec outside ``DEFAULT_LEVELS``.
    """
    _refuse_what_would_be_lost(properties)
    codec = properties.get(CODEC_KEY, WriterSettings().codec).lower()
    codec = "uncompressed" if codec == "none" else codec
    if codec not in DEFAULT_LEVELS:
        raise Unsupported(f"{CODEC_KEY} = {codec!r} cannot be written", hint=f"use one of {', '.join(DEFAULT_LEVELS)}")
    default = WriterSettings()
    return WriterSettings(
        codec=codec,
        compression_level=_level(properties, codec),
        row_group_size_bytes=_positive(properties, "row-group-size-bytes", default.row_group_size_bytes),
        page_size_bytes=_positive(properties, "page-size-bytes", default.page_size_bytes),
        page_row_limit=_positive(properties, "page-row-limit", default.page_row_limit),
        dictionary_size_bytes=_positive(properties, "dict-size-bytes", default.dictionary_size_bytes),
        plain_columns=_plain_columns(properties),
    )


def bloom_filter_property(properties: Mapping[str, str]) -> str | None:
    """The first property that asks for Parquet bloom filters, which a merge would drop."""
    asking = (k for k, v in properties.items() if k.startswith(_BLOOM_FILTER) and v.strip().lower() == "true")
    return min(asking, default=None)


def shredding_property(properties: Mapping[str, str]) -> str | None:
    """The property that asks for shredded variants, which Spark's writer does not do in a rewrite (Iceberg 1.12)."""
    return _SHREDDING if properties.get(_SHREDDING, "").strip().lower() == "true" else None


def encryption_property(properties: Mapping[str, str]) -> str | None:
    """The first property of table encryption, which a merge cannot do."""
    return min((key for key in properties if key.startswith(_ENCRYPTION)), default=None)


def _refuse_what_would_be_lost(properties: Mapping[str, str]) -> None:
    file_format = properties.get("write.format.default", "parquet").lower()
    if file_format != "parquet":
        raise Unsupported(f"write.format.default = {file_format!r}: only Parquet can be merged")
    bloom_filter, encryption = bloom_filter_property(properties), encryption_property(properties)
    if bloom_filter is not None:
        raise Unsupported(f"{bloom_filter} asks for a bloom filter, which a merge would drop")
    if encryption is not None:
        raise Unsupported(f"the table is encrypted ({encryption} is set)")


def _level(properties: Mapping[str, str], codec: str) -> int | None:
    key = LEVEL_KEY
    text = properties.get(key)
    allowed = _LEVEL_RANGES.get(codec)
    if text is None or allowed is None:
        return DEFAULT_LEVELS[codec]
    level = _integer(key, text)
    if level not in allowed:
        raise InvalidConfiguration(
            f"{key} = {text!r} is not a level of {codec} ({allowed.start} to {allowed.stop - 1})"
        )
    return level


def _plain_columns(properties: Mapping[str, str]) -> frozenset[str]:
    found = ((key, value) for key, value in properties.items() if key.startswith(DICTIONARY_PREFIX))
    return frozenset(key.removeprefix(DICTIONARY_PREFIX) for key, value in found if value.strip().lower() == "false")


def _positive(properties: Mapping[str, str], name: str, default: int) -> int:
    key = _PREFIX + name
    value = _integer(key, properties[key]) if key in properties else default
    if value <= 0:
        raise InvalidConfiguration(f"{key} = {value} is not positive")
    return value


def _integer(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InvalidConfiguration(f"{key} = {text!r} is not a whole number") from error
