"""Files that are older than the table's schema, or of another making: brought along by field id, or refused."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icewright.core.errors import InvalidMessage, Unsupported
from icewright_spark.executors.merge.merge import MergeJob, merge_group
from icewright_spark.executors.merge.read import BATCH_ROWS_MIN, decode_arrow_rs
from icewright_spark.executors.merge.write import ARROW_RS, PYARROW, Writer
from icewright_spark.parquet.errors import (
    FileUnreadable,
    UnsupportedColumn,
    UnsupportedFile,
    UnsupportedLocation,
    reading,
)
from icewright_spark.parquet.schema import arrow_schema, compatible_name, leaf_ids, leaves
from icewright_spark.parquet.storage import local_path
from tests.builders.merge_tables import (
    Json,
    arrow_table,
    column,
    iceberg_arrow_schema,
    job_of,
    list_of,
    map_of,
    struct_of,
    write_input,
)
from tests.cases import each_case

WRITERS = each_case("writer", [ARROW_RS, PYARROW], ids=lambda writer: writer.name)


def field(name: str, kind: Any, identity: int | None, *, nullable: bool = True) -> Any:
    return pa.field(name, kind, nullable, None if identity is None else {"PARQUET:field_id": str(identity)})


def table_of(*columns: tuple[Any, list[Any]]) -> Any:
    return pa.Table.from_arrays(
        [pa.array(values, kind.type) for kind, values in columns], schema=pa.schema([kind for kind, _ in columns])
    )


def job_for(directory: Path, fields: list[Json], table: Any, **more: Any) -> MergeJob:
    return job_of(fields, [write_input(directory, table)], directory / "out.parquet", **more)


def rows(job: MergeJob) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(merge_group(job).outputs[0].path).to_pylist()
    return found


def refusal(job: MergeJob, kind: type[Unsupported]) -> str:
    """The message, after making sure that nothing was written."""
    with pytest.raises(kind) as caught:
        merge_group(job)
    assert not Path(job.output_paths[0]).exists()
    return str(caught.value)


def test_columns_go_by_id_not_by_name_or_place(tmp_path: Path) -> None:
    fields = [column(1, "a", "int"), column(2, "b", "int"), column(5, "new", list_of(6, "string"))]
    table = table_of(
        (field("a", pa.int32(), 2), [1, 2]),
        (field("x.y", pa.int32(), 9), [0, 0]),
        (field("b", pa.int32(), 1), [3, None]),
    )
    assert rows(job_for(tmp_path, fields, table)) == [{"a": 3, "b": 1, "new": None}, {"a": None, "b": 2, "new": None}]


def test_promotions(tmp_path: Path) -> None:
    fields = [column(1, "l", "long", required=True), column(2, "d", "double"), column(3, "dec", "decimal(20, 2)")]
    old = table_of(
        (field("l", pa.int32(), 1), [-(2**31)]),
        (field("d", pa.float32(), 2), [-0.0]),
        (field("dec", pa.decimal128(9, 2), 3), [Decimal("-1.25")]),
    )
    new = arrow_table(fields, {"l": [2**40], "d": [0.5], "dec": [None]})
    files = [write_input(tmp_path, table) for table in (old, new)]
    back = rows(job_of(fields, files, tmp_path / "out.parquet"))
    assert repr(back) == repr(
        [{"l": -(2**31), "d": -0.0, "dec": Decimal("-1.25")}, {"l": 2**40, "d": 0.5, "dec": None}]
    )


@WRITERS
def test_milliseconds_become_microseconds(writer: Writer, tmp_path: Path) -> None:
    fields = [column(1, "at", "timestamptz"), column(2, "local", "timestamp"), column(3, "t", "time")]
    table = table_of(
        (field("at", pa.timestamp("ms", "UTC"), 1), [1, None, -1]),
        (field("local", pa.timestamp("ms"), 2), [1, None, -1]),
        (field("t", pa.time32("ms"), 3), [1, None, 86_399_999]),
    )
    output = merge_group(job_for(tmp_path, fields, table), writer=writer).outputs[0]
    got = pq.read_table(output.path)
    assert [str(column.type) for column in got.columns] == ["timestamp[us, tz=UTC]", "timestamp[us]", "time64[us]"]
    assert got["local"].cast(pa.int64()).to_pylist() == got["at"].cast(pa.int64()).to_pylist() == [1000, None, -1000]
    assert got["t"].cast(pa.int64()).to_pylist() == [1000, None, 86_399_999_000]


def test_milliseconds_beyond_all_microseconds_are_refused(tmp_path: Path) -> None:
    fields = [column(1, "local", "timestamp")]
    job = job_for(tmp_path, fields, table_of((field("local", pa.timestamp("ms"), 1), [2**62])))
    with pytest.raises(UnsupportedColumn, match="cannot be converted"):
        merge_group(job)


@each_case(
    ("iceberg", "arrow"),
    [
        ("int", pa.int64()),
        ("int", pa.int16()),
        ("long", pa.uint32()),
        ("float", pa.float64()),
        ("decimal(9, 2)", pa.decimal128(10, 2)),
        ("decimal(9, 2)", pa.decimal128(8, 1)),
        ("timestamp", pa.timestamp("ns")),
        ("timestamp_ns", pa.timestamp("us")),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamptz", pa.timestamp("ms")),
        ("timestamptz", pa.timestamp("us")),
        ("timestamp", pa.date32()),
        ("string", pa.binary()),
        ("fixed[4]", pa.binary(5)),
        ("uuid", pa.binary(15)),
        (list_of(2, "int"), pa.int32()),
        ("int", pa.list_(field("element", pa.int32(), 2))),
        (list_of(2, "long"), pa.list_(field("element", pa.int32(), 2))),
    ],
    ids=str,
)
def test_other_types_are_refused_before_anything_is_written(iceberg: Any, arrow: Any, tmp_path: Path) -> None:
    job = job_for(tmp_path, [column(1, "c", iceberg)], table_of((field("c", arrow, 1), [None])))
    assert "c" in refusal(job, UnsupportedColumn)


NESTED = struct_of(column(2, "x", "int"), column(3, "y", "string"))


@each_case(
    "inside",
    [
        [field("x", pa.int32(), 2)],
        [field("y", pa.string(), 3), field("x", pa.int32(), 2)],
        [field("x", pa.int32(), 2), field("y", pa.string(), 4)],
        [field("x", pa.int32(), 2), field("y", pa.string(), 3), field("z", pa.string(), 4)],
    ],
    ids=["missing", "moved", "other id", "dropped"],
)
def test_nested_evolution_is_refused(inside: list[Any], tmp_path: Path) -> None:
    table = table_of((field("st", pa.struct(inside), 1), [None]))
    assert "nested evolution" in refusal(job_for(tmp_path, [column(1, "st", NESTED)], table), UnsupportedColumn)


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct([field("x", pa.int32(), None), field("y", pa.string(), 3)]),
        pa.int32(),
    ],
    ids=str,
)
def test_files_without_field_ids_are_refused(kind: Any, tmp_path: Path) -> None:
    outer = field("st", kind, 1 if pa.types.is_struct(kind) else None)
    job = job_for(tmp_path, [column(1, "st", NESTED)], table_of((outer, [None])))
    assert "no field id" in refusal(job, UnsupportedFile)


def test_row_lineage_is_not_dropped_silently(tmp_path: Path) -> None:
    table = table_of((field("a", pa.int32(), 1), [1]), (field("_row_id", pa.int64(), 2147483540), [0]))
    assert "metadata column" in refusal(job_for(tmp_path, [column(1, "a", "int")], table), UnsupportedFile)


def test_an_id_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    table = table_of((field("a", pa.int32(), 1), [1]), (field("b", pa.int32(), 1), [2]))
    assert "two columns" in refusal(job_for(tmp_path, [column(1, "a", "int")], table), UnsupportedFile)


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (column(2, "b", "int", required=True), "required"),
        ({**column(2, "b", "int"), "initial-default": 5}, "initial default"),
    ],
)
def test_missing_columns_that_are_not_null_are_refused(missing: Json, said: str, tmp_path: Path) -> None:
    table = table_of((field("a", pa.int32(), 1), [1]))
    assert said in refusal(job_for(tmp_path, [column(1, "a", "int"), missing], table), UnsupportedColumn)


def test_a_missing_column_has_the_value_of_the_partition(tmp_path: Path) -> None:
    fields = [column(1, "a", "int"), column(2, "p", "string")]
    job = job_for(tmp_path, fields, table_of((field("a", pa.int32(), 1), [1])), partition='["x"]')
    assert "partition may give" in refusal(job, UnsupportedColumn)
    given: list[tuple[dict[int, Any], str | None]] = [({2: "x"}, "x"), ({2: None}, None), ({1: 7}, None)]
    for number, (values, found) in enumerate(given):
        other = dataclasses.replace(
            job, identity_values=values, output_paths=(str(tmp_path / f"given-{number}.parquet"),)
        )
        assert rows(other) == [{"a": 1, "p": found}]


@each_case(
    ("kind", "values"),
    [
        ("int", [1, None]),
        (struct_of(column(5, "x", "int", required=True)), [{"x": None}]),
        (struct_of(column(5, "x", struct_of(column(6, "y", "int", required=True)))), [{"x": {"y": None}}]),
        (list_of(5, "int", required=True), [[1, None]]),
        (map_of(5, "int", 6, "int", required=True), [[(1, None)]]),
    ],
    ids=["column", "struct", "deep struct", "list", "map"],
)
@WRITERS
def test_nulls_in_required_fields_are_refused(kind: Any, values: list[Any], writer: Writer, tmp_path: Path) -> None:
    optional = arrow_table([column(1, "c", loosened(kind))], {"c": values})
    fields = [column(1, "c", kind, required=kind == "int")]
    with pytest.raises(UnsupportedColumn, match="holds nulls"):
        merge_group(job_for(tmp_path, fields, optional), writer=writer)


def loosened(kind: Any) -> Any:
    """The type with everything optional, as Spark writes it into files."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        return struct_of(*(column(f["id"], f["name"], loosened(f["type"])) for f in kind["fields"]))
    changed = {key: False for key in ("element-required", "value-required") if key in kind}
    inside = {key: loosened(kind[key]) for key in ("element", "key", "value") if key in kind}
    return {**kind, **changed, **inside}


