"""Every row's file and its place in it, found in Spark's Python workers, where only the layout's columns go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, lit
from pyspark.sql.pandas.functions import arrow_udf

from icewright.domain.layouts import Curve, Layout
from icewright.domain.tables import SortField
from icewright_spark.layouts import Cells
from icewright_spark.shuffle.sample import Frame

_PLACE: Final = "p"
_KEY: Final = "k"


def arranged(frames: Sequence[Frame], cells: Sequence[Cells], layout: Layout) -> DataFrame:
    """The rows of all groups, each file's in a partition of its own and in its order, with numbers for names.

    The files of the first group come first.
    """
    files = [frame.files for frame in frames]
    place = arrow_udf(_placing(cells, [0, *accumulate(files)]), "cell int, key bigint")  # type: ignore[call-overload]  # it wants to be told what the hints tell
    once = place.asNondeterministic()  # or Spark might ask for each of its two parts, or again for the sort
    parts = []
    for number, frame in enumerate(frames):
        by_sort = _by_fields(frame, layout)
        found = frame.rows.select("*", once(lit(number), *frame.fields).alias(_PLACE), *by_sort)
        parts.append(found)
    rows = reduce(DataFrame.union, parts)
    own = frames[0].rows.columns
    order = _directed(layout) if layout.curve is Curve.SORT else [col(_KEY).asc()]
    placed = rows.select("*", col(_PLACE).getField("cell").alias("n"), col(_PLACE).getField("key").alias(_KEY))
    return placed.repartitionById(sum(files), "n").sortWithinPartitions(*order).select(*own)


def _by_fields(frame: Frame, layout: Layout) -> list[Column]:
    if layout.curve is not Curve.SORT:
        return []
    return [column.alias(f"f{position}") for position, column in enumerate(frame.fields)]


def _directed(layout: Layout) -> list[Column]:
    return [_one_directed(col(f"f{position}"), field) for position, field in enumerate(layout.fields)]


def _one_directed(column: Column, field: SortField) -> Column:
    first = field.null_order == "nulls-first"
    if field.direction == "desc":
        return column.desc_nulls_first() if first else column.desc_nulls_last()
    return column.asc_nulls_first() if first else column.asc_nulls_last()


def _placing(cells: Sequence[Cells], first_files: Sequence[int]) -> Any:
    """For rows of one group, whose number leads the columns of the layout, the number of their file and their key."""

    def place(numbers: pa.Array, *columns: pa.Array) -> pa.Array:
        if not len(numbers):
            return pa.array([], pa.struct([("cell", pa.int32()), ("key", pa.int64())]))
        number = numbers[0].as_py()
        named = pa.RecordBatch.from_arrays(list(columns), names=[f"f{position}" for position in range(len(columns))])
        found = cells[number].place(named)
        files = pa.compute.add(found["cell"], pa.scalar(first_files[number], pa.int32()))
        return pa.StructArray.from_arrays([files, found["key"]], names=["cell", "key"])

    return place
