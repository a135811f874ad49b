"""Predictions say of which kind of action they are, since there are several kinds now: those of before are rewrites'.

Documents are read strictly, so one without its kind would make its task or plan unreadable.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision: str | None = "0007"
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

_PAGE = 500
_KIND = {"kind": "rewrite_data_files"}


def upgrade() -> None:
    """Rewrite the predictions of tasks and plans."""
    tasks = sa.table("tasks", sa.column("task_id", sa.Text), sa.column("prediction", sa.Text))
    plans = sa.table("plans", sa.column("plan_id", sa.Text), sa.column("plan", sa.LargeBinary))
    _rewrite(tasks, tasks.c.task_id, tasks.c.prediction)
    _rewrite(plans, plans.c.plan_id, plans.c.plan)


def _rewrite(table: sa.TableClause, key: sa.ColumnClause[str], document: sa.ColumnClause[Any]) -> None:
    connection, last = op.get_bind(), ""
    while True:
        page = connection.execute(sa.select(key, document).where(key > last).order_by(key).limit(_PAGE)).all()
        for found, stored in page:
            renewed = _renewed(stored)
            if renewed is not None:
                connection.execute(sa.update(table).where(key == found).values({document: renewed}))
        if len(page) < _PAGE:
            return
        last = page[-1][0]


def _renewed(stored: str | bytes) -> str | bytes | None:
    """A task's prediction or a plan, which is packed, in the new form; None where it has that already."""
    value = json.loads(stored if isinstance(stored, str) else zlib.decompress(stored))
    prediction = value if isinstance(stored, str) else value["prediction"]
    if prediction is None or "kind" in prediction:
        return None
    kinded = {**_KIND, **prediction}
    value = kinded if isinstance(stored, str) else {**value, "prediction": kinded}
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text if isinstance(stored, str) else zlib.compress(text.encode("ascii"))
