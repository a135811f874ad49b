"""Conditions on rows that several parts of the database share."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Column, create_engine, select, text
from sqlalchemy.dialects import sqlite

from icewright.events.schema import inbox
from icewright.queries.schema import query_templates
from icewright.store.table_rows import is_one_of

INBOX = inbox.c.name_digest, inbox.c.snapshot_id
TEMPLATES = tuple(query_templates.c[name] for name in ("catalog", "table_uuid", "week_at", "fingerprint"))


@pytest.mark.parametrize("count", [1, 2, 400])
@pytest.mark.parametrize("columns", [INBOX, TEMPLATES], ids=["inbox", "templates"])
def test_rows_are_looked_up_and_the_table_is_not_read(columns: tuple[Column[Any], ...], count: int) -> None:
    engine = create_engine("sqlite://")
    columns[0].table.metadata.create_all(engine)
    rows = [
        [number if column.type.python_type is int else str(number) for column in columns] for number in range(count)
    ]
    query = select(*columns).where(is_one_of(columns, rows))
    statement = query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    with engine.connect() as connection:
        plan = [str(step[3]) for step in connection.execute(text(f"EXPLAIN QUERY PLAN {statement}"))]
    assert plan
    assert not [step for step in plan if step.startswith("SCAN")]


def test_nothing_is_one_of_no_rows() -> None:
    assert str(is_one_of(INBOX, [])) == "false"
