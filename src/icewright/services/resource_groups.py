"""Whose turn an action is: the optimizers', or one of the server's own threads."""

from __future__ import annotations

from typing import Final

from icewright.domain.actions import ACTIONS_OF_THE_SERVER, FILE_MOVES, Action
from icewright.domain.resource_groups import DEFAULT_GROUP

SERVER: Final = "server"
"""The resource group of what the server carries out itself, and the name under which it does."""
SERVER_FILES: Final = "server-files"
"""The same of what removes files: it may take hours, so that it must be in nobody's way."""
OWN: Final = (SERVER, SERVER_FILES)
"""Names that no optimizer may have."""


def resource_group(action: Action) -> str:
    """Whose turn an action is: the optimizers', or the server's own."""
    if action.kind in FILE_MOVES:
        return SERVER_FILES
    return SERVER if action.kind in ACTIONS_OF_THE_SERVER else DEFAULT_GROUP
