"""What is written, and said, of columns whose value is the partition's."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icewright.core.errors import NotSorted
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.tables import SortField
from icewright_spark.executors.merge.merge import merge_group
from icewright_spark.parquet.errors import UnsupportedColumn
from icewright_spark.parquet.metrics import ColumnMetrics
from icewright_spark.parquet.partition_values import without_others
from tests.builders.merge_tables import arrow_table, column, job_of, struct_of, write_input
from tests.cases import each_case

VALUES: dict[str, tuple[Any, Any]] = {
    "boolean": (True, True),
    "int": (-5, -5),
    "long": (1 << 40, 1 << 40),
    "float": (1.5, 1.5),
    "double": ("Infinity", math.inf),
    "date": ("2024-02-29", date(2024, 2, 29)),
    "time": ("12:30:00.000001", time(12, 30, 0, 1)),
    "timestamp": ("2024-02-29T23:59:59.999999", datetime(2024, 2, 29, 23, 59, 59, 999_999)),  # noqa: DTZ001 - of no time zone
    "timestamptz": ("2024-02-29T23:59:59+00:00", datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)),
    "string": ("ünï", "ünï"),
    "uuid": ("f79c3e09-677c-4bbd-a479-3f349cb785e7", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
    "binary": ("00ff", b"\x00\xff"),
    "fixed[2]": ("00ff", b"\x00\xff"),
    "decimal(9, 2)": ("-14.20", Decimal("-14.20")),
    "decimal(38, 2)": ("123456789012345678901234.20", Decimal("123456789012345678901234.20")),
}
"""Types with a value in JSON, as partitions have it, and in Python."""


@each_case("kind", VALUES)
def test_files_without_the_column_get_the_value_and_its_metrics(kind: str, tmp_path: Path) -> None:
    said, value = VALUES[kind]
    fields = [column(1, "id", "long"), column(2, "p", kind)]
    with_it = write_input(tmp_path, arrow_table(fields, {"id": [1], "p": [_stored(value)]}))
    without = write_input(tmp_path, arrow_table(fields[:1], {"id": [2, 3]}))
    job = job_of(fields, [with_it, without], tmp_path / "out.parquet", partition='["x"]', identity_values={2: said})
    output = merge_group(job).outputs[0]
    assert pq.read_table(output.path)["p"].to_pylist() == [value] * 3
    assert output.metrics.null_counts[2] == 0
    assert output.metrics.lower_bounds[2] == output.metrics.upper_bounds[2]


@each_case("held", [[7], [None], [1, 7], [1, None]])
def test_nothing_is_said_of_a_column_that_holds_other_values(held: list[int | None], tmp_path: Path) -> None:
    fields = [column(1, "id", "long"), column(2, "p", "int"), column(3, "s", struct_of(column(4, "q", "int")))]
    rows: dict[str, list[Any]] = {"id": [*range(len(held))], "p": held, "s": [{"q": value} for value in held]}
    inputs = [write_input(tmp_path, arrow_table(fields, rows))]
    job = job_of(fields, inputs, tmp_path / "out.parquet", partition="[1,1]", identity_values={2: 1, 4: 1})
    output = merge_group(job).outputs[0]
    assert pq.read_table(output.path)["p"].to_pylist() == held
    told = output.metrics
    said = (told.value_counts, told.null_counts, told.nan_counts, told.lower_bounds, told.upper_bounds)
    assert [sorted({2, 4} & found.keys()) for found in said] == [[]] * 5
    assert output.metrics.value_counts[1] == len(held)


def test_null_is_the_value_of_a_partition_too(tmp_path: Path) -> None:
    fields = [column(1, "id", "long"), column(2, "p", "int")]
    inputs = [write_input(tmp_path, arrow_table(fields, {"id": [1], "p": [None]}))]
    job = job_of(fields, inputs, tmp_path / "out.parquet", partition="[null]", identity_values={2: None})
    assert merge_group(job).outputs[0].metrics.null_counts == {1: 0, 2: 1}


def test_rows_are_not_sorted_by_what_only_some_readers_see(tmp_path: Path) -> None:
    fields = [column(1, "id", "long"), column(2, "p", "int")]
    inputs = [write_input(tmp_path, arrow_table(fields, {"id": [2, 1], "p": [7, 1]}))]
    layout = Layout(Curve.SORT, tuple(SortField(number, "identity", "asc", "nulls-first") for number in (2, 1)))
    job = job_of(fields, inputs, tmp_path / "out.parquet", partition="[1]", identity_values={2: 1})
    group = replace(job.group, executor=Executor.SORT)
    with pytest.raises(NotSorted, match="partition column"):
        merge_group(replace(job, group=group, sorted_by=layout))


def test_a_value_that_is_none_of_the_type_is_refused(tmp_path: Path) -> None:
    fields = [column(1, "id", "long"), column(2, "p", "date")]
    inputs = [write_input(tmp_path, arrow_table(fields[:1], {"id": [1]}))]
    job = job_of(fields, inputs, tmp_path / "out.parquet", partition='["x"]', identity_values={2: "no day"})
    with pytest.raises(UnsupportedColumn, match="no day"):
        merge_group(job)


def test_metrics_that_disagree_with_the_partition_are_left_out() -> None:
    fields = [column(1, "id", "int"), column(2, "p", "int"), column(3, "q", "int")]
    five, seven = (5).to_bytes(4, "little"), (7).to_bytes(4, "little")
    counts = {1: 3, 2: 3, 3: 3}
    said = ColumnMetrics(
        {}, counts, {1: 0, 2: 0, 3: 0}, {}, {1: five, 2: seven, 3: five}, {1: seven, 2: seven, 3: five}
    )
    kept = without_others(said, fields, {}, 3, {2: pa.scalar(5, pa.int32()), 3: pa.scalar(5, pa.int32())})
    assert kept == ColumnMetrics({}, {1: 3, 3: 3}, {1: 0, 3: 0}, {}, {1: five, 3: five}, {1: seven, 3: five})


def _stored(value: Any) -> Any:
    return value.bytes if isinstance(value, UUID) else value
