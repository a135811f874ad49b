"""Tables whose partitions grow old: by day, by others, and without."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from icewright.actions.expire_data.plan import DataChoice, DataDecision, choose_data, plan_data
from icewright.core.times import Instant
from icewright.model.actions.expire_data import ExpireData, ExpireDataPrediction
from icewright.model.iceberg.files import DataFile, Partition
from icewright.model.iceberg.tables import Json, PartitionField, PartitionSpec, Snapshot
from icewright.model.plans.observation import Observation
from icewright.model.policy.policy import Policy
from tests.builders.observations import DAY_MS, data_file, observe, policy, snapshot, table

COLUMNS: tuple[Json, ...] = (
    {"id": 1, "name": "at", "type": "timestamptz", "required": False},
    {"id": 2, "name": "city", "type": "string", "required": False},
    {"id": 3, "name": "number", "type": "int", "required": False},
    {
        "id": 4,
        "name": "event",
        "type": {"type": "struct", "fields": [{"id": 5, "name": "day", "type": "date", "required": False}]},
        "required": False,
    },
)
BY_DAY = PartitionSpec(0, (PartitionField(1, 1000, "at_day", "day"),))
BY_CITY = PartitionSpec(1, (PartitionField(2, 1001, "city", "identity"),))
BY_MONTH_AND_CITY = PartitionSpec(
    2, (PartitionField(1, 1002, "at_month", "month"), PartitionField(2, 1001, "city", "identity"))
)
BY_NUMBER = PartitionSpec(3, (PartitionField(3, 1003, "number", "identity"),))
BY_EVENT = PartitionSpec(4, (PartitionField(5, 1004, "day", "identity"),))
SPECS = (BY_DAY, BY_CITY, BY_MONTH_AND_CITY, BY_NUMBER, BY_EVENT)

NOW: Instant = 1_718_452_800_000
"""2024-06-15 12:00 UTC."""


def day(back: int) -> Partition:
    """The day so many days ago, of UTC."""
    at = datetime(2024, 6, 15, tzinfo=UTC) - timedelta(days=back)
    return Partition(0, f'["{at:%Y-%m-%d}"]')


def rules(**changes: Any) -> Policy:
    """What an owner says: 30 days by ``at``, in Berlin."""
    said = {
        "expire_data_field": "at",
        "expire_data_older_than_ms": 30 * DAY_MS,
        "expire_data_time_zone": "Europe/Berlin",
    }
    return policy(**{**said, **changes})


def aging(
    files: Sequence[DataFile], snapshots: Sequence[Snapshot] = (snapshot(1, NOW - DAY_MS),), **changes: Any
) -> Observation:
    """A table that has exactly these files."""
    said = {"fields": COLUMNS, "specs": SPECS, "updated_at": NOW - DAY_MS}
    return observe(files, table(snapshots, **{**said, **changes}))


def days(backs: Sequence[int], each: int = 1) -> list[DataFile]:
    """So many files of each of these days."""
    return [data_file(day(back), number) for back in backs for number in range(each)]


def decide(
    files: Sequence[DataFile],
    observation: Observation | None = None,
    rules_: Policy | None = None,
    *,
    now: Instant = NOW,
    older_than_ms: int | None = None,
) -> DataDecision:
    """What should be done about a table with these files."""
    observation = observation or aging(files)
    found = choose_data(observation, rules_ or rules(), older_than_ms, now)
    return plan_data(observation, found, files) if isinstance(found, DataChoice) else found


def planned(decision: DataDecision) -> tuple[ExpireData, ExpireDataPrediction]:
    """The action, which must be there."""
    assert decision.action is not None, decision.reason
    assert decision.prediction is not None
    return decision.action, decision.prediction


def expiring(decision: DataDecision) -> set[Partition]:
    """The partitions that expire."""
    return set() if decision.action is None else {each.partition for each in decision.action.partitions}
