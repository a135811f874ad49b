"""What a plan to expire data must fulfil, stated a second time; a part of the checker's second opinion.

Nothing of the planner is imported. Where the planner compares the end of a partition with a limit, this looks at the
last moments of the partition, one after the other, and at each of them from all sides: is it older by the time that
went by, whichever instant it was, and by the calendar of the zone?
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from icewright.core.times import Instant
from icewright.model.actions.expire_data import ExpireData, ExpireDataPrediction, ExpiringFile, ExpiringPartition
from icewright.model.iceberg.files import DataFile, Partition
from icewright.model.plans.observation import Observation
from icewright.model.policy.policy import Policy
from icewright.plans.check_table import Wrong, base_violations, not_writable, table_violations

_FORMATS: Final = (1, 2, 3)
_LEAST_AGE: Final = timedelta(days=1)
_MOST_FILES: Final = 50_000
_CLOCKS_APART: Final = 60_000
_SAMPLES: Final = 4 * 50
"""Quarters of an hour before a partition's end: two days, further than any clock was ever put back."""
_BEGINNING: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a clock on the wall

_PLAUSIBLE: Final = datetime(1980, 1, 1)  # noqa: DTZ001 - a clock on the wall
"""Numbers that count from 1970 are of then at least, or count something else."""


def data_violations(
    action: ExpireData,
    prediction: ExpireDataPrediction,
    observation: Observation,
    policy: Policy,
    files: Iterable[DataFile],
    now: Instant,
) -> Iterator[Wrong]:
    """What is wrong with a plan to expire data; ``files`` are the live ones of its partitions, read anew."""
    yield from _table(action, observation, policy, now)
    yield from _files(action, files)
    kinds = dict(_kinds(observation.metadata.schema.fields))
    kind = str(kinds.get(action.field_id))
    newest: dict[bool, datetime] = {}
    for partition in action.partitions:
        problem = not_writable(observation.metadata, partition.partition)
        if problem is not None:
            yield "partition-value", f"{partition.partition.values}: {problem}"
        last = _last(action, partition, observation, kind)
        if last is None:
            yield (
                "no-age",
                f"nothing says how old {partition.partition.values} of spec {partition.partition.spec_id} is",
            )
        else:
            newest[last.tzinfo is None] = max(last, newest.get(last.tzinfo is None, last))
    for last in newest.values():
        if not _is_older(last, action):
            yield "too-young", f"rows of {last.isoformat()} are younger than asked for in {action.time_zone}"
    yield from _figures(action, prediction, observation)


def _table(action: ExpireData, observation: Observation, policy: Policy, now: Instant) -> Iterator[Wrong]:
    """The table is the one that it was planned for, and may be worked on; the clock is not made up."""
    metadata = observation.metadata
    latest = max((snapshot.committed_at for snapshot in metadata.snapshots), default=0)
    yield from base_violations(action.base_snapshot_id, metadata)
    yield from table_violations(metadata, policy, _FORMATS)
    yield from _those(
        (policy.expire_data_field is None, "expire-data-off", "the owner names no column"),
        (action.time_zone != policy.expire_data_time_zone, "wrong-zone", f"it is planned for {action.time_zone}"),
        (action.integers not in (None, policy.expire_data_integers), "wrong-integers", f"read as {action.integers}"),
        (timedelta(milliseconds=action.older_than_ms) < _LEAST_AGE, "age-too-low", "the age is less than a day"),
        (action.as_of > now, "wrong-clock", f"ages are computed as of {action.as_of}, and it is {now}"),
        (latest > action.as_of + _CLOCKS_APART, "clock-behind", f"of {action.as_of}, a commit is of {latest}"),
    )


def _those(*said: tuple[bool, str, str]) -> Iterator[Wrong]:
    return ((code, text) for is_so, code, text in said if is_so)


def _files(action: ExpireData, files: Iterable[DataFile]) -> Iterator[Wrong]:
    """All files of the partitions go, no other, and each is what it is said to be."""
    found = list(files)
    live = {file.path: file for file in found}
    times = Counter(file.path for file in found)
    expiring = {partition.partition for partition in action.partitions}
    planned = Counter(said.path for partition in action.partitions for said in partition.files)
    for partition in action.partitions:
        for said in partition.files:
            yield from _file(said, partition.partition, live.get(said.path))
        if not partition.files:
            yield "empty", f"{partition.partition.values} has no files"
    twice = sorted(path for path, number in planned.items() if number > 1 or times[path] > 1)
    left = [file.path for file in found if file.partition in expiring and file.path not in planned]
    yield from _those(
        (bool(twice), "twice", f"{len(twice)} files are there twice: {twice[:1]}"),
        (len(expiring) < len(action.partitions) or not expiring, "twice", f"there are {len(expiring)} partitions"),
        (bool(left), "file-missing", f"{left[:1]} is in an expiring partition, and is not planned"),
        (len(planned) > _MOST_FILES and len(action.partitions) > 1, "too-much", f"it is of {len(planned)} files"),
    )


def _file(said: ExpiringFile, partition: Partition, found: DataFile | None) -> Iterator[Wrong]:
    if found is None or found.partition != partition:
        yield "not-a-file", f"{said.path} is no file of {partition.values}"
        return
    is_it = (
        found.size_bytes == said.size_bytes
        and found.record_count == said.record_count
        and found.data_sequence_number == said.data_sequence_number
        and found.file_format is said.file_format
    )
    if not is_it:
        yield "wrong-file", f"{said.path} is not as it is said to be"