STRICT = struct_of(
    column(2, "x", "int", required=True),
    column(3, "s", struct_of(column(4, "y", "string", required=True))),
    column(5, "l", list_of(6, struct_of(column(7, "z", "float", required=True)), required=True), required=True),
    column(8, "r", struct_of(column(9, "q", "string", required=True)), required=True),
)
STRICT_VALUES: list[Any] = [
    None,
    {"x": 1, "s": None, "l": [], "r": {"q": "a"}},
    {"x": 2, "s": {"y": ""}, "l": [{"z": -0.0}, {"z": 1.0}], "r": {"q": ""}},
    None,
    {"x": 3, "s": None, "l": [{"z": 2.0}], "r": {"q": "b"}},
]


@each_case("stored_schema", [True, False])
@WRITERS
def test_required_fields_inside_optional_structs(writer: Writer, tmp_path: Path, *, stored_schema: bool) -> None:
    """Spark writes them as optional; under a null struct they are null."""
    table = arrow_table([column(1, "c", loosened(STRICT))], {"c": STRICT_VALUES})
    file = write_input(tmp_path, table, store_schema=stored_schema)
    job = job_of([column(1, "c", STRICT)], [file, write_input(tmp_path, table)], tmp_path / "out.parquet")
    back = pq.read_table(merge_group(job, writer=writer).outputs[0].path)
    assert repr(back["c"].to_pylist()) == repr(STRICT_VALUES * 2)
    assert back.schema.equals(arrow_schema(job.schema_fields), check_metadata=True)


