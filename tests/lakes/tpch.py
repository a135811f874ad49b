"""Tables of TPC-H, by ``tpchgen-cli``, which gives the same rows for the same scale factor everywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def tpch(folder: Path, table: str, scale_factor: float) -> pa.Table:
    """All rows of a table, in the order of its keys; its Parquet file stays in the folder."""
    program = Path(sys.executable).with_name("tpchgen-cli")
    command = [str(program), "parquet", "-s", str(scale_factor), "--output-dir", str(folder), "-T", table]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a program of the tests
    rows = pq.read_table(folder / f"{table}.parquet")
    fields = [(field.name, pa.string() if field.type == pa.string_view() else field.type) for field in rows.schema]
    return rows.cast(pa.schema(fields))
