"""A file without rows, for a group of which deletes leave none: neither Spark's writer nor Iceberg's makes one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icewright.core.errors import Unsupported
from icewright.model.actions.actions import FileGroup
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.parquet.schema import arrow_schema


def write_empty_file(table: SparkTable, group: FileGroup, name: str) -> Any:
    """A new Parquet file of the group's partition, written through the table's ``FileIO``; gives Java's ``DataFile``.

    Raises :class:`Unsupported` for tables of other formats and for columns that Arrow does not have.
    """
    file_format = table.properties.get("write.format.default", "parquet").lower()
    if file_format != "parquet":
        raise Unsupported(
            f"group {group.group_id}: no row is left, and no empty file of format {file_format} is written"
        )
    sink = pa.BufferOutputStream()
    pq.write_table(arrow_schema(table.schema_fields()).empty_table(), sink, store_schema=False)
    content = sink.getvalue().to_pybytes()
    path = table.new_data_locations(group, [f"{name}.parquet"])[0]
    stream = table.java.io().newOutputFile(path).create()  # refuses to write over anything
    try:
        stream.write(content)
    finally:
        stream.close()
    return table.data_file(group.partition, path=path, size_bytes=len(content), record_count=0)
