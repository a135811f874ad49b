"""Every type, merged by the writer that the schema asks for, must read as before by readers that we did not write."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import pickle
import uuid
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icewright_spark.executors.merge.merge import merge_group
from icewright_spark.executors.merge.write import ARROW_RS, PYARROW
from tests.builders.merge_tables import (
    array_of,
    arrow_table,
    column,
    iceberg_arrow_schema,
    job_of,
    leaf_chunks,
    list_of,
    map_of,
    struct_of,
    write_input,
)
from tests.cases import each_case

D = decimal.Decimal
T0 = dt.datetime(2020, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001 - Iceberg's timestamp has no zone
UTC = dt.UTC

VALUES: dict[str, tuple[Any, list[Any]]] = {
    "boolean": ("boolean", [True, None, False]),
    "int": ("int", [-(2**31), None, 2**31 - 1]),
    "long": ("long", [-(2**63), None, 2**63 - 1]),
    "float": ("float", [1.5, None, math.nan, -0.0, math.inf]),
    "double": ("double", [1.5, None, math.nan, -0.0, -math.inf]),
    "decimal9": ("decimal(9, 2)", [D("-1234567.89"), None, D("0.01")]),
    "decimal18": ("decimal(18, 3)", [D("-123456789012345.678"), None, D(0)]),
    "decimal38": ("decimal(38, 10)", [D("-1234567890123456789012345678.0123456789"), None, D(1)]),
    "date": ("date", [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "time": ("time", [dt.time(23, 59, 59, 999999), None, dt.time(0)]),
    "timestamp": ("timestamp", [T0, None, T0.replace(year=1900)]),
    "timestamptz": ("timestamptz", [T0.replace(tzinfo=UTC), None, T0.replace(year=1900, tzinfo=UTC)]),
    "string": ("string", ["", None, "a\0b", "\U0001f9ca" * 40, "\U0010ffff\ud7ff", "é"]),
    "binary": ("binary", [b"", None, b"\xff" * 40, b"\0"]),
    "fixed": ("fixed[3]", [b"\xff\xff\xff", None, b"\0\0\0"]),
    "uuid": ("uuid", [uuid.UUID(int=2**128 - 1).bytes, None, uuid.UUID(int=0).bytes]),
    "struct": (
        struct_of(column(100, "a", "int"), column(101, "b", "string", required=True)),
        [{"a": None, "b": "x"}, None, {"a": 1, "b": ""}],
    ),
    "deep_struct": (
        struct_of(column(102, "s", struct_of(column(103, "f", "float")))),
        [{"s": {"f": -0.0}}, None, {"s": None}, {"s": {"f": None}}],
    ),
    "list": (list_of(104, "double"), [[1.0, None, -0.0], None, []]),
    "required_list": (list_of(105, "string", required=True), [["a", ""], None, []]),
    "list_of_struct": (
        list_of(106, struct_of(column(107, "x", "long"), column(108, "y", list_of(109, "string")))),
        [[{"x": 1, "y": ["a", None]}, None], None, [], [{"x": None, "y": None}, {"x": None, "y": []}]],
    ),
    "map": (map_of(110, "string", 111, "int"), [[("a", 1), ("b", None)], None, []]),
    "map_of_list": (
        map_of(112, "int", 113, list_of(114, "float"), required=True),
        [[(1, [1.0, None])], None, [], [(2, [])]],
    ),
    "list_of_uuid": (list_of(115, "uuid"), [[uuid.UUID(int=1).bytes, None], None, []]),
}

ONLY_PYARROW = {"uuid", "list", "required_list", "list_of_struct", "map", "map_of_list", "list_of_uuid"}
STORED_SCHEMA = each_case("stored_schema", [True, False])


def same(left: Any, right: Any) -> bool:
    """Equality that takes NaN as equal to itself and tells zeros apart."""
    return repr(left) == repr(right)


@STORED_SCHEMA
@each_case("name", VALUES)
def test_every_type_reads_as_before(name: str, tmp_path: Path, *, stored_schema: bool) -> None:
    kind, values = VALUES[name]
    fields = [column(1, "id", "long", required=True), column(2, "c", kind)]
    first = arrow_table(fields, {"id": list(range(len(values))), "c": values})
    nothing = arrow_table(fields, {"id": [10, 11], "c": [None, None]})
    turned = arrow_table(fields, {"id": list(range(20, 20 + len(values))), "c": values[::-1]})
    tables = [first, first.slice(0, 0), nothing, turned]
    files = [write_input(tmp_path, table, store_schema=stored_schema) for table in tables]

    result = merge_group(job_of(fields, files, tmp_path / "new" / "dir" / "out.parquet"))

    expected = pa.concat_tables(tables).to_pylist()
    assert same(pq.read_table(result.outputs[0].path).to_pylist(), expected)
    query = "SELECT COLUMNS(*)::VARCHAR FROM read_parquet(?)"
    ours = duckdb.execute(query, [result.outputs[0].path]).fetchall()
    theirs = [row for file in files for row in duckdb.execute(query, [file.path]).fetchall()]
    assert ours == theirs
    assert result.receipt.input_digest == result.receipt.output_digest
    assert result.outputs[0].record_count == result.receipt.records == len(expected)
    assert ("pyarrow" in result.receipt.method) == (name in ONLY_PYARROW)
    assert not any(chunk.encodings and "DELTA" in str(chunk.encodings) for chunk in leaf_chunks(result))


@pytest.mark.parametrize("writer", [ARROW_RS, PYARROW], ids=lambda writer: writer.name)
def test_all_columns_at_once_by_either_writer(writer: Any, tmp_path: Path) -> None:
    kinds = {name: kind for name, (kind, _) in VALUES.items() if name not in ONLY_PYARROW or writer is PYARROW}
    fields = [column(number, name, kind) for number, (name, kind) in enumerate(kinds.items(), start=1)]
    rows = max(len(values) for _, values in VALUES.values())
    columns = {name: [VALUES[name][1][k % len(VALUES[name][1])] for k in range(rows)] for name in kinds}
    table = arrow_table(fields, columns)
    files = [write_input(tmp_path, table) for _ in range(3)]

    job = job_of(fields, files, tmp_path / "out.parquet")
    result = merge_group(pickle.loads(pickle.dumps(job)), writer=writer)  # noqa: S301 - as Spark sends it to a worker

    assert same(pq.read_table(result.outputs[0].path).to_pylist(), table.to_pylist() * 3)
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - as Spark sends it to the driver


def test_nanosecond_timestamps_keep_their_digits(tmp_path: Path) -> None:
    fields = [column(1, "n", "timestamp_ns"), column(2, "z", "timestamptz_ns")]
    schema = pa.schema(
        [
            pa.field("n", pa.timestamp("ns"), metadata={"PARQUET:field_id": "1"}),
            pa.field("z", pa.timestamp("ns", "UTC"), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    arrays = [pa.array([1, None, -(2**63)], pa.int64()).view(field.type) for field in schema]
    file = write_input(tmp_path, pa.Table.from_arrays(arrays, schema=schema), store_schema=False)
    for writer in (ARROW_RS, PYARROW):
        result = merge_group(job_of(fields, [file], tmp_path / writer.name), writer=writer)
        back = pq.read_table(result.outputs[0].path)
        assert back.schema.types == schema.types
        assert [back[name].combine_chunks().view(pa.int64()).to_pylist() for name in "nz"] == [[1, None, -(2**63)]] * 2


def test_all_files_empty_gives_an_empty_file(tmp_path: Path) -> None:
    fields = [column(1, "s", "string")]
    files = [write_input(tmp_path, arrow_table(fields, {"s": []})) for _ in range(2)]
    result = merge_group(job_of(fields, files, tmp_path / "out.parquet"))
    assert pq.read_table(result.outputs[0].path).num_rows == result.outputs[0].record_count == 0
    assert result.outputs[0].split_offsets == ()
    assert result.outputs[0].metrics.lower_bounds == {}


def test_pyiceberg_reads_the_schema_by_field_ids(tmp_path: Path) -> None:
    kinds = [(kind, values) for kind, values in VALUES.values()]
    fields = [column(number, f"c {number}.x", kind) for number, (kind, _) in enumerate(kinds, start=1)]
    schema = iceberg_arrow_schema(fields)
    arrays = [array_of(values[:1], field.type) for field, (_, values) in zip(schema, kinds, strict=True)]
    file = write_input(tmp_path, pa.Table.from_arrays(arrays, schema=schema))
    result = merge_group(job_of(fields, [file], tmp_path / "out.parquet"))
    written = pq.ParquetFile(result.outputs[0].path)
    assert [field.name for field in written.schema_arrow] == [f"c_x20{n}_x2Ex" for n in range(1, len(kinds) + 1)]
    assert "ARROW:schema" not in str(written.metadata.metadata)
    assert "field_id=114" in str(written.schema)
    assert "UUID" in str(written.schema)
