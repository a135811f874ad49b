"""Which partitions expire: those whose every row is older than the owner wants, told by their values and by the clock.

The clock is the server's. Nothing that is in the table moves it: not its last commit, not its newest row. What cannot
be told to be old stays: partitions of specs that are not by the column, those without a value of it, and those whose
value cannot be read. What expires is decided by partition, and named by file: whatever comes into a partition later is
not in the plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from icewright.actions.expire_data.age import EPOCHS, EPOCHS_SINCE_MS, TRANSFORMS, End, Limits, end_of, limits
from icewright.actions.expire_data.column import DataColumn, data_column
from icewright.actions.expire_data.settings import DATA_AGE_KEY, DATA_INTEGERS_KEY
from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory.placement import column_types, placement_obstacle
from icewright.model.actions.actions import Action
from icewright.model.actions.expire_data import (
    BUDGET_PERCENT,
    CLOCK_SLACK_MS,
    FILES_MAX,
    ExpireData,
    ExpireDataPrediction,
    ExpiringFile,
    ExpiringPartition,
    IntegerTime,
    needs_approval,
    tag_of,
)
from icewright.model.actions.undo import UNDO_WINDOW_MS
from icewright.model.iceberg.files import DataFile, Partition
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.iceberg.names import identifier
from icewright.model.iceberg.tables import PartitionSpec, TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.plans.branches import branch_obstacle
from icewright.plans.eligibility import manifests_obstacle
from icewright.plans.layouts import dotted
from icewright.plans.standalone_plan import Decided

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS: Final = 86_400_000
_TASK: Final = "TASK_ID"

NOTHING_EXPIRES: Final = "nothing-expires"
"""The code that says: no partition is old enough as a whole."""


@dataclass(frozen=True, slots=True)
class DataChoice:
    """The partitions that expire, the oldest first, and all that is said of the others.

    ``chosen`` are those of one action, ``later`` counts those beyond it. ``ends`` has the end of each.
    """

    base_snapshot_id: int
    column: DataColumn
    older_than_ms: int
    zone: str
    as_of: Instant
    chosen: tuple[PartitionStatistics, ...]
    later: int
    expiring_records: int
    ends: Mapping[Partition, End]
    notes: tuple[Reason, ...]


DataDecision: TypeAlias = Decided[ExpireData, ExpireDataPrediction]
"""``notes`` say what stays."""


def choose_data(
    observation: Observation, policy: Policy, older_than_ms: int | None, now: Instant
) -> DataChoice | DataDecision:
    """Which partitions of a table expire now; a decision where none does.

    ``older_than_ms`` is the age that a person asks for, None where the policy's counts.
    """
    metadata = observation.metadata
    obstacle = manifests_obstacle(metadata, policy) or clock_obstacle(metadata, now)
    obstacle = obstacle or branch_obstacle(metadata, policy, now)
    if obstacle is not None or metadata.current_snapshot_id is None:
        return Decided(obstacle or Reason("no-snapshots", "nothing has been committed to the table yet"))
    column = data_column(metadata, policy)
    if isinstance(column, Reason):
        return Decided(column)
    age_ms = policy.expire_data_older_than_ms if older_than_ms is None else older_than_ms
    if age_ms is None:
        return Decided(Reason("expire-data-off", f"nothing to do: no age is set: set {DATA_AGE_KEY}"))
    try:
        below = limits(now, age_ms, ZoneInfo(policy.expire_data_time_zone))
    except OverflowError:
        return Decided(Reason("expire-data-age", f"nothing to do: no calendar reaches back {wording.duration(age_ms)}"))
    told = _Told(metadata, column, below)
    for statistics in observation.inventory.partitions:
        if statistics.counts.data_files:
            told.tell(statistics)
    said = f"{wording.duration(age_ms)} by {wording.name(dotted(column.path))}, in {policy.expire_data_time_zone}"
    notes = (_limit_said(below, policy), *told.notes())
    if not told.expiring:
        reason = Reason(NOTHING_EXPIRES, f"nothing to do: no partition is older than {said}")
        return Decided(reason, notes=notes)
    expiring = sorted(told.expiring, key=lambda each: (told.ends[each.partition].at, each.partition))
    chosen = _first(expiring)
    return DataChoice(
        base_snapshot_id=metadata.current_snapshot_id,
        column=column,
        older_than_ms=age_ms,
        zone=policy.expire_data_time_zone,
        as_of=now,
        chosen=chosen,
        later=len(expiring) - len(chosen),
        expiring_records=sum(each.counts.records for each in expiring),
        ends=told.ends,
        notes=notes,
    )


def plan_data(observation: Observation, choice: DataChoice, files: Iterable[DataFile]) -> DataDecision:
    """The action for partitions that were chosen; ``files`` are their live data files, in any order."""
    by_partition: dict[Partition, list[DataFile]] = {each.partition: [] for each in choice.chosen}
    for file in files:
        if file.partition in by_partition:
            by_partition[file.partition].append(file)
    metadata, inventory = observation.metadata, observation.inventory
    action = ExpireData(
        base_snapshot_id=choice.base_snapshot_id,
        field=dotted(choice.column.path),
        field_id=choice.column.field_id,
        integers=choice.column.integers,
        older_than_ms=choice.older_than_ms,
        time_zone=choice.zone,
        as_of=choice.as_of,
        partitions=tuple(_expiring(each, by_partition[each.partition]) for each in choice.chosen),
        expiring_records=choice.expiring_records,
        table_records=records_of(observation),
    )
    held = [each for each in inventory.partitions if each.counts.data_files]
    prediction = ExpireDataPrediction(
        partitions=len(action.partitions),
        partitions_before=len(held),
        files=len(action.files),
        files_before=sum(each.counts.data_files for each in held),
        records=action.records,
        records_before=action.table_records,
        size_bytes=action.size_bytes,
        oldest=choice.chosen[0].path,
        newest=choice.chosen[-1].path,
        left_for_later=choice.later,
        needs_approval=action.needs_approval,
        undo=undo_said(_TASK),
        call=data_call(metadata, choice.column, [choice.ends[each.partition] for each in choice.chosen]),
    )
    return Decided(_reason(action, choice), action, prediction, choice.notes)


def data_call(metadata: TableMetadata, column: DataColumn, ends: Sequence[End]) -> str:
    """One SQL statement, which deletes what is older than the newest partition to expire; no procedure does."""
    name = ".".join(identifier(part) for part in (metadata.name.catalog, *metadata.name.path))
    field = ".".join(identifier(part) for part in column.path)
    return " ".join(("DELETE FROM", name, "WHERE", field, "<", _literal(column, max(end.at for end in ends))))


def _literal(column: DataColumn, at: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=at)
    if column.integers is not None:
        return {
            IntegerTime.EPOCH_DAYS: str(at // _DAY_MS),
            IntegerTime.EPOCH_SECONDS: str(at // 1000),
            IntegerTime.EPOCH_MILLISECONDS: str(at),
            IntegerTime.YYYYMMDD: f"{moment:%Y%m%d}",
        }[column.integers]
    if column.type_name == "date":
        return f"DATE '{moment:%Y-%m-%d}'"
    if column.type_name in ("timestamp", "timestamp_ns"):
        return f"TIMESTAMP_NTZ '{moment:%Y-%m-%d %H:%M:%S}'"
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S}Z'"


def clock_obstacle(metadata: TableMetadata, now: Instant) -> Reason | None:
    """Why the clock cannot be believed, None when nothing is known against it.

    Only ever against: what a table says of the time never makes anything older.
    """
    seen = max((metadata.updated_at, *(snapshot.committed_at for snapshot in metadata.snapshots)))
    if now >= seen - CLOCK_SLACK_MS:
        return None
    return Reason(
        "clock-behind",
        f"nothing to do: this clock says {wording.instant(now)}, and the table was committed to at "
        f"{wording.instant(seen)}: one of the two is wrong, and the age of rows depends on the clock",
    )


def records_of(observation: Observation) -> int:
    """All rows of a table, those that delete files remove included."""
    return sum(each.counts.records for each in observation.inventory.partitions)


def planned_ahead(action: Action, now: Instant) -> Reason | None:
    """Why an action was planned by a clock that was ahead; nothing but the expiry of data tells ages so."""
    return clock_ahead(action.as_of, now) if isinstance(action, ExpireData) else None


def clock_ahead(as_of: Instant, now: Instant) -> Reason | None:
    """Why the clock that ages were told by was ahead of another one, the store's; None where it was not."""
    if as_of <= now + CLOCK_SLACK_MS:
        return None
    text = f"ages were computed as of {wording.instant(as_of)}, and it is {wording.instant(now)}: the clock was ahead"
    return Reason("clock-ahead", text)


