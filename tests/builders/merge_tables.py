"""Tables to be merged in the tests: schemas as Iceberg's JSON, files as other writers leave them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema

from icewright.model.actions.actions import FileGroup, InputFile
from icewright.model.iceberg.files import Partition
from icewright_spark.executors.merge.merge import MergeJob, MergeResult

Json = dict[str, Any]

_FILE_NUMBERS = itertools.count()


def column(identity: int, name: str, kind: Any, *, required: bool = False, **more: Any) -> Json:
    return {"id": identity, "name": name, "type": kind, "required": required, **more}


def list_of(identity: int, element: Any, *, required: bool = False) -> Json:
    return {"type": "list", "element-id": identity, "element": element, "element-required": required}


def map_of(key_id: int, key: Any, value_id: int, value: Any, *, required: bool = False) -> Json:
    return {
        "type": "map",
        "key-id": key_id,
        "key": key,
        "value-id": value_id,
        "value": value,
        "value-required": required,
    }


def struct_of(*fields: Json) -> Json:
    return {"type": "struct", "fields": list(fields)}


def iceberg_arrow_schema(fields: Sequence[Json]) -> Any:
    """What PyIceberg makes of a schema: field ids, large strings and lists."""
    return schema_to_pyarrow(Schema.model_validate({"type": "struct", "schema-id": 0, "fields": list(fields)}))


def arrow_table(fields: Sequence[Json], columns: dict[str, list[Any]]) -> Any:
    schema = iceberg_arrow_schema(fields)
    arrays = [array_of(columns[field.name], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def array_of(values: list[Any], kind: Any) -> Any:
    """``pa.array``, which cannot build lists of uuid from Python values."""
    if pa.types.is_large_list(kind) and isinstance(kind.value_type, pa.UuidType):
        return pa.array(values, pa.large_list(kind.value_type.storage_type)).cast(kind)
    return pa.array(values, kind)


def write_input(directory: Path, table: Any, **options: Any) -> InputFile:
    """A data file as Arrow-based Iceberg writers make it; ``store_schema=False`` is nearer to Java's."""
    path = directory / f"in-{next(_FILE_NUMBERS)}.parquet"
    defaults = {"compression": "zstd", "store_decimal_as_integer": True}
    pq.write_table(table, path, **{**defaults, **options})
    return InputFile(str(path), path.stat().st_size, table.num_rows, 1)


def group_of(*files: InputFile, partition: str = "[]") -> FileGroup:
    return FileGroup(7, Partition(0, partition), "", tuple(files))


def job_of(fields: Sequence[Json], files: Sequence[InputFile], output: Path, **more: Any) -> MergeJob:
    group = group_of(*files, partition=more.pop("partition", "[]"))
    return MergeJob(group=group, schema_fields=tuple(fields), output_paths=(str(output),), **more)


def leaf_chunks(result: MergeResult) -> list[Any]:
    """All column chunks of the output, from its footer."""
    metadata = pq.ParquetFile(result.outputs[0].path).metadata
    return [
        metadata.row_group(number).column(position)
        for number in range(metadata.num_row_groups)
        for position in range(metadata.num_columns)
    ]
