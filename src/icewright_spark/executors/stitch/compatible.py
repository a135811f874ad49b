"""Whether files may be put under one footer: what a footer says of all its row groups must be true of each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from icewright.core.errors import NotStitchable
from icewright_spark.parquet.footer import FileField, Footer, key_values
from icewright_spark.parquet.thrift import BINARY, LIST, STRUCT, Struct

_ALIKE: Final = {
    FileField.VERSION: "of other versions of the format",
    FileField.SCHEMA: "of other schemas",
    # Readers go by it in whether they trust statistics.
    FileField.CREATED_BY: "written by other writers",
    FileField.COLUMN_ORDERS: "with statistics in other orders",
}

_TABLE_SCHEMA: Final = b"iceberg.schema"
"""The whole schema of the table as the writer knew it: its id and its documentation too. Readers go by the schema of
the footer, which must be the same; where files differ in this one it is left out."""


def common_fields(footers: Sequence[Footer]) -> Struct:
    """The ``FileMetaData`` of all files in one, with the rows of all of them and no row groups yet.

    Raises :class:`NotStitchable` where files differ in what there is only once in a file.
    """
    first, common = footers[0], dict(footers[0].fields)
    for other in footers[1:]:
        for field_id, what in _ALIKE.items():
            one, two = first.fields.get(field_id), other.fields.get(field_id)
            if one != two:
                raise NotStitchable(f"{first.location} and {other.location} are {what}: {_difference(one, two)}")
    kind, rows = common[FileField.NUM_ROWS]
    common[FileField.NUM_ROWS] = (kind, rows + sum(other.fields[FileField.NUM_ROWS][1] for other in footers[1:]))
    common[FileField.ROW_GROUPS] = (LIST, (STRUCT, []))
    pairs = _common_key_values(footers)
    if pairs:
        common[FileField.KEY_VALUES] = (LIST, (STRUCT, pairs))
    else:
        common.pop(FileField.KEY_VALUES, None)
    return common


def _common_key_values(footers: Sequence[Footer]) -> list[Struct]:
    """The pairs of all files, in the order of the first.

    A key may say how values are to be read (calendars, time zones, types), so that files that differ are refused.
    """
    pairs = [key_values(footer) for footer in footers]
    left_out: set[bytes] = set()
    for footer, other in zip(footers, pairs, strict=True):
        differing = {key for key, _ in pairs[0].items() ^ other.items()}
        if differing - {_TABLE_SCHEMA}:
            key = min(differing - {_TABLE_SCHEMA}).decode(errors="replace")[:60]
            raise NotStitchable(f"{footers[0].location} and {footer.location} differ in the key-value metadata {key!r}")
        left_out |= differing
    return [_pair(key, value) for key, value in pairs[0].items() if key not in left_out]


def _pair(key: bytes, value: bytes | None) -> Struct:
    return {1: (BINARY, key)} if value is None else {1: (BINARY, key), 2: (BINARY, value)}


def _difference(one: Any, two: Any) -> str:
    return f"{str(one)[:60]} and {str(two)[:60]}"
