"""The first schema: the queue of tasks, what is known of tables, plans, the inbox of events, and optimizers seen."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Create everything, and the counter of fencing tokens at zero."""
    _create_tasks()
    _create_history()
    _create_tables()
    _create_inventory()
    _create_rest()
    op.execute("INSERT INTO counters (name, value) VALUES ('fencing_token', 0)")


def _create_tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("kind", KEY, nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("plan_id", KEY, nullable=False),
        sa.Column("resource_group", KEY, nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("ranked_at", sa.BigInteger(), nullable=False),
        sa.Column("attempts_max", sa.Integer(), nullable=False),
        sa.Column("state", KEY, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("not_before_at", sa.BigInteger(), nullable=False),
        sa.Column("lease_optimizer_id", KEY),
        sa.Column("lease_fencing_token", sa.BigInteger()),
        sa.Column("lease_expires_at", sa.BigInteger()),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("action", sa.LargeBinary(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("prediction", sa.Text(), nullable=False),
        sa.Column("progress", sa.Text()),
        sa.Column("outcome", sa.Text()),
        sa.CheckConstraint(
            "(state IN ('running', 'in_doubt')) = (lease_fencing_token IS NOT NULL)"
            " AND (lease_fencing_token IS NULL) = (lease_optimizer_id IS NULL)"
            " AND (lease_fencing_token IS NULL) = (lease_expires_at IS NULL)",
            name="ck_tasks_lease",
        ),
        sa.PrimaryKeyConstraint("task_id", name="pk_tasks"),
    )
    op.create_index(
        "ix_tasks_queue",
        "tasks",
        ["resource_group", "ranked_at", "task_id"],
        sqlite_where=sa.text("state IN ('queued')"),
        postgresql_where=sa.text("state IN ('queued')"),
    )
    op.create_index("ix_tasks_state", "tasks", ["state", "task_id"])
    op.create_index("ix_tasks_table", "tasks", ["catalog", "table_uuid", "task_id"])
    op.create_index(
        "uq_tasks_active_table",
        "tasks",
        ["catalog", "table_uuid"],
        unique=True,
        sqlite_where=sa.text("state IN ('committed', 'in_doubt', 'running')"),
        postgresql_where=sa.text("state IN ('committed', 'in_doubt', 'running')"),
    )
    op.create_index(
        "uq_tasks_live_kind",
        "tasks",
        ["catalog", "table_uuid", "kind"],
        unique=True,
        sqlite_where=sa.text("state IN ('committed', 'in_doubt', 'queued', 'running')"),
        postgresql_where=sa.text("state IN ('committed', 'in_doubt', 'queued', 'running')"),
    )


def _create_history() -> None:
    op.create_table(
        "counters",
        sa.Column("name", KEY, nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    op.create_table(
        "task_history",
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("state", KEY, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.task_id"], name="fk_task_history_task"),
        sa.PrimaryKeyConstraint("task_id", "version", name="pk_task_history"),
    )
    op.create_table(
        "attempts",
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("optimizer_id", KEY, nullable=False),
        sa.Column("fencing_token", sa.BigInteger(), nullable=False),
        sa.Column("state", KEY, nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("progress", sa.Text()),
        sa.Column("report", sa.Text()),
        sa.PrimaryKeyConstraint("task_id", "attempt", name="pk_attempts"),
        sa.UniqueConstraint("fencing_token", name="uq_attempts_fencing_token"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.task_id"], name="fk_attempts_task"),
    )


def _create_tables() -> None:
    op.create_table(
        "tables",
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("name_digest", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("metadata_location", sa.Text(), nullable=False),
        sa.Column("snapshot_id", sa.BigInteger()),
        sa.Column("format_version", sa.Integer(), nullable=False),
        sa.Column("observed_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("commit_interval_ms", sa.BigInteger()),
        sa.Column("next_look_at", sa.BigInteger(), nullable=False),
        sa.Column("plan_id", KEY),
        sa.Column("problem", sa.Text()),
        sa.Column("dropped_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("catalog", "table_uuid", name="pk_tables"),
    )
    op.create_index(
        "ix_tables_due",
        "tables",
        ["next_look_at"],
        sqlite_where=sa.text("dropped_at IS NULL"),
        postgresql_where=sa.text("dropped_at IS NULL"),
    )
    op.create_index(
        "uq_tables_name",
        "tables",
        ["name_digest"],
        unique=True,
        sqlite_where=sa.text("dropped_at IS NULL"),
        postgresql_where=sa.text("dropped_at IS NULL"),
    )


def _create_inventory() -> None:
    op.create_table(
        "manifests",
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("key_digest", KEY, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("length_bytes", sa.BigInteger(), nullable=False),
        sa.Column("added_snapshot_id", sa.BigInteger(), nullable=False),
        sa.Column("content", KEY, nullable=False),
        sa.Column("summary", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["catalog", "table_uuid"], ["tables.catalog", "tables.table_uuid"], name="fk_manifests_table"
        ),
        sa.PrimaryKeyConstraint("catalog", "table_uuid", "key_digest", name="pk_manifests"),
    )
    op.create_table(
        "partitions",
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("spec_id", sa.Integer(), nullable=False),
        sa.Column("values_digest", KEY, nullable=False),
        sa.Column("partition_values", KEY, nullable=False),
        sa.Column("statistics", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["catalog", "table_uuid"], ["tables.catalog", "tables.table_uuid"], name="fk_partitions_table"
        ),
        sa.PrimaryKeyConstraint("catalog", "table_uuid", "spec_id", "values_digest", name="pk_partitions"),
    )


def _create_rest() -> None:
    op.create_table(
        "plans",
        sa.Column("plan_id", KEY, nullable=False),
        sa.Column("catalog", KEY, nullable=False),
        sa.Column("table_uuid", KEY, nullable=False),
        sa.Column("planned_at", sa.BigInteger(), nullable=False),
        sa.Column("plan", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("plan_id", name="pk_plans"),
    )
    op.create_index("ix_plans_table", "plans", ["catalog", "table_uuid", "planned_at", "plan_id"])
    op.create_table(
        "inbox",
        sa.Column("event_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name_digest", KEY, nullable=False),
        sa.Column("snapshot_id", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("done_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("event_id", name="pk_inbox"),
        sa.UniqueConstraint("name_digest", "snapshot_id", name="uq_inbox_snapshot"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_inbox_waiting",
        "inbox",
        ["event_id"],
        sqlite_where=sa.text("done_at IS NULL"),
        postgresql_where=sa.text("done_at IS NULL"),
    )
    op.create_table(
        "optimizers",
        sa.Column("optimizer_id", KEY, nullable=False),
        sa.Column("hello", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("optimizer_id", name="pk_optimizers"),
    )
