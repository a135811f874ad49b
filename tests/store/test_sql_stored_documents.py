"""Documents that an earlier version stored: whoever upgrades finds tasks and plans as they were.

``stored_documents.json`` has one of each kind, most of them out of the store of a demo. When a change makes one of them
unreadable, it needs a migration that brings stored ones into the new form; then the file gets that form, too. A field
that was added with a default needs no migration, and is added there.
"""

from __future__ import annotations

import ast
import importlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

import icewright
from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.audit.model import verify
from icewright.audit.sql import SqlAudit
from icewright.core.codec import to_json
from icewright.events.sources.cursors import SqlCursors
from icewright.identity.sql import SqlIdentities
from icewright.model.access.permissions import Detail, Grants, Principal
from icewright.model.actions.actions import Action, ActionFigures, ActionKind
from icewright.model.actions.deletion import DeletionRun, Intent, IntentState
from icewright.model.actions.orphans import FinishedPass
from icewright.model.events.events import CommitEvent, Reporting
from icewright.model.events.feed import Fact, FeedFilter
from icewright.model.events.notifications import Message
from icewright.model.iceberg.inventory import ManifestSummary, PartitionStatistics
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.snapshot_sightings import Mark
from icewright.model.plans.approvals import Approval, Refusal
from icewright.model.plans.plans import Plan, Prediction, Reason
from icewright.model.policy.policies import PolicyRevision
from icewright.model.policy.resource_groups import Queue
from icewright.model.queries.decisions import Decision
from icewright.model.queries.measurements import Measurement
from icewright.model.queries.recommendations import JudgedQuery, Recommendation
from icewright.model.queries.templates import Sums, Template
from icewright.model.work.figures import Listed, SeriesPoint
from icewright.model.work.halts import Halt
from icewright.model.work.jobs import OptimizerHello, TaskReport
from icewright.model.work.optimizers import Submitter
from icewright.model.work.storage import AccessRecord, ProbeRequest
from icewright.model.work.tasks import LogLines, Outcome, Progress, TaskState
from icewright.model.work.why import Considered
from icewright.notifications.message_store import SqlMessages
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.model import SeenClaim
from icewright.policy.rules.sql import SqlPolicies
from icewright.ports.inbox import EventFilter
from icewright.ports.store import TaskFilter, WaitingPlan
from icewright.ports.table_lists import TableQuery, TableSort
from icewright.store.documents import load
from icewright.store.engine import open_store
from icewright.store.schema import tasks as tasks_table
from icewright.store.transactions import reading
from icewright.store_admin.integrity_check import problems
from icewright.web.idempotent_answers import Answer
from icewright.work.autotune.model import TuneDecision
from icewright.work.launch.submitters import SqlSubmitters
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.cases import each_case
from tests.contracts.samples import table_id
from tests.narrowing import not_none

KINDS: dict[str, Any] = {
    "AccessRecord": AccessRecord,
    "Action": Action,
    "ActionFigures": ActionFigures,
    "Answer": Answer,
    "Approval": Approval,
    "CommitEvent": CommitEvent,
    "Conditions": tuple[str, ...],
    "Considered": tuple[Considered, ...],
    "DeletionRun": DeletionRun,
    "Decision": Decision,
    "Detail": Detail,
    "Fact": Fact,
    "FinishedPass": FinishedPass,
    "Grants": Grants,
    "Halt": Halt,
    "Intent": Intent,
    "JudgedQueries": tuple[JudgedQuery, ...],
    "Listed": Listed,
    "LogLines": LogLines,
    "ManifestSummary": ManifestSummary,
    "Message": Message,
    "Marks": tuple[Mark, ...],
    "Measurement": Measurement,
    "OptimizerHello": OptimizerHello,
    "Outcome": Outcome,
    "PartitionStatistics": PartitionStatistics,
    "Plan": Plan,
    "PolicyRevision": PolicyRevision,
    "Prediction": Prediction,
    "Principal": Principal,
    "ProbeRequest": ProbeRequest,
    "Progress": Progress,
    "Properties": dict[str, str],
    "Reason": Reason,
    "Recommendation": Recommendation,
    "Refusal": Refusal,
    "Reporting": Reporting,
    "SeenClaim": SeenClaim,
    "Series": tuple[SeriesPoint, ...],
    "Submitter": Submitter,
    "Sums": Sums,
    "TableName": TableName,
    "TaskReport": TaskReport,
    "Template": Template,
    "TuneDecision": TuneDecision,
    "WaitingPlan": WaitingPlan,
}
ALL_TABLES = TableQuery()
STORED = json.loads((Path(__file__).parent / "stored_documents.json").read_text())


