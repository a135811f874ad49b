"""What a person asks to be planned, beyond what is planned by itself; it is only carried out when it is applied."""

from __future__ import annotations

from typing import Annotated, Final, Protocol, TypeAlias

from icewright.core.codec import OneOf
from icewright.model.actions.actions import ActionKind


class AnyRequest(Protocol):
    """What is asked for, told by the kind of its action."""

    @property
    def kind(self) -> str:
        """The tag of its action."""


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

PlanRequest: TypeAlias = Annotated[AnyRequest, OneOf(REQUESTS)]
"""Anything of which a plan can be asked for, by the kind of its action."""
