"""What every catalog must do, shown on the one in memory and on real ones with real files: SQL, REST, Hive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from icewright.catalogs.pointers import rest_pointers
from icewright.core.errors import Conflict, NotFound, Unavailable, Unreadable
from icewright.inventory.arithmetic import recompute
from icewright.model.iceberg.files import UNPARTITIONED, DataFile, FileFormat, Partition
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Operation, RefKind, Snapshot, TableMetadata
from tests.cases import for_each
from tests.contracts.lakes import Lake, MemoryLake, PyIcebergLake, hive_lake, named, postgresql_lake, rest_lake
from tests.lakes import sqlite
from tests.narrowing import of_type

EVENTS = ("db", "events")


KINDS = ("memory", "sqlite", "postgresql", "rest", "hive")


def make_lake(kind: str, request: pytest.FixtureRequest, folder: Path) -> Lake:
    match kind:
        case "memory":
            return MemoryLake()
        case "sqlite":
            return PyIcebergLake(sqlite.make_lake(folder))
        case "postgresql":
            return postgresql_lake(request.getfixturevalue("postgres"), folder)
        case "rest":
            # The server tries for a minute to read damaged metadata; nobody waits for that here.
            request.getfixturevalue("monkeypatch").setattr(rest_pointers, "ANSWER_TIMEOUT_MS", 2_000)
            return rest_lake(request.getfixturevalue("rest_catalog"))
        case _:
            return hive_lake(request.getfixturevalue("metastore"), folder)


_BEGUN: dict[tuple[str, Callable[[Lake], None]], str] = {}
"""Where the metadata lies of what tests begin with, by the kind of catalog and by what has made it."""


def lake_begun(kind: str, request: pytest.FixtureRequest, begin: Callable[[Lake], None]) -> Lake:
    """A lake with :data:`EVENTS` as ``begin`` makes it: once of a kind, and each test has it registered.

    A commit writes metadata of a new name, so that tests leave each other's alone.
    """
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    if (kind, begin) not in _BEGUN:
        made = make_lake(kind, request, factory.mktemp("begun"))
        begin(made)
        if not isinstance(made, PyIcebergLake):
            return made
        _BEGUN[kind, begin] = made.catalog.load(named(EVENTS)).metadata_location
    lake = make_lake(kind, request, factory.mktemp("lake"))
    of_type(PyIcebergLake, lake).register(EVENTS, _BEGUN[kind, begin])
    return lake


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return make_lake(request.param, request, tmp_path)


@pytest.fixture(params=[kind for kind in KINDS if kind != "hive"])
def wide_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A catalog with namespaces below namespaces, and nearly any name: Hive's have one level and plain words."""
    return make_lake(request.param, request, tmp_path)


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


def test_lists_tables_in_nested_namespaces(wide_lake: Lake) -> None:
    paths = [("a", "t"), ("a", "b", "t"), ("a", "b", "c", "t"), ("a_b", "t")]
    for path in paths:
        wide_lake.create(path)
    assert sorted(wide_lake.catalog.tables()) == sorted(named(path) for path in paths)


def test_all_pointers_are_told_at_once(lake: Lake) -> None:
    for name in ("one", "two"):
        lake.create(("db", name))
    pointers = lake.catalog.pointers().tables
    assert pointers == {name: lake.catalog.metadata_location(name) for name in lake.catalog.tables()}
    assert len(pointers) == 2


@pytest.mark.parametrize("part", ["we`ird", "it's", '"', "🧊", "a b", "$1;--"])
def test_names_may_hold_almost_any_character(wide_lake: Lake, part: str) -> None:
    # Iceberg's SQL catalogs join namespaces with dots, so a dot inside a part of a namespace cannot be told from a
    # separator there, and PyIceberg strips blanks around parts. Anything else goes.
    path = (part, f"t{part}")
    wide_lake.create(path)
    assert list(wide_lake.catalog.tables()) == [named(path)]
    assert wide_lake.catalog.load(named(path)).name == named(path)
    assert wide_lake.catalog.metadata_location(named(path))


@pytest.mark.parametrize("wide_lake", ["memory", "sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("part", ["new\nline", "%41_", "a/b"])
def test_names_that_no_address_can_hold_are_for_other_catalogs(wide_lake: Lake, part: str) -> None:
    test_names_may_hold_almost_any_character(wide_lake, part)


def test_any_name_may_be_asked_for(lake: Lake) -> None:
    lake.create(EVENTS)

    def check(part: str) -> None:
        for name in (named((part, "events")), named(("db", part))):
            with pytest.raises((NotFound, Unreadable)):
                lake.catalog.load(name)

    for_each(["new\nline", "%41_", "..", ".", "x" * 10_000, "?", "#", "%2e%2e"], check)
    assert list(lake.catalog.tables()) == [named(EVENTS)]


def test_a_table_name_may_hold_dots(wide_lake: Lake) -> None:
    wide_lake.create(("db", "v1.2"))
    assert list(wide_lake.catalog.tables()) == [named(("db", "v1.2"))]
    assert wide_lake.catalog.load(named(("db", "v1.2"))).current_snapshot_id is None


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


def test_the_table_as_it_was_before(lake: Lake) -> None:
    lake.create(EVENTS)
    lake.append(EVENTS, ["Bonn"])
    before = lake.catalog.load(named(EVENTS))
    lake.append(EVENTS, ["Kyoto"])
    now = lake.catalog.load(named(EVENTS))
    assert now.metadata_log[-1].location == before.metadata_location
    assert lake.catalog.earlier(now, before.metadata_location) == before
    with pytest.raises(Unreadable):
        lake.catalog.earlier(now, f"{before.metadata_location}.gone")
    lake.damage(before.metadata_location)
    with pytest.raises(Unreadable):
        lake.catalog.earlier(now, before.metadata_location)


def test_l4_a_dropped_and_recreated_table_has_another_id(lake: Lake) -> None:
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


def test_tables_of_v1_tell_the_last_write_by_snapshot(lake: Lake) -> None:
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
