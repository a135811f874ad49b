"""What is true of the action."""

from __future__ import annotations

from typing import Final

from icewright.model.actions.action_types import ActionTraits, RunsOn
from tests.toy_action.model import CountSnapshots, CountSnapshotsFigures, CountSnapshotsPrediction

TRAITS: Final = ActionTraits(
    CountSnapshots,
    CountSnapshotsFigures,
    CountSnapshotsPrediction,
    names=lambda _action: 1,
    runs_on=RunsOn.SERVER,
)
