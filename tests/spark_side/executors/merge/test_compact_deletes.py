"""Position deletes written as one file: against a plain reading of what is to be deleted, and with injected faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icewright.model.actions.rewrite_delete_files import DeleteGroup, Target
from icewright.model.iceberg.files import DeleteFile, Partition
from icewright_spark.executors.merge import compact_deletes
from icewright_spark.executors.merge.compact_deletes import CompactJob, compact, kept_positions
from icewright_spark.parquet.errors import FileChanged, OutputExists, ProofFailed, UnsupportedFile
from icewright_spark.parquet.storage import LOCAL
from tests.builders.delete_files import position_deletes
from tests.cases import each_case

HERE = Partition(0, "[]")
Row = tuple[str, int]


def job(directory: Path, files: Iterable[tuple[int, list[Row]]], targets: Iterable[Target]) -> CompactJob:
    """A group of delete files with these sequence numbers and rows."""
    deletes = tuple(
        replace(position_deletes(directory, rows), data_sequence_number=age, partition=HERE) for age, rows in files
    )
    number = max(delete.data_sequence_number for delete in deletes)
    group = DeleteGroup(0, HERE, "", None, deletes, tuple(targets), number)
    return CompactJob(group, str(directory / "out.parquet"), LOCAL)


def rows_of(path: str) -> list[Row]:
    table = pq.read_table(path)
    return [(row["file_path"], row["pos"]) for row in table.to_pylist()]


A, B, YOUNG = Target("a", 1, 10), Target("b", 2, 10), Target("young", 5, 10)
FILES = [(3, [("a", 1), ("a", 4), ("gone", 2)]), (5, [("a", 4), ("b", 0), ("young", 3)]), (4, [("young", 9), ("b", 7)])]


def test_one_file_has_every_position_once_in_order_and_none_that_applied_to_nothing(tmp_path: Path) -> None:
    made = compact(job(tmp_path, FILES, [A, B, YOUNG]))
    assert rows_of(made.output_path) == [("a", 1), ("a", 4), ("b", 0), ("b", 7), ("young", 3)]
    assert (made.records, made.size_bytes) == (5, Path(made.output_path).stat().st_size)
    assert made.input_digest == made.output_digest
    fields = pq.read_schema(made.output_path)
    assert [int(field.metadata[b"PARQUET:field_id"]) for field in fields] == [2_147_483_546, 2_147_483_545]
    assert not any(field.nullable for field in fields)


def test_where_nothing_is_left_there_is_no_file(tmp_path: Path) -> None:
    made = compact(job(tmp_path, [(3, [("gone", 1)]), (4, [("young", 1)])], [A, YOUNG]))
    assert (made.output_path, made.records, made.size_bytes) == ("", 0, 0)
    assert not (tmp_path / "out.parquet").exists()


_rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", "young", "gone", "Ä", "\U0001d538", "\ue000"]), st.integers(0, 9)), min_size=1
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(1, 6), _rows), min_size=2, max_size=4))
def test_w5_what_is_deleted_is_what_was(tmp_path: Path, files: list[tuple[int, list[Row]]]) -> None:
    targets = [A, B, YOUNG, Target("Ä", 2, 10), Target("\U0001d538", 2, 10), Target("\ue000", 2, 10)]
    numbers = {target.path: target.data_sequence_number for target in targets}
    (tmp_path / "out.parquet").unlink(missing_ok=True)
    for old in tmp_path.glob("deletes-*.parquet"):
        old.unlink()
    made = compact(job(tmp_path, files, targets))
    plain = {row for age, rows in files for row in rows if numbers.get(row[0], 99) <= age}
    assert (rows_of(made.output_path) if made.output_path else []) == sorted(
        plain, key=lambda row: (row[0].encode(), row[1])
    )


Fault = Callable[[Any], Any]
FAULTS: dict[str, Fault] = {
    "a row is lost": lambda table: table.slice(1),
    "a row too many": lambda table: pa.concat_tables([table, pa.table([[2], [9]], schema=table.schema)]),
    "another position": lambda table: pa.concat_tables([table.slice(0, 4), pa.table([[2], [2]], schema=table.schema)]),
    "a row twice": lambda table: pa.concat_tables([table.slice(0, 1), table]),
    "another order": lambda table: table.take(list(range(table.num_rows))[::-1]),
    "another file": lambda table: table.set_column(0, table.schema.field(0), [pa.array([0, 0, 1, 2, 2], pa.int32())]),
}
"""What becomes of the rows to be written; targets are ``a``, ``b`` and ``young``."""


@each_case("fault", sorted(FAULTS))
def test_w5_a_file_that_deletes_anything_else_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(compact_deletes, "kept_positions", lambda job: FAULTS[fault](kept_positions(job)))
    with pytest.raises(ProofFailed):
        compact(job(tmp_path, FILES, [A, B, YOUNG]))


def test_w5_without_a_look_at_sequence_numbers_a_younger_file_would_lose_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that was used again (hazard E3): what was deleted from the old file is not from the new one."""
    kept_of = compact_deletes._kept_of

    def careless(job: CompactJob, delete: DeleteFile, paths: Any) -> Any:
        return kept_of(job, replace(delete, data_sequence_number=99), paths)

    monkeypatch.setattr(compact_deletes, "_kept_of", careless)
    with pytest.raises(ProofFailed, match="young"):
        compact(job(tmp_path, FILES, [A, B, YOUNG]))


