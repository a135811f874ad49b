"""Every row's file and its place in it, found in Spark's Python workers, where only the layout's columns go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col
from pyspark.sql.pandas.functions import arrow_udf

from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.tables import SortField
from icewright_spark.executors.sort.cells import Cells
from icewright_spark.executors.sort.sample import Frame
from icewright_spark.session.worker import settle_in

_PLACE: Final = "p"
_FILE: Final = "n"
_KEY: Final = "k"


def arranged(frames: Sequence[Frame], cells: Sequence[Cells], layout: Layout) -> DataFrame:
    """The rows of all groups, each file's in a partition of its own and in its order, with numbers for names.

    The files of the first group come first.
    """
    first_files = [0, *accumulate(frame.files for frame in frames)]
    groups = zip(frames, cells, first_files[:-1], strict=True)
    rows = reduce(DataFrame.union, [_placed(frame, own, first, layout) for frame, own, first in groups])
    order = _directed(layout) if layout.curve is Curve.SORT else [col(_KEY).asc()]
    placed = rows.select("*", col(_PLACE).getField("cell").alias(_FILE), col(_PLACE).getField("key").alias(_KEY))
    kept = frames[0].rows.columns
    return placed.repartitionById(first_files[-1], _FILE).sortWithinPartitions(*order).select(*kept)


def _placed(frame: Frame, cells: Cells, first_file: int, layout: Layout) -> DataFrame:
    place = arrow_udf(_placing(cells, first_file), "cell int, key bigint")  # type: ignore[call-overload]  # it wants to be told what the hints tell
    once = place.asNondeterministic()  # or Spark might ask for each of its two parts, or again for the sort
    return frame.rows.select("*", once(*frame.fields).alias(_PLACE), *_by_fields(frame, layout))


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


def _placing(cells: Cells, first_file: int) -> Any:
    """For the columns of the layout, the number of each row's file among those of all groups, and its key."""

    def place(*columns: pa.Array) -> pa.Array:
        settle_in()
        named = pa.RecordBatch.from_arrays(list(columns), names=[f"f{position}" for position in range(len(columns))])
        found = cells.place(named)
        files = pc.add(found["cell"], pa.scalar(first_file, pa.int32()))
        return pa.StructArray.from_arrays([files, found["key"]], names=["cell", "key"])

    return place
