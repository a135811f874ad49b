"""Partition values, bounds and sort keys: one canonical form whoever wrote the manifest."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icewright.catalogs.metadata.manifests import Bounds
from icewright.catalogs.metadata.sort_keys import SortKeys, Spans
from icewright.catalogs.metadata.values import bound, partition_json, single_value
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.inventory.arithmetic import recompute
from icewright.model.iceberg.files import UNPARTITIONED, DataFile, Partition
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.iceberg.tables import SortField as OurSortField
from tests.cases import each_case
from tests.lakes import sqlite
from tests.narrowing import not_none

MOMENT = datetime(2013, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@each_case(
    ("type_name", "value", "expected"),
    [
        ("int", 5, 5),
        ("long", -(2**62), -(2**62)),
        ("boolean", True, True),
        ("string", 'a"ö', 'a"ö'),
        ("date", 15707, "2013-01-02"),
        ("date", -1, "1969-12-31"),
        ("date", 10_000_000, 10_000_000),
        ("time", 3_723_000_001, "01:02:03.000001"),
        ("timestamp", 1_000_000, "1970-01-01T00:00:01"),
        ("timestamp", 2**62, 2**62),
        ("timestamptz", 1_000_001, "1970-01-01T00:00:01.000001+00:00"),
        ("timestamp_ns", 1_000_000_001, "1970-01-01T00:00:01.000000001"),
        ("timestamptz_ns", -1, "1969-12-31T23:59:59.999999999+00:00"),
        ("float", 0.5, 0.5),
        ("double", float("nan"), "NaN"),
        ("double", float("-inf"), "-Infinity"),
        ("decimal(38,10)", Decimal("0.0000000001"), "0.0000000001"),
        ("decimal(9,2)", Decimal("14.20"), "14.20"),
        ("uuid", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("binary", b"\x00\xff", "00ff"),
        ("", 7, 7),
        ("string", None, None),
    ],
)
def test_single_values(type_name: str, value: Any, expected: Any) -> None:
    assert single_value(value, type_name) == expected


def test_unknown_kinds_of_values_are_refused() -> None:
    with pytest.raises(TypeError, match="list"):
        single_value([1], "list<int>")


def test_the_json_of_a_partition_is_canonical() -> None:
    assert partition_json(["ö", None, 1, float("inf")], ["string", "int", "int", "float"]) == '["ö",null,1,"Infinity"]'
    assert partition_json([-0.0], ["double"]) != partition_json([0.0], ["double"])


@given(st.floats(width=32, allow_nan=False) | st.floats(allow_nan=False))
def test_different_floats_are_different_partitions(value: float) -> None:
    (text,) = json.loads(partition_json([value], ["double"]))
    assert repr(float(text)) == repr(value)


@each_case(
    ("type_name", "raw", "expected"),
    [
        ("long", to_bytes(LongType(), 7), 7),
        ("long", to_bytes(IntegerType(), 7), 7),
        ("double", to_bytes(FloatType(), 0.5), 0.5),
        ("double", to_bytes(DoubleType(), float("nan")), None),
        ("int", b"", None),
        ("timestamp", to_bytes(DateType(), 7), None),
        ("decimal(9,2)", to_bytes(DecimalType(9, 2), Decimal("1.25")), Decimal("1.25")),
        ("string", b"abc", "abc"),
        ("string", "abö".encode()[:-1], None),
        ("fixed[2]", b"ab", b"ab"),
        ("variant", b"ab", None),
    ],
)
def test_bounds_also_of_a_narrower_former_type(type_name: str, raw: bytes, expected: Any) -> None:
    assert bound(raw, type_name) == expected


def sums(table: Table) -> list[PartitionStatistics]:
    catalog = PyIcebergCatalog(sqlite.entry_of(table))
    metadata = catalog.load(sqlite.table_name(table))
    snapshot = not_none(metadata.current_snapshot)
    return list(recompute(metadata, catalog.summarize(metadata, snapshot, catalog.manifests(metadata, snapshot))))


def written_files(table: Table) -> list[DataFile]:
    catalog = PyIcebergCatalog(sqlite.entry_of(table))
    metadata = catalog.load(sqlite.table_name(table))
    snapshot = not_none(metadata.current_snapshot)
    partitions = frozenset(statistics.partition for statistics in sums(table))
    return list(catalog.data_files(metadata, snapshot, catalog.manifests(metadata, snapshot), partitions))


@each_case(
    ("kind", "transform", "arrow", "value", "expected", "path"),
    [
        (BooleanType(), IdentityTransform(), pa.bool_(), True, "[true]", "p=true"),
        (IntegerType(), IdentityTransform(), pa.int32(), 5, "[5]", "p=5"),
        (LongType(), BucketTransform(16), pa.int64(), 34, "[3]", "p=3"),
        (FloatType(), IdentityTransform(), pa.float32(), 0.5, "[0.5]", "p=0.5"),
        (DoubleType(), IdentityTransform(), pa.float64(), 0.1, "[0.1]", "p=0.1"),
        (DateType(), IdentityTransform(), pa.date32(), date(2013, 1, 2), '["2013-01-02"]', "p=2013-01-02"),
        (DateType(), YearTransform(), pa.date32(), date(2013, 1, 2), "[43]", "p=2013"),
        (TimestampType(), MonthTransform(), pa.timestamp("us"), MOMENT.replace(tzinfo=None), "[516]", "p=2013-01"),
        (TimestamptzType(), DayTransform(), pa.timestamp("us", "UTC"), MOMENT, '["2013-01-02"]', "p=2013-01-02"),
        (TimestamptzType(), HourTransform(), pa.timestamp("us", "UTC"), MOMENT, "[376971]", "p=2013-01-02-03"),
        (
            TimestampType(),
            IdentityTransform(),
            pa.timestamp("us"),
            MOMENT.replace(tzinfo=None),
            '["2013-01-02T03:04:05.678901"]',
            "p=2013-01-02T03%3A04%3A05.678901",
        ),
        (TimeType(), IdentityTransform(), pa.time64("us"), time(1, 2, 3), '["01:02:03"]', "p=01%3A02%3A03"),
        (StringType(), TruncateTransform(2), pa.string(), "äbc", '["äb"]', "p=%C3%A4b"),
        (BinaryType(), IdentityTransform(), pa.large_binary(), b"\x00\x01", '["0001"]', "p=0001"),
        (DecimalType(9, 2), IdentityTransform(), pa.decimal128(9, 2), Decimal("0.10"), '["0.10"]', "p=0.10"),
        (StringType(), IdentityTransform(), pa.string(), None, "[null]", "p=null"),
    ],
)
def test_partitions_of_every_type(
    tmp_path: Path, kind: IcebergType, transform: Transform[Any, Any], arrow: Any, value: Any, expected: str, path: str
) -> None:
    column = "p" if isinstance(transform, IdentityTransform) else "c"
    table = sqlite.make_table(
        sqlite.make_lake(tmp_path),
        schema=Schema(NestedField(1, column, kind, required=False)),
        spec=PartitionSpec(PartitionField(source_id=1, field_id=1000, transform=transform, name="p")),
    )
    table.append(pa.table({column: pa.array([value], arrow)}))
    (found,) = sums(table)
    assert found.partition.values == expected
    assert found.path == path
    assert [f.partition for f in written_files(table)] == [found.partition]


def test_partitions_of_one_manifest_are_told_apart(tmp_path: Path) -> None:
    table = sqlite.make_table(
        sqlite.make_lake(tmp_path),
        schema=Schema(NestedField(1, "p", DoubleType(), required=False)),
        spec=PartitionSpec(PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="p")),
        properties={"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"},
    )
    # Python holds the two zeros to be equal; Iceberg does not.
    for value in (0.0, -0.0, 0.5):
        table.append(pa.table({"p": [value]}))
    assert len(table.inspect.manifests()) == 1
    assert {s.partition.values for s in sums(table)} == {"[0.0]", "[-0.0]", "[0.5]"}


def test_a_partition_outlives_its_column(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", DateType()))
    spec = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="day"))
    table = sqlite.make_table(sqlite.make_lake(tmp_path), schema=schema, spec=spec)
    table.append(pa.table({"id": [1], "day": [date(2013, 1, 2)]}))
    with table.update_spec() as update_spec:
        update_spec.remove_field("day")
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("day")
    assert [s.partition.values for s in sums(table)] == ['["2013-01-02"]']


@pytest.mark.parametrize(
    ("kind", "literal"),
    [(UUIDType(), UUID(int=5)), (FixedType(2), b"ab")],
)
def test_fixed_width_values(kind: IcebergType, literal: Any) -> None:
    assert single_value(literal, str(kind)) in ("00000000-0000-0000-0000-000000000005", "6162")


def sort_field(source_id: int, transform: Transform[Any, Any] | None = None, *, down: bool = False) -> SortField:
    return SortField(
        source_id=source_id,
        transform=transform or IdentityTransform(),
        direction=SortDirection.DESC if down else SortDirection.ASC,
        null_order=NullOrder.NULLS_LAST if down else NullOrder.NULLS_FIRST,
    )


def sorted_table(tmp_path: Path, *fields: SortField) -> Table:
    return sqlite.make_table(sqlite.make_lake(tmp_path), sort_order=SortOrder(*fields))


def first_ids(table: Table) -> list[int]:
    """The least id of each file, files by sort key."""
    files = sorted(written_files(table), key=lambda f: f.sort_key or ())
    assert all(one.sort_key is not None and other.sort_key is not None for one, other in pairwise(files))
    return [f.record_count for f in files]


def test_sort_keys_follow_the_order_of_the_table(tmp_path: Path) -> None:
    table = sorted_table(tmp_path, sort_field(2), sort_field(1))
    # As many rows as the file's place in the order.
    table.append(sqlite.rows([9, 9, 9], ["b"]))
    table.append(sqlite.rows([5, 5, 5, 5], ["c"]))
    table.append(sqlite.rows([1, 1], ["b"]))
    table.append(pa.table({"id": [3], "city": [None]}, schema=sqlite.ARROW_SCHEMA))
    assert first_ids(table) == [1, 2, 3, 4]


def test_descending_numbers_are_negated_and_nulls_come_last(tmp_path: Path) -> None:
    table = sorted_table(tmp_path, sort_field(1, down=True))
    table.append(pa.table({"id": [None] * 3, "city": ["a"] * 3}, schema=sqlite.ARROW_SCHEMA))
    table.append(sqlite.rows([1, 2]))
    table.append(sqlite.rows([3]))
    assert first_ids(table) == [1, 2, 3]
    assert [f.sort_key for f in sorted(written_files(table), key=lambda f: f.record_count)][:2] == [
        ((1, -3),),
        ((1, -2),),
    ]


def test_transforms_are_applied_so_that_the_next_field_decides(tmp_path: Path) -> None:
    table = sorted_table(tmp_path, sort_field(2, TruncateTransform(1)), sort_field(1))
    table.append(sqlite.rows([5, 5], ["ba"]))
    table.append(sqlite.rows([1], ["bz"]))
    assert first_ids(table) == [1, 2]


@each_case(
    ("fields", "length"),
    [
        ((sort_field(2), sort_field(1, BucketTransform(4))), 1),
        ((sort_field(1), sort_field(2, down=True)), 1),
        ((sort_field(1, BucketTransform(4)), sort_field(2)), 0),
        ((sort_field(2, down=True),), 0),
        ((), 0),
    ],
)
def test_keys_end_where_bounds_cannot_follow(tmp_path: Path, fields: tuple[SortField, ...], length: int) -> None:
    table = sorted_table(tmp_path, *fields)
    table.append(sqlite.rows([1]))
    (found,) = written_files(table)
    assert len(found.sort_key or ()) == length


def test_bounds_that_cannot_be_transformed_give_no_key(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "day", DateType(), required=False))
    order = SortOrder(sort_field(1, YearTransform()))
    table = sqlite.make_table(sqlite.make_lake(tmp_path), schema=schema, sort_order=order)
    keys = SortKeys(PyIcebergCatalog(sqlite.entry_of(table)).load(sqlite.table_name(table)))
    assert keys.key(Bounds({}, {}, {1: to_bytes(DateType(), 365)}, {})) == ((1, 1),)
    assert keys.key(Bounds({}, {}, {1: to_bytes(DateType(), 10_000_000)}, {})) is None


def test_a_file_without_bounds_has_no_key(tmp_path: Path) -> None:
    table = sqlite.make_table(
        sqlite.make_lake(tmp_path),
        sort_order=SortOrder(sort_field(1)),
        properties={"write.metadata.metrics.default": "none"},
    )
    table.append(sqlite.rows([1]))
    assert [f.sort_key for f in written_files(table)] == [None]


def spans_of(table: Table, null_order: str = "nulls-first") -> list[Any]:
    """The spans of all files by city, by number of rows."""
    catalog = PyIcebergCatalog(sqlite.entry_of(table))
    metadata = catalog.load(sqlite.table_name(table))
    snapshot = not_none(metadata.current_snapshot)
    keys, partitions = catalog.manifests(metadata, snapshot), frozenset({Partition(0, UNPARTITIONED)})
    fields = (OurSortField(2, "identity", "desc", null_order), OurSortField(1, "identity", "asc", "nulls-first"))
    found = catalog.data_files(metadata, snapshot, keys, partitions, fields)
    return [file.spans for file in sorted(found, key=lambda file: file.record_count)]


def test_spans_reach_from_the_least_to_the_greatest_value_with_nulls_at_their_end(tmp_path: Path) -> None:
    table = sqlite.make_table(sqlite.make_lake(tmp_path))
    table.append(pa.table({"id": [1], "city": ["Ulm"]}, schema=sqlite.ARROW_SCHEMA))
    table.append(pa.table({"id": [1, 2], "city": ["Bonn", None]}, schema=sqlite.ARROW_SCHEMA))
    table.append(pa.table({"id": [1, 2, 3], "city": [None] * 3}, schema=sqlite.ARROW_SCHEMA))
    first, last = (0, None), (2, None)
    ulm, bonn = (1, "Ulm"), (1, "Bonn")
    by_city = {spans[0]: spans[1] for spans in spans_of(table)}
    assert list(by_city) == [(ulm, ulm), (first, bonn), (first, first)]
    assert list(by_city.values()) == [((1, 1), (1, most)) for most in (1, 2, 3)]
    assert [spans[0] for spans in spans_of(table, "nulls-last")] == [(ulm, ulm), (bonn, last), (last, last)]


def test_there_are_no_spans_without_bounds_nor_by_a_transform_that_bounds_cannot_follow(tmp_path: Path) -> None:
    lake = sqlite.make_lake(tmp_path)
    table = sqlite.make_table(lake, properties={"write.metadata.metrics.default": "counts"})
    table.append(sqlite.rows([1]))
    assert spans_of(table) == [(None, None)]
    metadata = PyIcebergCatalog(lake).load(sqlite.table_name(table))
    assert not Spans(metadata, [OurSortField(1, "bucket[4]", "asc", "nulls-first")]).any
    assert not Spans(metadata, [OurSortField(99, "identity", "asc", "nulls-first")]).any
    assert not Spans(metadata, ()).any
