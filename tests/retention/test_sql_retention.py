"""Every table of the store has a bound, and what looks for old rows finds them by indexes, whoever else waits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Connection, Engine, Table, event, func, insert, select, text

from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.actions.remove_files.adapters.deletions_schema import deletion_intents, deletion_runs
from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.events.schema import event_cursors
from icewright.feed.schema import receivers
from icewright.model.work.retention import RETENTION, RowKind
from icewright.model.work.tasks import TaskState
from icewright.notifications.message_store import SqlMessages
from icewright.policy.rules.sql import SqlPolicies
from icewright.queries.schema import query_templates
from icewright.queries.sql import SqlQuerySums
from icewright.recommendations.schema import judged_queries, measurements, recommendations
from icewright.recommendations.sql import SqlRecommendations
from icewright.retention.pruning import Keeping, Past, Pruner
from icewright.retention.prunings_sql import PLACES
from icewright.store.engine import open_store
from icewright.store.schema import attempts, claims, counters, plans, tables, task_actions, task_history, totals
from icewright.store.schema_access import answers, audit_start, login_codes, sessions, tokens, unlinked_audit
from icewright.store.servers_schema import buckets, prunings, server_sessions, servers, submitters
from icewright.store.transactions import now, writing
from icewright.store_admin.all_tables import metadata
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.halts.schema import halts
from icewright.work.optimizers.findings_schema import probes
from icewright.work.store import table_pruning
from icewright.work.store.admission_queries import turns
from icewright.work.store.table_pruning import OF_TABLES
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.contracts.samples import new_task, plan
from tests.contracts.stores import Stores
from tests.contracts.test_deletion_store_contract import approval
from tests.contracts.test_prunings_contract import fill
from tests.contracts.test_table_store_contract import known_table
from tests.contracts.test_task_store_contract import in_state
from tests.doubles.clock import ManualClock

ELSEWHERE: Final = (tables, plans, query_templates, judged_queries, measurements, recommendations)

GOES_WITH: Final[Mapping[Table, RowKind]] = {
    task_actions: RowKind.TASKS,
    task_history: RowKind.TASKS,
    attempts: RowKind.TASKS,
    deletion_runs: RowKind.REMOVALS,
    probes: RowKind.FINDINGS,
    deletion_intents: RowKind.REMOVALS,
    **dict.fromkeys((judged_queries, measurements), RowKind.RECOMMENDATIONS),
    **{table: RowKind.TABLES for table in OF_TABLES if table not in ELSEWHERE},
}
"""Tables of the database whose rows go with those of a kind, or by the same call."""

BOUNDED: Final[Mapping[Table, str]] = {
    counters: "one row for each counter that there is in the code",
    totals: "one row for each kind of action, by a closed set of states, ends and bounds",
    prunings: "one row for each kind of row",
    audit_start: "one row",
    unlinked_audit: "entries are linked, and deleted here, in each round of the server that leads",
    event_cursors: "one row for each log that is configured, or was; those of spools go with sums of queries",
    receivers: "one row for each receiver that is configured, or was",
    servers: "a server that is not heard of is removed by the next one that says it is there",
    server_sessions: "those that ended more than a day ago are removed when one ends",
    buckets: "one row for each bucket",
    submitters: "a submitter that is not heard of is removed by the next one that asks",
    sessions: "ended ones are deleted when the next one begins",
    login_codes: "expired ones are deleted when the next one is made",
    answers: "expired ones are deleted when the next request with a key comes",
    tokens: "one row for each token that an administrator ever made: a name is never given twice",
    halts: "a person makes each and ends it, and there are at most so many",
    turns: "one row for each resource group and owner of tables who ever had a turn",
    claims: "one row for each table of the catalogs; a dropped name is deleted",
}
"""Tables of the database that nothing prunes, and why they do not grow without bound all the same."""


@pytest.fixture
def engine(migrated_url: str) -> Iterator[Engine]:
    engine = open_store(migrated_url)
    yield engine
    engine.dispose()


def pruned_tables() -> set[str]:
    """Those that rows of some kind are in, and those that go with them."""
    places = {place.table.name for place in PLACES.values() if isinstance(place.table, Table)}
    return places | {table.name for table in GOES_WITH}


class TestBounds:
    def test_every_table_is_pruned_or_named_as_bounded_with_its_reason(self) -> None:
        pruned, bounded = pruned_tables(), {table.name for table in BOUNDED}
        assert pruned | bounded == metadata.tables.keys(), "say here what keeps the table from growing"
        assert not pruned & bounded
        assert all(BOUNDED.values())

    def test_nothing_is_left_of_what_is_pruned(self, engine: Engine) -> None:
        """But for what something needs: a task that waits, an open removal, tables and policies that are present."""
        clock = ManualClock()
        stores = Stores([engine], clock)
        in_state(stores.tasks(), TaskState.FAILED, "task-tried")
        fill(stores, clock, 0)
        known_table(stores, 50, clock.now())
        stores.deletions().approve(approval(0, at=clock.now()))
        past = Past(
            SqlTaskStore(engine, clock),
            SqlTableStore(engine, clock),
            SqlUndoRecordStore(engine),
            SqlMessages(engine, clock),
            SqlDeletionStore(engine, clock),
            SqlPolicies(engine, clock),
            SqlQuerySums(engine),
            SqlRecommendations(engine),
            SqlDecisions(engine, clock),
        )
        stores.audit().link()
        before = rows(engine)
        unfilled = {"orphan_sightings", "probes", "refused_plans"}
        assert {name for name in pruned_tables() if before[name] == 0} == unfilled
        clock.advance(10 * max(RETENTION.spans_ms.values()))
        Pruner(past, clock, Keeping()).prune()
        Pruner(past, clock, Keeping()).prune()  # what only goes behind something else
        after = rows(engine)
        left = {name: after[name] for name in pruned_tables() if after[name]}
        waiting = {"tasks": 1, "task_actions": 1, "task_history": 1, "inbox": 1, "messages": 1, "deletion_runs": 1}
        present = {
            "plans": 1,
            "deletion_approvals": 1,
            "tables": 1,
            "listed_tables": 1,
            "policy_revisions": 1,
            "audit": after["audit"],
        }
        assert left == {**waiting, **present}


def rows(engine: Engine) -> dict[str, int]:
    with engine.connect() as connection:
        return {
            table.name: connection.scalar(select(func.count()).select_from(table)) or 0
            for table in metadata.sorted_tables
        }


class TestUpgraded:
    def test_what_an_upgrade_found_counts_as_new_and_what_says_no_plan_stays(self, engine: Engine) -> None:
        """As the migrations of before left it: with the instant of the upgrade, which nobody knew better."""
        with writing(engine) as connection:
            at = now(connection)
            for statement in (
                "INSERT INTO deletion_runs VALUES ('run-1', 'lake', 'u', 'hash', false, 0, '{}', 1)",
                "INSERT INTO deletion_approvals VALUES ('hash', '{}', 5, NULL, NULL, NULL)",
                "INSERT INTO policy_revisions VALUES (1, '', 1), (2, '', 1), (3, '', NULL)",
            ):
                connection.execute(text(statement))
            for aged in ("UPDATE deletion_runs SET changed_at = :at", "UPDATE policy_revisions SET replaced_at = :at"):
                connection.execute(text(f"{aged} WHERE {aged.split()[3]} = 1"), {"at": at})
        policies, deletions = SqlPolicies(engine), SqlDeletionStore(engine)
        long_ago = at - RETENTION.spans_ms[RowKind.POLICIES]
        assert [deletions.prune(long_ago, 9), policies.prune(long_ago, 9)] == [0, 0]
        assert [policies.prune(at + 1, 9), deletions.prune_approvals(at + 1, 9)] == [2, 0]
        assert rows(engine)["policy_revisions"] == policies.present() - 2 == 1
        deletions.prune(at + 1, 9)
        assert rows(engine)["deletion_runs"] == 0


class TestShortTransactions:
    def test_plans_are_found_without_the_turn_of_the_writers_and_go_by_so_many(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(table_pruning, "PLANS_AT_ONCE", 2)
        store = SqlTableStore(engine)
        for number in range(7):
            store.save_plan(plan(f"plan-{number}", planned_at=number))
        removed: list[int] = []
        is_read: list[bool] = []

        @event.listens_for(engine, "after_cursor_execute")
        def look(connection: Connection, cursor: object, statement: str, *_: object) -> None:
            if statement.startswith("DELETE FROM plans"):
                removed.append(cursor.rowcount)  # type: ignore[attr-defined]  # a cursor of the driver's
            if "row_number" in statement:
                is_read.append(not connection.get_execution_options().get("icewright_writes", False))

        assert store.prune_plans(1, 5) == 5
        assert (removed, is_read) == ([2, 2, 1], [True])

    def test_a_plan_that_a_task_is_made_from_meanwhile_stays(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store, tasks = SqlTableStore(engine), SqlTaskStore(engine)
        for number in range(3):
            store.save_plan(plan(f"plan-{number}", planned_at=number))
        turns = iter(("waiting plans", "plans"))

        def begun(of: Engine) -> object:
            if next(turns) == "plans":
                tasks.enqueue(new_task("task-1", plan_id="plan-0"))
            return writing(of)

        monkeypatch.setattr(table_pruning, "writing", begun)
        assert store.prune_plans(1, 9) == 1
        assert [one.plan_id for one in store.plans(plan("x").table_id, limit=9)] == ["plan-2", "plan-0"]

    def test_what_is_asked_of_each_old_row_is_found_by_an_index(self, tmp_path: Path) -> None:
        """Else each of a million plans, or of its tasks, would be looked at for each of the others.

        On SQLite alone: PostgreSQL reads all of a small table rather than an index.
        """
        engine = open_store(f"sqlite:///{tmp_path}/state.db")
        asked: list[tuple[str, object]] = []

        @event.listens_for(engine, "before_cursor_execute")
        def look(_: object, __: object, statement: str, parameters: object, *___: object) -> None:
            asked.append((statement, parameters))

        store, tasks, deletions = SqlTableStore(engine), SqlTaskStore(engine), SqlDeletionStore(engine)
        with writing(engine) as connection:
            fill_one(connection, plans, plan_id="plan-1", catalog="c", table_uuid="u", planned_at=1, plan=b"x")
        store.prune_plans(0, 9)
        store.prune_dropped(9, 9)
        tasks.prune(9, 9)
        deletions.prune(9, 9)
        deletions.prune_approvals(9, 9)
        SqlPolicies(engine).prune(9, 9)
        with engine.connect() as connection:
            found = [
                (statement, str(row.detail))
                for statement, parameters in asked
                if re.match("SELECT|DELETE", statement)
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)  # type: ignore[arg-type]  # as the driver had them
            ]
        may_be_scanned = {"plans", "waiting_plans", "refused_plans", "deletion_approvals", "policy_revisions"}
        scans = {re.sub(r"SCAN (\w+).*", r"\1", how) for _, how in found if re.match(r"SCAN \w+$", how)}
        assert any("ix_tasks_plan" in how for _, how in found)
        assert any("ix_tables_dropped" in how for _, how in found)
        assert any("ix_deletion_runs_age" in how for _, how in found)
        assert scans & metadata.tables.keys() <= may_be_scanned
        engine.dispose()


def fill_one(connection: Connection, table: Table, **values: object) -> None:
    connection.execute(insert(table).values(values))
