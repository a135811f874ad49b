"""Over random histories, moving the inventory forward gives what a full recomputation gives.

Both are also the sums of the files themselves, which the catalog in memory knows without manifests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from icewright.inventory.arithmetic import advance, affected_partitions, manifest_changes, needing_remaining, recompute
from icewright.model.iceberg.files import UNPARTITIONED, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.layouts import Run, runs_of
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import (
    LAYOUT_KEY,
    LEVEL_KEY,
    MAIN_BRANCH,
    TASK_ID_KEY,
    PartitionField,
    TableMetadata,
)
from tests.conftest import CAMPAIGN
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.lake import MemoryFile
from tests.narrowing import not_none

NAME = TableName("lake", ("db",), "events")
BY_CITY = (PartitionField(2, 1000, "city", "identity"),)
BRANCH = "side"
cities = st.sampled_from(["a", "b", "c"])
sizes = st.integers(0, 3000)
chance = st.randoms(use_true_random=False)
ORDERED = {LEVEL_KEY: "level-1", LAYOUT_KEY: "sort(1)", TASK_ID_KEY: "task-1"}
SIGNATURES = (None, ORDERED, {**ORDERED, LEVEL_KEY: "level-2"}, {**ORDERED, LAYOUT_KEY: "DROP TABLE"})
signatures = st.sampled_from(SIGNATURES)


class Inventory:
    """A minimal keeper of an inventory, as the service is: summaries by key, statistics by partition."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog
        self.summaries: dict[ManifestKey, ManifestSummary] = {}
        self.partitions: dict[Partition, PartitionStatistics] = {}
        self.runs: dict[int, Run] = {}
        """All that were ever seen, as a store remembers them."""

    def move(self, metadata: TableMetadata) -> None:
        snapshot = not_none(metadata.current_snapshot)
        added_keys, removed_keys = manifest_changes(self.summaries, self._catalog.manifests(metadata, snapshot))
        assert not self.summaries.keys() & set(added_keys)
        self.runs.update(runs_of(metadata))
        added = list(self._catalog.summarize(metadata, snapshot, added_keys, self.runs.keys()))
        removed = [self.summaries[key] for key in removed_keys]
        affected = affected_partitions((*added, *removed))
        needing = needing_remaining(metadata, added, removed)
        assert needing <= affected
        change = advance(
            metadata,
            {partition: self.partitions[partition] for partition in affected & self.partitions.keys()},
            added=added,
            removed=removed,
            remaining=[s for s in self.summaries.values() if needing & s.partitions.keys()],
        )
        for key in removed_keys:
            del self.summaries[key]
        self.summaries.update({summary.key: summary for summary in added})
        self.partitions.update({statistics.partition: statistics for statistics in change.changed})
        for partition in change.removed:
            del self.partitions[partition]