def beyond_a_tenth(expiring_records: int, table_records: int) -> str | None:
    """Why so many of a table's rows may not expire without a person who approves it, None where they may."""
    if not needs_approval(expiring_records, table_records):
        return None
    rows = wording.count(table_records, "row")
    return f"{expiring_records:,} of {rows} would expire, and without approval it is {BUDGET_PERCENT} % at most"


def undo_said(task_id: str) -> str:
    """How an expiry of data is taken back."""
    return (
        f"no file is deleted, and for {wording.duration(UNDO_WINDOW_MS)} the tag {tag_of(task_id)} keeps the rows: "
        f"`icewright undo {task_id}` sets the table back where nothing was committed since, and inserts them again else"
    )


def by_hand(task_id: str) -> str:
    """What a person does to have the rows back where the table cannot be set back."""
    return f"the tag {tag_of(task_id)} has the rows: insert them again from it (docs/expire-data.md)"


class _Told:
    """What is told of each partition of a table."""

    def __init__(self, metadata: TableMetadata, column: DataColumn, below: Limits) -> None:
        self._metadata, self._column, self._below = metadata, column, below
        self._types = column_types(metadata)
        self._specs = {spec.spec_id: spec for spec in metadata.specs}
        self.expiring: list[PartitionStatistics] = []
        self.ends: dict[Partition, End] = {}
        self._kept: dict[str, list[PartitionStatistics]] = {}

    def tell(self, statistics: PartitionStatistics) -> None:
        """Whether a partition expires."""
        why = self._why_it_stays(statistics.partition)
        if why is None:
            self.expiring.append(statistics)
        else:
            self._kept.setdefault(why, []).append(statistics)

    def _why_it_stays(self, partition: Partition) -> str | None:
        spec = self._specs.get(partition.spec_id)
        values = [] if spec is None else _values_of(spec, partition, self._column.field_id)
        if spec is None or not values:
            return "kept-other-spec"
        if any(value is None for _, value in values):
            return "kept-no-value"
        ends = [end_of(value, how, self._column.type_name, self._column.integers) for how, value in values]
        known = [end for end in ends if end is not None]
        if len(known) < len(ends) or placement_obstacle(self._metadata, self._types, partition) is not None:
            return "kept-unreadable"
        end = min(known, key=lambda each: each.at)
        if self._column.integers in EPOCHS and end.at <= EPOCHS_SINCE_MS:
            return "kept-implausible"
        if end.at > self._below.of(end.measure):
            return "kept-younger"
        self.ends[partition] = end
        return None

    def notes(self) -> Iterable[Reason]:
        """What stays and why, most telling first."""
        name, counted = wording.name(dotted(self._column.path)), self._column.integers
        said = {
            "kept-younger": "not old enough as a whole",
            "kept-no-value": f"no value of {name}",
            "kept-other-spec": f"of a spec that is not by {name}, its year, month, day or hour",
            "kept-implausible": f"{name} would be of before 1980 as {counted}; is {DATA_INTEGERS_KEY} right?",
            "kept-unreadable": f"a value of {name}, or of another field, cannot be read or written",
        }
        for code, text in said.items():
            kept = self._kept.get(code, [])
            if kept:
                which = wording.count(len(kept), "partition stays", "partitions stay")
                yield Reason(code, f"{which}: {text}", {"partitions": len(kept)})


