"""The tables of the database. What is queried or constrained is a column; everything else lies in JSON documents.

The migrations build the same thing step by step; a test compares the two.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    ForeignKeyConstraint,
    FromClause,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    and_,
    literal_column,
)

from icewright.model.actions.traits import TableSlot
from icewright.model.work.lifecycle import LEASED_STATES, LIVE_STATES
from icewright.model.work.tasks import ACTIVE_STATES, TERMINAL_STATES, TaskState
from icewright.store.schema_access import Key as _Key
from icewright.store.schema_access import metadata

FENCING_TOKEN = "fencing_token"  # noqa: S105 - a counter's name, not a secret
SERVER_EPOCH = "server_epoch"
LEADER_UNTIL = "leader_until"
LEADER_SESSION = "leader_session"
"""The process of PostgreSQL that serves the session of the leader."""
RESTORED_AT = "restored_at"
"""When the store was made from a backup; there is no such counter where it never was."""

counters = Table(
    "counters",
    metadata,
    Column("name", _Key, nullable=False),
    Column("value", BigInteger, nullable=False),
    PrimaryKeyConstraint("name", name="pk_counters"),
)

# Sums over all that ever happened; whoever changes a task adds to them in the same transaction.
totals = Table(
    "totals",
    metadata,
    Column("total", _Key, nullable=False),
    Column("kind", _Key, nullable=False),
    Column("by", _Key, nullable=False),
    Column("amount", BigInteger, nullable=False),
    PrimaryKeyConstraint("total", "kind", "by", name="pk_totals"),
)

tasks = Table(
    "tasks",
    metadata,
    Column("task_id", _Key, nullable=False),
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("kind", _Key, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("plan_id", _Key, nullable=False),
    Column("resource_group", _Key, nullable=False),
    Column("lane", _Key, nullable=False, server_default="normal/normal/"),
    Column("priority", BigInteger, nullable=False),
    Column("ranked_at", BigInteger, nullable=False),
    Column("attempts_max", Integer, nullable=False),
    Column("state", _Key, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("not_before_at", BigInteger, nullable=False),
    Column("lease_optimizer_id", _Key),
    Column("lease_fencing_token", BigInteger),
    Column("lease_expires_at", BigInteger),
    Column("held_cores", BigInteger),  # by the lease, of the resource group; NULL where that is not known
    Column("held_memory_bytes", BigInteger),
    Column("held_resident", Boolean),
    Column("cancel_requested", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("prediction", Text, nullable=False),
    Column("progress", Text),
    Column("outcome", Text),
    Column("figures", Text),  # of the action; NULL for tasks that are older than the column
    Column("shareable_bytes", BigInteger),  # NULL for tasks that may share no Spark job, or are older than it
    Column("table_slot", _Key, nullable=False, server_default=TableSlot.TABLE.value),  # by the kind
    PrimaryKeyConstraint("task_id", name="pk_tasks"),
    # A lease is whole or absent, and there is one exactly while an attempt may be at work.
    CheckConstraint(
        "(state IN ('running', 'in_doubt')) = (lease_fencing_token IS NOT NULL)"
        " AND (lease_fencing_token IS NULL) = (lease_optimizer_id IS NULL)"
        " AND (lease_fencing_token IS NULL) = (lease_expires_at IS NULL)",
        name="ck_tasks_lease",
    ),
)


def state_is(*states: TaskState, of: FromClause = tasks) -> ColumnElement[bool]:
    """A condition on the state of tasks, spelled out: no planner matches a partial index with a bound parameter."""
    return of.c.state.in_([literal_column(f"'{state.value}'") for state in sorted(states)])


def holds(slot: TableSlot, of: FromClause = tasks) -> ColumnElement[bool]:
    """A condition on tasks: they hold a slot of their table, alone or with the other one; spelled out as states are."""
    return of.c.table_slot.in_([literal_column(f"'{held.value}'") for held in (slot, TableSlot.TABLE)])


# The promises that no code can break: one active task per table and slot, one live task per table and kind of action.
SINGLE_SLOTS = (TableSlot.DATA, TableSlot.METADATA)
_ACTIVE = {slot: and_(state_is(*ACTIVE_STATES), holds(slot)) for slot in SINGLE_SLOTS}
_LIVE = state_is(*LIVE_STATES)
_QUEUED = state_is(TaskState.QUEUED)
for _slot, _is_active in _ACTIVE.items():
    Index(
        f"uq_tasks_active_{_slot.value}",
        tasks.c.catalog,
        tasks.c.table_uuid,
        unique=True,
        sqlite_where=_is_active,
        postgresql_where=_is_active,
    )
Index(
    "uq_tasks_live_kind",
    tasks.c.catalog,
    tasks.c.table_uuid,
    tasks.c.kind,
    unique=True,
    sqlite_where=_LIVE,
    postgresql_where=_LIVE,
)
Index(
    "ix_tasks_queue",
    tasks.c.resource_group,
    tasks.c.lane,
    tasks.c.ranked_at,
    tasks.c.task_id,
    tasks.c.not_before_at,
    sqlite_where=_QUEUED,
    postgresql_where=_QUEUED,
)
_SHAREABLE = and_(_QUEUED, tasks.c.shareable_bytes.is_not(None))
Index(
    "ix_tasks_shareable",
    tasks.c.resource_group,
    tasks.c.lane,
    tasks.c.ranked_at,
    tasks.c.task_id,
    tasks.c.shareable_bytes,
    sqlite_where=_SHAREABLE,
    postgresql_where=_SHAREABLE,
)
_LEASED = state_is(*LEASED_STATES)
Index("ix_tasks_held", tasks.c.resource_group, sqlite_where=_LEASED, postgresql_where=_LEASED)
_ENDED = state_is(*TERMINAL_STATES)
Index(
    "ix_tasks_ended", tasks.c.state, tasks.c.updated_at, tasks.c.task_id, sqlite_where=_ENDED, postgresql_where=_ENDED
)
Index(
    "ix_tasks_group_ended",
    tasks.c.resource_group,
    tasks.c.updated_at,
    tasks.c.task_id,
    sqlite_where=_ENDED,
    postgresql_where=_ENDED,
)
Index("ix_tasks_table", tasks.c.catalog, tasks.c.table_uuid, tasks.c.task_id)
Index("ix_tasks_state", tasks.c.state, tasks.c.task_id)
Index("ix_tasks_plan", tasks.c.plan_id)

# What a task is to do, packed: megabytes where it names many files. Apart from the rest, which changes all the time.
task_actions = Table(
    "task_actions",
    metadata,
    Column("task_id", _Key, nullable=False),
    Column("digest", _Key, nullable=False),  # of the packed action: whoever has seen it need not read it again
    Column("action", LargeBinary, nullable=False),
    PrimaryKeyConstraint("task_id", name="pk_task_actions"),
    ForeignKeyConstraint(["task_id"], ["tasks.task_id"], name="fk_task_actions_task"),
)

task_history = Table(
    "task_history",
    metadata,
    Column("task_id", _Key, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("state", _Key, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("task_id", "version", name="pk_task_history"),
    ForeignKeyConstraint(["task_id"], ["tasks.task_id"], name="fk_task_history_task"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("task_id", _Key, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("optimizer_id", _Key, nullable=False),
    Column("fencing_token", BigInteger, nullable=False),
    Column("state", _Key, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("progress", Text),
    Column("report", Text),
    PrimaryKeyConstraint("task_id", "attempt", name="pk_attempts"),
    UniqueConstraint("fencing_token", name="uq_attempts_fencing_token"),
    ForeignKeyConstraint(["task_id"], ["tasks.task_id"], name="fk_attempts_task"),
)

tables = Table(
    "tables",
    metadata,
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("name_digest", _Key, nullable=False),
    Column("name", Text, nullable=False),
    Column("metadata_location", Text, nullable=False),
    Column("snapshot_id", BigInteger),
    Column("format_version", Integer, nullable=False),
    Column("observed_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("commit_interval_ms", BigInteger),
    Column("next_look_at", BigInteger, nullable=False),
    Column("plan_id", _Key),
    Column("problem", Text),
    Column("dropped_at", BigInteger),
    Column("marks", Text),  # of when snapshots were first seen; NULL where there are none
    Column("reporting", Text),  # how well its commits are reported; NULL before the first look that counts them
    Column("commits_told", BigInteger, nullable=False, server_default="0"),
    Column("commits_sweep_only", BigInteger, nullable=False, server_default="0"),
    Column("properties", LargeBinary),  # as they were last seen; NULL until then, and where they are too many
    Column("storage_root", Text),
    Column("considered", Text),
    Column("unparked_at", BigInteger),
    Column("listed", Text),
    Column("revision", BigInteger, nullable=False, server_default="1"),  # what a writer compares that read before
    PrimaryKeyConstraint("catalog", "table_uuid", name="pk_tables"),
)
_PRESENT = tables.c.dropped_at.is_(None)
_DROPPED = tables.c.dropped_at.is_not(None)
Index("uq_tables_name", tables.c.name_digest, unique=True, sqlite_where=_PRESENT, postgresql_where=_PRESENT)
Index("ix_tables_dropped", tables.c.dropped_at, sqlite_where=_DROPPED, postgresql_where=_DROPPED)
Index("ix_tables_due", tables.c.next_look_at, sqlite_where=_PRESENT, postgresql_where=_PRESENT)

# What lists of tables are sorted and filtered by, written with the record: a row for each table that is not dropped.
# Names may be longer than an index takes, so that they are sorted by their beginning. A health of -1 is not known.
listed_tables = Table(
    "listed_tables",
    metadata,
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("name", _Key, nullable=False),
    Column("sort_name", _Key, nullable=False),
    Column("namespace", _Key, nullable=False),
    Column("mode", _Key, nullable=False),
    Column("health", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("data_files", BigInteger, nullable=False),
    Column("small_files", BigInteger, nullable=False),
    Column("delete_files", BigInteger, nullable=False),
    Column("failing", BigInteger, nullable=False),
    Column("observed_at", BigInteger, nullable=False),
    Column("last_task_at", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),  # grows with changes of all but observed_at; 0 has no number yet
    PrimaryKeyConstraint("catalog", "table_uuid", name="pk_listed_tables"),
)
for _sorted_by in (
    "sort_name",
    "health",
    "size_bytes",
    "data_files",
    "small_files",
    "delete_files",
    "observed_at",
    "last_task_at",
    "changed",
):
    Index(
        f"ix_listed_tables_{_sorted_by}",
        listed_tables.c[_sorted_by],
        listed_tables.c.catalog,
        listed_tables.c.table_uuid,
    )

LISTED_CHANGED = "listed_tables_changed"
"""The counter that has the number of the latest change of a row of ``listed_tables``."""
UNNUMBERED = 0
"""In place of the number of a change that has none yet."""

table_series = Table(
    "table_series",
    metadata,
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("points", LargeBinary, nullable=False),
    PrimaryKeyConstraint("catalog", "table_uuid", name="pk_table_series"),
)

waiting_plans = Table(
    "waiting_plans",
    metadata,
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("kind", _Key, nullable=False),
    Column("plan_id", _Key, nullable=False),
    Column("waiting", Text, nullable=False),
    PrimaryKeyConstraint("catalog", "table_uuid", "kind", name="pk_waiting_plans"),
)
Index("uq_waiting_plans_plan", waiting_plans.c.plan_id, unique=True)

refused_plans = Table(
    "refused_plans",
    metadata,
    Column("plan_id", _Key, nullable=False),
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("refused_at", BigInteger, nullable=False),
    Column("refusal", Text, nullable=False),
    PrimaryKeyConstraint("plan_id", name="pk_refused_plans"),
)
Index("ix_refused_plans_table", refused_plans.c.catalog, refused_plans.c.table_uuid, refused_plans.c.refused_at)

manifests = Table(
    "manifests",
    metadata,
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("key_digest", _Key, nullable=False),
    Column("path", Text, nullable=False),
    Column("length_bytes", BigInteger, nullable=False),
    Column("added_snapshot_id", BigInteger, nullable=False),
    Column("content", _Key, nullable=False),
    Column("summary", LargeBinary, nullable=False),
    PrimaryKeyConstraint("catalog", "table_uuid", "key_digest", name="pk_manifests"),
    ForeignKeyConstraint(["catalog", "table_uuid"], ["tables.catalog", "tables.table_uuid"], name="fk_manifests_table"),
)

partitions = Table(
    "partitions",
    metadata,
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("spec_id", Integer, nullable=False),
    Column("values_digest", _Key, nullable=False),
    Column("partition_values", _Key, nullable=False),
    Column("statistics", Text, nullable=False),
    PrimaryKeyConstraint("catalog", "table_uuid", "spec_id", "values_digest", name="pk_partitions"),
    ForeignKeyConstraint(
        ["catalog", "table_uuid"], ["tables.catalog", "tables.table_uuid"], name="fk_partitions_table"
    ),
)

runs = Table(
    "runs",
    metadata,
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("snapshot_id", BigInteger, nullable=False),
    Column("level", _Key, nullable=False),
    Column("layout", Text, nullable=False),
    Column("committed_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("catalog", "table_uuid", "snapshot_id", name="pk_runs"),
    ForeignKeyConstraint(["catalog", "table_uuid"], ["tables.catalog", "tables.table_uuid"], name="fk_runs_table"),
)

plans = Table(
    "plans",
    metadata,
    Column("plan_id", _Key, nullable=False),
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("planned_at", BigInteger, nullable=False),
    Column("plan", LargeBinary, nullable=False),
    Column("asked_by", Text),  # NULL for plans that nobody asked for, or are older than the column
    PrimaryKeyConstraint("plan_id", name="pk_plans"),
)
Index("ix_plans_table", plans.c.catalog, plans.c.table_uuid, plans.c.planned_at, plans.c.plan_id)

optimizers = Table(
    "optimizers",
    metadata,
    Column("optimizer_id", _Key, nullable=False),
    Column("hello", Text, nullable=False),
    Column("seen_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("optimizer_id", name="pk_optimizers"),
)

worker_access = Table(
    "worker_access",
    metadata,
    Column("catalog", _Key, nullable=False),
    Column("root_digest", _Key, nullable=False),
    Column("record", Text, nullable=False),
    Column("decided_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("catalog", "root_digest", name="pk_worker_access"),
)

# Unneeded files, as the last finished pass over a table has them: chunks of many each, since there may be a million.
orphan_passes = Table(
    "orphan_passes",
    metadata,
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("begun", BigInteger, nullable=False),
    Column("finished_number", BigInteger, nullable=False),  # 0 before the first
    Column("finished", Text),
    PrimaryKeyConstraint("catalog", "table_uuid", name="pk_orphan_passes"),
)

orphan_sightings = Table(
    "orphan_sightings",
    metadata,
    Column("catalog", _Key, nullable=False),
    Column("table_uuid", _Key, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("chunk", BigInteger, nullable=False),
    Column("sightings", LargeBinary, nullable=False),
    PrimaryKeyConstraint("catalog", "table_uuid", "number", "chunk", name="pk_orphan_sightings"),
    ForeignKeyConstraint(
        ["catalog", "table_uuid"],
        ["orphan_passes.catalog", "orphan_passes.table_uuid"],
        name="fk_orphan_sightings_pass",
    ),
)

claims = Table(
    "claims",
    metadata,
    Column("catalog", _Key, nullable=False),
    Column("name_digest", _Key, nullable=False),
    Column("claim", Text, nullable=False),
    Column("changed", BigInteger, nullable=False, server_default="0"),  # by CLAIMS_CHANGED, in the order of writers
    PrimaryKeyConstraint("catalog", "name_digest", name="pk_claims"),
)
Index("ix_claims_changed", claims.c.changed)

CLAIMS_CHANGED = "claims_changed"
"""The counter that has the number of the latest change of a row of ``claims``."""
