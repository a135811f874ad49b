"""Which partitions the rows of a file belong to, as they go by; without Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from icewright.model.iceberg.files import Partition
from icewright_spark.executors.staged.moving import PartitionsOfFiles, check_partitions
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.parquet.errors import PartitionValue, ProofFailed


class File:
    """Java's data file, in a partition."""

    def __init__(self, path: str, values: str) -> None:
        self.path, self.values = path, values

    def location(self) -> str:
        return self.path


class Table(SparkTable):
    """A table that compares the values of partitions as they are written."""

    def __init__(self) -> None:
        """Nothing of Java's."""

    def is_in_partition(self, data_file: Any, partition: Partition) -> bool:
        return (partition.spec_id, partition.values) == (3, data_file.values)


def found_in(*batches: dict[str, Any]) -> list[list[Any] | None]:
    watch = PartitionsOfFiles()
    for batch in batches:
        watch.add("a", pa.record_batch(batch))
    return watch.found("a")


def test_values_are_told_as_icebergs_json_has_them() -> None:
    row = {
        "int": pa.array([7, 7]),
        "day": pa.array([date(2024, 2, 29)] * 2),
        "at": pa.array([datetime(2024, 1, 1, 1, 2, 3, 4, UTC)] * 2, pa.timestamp("us", "UTC")),
        "local": pa.array([datetime(2024, 1, 1)] * 2, pa.timestamp("us")),  # noqa: DTZ001 - of no time zone
        "decimal": pa.array([Decimal("-0.00000001")] * 2),
        "bytes": pa.array([b"\xff\x00"] * 2),
        "null": pa.array([None, None], pa.string()),
    }
    values = [7, "2024-02-29", "2024-01-01T01:02:03.000004+00:00", "2024-01-01T00:00:00", "-0.00000001", "FF00", None]
    assert found_in(row, row) == [values]


def test_every_other_partition_is_seen_wherever_it_is() -> None:
    ones = pa.array([1] * 10_000)
    assert found_in({"a": ones}, {"a": pa.concat_arrays([ones, pa.array([2])])}) == [[1], [2]]
    assert found_in({"a": pa.array([1, None])}) == [[1], [None]]
    assert len(found_in({"a": pa.array(range(1000))})) > 1


def test_a_file_is_in_the_one_partition_that_its_rows_say() -> None:
    files = [File("a", "[1]"), File("b", "[2]")]
    check_partitions(Table(), 3, files, {"a": [[[1]], [[1]]], "b": [[[2]]]})
    wrong: list[dict[str, Any]] = [
        {"a": [[[2]]], "b": [[[1]]]},
        {"a": [[[1], [2]]], "b": [[[2]]]},
        {"a": [[[1]], [[2]]], "b": [[[2]]]},
        {"a": [[[1]]]},
        {"a": [[]], "b": [[[2]]]},
    ]
    for watched in wrong:
        with pytest.raises(ProofFailed):
            check_partitions(Table(), 3, files, watched)
    with pytest.raises(ProofFailed, match="written to another"):
        check_partitions(Table(), 4, files, {"a": [[[1]]], "b": [[[2]]]})
    with pytest.raises(ProofFailed, match="not the only file"):
        check_partitions(Table(), 3, [*files, File("c", "[1]")], {"a": [[[1]]], "b": [[[2]]], "c": [[[1]]]})


def test_dates_beyond_pythons_have_no_form_and_leave_the_group_out() -> None:
    found = found_in({"day": pa.array([3_000_000], pa.int32()).cast(pa.date32())})
    assert found == [None]
    with pytest.raises(PartitionValue):
        check_partitions(Table(), 3, [File("a", "[1]")], {"a": [found]})