def _figures(action: ExpireData, prediction: ExpireDataPrediction, observation: Observation) -> Iterator[Wrong]:
    """The figures add up; above all those that tell whether a person has to approve."""
    records: dict[Partition, int] = {s.partition: s.counts.records for s in observation.inventory.partitions}
    rows = sum(file.record_count for partition in action.partitions for file in partition.files)
    if action.table_records != sum(records.values()):
        yield "wrong-total", f"the table is said to have {action.table_records} rows, it has {sum(records.values())}"
    if rows != sum(records.get(partition.partition, -1) for partition in action.partitions):
        yield "wrong-count", f"its files have {rows} rows, and the inventory says otherwise"
    if action.expiring_records < rows:
        yield "wrong-count", f"{action.expiring_records} rows are said to expire, its files have {rows}"
    beyond = action.expiring_records > action.table_records / 10
    if beyond is not action.needs_approval or beyond is not prediction.needs_approval:
        yield "wrong-budget", "it does not say right whether a person has to approve it"
    if (prediction.records, prediction.files) != (rows, sum(len(partition.files) for partition in action.partitions)):
        yield "wrong-prediction", f"it predicts {prediction.records} rows in {prediction.files} files"


def _last(action: ExpireData, partition: ExpiringPartition, observation: Observation, kind: str) -> datetime | None:
    """The last moment that a row of a partition can be of; without a zone for what a clock on the wall said."""
    spec = next((s for s in observation.metadata.specs if s.spec_id == partition.partition.spec_id), None)
    found: list[datetime] = []
    for field, value in zip(() if spec is None else spec.fields, json.loads(partition.partition.values), strict=False):
        if field.source_id != action.field_id or field.transform not in _READERS:
            continue
        if value is None:
            return None
        try:
            found.append(_READERS[field.transform](value, kind, action))
        except (ValueError, TypeError, OverflowError):  # so it must not be in the plan: no last moment is known
            return None
    return min(found) if found else None


def _is_older(last: datetime, action: ExpireData) -> bool:
    """Whether all moments up to the last one are older than asked for, from all sides."""
    zone, age = ZoneInfo(action.time_zone), timedelta(milliseconds=action.older_than_ms)
    now = _BEGINNING.replace(tzinfo=UTC) + timedelta(milliseconds=action.as_of)
    wall = now.astimezone(zone).replace(tzinfo=None)
    for number in range(_SAMPLES):
        at = last - timedelta(minutes=15 * number)
        readings = [at] if at.tzinfo is None else [at.astimezone(zone).replace(tzinfo=None)]
        instants = [at] if at.tzinfo is not None else [at.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
        if any(now - one.astimezone(UTC) <= age for one in instants) or any(wall - one <= age for one in readings):
            return False
    return True


def _by_kind(at: datetime, kind: str, action: ExpireData) -> datetime:
    is_instant = kind.startswith("timestamptz") or str(action.integers) in ("epoch-seconds", "epoch-milliseconds")
    return at.replace(tzinfo=UTC) if is_instant else at


def _identity(value: Any, kind: str, action: ExpireData) -> datetime:
    if kind in ("int", "long"):
        units = {"epoch-days": 86_400_000, "epoch-seconds": 1_000, "epoch-milliseconds": 1}
        if str(action.integers) == "yyyymmdd":
            return datetime.fromisoformat(str(value)) + timedelta(days=1, milliseconds=-1)
        until = timedelta(milliseconds=(value + 1) * units[str(action.integers)] - 1)
        if _BEGINNING + until < _PLAUSIBLE:
            raise ValueError(f"{value} would be of before 1980 as {action.integers}")
        return _by_kind(_BEGINNING + until, kind, action)
    at = datetime.fromisoformat(value)
    if kind == "date":
        return at + timedelta(days=1, milliseconds=-1)
    return at.astimezone(UTC) if kind.startswith("timestamptz") else at


def _day(value: Any, kind: str, action: ExpireData) -> datetime:
    return _by_kind(datetime.fromisoformat(value) + timedelta(days=1, milliseconds=-1), kind, action)


def _hour(value: Any, kind: str, action: ExpireData) -> datetime:
    return _by_kind(_BEGINNING + timedelta(hours=value + 1, milliseconds=-1), kind, action)


def _month(value: Any, kind: str, action: ExpireData) -> datetime:
    years, month = (value + 1) // 12, (value + 1) % 12
    return _by_kind(_BEGINNING.replace(year=1970 + years, month=month + 1) - timedelta(milliseconds=1), kind, action)


def _year(value: Any, kind: str, action: ExpireData) -> datetime:
    return _by_kind(_BEGINNING.replace(year=1971 + value) - timedelta(milliseconds=1), kind, action)


_READERS: Mapping[str, Any] = {"identity": _identity, "day": _day, "hour": _hour, "month": _month, "year": _year}


def _kinds(fields: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    for field in fields:
        yield field["id"], field["type"]
        if not isinstance(field["type"], str):
            yield from _kinds(field["type"].get("fields", ()))
