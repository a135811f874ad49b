"""Files of another format than the table's own, which its owner may want rewritten whatever their size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icewright.core import wording
from icewright.model.iceberg.files import FileFormat
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policy import Policy

OTHER_FORMAT: Final = "other-format"
"""The reason of a candidate of which files are worth it for their format alone."""

_WRITE_FORMAT: Final = "write.format.default"
_OF_DATA: Final = (FileFormat.PARQUET, FileFormat.AVRO, FileFormat.ORC)


def other_formats(metadata: TableMetadata, policy: Policy) -> frozenset[FileFormat]:
    """The formats that files are brought away from; none where the owner does not ask for it.

    What a rewrite writes is the format that the table's own property names, Parquet if none. A property that names no
    format of data files says nothing.
    """
    own = metadata.properties.get(_WRITE_FORMAT, FileFormat.PARQUET.value).lower()
    if not policy.migrate_formats or own not in _OF_DATA:
        return frozenset()
    return frozenset(_OF_DATA) - {FileFormat(own)}


def said_of(formats: Mapping[FileFormat, int], others: frozenset[FileFormat]) -> str:
    """``3 files of format avro, orc``; empty where there is none."""
    found = {each.value: formats[each] for each in sorted(others & formats.keys()) if formats[each]}
    return f"{wording.count(sum(found.values()), 'file')} of format {', '.join(found)}" if found else ""
