"""All tables of a store: those of the engine, and those that each capability has."""

from __future__ import annotations

import icewright.actions.remove_files.adapters.deletions_schema
import icewright.actions.undo.undo_records_schema
import icewright.events.schema
import icewright.feed.schema
import icewright.policy.rules.schema
import icewright.queries.schema
import icewright.recommendations.schema
import icewright.store.schema
import icewright.store.schema_access
import icewright.store.servers_schema
import icewright.work.autotune.schema
import icewright.work.halts.schema
import icewright.work.optimizers.findings_schema
import icewright.work.store.admission_queries
import icewright.work.store.task_logs

metadata = icewright.store.schema_access.metadata