def test_required_maps_and_uuids_inside_optional_structs(tmp_path: Path) -> None:
    kind = struct_of(
        column(2, "m", map_of(3, "string", 4, "int", required=True), required=True),
        column(5, "u", "uuid", required=True),
    )
    values = [None, {"m": [("k", 1)], "u": b"u" * 16}, None, {"m": [], "u": b"v" * 16}]
    schema = iceberg_arrow_schema([column(1, "c", loosened(kind))])
    plain = pa.struct([pa.field("m", schema.field(0).type.field(0).type), pa.field("u", pa.binary(16))])
    array = pa.array(values, plain).cast(schema.field(0).type)
    job = job_for(tmp_path, [column(1, "c", kind)], pa.Table.from_arrays([array], schema=schema))
    result = merge_group(job)
    assert pq.read_table(result.outputs[0].path)["c"].to_pylist() == array.to_pylist()
    assert result.outputs[0].metrics.null_counts == {5: 2}


def test_many_batches_of_nested_rows(tmp_path: Path) -> None:
    """Batches are slices of what was decoded: offsets must not leak into what is rebuilt."""
    kind = struct_of(column(2, "m", map_of(3, "string", 4, list_of(5, "int"), required=True)))
    values = [
        None if k % 7 == 0 else {"m": [(str(k), list(range(k % 3)))] * (k % 4)} for k in range(3 * BATCH_ROWS_MIN)
    ]
    table = arrow_table([column(1, "c", loosened(kind))], {"c": values})
    job = job_for(tmp_path, [column(1, "c", kind)], table.slice(5))
    assert pq.read_table(merge_group(job).outputs[0].path)["c"].to_pylist() == values[5:]


