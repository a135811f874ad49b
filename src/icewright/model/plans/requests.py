"""What a person asks to be planned, beyond what is planned by itself; it is only carried out when it is applied."""

from __future__ import annotations

from typing import Annotated, Final, Protocol, TypeAlias

from icewright.core.codec import OneOf
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.compute_statistics import ComputeStatisticsRequest
from icewright.model.actions.expire_data import ExpireDataRequest
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.remove_dangling_deletes import RemoveDanglingDeletesRequest
from icewright.model.actions.remove_orphan_files import RemoveOrphanFilesRequest
from icewright.model.actions.rewrite_data_files import RewriteDataFilesRequest
from icewright.model.actions.rewrite_manifests import RewriteManifestsRequest
from icewright.model.actions.rewrite_position_deletes import RewritePositionDeletesRequest
from icewright.model.actions.rollback import RollbackRequest

__all__ = [
    "REQUESTS",
    "AnyRequest",
    "Asked",
    "ComputeStatisticsRequest",
    "ExpireDataRequest",
    "ExpireSnapshotsRequest",
    "RemoveDanglingDeletesRequest",
    "RemoveOrphanFilesRequest",
    "RewriteDataFilesRequest",
    "RewriteManifestsRequest",
    "RewritePositionDeletesRequest",
    "RollbackRequest",
]


class AnyRequest(Protocol):
    """What is asked for, told by the kind of its action."""

    @property
    def kind(self) -> str:
        """The tag of its action."""
        ...


_FIRST: Final = (
    ActionKind.REWRITE_DATA_FILES,
    ActionKind.EXPIRE_SNAPSHOTS,
    ActionKind.REWRITE_MANIFESTS,
    ActionKind.REMOVE_DANGLING_DELETES,
    ActionKind.COMPUTE_STATISTICS,
    ActionKind.REMOVE_ORPHAN_FILES,
)
"""Those that the API document has first; the others follow as the kinds do."""

REQUESTS: Final = tuple(
    kind.traits.asked for kind in dict.fromkeys((*_FIRST, *ActionKind)) if kind.traits.asked is not None
)
"""All of them, in the order of the API document."""

Asked: TypeAlias = Annotated[AnyRequest, OneOf(REQUESTS)]
"""Anything of which a plan can be asked for, by the kind of its action."""
