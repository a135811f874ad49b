"""What every door to all files must do, shown on the one in memory and over every kind of catalog with real files."""

from __future__ import annotations

from collections import Counter

import pytest

from icewright.catalogs.local_spool import open_disk_spool
from icewright.core.completeness import Complete, Known, Partial
from icewright.core.errors import NotFound, Unavailable, Unreadable
from icewright.inventory.reference_bits import CURRENT, reference_bits
from icewright.model.iceberg.files import UNPARTITIONED, Partition
from icewright.model.iceberg.locations import Aliases
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import FileClass, ReachableFile
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from icewright.ownership.reachable import Reachable, reachable
from tests.contracts.lakes import Lake, named
from tests.contracts.test_catalog_contract import EVENTS, KINDS, loaded, make_lake


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    found = make_lake(request.param, request, tmp_path_factory.mktemp("lake"))
    found.create(EVENTS, by_city=True)
    found.append(EVENTS, ["Bonn", "Ulm"])
    found.append(EVENTS, ["Bonn"])
    found.remove_city(EVENTS, "Ulm")
    return found


def reach(lake: Lake) -> tuple[Known[Reachable], list[ReachableFile]]:
    with reachable(
        lake.files,
        named(EVENTS),
        lambda metadata: reference_bits(metadata, (), 0),
        open_disk_spool,
        aliases=Aliases(),
        progress=lambda _step, _done, _total: None,
    ) as known:
        return known, list((known.value if isinstance(known, Complete) else known.found).files())


def data_paths(lake: Lake, metadata: TableMetadata, snapshot: Snapshot) -> set[str]:
    """As the catalog's port has them."""
    keys = lake.catalog.manifests(metadata, snapshot)
    partitions = frozenset(Partition(0, values) for values in ('["Bonn"]', '["Ulm"]', UNPARTITIONED))
    return {Aliases().canonical(file.path) for file in lake.catalog.data_files(metadata, snapshot, keys, partitions)}


def test_all_files_of_all_snapshots(lake: Lake) -> None:
    known, files = reach(lake)
    assert isinstance(known, Complete), known
    metadata, current = loaded(lake)
    of_class = Counter(file.file_class for file in files)
    assert of_class[FileClass.MANIFEST_LIST] == len(metadata.snapshots) == 3
    data = [file for file in files if file.file_class is FileClass.DATA]
    every = set().union(*(data_paths(lake, metadata, snapshot) for snapshot in metadata.snapshots))
    assert {str(file.path) for file in data} == every
    assert len(every) == 3
    assert {str(file.path) for file in data if file.kept_by & CURRENT} == data_paths(lake, metadata, current)
    committed_at = [snapshot.committed_at for snapshot in metadata.snapshots]
    assert sorted(file.added_at or 0 for file in data) == sorted(committed_at[:1] * 2 + committed_at[1:2])
    assert {file.added_at for file in files if file.file_class is not FileClass.DATA} == {None}
    keys = {key for snapshot in metadata.snapshots for key in lake.catalog.manifests(metadata, snapshot)}
    assert of_class[FileClass.MANIFEST] == len(keys)
    lengths = {file.size_bytes for file in files if file.file_class is FileClass.MANIFEST}
    assert lengths == {key.length_bytes for key in keys}
    assert all(file.size_bytes for file in files if file.file_class is not FileClass.VERSION_HINT)
    assert str(Aliases().canonical(metadata.metadata_location)) in {file.path for file in files}


def test_o13_e7_a_damaged_file_makes_it_partial(lake: Lake) -> None:
    metadata, current = loaded(lake)
    first, *_ = metadata.snapshots
    manifest = lake.catalog.manifests(metadata, first)[0].path
    everything = {file.path for file in reach(lake)[1]}
    for path in (manifest, current.manifest_list):
        lake.damage(path)
        known, files = reach(lake)
        assert isinstance(known, Partial)
        assert path in {gap.what for gap in known.gaps}
        assert {file.path for file in files} <= everything
        with pytest.raises(Unreadable):
            lake.files.manifests(metadata, current.manifest_list + "x")


def test_a_table_that_is_not_there_is_not_found(lake: Lake) -> None:
    for name in (named(("db", "nothing")), TableName("other", ("db",), "events")):
        with pytest.raises(NotFound):
            lake.files.roots(name)
    lake.drop(EVENTS)
    with pytest.raises(NotFound):
        reach(lake)


def test_a_catalog_that_is_gone_is_unavailable(lake: Lake) -> None:
    lake.go_away()
    with pytest.raises(Unavailable):
        reach(lake)
