"""Expiring data: the action, what lists show of it, and what it would bring.

Whole partitions go whose every row is older than the owner wants rows to be, file by file as the plan names them, in
one commit that deletes from the table's metadata alone. No file is removed from storage by it, and a tag that is made
before keeps the rows within reach for as long as it can be undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, Literal

from icewright.core.times import Instant
from icewright.model.access.permissions import Permission
from icewright.model.actions.traits import ON_MAIN, ActionTraits, TableSlot
from icewright.model.actions.undo import UNDO_KEPT_MS
from icewright.model.iceberg.files import DataFile, FileFormat, Partition

BUDGET_PERCENT: Final = 10
"""What share of a table's rows may expire in one run without a person who approves it."""
FILES_MAX: Final = 50_000
"""The most files of one action; the oldest partitions come first, and what is left over is for the next one."""
CLOCK_SLACK_MS: Final = 60_000
"""How far two clocks may be apart. A clock that is further behind what it should have seen decides nothing."""
TAG_AGE_MS: Final = UNDO_KEPT_MS
"""For how long the tag keeps what has expired: it is made before the commit, which is verified within a day."""

TAG_PREFIX: Final = "icewright-before-expire-data-"


class IntegerTime(StrEnum):
    """What the integers in a column say of time; an integer alone says nothing."""

    YYYYMMDD = "yyyymmdd"
    """20240131: a day in the owner's time zone."""
    EPOCH_DAYS = "epoch-days"
    """Days since 1970-01-01, each of the owner's time zone."""
    EPOCH_SECONDS = "epoch-seconds"
    """Instants, in seconds since 1970-01-01 UTC."""
    EPOCH_MILLISECONDS = "epoch-milliseconds"
    """Instants, in milliseconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True)
class ExpiringFile:
    """A data file that goes, with what must be found in the table when it does."""

    path: str
    size_bytes: int
    record_count: int
    data_sequence_number: int
    file_format: FileFormat = FileFormat.PARQUET

    def is_still(self, found: DataFile | None, partition: Partition) -> bool:
        """Whether what is at its path is the same file, in this partition: a path may have been used again."""
        if found is None:
            return False
        said = (partition, self.size_bytes, self.record_count, self.data_sequence_number, self.file_format)
        seen = (found.size_bytes, found.record_count, found.data_sequence_number, found.file_format)
        return said == (found.partition, *seen)


@dataclass(frozen=True, slots=True)
class ExpiringPartition:
    """All files that one partition has as of the action's base snapshot. ``path`` is for people."""

    partition: Partition
    path: str
    files: tuple[ExpiringFile, ...]

    @property
    def records(self) -> int:
        """Rows in its files, those that delete files remove included."""
        return sum(file.record_count for file in self.files)


@dataclass(frozen=True, slots=True)
class ExpireDataFigures:
    """What lists show of the action: everything but its files."""

    kind: ClassVar[Literal["expire_data"]] = "expire_data"
    base_snapshot_id: int
    field: str
    older_than_ms: int
    time_zone: str
    as_of: Instant
    partitions: int
    files: int
    records: int
    size_bytes: int
    needs_approval: bool


@dataclass(frozen=True, slots=True)
class ExpireData:
    """Delete exactly these files from a table, in one commit; what came into their partitions since stays.

    ``field`` is the column's name and ``field_id`` its id, ``integers`` what its numbers mean where it is of integers.
    ``as_of`` is when ages were told, by the server's clock, and never by anything that the table says. Every row of the
    partitions was older than ``older_than_ms`` by then: by the clock, and by the calendar of ``time_zone``.
    ``expiring_records`` are all rows that may go by that, in this action or left for the next, of ``table_records``;
    both count rows that delete files remove.
    """

    kind: ClassVar[Literal["expire_data"]] = "expire_data"
    base_snapshot_id: int
    field: str
    field_id: int
    integers: IntegerTime | None
    older_than_ms: int
    time_zone: str
    as_of: Instant
    partitions: tuple[ExpiringPartition, ...]
    expiring_records: int
    table_records: int

    @property
    def files(self) -> tuple[ExpiringFile, ...]:
        """All files that go."""
        return tuple(file for partition in self.partitions for file in partition.files)

    @property
    def records(self) -> int:
        """Rows in the files that go."""
        return sum(partition.records for partition in self.partitions)

    @property
    def size_bytes(self) -> int:
        """Bytes of the files that go."""
        return sum(file.size_bytes for partition in self.partitions for file in partition.files)

    @property
    def needs_approval(self) -> bool:
        """Whether more rows may go by this rule than a run may take without a person."""
        return needs_approval(self.expiring_records, self.table_records)

    @property
    def figures(self) -> ExpireDataFigures:
        """The action without its files."""
        return ExpireDataFigures(
            base_snapshot_id=self.base_snapshot_id,
            field=self.field,
            older_than_ms=self.older_than_ms,
            time_zone=self.time_zone,
            as_of=self.as_of,
            partitions=len(self.partitions),
            files=len(self.files),
            records=self.records,
            size_bytes=self.size_bytes,
            needs_approval=self.needs_approval,
        )


@dataclass(frozen=True, slots=True)
class ExpireDataPrediction:
    """What carrying out the action would bring, over the whole table.

    ``oldest`` and ``newest`` are the paths of the partitions at either end, ``left_for_later`` counts those that may go
    and are beyond the size of one action. ``undo`` says how it is taken back, ``call`` is the Spark statement that
    comes nearest.
    """

    kind: ClassVar[Literal["expire_data"]] = "expire_data"
    partitions: int
    partitions_before: int
    files: int
    files_before: int
    records: int
    records_before: int
    size_bytes: int
    oldest: str
    newest: str
    left_for_later: int
    needs_approval: bool
    undo: str
    call: str


def needs_approval(expiring_records: int, table_records: int) -> bool:
    """Whether so many of a table's rows are more than a run may take without a person."""
    return expiring_records * 100 > table_records * BUDGET_PERCENT


def tag_of(task_id: str) -> str:
    """The name of the tag that keeps what a task expires."""
    return f"{TAG_PREFIX}{task_id}"


@dataclass(frozen=True, slots=True)
class ExpireDataRequest:
    """Let whole partitions expire, and do nothing else. By which column, and in which zone, the table's policy says.

    ``older_than`` is an age as an ISO-8601 duration (``P90D``), at least a day; the policy's where it is not said.
    """

    kind: ClassVar[Literal["expire_data"]] = "expire_data"
    older_than: str | None = None


TRAITS: Final = ActionTraits(
    ExpireData,
    ExpireDataFigures,
    ExpireDataPrediction,
    names=lambda action: len(action.partitions) + sum(len(partition.files) for partition in action.partitions),
    permission=Permission.REMOVE,
    taken_back_by=("undo_expire_data", "rollback_to_snapshot"),
    asked=ExpireDataRequest,
    slot=TableSlot.DATA,
    settings=ON_MAIN
    | {"expire_data_field", "expire_data_older_than_ms", "expire_data_time_zone", "expire_data_integers"},
)
