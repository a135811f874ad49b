"""Documents that migrations bring into a newer form, page by page: a store may have millions."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

_PAGE = 500

Renewed = Callable[[dict[str, Any]], dict[str, Any] | None]
"""The new form of a document; None where it has that already."""


def renew_predictions(renewed: Renewed) -> None:
    """Rewrite the predictions of all tasks, and those within plans, which are packed."""
    tasks = sa.table("tasks", sa.column("task_id", sa.Text), sa.column("prediction", sa.Text))
    plans = sa.table("plans", sa.column("plan_id", sa.Text), sa.column("plan", sa.LargeBinary))

    def of_task(stored: str) -> str | None:
        found = renewed(json.loads(stored))
        return None if found is None else _text(found)

    def of_plan(stored: bytes) -> bytes | None:
        plan = json.loads(zlib.decompress(stored))
        found = None if plan["prediction"] is None else renewed(plan["prediction"])
        return None if found is None else zlib.compress(_text({**plan, "prediction": found}).encode("ascii"))

    _rewrite(tasks, tasks.c.task_id, tasks.c.prediction, of_task)
    _rewrite(plans, plans.c.plan_id, plans.c.plan, of_plan)


def _rewrite(
    table: sa.TableClause,
    key: sa.ColumnClause[str],
    document: sa.ColumnClause[Any],
    renewed: Callable[[Any], Any],
) -> None:
    connection, last = op.get_bind(), ""
    while True:
        page = connection.execute(sa.select(key, document).where(key > last).order_by(key).limit(_PAGE)).all()
        for found, stored in page:
            new = renewed(stored)
            if new is not None:
                connection.execute(sa.update(table).where(key == found).values({document: new}))
        if len(page) < _PAGE:
            return
        last = page[-1][0]


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)
