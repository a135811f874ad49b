"""What a person asks to be planned, beyond what is planned by itself; it is only carried out when it is applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from icewright.model.plans.plans import Migration


@dataclass(frozen=True, slots=True)
class RewriteDataFilesRequest:
    """Migrate the files of a table, all of those that there are, and do nothing else."""

    kind: ClassVar[Literal["rewrite_data_files"]] = "rewrite_data_files"
    migrate: Migration


@dataclass(frozen=True, slots=True)
class ExpireSnapshotsRequest:
    """Expire snapshots, and do nothing else. What is not said, the table's policy says.

    ``older_than`` is an age as an ISO-8601 duration (``P5D``), never an instant; ``retain_last`` how many snapshots of
    each branch stay whatever their age, at least 1.
    """

    kind: ClassVar[Literal["expire_snapshots"]] = "expire_snapshots"
    older_than: str | None = None
    retain_last: int | None = None


@dataclass(frozen=True, slots=True)
class RewriteManifestsRequest:
    """Rewrite the manifests of a table, where that would help."""

    kind: ClassVar[Literal["rewrite_manifests"]] = "rewrite_manifests"


@dataclass(frozen=True, slots=True)
class RemoveDanglingDeletesRequest:
    """Remove the delete files of a table that apply to no live data file."""

    kind: ClassVar[Literal["remove_dangling_deletes"]] = "remove_dangling_deletes"


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Set ``main`` back to a snapshot, or to the latest one before an instant; exactly one of the two is given.

    ``to_time`` is an instant with its zone, as ISO 8601 has it (``2026-11-22T10:00:00Z``).
    """

    kind: ClassVar[Literal["rollback_to_snapshot"]] = "rollback_to_snapshot"
    to_snapshot: int | None = None
    to_time: str | None = None


@dataclass(frozen=True, slots=True)
class ComputeStatisticsRequest:
    """Compute statistics of a snapshot, the current one by default.

    ``columns`` are names of the top level, those that the table's policy chooses by default.
    """

    kind: ClassVar[Literal["compute_statistics"]] = "compute_statistics"
    columns: tuple[str, ...] | None = None
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class RemoveOrphanFilesRequest:
    """Look for orphan files of a table now, and plan what may go of them.

    ``older_than`` is an age as an ISO-8601 duration (``P7D``); what is not said, the table's policy says. No age is
    below the floor.
    """

    kind: ClassVar[Literal["remove_orphan_files"]] = "remove_orphan_files"
    older_than: str | None = None


@dataclass(frozen=True, slots=True)
class RewritePositionDeletesRequest:
    """Write position delete files anew, where readers would open fewer of them."""

    kind: ClassVar[Literal["rewrite_position_delete_files"]] = "rewrite_position_delete_files"


@dataclass(frozen=True, slots=True)
class ExpireDataRequest:
    """Let whole partitions expire, and do nothing else. By which column, and in which zone, the table's policy says.

    ``older_than`` is an age as an ISO-8601 duration (``P90D``), at least a day; the policy's where it is not said.
    """

    kind: ClassVar[Literal["expire_data"]] = "expire_data"
    older_than: str | None = None


Asked: TypeAlias = (
    RewriteDataFilesRequest
    | ExpireSnapshotsRequest
    | RewriteManifestsRequest
    | RemoveDanglingDeletesRequest
    | ComputeStatisticsRequest
    | RemoveOrphanFilesRequest
    | RewritePositionDeletesRequest
    | ExpireDataRequest
    | RollbackRequest
)
"""Anything of which a plan can be asked for, by the kind of its action."""
