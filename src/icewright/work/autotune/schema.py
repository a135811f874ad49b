"""The table of decisions of autotuning; see :mod:`icewright.store.schema`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, PrimaryKeyConstraint, Table, Text, literal_column

from icewright.store.schema_access import Key, metadata
from icewright.work.autotune.model import STANDING

decisions = Table(
    "autotune_decisions",
    metadata,
    Column("decision_id", Key, nullable=False),
    Column("resource_group", Key, nullable=False),
    Column("queue", Key, nullable=False),
    Column("about", Key, nullable=False),
    Column("move", Key, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("state", Key, nullable=False),
    Column("ended_at", BigInteger),
    Column("held_at", BigInteger),
    Column("decision", Text, nullable=False),
    PrimaryKeyConstraint("decision_id", name="pk_autotune_decisions"),
)
SUBJECT = (decisions.c.resource_group, decisions.c.queue, decisions.c.about)
# Spelled out: no planner matches a partial index with a bound parameter.
IS_STANDING = decisions.c.state.in_([literal_column(f"'{state.value}'") for state in sorted(STANDING)])
# The promise that no code can break: one decision of a subject stands.
Index(
    "uq_autotune_decisions_standing",
    *SUBJECT,
    unique=True,
    sqlite_where=IS_STANDING,
    postgresql_where=IS_STANDING,
)
Index("ix_autotune_decisions_of", *SUBJECT, decisions.c.made_at, decisions.c.decision_id)
Index("ix_autotune_decisions_made", decisions.c.made_at, decisions.c.decision_id)
Index("ix_autotune_decisions_ended", decisions.c.ended_at)
