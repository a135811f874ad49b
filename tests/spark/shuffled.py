"""Plans for shuffles, and whether files are in an order, told by Python's own comparison of what pyarrow reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from icewright.model.actions.actions import Executor
from icewright.model.iceberg.layouts import Curve, Layout, Level
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import SortField
from icewright.model.work.jobs import TaskSpec
from tests.spark.staged import plan_of


def ascending(*ids: int) -> tuple[SortField, ...]:
    return tuple(SortField(number, "identity", "asc", "nulls-first") for number in ids)


def layout_of(curve: Curve, *ids: int) -> Layout:
    return Layout(curve, ascending(*ids))


def shuffle_of(spark: SparkSession, name: TableName, layout: Layout, files: int, task_id: str = "task-1") -> TaskSpec:
    """All live files, a group of so many files for each partition, by the layout."""
    spec = plan_of(spark, name, task_id)
    groups = tuple(replace(group, executor=Executor.SHUFFLE, output_files=files) for group in spec.rewrite.groups)
    return replace(spec, action=replace(spec.rewrite, groups=groups, level=Level.LEVEL_1, layout=layout))


def column_of(path: str, column: str) -> list[Any]:
    found: list[Any] = pq.ParquetFile(path.removeprefix("file:")).read()[column].to_pylist()
    return found


def is_rising(values: Sequence[Any]) -> bool:
    """NULL first, NaN last, as Iceberg has it."""
    keys = [_key(value) for value in values]
    return all(a <= b for a, b in pairwise(keys))


def _key(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)
