"""Views say what is true of a table, in figures that add up."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from icewright.core import codec
from icewright.core.reasons import Reason
from icewright.footprint.unneeded_views import HeldView, OrphansView, UnneededView
from icewright.maintenance.explain import plan_view
from icewright.maintenance.planner import Planner
from icewright.model.actions.actions import RewriteFigures
from icewright.model.actions.orphans import SeenFiles
from icewright.model.iceberg.files import FileContent, Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TASK_ID_KEY, PartitionField, RefKind, SortField, TableMetadata
from icewright.model.policy.policy import PolicyRule
from icewright.model.work.figures import FiguresView
from icewright.observation import rewritten_partitions as rewrites
from icewright.observation.figures import figures_view, partition_view
from icewright.observation.observer import Observer
from icewright.ownership.location_views import PlaceView
from icewright.plans.action_types import Planned
from icewright.policy.schema_views import type_text
from icewright.policy.source import PolicySource
from icewright.tables import views
from icewright.tables.findings import findings, help_with, layout_findings, metadata_findings, orphan_findings
from icewright.work.store.table_store import SqlTableStore
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.ids import SequentialIds
from tests.doubles.lake import MemoryFile
from tests.lakes.stores import new_store
from tests.narrowing import not_none

MIB = 1024 * 1024
DAY_MS = 86_400_000
NAME = TableName("lake", ("db",), "events")
BONN, KYOTO = Partition(0, '["Bonn"]'), Partition(0, '["Kyoto"]')


class LocalCatalog(MemoryCatalog):
    """Tables that seem to lie on a local file system, which is what can be planned."""

    def load(self, name: TableName) -> TableMetadata:
        return replace(super().load(name), location="/warehouse/events")


NO_PLACE = PlaceView((), (), (), (), 0)


class World:
    """One table by city: ten small files in Bonn, one good file and one equality delete in Kyoto."""

    def __init__(self, properties: dict[str, str] | None = None) -> None:
        self.clock = ManualClock()
        self.catalog: MemoryCatalog = LocalCatalog("lake", self.clock)
        self.catalog.create(
            NAME,
            partition_fields=[PartitionField(2, 1000, "city", "identity")],
            sort_fields=[SortField(1, "identity", "asc", "nulls-first")],
            properties=properties,
        )
        store = SqlTableStore(new_store(), self.clock)
        self.observer = Observer({"lake": self.catalog}, store, self.clock)
        rules = [PolicyRule("lake", ("db",), {"write.target-file-size-bytes": str(100 * MIB)})]
        self.planner = Planner(self.observer, store, self.clock, SequentialIds(), PolicySource(rules))

    def fill(self) -> None:
        for number in range(10):
            self.catalog.append(NAME, [MemoryFile(f"b{number}", BONN, MIB, 10)])
            self.clock.advance(60_000)
        self.catalog.append(NAME, [MemoryFile("k", KYOTO, 120 * MIB, 1000)])
        self.clock.advance(60_000)
        deletes = MemoryFile("d", KYOTO, 100, 3, content=FileContent.EQUALITY_DELETES)
        self.catalog.overwrite(NAME, add=[deletes], remove=[])
        self.clock.advance(600_000)

    def planned(self) -> Planned:
        return self.planner.plan(NAME)

    def view(self) -> views.TableView:
        planned = self.planned()
        return views.observed_table_view(planned.observation, planned.policy, NO_PLACE)


@pytest.fixture
def world() -> World:
    world = World()
    world.fill()
    return world


def test_an_empty_table_is_well_optimized() -> None:
    empty = World()
    view = empty.view()
    assert view.current_snapshot_id is None
    assert (view.figures.data_files, view.figures.optimization_ratio) == (0, 1.0)
    assert (view.written_at, view.optimized_at, view.refs) == (None, None, ())


def test_the_table_in_figures(world: World) -> None:
    view = world.view()
    assert view.name == "lake.db.events"
    assert (view.partition_spec, view.sort_order) == ("city", "id asc nulls-first")
    assert [(column.name, column.type) for column in view.columns] == [("id", "long"), ("city", "string")]
    figures = view.figures
    assert (figures.partitions, figures.data_files, figures.records) == (2, 11, 1100)
    assert figures.size_bytes == 130 * MIB
    assert (figures.small_files, figures.small_bytes) == (10, 10 * MIB)
    assert (figures.delete_files, figures.equality_delete_files) == (1, 1)
    assert figures.formats == {"parquet": 11}
    assert figures.optimization_ratio == pytest.approx(2 / 11)
    assert view.written_at == world.clock.now() - 600_000
    settings = {setting.key: (setting.value, setting.origin) for setting in view.policy}
    assert settings["write.target-file-size-bytes"] == (str(100 * MIB), "namespace lake.db")
    assert settings["icewright.mode"] == ("observe", "default")
    assert settings["icewright.ignore-other-optimizers"] == ("false", "default")
    assert settings["icewright.write-window"] == ("", "default")


def test_partitions_add_up_to_the_table(world: World) -> None:
    planned = world.planned()
    partitions = [partition_view(s, planned.policy) for s in planned.observation.inventory.partitions]
    figures = figures_view(planned.observation.inventory.partitions, planned.policy)
    for name in ("data_files", "size_bytes", "records", "small_files", "delete_files", "deleted_records"):
        assert sum(getattr(partition, name) for partition in partitions) == getattr(figures, name)
    assert [(p.path, p.small_files, p.optimization_ratio) for p in partitions] == [
        ("city=Bonn", 10, 0.1),
        ("city=Kyoto", 0, 1.0),
    ]


def test_what_we_rewrote_is_told_from_what_was_written(world: World) -> None:
    # One manifest with files of both partitions: a rewrite of Bonn writes it anew and Kyoto's file stays in it.
    world.catalog.append(NAME, [MemoryFile("b10", BONN, MIB, 10), MemoryFile("k10", KYOTO, MIB, 10)])
    world.clock.advance(60_000)
    written_at = world.view().written_at
    base = not_none(world.catalog.load(NAME).current_snapshot_id)
    world.catalog.commit_rewrite(
        NAME,
        base_snapshot_id=base,
        remove=[f"b{number}" for number in range(11)],
        add=[MemoryFile("merged", BONN, 11 * MIB, 110)],
        summary={TASK_ID_KEY: "task-1"},
    )
    rewritten_at = world.clock.now()
    world.clock.advance(60_000)
    view = world.view()
    assert (view.written_at, view.optimized_at) == (written_at, rewritten_at)
    metadata = world.catalog.load(NAME)
    assert rewrites.optimized_at(world.catalog, metadata) == {BONN: rewritten_at}
    newest = views.snapshot_views(metadata)[0]
    assert (newest.is_current, newest.operation, newest.task_id) == (True, "replace", "task-1")


def test_a_rewrite_by_somebody_else_is_not_ours(world: World) -> None:
    base = not_none(world.catalog.load(NAME).current_snapshot_id)
    world.catalog.commit_rewrite(NAME, base_snapshot_id=base, remove=["b0"], add=[MemoryFile("m", BONN, MIB, 10)])
    assert world.view().optimized_at is None
    assert rewrites.optimized_at(world.catalog, world.catalog.load(NAME)) == {}


def test_snapshots_and_refs(world: World) -> None:
    first = views.snapshot_views(world.catalog.load(NAME))[-1]
    world.catalog.set_ref(NAME, "keep", int(first.snapshot_id), kind=RefKind.TAG)
    world.catalog.set_ref(NAME, "audit", world.catalog.load(NAME).snapshots[-1].snapshot_id)
    world.catalog.append(NAME, [MemoryFile("x", BONN, MIB, 1)], branch="audit")
    metadata = world.catalog.load(NAME)
    shown = views.snapshot_views(metadata)
    assert len(shown) == 13
    assert [s.refs for s in shown if s.refs] == [("audit",), ("main",), ("keep",)]
    assert [s.snapshot_id for s in shown if not s.is_ancestor] == [shown[0].snapshot_id]
    assert [(ref.name, ref.type) for ref in views.ref_views(metadata)] == [
        ("audit", "branch"),
        ("keep", "tag"),
        ("main", "branch"),
    ]


def test_manifests_and_files(world: World) -> None:
    planned = world.planned()
    metadata = planned.observation.metadata
    snapshot = not_none(metadata.current_snapshot)
    keys = world.catalog.manifests(metadata, snapshot)
    manifests = [views.manifest_view(summary) for summary in world.catalog.summarize(metadata, snapshot, keys)]
    assert sum(manifest.data_files for manifest in manifests) == 11
    assert sum(manifest.delete_files for manifest in manifests) == 1
    paths = {s.partition: s.path for s in planned.observation.inventory.partitions}
    files = [
        views.file_view(file, paths, planned.policy)
        for file in world.catalog.data_files(metadata, snapshot, keys, frozenset({BONN, KYOTO}))
    ]
    assert {(file.partition, file.is_small) for file in files} == {("city=Bonn", True), ("city=Kyoto", False)}


def test_a_plan_says_what_it_reads_and_the_call_it_resembles(world: World) -> None:
    view = plan_view(world.planned().plan)
    assert view.can_apply
    (action,) = view.actions
    assert isinstance(action, RewriteFigures)
    assert (action.kind, action.input_files, action.output_files, action.input_bytes) == (
        "rewrite_data_files",
        10,
        1,
        10 * MIB,
    )
    assert "`lake`.system.rewrite_data_files(table => '`db`.`events`'" in (
        view.prediction.call if view.prediction else ""
    )
    bonn = next(verdict for verdict in view.verdicts if verdict.path == "city=Bonn")
    assert (bonn.files_before, bonn.files_after, bonn.input_files, bonn.input_bytes) == (10, 1, 10, 10 * MIB)


def test_findings_name_small_files_deletes_and_bad_settings(world: World) -> None:
    planned = world.planned()
    figures = figures_view(planned.observation.inventory.partitions, planned.policy)
    found = findings(figures, planned.policy, planned.plan)
    assert [reason.code for reason in found] == [planned.plan.reason.code, "deletes"]
    world.catalog.set_properties(NAME, {"icewright.mode": "on"})
    planned = world.planned()
    first = findings(figures, planned.policy, planned.plan)[0]
    assert (first.code, "icewright.mode" in first.text) == ("policy-problem", True)


def test_a_table_that_cannot_be_rewritten_says_so_when_it_would_gain() -> None:
    world = World({"encryption.key-id": "k"})
    world.fill()
    planned = world.planned()
    figures = figures_view(planned.observation.inventory.partitions, planned.policy)
    assert [reason.code for reason in findings(figures, planned.policy, planned.plan)] == ["encryption", "deletes"]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    world = World()
    world.catalog.append(NAME, [MemoryFile("k", KYOTO, 120 * MIB, 1000)])
    planned = world.planned()
    figures = figures_view(planned.observation.inventory.partitions, planned.policy)
    assert findings(figures, planned.policy, planned.plan) == ()


class TestWhatElseIsWrong:
    """What merging does not help, each with words, figures and a command that only shows."""

    def of(self, world: World, **changes: Any) -> tuple[FiguresView, Planned]:
        planned = world.planned()
        figures = figures_view(planned.observation.inventory.partitions, planned.policy)
        return replace(figures, **changes), planned

    def test_two_thousand_partitions_of_two_files_each(self, world: World) -> None:
        figures, planned = self.of(world, partitions=2000, data_files=4000, size_bytes=2000 * MIB)
        (found,) = layout_findings(figures, planned.policy.small_file_size_bytes)
        assert found.text == "2,000 partitions of 2 files and 1.0 MiB each: a coarser partition spec"
        assert help_with(found, "lake.db.t").endswith("icewright plan lake.db.t --migrate spec")
        assert layout_findings(replace(figures, partitions=499), planned.policy.small_file_size_bytes) == ()
        assert layout_findings(replace(figures, size_bytes=10**6 * MIB), planned.policy.small_file_size_bytes) == ()

    def test_two_hundred_snapshots_and_more_metadata_than_data(self) -> None:
        world = World()
        for number in range(200):
            world.catalog.append(NAME, [MemoryFile(f"f{number}", KYOTO, 2_500, 10)])
        figures, planned = self.of(world)
        snapshots, metadata = metadata_findings(planned.observation, figures, lambda: 50_000)
        assert snapshots.text == "200 snapshots"
        assert help_with(snapshots, "lake.db.t") == "icewright expire-snapshots lake.db.t"
        assert (" of metadata for 488.3 KiB of data" in metadata.text, "200 manifests" in metadata.text) == (True, True)
        assert help_with(metadata, "lake.db.t") == "icewright expire-snapshots lake.db.t"

    def test_the_help_for_metadata_is_for_most_of_it(self) -> None:
        """Manifests that a rewrite does not make smaller, and metadata files that only snapshots or a property do."""

        def help_for(manifest_bytes: int, snapshots: int) -> str:
            counted = {"bytes": 10 * MIB, "manifest_bytes": manifest_bytes, "snapshots": snapshots}
            return help_with(Reason("much-metadata", "much", counted), "lake.db.t")

        assert help_for(6 * MIB, 200) == "icewright plan lake.db.t --action rewrite-manifests"
        assert help_for(4 * MIB, 200) == "icewright expire-snapshots lake.db.t"
        lines = help_for(4 * MIB, 60).splitlines()
        assert lines[0] == "ALTER TABLE ... SET TBLPROPERTIES ("
        assert "write.metadata.previous-versions-max" in lines[-1]

    def test_a_few_snapshots_and_little_metadata_are_well(self, world: World) -> None:
        figures, planned = self.of(world)
        assert metadata_findings(planned.observation, figures, lambda: 10_000) == ()
        assert metadata_findings(planned.observation, replace(figures, size_bytes=10**12), lambda: 10**8) == ()

    def test_orphans_are_said_where_a_pass_has_found_some(self) -> None:
        nothing = HeldView(0, 0, 0, 0, None)
        assert orphan_findings(UnneededView(None, nothing)) == ()
        moved = SeenFiles(1, 1 * MIB)
        (found,) = orphan_findings(UnneededView(OrphansView(DAY_MS, True, 3, 3 * MIB, None, moved), nothing))
        assert found.text.startswith("2 orphan files (2.0 MiB), as of 1970-01-02")
        assert help_with(found, "lake.db.t") == "icewright orphans lake.db.t"
        gone = SeenFiles(3, 3 * MIB)
        assert orphan_findings(UnneededView(OrphansView(DAY_MS, True, 3, 3 * MIB, None, gone), nothing)) == ()


def test_views_survive_the_journey_as_json(world: World) -> None:
    planned = world.planned()
    table = views.observed_table_view(planned.observation, planned.policy, NO_PLACE)
    assert codec.loads(views.TableView, codec.dumps(table)) == table
    plan = plan_view(planned.plan)
    again = json.loads(codec.dumps(plan))
    assert again["actions"][0]["kind"] == "rewrite_data_files"
    assert codec.loads(type(plan), codec.dumps(plan)) == plan


def test_nested_types_fit_on_one_line() -> None:
    nested = {
        "type": "map",
        "key": "string",
        "value": {"type": "list", "element": {"type": "struct", "fields": [{"name": "a b", "type": "int"}]}},
    }
    assert type_text(nested) == "map<string, list<struct<a b: int>>>"
    assert type_text({"type": "geometry"}) == "geometry"
