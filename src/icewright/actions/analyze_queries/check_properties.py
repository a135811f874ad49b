"""The second opinion on properties that an analysis recommends: a report is believed in no others.

It shares nothing with what tries them: keys and limits stand here again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from icewright.model.iceberg.tables import TableMetadata
from icewright.model.queries.recommendations import (
    FORMAT_COLUMNS_MAX,
    RECORDED_NAME_LENGTH_MAX,
    CandidateTrial,
    FormatTrial,
    Rates,
)

PROPERTIES_MAX: Final = 50
_BLOOM: Final = "write.parquet.bloom-filter-enabled.column."
_DICTIONARY: Final = "write.parquet.dict-encoding-enabled.column."
_CODEC: Final = "write.parquet.compression-codec"
_LEVEL: Final = "write.parquet.compression-level"
_ROW_GROUP: Final = "write.parquet.row-group-size-bytes"
_FORMAT: Final = frozenset({_CODEC, _LEVEL, _ROW_GROUP})
_LEVELS: Final[Mapping[str, Sequence[int]]] = {
    "zstd": range(1, 10),
    "gzip": range(1, 10),
    "snappy": (),
    "uncompressed": (),
}
"""Codecs that Spark, Trino, DuckDB and PyIceberg all read, with the levels that a table may be given."""
_ROW_GROUP_BYTES: Final = range(1 << 20, (1 << 30) + 1)
_ROUNDS_MIN: Final = 3
_BYTES_TOLERANCE: Final = 0.05


def may_be_set(key: str) -> bool:
    """Whether an analysis may recommend a property of this name."""
    return key in _FORMAT or key.startswith((_BLOOM, _DICTIONARY))


def is_of_format(key: str) -> bool:
    """Whether it is a setting of the file format, which is tried on rows."""
    return key in _FORMAT or key.startswith(_DICTIONARY)


def impossible_properties(
    properties: Mapping[str, str], metadata: TableMetadata, has_column: Callable[[Sequence[str]], bool]
) -> Iterator[str]:
    """Why these properties must not be set on a table."""
    if not 0 < len(properties) <= PROPERTIES_MAX:
        yield f"it would set {len(properties):,} properties"
    if metadata.properties.get("write.format.default", "parquet").lower() != "parquet":
        yield "the table is not written as Parquet"
    for key, value in properties.items():
        prefix = next((each for each in (_BLOOM, _DICTIONARY) if key.startswith(each)), None)
        if prefix is not None:
            path = key.removeprefix(prefix).split(".")
            if value != ("true" if prefix == _BLOOM else "false"):
                yield f"it would set {key[:100]!r} to {value[:20]!r}"
            elif not has_column(path):
                yield f"the table has no column {'.'.join(path)[:100]}"
        elif not _is_setting(key, value, properties):
            yield f"it would set {key[:100]!r} to {value[:20]!r}"


def _is_setting(key: str, value: str, properties: Mapping[str, str]) -> bool:
    if key == _CODEC:
        return value in _LEVELS and (not _LEVELS[value] or _LEVEL in properties)
    if key == _LEVEL:
        return _number(value) in _LEVELS.get(properties.get(_CODEC, ""), ())
    return key == _ROW_GROUP and _number(value) in _ROW_GROUP_BYTES


def _number(value: str) -> int:
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 12 else -1  # noqa: PLR2004 - digits


def trial_problems(
    properties: Mapping[str, str], chosen: CandidateTrial, metadata: TableMetadata, table_bytes: int
) -> Iterator[str]:
    """What is wrong with a trial of settings of the file format that is to be believed."""
    if not any(map(is_of_format, properties)):
        return
    if all(metadata.properties.get(key) == value for key, value in properties.items()):
        yield "the table has these settings already"
    written = chosen.written
    if written is None or written.rounds < _ROUNDS_MIN:
        yield "its settings were not measured on rows"
    least_s = (1 - _BYTES_TOLERANCE) * table_bytes / Rates().rewrite_bytes_per_s
    if chosen.cost.cpu_s < least_s:
        yield f"it costs {chosen.cost.cpu_s:.3g} CPU seconds, less than a rewrite of the table ({least_s:.3g})"
    test = chosen.test
    if test is not None and test.bytes_read_now > (1 + _BYTES_TOLERANCE) * table_bytes:
        yield f"a query reads {test.bytes_read_now:.3g} bytes of a table of {table_bytes:,}"


def can_be(written: FormatTrial | None) -> bool:
    """Whether what is said of a sample is short, and could have been seen."""
    if written is None:
        return True
    counts = (written.sample_rows, written.sample_files, written.rounds, written.row_groups_now, written.row_groups)
    sizes = (
        written.bytes_now,
        written.bytes,
        *(size for one in written.columns for size in (one.bytes_now, one.bytes)),
    )
    is_short = len(written.columns) <= FORMAT_COLUMNS_MAX and all(
        len(one.column) <= RECORDED_NAME_LENGTH_MAX for one in written.columns
    )
    return is_short and min(counts) > 0 and min(sizes) >= 0
