"""Predictions say of which kind of action they are, since there are several kinds now: those of before are rewrites'.

Documents are read strictly, so one without its kind would make its task or plan unreadable.
"""

from __future__ import annotations

from typing import Any

from icewright.adapters.sql.migrations.documents import renew_predictions

revision = "0008"
down_revision: str | None = "0007"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None


def upgrade() -> None:
    """Give the predictions of tasks and plans their kind."""
    renew_predictions(_renewed)


def _renewed(prediction: dict[str, Any]) -> dict[str, Any] | None:
    return None if "kind" in prediction else {"kind": "rewrite_data_files", **prediction}
