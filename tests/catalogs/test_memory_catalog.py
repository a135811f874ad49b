"""What the writers' side of the catalog in memory refuses, as Iceberg does."""

from __future__ import annotations

import pytest

from icewright.core.errors import Conflict, Rejected, Unreadable
from icewright.model.iceberg.files import UNPARTITIONED, FileContent, FileFormat, Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import MAIN_BRANCH, TASK_ID_KEY, Operation
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.lake import MemoryFile

NAME = TableName("lake", ("db",), "events")
ALL = Partition(0, UNPARTITIONED)


def file(path: str, content: FileContent = FileContent.DATA) -> MemoryFile:
    return MemoryFile(path, ALL, 1000, 10, content=content)


@pytest.fixture
def catalog() -> MemoryCatalog:
    catalog = MemoryCatalog("lake", ManualClock())
    catalog.create(NAME)
    return catalog


def paths(catalog: MemoryCatalog) -> set[str]:
    return {file.path for file in catalog.live_files(NAME)}


def test_a_rewrite_replaces_its_inputs_and_is_signed(catalog: MemoryCatalog) -> None:
    base = catalog.append(NAME, [file("a"), file("b")])
    catalog.append(NAME, [file("c")])
    snapshot = catalog.commit_rewrite(
        NAME, base_snapshot_id=base.snapshot_id, remove=["a", "b"], add=[file("ab")], summary={TASK_ID_KEY: "task-1"}
    )
    assert paths(catalog) == {"ab", "c"}
    assert snapshot.operation is Operation.REPLACE
    metadata = catalog.load(NAME)
    assert metadata.snapshot_of_task("task-1") == snapshot
    files = catalog.data_files(metadata, snapshot, catalog.manifests(metadata, snapshot), frozenset({ALL}))
    assert {f.path: f.data_sequence_number for f in files} == {"ab": snapshot.sequence_number, "c": 2}


def test_a_rewrite_of_a_file_that_is_gone_is_a_conflict(catalog: MemoryCatalog) -> None:
    base = catalog.append(NAME, [file("a"), file("b")])
    catalog.delete(NAME, ["a"])
    before = catalog.metadata_location(NAME)
    with pytest.raises(Conflict):
        catalog.commit_rewrite(NAME, base_snapshot_id=base.snapshot_id, remove=["a", "b"], add=[file("ab")])
    assert paths(catalog) == {"b"}
    assert catalog.metadata_location(NAME) == before


def test_a_rewrite_beside_newer_deletes_is_a_conflict(catalog: MemoryCatalog) -> None:
    base = catalog.append(NAME, [file("a"), file("b")])
    newer = catalog.overwrite(NAME, add=[file("d", FileContent.POSITION_DELETES)], remove=[])
    with pytest.raises(Conflict):
        catalog.commit_rewrite(NAME, base_snapshot_id=base.snapshot_id, remove=["a"], add=[file("a2")])
    catalog.commit_rewrite(NAME, base_snapshot_id=newer.snapshot_id, remove=["a"], add=[file("a2")])
    assert paths(catalog) == {"a2", "b", "d"}


def test_vectors_go_with_their_files_and_other_deletes_stay(catalog: MemoryCatalog) -> None:
    position, puffin = FileContent.POSITION_DELETES, FileFormat.PUFFIN
    vectors = [MemoryFile(f"v-{of}", ALL, 1, 1, puffin, position, referenced_data_file=of) for of in ("a", "b")]
    catalog.append(NAME, [file("a"), file("b"), file("c")])
    base = catalog.overwrite(NAME, add=[*vectors, file("d", position)], remove=[])
    catalog.commit_rewrite(NAME, base_snapshot_id=base.snapshot_id, remove=["a"], add=[file("a2")])
    assert paths(catalog) == {"a2", "b", "c", "v-b", "d"}
    catalog.delete(NAME, ["b"])
    assert paths(catalog) == {"a2", "c", "d"}


def test_row_ids_come_with_the_first_commit_of_version_3(catalog: MemoryCatalog) -> None:
    def row_ids() -> dict[str, int | None]:
        metadata = catalog.load(NAME)
        assert metadata.current_snapshot is not None
        keys = catalog.manifests(metadata, metadata.current_snapshot)
        files = catalog.data_files(metadata, metadata.current_snapshot, keys, frozenset({ALL}))
        return {file.path: file.first_row_id for file in files}

    catalog.append(NAME, [file("a"), file("b")])
    catalog.upgrade(NAME, 3)
    assert row_ids() == {"a": None, "b": None}
    base = catalog.append(NAME, [file("c")])
    before = row_ids()
    assert sorted(before.values(), key=str) == [0, 10, 20]
    catalog.commit_rewrite(NAME, base_snapshot_id=base.snapshot_id, remove=["a"], add=[file("a2")])
    assert row_ids() == {"a2": 30, "b": before["b"], "c": before["c"]}


def test_a_rewrite_from_an_expired_base_is_a_conflict(catalog: MemoryCatalog) -> None:
    base = catalog.append(NAME, [file("a")])
    catalog.append(NAME, [file("b")])
    catalog.expire(NAME, [base.snapshot_id])
    with pytest.raises(Conflict):
        catalog.commit_rewrite(NAME, base_snapshot_id=base.snapshot_id, remove=["a"], add=[file("a2")])


def test_what_a_ref_is_at_does_not_expire(catalog: MemoryCatalog) -> None:
    snapshot = catalog.append(NAME, [file("a")])
    with pytest.raises(Rejected):
        catalog.expire(NAME, [snapshot.snapshot_id])


def test_the_manifests_of_an_expired_snapshot_are_unreadable(catalog: MemoryCatalog) -> None:
    old = catalog.append(NAME, [file("a")])
    metadata = catalog.load(NAME)
    catalog.append(NAME, [file("b")])
    catalog.expire(NAME, [old.snapshot_id])
    with pytest.raises(Unreadable):
        catalog.manifests(metadata, old)


def test_branches_are_apart_until_main_is_moved(catalog: MemoryCatalog) -> None:
    first = catalog.append(NAME, [file("a")])
    catalog.set_ref(NAME, "side", first.snapshot_id)
    side = catalog.append(NAME, [file("b")], branch="side")
    assert paths(catalog) == {"a"}
    assert {f.path for f in catalog.live_files(NAME, branch="side")} == {"a", "b"}
    catalog.set_ref(NAME, MAIN_BRANCH, side.snapshot_id)
    assert paths(catalog) == {"a", "b"}
    with pytest.raises(Rejected):
        catalog.append(NAME, [file("c")], branch="nowhere")
    with pytest.raises(Rejected):
        catalog.set_ref(NAME, "side", 999)


def test_names_are_taken_once(catalog: MemoryCatalog) -> None:
    with pytest.raises(Rejected):
        catalog.create(NAME)
    other = TableName("lake", ("db",), "other")
    catalog.create(other)
    with pytest.raises(Rejected):
        catalog.rename(other, NAME)


def test_properties_and_the_first_file_are_told(catalog: MemoryCatalog) -> None:
    catalog.set_properties(NAME, {"a": "1", "b": "1"})
    catalog.set_properties(NAME, {"b": "2"})
    snapshot = catalog.append(NAME, [file("a")], first_written_at=5)
    metadata = catalog.load(NAME)
    assert metadata.properties == {"a": "1", "b": "2"}
    assert catalog.first_written_at(metadata, snapshot) == 5
    assert catalog.first_written_at(metadata, catalog.append(NAME, [file("b")])) is None
