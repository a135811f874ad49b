"""Documents that an earlier version stored: whoever upgrades finds tasks and plans as they were.

``stored_documents.json`` has one of each kind, most of them out of the store of a demo. When a change makes one of them
unreadable, it needs a migration that brings stored ones into the new form; then the file gets that form, too. A field
that was added with a default needs no migration, and is added there.
"""

from __future__ import annotations

import ast
import importlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Connection, text

from icewright.adapters import sql
from icewright.adapters.clock import SystemClock
from icewright.adapters.sql.deletion_store import SqlDeletionStore
from icewright.adapters.sql.documents import load
from icewright.adapters.sql.engine import open_store
from icewright.adapters.sql.migrations.versions import (
    v0007_estimates_by_model,
    v0008_kinds_of_predictions,
    v0033_approvals_listed,
)
from icewright.adapters.sql.schema import plans, task_actions, tasks
from icewright.adapters.sql.table_store import SqlTableStore
from icewright.adapters.sql.task_store import SqlTaskStore
from icewright.adapters.sql.transactions import writing
from icewright.domain.access import Grants, Principal
from icewright.domain.actions import Action, ActionFigures
from icewright.domain.answers import Answer
from icewright.domain.approvals import Approval
from icewright.domain.audit import Detail
from icewright.domain.codec import to_json
from icewright.domain.deletion import DeletionRun, Intent
from icewright.domain.events import CommitEvent, Reporting
from icewright.domain.feed import Fact
from icewright.domain.figures import Listed
from icewright.domain.first_sight import Mark
from icewright.domain.halts import Halt
from icewright.domain.inventory import ManifestSummary, PartitionStatistics
from icewright.domain.jobs import OptimizerHello, TaskReport
from icewright.domain.names import TableName
from icewright.domain.notifications import Message
from icewright.domain.optimizers import Submitter
from icewright.domain.orphans import FinishedPass
from icewright.domain.ownership import SeenClaim
from icewright.domain.plans import Estimate, Plan, Prediction, Reason, RewritePrediction, Risk
from icewright.domain.policies import PolicyRevision
from icewright.domain.resource_groups import Queue
from icewright.domain.storage import AccessRecord, ProbeRequest
from icewright.domain.tasks import Outcome, Progress
from icewright.domain.why import Considered
from icewright.ports.store import WaitingPlan
from tests.cases import each_case
from tests.contracts.samples import new_task, plan, record

LOOKUP = {"column": "ts", "partition": "", "files_before": 40, "files_after": 2}
ESTIMATE = {
    "output_bytes": 400,
    "cpu_ms": 7,
    "risk": "low",
    "risk_reason": {"code": "conflict-risk", "text": "none", "figures": {}},
}
COUNT = 1201
"""More than the migration reads at once."""


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
    "Detail": Detail,
    "Fact": Fact,
    "FinishedPass": FinishedPass,
    "Grants": Grants,
    "Halt": Halt,
    "Intent": Intent,
    "Listed": Listed,
    "ManifestSummary": ManifestSummary,
    "Message": Message,
    "Marks": tuple[Mark, ...],
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
    "Reporting": Reporting,
    "SeenClaim": SeenClaim,
    "Submitter": Submitter,
    "TableName": TableName,
    "TaskReport": TaskReport,
    "WaitingPlan": WaitingPlan,
}
STORED = json.loads((Path(__file__).parent / "stored_documents.json").read_text())


def test_there_is_one_of_each_kind() -> None:
    assert sorted(kind for kind, _ in STORED) == sorted(KINDS)


def read_from_the_store() -> Iterator[tuple[str, Any]]:
    """What the adapter's modules read as documents: each call, and the type that it names."""
    for path in sorted(Path(sql.__file__).parent.glob("*.py")):
        if path.stem == "documents":
            continue
        module = importlib.import_module(f"{sql.__name__}.{path.stem}")
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


def test_reports_of_before_proof_was_measured_are_read() -> None:
    document = json.dumps(next(document for kind, document in STORED if kind == "TaskReport"))
    found = load(TaskReport, document.replace(', "proof_cpu_ms": 6', ""))
    assert [group.proof_cpu_ms for group in found.groups] == [0]


def test_optimizers_of_before_they_told_of_their_workers_are_read() -> None:
    document = next(document for kind, document in STORED if kind == "OptimizerHello")
    before = {name: value for name, value in document.items() if name != "workers"}
    assert load(OptimizerHello, json.dumps(before)).workers is None


