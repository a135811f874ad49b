"""Every input file must give its rows, but for those that its deletes can have removed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from icewright.domain.actions import Executor, FileGroup, InputFile
from icewright.domain.files import DeleteFile, FileContent, FileFormat, Partition
from icewright_spark.merge.errors import ProofFailed
from icewright_spark.staged.checks import check_rows_of_files
from icewright_spark.staged.hash_job import _partition_hash
from icewright_spark.staged.rows_hash import rows_hash
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
