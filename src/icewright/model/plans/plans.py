"""Plans: what should be done to a table, why, and what it would bring. "Nothing, because ..." is a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Protocol, TypeAlias

from icewright.core.codec import OneOf
from icewright.core.reasons import Reason as Reason  # noqa: PLC0414 - most find it here
from icewright.core.times import Instant
from icewright.model.actions.actions import LISTED, Action, FileGroup, RewriteDataFiles
from icewright.model.actions.rewrite_data_files import Estimate as Estimate  # noqa: PLC0414 - most find it here
from icewright.model.actions.rewrite_data_files import Lookup as Lookup  # noqa: PLC0414 - most find it here
from icewright.model.actions.rewrite_data_files import Migration as Migration  # noqa: PLC0414 - most find it here
from icewright.model.actions.rewrite_data_files import RewritePrediction as RewritePrediction  # noqa: PLC0414 - most find it here
from icewright.model.actions.rewrite_data_files import Risk as Risk  # noqa: PLC0414 - most find it here
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


class AnyPrediction(Protocol):
    """What every prediction says; ``call`` is the Spark statement that comes nearest, empty where none does."""

    @property
    def kind(self) -> str:
        """The tag of its action."""

    @property
    def call(self) -> str:
        """The Spark statement."""


Prediction: TypeAlias = Annotated[AnyPrediction, OneOf(tuple(kind.traits.prediction for kind in LISTED))]
"""What carrying out a plan would bring, by the kind of its action."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do to a table as of one snapshot.

    ``verdicts`` lists the partitions that a person would ask about, most files first, at most as many as the
    planner's limit; ``verdict_counts`` counts them all. ``rules`` are those by which the table is looked after, with
    what is missing until each fires; of an expiry, what stays and why; of
    statistics, which columns have none and why. A plan that is ``asked``, or has a
    ``migration``, was asked for by a person and does nothing else; it is only carried out when that person applies it.
    ``settings_digest`` is of the settings that it was made from; None in plans of before there was one.
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
    settings_digest: str | None = None

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
