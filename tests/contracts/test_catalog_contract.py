"""What every catalog must do, shown on the one in memory and on PyIceberg's over SQLite with real files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import Table

from icewright.adapters.memory.catalog import MemoryCatalog
from icewright.adapters.memory.clock import ManualClock
from icewright.adapters.memory.lake import MemoryFile
from icewright.adapters.pyiceberg.catalog import PyIcebergCatalog
from icewright.domain.errors import Conflict, NotFound, Unavailable, Unreadable
from icewright.domain.files import UNPARTITIONED, DataFile, FileFormat, Partition
from icewright.domain.inventory import PartitionStatistics
from icewright.domain.names import TableName
from icewright.domain.tables import Operation, PartitionField, RefKind, Snapshot, TableMetadata
from icewright.planning.inventory import recompute
from icewright.ports.catalog import Catalog
from tests.lakes import sqlite

EVENTS = ("db", "events")


class Lake(Protocol):
    """A catalog under test, and a writer's hand to set the stage."""

    @property
    def catalog(self) -> Catalog: ...
    def create(self, path: tuple[str, ...], *, by_city: bool = False, format_version: int = 2) -> None: ...
    def append(self, path: tuple[str, ...], cities: Sequence[str]) -> int:
        """One file for each of the different cities; as many rows as cities. The snapshot id."""

    def remove_city(self, path: tuple[str, ...], city: str) -> int:
        """Remove all files of a partition by city."""

    def stop_partitioning(self, path: tuple[str, ...]) -> None: ...
    def drop(self, path: tuple[str, ...]) -> None: ...
    def rename(self, path: tuple[str, ...], to: tuple[str, ...]) -> None: ...
    def damage(self, path: str) -> None: ...
    def go_away(self) -> None: ...


class MemoryLake:
    def __init__(self) -> None:
        self.catalog = MemoryCatalog("lake", ManualClock())
        self._numbers = count()

    def create(self, path: tuple[str, ...], *, by_city: bool = False, format_version: int = 2) -> None:
        fields = (PartitionField(2, 1000, "city", "identity"),) if by_city else ()
        self.catalog.create(named(path), partition_fields=fields, format_version=format_version)

    def append(self, path: tuple[str, ...], cities: Sequence[str]) -> int:
        metadata = self.catalog.load(named(path))
        spec = metadata.spec(metadata.default_spec_id)
        values = [UNPARTITIONED if spec.is_unpartitioned else json.dumps([c], ensure_ascii=False) for c in cities]
        files = [
            MemoryFile(f"f{next(self._numbers)}", Partition(spec.spec_id, value), 1000, values.count(value))
            for value in dict.fromkeys(values)
        ]
        return self.catalog.append(named(path), files).snapshot_id

    def remove_city(self, path: tuple[str, ...], city: str) -> int:
        paths = [f.path for f in self.catalog.live_files(named(path)) if f.partition.values == json.dumps([city])]
        return self.catalog.delete(named(path), paths).snapshot_id

    def stop_partitioning(self, path: tuple[str, ...]) -> None:
        self.catalog.set_spec(named(path), ())

    def drop(self, path: tuple[str, ...]) -> None:
        self.catalog.drop(named(path))

    def rename(self, path: tuple[str, ...], to: tuple[str, ...]) -> None:
        self.catalog.rename(named(path), named(to))

    def damage(self, path: str) -> None:
        self.catalog.damage(path)

    def go_away(self) -> None:
        self.catalog.available = False


class SqliteLake:
    def __init__(self, folder: Path) -> None:
        self._entry = sqlite.make_lake(folder)
        self.catalog = PyIcebergCatalog(self._entry)
        self._writer = sqlite.writer(self._entry)

    def _table(self, path: tuple[str, ...]) -> Table:
        return self._writer.load_table(path)

    def create(self, path: tuple[str, ...], *, by_city: bool = False, format_version: int = 2) -> None:
        spec = sqlite.BY_CITY if by_city else UNPARTITIONED_PARTITION_SPEC
        sqlite.make_table(self._entry, path, spec=spec, properties={"format-version": str(format_version)})

    def append(self, path: tuple[str, ...], cities: Sequence[str]) -> int:
        return sqlite.append(self._table(path), range(len(cities)), cities)

    def remove_city(self, path: tuple[str, ...], city: str) -> int:
        table = self._table(path)
        table.delete(f"city = '{city}'")
        return sqlite.current_snapshot_id(table)

    def stop_partitioning(self, path: tuple[str, ...]) -> None:
        with self._table(path).update_spec() as update:
            update.remove_field("city")

    def drop(self, path: tuple[str, ...]) -> None:
        self._writer.drop_table(path)

    def rename(self, path: tuple[str, ...], to: tuple[str, ...]) -> None:
        self._writer.rename_table(path, to)

    def damage(self, path: str) -> None:
        file = Path(path.removeprefix("file://"))
        file.write_bytes(file.read_bytes()[:-20])

    def go_away(self) -> None:
        sqlite.database(self._entry).unlink()