class Histories(RuleBasedStateMachine):
    """Writers do anything; after each step the inventory moves to where the table is."""

    @initialize(version=st.sampled_from([1, 2, 3]))
    def start(self, version: int) -> None:
        self.version = version
        self.clock = ManualClock(1_000)
        self.catalog = MemoryCatalog("lake", self.clock)
        self.catalog.create(NAME, partition_fields=BY_CITY, format_version=version)
        self.inventory = Inventory(self.catalog)
        self.numbers = 0
        self.expired = False
        self.signed: set[int] = set()
        self.catalog.append(NAME, [self.file("a", 100), self.file("b", 200)])

    def file(self, city: str, size_bytes: int, content: FileContent = FileContent.DATA) -> MemoryFile:
        metadata = self.catalog.load(NAME)
        spec = metadata.spec(metadata.default_spec_id)
        values = UNPARTITIONED if spec.is_unpartitioned else f'["{city}"]'
        self.numbers += 1
        vector = self.version == 3 and content is FileContent.POSITION_DELETES
        return MemoryFile(
            self.path(),
            Partition(spec.spec_id, values),
            size_bytes,
            self.numbers,
            FileFormat.PUFFIN if vector else FileFormat.PARQUET,
            content,
        )

    def path(self) -> str:
        return f"f{self.numbers}"

    def some(self, random: Random, limit: int) -> list[MemoryFile]:
        live = self.catalog.live_files(NAME)
        return random.sample(live, min(limit, len(live)))

    @rule(cities=st.lists(cities, min_size=1, max_size=3), size=sizes, merge=st.booleans(), tick=st.integers(0, 50))
    def append(self, cities: list[str], size: int, merge: bool, tick: int) -> None:  # noqa: FBT001 - a rule's argument
        self.clock.advance(tick)
        self.catalog.append(NAME, [self.file(city, size) for city in cities], merge_manifests=merge)

    @rule(random=chance, limit=st.integers(1, 4), city=cities, size=sizes)
    def overwrite(self, random: Random, limit: int, city: str, size: int) -> None:
        self.clock.advance(7)
        gone = [file.path for file in self.some(random, limit)]
        self.catalog.overwrite(NAME, add=[self.file(city, size)], remove=gone)

    @rule(random=chance, limit=st.integers(1, 4))
    def delete(self, random: Random, limit: int) -> None:
        self.clock.advance(7)
        self.catalog.delete(NAME, [file.path for file in self.some(random, limit)])

    @rule(city=cities, content=st.sampled_from([FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES]))
    @precondition(lambda self: self.version > 1)
    def delete_rows(self, city: str, content: FileContent) -> None:
        self.clock.advance(7)
        self.catalog.overwrite(NAME, add=[self.file(city, 50, content)], remove=[])

    @rule(random=chance, limit=st.integers(1, 4), summary=signatures)
    def rewrite(self, random: Random, limit: int, summary: Mapping[str, str] | None) -> None:
        self.clock.advance(7)
        base = not_none(self.catalog.load(NAME).current_snapshot_id)
        inputs = [file for file in self.some(random, limit) if file.content is FileContent.DATA]
        if inputs:
            self.numbers += 1
            one = inputs[0]
            output = MemoryFile(self.path(), one.partition, sum(f.size_bytes for f in inputs), one.record_count)
            same = [file.path for file in inputs if file.partition == one.partition]
            made = self.catalog.commit_rewrite(NAME, base_snapshot_id=base, remove=same, add=[output], summary=summary)
            if summary in SIGNATURES[1:3]:
                self.signed.add(made.snapshot_id)

    @rule()
    def rewrite_manifests(self) -> None:
        self.clock.advance(7)
        self.catalog.rewrite_manifests(NAME)

    @rule(random=chance)
    def roll_back(self, random: Random) -> None:
        snapshots = self.catalog.load(NAME).ancestors()
        chosen = random.choice(snapshots)
        self.catalog.set_ref(NAME, MAIN_BRANCH, chosen.snapshot_id)

    @rule(city=cities)
    def work_on_a_branch(self, city: str) -> None:
        self.clock.advance(7)
        metadata = self.catalog.load(NAME)
        assert metadata.current_snapshot_id is not None
        if BRANCH not in {ref.name for ref in metadata.refs}:
            self.catalog.set_ref(NAME, BRANCH, metadata.current_snapshot_id)
        self.catalog.append(NAME, [self.file(city, 100)], branch=BRANCH)

    @rule()
    def fast_forward_to_the_branch(self) -> None:
        for ref in self.catalog.load(NAME).refs:
            if ref.name == BRANCH:
                self.catalog.set_ref(NAME, MAIN_BRANCH, ref.snapshot_id)

    @rule()
    def change_the_spec(self) -> None:
        metadata = self.catalog.load(NAME)
        partitioned = not metadata.spec(metadata.default_spec_id).is_unpartitioned
        self.catalog.set_spec(NAME, () if partitioned else BY_CITY)

    @rule()
    def expire(self) -> None:
        metadata = self.catalog.load(NAME)
        kept = {ref.snapshot_id for ref in metadata.refs}
        old = [s.snapshot_id for s in metadata.snapshots[:2] if s.snapshot_id not in kept]
        self.expired = self.expired or bool(old)
        self.catalog.expire(NAME, old)

    @invariant()
    def the_inventory_is_the_sum_of_the_manifests(self) -> None:
        metadata = self.catalog.load(NAME)
        self.inventory.move(metadata)
        snapshot = not_none(metadata.current_snapshot)
        assert self.inventory.summaries.keys() == set(self.catalog.manifests(metadata, snapshot))
        full = {s.partition: s for s in recompute(metadata, self.summarized(metadata))}
        assert self.inventory.partitions.keys() == full.keys()
        for partition, statistics in full.items():
            moved = self.inventory.partitions[partition]
            assert (moved.counts, moved.path) == (statistics.counts, statistics.path)
            # What was known stays known when its snapshot expires; nothing else may differ.
            assert moved.written_at == statistics.written_at or (self.expired and statistics.written_at is None)
        self.the_sums_are_those_of_the_files(full)
        self.the_runs_are_those_of_the_files(full)

    def summarized(self, metadata: TableMetadata) -> list[ManifestSummary]:
        """All manifests of the current snapshot, read anew."""
        snapshot = not_none(metadata.current_snapshot)
        keys = self.catalog.manifests(metadata, snapshot)
        return list(self.catalog.summarize(metadata, snapshot, keys, self.inventory.runs.keys()))

    def the_runs_are_those_of_the_files(self, found: Mapping[Partition, PartitionStatistics]) -> None:
        """Each live file of a run is counted, whatever became of the run's snapshot; no other file is."""
        metadata = self.catalog.load(NAME)
        snapshot = not_none(metadata.current_snapshot)
        files: Counter[tuple[Partition, int]] = Counter()
        size_bytes: Counter[tuple[Partition, int]] = Counter()
        keys, partitions = self.catalog.manifests(metadata, snapshot), frozenset(found)
        for file in self.catalog.data_files(metadata, snapshot, keys, partitions):
            if file.snapshot_id in self.signed:
                files[file.partition, file.snapshot_id] += 1
                size_bytes[file.partition, file.snapshot_id] += file.size_bytes
        told = {
            (partition, run): (counts.files, counts.size_bytes)
            for partition, statistics in found.items()
            for run, counts in statistics.counts.runs.items()
        }
        assert told == {key: (count, size_bytes[key]) for key, count in files.items()}

    def the_sums_are_those_of_the_files(self, found: Mapping[Partition, PartitionStatistics]) -> None:
        live = self.catalog.live_files(NAME)
        assert found.keys() == {file.partition for file in live}
        for partition, statistics in found.items():
            counts = statistics.counts
            data = [f for f in live if f.partition == partition and f.content is FileContent.DATA]
            deletes = [f for f in live if f.partition == partition and f.content is not FileContent.DATA]
            assert (counts.data_files, counts.delete_files) == (len(data), len(deletes))
            assert counts.data_bytes == sum(file.size_bytes for file in data)
            assert counts.records == sum(file.record_count for file in data)


Histories.TestCase.settings = settings(max_examples=300 if CAMPAIGN else 100, stateful_step_count=25, deadline=None)
test_moving_forward_is_the_same_as_recomputing = Histories.TestCase