def test_representations_that_arrow_writers_leave_in_files(tmp_path: Path) -> None:
    words = pa.array(["a", None, "a"])
    columns = [
        words.dictionary_encode(),
        words.cast(pa.large_string()),
        words.cast(pa.string_view()),
        pa.array([b"x", None, b""], pa.binary_view()),
        pa.array([1, None, 2], pa.timestamp("us", "+00:00")),
        pa.array([b"u" * 16, None, b"v" * 16], pa.binary(16)),
    ]
    kinds = ["string", "string", "string", "binary", "timestamptz", "fixed[16]"]
    schema = pa.schema([field(f"c{n}", array.type, n) for n, array in enumerate(columns, start=1)])
    fields = [column(n, f"c{n}", kind) for n, kind in enumerate(kinds, start=1)]
    back = rows(job_for(tmp_path, fields, pa.Table.from_arrays(columns, schema=schema)))
    assert [row["c1"] for row in back] == ["a", None, "a"]
    assert back == pa.Table.from_arrays(columns, schema=schema).cast(arrow_schema(fields)).to_pylist()


def test_int96_is_refused(tmp_path: Path) -> None:
    table = table_of((field("t", pa.timestamp("ns"), 1), [0]))
    file = write_input(tmp_path, table, use_deprecated_int96_timestamps=True, store_schema=False)
    job = job_of([column(1, "t", "timestamp_ns")], [file], tmp_path / "out.parquet")
    assert "INT96" in refusal(job, UnsupportedFile)


@each_case(
    ("content", "kind", "said"),
    [
        (b"Obj\x01 this is Avro ", UnsupportedFile, "not a Parquet file"),
        (b"PARE" + bytes(20) + b"PARE", UnsupportedFile, "encrypted"),
        (b"PAR1" + bytes(20) + b"PARE", UnsupportedFile, "encrypted"),
        (b"PAR1" + bytes(20), FileUnreadable, "truncated"),
        (b"PAR1" + bytes(20) + b"PAR1", FileUnreadable, "in.parquet"),
        (b"", FileUnreadable, "in.parquet"),
    ],
)
def test_files_that_are_no_parquet_files(content: bytes, kind: Any, said: str, tmp_path: Path) -> None:
    fields = [column(1, "a", "int")]
    job = job_for(tmp_path, fields, arrow_table(fields, {"a": [1]}))
    path = tmp_path / "in.parquet"
    path.write_bytes(content)
    file = dataclasses.replace(job.group.files[0], path=str(path), size_bytes=len(content))
    whole = job.group.files[0]
    job = dataclasses.replace(job, group=dataclasses.replace(job.group, files=(whole, file)))
    with pytest.raises(kind, match=said):
        merge_group(job)


PLAIN_TAIL = b"\4\0\0\0tail"  # the value itself, not a copy of it in statistics


