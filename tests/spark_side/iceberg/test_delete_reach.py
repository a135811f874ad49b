"""The job's own rules of what delete files reach, against a table of a few rows; manifests are read by nobody here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.core.errors import Conflict
from icewright.model.iceberg.files import DataFile, DeleteFile, Partition
from icewright_spark.iceberg.applied_deletes import DataEntry
from icewright_spark.iceberg.dangling import Reach, found_deletes
from icewright_spark.iceberg.manifests import FoundDelete, PartitionFiles
from icewright_spark.iceberg.replaced_deletes import Reached
from tests.actions.rewrite_delete_files import test_dangling_deletes as dangling
from tests.actions.rewrite_delete_files import test_position_deletes as position
from tests.builders.little_tables import READERS, LittleTable, little_tables, visible
from tests.builders.observations import data_file, month, position_deletes
from tests.cases import each_case

GLOBAL = frozenset({1})
ALL = settings(max_examples=200, deadline=None)


@dataclass
class Manifest:
    """A data manifest: files of one spec."""

    name: str
    files: list[DataFile]

    def path(self) -> str:
        return self.name

    def partitionSpecId(self) -> int:  # noqa: N802 - Java's name
        return self.files[0].partition.spec_id


@dataclass
class Files:
    """What :class:`PartitionFiles` says, of files at hand; what was read is counted."""

    manifests: list[Manifest]
    deletes: list[DeleteFile] = field(default_factory=list)
    reads: int = 0

    def data_manifests(self) -> list[Manifest]:
        return self.manifests

    def listed(self, manifest: Manifest) -> list[DataEntry]:
        self.reads += 1
        return [DataEntry(file.path, file.data_sequence_number, None) for file in manifest.files]

    def placed(self, manifest: Manifest, below: Mapping[int, int]) -> list[tuple[Partition, DataEntry]]:
        self.reads += 1
        near = [file for file in manifest.files if file.data_sequence_number <= below[manifest.partitionSpecId()]]
        return [(file.partition, DataEntry(file.path, file.data_sequence_number, None)) for file in near]

    def delete_files(self, _paths: object, since: int) -> list[FoundDelete]:
        found = [one for one in self.deletes if one.data_sequence_number >= since]
        return [FoundDelete(replace(one, snapshot_id=0), None, place) for place, one in enumerate(found)]


def files_of(table: LittleTable) -> Files:
    """A manifest for each data file."""
    return Files([Manifest(f"m{number}", [file]) for number, file in enumerate(table.data_files)], table.delete_files)


def as_java(files: Files) -> PartitionFiles:
    return cast("PartitionFiles", files)


@ALL
@given(little_tables())
def test_w5_what_is_planned_to_be_removed_passes(lake: LittleTable) -> None:
    gone = dangling.planned(lake)
    if gone:
        assert Reach(gone, GLOBAL).check(as_java(files_of(lake))) == len(lake.rows)


@ALL
@given(little_tables(), st.data())
def test_w5_what_any_reader_needs_does_not(lake: LittleTable, data: st.DataObject) -> None:
    if not lake.deletes:
        return
    one = data.draw(st.sampled_from(lake.delete_files))
    if any(visible(lake.without([one]), reader) != visible(lake, reader) for reader in READERS):
        with pytest.raises(Conflict, match="that were to be removed apply to"):
            Reach([one], GLOBAL).check(as_java(files_of(lake)))


@ALL
@given(position.many_deletes(), st.data())
def test_w5_new_files_reach_what_is_planned_and_nothing_that_comes_in_between(
    lake: LittleTable, data: st.DataObject
) -> None:
    action = position.decide(lake).action
    if action is None:
        return
    files, reached = files_of(lake), Reached(action)
    reached.check(as_java(files))
    group = data.draw(st.sampled_from(action.groups))
    number = data.draw(st.integers(0, group.sequence_number))
    path = group.data_file or "file:/lake/t/data/late.parquet"
    if (path, number) in {(target.path, target.data_sequence_number) for target in group.targets}:
        return
    late = replace(data_file(group.partition, 0, sequence_number=number), path=path)
    files.manifests.append(Manifest("late", [late]))
    with pytest.raises(Conflict, match="would delete rows from it"):
        reached.check(as_java(files))


def test_a_manifest_is_read_once() -> None:
    files = Files([Manifest("m", [data_file(month(1), 0, sequence_number=9)])])
    reach = Reach([position_deletes(month(1), 1, sequence_number=2)], GLOBAL)
    reach.check(as_java(files))
    reach.check(as_java(files))
    assert files.reads == 1
    files.manifests.append(Manifest("n", [data_file(month(1), 1, sequence_number=2)]))
    with pytest.raises(Conflict):
        reach.check(as_java(files))
    with pytest.raises(Conflict):
        reach.check(as_java(files))


PLANNED = position_deletes(month(1), 1, sequence_number=2)


@each_case(
    "changes",
    [
        {"size_bytes": 7},
        {"record_count": 7},
        {"data_sequence_number": 7},
        {"partition": month(2)},
        {"referenced_data_file": "x"},
        {"equality_ids": (1,)},
        {"path_lower": "x"},
        {"path_upper": "x"},
    ],
)
def test_w5_another_delete_file_under_the_same_path_is_a_conflict(changes: dict[str, Any]) -> None:
    found = found_deletes(as_java(Files([], [PLANNED])), [PLANNED])
    assert [each.delete.path for each in found] == [PLANNED.path]
    with pytest.raises(Conflict, match=f"its {next(iter(changes))} is another"):
        found_deletes(as_java(Files([], [replace(PLANNED, **changes)])), [PLANNED])


def test_w5_one_that_is_gone_or_there_twice_is_a_conflict() -> None:
    with pytest.raises(Conflict, match="another commit removed"):
        found_deletes(as_java(Files([])), [PLANNED])
    with pytest.raises(Conflict, match="listed twice"):
        found_deletes(as_java(Files([], [PLANNED, PLANNED])), [PLANNED])
