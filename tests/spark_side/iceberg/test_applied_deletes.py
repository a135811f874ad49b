"""Which delete files apply to which data files: the spec's rules, and every difference from the plan noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icewright.core.errors import Conflict, Unsupported
from icewright.model.actions.actions import Executor, FileGroup, InputFile
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright_spark.iceberg.applied_deletes import DataEntry, check_applied
from tests.cases import each_case

BONN, ULM, NOWHERE = Partition(1, '["Bonn"]'), Partition(1, '["Ulm"]'), Partition(0, "[]")
UNPARTITIONED_SPECS = (0,)
SEQUENCE_NUMBER = 5


def delete(name: str = "d", number: int = 6, **changes: Any) -> DeleteFile:
    made = DeleteFile(name, FileContent.POSITION_DELETES, FileFormat.PARQUET, BONN, 10, 3, 0, number)
    return replace(made, **changes)


def vector(name: str = "v", number: int = 6, **changes: Any) -> DeleteFile:
    own = {"file_format": FileFormat.PUFFIN, "referenced_data_file": "/f", "content_offset": 4}
    return delete(name, number, **{**own, "content_size_bytes": 50, **changes})


def equality(number: int = 6, **changes: Any) -> DeleteFile:
    return delete("e", number, content=FileContent.EQUALITY_DELETES, **changes)


def group(*planned: DeleteFile, path: str = "/f", **changes: Any) -> FileGroup:
    file = InputFile(path, 100, 10, SEQUENCE_NUMBER, first_row_id=40, deletes=tuple(range(len(planned))))
    return replace(FileGroup(0, BONN, "", (file,), delete_files=planned), **changes)


def check(planned: FileGroup, *found: DeleteFile, entry: DataEntry | None = None) -> Any:
    entries = {"/f": entry or DataEntry("/f", SEQUENCE_NUMBER, 40)}
    return check_applied([planned], entries, found, UNPARTITIONED_SPECS)


APPLIES = {
    "in the partition": delete(),
    "of the same commit": delete(number=5),
    "of this file": delete(referenced_data_file="/f"),
    "within its bounds": delete(path_lower="/f", path_upper="/f"),
    "a vector": vector(),
    "a vector of the same commit": vector(number=5),
}
DOES_NOT_APPLY = {
    "older": delete(number=4),
    "another partition": delete(partition=ULM),
    "unpartitioned": delete(partition=NOWHERE),
    "another file": delete(referenced_data_file="/g"),
    "another spelling of the file": delete(referenced_data_file="file:/f"),
    "another file's vector": vector(referenced_data_file="/g"),
    "an older vector": vector(number=4),
    "a vector in another partition": vector(partition=ULM),
    "equality deletes of the same commit": equality(number=5),
    "equality deletes elsewhere": equality(partition=ULM),
}


@each_case("name", APPLIES)
def test_what_applies_must_be_planned(name: str) -> None:
    found = APPLIES[name]
    assert check(group(found), found) == ({found.key} if found.file_format is FileFormat.PUFFIN else frozenset())
    with pytest.raises(Conflict, match=r"but of the planned snapshot \w"):
        check(group(), found)


@each_case("name", DOES_NOT_APPLY)
def test_what_does_not_apply_must_not_be_planned(name: str) -> None:
    found = DOES_NOT_APPLY[name]
    assert check(group(), found) == frozenset()
    with pytest.raises(Conflict):
        check(group(found), found)


def test_what_is_not_in_the_snapshot_must_not_be_planned() -> None:
    with pytest.raises(Conflict, match=r"planned with the delete files d, but of the planned snapshot \(none\) apply"):
        check(group(delete()))


def test_bounds_may_be_gone_by_or_not() -> None:
    """Both planners are right: who lists the file loses nothing but time."""
    elsewhere = delete(path_lower="/g", path_upper="/z")
    assert check(group(), elsewhere) == check(group(elsewhere), elsewhere) == frozenset()
    with pytest.raises(Conflict):
        check(group(), delete(path_lower="/a"))


def test_a_vector_replaces_the_position_deletes_before_it() -> None:
    check(group(vector()), vector(), delete())
    with pytest.raises(Conflict):
        check(group(vector(), delete()), vector(), delete())


def test_v5_vectors_of_one_puffin_file_are_told_apart() -> None:
    other = vector(content_offset=54, referenced_data_file="/g")
    assert check(group(vector()), other, vector()) == {("v", 4)}
    with pytest.raises(Conflict):
        check(group(other), other, vector())


def test_v2_two_vectors_of_a_file_are_refused() -> None:
    with pytest.raises(Unsupported, match="2 deletion vectors"):
        check(group(vector()), vector(), vector(content_offset=60))


@pytest.mark.parametrize("found", [equality(), equality(partition=NOWHERE)], ids=["partition", "everywhere"])
def test_equality_deletes_are_not_for_the_merge(found: DeleteFile) -> None:
    for planned in (group(), group(found)):
        with pytest.raises(Unsupported, match="equality deletes"):
            check(planned, found)
    staged = group(found, executor=Executor.STAGED)
    assert check(staged, found) == frozenset()
    with pytest.raises(Conflict):
        check(replace(staged, files=group().files), found)


@each_case(
    "change",
    [{"record_count": 4}, {"size_bytes": 11}, {"data_sequence_number": 7}, {"content_size_bytes": 51}],
    ids=str,
)
def test_a_delete_file_planned_as_another_than_it_is(change: dict[str, int]) -> None:
    with pytest.raises(Conflict, match="was planned as"):
        check(group(replace(vector(), **change)), vector())  # type: ignore[arg-type]  # numbers all


@each_case(
    "entry", [DataEntry("/f", 4, 40), DataEntry("/f", SEQUENCE_NUMBER, 41), DataEntry("/f", SEQUENCE_NUMBER, None)]
)
def test_a_data_file_planned_as_another_than_it_is(entry: DataEntry) -> None:
    with pytest.raises(Conflict, match="was planned with sequence number 5 and first row id 40"):
        check(group(), entry=entry)


def test_a_data_file_that_is_not_there() -> None:
    with pytest.raises(Conflict, match="not in its partition"):
        check(group(path="/other"))
