"""The filter that narrows Iceberg's scan planning: it may let too much through, and must never keep a partition out."""

from __future__ import annotations

from typing import Any

from icewright.model.iceberg.files import Partition
from icewright_spark.iceberg.java_api import PartitionField
from icewright_spark.iceberg.scan_tasks import partition_filter
from tests.cases import each_case

CITY = PartitionField("city", "string", "identity")
BUCKET = PartitionField("id", "long", "bucket[4]")
PRICE = PartitionField("price", "double", "identity")
DROPPED = PartitionField(None, "int", "void")


class Table:
    """Specs 0 (city, bucket), 1 (price), 2 (a dropped column, city), 3 (none)."""

    def partition_fields(self, spec_id: int) -> tuple[PartitionField, ...]:
        return ((CITY, BUCKET), (PRICE,), (DROPPED, CITY), ())[spec_id]


def narrowed(*partitions: Partition) -> dict[str, Any] | None:
    return partition_filter(Table(), partitions)  # type: ignore[arg-type]  # stands in for SparkTable


IN_BONN = {"type": "eq", "term": "city", "value": "Bonn"}
IN_BUCKET = {"type": "eq", "term": {"type": "transform", "transform": "bucket[4]", "term": "id"}, "value": 3}


def test_values_are_compared_as_their_fields_transform_them() -> None:
    assert narrowed(Partition(0, '["Bonn",3]')) == {"type": "and", "left": IN_BONN, "right": IN_BUCKET}


def test_nulls_and_dropped_columns_narrow_nothing() -> None:
    assert narrowed(Partition(0, '["Bonn",null]')) == IN_BONN
    assert narrowed(Partition(2, '[null,"Bonn"]')) == IN_BONN


def test_several_partitions_are_alternatives_and_one_only_once() -> None:
    ulm = {"type": "eq", "term": "city", "value": "Ulm"}
    found = narrowed(*[Partition(0, '["Bonn",null]'), Partition(0, '["Ulm",null]')] * 2)
    assert found == {"type": "or", "left": IN_BONN, "right": ulm}


@each_case(
    "partition", [Partition(1, "[1.5]"), Partition(1, '["NaN"]'), Partition(3, "[]"), Partition(0, "[null,null]")]
)
def test_a_partition_that_nothing_narrows_lets_everything_through(partition: Partition) -> None:
    assert narrowed(partition) is None
    assert narrowed(Partition(0, '["Bonn",3]'), partition) is None


def test_too_many_partitions_are_not_filtered_for() -> None:
    assert narrowed(*(Partition(0, f'["c",{number}]') for number in range(64))) is not None
    assert narrowed(*(Partition(0, f'["c",{number}]') for number in range(65))) is None
