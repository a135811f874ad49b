"""An observation is of one snapshot, moves forward from what is stored, and errs on the side of caution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import pytest

from icewright.core.errors import NotFound, Unavailable, Unreadable
from icewright.inventory.arithmetic import recompute
from icewright.model.iceberg.files import UNPARTITIONED, FileContent, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import LAYOUT_KEY, LEVEL_KEY, TASK_ID_KEY, Snapshot, TableMetadata
from icewright.model.plans.observation import Removal, Removals
from icewright.observation import inventory_steps
from icewright.observation import observer as observer_module
from icewright.observation.observer import REMOVALS_LOOKED_AT, CatalogNotConfigured, Observer
from icewright.ports.store import InventoryUpdate
from tests.builders.lakehouse import BONN, HOUR_MS, KYOTO, MINUTE_MS, NAME, Lakehouse
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.lake import MemoryFile
from tests.narrowing import not_none


class CountingCatalog(MemoryCatalog):
    """Remembers which manifests were read."""

    read: list[ManifestKey]

    def summarize(
        self,
        table: TableMetadata,
        snapshot: Snapshot,
        keys: Sequence[ManifestKey],
        runs: AbstractSet[int] = frozenset(),
    ) -> Iterator[ManifestSummary]:
        self.read.extend(keys)
        return super().summarize(table, snapshot, keys, runs)


@pytest.fixture
def house() -> Lakehouse:
    house = Lakehouse()
    house.create()
    return house


def counting(house: Lakehouse) -> tuple[CountingCatalog, Observer]:
    catalog = CountingCatalog("lake", house.clock)
    catalog.read = []
    catalog.create(NAME)
    return catalog, Observer({"lake": catalog}, house.tables, house.clock)


def test_a_table_without_snapshots(house: Lakehouse) -> None:
    observation = house.control.observer.observe(NAME)
    assert observation.inventory.snapshot_id is None
    assert observation.inventory.partitions == ()
    assert observation.commit_interval_ms is None


def test_a_commit_costs_its_own_manifests_only(house: Lakehouse) -> None:
    catalog, observer = counting(house)
    for _ in range(3):
        catalog.append(NAME, house.files(2))
    observer.observe(NAME)
    assert len(catalog.read) == 3
    catalog.read.clear()
    snapshot = catalog.append(NAME, house.files(2))
    observed = observer.observe(NAME)
    assert {key.added_snapshot_id for key in catalog.read} == {snapshot.snapshot_id}
    assert observed.inventory.partitions[0].counts.data_files == 8
    catalog.read.clear()
    observer.observe(NAME)
    assert catalog.read == []


def test_everything_in_an_observation_is_of_one_snapshot(house: Lakehouse) -> None:
    house.append(3)
    house.control.observer.observe(NAME)
    house.append(2, KYOTO)
    observed = house.control.observer.observe(NAME)
    metadata = observed.metadata
    snapshot = not_none(metadata.current_snapshot)
    assert observed.inventory.snapshot_id == metadata.current_snapshot_id
    assert set(observed.inventory.manifests) == set(house.catalog.manifests(metadata, snapshot))
    summaries = house.catalog.summarize(metadata, snapshot, observed.inventory.manifests)
    assert observed.inventory.partitions == recompute(metadata, summaries)


def ordered(house: Lakehouse, level: str = "level-1", layout: str = "sort(1)") -> Snapshot:
    """All files become one, by a commit that is signed like ours and says that it is in order."""
    live = house.catalog.live_files(NAME)
    base = not_none(house.metadata().current_snapshot_id)
    house.clock.advance(MINUTE_MS)
    return house.catalog.commit_rewrite(
        NAME,
        base_snapshot_id=base,
        remove=[file.path for file in live],
        add=house.files(1),
        summary={TASK_ID_KEY: "task", LEVEL_KEY: level, LAYOUT_KEY: layout},
    )


def live_runs(house: Lakehouse) -> dict[int, tuple[str, int]]:
    inventory = house.control.observer.observe(NAME).inventory
    counts = [counts for partition in inventory.partitions for counts in partition.counts.runs.items()]
    return {run: (inventory.runs[run].layout, of_run.files) for run, of_run in counts}


def test_runs_outlive_their_snapshots_restarts_and_rollbacks(house: Lakehouse) -> None:
    house.append(3)
    first = ordered(house)
    house.append(2)
    before = not_none(house.metadata().current_snapshot_id)
    assert live_runs(house) == {first.snapshot_id: ("sort(1)", 1)}
    house.catalog.expire(NAME, [first.snapshot_id])
    house.restart()
    house.catalog.rewrite_manifests(NAME)  # all entries are read anew, and the run's snapshot is gone
    assert live_runs(house) == {first.snapshot_id: ("sort(1)", 1)}
    second = ordered(house, "level-2", "zorder(1,2)")
    assert live_runs(house) == {second.snapshot_id: ("zorder(1,2)", 1)}
    house.catalog.set_ref(NAME, "main", before)
    assert live_runs(house) == {first.snapshot_id: ("sort(1)", 1)}


def test_a_foreign_rewrite_ends_a_run(house: Lakehouse) -> None:
    house.append(3)
    ordered(house)
    live_runs(house)
    live = [file.path for file in house.catalog.live_files(NAME)]
    house.catalog.overwrite(NAME, add=house.files(1), remove=live)
    assert live_runs(house) == {}


def test_runs_that_nothing_needs_are_forgotten_oldest_first(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory_steps, "RUNS_REMEMBERED", 1)
    house.append(3)
    snapshots = []
    for _ in range(4):
        snapshots.append(ordered(house))
        house.control.observer.observe(NAME)
    assert house.tables.runs(house.record().table_id).keys() == {s.snapshot_id for s in snapshots}
    house.catalog.expire(NAME, [s.snapshot_id for s in snapshots[:3]])
    house.append(1)
    house.control.observer.observe(NAME)
    kept = house.tables.runs(house.record().table_id).keys()
    assert kept == {s.snapshot_id for s in snapshots[2:]}


def test_a_rollback_moves_the_inventory_back(house: Lakehouse) -> None:
    first = house.append(3)
    house.append(4)
    house.control.observer.observe(NAME)
    house.catalog.set_ref(NAME, "main", first.snapshot_id)
    assert house.control.observer.observe(NAME).inventory.partitions[0].counts.data_files == 3


def test_a_stored_sum_that_is_none_is_counted_anew(house: Lakehouse) -> None:
    house.append(3)
    house.append(2, KYOTO)
    observed = house.control.observer.observe(NAME)
    bonn, kyoto = observed.inventory.partitions
    broken = replace(bonn, counts=replace(bonn.counts, data_files=1, records=1))
    stray = replace(kyoto, partition=replace(KYOTO, values='["Atlantis"]'))
    house.tables.apply_inventory(InventoryUpdate(house.record(), [], [], [broken, stray], []))
    house.catalog.delete(NAME, [file.path for file in house.catalog.live_files(NAME) if file.partition == BONN][:2])
    observed = house.control.observer.observe(NAME)
    assert [(one.partition, one.counts.data_files) for one in observed.inventory.partitions] == [(BONN, 1), (KYOTO, 2)]


def test_an_unreadable_manifest_leaves_the_store_as_it_was(house: Lakehouse) -> None:
    house.append(3)
    house.control.observer.observe(NAME)
    known, keys = house.record(), house.tables.manifest_keys(house.record().table_id)
    snapshot = house.append(1)
    came = [k for k in house.catalog.manifests(house.metadata(), snapshot) if k not in keys]
    house.catalog.damage(came[0].path)
    with pytest.raises(Unreadable):
        house.control.observer.observe(NAME)
    assert house.record() == known
    assert house.tables.manifest_keys(known.table_id) == keys


def test_a_catalog_that_is_away_changes_nothing(house: Lakehouse) -> None:
    house.control.observer.observe(NAME)
    known = house.record()
    house.catalog.available = False
    with pytest.raises(Unavailable):
        house.control.observer.observe(NAME)
    assert house.record() == known


def test_an_unknown_catalog_is_told_apart_from_an_unknown_table(house: Lakehouse) -> None:
    with pytest.raises(CatalogNotConfigured, match="no catalog 'other'") as unknown:
        house.control.observer.observe(TableName("other", ("db",), "t"))
    assert "lake" in unknown.value.hint
    with pytest.raises(NotFound) as missing:
        house.control.observer.observe(TableName("lake", ("db",), "t"))
    assert not isinstance(missing.value, CatalogNotConfigured)


def test_the_record_says_when_the_table_changed_and_when_it_was_seen(house: Lakehouse) -> None:
    house.append(1)
    house.control.observer.observe(NAME)
    first = house.record()
    house.pass_time(MINUTE_MS)
    house.control.observer.observe(NAME)
    second = house.record()
    assert second.changed_at == first.changed_at
    assert second.observed_at == first.observed_at + MINUTE_MS


def test_removals_are_told_by_partition(house: Lakehouse) -> None:
    house.append(3)
    house.append(3, KYOTO)
    house.pass_time(MINUTE_MS)
    path = next(file.path for file in house.catalog.live_files(NAME) if file.partition == KYOTO)
    removed = house.catalog.overwrite(
        NAME, add=house.files(1, KYOTO), remove=[path], first_written_at=house.clock.now() - 5 * MINUTE_MS
    )
    removals = house.control.observer.observe(NAME).removals
    assert removals.removed_at == {KYOTO: removed.committed_at}
    assert removals.everywhere_at is None
    assert removals.writer_run_ms_max == 5 * MINUTE_MS


def test_a_removal_dated_in_the_future_does_not_hide_the_one_before(house: Lakehouse) -> None:
    house.append(3)
    first, second = (file.path for file in house.catalog.live_files(NAME)[:2])
    removed = house.catalog.delete(NAME, [first])
    now = house.clock.now()
    house.pass_time(40 * 365 * 24 * HOUR_MS)
    house.catalog.delete(NAME, [second])
    house.pass_time(now - house.clock.now())
    assert house.control.observer.observe(NAME).removals.removed_at == {BONN: removed.committed_at}


def test_how_often_rows_are_removed_is_told_by_partition(house: Lakehouse) -> None:
    house.append(8)
    house.append(8, KYOTO)
    for partition, minutes in ((BONN, 9), (KYOTO, 1), (KYOTO, 2), (KYOTO, 2), (KYOTO, 30)):
        house.pass_time(minutes * MINUTE_MS)
        path = next(file.path for file in house.catalog.live_files(NAME) if file.partition == partition)
        house.catalog.delete(NAME, [path])
    removals = house.control.observer.observe(NAME).removals
    assert removals.every_ms == {BONN: 9 * MINUTE_MS, KYOTO: 2 * MINUTE_MS}


def test_delete_files_are_removals(house: Lakehouse) -> None:
    house.append(3)
    deletes = MemoryFile("d", BONN, 100, 3, content=FileContent.POSITION_DELETES)
    removed = house.catalog.overwrite(NAME, add=[deletes], remove=[])
    assert house.control.observer.observe(NAME).removals.removed_at == {BONN: removed.committed_at}


def test_equality_deletes_of_an_unpartitioned_spec_touch_the_whole_table(house: Lakehouse) -> None:
    house.append(3)
    house.catalog.set_spec(NAME, ())
    whole = Partition(1, UNPARTITIONED)
    deletes = MemoryFile("d", whole, 100, 3, content=FileContent.EQUALITY_DELETES)
    removed = house.catalog.overwrite(NAME, add=[deletes], remove=[])
    assert house.control.observer.observe(NAME).removals.everywhere_at == removed.committed_at


def test_appends_and_rewrites_are_no_removals(house: Lakehouse) -> None:
    base = house.append(3)
    paths = [file.path for file in house.catalog.live_files(NAME)]
    house.catalog.commit_rewrite(NAME, base_snapshot_id=base.snapshot_id, remove=paths, add=house.files(1))
    removals = house.control.observer.observe(NAME).removals
    assert removals.removed_at == {}
    assert removals.everywhere_at is None


def test_rewrites_of_ours_within_a_day_are_known_where_rows_were_removed(house: Lakehouse) -> None:
    def rewrite(partition: Partition, task_id: str | None) -> Snapshot:
        base = house.append(3, partition)
        paths = [file.path for file in house.catalog.live_files(NAME) if file.partition == partition]
        summary = {} if task_id is None else {TASK_ID_KEY: task_id}
        add = house.files(1, partition)
        return house.catalog.commit_rewrite(
            NAME, base_snapshot_id=base.snapshot_id, remove=paths, add=add, summary=summary
        )

    rewrite(KYOTO, "task-1")
    house.pass_time(25 * HOUR_MS)
    ours = rewrite(BONN, "task-2")
    assert house.control.observer.observe(NAME).removals == Removals()
    house.pass_time(MINUTE_MS)
    rewrite(BONN, None)
    path = next(file.path for file in house.catalog.live_files(NAME) if file.partition == BONN)
    removed = house.catalog.overwrite(NAME, add=house.files(1, BONN), remove=[path])
    removals = house.control.observer.observe(NAME).removals
    assert removals.latest == (Removal(removed.committed_at, frozenset({BONN})),)
    assert removals.rewritten_at == {BONN: ours.committed_at}
    assert removals.all_rewritten_at is None
    house.catalog.damage(ours.manifest_list)
    again = house.restart().observer.observe(NAME).removals
    assert (again.rewritten_at, again.all_rewritten_at) == ({}, ours.committed_at)


def test_with_too_many_removals_the_whole_table_counts_as_touched(house: Lakehouse) -> None:
    times = []
    for _ in range(REMOVALS_LOOKED_AT + 2):
        house.append(1)
        house.pass_time(MINUTE_MS)
        path = house.catalog.live_files(NAME)[0].path
        times.append(house.catalog.delete(NAME, [path]).committed_at)
    removals = house.control.observer.observe(NAME).removals
    assert removals.removed_at == {BONN: times[-1]}
    assert removals.everywhere_at == times[1]


def test_a_removal_that_cannot_be_read_concerns_the_whole_table(house: Lakehouse) -> None:
    house.append(3)
    path = house.catalog.live_files(NAME)[0].path
    removed = house.catalog.delete(NAME, [path])
    house.append(3)
    house.catalog.damage(removed.manifest_list)
    removals = house.control.observer.observe(NAME).removals
    assert removals.removed_at == {}
    assert removals.everywhere_at == removed.committed_at


def test_each_removal_is_read_once(house: Lakehouse) -> None:
    catalog, observer = counting(house)
    catalog.append(NAME, house.files(3))
    catalog.delete(NAME, [catalog.live_files(NAME)[0].path])
    observer.observe(NAME)
    catalog.read.clear()
    catalog.append(NAME, house.files(1))
    observer.observe(NAME)
    assert len(catalog.read) == 1


def test_what_was_asked_for_longest_ago_is_read_again_and_nothing_else(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer_module, "CHANGES_REMEMBERED", 2)
    catalog, observer = counting(house)
    names = [NAME, *(TableName("lake", ("db",), f"other_{number}") for number in range(2))]
    for name in names:
        if name != NAME:
            catalog.create(name)
        catalog.append(name, house.files(3))
        catalog.delete(name, [catalog.live_files(name)[0].path])
    first, second, third = names

    def reads(name: TableName) -> int:
        catalog.read.clear()
        observer.observe(name)
        return len(catalog.read)

    for name in (first, second, first, third):  # the third one takes the place of the second one
        observer.observe(name)
    assert (reads(first), reads(third)) == (0, 0)
    assert reads(second) > 0


def test_the_changes_of_a_thousand_tables_are_remembered() -> None:
    assert observer_module.CHANGES_REMEMBERED == 1_000 * (REMOVALS_LOOKED_AT + observer_module.REWRITES_LOOKED_AT)
