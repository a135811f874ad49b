"""Which delete files apply to which data file: against the sentences of the spec, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.inventory.applied_deletes import Burden, DeleteIndex, only_data_file, too_many_deletes
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, FileFormat, Partition
from tests.builders.observations import (
    WHOLE,
    data_file,
    deletion_vector,
    equality_deletes,
    month,
    policy,
    position_deletes,
    table,
)
from tests.cases import each_case

FILE = replace(data_file(month(1), 0, sequence_number=5), record_count=100)
UNPARTITIONED_SPECS = {1}


def applying(file: DataFile, *deletes: DeleteFile) -> list[DeleteFile]:
    return list(DeleteIndex(table(), deletes).of(file))


def by_the_spec(file: DataFile, deletes: Sequence[DeleteFile]) -> set[DeleteFile]:
    """The oracle: each delete file is held against each sentence of "Scan Planning"; nothing is indexed."""
    vectors = {
        one
        for one in deletes
        if one.file_format is FileFormat.PUFFIN
        and one.referenced_data_file == file.path
        and file.data_sequence_number <= one.data_sequence_number
        and one.partition == file.partition
    }
    position = {
        one
        for one in deletes
        if one.content is FileContent.POSITION_DELETES
        and one.file_format is not FileFormat.PUFFIN
        and one.referenced_data_file in (None, file.path)
        and not (one.path_lower is not None and one.path_lower == one.path_upper != file.path)
        and file.data_sequence_number <= one.data_sequence_number
        and one.partition == file.partition
        and not vectors
    }
    equality = {
        one
        for one in deletes
        if one.content is FileContent.EQUALITY_DELETES
        and file.data_sequence_number < one.data_sequence_number
        and (one.partition == file.partition or one.partition.spec_id in UNPARTITIONED_SPECS)
    }
    return vectors | position | equality


_partitions = st.sampled_from([month(1), month(2), month(1, spec_id=2), WHOLE])
_numbers = st.integers(0, 4)


@st.composite
def _lakes(draw: st.DrawFn) -> tuple[list[DataFile], list[DeleteFile]]:
    files = [
        data_file(draw(_partitions), number, sequence_number=draw(_numbers))
        for number in range(draw(st.integers(1, 5)))
    ]
    deletes: list[DeleteFile] = []
    for number in range(draw(st.integers(0, 8))):
        of, sequence_number = draw(st.sampled_from(files)), draw(_numbers)
        partition = draw(st.sampled_from([of.partition, draw(_partitions)]))
        kind = draw(st.sampled_from(["partition", "named", "bounds", "range", "vector", "equality"]))
        one = position_deletes(partition, number, sequence_number=sequence_number)
        if kind == "named":
            one = replace(one, referenced_data_file=of.path)
        elif kind == "bounds":
            one = replace(one, path_lower=of.path, path_upper=of.path)
        elif kind == "range":
            one = replace(one, path_lower=of.path, path_upper=of.path + "x")
        elif kind == "vector":
            taken = {d.referenced_data_file for d in deletes if d.file_format is FileFormat.PUFFIN}
            if of.path in taken:
                continue
            one = replace(deletion_vector(of, 1, sequence_number=sequence_number), partition=partition)
        elif kind == "equality":
            one = equality_deletes(partition, number, sequence_number=sequence_number)
        deletes.append(one)
    return files, deletes


@settings(max_examples=300, deadline=None)
@given(_lakes())
def test_the_index_gives_what_the_spec_says(lake: tuple[list[DataFile], list[DeleteFile]]) -> None:
    files, deletes = lake
    index = DeleteIndex(table(), deletes)
    for file in files:
        found = index.of(file)
        assert set(found) == by_the_spec(file, deletes)
        assert len(set(found)) == len(found)
        assert DeleteIndex(table(), reversed(deletes)).of(file) == found
        named = sum(one.record_count for one in found if only_data_file(one) is not None)
        assert index.burden(file) == Burden(len(found), min(named, file.record_count))


def test_position_deletes_of_the_same_commit_apply_and_older_ones_do_not() -> None:
    same, older = (position_deletes(month(1), number, sequence_number=number) for number in (5, 4))
    assert applying(FILE, same, older) == [same]


def test_w4_equality_deletes_apply_to_older_files_alone() -> None:
    same, younger = (equality_deletes(month(1), number, sequence_number=number) for number in (5, 6))
    assert applying(FILE, same, younger) == [younger]


def test_a_vector_takes_the_place_of_position_deletes_but_not_of_equality_deletes() -> None:
    vector = deletion_vector(FILE, 3, sequence_number=7)
    equality = equality_deletes(month(1), 0, sequence_number=6)
    position = [
        position_deletes(month(1), 0, of=FILE, sequence_number=6),
        position_deletes(month(1), 1, sequence_number=8),
    ]
    assert applying(FILE, *position, vector, equality) == [equality, vector]


def test_equal_bounds_name_a_file_and_others_do_not() -> None:
    anything = position_deletes(month(1), 0, sequence_number=5)
    here = replace(anything, path_lower=FILE.path, path_upper=FILE.path)
    elsewhere = replace(anything, path_lower="a", path_upper="a")
    around = replace(anything, path_lower="a", path_upper="b")
    assert [only_data_file(one) for one in (here, elsewhere, around, anything)] == [FILE.path, "a", None, None]
    # Readers do not leave a file out for a range that it is not in: it costs a read, and no row.
    assert applying(FILE, here) == [here]
    assert applying(FILE, elsewhere) == []
    assert applying(FILE, around) == [around]


def test_v2_two_vectors_of_one_file_are_told() -> None:
    vectors = [deletion_vector(FILE, 3), replace(deletion_vector(FILE, 4), path="another.puffin")]
    assert DeleteIndex(table(), vectors).doubled == {FILE.path}
    assert DeleteIndex(table(), vectors[:1]).doubled == frozenset()


@each_case("partition", [month(2), month(1, spec_id=1), Partition(0, "[null]")])
def test_another_partition_is_another(partition: Partition) -> None:
    assert applying(FILE, position_deletes(partition, 0, sequence_number=9)) == []
    assert applying(FILE, position_deletes(partition, 0, of=FILE, sequence_number=9)) == []


THRESHOLDS = [
    (False, []),
    (False, [position_deletes(month(1), 0, 29, of=FILE)]),
    (True, [position_deletes(month(1), 0, 30, of=FILE)]),
    (True, [position_deletes(month(1), 0, 20, of=FILE), position_deletes(month(1), 1, 10, of=FILE)]),
    (True, [deletion_vector(FILE, 30)]),
    (False, [position_deletes(month(1), 0, 100)]),
    (False, [equality_deletes(month(1), number) for number in range(9)]),
    (True, [equality_deletes(month(1), number) for number in range(10)]),
    (True, [position_deletes(month(1), number) for number in range(10)]),
]


@each_case(("expected", "deletes"), THRESHOLDS)
def test_too_many_deletes(deletes: list[DeleteFile], *, expected: bool) -> None:
    assert too_many_deletes(FILE, DeleteIndex(table(), aged(deletes)).burden(FILE), policy()) is expected


def aged(deletes: Sequence[DeleteFile]) -> list[DeleteFile]:
    """As young as they must be to apply to the file."""
    return [replace(delete, data_sequence_number=6) for delete in deletes]


def test_no_more_rows_are_known_to_be_deleted_than_there_are() -> None:
    index = DeleteIndex(table(), aged([position_deletes(month(1), number, 60, of=FILE) for number in range(2)]))
    assert index.burden(FILE) == Burden(2, 100)
    empty = replace(FILE, record_count=0)
    assert index.burden(empty) == Burden(2, 0)
    assert not too_many_deletes(empty, index.burden(empty), policy())