def _values_of(spec: PartitionSpec, partition: Partition, field_id: int) -> list[tuple[str, object]]:
    """The transforms by which a spec has the column, each with the partition's value of it."""
    values = json.loads(partition.values)
    if len(values) != len(spec.fields):
        return []
    pairs = zip(spec.fields, values, strict=True)
    return [(f.transform, value) for f, value in pairs if f.source_id == field_id and f.transform in TRANSFORMS]


def _first(expiring: list[PartitionStatistics]) -> tuple[PartitionStatistics, ...]:
    """As many of them as one action takes; one in any case."""
    files = 0
    for number, each in enumerate(expiring):
        files += each.counts.data_files
        if number and files > FILES_MAX:
            return tuple(expiring[:number])
    return tuple(expiring)


def _expiring(statistics: PartitionStatistics, files: list[DataFile]) -> ExpiringPartition:
    named = (
        ExpiringFile(file.path, file.size_bytes, file.record_count, file.data_sequence_number, file.file_format)
        for file in sorted(files, key=lambda each: each.path)
    )
    return ExpiringPartition(statistics.partition, statistics.path, tuple(named))


def _limit_said(below: Limits, policy: Policy) -> Reason:
    instant = wording.instant(below.instant)
    reading = wording.instant(below.reading).removesuffix(" UTC")
    zone = policy.expire_data_time_zone
    text = f"older is what is from before {instant}, and by a clock of {zone} from before {reading}"
    return Reason("expires-before", text, {"instant": below.instant, "time_zone": zone})


def _reason(action: ExpireData, choice: DataChoice) -> Reason:
    text = (
        f"{wording.count(len(action.partitions), 'partition')} with {wording.count(len(action.files), 'file')} and "
        f"{wording.count(action.records, 'row')} would expire, older than {wording.duration(action.older_than_ms)} by "
        f"{wording.name(action.field)} in {action.time_zone}"
    )
    if choice.later:
        text += f"; {wording.count(choice.later, 'more partition')} for the next plan"
    refusal = beyond_a_tenth(action.expiring_records, action.table_records)
    text += "" if refusal is None else f"; but {refusal}"
    figures = {"partitions": len(action.partitions), "files": len(action.files), "records": action.records}
    return Reason("expire-data", text, figures)


def wanted_less(action: ExpireData, policy: Policy) -> Reason | None:
    """Why the owner wants less to expire by itself by now than an action does."""
    if policy.expire_data_older_than_ms is None or action.older_than_ms < policy.expire_data_older_than_ms:
        return Reason("upkeep-changed", "the policy now keeps data longer")
    return None


def explain_data(said: ExpireDataPrediction) -> tuple[str, ...]:
    """What an expiry of data would bring, in sentences."""
    left = wording.count(said.records_before - said.records, "row")
    return f"The table would have {left} instead of {said.records_before:,}.", f"To be undone: {said.undo}."


def over_budget(action: ExpireData) -> Reason | None:
    """Why somebody has to approve an expiry: it takes too many of the table's rows at once."""
    if not action.needs_approval:
        return None
    why = beyond_a_tenth(action.expiring_records, action.table_records) or ""
    return Reason("beyond-budget", why, {"records": action.expiring_records, "of": action.table_records})