def test_a_position_behind_the_last_row_is_no_position(tmp_path: Path) -> None:
    with pytest.raises(ProofFailed, match="row 4 of a is deleted, which has 3 rows"):
        compact(job(tmp_path, FILES, [replace(A, record_count=3), B, YOUNG]))


def test_what_stands_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "out.parquet").write_bytes(b"precious")
    with pytest.raises(OutputExists):
        compact(job(tmp_path, FILES, [A, B, YOUNG]))
    assert (tmp_path / "out.parquet").read_bytes() == b"precious"


def test_other_files_than_planned_are_refused(tmp_path: Path) -> None:
    made = job(tmp_path, FILES, [A, B, YOUNG])
    first, *others = made.group.deletes
    for changes in ({"size_bytes": 1}, {"record_count": 9}):
        wrong = replace(made.group, deletes=(replace(first, **changes), *others))  # type: ignore[arg-type]  # two ints
        with pytest.raises(FileChanged):
            compact(replace(made, group=wrong))


def test_rows_beside_their_positions_are_not_dropped(tmp_path: Path) -> None:
    made = job(tmp_path, FILES, [A, B, YOUNG])
    path = made.group.deletes[0].path
    table = pq.read_table(path)
    table = table.append_column(
        pa.field("row", pa.int32(), metadata={"PARQUET:field_id": "2147483544"}), [pa.array([1, 2, 3], pa.int32())]
    )
    pq.write_table(table, path)
    first = replace(made.group.deletes[0], size_bytes=Path(path).stat().st_size)
    with pytest.raises(UnsupportedFile, match="which would be lost"):
        compact(replace(made, group=replace(made.group, deletes=(first, *made.group.deletes[1:]))))


def test_a_file_that_is_for_others_as_well_is_not_taken_for_one_of_a_single_data_file(tmp_path: Path) -> None:
    """Its bounds lie: what it deletes from others would be gone, for readers that do not go by them."""
    made = job(tmp_path, [(3, [("a", 1)]), (4, [("a", 2), ("b", 1)])], [A])
    with pytest.raises(UnsupportedFile, match="is for others as well"):
        compact(replace(made, group=replace(made.group, data_file="a")))


def test_many_positions_fit_into_little_memory(tmp_path: Path) -> None:
    path = "file:/lake/t/data/" + "x" * 100
    files = [(3, [(path, 3 * row + number) for row in range(100_000)]) for number in range(2)]
    kept = kept_positions(job(tmp_path, files, [Target(path, 1, 300_000)]))
    assert kept.num_rows == 200_000
    assert kept.nbytes <= 12 * kept.num_rows + 100_000