@pytest.fixture(params=["memory", "sqlite"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return MemoryLake() if request.param == "memory" else SqliteLake(tmp_path)


def named(path: tuple[str, ...]) -> TableName:
    return TableName("lake", path[:-1], path[-1])


def loaded(lake: Lake, path: tuple[str, ...] = EVENTS) -> tuple[TableMetadata, Snapshot]:
    metadata = lake.catalog.load(named(path))
    assert metadata.current_snapshot is not None
    return metadata, metadata.current_snapshot


def statistics(lake: Lake, path: tuple[str, ...] = EVENTS) -> dict[tuple[int, str], PartitionStatistics]:
    metadata, snapshot = loaded(lake, path)
    keys = lake.catalog.manifests(metadata, snapshot)
    found = recompute(metadata, lake.catalog.summarize(metadata, snapshot, keys))
    return {(s.partition.spec_id, s.partition.values): s for s in found}


def files(lake: Lake, *partitions: Partition) -> list[DataFile]:
    metadata, snapshot = loaded(lake)
    keys = lake.catalog.manifests(metadata, snapshot)
    return list(lake.catalog.data_files(metadata, snapshot, keys, frozenset(partitions)))


def test_an_empty_catalog_has_no_tables(lake: Lake) -> None:
    assert lake.catalog.name == "lake"
    assert list(lake.catalog.tables()) == []


def test_lists_tables_in_nested_namespaces(lake: Lake) -> None:
    paths = [("a", "t"), ("a", "b", "t"), ("a", "b", "c", "t"), ("a_b", "t")]
    for path in paths:
        lake.create(path)
    assert sorted(lake.catalog.tables()) == sorted(named(path) for path in paths)


@pytest.mark.parametrize("part", ["we`ird", "it's", '"', "new\nline", "🧊", "a b", "%41_", "$1;--"])
def test_names_may_hold_almost_any_character(lake: Lake, part: str) -> None:
    # Iceberg's SQL catalogs join namespaces with dots, so a dot inside a part of a namespace cannot be told from a
    # separator there, and PyIceberg strips blanks around parts. Anything else goes.
    path = (part, f"t{part}")
    lake.create(path)
    assert list(lake.catalog.tables()) == [named(path)]
    assert lake.catalog.load(named(path)).name == named(path)
    assert lake.catalog.metadata_location(named(path))


def test_a_table_name_may_hold_dots(lake: Lake) -> None:
    lake.create(("db", "v1.2"))
    assert list(lake.catalog.tables()) == [named(("db", "v1.2"))]
    assert lake.catalog.load(named(("db", "v1.2"))).current_snapshot_id is None


@pytest.mark.parametrize("name", [named(("db", "nothing")), TableName("other", ("db",), "events")])
def test_unknown_tables_are_not_found(lake: Lake, name: TableName) -> None:
    lake.create(EVENTS)
    with pytest.raises(NotFound):
        lake.catalog.load(name)
    with pytest.raises(NotFound):
        lake.catalog.metadata_location(name)


def test_a_table_without_snapshots(lake: Lake) -> None:
    lake.create(EVENTS)
    metadata = lake.catalog.load(named(EVENTS))
    assert metadata.current_snapshot is None
    assert metadata.refs == ()
    assert metadata.format_version == 2
    assert [spec.is_unpartitioned for spec in metadata.specs] == [True]
    assert [field["name"] for field in metadata.schema.fields] == ["id", "city"]


def test_the_pointer_moves_with_each_commit_and_only_then(lake: Lake) -> None:
    lake.create(EVENTS)
    before = lake.catalog.metadata_location(named(EVENTS))
    assert lake.catalog.metadata_location(named(EVENTS)) == before
    lake.append(EVENTS, ["Bonn"])
    after = lake.catalog.metadata_location(named(EVENTS))
    assert after != before
    assert lake.catalog.load(named(EVENTS)).metadata_location == after


def test_loads_what_a_commit_did(lake: Lake) -> None:
    lake.create(EVENTS)
    first = lake.append(EVENTS, ["Bonn"])
    second = lake.append(EVENTS, ["Bonn"])
    metadata, snapshot = loaded(lake)
    assert snapshot.snapshot_id == second
    assert snapshot.parent_id == first
    assert snapshot.operation is Operation.APPEND
    assert snapshot.sequence_number == 2
    assert snapshot.summary["added-data-files"] == "1"
    assert [s.snapshot_id for s in metadata.ancestors()] == [second, first]
    assert [(ref.name, ref.kind, ref.snapshot_id) for ref in metadata.refs] == [("main", RefKind.BRANCH, second)]


def test_a_dropped_and_recreated_table_has_another_id(lake: Lake) -> None:
    lake.create(EVENTS)
    before = lake.catalog.load(named(EVENTS)).table_id
    lake.drop(EVENTS)
    with pytest.raises(NotFound):
        lake.catalog.load(named(EVENTS))
    lake.create(EVENTS)
    assert lake.catalog.load(named(EVENTS)).table_id != before


def test_a_renamed_table_keeps_its_id(lake: Lake) -> None:
    lake.create(EVENTS)
    before = lake.catalog.load(named(EVENTS)).table_id
    lake.rename(EVENTS, ("db", "renamed"))
    after = lake.catalog.load(named(("db", "renamed")))
    assert after.table_id == before
    assert after.name == named(("db", "renamed"))
    assert list(lake.catalog.tables()) == [after.name]


def test_sums_up_an_unpartitioned_table(lake: Lake) -> None:
    lake.create(EVENTS)
    lake.append(EVENTS, ["Bonn"] * 3)
    lake.append(EVENTS, ["Bonn"] * 4)
    metadata, snapshot = loaded(lake)
    found = statistics(lake)
    assert list(found) == [(0, UNPARTITIONED)]
    statistic = found[0, UNPARTITIONED]
    assert statistic.path == ""
    assert (statistic.counts.data_files, statistic.counts.records) == (2, 7)
    assert statistic.counts.formats == {FileFormat.PARQUET: 2}
    assert statistic.counts.data_bytes == int(snapshot.summary["total-files-size"])
    assert statistic.written_at == metadata.snapshots[-1].committed_at


def test_sums_up_by_partition(lake: Lake) -> None:
    lake.create(EVENTS, by_city=True)
    lake.append(EVENTS, ["Bonn", "Köln"])
    lake.append(EVENTS, ["Bonn", "Bonn"])
    found = statistics(lake)
    assert list(found) == [(0, '["Bonn"]'), (0, '["Köln"]')]
    assert [s.path for s in found.values()] == ["city=Bonn", "city=K%C3%B6ln"]
    assert [(s.counts.data_files, s.counts.records) for s in found.values()] == [(2, 3), (1, 1)]
    metadata, _ = loaded(lake)
    assert [s.written_at for s in found.values()] == [s.committed_at for s in reversed(metadata.snapshots)]


def test_counts_what_a_commit_removed(lake: Lake) -> None:
    lake.create(EVENTS, by_city=True)
    lake.append(EVENTS, ["Bonn", "Köln"])
    snapshot_id = lake.remove_city(EVENTS, "Bonn")
    metadata, snapshot = loaded(lake)
    assert list(statistics(lake)) == [(0, '["Köln"]')]
    keys = [key for key in lake.catalog.manifests(metadata, snapshot) if key.added_snapshot_id == snapshot_id]
    removed = [
        (partition.values, share.removed_files)
        for summary in lake.catalog.summarize(metadata, snapshot, keys)
        for partition, share in summary.partitions.items()
        if share.removed_files
    ]
    assert removed == [('["Bonn"]', 1)]


def test_files_stay_in_the_spec_they_were_written_under(lake: Lake) -> None:
    lake.create(EVENTS, by_city=True)
    lake.append(EVENTS, ["Bonn"])
    lake.stop_partitioning(EVENTS)
    lake.append(EVENTS, ["Bonn"])
    metadata, _ = loaded(lake)
    assert metadata.default_spec_id == 1
    assert set(statistics(lake)) == {(0, '["Bonn"]'), (1, UNPARTITIONED)}


def test_the_data_files_of_some_partitions(lake: Lake) -> None:
    lake.create(EVENTS, by_city=True)
    first = lake.append(EVENTS, ["Bonn", "Köln"])
    second = lake.append(EVENTS, ["Bonn", "Bonn"])
    bonn = Partition(0, '["Bonn"]')
    found = files(lake, bonn)
    assert {(f.snapshot_id, f.data_sequence_number, f.record_count) for f in found} == {(first, 1, 1), (second, 2, 2)}
    assert {f.partition for f in found} == {bonn}
    assert all(f.file_format is FileFormat.PARQUET and f.size_bytes > 0 and f.sort_key is None for f in found)
    lake.remove_city(EVENTS, "Bonn")
    assert files(lake, bonn) == []
    assert len(files(lake, bonn, Partition(0, '["Köln"]'))) == 1


def test_v1_tables_tell_the_last_write_by_snapshot(lake: Lake) -> None:
    lake.create(EVENTS, format_version=1)
    first = lake.append(EVENTS, ["Bonn"])
    second = lake.append(EVENTS, ["Bonn"])
    metadata, snapshot = loaded(lake)
    assert metadata.format_version == 1
    assert [s.sequence_number for s in metadata.snapshots] == [0, 0]
    keys = lake.catalog.manifests(metadata, snapshot)
    shares = [s.partitions[Partition(0, UNPARTITIONED)] for s in lake.catalog.summarize(metadata, snapshot, keys)]
    assert {share.sequence_number_max for share in shares} == {None}
    assert frozenset().union(*(share.snapshot_ids for share in shares)) == {first, second}
    assert statistics(lake)[0, UNPARTITIONED].written_at == snapshot.committed_at
    assert {f.data_sequence_number for f in files(lake, Partition(0, UNPARTITIONED))} == {0}


def test_a_damaged_manifest_concerns_its_table_alone(lake: Lake) -> None:
    lake.create(EVENTS)
    lake.append(EVENTS, ["Bonn"])
    lake.append(EVENTS, ["Bonn"])
    lake.create(("db", "healthy"))
    lake.append(("db", "healthy"), ["Bonn"])
    metadata, snapshot = loaded(lake)
    sound, damaged = sorted(lake.catalog.manifests(metadata, snapshot))
    lake.damage(damaged.path)
    with pytest.raises(Unreadable):
        list(lake.catalog.summarize(metadata, snapshot, [damaged]))
    with pytest.raises(Unreadable):
        list(lake.catalog.data_files(metadata, snapshot, [damaged], frozenset({Partition(0, UNPARTITIONED)})))
    assert len(list(lake.catalog.summarize(metadata, snapshot, [sound]))) == 1
    assert statistics(lake, ("db", "healthy"))[0, UNPARTITIONED].counts.data_files == 1


def test_a_damaged_manifest_list_is_unreadable(lake: Lake) -> None:
    lake.create(EVENTS)
    lake.append(EVENTS, ["Bonn"])
    metadata, snapshot = loaded(lake)
    lake.damage(snapshot.manifest_list)
    with pytest.raises(Unreadable):
        lake.catalog.manifests(metadata, snapshot)


def test_damaged_metadata_is_unreadable(lake: Lake) -> None:
    lake.create(EVENTS)
    lake.create(("db", "healthy"))
    lake.damage(lake.catalog.metadata_location(named(EVENTS)))
    with pytest.raises(Unreadable):
        lake.catalog.load(named(EVENTS))
    assert lake.catalog.load(named(("db", "healthy"))).snapshots == ()


def test_a_catalog_that_is_gone_is_unavailable(lake: Lake) -> None:
    lake.create(EVENTS)
    assert list(lake.catalog.tables()) == [named(EVENTS)]
    lake.go_away()
    for ask in (
        lambda: list(lake.catalog.tables()),
        lambda: lake.catalog.load(named(EVENTS)),
        lambda: lake.catalog.metadata_location(named(EVENTS)),
    ):
        with pytest.raises(Unavailable) as caught:
            ask()
        assert not isinstance(caught.value, Unreadable)


def test_manifests_of_another_snapshot_are_a_conflict(lake: Lake) -> None:
    lake.create(EVENTS)
    lake.append(EVENTS, ["Bonn"])
    metadata, first = loaded(lake)
    lake.append(EVENTS, ["Bonn"])
    newer, second = loaded(lake)
    unseen = [
        key for key in lake.catalog.manifests(newer, second) if key not in lake.catalog.manifests(metadata, first)
    ]
    assert len(unseen) == 1
    with pytest.raises(Conflict):
        list(lake.catalog.summarize(metadata, first, unseen))
