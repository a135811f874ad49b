"""Few rows in any order are sorted by one worker: as a merge by key of sorted files would, and proved as that is."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import InvalidMessage, NotSorted
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.layouts import Curve
from icewright.model.iceberg.layouts import Layout as RowOrder
from icewright.model.iceberg.tables import SortField
from icewright_spark.executors.merge import by_key
from icewright_spark.executors.merge.by_key import Key, sorted_at_once
from icewright_spark.executors.merge.merge import MergeJob, merge_group
from icewright_spark.parquet.errors import ProofFailed, UnsupportedColumn
from icewright_spark.parquet.schema import arrow_schema
from tests.builders.delete_files import deletion_vector, with_deletes
from tests.builders.merge_tables import arrow_table, column
from tests.cases import each_case
from tests.spark_side.executors.merge.test_merge_by_key import (
    BY_K,
    FAULTS,
    FIELDS,
    KEYS,
    ORDERED,
    ascending,
    faulty_job,
    job_by,
    numbered_job,
    ranked,
    rows_of,
    sort,
)

MUCH = 1 << 30


def to_be_sorted(job: MergeJob) -> MergeJob:
    return dataclasses.replace(job, group=dataclasses.replace(job.group, executor=Executor.SORT))


@each_case("null_order", ["nulls-first", "nulls-last"])
@each_case("direction", ["asc", "desc"])
@each_case("kind", ORDERED)
def test_every_type_has_its_order(kind: str, direction: str, null_order: str, tmp_path: Path) -> None:
    fields = [column(1, "k", kind), column(2, "n", "long")]
    values = ORDERED[kind] if direction == "asc" else ORDERED[kind][::-1]
    ordered = [None, *values] if null_order == "nulls-first" else [*values, None]
    ranks = [*range(len(ordered))] * 2
    random.Random(kind).shuffle(ranks)  # noqa: S311 - a deal, no secret
    parts = [
        arrow_table(fields, {"k": [ordered[rank] for rank in part], "n": part}) for part in (ranks[::2], ranks[1::2])
    ]
    order = sort(SortField(1, "identity", direction, null_order))
    result = merge_group(to_be_sorted(job_by(tmp_path, fields, order, parts)))
    assert pq.read_table(result.outputs[0].path)["n"].to_pylist() == sorted(ranks)
    assert "multiset" in result.receipt.method


@given(KEYS, st.integers(1, 7))
def test_it_is_a_stable_sort(keys: list[list[int | None]], batch_rows: int) -> None:
    key, schema = Key(FIELDS[:2], BY_K), arrow_schema(FIELDS[:2])
    rows = [(value, number) for number, value in enumerate(value for part in keys for value in part)]
    batch = pa.RecordBatch.from_pydict({"k": [row[0] for row in rows], "n": [row[1] for row in rows]}, schema)
    batches = [batch.slice(start, batch_rows) for start in range(0, len(rows), batch_rows)]
    found = [row for one in sorted_at_once(batches, key, MUCH) for row in zip(*one.to_pydict().values(), strict=True)]
    assert found == sorted(rows, key=lambda row: ranked(row[0]))


def test_maps_and_structs_go_with_their_row_into_several_files(tmp_path: Path) -> None:
    tags = {"type": "map", "key-id": 4, "key": "string", "value-id": 5, "value": "string", "value-required": False}
    fields = [column(1, "k", "string"), column(3, "tags", tags)]
    rows = [(f"name {n * 7 % 50:02}", [("n", str(n))]) for n in range(50)]
    parts = [
        arrow_table(fields, {"k": [row[0] for row in part], "tags": [row[1] for row in part]})
        for part in (rows[:20], rows[20:])
    ]
    result = merge_group(to_be_sorted(job_by(tmp_path, fields, BY_K, parts, outputs=4)))
    found = [row for output in result.outputs for row in pq.read_table(output.path).to_pylist()]
    assert [(row["k"], row["tags"]) for row in found] == sorted(rows)
    assert [output.record_count for output in result.outputs] == [12, 13, 12, 13]


def test_deleted_rows_are_gone(tmp_path: Path) -> None:
    job = to_be_sorted(numbered_job(tmp_path, [[7, 1, 5, 3], [8, None, 2]]))
    first, second = job.group.files
    group = with_deletes(
        job.group,
        [
            (deletion_vector(tmp_path, first.path, [1]), [first]),
            (deletion_vector(tmp_path, second.path, [0]), [second]),
        ],
    )
    assert [row["k"] for row in rows_of(dataclasses.replace(job, group=group))] == [None, 2, 3, 5, 7]


@each_case("rows", [0, 1, 3])
def test_no_output_is_empty_while_there_are_rows(rows: int, tmp_path: Path) -> None:
    result = merge_group(to_be_sorted(numbered_job(tmp_path, [range(rows)[::-1], []], outputs=4)))
    assert [output.record_count for output in result.outputs] == ([1] * rows or [0])


def test_more_rows_than_a_worker_may_hold_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("icewright_spark.executors.merge.merge.SORTED_BYTES_MAX", 1_000)
    with pytest.raises(NotSorted, match="more than 1,000 decoded bytes"):
        merge_group(to_be_sorted(numbered_job(tmp_path, [range(100)])))


@pytest.mark.parametrize(
    ("order", "error"),
    [(None, InvalidMessage), (RowOrder(Curve.HILBERT, (ascending(1), ascending(2))), UnsupportedColumn)],
)
def test_a_sort_wants_columns_to_sort_by(order: RowOrder | None, error: type[Exception], tmp_path: Path) -> None:
    job = dataclasses.replace(numbered_job(tmp_path, [[2, 1]]), sorted_by=order)
    with pytest.raises(error):
        merge_group(to_be_sorted(job))


@each_case("name", [name for name in FAULTS if name != "swap rows"])
def test_a_fault_in_the_sorting_itself_is_caught(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = sorted_at_once

    def faulty(batches: Iterable[Any], key: Key, held_bytes_max: int) -> Iterator[Any]:
        table = FAULTS[name](pa.Table.from_batches(list(plain(batches, key, held_bytes_max))))
        return iter(table.combine_chunks().to_batches())

    monkeypatch.setattr("icewright_spark.executors.merge.merge.sorted_at_once", faulty)
    with pytest.raises(ProofFailed):
        merge_group(to_be_sorted(faulty_job(tmp_path)))


def test_rows_that_were_not_sorted_are_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(by_key, "_sorted", lambda rows, _keys, _key: rows)
    with pytest.raises(ProofFailed, match="not in the order of"):
        merge_group(to_be_sorted(numbered_job(tmp_path, [[5, 1], [6, 2]])))