def test_optimizers_and_policies_of_before_there_were_resource_groups_are_read() -> None:
    hello = next(document for kind, document in STORED if kind == "OptimizerHello")
    before = {name: hello[name] for name in hello if name not in ("cores", "memory_bytes", "is_resident", "queues")}
    found = load(OptimizerHello, json.dumps(before))
    assert (found.cores, found.memory_bytes, found.is_resident, found.queues) == (None, None, True, tuple(Queue))
    revision = next(document for kind, document in STORED if kind == "PolicyRevision")
    rules = {**revision, "policies": {"rules": revision["policies"]["rules"]}}
    assert load(PolicyRevision, json.dumps(rules)).policies.groups == ()


def test_approvals_of_before_their_plans_were_kept_with_them_are_read() -> None:
    document = next(document for kind, document in STORED if kind == "Approval")
    before = {name: value for name, value in document.items() if name != "plan"}
    assert load(Approval, json.dumps(before)).plan is None


def test_approvals_of_before_they_were_listed_are_listed_by_when_they_were_given(migrated_url: str) -> None:
    engine = open_store(migrated_url)
    given = Approval("abc", "Ada", 1_700_000_000_000)
    SqlDeletionStore(engine).approve(given)
    with writing(engine) as connection:
        connection.execute(text("DROP INDEX ix_deletion_approvals_at"))
        for column in ("approved_at", "catalog", "table_uuid"):
            connection.execute(text(f"ALTER TABLE deletion_approvals DROP COLUMN {column}"))
        with Operations.context(MigrationContext.configure(connection)):
            v0033_approvals_listed.upgrade()
        assert connection.scalar(text("SELECT approved_at FROM deletion_approvals")) == given.approved_at
    assert SqlDeletionStore(engine).approvals(limit=9) == [given]


def test_runs_of_before_they_had_a_grace_of_their_own_are_read() -> None:
    document = json.dumps(next(document for kind, document in STORED if kind == "DeletionRun"))
    assert load(DeletionRun, document.replace(', "grace_ms": 604800000', "")).grace_ms is None


@pytest.mark.parametrize("lookup", [None, LOOKUP])
def test_estimates_of_the_version_before_are_kept(migrated_url: str, lookup: Any) -> None:
    engine = open_store(migrated_url)
    SqlTableStore(engine, SystemClock()).save_record(record())
    SqlTableStore(engine, SystemClock()).save_plan(plan("plan-1"))
    SqlTaskStore(engine, SystemClock()).enqueue(new_task("task-0"))
    with writing(engine) as connection:
        age(connection, {**ESTIMATE, "lookup": lookup})
        with Operations.context(MigrationContext.configure(connection)):
            v0007_estimates_by_model.upgrade()
            v0008_kinds_of_predictions.upgrade()
    stored_plan, stored_tasks = SqlTableStore(engine, SystemClock()), SqlTaskStore(engine, SystemClock())
    for prediction in (
        stored_plan.plan("plan-1").prediction,
        stored_tasks.get("task-0").prediction,
        stored_tasks.get(f"task-{COUNT - 1:04d}").prediction,
    ):
        assert isinstance(prediction, RewritePrediction)
        estimate = prediction.estimate
        assert isinstance(estimate, Estimate)
        assert (estimate.output_bytes, estimate.modelled_bytes, estimate.cpu_ms) == (400, 400, 7)
        assert (estimate.risk, estimate.lookups) == (Risk.LOW, ())
    engine.dispose()


def age(connection: Connection, estimate: dict[str, Any]) -> None:
    """Give everything that is stored an estimate of old, and have many tasks that have ended."""
    row = dict(connection.execute(tasks.select()).mappings().one())
    prediction = {**json.loads(row["prediction"]), "estimate": estimate}
    del prediction["kind"]
    row["prediction"] = json.dumps(prediction)
    connection.execute(tasks.update().values(prediction=row["prediction"]))
    ended = {**row, "state": "cancelled"}
    connection.execute(tasks.insert(), [{**ended, "task_id": f"task-{number:04d}"} for number in range(1, COUNT)])
    action = dict(connection.execute(task_actions.select()).mappings().one())
    rows = [{**action, "task_id": f"task-{number:04d}"} for number in range(1, COUNT)]
    connection.execute(task_actions.insert(), rows)
    stored = json.loads(zlib.decompress(connection.execute(plans.select()).mappings().one()["plan"]))
    stored["prediction"] = {**json.loads(row["prediction"])}
    connection.execute(plans.update().values(plan=zlib.compress(json.dumps(stored).encode())))


def test_passes_of_before_they_told_how_far_their_orphans_are_are_read() -> None:
    document = json.dumps(next(document for kind, document in STORED if kind == "FinishedPass"))
    assert load(FinishedPass, document.replace(', "seen": null', "")).seen is None