def test_there_is_one_of_each_kind() -> None:
    assert sorted(kind for kind, _ in STORED) == sorted(KINDS)


def read_from_the_store() -> Iterator[tuple[str, Any]]:
    """What modules read as documents of the database: each call, and the type that it names."""
    root = Path(icewright.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if "from icewright.store.documents import" not in path.read_text(encoding="utf-8"):
            continue
        module = importlib.import_module(".".join(("icewright", *path.relative_to(root).with_suffix("").parts)))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(ast.Name("load" | "load_optional" | "unpack"), [ast.Name(name), *_]):
                    yield f"{path.name}: {name}", getattr(module, name)
                case ast.Call(ast.Name("load" | "load_optional" | "unpack")):
                    yield f"{path.name}: {ast.unparse(node)}", None


def test_no_kind_that_is_read_is_left_out() -> None:
    found = dict(read_from_the_store())
    assert [said for said, kind in found.items() if kind not in KINDS.values()] == []
    # The adapter keeps what an attempt reported as a text: the dispatcher reads it.
    assert [name for name, kind in KINDS.items() if kind not in found.values()] == ["TaskReport"]


@each_case(("kind", "document"), STORED, ids=[kind for kind, _ in STORED])
def test_what_was_stored_stays_readable(kind: str, document: Any) -> None:
    assert to_json(load(KINDS[kind], json.dumps(document))) == document


def test_recommendations_of_before_they_told_of_frequent_queries_are_read() -> None:
    document = next(document for kind, document in STORED if kind == "Recommendation")
    before = {name: value for name, value in document.items() if name != "frequent"}
    assert load(Recommendation, json.dumps(before)).frequent is None


def test_recommendations_of_before_settings_of_the_file_format_were_tried_are_read() -> None:
    document = json.loads(json.dumps(next(document for kind, document in STORED if kind == "Recommendation")))
    trials = [document["chosen"], *document["trials"]]
    assert any(trial.pop("written") for trial in trials)
    found = load(Recommendation, json.dumps(document))
    assert found.chosen is not None
    assert [trial.written for trial in (found.chosen, *found.trials)] == [None] * len(trials)


def test_reports_of_before_proof_was_measured_are_read() -> None:
    document = json.dumps(next(document for kind, document in STORED if kind == "TaskReport"))
    found = load(TaskReport, document.replace(', "proof_cpu_ms": 6', ""))
    assert [group.proof_cpu_ms for group in found.groups] == [0]


def test_decisions_and_recommendations_of_before_anything_was_measured_are_read() -> None:
    stored = {kind: document for kind, document in STORED if kind in ("Decision", "Recommendation")}
    decision = {name: value for name, value in stored["Decision"].items() if name not in ("was", "snapshot_id")}
    found = load(Decision, json.dumps(decision))
    assert (found.was, found.snapshot_id) == (None, None)
    said = {name: value for name, value in stored["Recommendation"].items() if name != "judged"}
    assert load(Recommendation, json.dumps(said)).judged == ()


def test_layouts_of_before_there_were_cuts_are_read() -> None:
    document = next(document for kind, document in STORED if kind == "Recommendation")
    text = json.dumps(document).replace(', "cuts": null, "cuts_id": ""', "")
    assert "cuts" not in text
    assert to_json(load(Recommendation, text)) == document


def test_optimizers_of_before_they_told_of_their_workers_are_read() -> None:
    document = next(document for kind, document in STORED if kind == "OptimizerHello")
    before = {name: value for name, value in document.items() if name != "workers"}
    assert load(OptimizerHello, json.dumps(before)).workers is None


def test_optimizers_and_submitters_of_before_they_told_of_their_actions_are_read_and_understand_none() -> None:
    for name, kind in (("OptimizerHello", OptimizerHello), ("Submitter", Submitter)):
        document = next(document for said, document in STORED if said == name)
        before = {key: value for key, value in document.items() if key != "actions"}
        assert load(kind, json.dumps(before)).actions == {}  # type: ignore[attr-defined]  # both have them


def test_optimizers_and_policies_of_before_there_were_resource_groups_are_read() -> None:
    hello = next(document for kind, document in STORED if kind == "OptimizerHello")
    before = {name: hello[name] for name in hello if name not in ("cores", "memory_bytes", "is_resident", "queues")}
    found = load(OptimizerHello, json.dumps(before))
    assert (found.cores, found.memory_bytes, found.is_resident, found.queues) == (None, None, True, tuple(Queue))
    revision = next(document for kind, document in STORED if kind == "PolicyRevision")
    rules = {**revision, "policies": {"rules": revision["policies"]["rules"]}}
    assert load(PolicyRevision, json.dumps(rules)).policies.groups == ()


def test_resource_groups_of_before_there_was_autotuning_are_read() -> None:
    document = next(document for kind, document in STORED if kind == "PolicyRevision")
    text = json.dumps(document).replace(', "normal_min": 1, "normal_max": 2, "large_min": 0, "large_max": 1', "")
    assert "normal_min" not in text
    assert to_json(load(PolicyRevision, text)) == document


def test_approvals_of_before_their_plans_were_kept_with_them_are_read() -> None:
    document = next(document for kind, document in STORED if kind == "Approval")
    before = {name: value for name, value in document.items() if name != "plan"}
    assert load(Approval, json.dumps(before)).plan is None


def test_runs_of_before_they_had_a_grace_of_their_own_are_read() -> None:
    document = json.dumps(next(document for kind, document in STORED if kind == "DeletionRun"))
    assert load(DeletionRun, document.replace(', "grace_ms": 604800000', "")).grace_ms is None


def test_passes_of_before_they_told_how_far_their_orphans_are_are_read() -> None:
    document = json.dumps(next(document for kind, document in STORED if kind == "FinishedPass"))
    assert load(FinishedPass, document.replace(', "seen": null', "")).seen is None


def test_tables_that_were_listed_before_they_had_a_health_are_read() -> None:
    document = next(document for kind, document in STORED if kind == "Listed")
    new = {"snapshots", "health", "health_change", "last_task_at", "failures", "noted_at"}
    before = {name: value for name, value in document.items() if name not in new}
    before["figures"] = {name: value for name, value in document["figures"].items() if name != "avoidable_files"}
    found = load(Listed, json.dumps(before))
    assert (found.health, found.failures, found.figures.avoidable_files) == (None, 0, 0)


def test_a_store_from_before_the_baseline_is_upgraded_with_its_rows_and_is_read(tmp_path: Path) -> None:
    """It was at schema 0015 once; 39 migrations and the version before brought it to where the baseline begins."""
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((Path(__file__).parent / "store_0039.sql").read_text(encoding="utf-8"))
    before = lines(path)
    engine = open_store(f"sqlite:///{path}")
    try:
        assert kept(lines(path)) == kept(before)
        tables, tasks, deletions = SqlTableStore(engine), SqlTaskStore(engine), SqlDeletionStore(engine)
        found = tasks.tasks(TaskFilter(), limit=99)
        assert Counter(task.state for task in found) == {
            **dict.fromkeys(TaskState, 1),
            TaskState.FAILED: 2,
            TaskState.CANCELLED: 2,
        }
        assert [len(tasks.history(task.task_id)) > 0 for task in found] == [True] * 10
        assert tasks.attempts("task-queued")[2].fencing_token == 8
        assert [halt.why for halt in tasks.halts.present()] == ["an outage"]
        assert len(tasks.feed.after(0, 99, FeedFilter()).told) == 6
        assert [one.name.name for one in tables.records(limit=99)] == [
            *(f"t{number}" for number in range(8)),
            "there-0",
        ]
        shown = [record for _, record in tables.lists.page(ALL_TABLES, TableSort.NAME, descending=False, limit=99)]
        assert {one.table_id for one in shown} == {one.table_id for one in tables.records(limit=99)}
        assert not_none(tables.record(table_id(50))).dropped_at is not None
        assert len(tables.partitions(table_id(50))) == len(tables.runs(table_id(50))) == 1
        assert tables.plan("plan-0").plan_id == "plan-0"
        assert len(tables.received(EventFilter(), limit=9)) == 3
        assert [one.hello.optimizer_id for one in tables.optimizers()] == ["optimizer-0"]
        assert [deletions.run(run).run_id for run in ("run-0", "run-open-0")] == ["run-0", "run-open-0"]
        assert (
            len(deletions.intents("run-0", frozenset(IntentState), limit=9)) == len(deletions.approvals(limit=9)) == 1
        )
        assert SqlPolicies(engine).revision(2).applied_by == "ada"
        assert len(SqlMessages(engine).dead_letters(limit=9)) == 1
        assert [token.name for token in SqlIdentities(engine).tokens(limit=9)] == ["ada"]
        assert [claim.claim.name.name for claim in SqlClaims(engine).claims()] == ["one"]
        assert [one.submitter.submitting.submitter_id for one in SqlSubmitters(engine).noted()] == ["submitter-1"]
        assert SqlCursors(engine).position("feed-of-hive") == 7
        chain = verify(SqlAudit(engine).entries(limit=99, after=0))
        assert (chain.entries, chain.is_whole) == (12, True)
        assert problems(engine) == []
    finally:
        engine.dispose()


def lines(path: Path) -> list[str]:
    """All that a database has."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def kept(lines: list[str]) -> list[str]:
    """What migrations leave as it is: all but the revision, of tasks the slot and its indexes, lists and refusals."""
    of_tasks = (
        "CREATE TABLE tasks",
        "CREATE UNIQUE INDEX uq_tasks_active",
        "CREATE TABLE servers",
        'INSERT INTO "icewright_schema"',
    )
    later = (
        "task_logs",
        "listed_tables",
        "table_series",
        "refused_plans",
        "query_templates",
        "recommendations",
        "event_cursors",
        "autotune_decisions",
        "unlinked_audit",
        "judged",
        "measurements",
        "server_session",
        "buckets",
        "assignment",
        "claims",  # they are read below
    )
    left = [line for line in lines if not any(name in line for name in later)]
    return [line.removesuffix(",'data');").removesuffix(");") for line in left if not line.startswith(of_tasks)]


@pytest.mark.parametrize(
    "kind", [kind for kind in ActionKind if kind is not ActionKind.ANALYZE_QUERIES]
)  # it came later
def test_tasks_of_a_former_store_get_the_slot_of_their_kind(tmp_path: Path, kind: ActionKind) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((Path(__file__).parent / "store_0039.sql").read_text(encoding="utf-8"))
        connection.execute("UPDATE tasks SET kind = ?", (kind.value,))
        connection.commit()
    engine = open_store(f"sqlite:///{path}")
    with reading(engine) as connected:
        assert set(connected.scalars(select(tasks_table.c.table_slot))) == {kind.traits.slot}
    engine.dispose()
