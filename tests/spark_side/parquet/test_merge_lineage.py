"""Row lineage of format version 3: the id of every row, and when it was last updated, go into the new file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icewright.model.actions.actions import InputFile
from icewright_spark.executors.merge import merge as merge_module
from icewright_spark.executors.merge.merge import MergeJob, merge_group
from icewright_spark.executors.merge.write import ARROW_RS, PYARROW, Writer
from icewright_spark.parquet.errors import ProofFailed, UnsupportedColumn, UnsupportedFile
from icewright_spark.parquet.lineage import LAST_UPDATED, ROW_ID, inherited
from icewright_spark.parquet.schema import leaf_ids
from tests.builders.delete_files import deletion_vector, with_deletes
from tests.builders.merge_tables import arrow_table, column, job_of, leaf_chunks, write_input
from tests.cases import each_case

FIELDS = [column(1, "id", "long", required=True)]
Values = list[int | None]


def file(directory: Path, ids: list[int], first_row_id: int | None, sequence_number: int) -> InputFile:
    """A file as an append leaves it, without columns for the lineage."""
    made = write_input(directory, arrow_table(FIELDS, {"id": ids}))
    return dataclasses.replace(made, first_row_id=first_row_id, data_sequence_number=sequence_number)


def moved(
    directory: Path, ids: list[int], row_ids: Values, updates: Values, first: int | None, number: int
) -> InputFile:
    """A file of rows that were in other files before: some have values of their own."""
    table = arrow_table(FIELDS, {"id": ids})
    for name, identity, values in (
        ("_row_id", ROW_ID, row_ids),
        ("_last_updated_sequence_number", LAST_UPDATED, updates),
    ):
        field = pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(identity)})
        table = table.append_column(field, pa.array(values, pa.int64()))
    made = write_input(directory, table)
    return dataclasses.replace(made, first_row_id=first, data_sequence_number=number)


def job(directory: Path) -> MergeJob:
    files = [
        file(directory, [10, 11, 12, 13], 100, 5),
        moved(directory, [20, 21, 22], [7, None, None], [2, 3, None], 200, 6),
        file(directory, [30, 31], 300, 1),
    ]
    made = job_of(FIELDS, files, directory / "out.parquet", row_lineage=True, partition='["x"]')
    vector = deletion_vector(directory, files[0].path, [0, 2])
    return dataclasses.replace(made, group=with_deletes(made.group, [(vector, files[:1])]))


EXPECTED = [
    {"id": 11, "_row_id": 101, "_last_updated_sequence_number": 5},
    {"id": 13, "_row_id": 103, "_last_updated_sequence_number": 5},
    {"id": 20, "_row_id": 7, "_last_updated_sequence_number": 2},
    {"id": 21, "_row_id": 201, "_last_updated_sequence_number": 3},
    {"id": 22, "_row_id": 202, "_last_updated_sequence_number": 6},
    {"id": 30, "_row_id": 300, "_last_updated_sequence_number": 1},
    {"id": 31, "_row_id": 301, "_last_updated_sequence_number": 1},
]


@pytest.mark.parametrize("writer", [ARROW_RS, PYARROW], ids=lambda writer: writer.name)
def test_v1_every_row_takes_its_lineage_along(tmp_path: Path, writer: Writer) -> None:
    result = merge_group(job(tmp_path), writer=writer)

    table = pq.read_table(result.outputs[0].path)
    assert table.to_pylist() == EXPECTED
    assert leaf_ids(table.schema) == [1, ROW_ID, LAST_UPDATED]
    assert [table.schema.field(position).nullable for position in range(3)] == [False, True, True]
    assert result.outputs[0].metrics.value_counts == dict.fromkeys((1, ROW_ID, LAST_UPDATED), 7)
    assert result.outputs[0].metrics.null_counts == dict.fromkeys((1, ROW_ID, LAST_UPDATED), 0)
    assert int.from_bytes(result.outputs[0].metrics.lower_bounds[ROW_ID], "little") == 7
    assert int.from_bytes(result.outputs[0].metrics.upper_bounds[LAST_UPDATED], "little") == 6
    assert set(result.outputs[0].metrics.column_sizes) == {1, ROW_ID, LAST_UPDATED}
    (update,) = [c for c in leaf_chunks(result) if c.path_in_schema == "_last_updated_sequence_number"]
    assert update.has_dictionary_page


def test_what_was_merged_before_keeps_its_lineage(tmp_path: Path) -> None:
    """The first output, read as the file that its commit made of it."""
    first = merge_group(job(tmp_path))
    path = Path(first.outputs[0].path)
    once = InputFile(str(path), path.stat().st_size, 7, 9, first_row_id=900)
    again = merge_group(job_of(FIELDS, [once], tmp_path / "again.parquet", row_lineage=True))
    assert pq.read_table(again.outputs[0].path).to_pylist() == EXPECTED
    assert again.receipt.output_digest == first.receipt.output_digest


def test_rows_without_ids_get_them_from_the_commit_and_keep_when_they_were_updated(tmp_path: Path) -> None:
    """A table that was upgraded from version 2, and has not been committed to since."""
    files = [file(tmp_path, [1, 2], None, 3), file(tmp_path, [3], None, 4)]
    result = merge_group(job_of(FIELDS, files, tmp_path / "out.parquet", row_lineage=True))
    table = pq.read_table(result.outputs[0].path)
    assert table["_row_id"].to_pylist() == [None] * 3
    assert table["_last_updated_sequence_number"].to_pylist() == [3, 3, 4]


def test_tables_of_other_versions_have_no_lineage_and_refuse_files_that_do(tmp_path: Path) -> None:
    plain = merge_group(job_of(FIELDS, [file(tmp_path, [1], 5, 3)], tmp_path / "out.parquet"))
    assert pq.read_table(plain.outputs[0].path).column_names == ["id"]
    with pytest.raises(UnsupportedFile, match="metadata column"):
        merge_group(job_of(FIELDS, [moved(tmp_path, [1], [1], [1], 1, 1)], tmp_path / "other.parquet"))


def test_a_column_of_the_same_name_is_refused(tmp_path: Path) -> None:
    fields = [*FIELDS, column(2, "_row_id", "long")]
    source = write_input(tmp_path, arrow_table(fields, {"id": [1], "_row_id": [1]}))
    with pytest.raises(UnsupportedColumn, match="belongs to row lineage"):
        merge_group(job_of(fields, [source], tmp_path / "out.parquet", row_lineage=True))


def _shifted(batch: Any, start: int, source: InputFile) -> Any:
    return inherited(batch, start + 1, source)


def _of_the_commit(batch: Any, start: int, source: InputFile) -> Any:
    return inherited(batch, start, dataclasses.replace(source, data_sequence_number=99))


def _without_own_values(batch: Any, start: int, source: InputFile) -> Any:
    names = ["_row_id", "_last_updated_sequence_number"]
    columns = [pa.nulls(batch.num_rows, pa.int64()) if f.name in names else batch[f.name] for f in batch.schema]
    return inherited(pa.RecordBatch.from_arrays(columns, schema=batch.schema), start, source)


@each_case("fault", [_shifted, _of_the_commit, _without_own_values])
def test_v1_a_wrong_lineage_is_caught(
    fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(merge_module, "inherited", fault)
    monkeypatch.setattr(merge_module, "FILES_PER_SAMPLE", 1)
    with pytest.raises(ProofFailed, match="decoded by arrow-rs differs"):
        merge_group(job(tmp_path))
