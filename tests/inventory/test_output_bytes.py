"""How many bytes a rewrite is said to write, by the model and by what earlier commits wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.inventory.output_bytes import OVERHEAD_MAX, OutputBytes, file_bytes, output_bytes, ratio
from icewright.model.actions.actions import Executor, FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.files import DeleteFile
from icewright.model.iceberg.layouts import Level
from icewright.model.plans.observation import Observation, Written
from tests.builders.observations import MIB, equality_deletes, month, observe, position_deletes, table

EACH = file_bytes(table())


def group(*deletes: DeleteFile, files: int = 4, size_bytes: int = 100 * MIB, rows: int = 1_000) -> FileGroup:
    inputs = tuple(InputFile(f"f{number}", size_bytes, rows, 1) for number in range(files))
    return FileGroup(0, month(1), "month=1", inputs, Executor.MERGE, tuple(deletes))


def said(*groups: FileGroup, by: Observation | None = None) -> OutputBytes:
    return output_bytes(by or observe([]), RewriteDataFiles(1, 0, groups, 512 * MIB))


def test_a_table_of_two_columns_has_so_much_in_each_file() -> None:
    assert EACH == 500 + 2 * 280
    nested = {"id": 3, "name": "s", "type": {"type": "struct", "fields": [{"id": 4, "name": "x", "type": "int"}]}}
    assert file_bytes(table(fields=({"id": 1, "name": "month", "type": "int"}, nested))) == EACH


def test_what_files_have_once_is_written_once() -> None:
    assert said(group()).modelled == 400 * MIB - 3 * EACH
    assert said(replace(group(), output_files=3)).modelled == 400 * MIB - EACH
    assert said(group(), replace(group(), group_id=1)).modelled == 2 * (400 * MIB - 3 * EACH)
    assert said(replace(group(), output_files=90, output_spec_id=1)).modelled == 400 * MIB


def test_of_the_smallest_files_half_is_taken_for_rows() -> None:
    assert said(group(files=100, size_bytes=EACH)).modelled == 100 * EACH - 99 * int(OVERHEAD_MAX * EACH)


def test_deleted_rows_are_not_written() -> None:
    deletes = [position_deletes(month(1), number, records=500) for number in range(2)]
    assert said(group(*deletes)).modelled == pytest.approx(300 * MIB, rel=0.001)
    assert said(group(position_deletes(month(1), 3, records=1_000_000))).modelled == 0
    assert said(group(equality_deletes(month(1), 1))).modelled == pytest.approx(400 * MIB, rel=0.001)


def test_what_is_left_out_is_said() -> None:
    alone = group(position_deletes(month(1), 1, records=500), files=1)
    assert said(alone).reason.text == "of 100.0 MiB read without deleted rows"


def test_a_group_without_rows_writes_nothing() -> None:
    assert said(group(files=1, size_bytes=400, rows=0)).expected == 0


def known(commits: int, modelled: int, wrote: int, executor: Executor = Executor.MERGE) -> Observation:
    return replace(observe([]), written=(Written(Level.LEVEL_0, executor, commits, modelled, wrote),))


def test_what_was_written_before_counts_the_more_the_oftener() -> None:
    assert ratio(None) == 1
    assert [ratio(known(n, n * 1_000, n * 500).written[0]) for n in (1, 3, 9)] == [0.75, 0.625, 0.55]
    found = said(group(), by=known(3, 300 * MIB, 150 * MIB))
    assert found.expected == round(found.modelled * 0.625)
    assert found.reason.figures["ratio_merge"] == 0.625
    assert found.reason.text == (
        "of 400.0 MiB read, with 1 file for 4, each of which has about "
        "1.0 KiB for any rows; times 0.625 for merge, since its latest 3 commits of level-0 wrote 150.0 MiB where "
        "300.0 MiB were modelled"
    )


def test_what_others_wrote_does_not_count() -> None:
    for other in (
        known(3, 300, 150, Executor.STAGED),
        replace(observe([]), written=(Written(Level.LEVEL_1, Executor.MERGE, 3, 300, 150),)),
    ):
        found = said(group(), by=other)
        assert found.expected == found.modelled
        assert "times" not in found.reason.text


@given(st.integers(0, 10**15), st.integers(0, 10**12), st.integers(1, 50))
def test_an_output_is_never_modelled_larger_than_its_input(size_bytes: int, deleted: int, made: int) -> None:
    one = group(position_deletes(month(1), 1, records=deleted), files=1, size_bytes=size_bytes)
    assert 0 <= said(replace(one, output_files=made)).modelled <= size_bytes


@given(st.integers(1, 8), st.integers(1, 10**12), st.integers(1, 10**12))
def test_a_ratio_lies_between_one_and_what_was_written(commits: int, modelled: int, wrote: int) -> None:
    low, high = sorted((1.0, wrote / modelled))
    assert low <= ratio(Written(Level.LEVEL_0, Executor.MERGE, commits, modelled, wrote)) * (1 + 1e-9)
    assert ratio(Written(Level.LEVEL_0, Executor.MERGE, commits, modelled, wrote)) <= high * (1 + 1e-9)
