"""Estimates have the model behind their bytes, and lookups by column: those of before are brought into that form.

Documents are read strictly, so one in an older form would make its task or plan unreadable.
"""

from __future__ import annotations

from typing import Any

from icewright.adapters.sql.migrations.documents import renew_predictions

revision = "0007"
down_revision: str | None = "0006"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Rewrite the estimates of tasks and plans. What a lookup would open is left out: only the worst was known."""
    renew_predictions(_renewed)


def _renewed(prediction: dict[str, Any]) -> dict[str, Any] | None:
    estimate = prediction.get("estimate")
    if estimate is None or "modelled_bytes" in estimate:
        return None
    kept = {key: value for key, value in estimate.items() if key != "lookup"}
    reason = {"code": "output-bytes", "text": "all rows were taken to be equally large", "figures": {}}
    return {
        **prediction,
        "estimate": {**kept, "modelled_bytes": estimate["output_bytes"], "output_reason": reason},
    }
