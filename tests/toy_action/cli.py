"""The action as the command line shows it."""

from __future__ import annotations

from typing import Final

from icewright.plans.action_types import ActionWords
from tests.toy_action.model import CountSnapshotsFigures, CountSnapshotsPrediction

WORDS: Final = ActionWords(
    CountSnapshotsPrediction,
    CountSnapshotsFigures,
    predicted=lambda said, _view: [("counts", f"{said.snapshots:,} snapshots")],
    work=lambda said: f"{said.snapshots:,} snapshots are counted",
)
