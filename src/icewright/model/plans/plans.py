"""Plans: what should be done to a table, why, and what it would bring. "Nothing, because ..." is a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal, TypeAlias

from icewright.core.reasons import Reason as Reason  # noqa: PLC0414 - most find it here
from icewright.core.times import Instant
from icewright.model.actions.actions import Action, FileGroup, RewriteDataFiles
from icewright.model.actions.compute_statistics import ComputeStatisticsPrediction
from icewright.model.actions.expire_data import ExpireDataPrediction
from icewright.model.actions.expire_snapshots import ExpireSnapshotsPrediction
from icewright.model.actions.remove_dangling_deletes import RemoveDanglingDeletesPrediction
from icewright.model.actions.remove_expired_files import RemoveExpiredFilesPrediction
from icewright.model.actions.remove_orphan_files import RemoveOrphanFilesPrediction
from icewright.model.actions.restore_files import RestoreFilesPrediction
from icewright.model.actions.rewrite_manifests import RewriteManifestsPrediction
from icewright.model.actions.rewrite_position_deletes import RewritePositionDeletesPrediction
from icewright.model.actions.rollback import RollbackPrediction
from icewright.model.actions.undo import UndoExpiryPrediction
from icewright.model.actions.undo_data import UndoExpireDataPrediction
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.policy.policy import Mode


class Verdict(StrEnum):
    """What a plan says of one partition."""

    REWRITE = "rewrite"
    LEAVE = "leave"
    """Nothing to gain."""
    WAIT = "wait"
    """Something to gain, but not now; ``wait_until`` says when to look again."""
    REFUSE = "refuse"
    """Something to gain that icewright cannot do or prove yet."""


class Migration(StrEnum):
    """What a person asks to be migrated, beyond what the policy says."""

    FORMATS = "formats"
    """Files of another format than the table's own."""
    SPEC = "spec"
    """Files of older partition specs."""
    ALL = "all"


@dataclass(frozen=True, slots=True)
class PartitionVerdict:
    """What a plan says of one partition, with its figures before and (predicted) after."""

    partition: Partition
    path: str
    verdict: Verdict
    reason: Reason
    files_before: int
    files_after: int
    wait_until: Instant | None = None


class Risk(StrEnum):
    """How likely somebody else's statement takes rows away from under a rewrite, so that it comes to nothing."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Lookup:
    """How many planned files of one partition a lookup of one value of ``column``, of the layout, opens.

    ``files_before`` and ``files_after`` are where that is worst, the others the mean over the column's values. Before
    is told by the bounds of the files, of which ``unknown_files`` have none; after by how the layout places rows that
    are spread evenly over all combinations of values. The column has ``values_at_most``, where the bounds tell.
    """

    column: str
    partition: str
    files_before: int
    files_after: int
    mean_before: float
    mean_after: float
    unknown_files: int = 0
    values_at_most: int | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What carrying out a plan takes, by rules of thumb and not by what is known.

    ``output_bytes`` are ``modelled_bytes`` as the latest commits of the table have it, and ``output_reason`` has the
    numbers behind them; ``cpu_ms`` is by the rates of the policy. ``risk_reason`` has the numbers behind the risk.
    ``lookups`` has each column of the layout where files are put in order.
    """

    output_bytes: int
    cpu_ms: int
    risk: Risk
    risk_reason: Reason
    modelled_bytes: int
    output_reason: Reason
    lookups: tuple[Lookup, ...] = ()


@dataclass(frozen=True, slots=True)
class RewritePrediction:
    """What rewriting data files would bring, over the whole table; exact but for the ``estimate``.

    ``layout`` is that of the new files by the names of its columns, ``call`` the Spark statement that comes nearest.
    """

    kind: ClassVar[Literal["rewrite_data_files"]] = "rewrite_data_files"
    data_files_before: int
    data_files_after: int
    input_files: int
    output_files: int
    input_bytes: int
    records: int
    layout: str | None = None
    call: str = ""
    estimate: Estimate | None = None


Prediction: TypeAlias = (
    RewritePrediction
    | ExpireSnapshotsPrediction
    | RewriteManifestsPrediction
    | RemoveDanglingDeletesPrediction
    | RewritePositionDeletesPrediction
    | ExpireDataPrediction
    | UndoExpireDataPrediction
    | UndoExpiryPrediction
    | ComputeStatisticsPrediction
    | RemoveOrphanFilesPrediction
    | RemoveExpiredFilesPrediction
    | RestoreFilesPrediction
    | RollbackPrediction
)
"""What carrying out a plan would bring, by the kind of its action."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do to a table as of one snapshot.

    ``verdicts`` lists the partitions that a person would ask about, most files first, at most as many as the
    planner's limit; ``verdict_counts`` counts them all. ``rules`` are those by which the table is looked after, with
    what is missing until each fires; of an expiry, what stays and why; of
    statistics, which columns have none and why. A plan that is ``asked``, or has a
    ``migration``, was asked for by a person and does nothing else; it is only carried out when that person applies it.
    """

    plan_id: str
    table_id: TableId
    table_name: TableName
    snapshot_id: int | None
    planned_at: Instant
    mode: Mode
    actions: tuple[Action, ...]
    reason: Reason
    verdicts: tuple[PartitionVerdict, ...]
    verdict_counts: Mapping[Verdict, int]
    prediction: Prediction | None
    look_again_at: Instant | None
    rules: tuple[Reason, ...] = ()
    migration: Migration | None = None
    asked: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the plan is to do nothing."""
        return not self.actions

    @property
    def rewrites(self) -> tuple[RewriteDataFiles, ...]:
        """Those of the actions that rewrite data files."""
        return tuple(action for action in self.actions if isinstance(action, RewriteDataFiles))

    @property
    def groups(self) -> tuple[FileGroup, ...]:
        """The groups of files that are to be rewritten."""
        return tuple(group for action in self.rewrites for group in action.groups)

    @property
    def rewrite_prediction(self) -> RewritePrediction | None:
        """What rewriting data files would bring, where that is planned."""
        return self.prediction if isinstance(self.prediction, RewritePrediction) else None