def test_a_changed_page_of_an_input_is_noticed_by_its_checksum(tmp_path: Path) -> None:
    """Both libraries would decode it to the same wrong rows."""
    fields = [column(1, "s", "string")]
    table = arrow_table(fields, {"s": ["tail"]})
    file = write_input(tmp_path, table, compression="none", use_dictionary=False, write_page_checksum=True)
    path = Path(file.path)
    content = path.read_bytes()
    assert content.count(PLAIN_TAIL) == 1
    path.write_bytes(content.replace(PLAIN_TAIL, b"\4\0\0\0tall"))
    with pytest.raises(FileUnreadable, match="checksum"):
        merge_group(job_of(fields, [file], tmp_path / "out.parquet"))


def test_a_panic_of_arrow_rs_is_an_error_like_others(tmp_path: Path) -> None:
    """It derives from BaseException, and would go past every handler to the end of the worker."""
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"PAR1" + bytes(20) + b"PAR1")
    with pytest.raises(FileUnreadable, match=r"bad\.parquet: PanicException"), reading(str(path)):
        decode_arrow_rs(str(path), 1024)


def test_an_interruption_is_none_of_our_errors() -> None:
    with pytest.raises(KeyboardInterrupt), reading("a"):
        raise KeyboardInterrupt


def test_a_missing_file_is_unreadable(tmp_path: Path) -> None:
    fields = [column(1, "a", "int")]
    job = job_for(tmp_path, fields, arrow_table(fields, {"a": [1]}))
    Path(job.group.files[0].path).unlink()
    with pytest.raises(FileUnreadable, match="No such file"):
        merge_group(job)


def test_groups_that_are_none_are_refused(tmp_path: Path) -> None:
    fields = [column(1, "a", "int")]
    job = job_for(tmp_path, fields, arrow_table(fields, {"a": [1]}))
    whole = job.group.files[0]
    spelt_otherwise = dataclasses.replace(whole, path=f"file:{whole.path}")
    for files in ((), (whole, whole), (whole, spelt_otherwise)):
        with pytest.raises(InvalidMessage):
            merge_group(dataclasses.replace(job, group=dataclasses.replace(job.group, files=files)))


@each_case(
    "kind",
    [
        "variant",
        "unknown",
        "geometry(srid:4326)",
        "geography",
        "decimal(39, 0)",
        list_of(9, "variant"),
        map_of(8, "string", 9, "geometry"),
        struct_of(column(9, "v", list_of(10, "unknown"))),
        struct_of(),
    ],
    ids=str,
)
def test_unsupported_types_are_found_at_all_levels(kind: Any) -> None:
    fields = [column(1, "a", "int"), column(2, "b", kind)]
    arrow_schema(fields[:1])
    with pytest.raises(UnsupportedColumn, match="'b"):
        arrow_schema(fields)


def test_leaves_are_the_parquet_columns_in_order(tmp_path: Path) -> None:
    kind = struct_of(column(2, "x", map_of(3, "int", 4, list_of(5, "string"))), column(6, "y", "int"))
    fields = [column(1, "a.b", kind), column(7, "z", "long")]
    job = job_for(tmp_path, fields, arrow_table(fields, {"a.b": [None], "z": [1]}))
    written = pq.ParquetFile(merge_group(job).outputs[0].path)
    paths = [written.schema.column(n).path for n in range(len(written.schema))]
    assert [".".join(leaf.path) for leaf in leaves(fields)] == paths
    assert [leaf.field_id for leaf in leaves(fields)] == leaf_ids(written.schema_arrow) == [3, 5, 6, 7]


@each_case(
    ("name", "written"),
    [("a", "a"), ("_a1", "_a1"), ("1a", "_1a"), ("a.b", "a_x2Eb"), ("a b", "a_x20b"), ("é", "é"), ("☃", "_x2603")],
)
def test_names_in_files_are_those_of_java(name: str, written: str) -> None:
    assert compatible_name(name) == written


@each_case(
    ("location", "path"),
    [
        ("/a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file:/a%20b/p=1:2", "/a%20b/p=1:2"),
        ("/a:b", "/a:b"),
    ],
)
def test_local_locations(location: str, path: str) -> None:
    assert local_path(location) == Path(path)


@each_case("location", ["s3://b/a", "hdfs://h/a", "file://host/a", "file:a", "a/b", "", "abfss://c@h/a"])
def test_other_locations_are_refused(location: str) -> None:
    with pytest.raises(UnsupportedLocation):
        local_path(location)
