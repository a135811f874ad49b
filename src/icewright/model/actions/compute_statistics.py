"""Computing statistics of one snapshot: the action, what lists show of it, and what it would bring.

Two kinds, by Iceberg's own actions: how many distinct values columns have, as sketches in a Puffin file, and a row of
figures per partition. Both are added to the metadata. No row, file or snapshot changes, and readers may ignore them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from icewright.model.actions.traits import ActionTraits, TableSlot

COLUMNS_MAX: Final = 100
"""The most columns of one action: a sketch of each is held by every task of Spark, 64 KB at most."""

NDV_TOLERANCE: Final = 1.1
"""How far a sketch may say more distinct values than there are rows: six standard errors of its 4,096 entries."""


@dataclass(frozen=True, slots=True, order=True)
class StatisticsColumn:
    """A column of the top level, of the schema that its snapshot was written with."""

    field_id: int
    name: str


@dataclass(frozen=True, slots=True)
class PartitionTotals:
    """What the statistics of all partitions must add up to. Rows are those in data files, deleted ones included.

    ``data_bytes`` and ``digest`` are None where they are of the snapshot's summary, which does not have them.
    ``digest`` is that of the figures of each partition, as :func:`figures_digest` takes it.
    """

    data_files: int
    records: int
    delete_files: int
    data_bytes: int | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True, order=True)
class PartitionFigures:
    """What one partition has, whichever it is."""

    spec_id: int
    data_files: int
    records: int
    delete_files: int
    data_bytes: int


def figures_digest(figures: Iterable[PartitionFigures]) -> str:
    """One digest of the figures of all partitions that have files, in whatever order they come.

    Which values a partition has is not in it, for which writers have several forms.
    """
    counted = sorted(each for each in figures if each.data_files or each.delete_files)
    lines = (f"{f.spec_id},{f.data_files},{f.records},{f.delete_files},{f.data_bytes}\n" for f in counted)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ComputeStatisticsFigures:
    """What lists show of the action."""

    kind: ClassVar[Literal["compute_statistics"]] = "compute_statistics"
    base_snapshot_id: int
    columns: int
    of_partitions: bool
    records: int


@dataclass(frozen=True, slots=True)
class ComputeStatistics:
    """Compute statistics of the snapshot ``base_snapshot_id`` and add them to the metadata, in one commit.

    ``columns`` get a sketch each, in one file that takes the place of ``statistics_before`` (its path; None where the
    snapshot has none). They have all columns of that file, so that nothing is lost. Statistics of partitions are
    computed where there are ``partition_totals``, and only where the snapshot has none: Iceberg's action makes no
    others. ``records`` are the rows in the data files of the snapshot, more than which no column has values.
    ``base_metadata_location`` is the state of the table that it was planned from.

    The commit makes no snapshot, so that nothing of it can carry the task's id. A snapshot never changes, and so its
    statistics are the same whoever computes them: the action has taken effect when they are there.
    """

    kind: ClassVar[Literal["compute_statistics"]] = "compute_statistics"
    base_snapshot_id: int
    base_metadata_location: str
    schema_id: int
    columns: tuple[StatisticsColumn, ...]
    records: int
    partition_totals: PartitionTotals | None = None
    statistics_before: str | None = None

    @property
    def figures(self) -> ComputeStatisticsFigures:
        """The action without its columns."""
        return ComputeStatisticsFigures(
            base_snapshot_id=self.base_snapshot_id,
            columns=len(self.columns),
            of_partitions=self.partition_totals is not None,
            records=self.records,
        )


@dataclass(frozen=True, slots=True)
class ComputeStatisticsPrediction:
    """What carrying out the action would take and bring.

    ``columns`` are the names of those that get a sketch. ``read_bytes`` are about what is read of data files for them,
    by the widths of their types; the rest of the figures is exact. ``gain`` says who reads what comes of it, ``call``
    are the Spark statements that come nearest.
    """

    kind: ClassVar[Literal["compute_statistics"]] = "compute_statistics"
    columns: tuple[str, ...]
    of_partitions: bool
    read_files: int
    read_records: int
    read_bytes: int
    data_bytes: int
    manifests: int
    gain: str
    call: str


@dataclass(frozen=True, slots=True)
class ComputeStatisticsRequest:
    """Compute statistics of a snapshot, the current one by default.

    ``columns`` are names of the top level, those that the table's policy chooses by default.
    """

    kind: ClassVar[Literal["compute_statistics"]] = "compute_statistics"
    columns: tuple[str, ...] | None = None
    snapshot_id: int | None = None


TRAITS: Final = ActionTraits(
    ComputeStatistics,
    ComputeStatisticsFigures,
    ComputeStatisticsPrediction,
    names=lambda action: len(action.columns),
    asked=ComputeStatisticsRequest,
    slot=TableSlot.METADATA,
)
