"""Files to be stitched in the tests: of several writers, and with footers changed on purpose."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import arro3.io
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from icewright.model.actions.actions import FileGroup, InputFile
from icewright.model.iceberg.files import Partition
from icewright_spark.executors.stitch.stitch import StitchJob
from icewright_spark.parquet.footer import Footer, read_footer
from icewright_spark.parquet.storage import LOCAL
from icewright_spark.parquet.thrift import Struct, write_struct

_NUMBERS = itertools.count()
ROWS = 1000


def rows(start: int, count: int = ROWS) -> Any:
    """Rows of several types, among them what is easily lost."""
    numbers = range(start, start + count)
    columns = {
        "id": pa.array(numbers, pa.int64()),
        "s": pa.array([None if n % 7 == 0 else f"name {n * 7919 % 10_007}" for n in numbers]),
        "f": pa.array([(float("nan"), -0.0, None, n / 3)[n % 4] for n in numbers], pa.float64()),
        "d": pa.array([n - 500 for n in numbers], pa.int64()).cast(pa.decimal128(25, 2)),
        "t": pa.array([1_600_000_000_000_000 + n for n in numbers], pa.timestamp("us", "UTC")),
        "l": pa.array([None if n % 5 == 0 else [float(n), None] for n in numbers], pa.list_(pa.float32())),
        "m": pa.array([[("k", n)] for n in numbers], pa.map_(pa.string(), pa.int32())),
        "c": pa.array([n // 100 for n in numbers], pa.int32()),
    }
    fields = [
        pa.field(name, column.type, metadata={"PARQUET:field_id": str(number)})
        for number, (name, column) in enumerate(columns.items(), 1)
    ]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def by_pyarrow(path: Path, table: Any) -> None:
    pq.write_table(
        table,
        path,
        row_group_size=400,
        compression="zstd",
        write_page_index=True,
        write_page_checksum=True,
        max_rows_per_page=150,
        store_schema=False,
        bloom_filter_options={"s": {"ndv": 400}, "id": {"ndv": 400}},
        sorting_columns=[pq.SortingColumn(0)],
    )


def by_arrow_rs(path: Path, table: Any) -> None:
    arro3.io.write_parquet(
        table,
        str(path),
        max_row_group_size=400,
        compression="zstd(3)",
        data_page_row_count_limit=150,
        write_batch_size=50,
        bloom_filter_enabled=True,
        skip_arrow_metadata=True,
    )


def by_duckdb(path: Path, table: Any) -> None:
    duckdb.from_arrow(table).write_parquet(str(path), compression="zstd", row_group_size=2048)


def plain(path: Path, table: Any) -> None:
    """Without indexes, filters and statistics, and with data pages of version 2."""
    pq.write_table(table, path, data_page_version="2.0", write_statistics=False, use_dictionary=False)


WRITERS: dict[str, Callable[[Path, Any], None]] = {
    "pyarrow": by_pyarrow,
    "arrow-rs": by_arrow_rs,
    "duckdb": by_duckdb,
    "plain": plain,
}


def written(folder: Path, write: Callable[[Path, Any], None] = by_pyarrow, files: int = 3) -> list[InputFile]:
    """Some files of consecutive rows."""
    return [write_one(folder, rows(number * ROWS), write) for number in range(files)]


def write_one(folder: Path, table: Any, write: Callable[[Path, Any], None] = by_pyarrow) -> InputFile:
    path = folder / f"in-{next(_NUMBERS)}.parquet"
    write(path, table)
    return input_of(path, table.num_rows)


def input_of(path: Path, records: int) -> InputFile:
    return InputFile(str(path), path.stat().st_size, records, 1)


def job_of(files: Sequence[InputFile], output: Path) -> StitchJob:
    return StitchJob(FileGroup(7, Partition(0, "[]"), "", tuple(files)), str(output))


def footer_of(path: str | Path) -> Footer:
    return read_footer(LOCAL, str(path), Path(path).stat().st_size)


def with_footer(path: str | Path, change: Callable[[Struct], Struct]) -> None:
    """The same file with another footer."""
    footer = footer_of(path)
    data = write_struct(change(footer.fields))
    with Path(path).open("r+b") as file:
        file.truncate(footer.start)
        file.seek(footer.start)
        file.write(data + len(data).to_bytes(4, "little") + b"PAR1")
