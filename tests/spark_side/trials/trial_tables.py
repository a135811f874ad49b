"""Tables and queries for trials: rows in files, a sample of them, and what the list of files says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icewright.model.iceberg.layouts import Curve, LayoutColumn, LayoutExpression
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator, QueryRecord, QuerySource, TableRead
from icewright_spark.trials.table_sample import FILE

TABLE = TableName("lake", ("shop",), "orders")
FILE_BYTES = 128 << 20
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Made:
    """All rows of a table in the order of its files, and how many files it has; of each row its file."""

    rows: Any
    placed: npt.NDArray[np.int64]

    @property
    def files(self) -> int:
        return int(self.placed.max()) + 1

    def sample(self, rows_per_file: int, seed: int = 1) -> Any:
        count = min(rows_per_file * self.files, self.rows.num_rows)
        chosen = np.sort(np.random.default_rng(seed).choice(self.rows.num_rows, count, replace=False))
        names = pa.array([f"f{number}" for number in self.placed[chosen].tolist()], pa.string())
        return self.rows.take(pa.array(chosen)).append_column(FILE, names)

    def listed(self, partitions: Sequence[str] | None = None, *, length: int = 16) -> Any:
        """The metadata table ``files``; strings in bounds cut to ``length`` as Iceberg does."""
        table = self.rows.append_column("f", pa.array(self.placed))
        columns = {}
        for name in self.rows.column_names:
            found = table.group_by("f").aggregate([(name, "min"), (name, "max"), (name, "count")]).sort_by("f")
            lower, upper = found[f"{name}_min"].combine_chunks(), found[f"{name}_max"].combine_chunks()
            if pa.types.is_string(lower.type):
                lower, upper = pc.utf8_slice_codeunits(lower, 0, length), raised(upper, length)
            valid = np.asarray(found[f"{name}_count"])
            rows = np.bincount(self.placed)
            counts = [pa.array(rows), pa.array(rows - valid), pa.array(np.zeros(len(rows), np.int64))]
            keys = ["value_count", "null_value_count", "nan_value_count", "lower_bound", "upper_bound"]
            columns[name] = pa.StructArray.from_arrays([*counts, lower, upper], keys)
        listed = {
            "file_path": [f"f{number}" for number in range(self.files)],
            "record_count": np.bincount(self.placed),
            "file_size_in_bytes": np.full(self.files, FILE_BYTES),
            "readable_metrics": pa.StructArray.from_arrays(list(columns.values()), list(columns)),
        }
        return pa.table(listed if partitions is None else listed | {"partition": list(partitions)})


def raised(values: Any, length: int) -> Any:
    """Upper bounds of ASCII strings, as Iceberg cuts them."""
    return pa.array(
        [
            None
            if text is None
            else text
            if len(text) <= length
            else text[: length - 1] + chr(ord(text[length - 1]) + 1)
            for text in values.to_pylist()
        ],
        pa.string(),
    )


def in_files(rows: Mapping[str, Any], files: int) -> Made:
    """Rows in files of equal size, in the order in which they are."""
    table = pa.table(dict(rows))
    return Made(table, np.arange(table.num_rows) * files // table.num_rows)


def number(value: Any) -> Literal:
    return Literal(LiteralKind.NUMBER, str(value))


def text(value: str) -> Literal:
    return Literal(LiteralKind.STRING, value)


def layout(curve: Curve, *names: str) -> LayoutExpression:
    return LayoutExpression(curve, tuple(LayoutColumn((name,)) for name in names))


def between(column: str, low: Any, high: Any) -> tuple[Filter, Filter]:
    return Filter(column, Operator.GT_EQ, (number(low),)), Filter(column, Operator.LT_EQ, (number(high),))


def equals(column: str, *values: Literal) -> Filter:
    return Filter(column, Operator.EQ if len(values) == 1 else Operator.IN, values)


def queries(
    count: int, filters: Callable[[int], Sequence[Filter]], *, first: int = 0, succeeded: bool = True
) -> list[QueryRecord]:
    """One query an hour."""
    return [
        QueryRecord(
            query_id=str(place),
            source=QuerySource.TRINO,
            engine="trino",
            user="ann",
            started_at=place * HOUR_MS,
            succeeded=succeeded,
            tables=(TableRead(TABLE, filters=tuple(filters(place))),),
        )
        for place in range(first, first + count)
    ]
