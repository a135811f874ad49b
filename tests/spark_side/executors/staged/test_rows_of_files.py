"""Every input file must give its rows, but for those that its deletes can have removed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from icewright.model.actions.actions import Executor, FileGroup, InputFile
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright_spark.executors.staged.checks import check_rows_of_files, check_same_rows
from icewright_spark.executors.staged.hash_job import _partition_hash
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.parquet.rows_hash import rows_hash
from tests.cases import each_case

POSITIONS, EQUALITY = FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES
UNPARTITIONED = Partition(0, "[]")


def delete(content: FileContent, file_format: FileFormat, records: int) -> DeleteFile:
    return DeleteFile("d", content, file_format, UNPARTITIONED, 1, records, 1, 2)


VECTOR = delete(POSITIONS, FileFormat.PUFFIN, 3)
POSITION_DELETES = delete(POSITIONS, FileFormat.PARQUET, 3)
EQUALITY_DELETES = delete(EQUALITY, FileFormat.PARQUET, 1)


def group(*deletes: DeleteFile) -> FileGroup:
    """File ``a`` of 10 rows with all the deletes, file ``b`` of 5 rows without any."""
    files = (InputFile("a", 1, 10, 1, deletes=tuple(range(len(deletes)))), InputFile("b", 1, 5, 1))
    return FileGroup(0, UNPARTITIONED, "", files, Executor.STAGED, deletes)


@each_case(
    ("deletes", "rows"),
    [
        ([], {"a": 10, "b": 5}),
        ([VECTOR], {"a": 7, "b": 5}),
        ([POSITION_DELETES], {"a": 7, "b": 5}),
        ([POSITION_DELETES], {"a": 10, "b": 5}),  # rows of other files, or of this one twice
        ([EQUALITY_DELETES], {"b": 5}),
        ([EQUALITY_DELETES, VECTOR], {"a": 2, "b": 5}),
        ([POSITION_DELETES] * 4, {"b": 5}),
    ],
)
def test_what_deletes_explain_is_well(deletes: list[DeleteFile], rows: Mapping[str, int]) -> None:
    check_rows_of_files(group(*deletes), rows)


@each_case(
    ("deletes", "rows"),
    [
        ([], {"a": 9, "b": 5}),
        ([], {"a": 11, "b": 5}),
        ([], {"a": 10}),
        ([], {"a": 9, "b": 6}),
        ([VECTOR], {"a": 6, "b": 5}),
        ([VECTOR], {"a": 8, "b": 5}),
        ([VECTOR], {"a": 7, "b": 4}),
        ([POSITION_DELETES], {"a": 6, "b": 5}),
        ([POSITION_DELETES], {"a": 11, "b": 5}),
        ([EQUALITY_DELETES], {"a": 11, "b": 5}),
        ([EQUALITY_DELETES], {"a": 3, "b": 4}),
        ([EQUALITY_DELETES], {"a": 3, "b": 5, "c": 1}),
    ],
)
def test_rows_that_nothing_explains_are_an_error(deletes: list[DeleteFile], rows: Mapping[str, int]) -> None:
    with pytest.raises(ProofFailed):
        check_rows_of_files(group(*deletes), rows)


@dataclass(frozen=True)
class Written:
    """A new file as Java's ``DataFile`` tells of it."""

    path: str
    rows: int

    def location(self) -> str:
        return self.path

    def recordCount(self) -> int:  # noqa: N802 - Java's name
        return self.rows


IN = {"a": rows_hash([pa.record_batch({"x": range(10)})]), "b": rows_hash([pa.record_batch({"x": range(10, 15)})])}
OUT = {"o": rows_hash([pa.record_batch({"x": range(8)})]), "p": rows_hash([pa.record_batch({"x": range(8, 15)})])}


def test_new_files_have_the_rows_of_their_inputs_and_those_that_are_said_of_each() -> None:
    receipt = check_same_rows(group(), [Written("o", 8), Written("p", 7)], IN, OUT, "m")
    assert receipt.input_digest == receipt.output_digest == rows_hash([pa.record_batch({"x": range(15)})]).text
    assert (receipt.group_id, receipt.method, receipt.records) == (group().group_id, "m", 15)
    assert receipt.deleted_records == group().record_count - 15
    check_same_rows(group(), [Written("o", 8), Written("p", 7), Written("q", 0)], IN, OUT, "m")  # none were read of it


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ([Written("o", 9), Written("p", 7)], "o is said to have 9 rows, 8 were read"),
        ([Written("o", 9), Written("p", 6)], r"is said to have (9 rows, 8|6 rows, 7) were read"),  # as many in all
        ([Written("o", 8), Written("p", 7), Written("q", 1)], "q is said to have 1 rows, 0 were read"),
        ([Written("o", 8)], "p is said to have None rows, 7 were read"),
    ],
)
def test_a_new_file_that_states_other_rows_than_are_read_is_an_error(stated: list[Written], said: str) -> None:
    with pytest.raises(ProofFailed, match=said):
        check_same_rows(group(), stated, IN, OUT, "m")


def test_new_files_with_as_many_rows_of_other_contents_are_an_error() -> None:
    other = {**OUT, "p": rows_hash([pa.record_batch({"x": range(9, 16)})])}
    with pytest.raises(ProofFailed, match="the rows of o, p are not those of its inputs"):
        check_same_rows(group(), [Written("o", 8), Written("p", 7)], IN, other, "m")


def test_inputs_that_were_not_read_in_full_are_an_error_though_all_of_it_was_written() -> None:
    read = {"a": IN["a"]}
    with pytest.raises(ProofFailed, match="0 rows were read from b"):
        check_same_rows(group(), [Written("o", 10)], read, {"o": IN["a"]}, "m")


class Seen:
    """Remembers the rows that went by."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {}

    def add(self, file: str, columns: Any) -> None:
        self.rows.setdefault(file, []).extend(columns.to_pylist())

    def found(self, file: str) -> Any:
        return self.rows[file]


def test_workers_hash_the_columns_that_count_by_file_and_watch_the_others() -> None:
    rows = pa.record_batch({"c0": [1, 2, 3], "c1": ["x", None, "z"]})
    shown = rows.append_column("c2", pa.array([7, 8, 9])).append_column("c3", pa.array(["a", "b", "a"]))
    batches = [shown.slice(0, 1), shown.slice(1)]
    for watch in (None, Seen):
        (batch,) = _partition_hash(2, watch)(batches)
        said = json.loads(batch.column(0)[0].as_py())
        hashes = {"a": rows_hash([rows.slice(0, 1), rows.slice(2)]), "b": rows_hash([rows.slice(1, 1)])}
        assert said["by_file"] == {path: [found.rows, *found.sums] for path, found in hashes.items()}
        assert said["watched"] == ({} if watch is None else {"a": [{"c2": 7}, {"c2": 9}], "b": [{"c2": 8}]})
