"""The schema of the first release, as plain SQL: what later versions make of ``schema.py`` changes nothing here.

It has the number of the last of 39 migrations that there were before: a store that they had made is at this schema.
"""

from __future__ import annotations

import re

from alembic import op

revision = "0039"
down_revision: str | None = None
branch_labels: tuple[str, ...] | None = None
depends_on: tuple[str, ...] | None = None

_TYPES = {
    "postgresql": {r"\{key\}": 'TEXT COLLATE "C"'},
    "sqlite": {
        r"\{key\}": "TEXT",
        r"BYTEA": "BLOB",
        r"DEFAULT false": "DEFAULT 0",
        r"BIGSERIAL CONSTRAINT \w+ PRIMARY KEY": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
    },
}
"""The schema is written for PostgreSQL; ``{key}`` is a text that sorts by code point, as Python compares."""

_SCHEMA = """
CREATE TABLE counters (
    name {key} NOT NULL, value BIGINT NOT NULL,
    CONSTRAINT pk_counters PRIMARY KEY (name)
);
CREATE TABLE totals (
    total {key} NOT NULL, kind {key} NOT NULL, "by" {key} NOT NULL, amount BIGINT NOT NULL,
    CONSTRAINT pk_totals PRIMARY KEY (total, kind, "by")
);
CREATE TABLE tasks (
    task_id {key} NOT NULL, catalog {key} NOT NULL, table_uuid {key} NOT NULL, kind {key} NOT NULL,
    table_name TEXT NOT NULL, plan_id {key} NOT NULL, resource_group {key} NOT NULL, priority BIGINT NOT NULL,
    ranked_at BIGINT NOT NULL, attempts_max INTEGER NOT NULL, state {key} NOT NULL, version BIGINT NOT NULL,
    attempt INTEGER NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, not_before_at BIGINT NOT NULL,
    lease_optimizer_id {key}, lease_fencing_token BIGINT, lease_expires_at BIGINT, cancel_requested BOOLEAN NOT NULL,
    reason TEXT NOT NULL, prediction TEXT NOT NULL, progress TEXT, outcome TEXT, figures TEXT, shareable_bytes BIGINT,
    lane {key} DEFAULT 'normal/normal/' NOT NULL, held_cores BIGINT, held_memory_bytes BIGINT, held_resident BOOLEAN,
    CONSTRAINT pk_tasks PRIMARY KEY (task_id),
    CONSTRAINT ck_tasks_lease CHECK ((state IN ('running', 'in_doubt')) = (lease_fencing_token IS NOT NULL)
        AND (lease_fencing_token IS NULL) = (lease_optimizer_id IS NULL)
        AND (lease_fencing_token IS NULL) = (lease_expires_at IS NULL))
);
CREATE INDEX ix_tasks_ended ON tasks (state, updated_at, task_id)
    WHERE state IN ('cancelled', 'failed', 'succeeded', 'superseded');
CREATE INDEX ix_tasks_group_ended ON tasks (resource_group, updated_at, task_id)
    WHERE state IN ('cancelled', 'failed', 'succeeded', 'superseded');
CREATE INDEX ix_tasks_held ON tasks (resource_group) WHERE state IN ('in_doubt', 'running');
CREATE INDEX ix_tasks_plan ON tasks (plan_id);
CREATE INDEX ix_tasks_queue ON tasks (resource_group, lane, ranked_at, task_id, not_before_at)
    WHERE state IN ('queued');
CREATE INDEX ix_tasks_shareable ON tasks (resource_group, lane, ranked_at, task_id, shareable_bytes)
    WHERE state IN ('queued') AND shareable_bytes IS NOT NULL;
CREATE INDEX ix_tasks_state ON tasks (state, task_id);
CREATE INDEX ix_tasks_table ON tasks (catalog, table_uuid, task_id);
CREATE UNIQUE INDEX uq_tasks_active_table ON tasks (catalog, table_uuid)
    WHERE state IN ('committed', 'in_doubt', 'running');
CREATE UNIQUE INDEX uq_tasks_live_kind ON tasks (catalog, table_uuid, kind)
    WHERE state IN ('committed', 'in_doubt', 'queued', 'running');
CREATE TABLE task_actions (
    task_id {key} NOT NULL, digest {key} NOT NULL, action BYTEA NOT NULL,
    CONSTRAINT pk_task_actions PRIMARY KEY (task_id),
    CONSTRAINT fk_task_actions_task FOREIGN KEY (task_id) REFERENCES tasks (task_id)
);
CREATE TABLE task_history (
    task_id {key} NOT NULL, version BIGINT NOT NULL, state {key} NOT NULL, attempt INTEGER NOT NULL,
    at BIGINT NOT NULL, reason TEXT NOT NULL,
    CONSTRAINT pk_task_history PRIMARY KEY (task_id, version),
    CONSTRAINT fk_task_history_task FOREIGN KEY (task_id) REFERENCES tasks (task_id)
);
CREATE TABLE attempts (
    task_id {key} NOT NULL, attempt INTEGER NOT NULL, optimizer_id {key} NOT NULL, fencing_token BIGINT NOT NULL,
    state {key} NOT NULL, started_at BIGINT NOT NULL, ended_at BIGINT, progress TEXT, report TEXT,
    CONSTRAINT pk_attempts PRIMARY KEY (task_id, attempt),
    CONSTRAINT uq_attempts_fencing_token UNIQUE (fencing_token),
    CONSTRAINT fk_attempts_task FOREIGN KEY (task_id) REFERENCES tasks (task_id)
);
CREATE TABLE tables (
    catalog {key} NOT NULL, table_uuid {key} NOT NULL, name_digest {key} NOT NULL, name TEXT NOT NULL,
    metadata_location TEXT NOT NULL, snapshot_id BIGINT, format_version INTEGER NOT NULL, observed_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL, commit_interval_ms BIGINT, next_look_at BIGINT NOT NULL, plan_id {key}, problem TEXT,
    dropped_at BIGINT, marks TEXT, reporting TEXT, commits_told BIGINT DEFAULT '0' NOT NULL,
    commits_sweep_only BIGINT DEFAULT '0' NOT NULL, properties BYTEA, storage_root TEXT,
    revision BIGINT DEFAULT '1' NOT NULL, considered TEXT, unparked_at BIGINT, listed TEXT,
    CONSTRAINT pk_tables PRIMARY KEY (catalog, table_uuid)
);
CREATE INDEX ix_tables_dropped ON tables (dropped_at) WHERE dropped_at IS NOT NULL;
CREATE INDEX ix_tables_due ON tables (next_look_at) WHERE dropped_at IS NULL;
CREATE UNIQUE INDEX uq_tables_name ON tables (name_digest) WHERE dropped_at IS NULL;
CREATE TABLE waiting_plans (
    catalog {key} NOT NULL, table_uuid {key} NOT NULL, kind {key} NOT NULL, plan_id {key} NOT NULL,
    waiting TEXT NOT NULL,
    CONSTRAINT pk_waiting_plans PRIMARY KEY (catalog, table_uuid, kind)
);
CREATE UNIQUE INDEX uq_waiting_plans_plan ON waiting_plans (plan_id);
CREATE TABLE manifests (
    catalog {key} NOT NULL, table_uuid {key} NOT NULL, key_digest {key} NOT NULL, path TEXT NOT NULL,
    length_bytes BIGINT NOT NULL, added_snapshot_id BIGINT NOT NULL, content {key} NOT NULL, summary BYTEA NOT NULL,
    CONSTRAINT pk_manifests PRIMARY KEY (catalog, table_uuid, key_digest),
    CONSTRAINT fk_manifests_table FOREIGN KEY (catalog, table_uuid) REFERENCES tables (catalog, table_uuid)
);
CREATE TABLE partitions (
    catalog {key} NOT NULL, table_uuid {key} NOT NULL, spec_id INTEGER NOT NULL, values_digest {key} NOT NULL,
    partition_values {key} NOT NULL, statistics TEXT NOT NULL,
    CONSTRAINT pk_partitions PRIMARY KEY (catalog, table_uuid, spec_id, values_digest),
    CONSTRAINT fk_partitions_table FOREIGN KEY (catalog, table_uuid) REFERENCES tables (catalog, table_uuid)
);
CREATE TABLE runs (
    catalog {key} NOT NULL, table_uuid {key} NOT NULL, snapshot_id BIGINT NOT NULL, level {key} NOT NULL,
    layout TEXT NOT NULL, committed_at BIGINT NOT NULL,
    CONSTRAINT pk_runs PRIMARY KEY (catalog, table_uuid, snapshot_id),
    CONSTRAINT fk_runs_table FOREIGN KEY (catalog, table_uuid) REFERENCES tables (catalog, table_uuid)
);
CREATE TABLE plans (
    plan_id {key} NOT NULL, catalog {key} NOT NULL, table_uuid {key} NOT NULL, planned_at BIGINT NOT NULL,
    "plan" BYTEA NOT NULL, asked_by TEXT,
    CONSTRAINT pk_plans PRIMARY KEY (plan_id)
);
CREATE INDEX ix_plans_table ON plans (catalog, table_uuid, planned_at, plan_id);
CREATE TABLE kept_of_tasks (
    task_id {key} NOT NULL, catalog {key} NOT NULL, table_uuid {key} NOT NULL, kept_at BIGINT NOT NULL,
    content BYTEA NOT NULL,
    CONSTRAINT pk_kept_of_tasks PRIMARY KEY (task_id)
);
CREATE INDEX ix_kept_of_tasks_age ON kept_of_tasks (kept_at, task_id);
CREATE TABLE inbox (
    event_id BIGSERIAL CONSTRAINT pk_inbox PRIMARY KEY, name_digest {key} NOT NULL, snapshot_id BIGINT,
    event TEXT NOT NULL, received_at BIGINT NOT NULL, done_at BIGINT, channel {key} DEFAULT 'http' NOT NULL,
    committed_at BIGINT, tries BIGINT DEFAULT '0' NOT NULL, tried_at BIGINT, trouble TEXT, reporter {key},
    catalog {key}, parked_at BIGINT,
    CONSTRAINT uq_inbox_snapshot UNIQUE (name_digest, snapshot_id)
);
CREATE INDEX ix_inbox_turns ON inbox (reporter, name_digest, event_id, tries, catalog, tried_at)
    WHERE done_at IS NULL AND parked_at IS NULL;
CREATE INDEX ix_inbox_waiting ON inbox (event_id) WHERE done_at IS NULL AND parked_at IS NULL;
CREATE TABLE event_cursors (
    name {key} NOT NULL, position BIGINT NOT NULL,
    CONSTRAINT pk_event_cursors PRIMARY KEY (name)
);
CREATE TABLE optimizers (
    optimizer_id {key} NOT NULL, hello TEXT NOT NULL, seen_at BIGINT NOT NULL,
    CONSTRAINT pk_optimizers PRIMARY KEY (optimizer_id)
);
CREATE TABLE worker_access (
    catalog {key} NOT NULL, root_digest {key} NOT NULL, record TEXT NOT NULL, decided_at BIGINT NOT NULL,
    CONSTRAINT pk_worker_access PRIMARY KEY (catalog, root_digest)
);
CREATE TABLE probes (
    catalog {key} NOT NULL, root_digest {key} NOT NULL, request TEXT NOT NULL, wanted_at BIGINT NOT NULL,
    optimizer_id TEXT, asked_at BIGINT,
    CONSTRAINT pk_probes PRIMARY KEY (catalog, root_digest)
);
CREATE TABLE unfit_files (
    catalog {key} NOT NULL, table_uuid {key} NOT NULL, code {key} NOT NULL, detail TEXT NOT NULL,
    found_at BIGINT NOT NULL,
    CONSTRAINT pk_unfit_files PRIMARY KEY (catalog, table_uuid, code)
);
CREATE TABLE orphan_passes (
    catalog {key} NOT NULL, table_uuid {key} NOT NULL, begun BIGINT NOT NULL, finished_number BIGINT NOT NULL,
    finished TEXT,
    CONSTRAINT pk_orphan_passes PRIMARY KEY (catalog, table_uuid)
);
CREATE TABLE orphan_sightings (
    catalog {key} NOT NULL, table_uuid {key} NOT NULL, number BIGINT NOT NULL, chunk BIGINT NOT NULL,
    sightings BYTEA NOT NULL,
    CONSTRAINT pk_orphan_sightings PRIMARY KEY (catalog, table_uuid, number, chunk),
    CONSTRAINT fk_orphan_sightings_pass FOREIGN KEY (catalog, table_uuid) REFERENCES orphan_passes (catalog, table_uuid)
);
CREATE TABLE claims (
    catalog {key} NOT NULL, name_digest {key} NOT NULL, claim TEXT NOT NULL,
    CONSTRAINT pk_claims PRIMARY KEY (catalog, name_digest)
);
CREATE TABLE deletion_runs (
    run_id {key} NOT NULL, catalog {key} NOT NULL, table_uuid {key} NOT NULL, plan_hash {key} NOT NULL,
    is_open BOOLEAN NOT NULL, next_at BIGINT NOT NULL, run TEXT NOT NULL, changed_at BIGINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_deletion_runs PRIMARY KEY (run_id)
);
CREATE INDEX ix_deletion_runs_age ON deletion_runs (changed_at, run_id);
CREATE INDEX ix_deletion_runs_table ON deletion_runs (catalog, table_uuid, run_id);
CREATE UNIQUE INDEX uq_deletion_runs_open ON deletion_runs (catalog, table_uuid) WHERE is_open;
CREATE TABLE deletion_intents (
    run_id {key} NOT NULL, number BIGINT NOT NULL, state {key} NOT NULL, version BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL, intent TEXT NOT NULL,
    CONSTRAINT pk_deletion_intents PRIMARY KEY (run_id, number),
    CONSTRAINT fk_deletion_intents_run FOREIGN KEY (run_id) REFERENCES deletion_runs (run_id)
);
CREATE INDEX ix_deletion_intents_held ON deletion_intents (run_id) WHERE state IN ('quarantined', 'unknown');
CREATE INDEX ix_deletion_intents_state ON deletion_intents (run_id, state, number);
CREATE TABLE deletion_approvals (
    plan_hash {key} NOT NULL, approval TEXT NOT NULL, approved_at BIGINT DEFAULT '0' NOT NULL, catalog {key},
    table_uuid {key}, plan_id {key},
    CONSTRAINT pk_deletion_approvals PRIMARY KEY (plan_hash)
);
CREATE INDEX ix_deletion_approvals_at ON deletion_approvals (approved_at, plan_hash);
CREATE TABLE policy_revisions (
    number BIGINT NOT NULL, revision BYTEA NOT NULL, replaced_at BIGINT,
    CONSTRAINT pk_policy_revisions PRIMARY KEY (number)
);
CREATE TABLE halts (
    kind {key} NOT NULL, name {key} NOT NULL, table_uuid {key} NOT NULL, halt TEXT NOT NULL,
    CONSTRAINT pk_halts PRIMARY KEY (kind, name, table_uuid)
);
CREATE TABLE turns (
    resource_group {key} NOT NULL, tenant {key} NOT NULL, fencing_token BIGINT NOT NULL,
    CONSTRAINT pk_turns PRIMARY KEY (resource_group, tenant)
);
CREATE TABLE submitters (
    submitter_id {key} NOT NULL, submitter TEXT NOT NULL, asked_at BIGINT NOT NULL,
    CONSTRAINT pk_submitters PRIMARY KEY (submitter_id)
);
CREATE TABLE servers (
    server_id {key} NOT NULL, url TEXT NOT NULL, version TEXT NOT NULL, epoch BIGINT, started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    CONSTRAINT pk_servers PRIMARY KEY (server_id)
);
CREATE TABLE feed (
    sequence BIGSERIAL CONSTRAINT pk_feed PRIMARY KEY, at BIGINT NOT NULL, kind {key} NOT NULL, parts {key} NOT NULL,
    once {key}, fact TEXT NOT NULL,
    CONSTRAINT uq_feed_once UNIQUE (once)
);
CREATE TABLE receivers (
    name {key} NOT NULL, position BIGINT NOT NULL, looked_at BIGINT NOT NULL, sent BIGINT NOT NULL,
    failed BIGINT NOT NULL, given_up BIGINT NOT NULL,
    CONSTRAINT pk_receivers PRIMARY KEY (name)
);
CREATE TABLE messages (
    number BIGSERIAL CONSTRAINT pk_messages PRIMARY KEY, message_id {key} NOT NULL, receiver {key} NOT NULL,
    state {key} NOT NULL, composed_at BIGINT NOT NULL, first_at BIGINT NOT NULL, next_at BIGINT NOT NULL,
    attempts INTEGER NOT NULL, problem TEXT NOT NULL, ended_at BIGINT, message TEXT NOT NULL,
    CONSTRAINT uq_messages_id UNIQUE (message_id)
);
CREATE INDEX ix_messages_composed ON messages (receiver, composed_at);
CREATE INDEX ix_messages_ended ON messages (state, ended_at);
CREATE INDEX ix_messages_waiting ON messages (receiver, number) WHERE state = 'waiting';
CREATE TABLE answers (
    name {key} NOT NULL, fingerprint {key} NOT NULL, until BIGINT NOT NULL, answer TEXT,
    CONSTRAINT pk_answers PRIMARY KEY (name)
);
CREATE INDEX ix_answers_until ON answers (until);
CREATE TABLE tokens (
    name {key} NOT NULL, digest {key} NOT NULL, hint TEXT NOT NULL, grants TEXT NOT NULL, created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL, expires_at BIGINT, last_used_at BIGINT, revoked_at BIGINT,
    CONSTRAINT pk_tokens PRIMARY KEY (name),
    CONSTRAINT uq_tokens_digest UNIQUE (digest)
);
CREATE TABLE login_codes (
    digest {key} NOT NULL, principal TEXT NOT NULL, until BIGINT NOT NULL, name {key} DEFAULT '""' NOT NULL,
    conditions TEXT DEFAULT '[]' NOT NULL, is_program BOOLEAN DEFAULT false NOT NULL,
    CONSTRAINT pk_login_codes PRIMARY KEY (digest)
);
CREATE TABLE sessions (
    digest {key} NOT NULL, principal TEXT NOT NULL, begun_at BIGINT NOT NULL, seen_at BIGINT NOT NULL,
    name {key} DEFAULT '""' NOT NULL, conditions TEXT DEFAULT '[]' NOT NULL,
    is_program BOOLEAN DEFAULT false NOT NULL,
    CONSTRAINT pk_sessions PRIMARY KEY (digest)
);
CREATE TABLE audit (
    number BIGINT NOT NULL, at BIGINT NOT NULL, principal TEXT NOT NULL, action {key} NOT NULL,
    resource TEXT NOT NULL, detail TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL,
    CONSTRAINT pk_audit PRIMARY KEY (number)
);
CREATE INDEX ix_audit_at ON audit (at, number);
CREATE TABLE audit_start (
    number BIGINT NOT NULL, hash TEXT NOT NULL,
    CONSTRAINT pk_audit_start PRIMARY KEY (number)
);
CREATE TABLE prunings (
    kind {key} NOT NULL, pruned_at BIGINT NOT NULL, removed BIGINT NOT NULL, left_count BIGINT NOT NULL,
    oldest_at BIGINT,
    CONSTRAINT pk_prunings PRIMARY KEY (kind)
);
"""

_COUNTERS = ("fencing_token", "server_epoch", "feed_forgotten")


def upgrade() -> None:
    """Create everything, and the counters at zero."""
    connection = op.get_bind()
    schema = _SCHEMA
    for pattern, text in _TYPES[connection.dialect.name].items():
        schema = re.sub(pattern, text, schema)
    for statement in schema.split(";")[:-1]:
        connection.exec_driver_sql(" ".join(statement.split()))
    for name in _COUNTERS:
        connection.exec_driver_sql(f"INSERT INTO counters (name, value) VALUES ('{name}', 0)")  # noqa: S608 - constants
