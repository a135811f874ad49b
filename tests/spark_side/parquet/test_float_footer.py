"""What footers state of NaN and of zeros, and that PyArrow finds the rows by it."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from icewright.model.actions.actions import Executor
from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.tables import SortField
from icewright_spark.executors.merge import merge as merge_module
from icewright_spark.executors.merge.merge import MergeJob, merge_group
from icewright_spark.executors.merge.write import ARROW_RS, PYARROW, Writer
from icewright_spark.parquet import float_footer
from icewright_spark.parquet.errors import ProofFailed, UnsupportedFile
from icewright_spark.parquet.float_footer import FloatFooter, HeldBack
from icewright_spark.parquet.thrift import BINARY
from tests.builders.merge_tables import arrow_table, column, job_of, list_of, struct_of, write_input
from tests.builders.stitch_files import footer_of
from tests.cases import each_case
from tests.wrong_footers import stated

FIELDS = [
    column(1, "id", "long"),
    column(2, "f", "double"),
    column(3, "st", struct_of(column(4, "g", "float"))),
    column(5, "l", list_of(6, "float")),
]
WRITERS = each_case("writer", [ARROW_RS, PYARROW], ids=lambda writer: writer.name)
PARTS: dict[str, tuple[float, ...]] = {
    "inf and NaN": (math.inf, math.nan),
    "zeros and NaN": (-0.0, 0.0, math.nan),
    "zeros": (-0.0, 0.0),
    "one and NaN": (1.0, math.nan),
    "all": (math.nan, -math.inf, -1.5, -0.0, 0.0, 2.5, math.inf),
}
F = pc.field("f")
FILTERS = {
    "isnan": F.is_nan(),
    "not isnan": ~F.is_nan(),
    "<> inf": pc.not_equal(F, math.inf),
    "= inf": math.inf == F,
    "<> 0": pc.not_equal(F, 0.0),
    "= 0": F == 0.0,
    "= -0": F == -0.0,
    "in 0": F.isin([0.0]),
    "in 0, 7": F.isin([0.0, 7.0]),
    "> 2": F > 2.0,
    "<= 0": F <= 0.0,
    "is null": F.is_null(),
    "not null": F.is_valid(),
}


def job_in(folder: Path, parts: tuple[tuple[float | None, ...], ...]) -> MergeJob:
    files, number = [], 0
    for part in parts:
        rows = [
            {"id": number + place, "f": value, "st": {"g": value}, "l": [value]} for place, value in enumerate(part)
        ]
        number += len(part)
        files.append(write_input(folder, arrow_table(FIELDS, {key: [row[key] for row in rows] for key in rows[0]})))
    return job_of(FIELDS, files, folder / "out.parquet")


def sort_by_f(job: MergeJob, files: int, folder: Path) -> MergeJob:
    return replace(
        job,
        group=replace(job.group, executor=Executor.SORT, output_files=files),
        output_paths=tuple(str(folder / f"out-{number}.parquet") for number in range(files)),
        sorted_by=Layout(Curve.SORT, (SortField(2, "identity", "asc", "nulls-first"),)),
    )


def found_by_row(table: Any, where: Any) -> list[int]:
    """What the filter says of each row by itself, without any statistics."""
    return sorted(ds.dataset(table).to_table(filter=where)["id"].to_pylist())


@WRITERS
@each_case("name", PARTS)
@each_case("executor", [Executor.MERGE, Executor.SORT])
def test_pyarrow_finds_all_rows(name: str, executor: Executor, writer: Writer, tmp_path: Path) -> None:
    job = job_in(tmp_path, ((*PARTS[name], None), PARTS[name] * 3))
    result = merge_group(sort_by_f(job, 3, tmp_path) if executor is Executor.SORT else job, writer=writer)
    paths = [output.path for output in result.outputs]
    rows = pa.concat_tables([pq.read_table(path) for path in paths])
    for said, where in FILTERS.items():
        got = sorted(ds.dataset(paths).to_table(filter=where)["id"].to_pylist())
        assert got == found_by_row(rows, where), said


@WRITERS
def test_each_row_group_is_told_of_by_itself(writer: Writer, tmp_path: Path) -> None:
    parts = [[1.0, 2.0], [math.nan, 3.0], [0.0, 4.0]]
    job = job_in(tmp_path, tuple(tuple(part * 500) for part in parts))
    settings = replace(job.settings, row_group_size_bytes=sum(file.size_bytes for file in job.group.files) // 6)
    output = merge_group(replace(job, settings=settings), writer=writer).outputs[0]
    groups = footer_of(output.path).row_groups
    assert len(groups) > 2
    for position in (1, 2):
        first, last = groups[0].chunks[position], groups[-1].chunks[position]
        assert {5, 6} <= first.column[12][1].keys()
        assert (13 in first.column, 13 in last.column) == (True, False)
        assert any(not {1, 2, 5, 6} & group.chunks[position].column[12][1].keys() for group in groups)
        assert any(group.chunks[position].column_index is None for group in groups)
    assert 13 in groups[-1].chunks[0].column


@WRITERS
def test_bounds_beside_nan_are_caught(writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote them: then a reader may take them for bounds of all values."""
    job = job_in(tmp_path, ((math.inf, math.nan),))
    output = Path(job.output_paths[0])
    infinity = b"\0\0\0\0\0\0\xf0\x7f"

    def change() -> None:
        stated("f", 5, BINARY, infinity)(output)
        stated("f", 6, BINARY, infinity)(output)

    monkeypatch.setattr(merge_module, "output_is_written", change)
    with pytest.raises(ProofFailed, match="NaN found"):
        merge_group(job, writer=writer)


def test_only_the_end_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float_footer, "HELD_BYTES", 100)
    file = io.BytesIO()
    held = HeldBack(file)
    for number in range(30):
        assert held.write(bytes([number]) * 10) == 10
    assert (held.tell(), len(file.getvalue())) == (300, 200)
    held.finish(None)
    assert file.getvalue() == b"".join(bytes([number]) * 10 for number in range(30))


def test_a_footer_that_is_not_held_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float_footer, "HELD_BYTES", 8)
    held = HeldBack(io.BytesIO())
    held.write(b"x" * 100)
    held.write((50).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(UnsupportedFile, match="too long"):
        held.finish(FloatFooter(FIELDS).changed)
