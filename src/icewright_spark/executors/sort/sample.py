"""A sample of the layout's columns, from the scan itself: where one file ends and the next begins is decided on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import lit, substring
from pyspark.sql.types import BinaryType, StringType

from icewright_spark.executors.sort.cells import sample_rows
from icewright_spark.executors.sort.scale import LONGEST_MARK_BYTES

ROWS_PER_FILE_MIN: Final = 80
"""With fewer, files would differ by more than a ninth."""
_LENGTH_MAX: Final = LONGEST_MARK_BYTES // 4
"""Characters of a string; each has four bytes at most. So a sample is memory of the driver's, and not much of it."""
_SEED: Final = 5
"""Any number; the same, so that the same work has the same outcome."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of one group with numbers for names, and the values of the layout's fields over them."""

    rows: DataFrame
    fields: Sequence[Column]
    records: int
    """Rows in its files, those that deletes remove included."""
    files: int
    """That the group becomes."""


def samples_of(frames: Sequence[Frame]) -> list[Any]:
    """For each group an Arrow table of the fields' values, one column for each, of rows chosen by chance."""
    parts = [_sampled(number, frame) for number, frame in enumerate(frames)]
    found = reduce(DataFrame.union, parts).toArrow()
    return [found.filter(pc.equal(found["g"], number)).drop_columns(["g"]) for number in range(len(frames))]


def fraction_of(records: int, files: int) -> float:
    """The share of so many rows that is sampled for so many files: all of them where there are few."""
    return min(1.0, max(sample_rows(files), ROWS_PER_FILE_MIN * files) / max(records, 1))


def _sampled(number: int, frame: Frame) -> DataFrame:
    shown = frame.rows.select(*(column.alias(f"f{position}") for position, column in enumerate(frame.fields)))
    short = [
        substring(field.name, 1, _LENGTH_MAX).alias(field.name)
        if isinstance(field.dataType, StringType | BinaryType)
        else shown[field.name]
        for field in shown.schema.fields
    ]
    fraction = fraction_of(frame.records, frame.files)
    chosen = shown if fraction >= 1.0 else shown.sample(fraction, _SEED)
    return chosen.select(lit(number).alias("g"), *short)
