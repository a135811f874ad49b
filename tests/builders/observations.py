"""Observations for the tests of planning, built from data files, so that statistics and files always agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from icewright.core.times import Instant
from icewright.inventory import histogram
from icewright.model.iceberg.files import UNPARTITIONED, DataFile, DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import (
    Inventory,
    ManifestKey,
    PartitionCounts,
    PartitionStatistics,
    RunCounts,
    SizeHistogram,
)
from icewright.model.iceberg.layouts import runs_of
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import (
    MAIN_BRANCH,
    Json,
    Operation,
    PartitionField,
    PartitionSpec,
    Ref,
    RefKind,
    Schema,
    Snapshot,
    SortOrder,
    TableMetadata,
)
from icewright.model.plans.observation import Observation, Removals, WorkerAccess
from icewright.model.policy.policy import Policy, Trigger
from icewright.policy.effective import effective_policy

MIB = 1024 * 1024
NOW: Instant = 1_357_000_000_000
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

BY_MONTH = PartitionSpec(0, (PartitionField(1, 1000, "month", "identity"),))
NO_FIELDS = PartitionSpec(1, ())
FIELDS: tuple[Json, ...] = (
    {"id": 1, "name": "month", "type": "int", "required": False},
    {"id": 2, "name": "carrier", "type": "string", "required": False},
)


def month(number: int, spec_id: int = 0) -> Partition:
    return Partition(spec_id, f"[{number}]")


WHOLE = Partition(1, UNPARTITIONED)


def snapshot(
    number: int,
    committed_at: Instant = NOW - 10 * DAY_MS,
    operation: Operation | None = Operation.APPEND,
    summary: Mapping[str, str] | None = None,
) -> Snapshot:
    """Snapshot ``number`` on the child of the one before; sequence numbers are the same numbers."""
    parent = number - 1 if number > 1 else None
    return Snapshot(number, parent, number, committed_at, operation, f"file:/lake/t/m{number}.avro", 0, summary or {})


def table(
    snapshots: Sequence[Snapshot] = (snapshot(1),),
    properties: Mapping[str, str] | None = None,
    fields: tuple[Json, ...] = FIELDS,
    **changes: Any,
) -> TableMetadata:
    """A v2 table by month; the last of ``snapshots`` is the current one."""
    current = snapshots[-1].snapshot_id if snapshots else None
    metadata = TableMetadata(
        table_id=TableId("lake", "5f0e9b1c"),
        name=TableName("lake", ("sales",), "flights"),
        metadata_location="file:/lake/t/metadata/v1.json",
        location="file:///lake/t",
        format_version=2,
        updated_at=NOW,
        current_snapshot_id=current,
        snapshots=tuple(snapshots),
        refs=() if current is None else (Ref(MAIN_BRANCH, RefKind.BRANCH, current),),
        schemas=(Schema(0, fields),),
        current_schema_id=0,
        specs=(BY_MONTH, NO_FIELDS),
        default_spec_id=0,
        sort_order=SortOrder(0, ()),
        properties=properties or {},
    )
    return replace(metadata, **changes)


def data_file(
    partition: Partition,
    number: int,
    size_bytes: int = MIB,
    *,
    snapshot_id: int = 1,
    sort_key: tuple[Any, ...] | None = None,
    file_format: FileFormat = FileFormat.PARQUET,
    sequence_number: int | None = None,
    first_row_id: int | None = None,
    row_groups: int | None = None,
) -> DataFile:
    """File ``number`` of a partition, of one row per 100 bytes."""
    path = f"file:/lake/t/data/{partition.spec_id}-{partition.values[1:-1]}/{number:05}.parquet"
    age = snapshot_id if sequence_number is None else sequence_number
    rows = size_bytes // 100
    told = (path, file_format, partition, size_bytes, rows, snapshot_id, age, sort_key, first_row_id)
    return DataFile(*told, row_groups=row_groups)


def data_files(partition: Partition, number: int, size_bytes: int = MIB, **kinds: Any) -> list[DataFile]:
    """Equal files of a partition."""
    return [data_file(partition, index, size_bytes, **kinds) for index in range(number)]


def position_deletes(
    partition: Partition, number: int, records: int = 1, *, of: DataFile | None = None, sequence_number: int = 1
) -> DeleteFile:
    """Position deletes ``number`` of a partition, for one data file or for any."""
    path = f"file:/lake/t/data/deletes/{partition.spec_id}-{partition.values[1:-1]}-{number:05}.parquet"
    referenced = None if of is None else of.path
    kind, form = FileContent.POSITION_DELETES, FileFormat.PARQUET
    return DeleteFile(path, kind, form, partition, 100, records, 1, sequence_number, referenced)


def deletion_vector(of: DataFile, records: int, *, sequence_number: int = 1) -> DeleteFile:
    """The deletion vector of a data file."""
    kind, form = FileContent.POSITION_DELETES, FileFormat.PUFFIN
    return DeleteFile(f"{of.path}.puffin", kind, form, of.partition, 100, records, 1, sequence_number, of.path, 4, 50)


def equality_deletes(partition: Partition, number: int, *, sequence_number: int = 2) -> DeleteFile:
    """Equality deletes ``number`` of a partition; by default younger than files of snapshot 1."""
    path = f"file:/lake/t/data/equality/{partition.spec_id}-{partition.values[1:-1]}-{number:05}.parquet"
    kind, form = FileContent.EQUALITY_DELETES, FileFormat.PARQUET
    return DeleteFile(path, kind, form, partition, 100, 5, 1, sequence_number, equality_ids=(1,))


@dataclass(frozen=True)
class Deletes:
    """Delete files of a partition."""

    position: int = 0
    vectors: int = 0
    equality: int = 0


def observe(
    files: Iterable[DataFile],
    metadata: TableMetadata | None = None,
    *,
    removals: Removals | None = None,
    interval_ms: int | None = MINUTE_MS,
    deletes: Mapping[Partition, Deletes] | Iterable[DeleteFile] | None = None,
    access: WorkerAccess = WorkerAccess.PROVED,
) -> Observation:
    """The observation of a table that has exactly these files, and delete files (so many, or these)."""
    metadata = metadata or table()
    deletes = deletes if deletes is None or isinstance(deletes, Mapping) else counted(deletes)
    committed_at = {one.snapshot_id: one.committed_at for one in metadata.snapshots}
    runs = runs_of(metadata)
    by_partition: dict[Partition, list[DataFile]] = {partition: [] for partition in deletes or {}}
    for file in files:
        by_partition.setdefault(file.partition, []).append(file)
    statistics = tuple(
        PartitionStatistics(
            partition,
            "" if partition.values == UNPARTITIONED else f"month={partition.values[1:-1]}",
            _counts(members, (deletes or {}).get(partition, Deletes()), frozenset(runs)),
            max((committed_at[f.snapshot_id] for f in members if f.snapshot_id in committed_at), default=None),
        )
        for partition, members in sorted(by_partition.items())
    )
    inventory = Inventory(metadata.current_snapshot_id, (ManifestKey("m", 1, 1),), statistics, runs)
    return Observation(metadata, NOW, inventory, removals or Removals(), interval_ms, access)


def counted(deletes: Iterable[DeleteFile]) -> dict[Partition, Deletes]:
    """The delete files of each partition by kind."""
    counts: dict[Partition, Deletes] = {}
    for one in deletes:
        known = counts.get(one.partition, Deletes())
        if one.content is FileContent.EQUALITY_DELETES:
            known = replace(known, equality=known.equality + 1)
        elif one.file_format is FileFormat.PUFFIN:
            known = replace(known, vectors=known.vectors + 1)
        else:
            known = replace(known, position=known.position + 1)
        counts[one.partition] = known
    return counts


def _counts(files: Sequence[DataFile], deletes: Deletes, runs: frozenset[int]) -> PartitionCounts:
    sizes = SizeHistogram()
    formats: dict[FileFormat, int] = {}
    for file in files:
        one = SizeHistogram({histogram.bucket(file.size_bytes): (1, file.size_bytes)})
        sizes = histogram.add(sizes, one)
        formats[file.file_format] = formats.get(file.file_format, 0) + 1
    of_runs: dict[int, list[DataFile]] = {}
    for file in files:
        if file.snapshot_id in runs:
            of_runs.setdefault(file.snapshot_id, []).append(file)
    return PartitionCounts(
        runs={run: RunCounts(len(its), sum(file.size_bytes for file in its)) for run, its in of_runs.items()},
        data_files=len(files),
        data_bytes=sum(file.size_bytes for file in files),
        records=sum(file.record_count for file in files),
        sizes=sizes,
        formats=formats,
        position_delete_files=deletes.position,
        deletion_vectors=deletes.vectors,
        equality_delete_files=deletes.equality,
    )


def policy(**changes: Any) -> Policy:
    """The default policy with some of its fields changed."""
    return replace(effective_policy(table(), ()), **changes)


@dataclass(frozen=True)
class Case:
    """All that a plan is made from."""

    observation: Observation
    files: tuple[DataFile, ...]
    policy: Policy
    now: Instant = NOW
    deletes: tuple[DeleteFile, ...] = ()


# Made once: what is made while an example is drawn is looked through anew each time, a third of the CPU.
_ages = st.integers(0, 5 * DAY_MS) | st.integers(2 * HOUR_MS, 5 * DAY_MS) | st.integers(0, 3 * MINUTE_MS)
_several_ages = st.lists(_ages, min_size=1, max_size=6)
_sizes = st.integers(1, 40) | st.integers(1, 40) | st.sampled_from([50, 74, 75, 99, 100, 101, 400])
_file_counts = st.just(0) | st.integers(4, 14)
_PARTITIONS = (month(1), month(2), month(3), WHOLE)
_ages_of_one = st.dictionaries(st.sampled_from(_PARTITIONS), _ages, max_size=1)
_ages_of_some = st.dictionaries(st.sampled_from(_PARTITIONS), _ages, max_size=4)
_waits = st.sampled_from([0, MINUTE_MS, 6 * HOUR_MS])
_intervals = st.none() | st.integers(0, 5 * MINUTE_MS) | st.integers(0, 2 * HOUR_MS)
_any_or_none = st.sampled_from([True, False, None])

_PARQUET = st.just(FileFormat.PARQUET)
_ANY_FORMAT = st.sampled_from([FileFormat.PARQUET, FileFormat.AVRO, FileFormat.ORC])
_formats = st.sampled_from([_PARQUET, _PARQUET, _ANY_FORMAT])


@st.composite
def cases(draw: st.DrawFn, triggers: Sequence[Trigger] = (Trigger.LEVELS,)) -> Case:
    """Tables of a few partitions and snapshots with everything that planning looks at, in small numbers.

    Sizes are around a target of 100 bytes, so that all kinds of groups come out.
    """
    ages = sorted(draw(_several_ages), reverse=True)
    snapshots = [snapshot(number, NOW - age) for number, age in enumerate(ages, 1)]
    metadata = table(snapshots)
    files: list[DataFile] = []
    for partition in _PARTITIONS:
        has_keys = draw(_any_or_none)
        formats = draw(_formats)
        for number in range(draw(_file_counts)):
            keyed = draw(st.booleans()) if has_keys is None else has_keys
            adding = draw(st.integers(0, len(snapshots)))  # 0 has expired
            file = data_file(
                partition,
                number,
                draw(_sizes),
                snapshot_id=adding,
                sort_key=(draw(st.integers(0, 9)),) if keyed else None,
                sequence_number=min(adding, draw(st.integers(0, 6))),
                file_format=draw(formats),
            )
            files.append(replace(file, record_count=draw(st.integers(0, 9))))
    deletes = draw(delete_files(files, _PARTITIONS, len(snapshots)))
    removed = draw(_ages_of_one)
    everywhere = draw(_ages) if draw(st.integers(0, 7)) == 0 else None
    removals = Removals(
        {partition: NOW - age for partition, age in removed.items()},
        None if everywhere is None else NOW - everywhere,
        draw(_waits),
    )
    interval_ms = draw(_intervals)
    observation = observe(files, metadata, removals=removals, interval_ms=interval_ms, deletes=deletes)
    rewritten = draw(_ages_of_some)
    observation = replace(observation, rewritten_at={partition: NOW - age for partition, age in rewritten.items()})
    return Case(observation, tuple(files), draw(policies(triggers)), deletes=tuple(deletes))


@st.composite
def delete_files(
    draw: st.DrawFn, files: Sequence[DataFile], partitions: Sequence[Partition], last: int
) -> list[DeleteFile]:
    """Delete files of all kinds in about half of all tables, also some that apply to nothing any more."""
    found: list[DeleteFile] = []
    if not draw(st.booleans()):
        return found
    for partition in draw(st.lists(st.sampled_from(partitions), max_size=3, unique=True)):
        members = [file for file in files if file.partition == partition]
        number = st.integers(0, last)
        for index in range(draw(st.integers(0, 4))):
            of = draw(st.sampled_from([None, *members]))
            rows = draw(st.integers(1, 2))
            found.append(position_deletes(partition, index, rows, of=of, sequence_number=draw(number)))
        for of in draw(st.lists(st.sampled_from(members), max_size=4, unique=True)) if members else ():
            vector = deletion_vector(of, draw(st.integers(1, 2)), sequence_number=draw(number))
            found.append(vector)
        if draw(st.integers(0, 4)) == 0:
            found.append(equality_deletes(partition, 0, sequence_number=draw(number)))
    return found


_POLICIES: Mapping[str, st.SearchStrategy[Any]] = {
    "trigger_target_size_bytes": st.sampled_from([80, 200]),
    "mse_ratio": st.sampled_from([0.05, 0.2, 0.9]),
    "tiered_minor_files": st.integers(2, 12),
    "tiered_full_interval_ms": st.sampled_from([None, 0, HOUR_MS, 3 * DAY_MS]),
    "scans_per_day": st.sampled_from([0.0, 1.0, 100.0, 10_000.0]),
    "target_file_size_bytes": st.sampled_from([100, 300]),
    "min_input_files": st.integers(2, 5),
    "min_file_size_ratio": st.sampled_from([0.5, 0.75, 1.0]),
    "max_file_group_size_bytes": st.sampled_from([100, 10_000]),
    "max_file_group_files": st.integers(2, 8),
    "max_task_size_bytes": st.sampled_from([100, 500, 100_000]),
    "max_task_files": st.integers(2, 40),
    "delete_file_threshold": st.integers(1, 4),
    "delete_ratio_threshold": st.sampled_from([0.1, 0.3, 1.0]),
    "write_window_ms": st.none() | st.integers(0, 2 * DAY_MS),
    "migrate_formats": st.booleans(),
}
"""Around a target of 100 bytes."""


@st.composite
def policies(draw: st.DrawFn, triggers: Sequence[Trigger] = (Trigger.LEVELS,)) -> Policy:
    """Policies around a target of 100 bytes."""
    trigger = draw(st.sampled_from(triggers))
    return policy(trigger=trigger, **{name: draw(values) for name, values in _POLICIES.items()})
