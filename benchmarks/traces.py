"""Tables on paper: files that writers add and rewriters replace, minute by minute in virtual time, without any data.

:data:`TRAINING` are the writers by which defaults are chosen; :data:`JUDGING` were written down before the default of
today was, and nothing was chosen by them.

icewright's side is its real planning, shortlist and plan, over an observation that is moved along with the table. The
peer's is :class:`Cron`: every hour ``rewrite_data_files`` over all partitions, by the rules of Iceberg 1.12.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.core.times import Instant
from icewright.inventory import histogram
from icewright.inventory.commit_rate import commit_interval_ms
from icewright.model.actions.actions import Executor, RewriteDataFiles
from icewright.model.iceberg.files import DataFile, FileFormat, Partition
from icewright.model.iceberg.inventory import (
    Inventory,
    PartitionCounts,
    PartitionStatistics,
    SizeHistogram,
)
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import (
    TASK_ID_KEY,
    Operation,
    PartitionField,
    PartitionSpec,
    Schema,
    Snapshot,
    SortOrder,
    TableMetadata,
)
from icewright.model.plans.observation import Observation, Removals
from icewright.model.policy.policy import Policy
from icewright.policy.effective import effective_policy

MB: Final = 1_000_000
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
START_AT: Final[Instant] = 1_700_006_400_000
"""A midnight."""

_SNAPSHOTS_KEPT: Final = 40
_CORES: Final = 2
_RETRY_MS: Final = 1_000
_BY_DAY: Final = PartitionSpec(0, (PartitionField(1, 1000, "day", "identity"),))
_FIELDS: Final = ({"id": 1, "name": "day", "type": "int", "required": False},)


@dataclass(frozen=True, slots=True)
class Costs:
    """What a rewrite takes, in CPU seconds: each one, each file that it reads, each byte."""

    each_s: float
    file_s: float
    byte_s: float

    def of(self, files: int, size_bytes: int) -> float:
        """CPU seconds of one rewrite."""
        return self.each_s + files * self.file_s + size_bytes * self.byte_s


@dataclass(frozen=True, slots=True)
class OurCosts:
    """What icewright's rewrites take, by the executor of their groups; and a look at the table, in CPU seconds."""

    merge: Costs
    stitch: Costs
    look_s: float

    def of(self, action: RewriteDataFiles) -> float:
        """CPU seconds of one rewrite. Raises ``KeyError`` for an executor that tables without a layout do not need."""
        costs = {Executor.MERGE: self.merge, Executor.STITCH: self.stitch}
        groups = [(costs[group.executor], group) for group in action.groups]
        each_s = max(cost.each_s for cost, _ in groups)
        return each_s + sum(cost.of(len(group.files), group.size_bytes) - cost.each_s for cost, group in groups)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a writer: the sizes of the files that it adds, and the partition of each.

    Without ``partitions``, all of them go to that of the day.
    """

    at: Instant
    sizes: tuple[int, ...]
    partitions: tuple[int, ...] = ()

    def by_partition(self) -> Mapping[Partition, tuple[int, ...]]:
        """The sizes in each partition."""
        day = (self.at - START_AT) // DAY_MS
        sizes: dict[int, list[int]] = {}
        for value, size_bytes in zip(self.partitions or (day,) * len(self.sizes), self.sizes, strict=True):
            sizes.setdefault(value, []).append(size_bytes)
        return {Partition(0, f"[{value}]"): tuple(its) for value, its in sizes.items()}


Writer: TypeAlias = Callable[[random.Random, int], Iterator[Commit]]
"""The commits of so many hours."""


def steady(chance: random.Random, hours: int) -> Iterator[Commit]:
    """Eight files of about 4 MB a minute."""
    for minute in range(hours * 60):
        sizes = tuple(int(chance.uniform(2.5, 5.5) * MB) for _ in range(8))
        yield Commit(START_AT + minute * MINUTE_MS + chance.randrange(MINUTE_MS), sizes)


def bursty(chance: random.Random, hours: int) -> Iterator[Commit]:
    """A batch of 200 to 600 files of about 2 MB in ten minutes, every two to six hours."""
    at = START_AT + chance.randrange(HOUR_MS)
    while at < START_AT + hours * HOUR_MS:
        files = chance.randint(200, 600)
        for part in range(10):
            yield Commit(at + part * MINUTE_MS, tuple(int(chance.uniform(0.5, 3.5) * MB) for _ in range(files // 10)))
        at += chance.randrange(2 * HOUR_MS, 6 * HOUR_MS)


def trickle(chance: random.Random, hours: int) -> Iterator[Commit]:
    """One file of about 0.5 MB a minute."""
    for minute in range(hours * 60):
        at = START_AT + minute * MINUTE_MS + chance.randrange(MINUTE_MS)
        yield Commit(at, (int(chance.uniform(0.3, 0.7) * MB),))


def diurnal(chance: random.Random, hours: int) -> Iterator[Commit]:
    """A checkpoint of eight files every five minutes; their mean size follows the day, from 0.3 to 6 MB."""
    for number in range(hours * 12):
        at = START_AT + number * 5 * MINUTE_MS + chance.randrange(MINUTE_MS)
        mean = 3.15 - 2.85 * math.cos(2 * math.pi * (at - START_AT) / DAY_MS)
        yield Commit(at, tuple(int(chance.uniform(0.5, 1.5) * mean * MB) for _ in range(8)))


def late(chance: random.Random, hours: int) -> Iterator[Commit]:
    """Six files of 0.2 to 2 MB every two minutes; one in seven is of one of the six days before."""
    for number in range(hours * 30):
        at = START_AT + number * 2 * MINUTE_MS + chance.randrange(MINUTE_MS)
        day = (at - START_AT) // DAY_MS
        partitions = tuple(day if chance.random() < 6 / 7 else day - chance.randint(1, 6) for _ in range(6))
        yield Commit(at, tuple(int(chance.uniform(0.2, 2) * MB) for _ in partitions), partitions)


def regions(chance: random.Random, hours: int) -> Iterator[Commit]:
    """Each minute a file for six of twelve regions at most, some much more often; log-normal, mostly about 0.3 MB."""
    weights = [1 / (number + 1) for number in range(12)]
    for minute in range(hours * 60):
        partitions = tuple(sorted(set(chance.choices(range(12), weights, k=6))))
        sizes = tuple(int(chance.lognormvariate(-1.2, 0.8) * MB) + 1 for _ in partitions)
        yield Commit(START_AT + minute * MINUTE_MS + chance.randrange(MINUTE_MS), sizes, partitions)


def hourly(chance: random.Random, hours: int) -> Iterator[Commit]:
    """A job that writes 40 to 80 files each hour, some minutes after it; log-normal, mostly about 3 MB."""
    for hour in range(hours):
        at = START_AT + hour * HOUR_MS + chance.randrange(MINUTE_MS, 15 * MINUTE_MS)
        yield Commit(at, tuple(int(chance.lognormvariate(1.1, 0.8) * MB) + 1 for _ in range(chance.randint(40, 80))))


def pauses(chance: random.Random, hours: int) -> Iterator[Commit]:
    """Four files of about 1.5 MB a minute for half an hour to three hours, then nothing for one to eight."""
    at = START_AT + chance.randrange(HOUR_MS)
    while at < START_AT + hours * HOUR_MS:
        end = min(at + chance.randint(30, 180) * MINUTE_MS, START_AT + hours * HOUR_MS)
        while at < end:
            yield Commit(at, tuple(int(chance.uniform(0.5, 2.5) * MB) for _ in range(4)))
            at += chance.randrange(MINUTE_MS // 2, 3 * MINUTE_MS // 2)
        at += chance.randrange(HOUR_MS, 8 * HOUR_MS)


TRAINING: Final[Mapping[str, Writer]] = {"steady": steady, "bursty": bursty, "trickle": trickle}
"""Defaults of the policy are chosen by these."""

JUDGING: Final[Mapping[str, Writer]] = {
    "diurnal": diurnal,
    "late": late,
    "regions": regions,
    "hourly": hourly,
    "pauses": pauses,
}
"""The policy is judged by these alone."""


@dataclass(slots=True)
class Outcome:
    """What became of a trace."""

    cpu_s: float = 0.0
    written_bytes: int = 0
    rewritten_bytes: int = 0
    rewrites: int = 0
    file_ms: int = 0
    """Live files, each for as long as it lived."""
    span_ms: int = 0

    @property
    def write_amplification(self) -> float:
        """Bytes that rewrites wrote for each byte that writers did."""
        return self.rewritten_bytes / self.written_bytes

    @property
    def mean_files(self) -> float:
        """Live data files, on average over time."""
        return self.file_ms / self.span_ms


@dataclass(slots=True)
class PaperTable:
    """A table by day, its files, and their sums as the inventory has them."""

    outcome: Outcome = field(default_factory=Outcome)
    files: dict[Partition, dict[str, DataFile]] = field(default_factory=dict)
    sizes: dict[Partition, SizeHistogram] = field(default_factory=dict)
    written_at: dict[Partition, Instant] = field(default_factory=dict)
    rewritten_at: dict[Partition, Instant] = field(default_factory=dict)
    snapshots: list[Snapshot] = field(default_factory=list)
    number: int = 0
    live: int = 0
    now: Instant = START_AT

    def pass_time(self, at: Instant) -> None:
        """Nothing happens until then."""
        self.outcome.file_ms += self.live * (at - self.now)
        self.now = at
        self.outcome.span_ms = at - START_AT

    def append(self, commit: Commit) -> None:
        """A writer commits."""
        added = {"added-data-files": str(len(commit.sizes)), "added-files-size": str(sum(commit.sizes))}
        self._snapshot(Operation.APPEND, added)
        for partition, sizes in commit.by_partition().items():
            self._add(partition, sizes)
            self.written_at[partition] = commit.at
        self.outcome.written_bytes += sum(commit.sizes)

    def replace(self, partition: Partition, paths: Sequence[str], sizes: Sequence[int]) -> None:
        """A rewrite of ours has merged files of a partition, in the latest snapshot."""
        for path in paths:
            file = self.files[partition].pop(path)
            one = SizeHistogram({histogram.bucket(file.size_bytes): (1, file.size_bytes)})
            self.sizes[partition] = histogram.subtract(self.sizes[partition], one)
        self.live -= len(paths)
        self._add(partition, sizes)
        self.rewritten_at[partition] = self.now
        self.outcome.rewritten_bytes += sum(sizes)

    def rewrite_snapshot(self) -> None:
        """A rewrite of ours commits."""
        self._snapshot(Operation.REPLACE, {TASK_ID_KEY: f"t{self.number}"})

    def observation(self) -> Observation:
        """The table as icewright sees it."""
        metadata = self._metadata()
        partitions = tuple(self._statistics(partition) for partition in sorted(self.files))
        inventory = Inventory(metadata.current_snapshot_id, (), partitions)
        interval_ms = commit_interval_ms(metadata)
        rewritten_at = dict(self.rewritten_at)
        return Observation(metadata, self.now, inventory, Removals(), interval_ms, rewritten_at=rewritten_at)

    def _snapshot(self, operation: Operation, summary: Mapping[str, str]) -> None:
        self.number += 1
        parent = self.number - 1 or None
        made = Snapshot(self.number, parent, self.number, self.now, operation, "", 0, summary)
        self.snapshots = [*self.snapshots[1 - _SNAPSHOTS_KEPT :], made]

    def _add(self, partition: Partition, sizes: Sequence[int]) -> None:
        for index, size_bytes in enumerate(sizes):
            path = f"{partition.values}/{self.number:06d}-{partition.values}-{index:04d}-{size_bytes}.parquet"
            file = DataFile(path, FileFormat.PARQUET, partition, size_bytes, 1, self.number, self.number)
            self.files.setdefault(partition, {})[path] = file
            one = SizeHistogram({histogram.bucket(size_bytes): (1, size_bytes)})
            self.sizes[partition] = histogram.add(self.sizes.get(partition, SizeHistogram()), one)
        self.live += len(sizes)

    def _statistics(self, partition: Partition) -> PartitionStatistics:
        files, sizes = self.files[partition], self.sizes[partition]
        size_bytes = sum(size for _, size in sizes.buckets.values())
        formats = {FileFormat.PARQUET: len(files)}
        counts = PartitionCounts(len(files), size_bytes, len(files), sizes, formats)
        return PartitionStatistics(partition, f"day={partition.values[1:-1]}", counts, self.written_at[partition])

    def _metadata(self) -> TableMetadata:
        return TableMetadata(
            table_id=TableId("paper", "table"),
            name=TableName("paper", ("bench",), "table"),
            metadata_location="file:/paper/metadata/v.json",
            location="file:/paper",
            format_version=2,
            updated_at=self.now,
            current_snapshot_id=self.number or None,
            snapshots=tuple(self.snapshots),
            refs=(),
            schemas=(Schema(0, _FIELDS),),
            current_schema_id=0,
            specs=(_BY_DAY,),
            default_spec_id=0,
            sort_order=SortOrder(0, ()),
            properties={},
        )


def paper_policy() -> Policy:
    """The policy of a table whose owner has said nothing."""
    return effective_policy(PaperTable().observation().metadata, ())


def replay(commits: Sequence[Commit], hours: int, policy: Policy, costs: OurCosts) -> Outcome:
    """The trace with icewright: a look after each commit and whenever the plan said, one rewrite at a time.

    A rewrite takes its CPU seconds spread over two cores, then commits; what it was planned for is what it replaces,
    since appends never conflict. Each look costs, whatever comes of it.
    """
    table, end_at = PaperTable(), START_AT + hours * HOUR_MS
    coming, look_at, running = list(reversed(commits)), [end_at], _Running()
    while True:
        at = min(coming[-1].at if coming else end_at, running.done_at or end_at, *look_at)
        if at >= end_at:
            table.pass_time(end_at)
            return table.outcome
        table.pass_time(at)
        if running.done_at == at:
            running.finish(table)
        elif coming and coming[-1].at == at:
            table.append(coming.pop())
        look_at = [later for later in look_at if later > at]
        table.outcome.cpu_s += costs.look_s
        again_at = None if running.done_at is not None else running.start(table, policy, costs)
        if again_at is not None:
            look_at.append(max(again_at, at + _RETRY_MS))


@dataclass(slots=True)
class _Running:
    """The one rewrite that may run."""

    done_at: Instant | None = None
    groups: list[tuple[Partition, list[str], int]] = field(default_factory=list)

    def start(self, table: PaperTable, policy: Policy, costs: OurCosts) -> Instant | None:
        """Plan, and start what the plan says; gives when to look again where it says nothing."""
        observation = table.observation()
        verdicts = shortlist(observation, policy, table.now)
        files = (file for members in table.files.values() for file in members.values())
        plan = plan_table(observation, policy, verdicts, files, plan_id="p", now=table.now)
        for action in plan.rewrites:
            self.groups = [
                (group.partition, [file.path for file in group.files], group.size_bytes) for group in action.groups
            ]
            cpu_s = costs.of(action)
            table.outcome.cpu_s += cpu_s
            table.outcome.rewrites += 1
            self.done_at = table.now + max(1, int(1000 * cpu_s / _CORES))
        return plan.look_again_at if plan.is_empty else None

    def finish(self, table: PaperTable) -> None:
        """The rewrite commits."""
        table.rewrite_snapshot()
        for partition, paths, size_bytes in self.groups:
            table.replace(partition, paths, [size_bytes])
        self.done_at, self.groups = None, []


@dataclass(frozen=True, slots=True)
class Cron:
    """Iceberg's ``rewrite_data_files`` by bin-packing, from ``SizeBasedFileRewritePlanner`` of 1.12, with its defaults.

    Files below 75 % or above 180 % of the target are selected. Those of a partition are one group (of at most 100 GB),
    rewritten when it has ``min_input_files`` files, or two and more than a target, or more than the largest file.
    """

    target_bytes: int
    min_input_files: int = 5
    least_ratio: float = 0.75
    most_ratio: float = 1.8

    def rewrites(self, sizes: Mapping[str, int]) -> tuple[list[str], list[int]]:
        """What is rewritten of a partition's files, and the sizes of what comes of it."""
        least, most = self.target_bytes * self.least_ratio, self.target_bytes * self.most_ratio
        selected = [path for path, size_bytes in sizes.items() if not least <= size_bytes <= most]
        size_bytes = sum(sizes[path] for path in selected)
        several = len(selected) > 1
        enough = several and (len(selected) >= self.min_input_files or size_bytes > self.target_bytes)
        return (selected, self.outputs(size_bytes)) if enough or size_bytes > most else ([], [])

    def outputs(self, size_bytes: int) -> list[int]:
        """The files that a group of so many bytes becomes: cut by the split size that the planner works out."""
        target = self.target_bytes
        if size_bytes <= target:
            return [size_bytes]
        largest = target + (target * self.most_ratio - target) / 2
        whole, rest = divmod(size_bytes, target)
        spread = rest <= target * self.least_ratio and size_bytes / whole < min(1.1 * target, largest)
        number = whole if spread or not rest else whole + 1
        split = int(min(max(size_bytes / number + 5 * 1024, target), largest))
        return [min(split, size_bytes - at) for at in range(0, size_bytes, split)]


def replay_cron(commits: Sequence[Commit], hours: int, cron: Cron, costs: Costs) -> Outcome:
    """The trace with a cron job at each full hour. A run that finds nothing to do costs nothing here."""
    table, end_at = PaperTable(), START_AT + hours * HOUR_MS
    coming = list(reversed(commits))
    for due_at in range(START_AT + HOUR_MS, end_at + 1, HOUR_MS):
        while coming and coming[-1].at < due_at:
            table.pass_time(coming[-1].at)
            table.append(coming.pop())
        table.pass_time(due_at)
        files = total_bytes = 0
        table.rewrite_snapshot()
        for partition, members in table.files.items():
            paths, outputs = cron.rewrites({path: file.size_bytes for path, file in members.items()})
            files, total_bytes = files + len(paths), total_bytes + sum(outputs)
            if paths:
                table.replace(partition, paths, outputs)
        if files:
            table.outcome.cpu_s += costs.of(files, total_bytes)
            table.outcome.rewrites += 1
    return table.outcome
