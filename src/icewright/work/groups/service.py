"""Whose turn an action is: the optimizers', or one of the server's own threads."""

from __future__ import annotations

from typing import Final

from icewright.model.actions.actions import Action, traits_of
from icewright.model.actions.traits import RunsOn
from icewright.model.policy.resource_groups import DEFAULT_GROUP

SERVER: Final = "server"
"""The resource group of what the server carries out itself, and the name under which it does."""
SERVER_FILES: Final = "server-files"
"""The same of what removes files: it may take hours, so that it must be in nobody's way."""
OWN: Final = (SERVER, SERVER_FILES)
"""Names that no optimizer may have."""
_GROUPS: Final = {RunsOn.OPTIMIZER: DEFAULT_GROUP, RunsOn.SERVER: SERVER, RunsOn.SERVER_FILES: SERVER_FILES}


def resource_group(action: Action) -> str:
    """Whose turn an action is: the optimizers', or the server's own."""
    return _GROUPS[traits_of(action.kind).runs_on]
