"""Autotuning in mode ``advise``, over optimizers that people started: what it says, and when that ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from icewright.configuration.load import load_config
from icewright.core.codec import from_json, to_json
from icewright.core.times import Instant
from icewright.maintenance.dispatch.dispatcher import DispatchLimits
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policies import NewRevision, Policies
from icewright.model.policy.resource_groups import Queue, ResourceGroup
from icewright.model.work.jobs import ANY_TASK, PROTOCOL_VERSION, Failed, OptimizerHello, TaskReport, TaskSpec
from icewright.model.work.optimizers import Submitter, Submitting
from icewright.work.autotune import watch
from icewright.work.autotune.model import DecisionState, Move, TuneDecision
from icewright.work.autotune.service import Autotune
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.autotune.wiring import build_autotune
from tests.builders.served import BY_CITY, HOUR_MS, Served, hello
from tests.narrowing import not_none

MINUTE_MS = 60_000
GIB = 1 << 30
TABLES = [TableName("lake", ("db",), f"t{number}") for number in range(3)]
CONFIGURED = """
[optimizer]
master = "local[1]"
[[catalogs]]
name = "lake"
type = "sql"
uri = "sqlite:////nowhere.db"
warehouse = "/nowhere"
"""


class Advised:
    """A server in mode ``advise``."""

    def __init__(self, folder: Path) -> None:
        self.served = Served(limits=DispatchLimits(lease_ms=HOUR_MS))
        for name in TABLES:
            self.served.lake.create(name, partition_fields=BY_CITY, properties={"icewright.mode": "auto"})
            for number in range(12):
                self.served.append(name, f"{name}-{number}")
        self.served.clock.advance(48 * HOUR_MS)
        (folder / "icewright.toml").write_text(CONFIGURED)
        self.folder = folder
        self.autotune = self.begun()

    def begun(self) -> Autotune:
        """As a server comes to lead."""
        config = load_config(self.folder / "icewright.toml", {}, self.folder)
        control = self.served.control
        stores = (control.tasks, control.tables, control.backlogs, control.group_views, control.autotune)
        return build_autotune(config, {}, *stores)

    def after(self, *live: OptimizerHello, turns: int = 1) -> None:
        """A minute passes, those that live say hello, and it is decided."""
        for _ in range(turns):
            self.served.clock.advance(MINUTE_MS)
            for one in live:
                self.served.post("/optimizers", one)
            self.autotune.turn()

    def define(self, group: ResourceGroup) -> None:
        """Apply a policy with this group alone."""
        policies = self.served.http.get("/api/v1/policies")
        new = NewRevision(Policies((), groups=(group,)), "Ada")
        headers = {"If-Match": policies.headers["etag"]}
        answer = self.served.http.post("/api/v1/policies", json=to_json(new), headers=headers)
        assert answer.is_success, answer.text

    def decisions(self) -> list[TuneDecision]:
        return list(reversed(self.served.control.autotune.list(limit=100)))

    def said(self) -> list[tuple[Queue | None, Move, DecisionState]]:
        return [(one.new.queue, one.new.move, one.state) for one in self.decisions()]

    def claim(self, by: OptimizerHello) -> TaskSpec:
        return from_json(TaskSpec, self.served.post(f"/optimizers/{by.optimizer_id}/claims", ANY_TASK))

    def run_out(self, spec: TaskSpec) -> None:
        end = Failed("out-of-memory", "java.lang.OutOfMemoryError", retryable=True)
        report = TaskReport(
            PROTOCOL_VERSION, spec.task_id, spec.attempt, spec.fencing_token, end, (), (), wall_ms=1, cpu_ms=1
        )
        self.served.post(f"/tasks/{spec.task_id}/report", report)


def one(number: int = 1, memory_bytes: int = 2 * GIB, queues: tuple[Queue, ...] = tuple(Queue)) -> OptimizerHello:
    return replace(hello(f"optimizer-{number}"), slots=1, cores=1, memory_bytes=memory_bytes, queues=queues)


@pytest.fixture
def advised(tmp_path: Path) -> Advised:
    return Advised(tmp_path)


NORMAL, LARGE = Queue.NORMAL, Queue.LARGE
DONE, OPEN, LAPSED = DecisionState.DONE, DecisionState.OPEN, DecisionState.LAPSED


def test_what_was_decided_before_is_read_once_a_turn(advised: Advised, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, past = list[Instant](), SqlDecisions.past

    def counted(store: SqlDecisions, since: Instant) -> Sequence[TuneDecision]:
        reads.append(since)
        return past(store, since)

    monkeypatch.setattr(SqlDecisions, "past", counted)
    advised.after(turns=5)
    assert advised.said() == [(NORMAL, Move.START, OPEN)]
    assert len(reads) == 5


def test_advice_to_start_one_is_done_when_a_person_starts_it(advised: Advised) -> None:
    advised.after(turns=5)
    assert advised.said() == [(NORMAL, Move.START, OPEN)]
    advised.after(one())
    assert advised.said() == [(NORMAL, Move.START, DONE)]
    assert not_none(advised.decisions()[0].effect).code == "followed"


def test_advice_to_end_one_that_is_idle_lapses_when_it_gets_work(advised: Advised) -> None:
    advised.after(one(1), one(2), turns=17)
    assert advised.said() == [(NORMAL, Move.END, OPEN)]
    idle = advised.decisions()[0].new.optimizer_id
    for name in TABLES[:2]:
        advised.served.control.maintainer.look(name)
    for number in (1, 2):
        advised.claim(one(number))
    advised.after(one(1), one(2))
    assert advised.said() == [(NORMAL, Move.END, LAPSED)]
    assert idle in ("optimizer-1", "optimizer-2")


def test_advice_of_more_memory_is_done_when_the_optimizer_has_it(advised: Advised) -> None:
    advised.after(one())
    for name in TABLES:
        advised.served.control.maintainer.look(name)
        advised.run_out(advised.claim(one()))
    advised.after(one())
    assert advised.said() == [(NORMAL, Move.MORE_MEMORY, OPEN)]
    made = advised.decisions()[0]
    assert (made.new.before, made.new.after) == (2 * GIB, 4 * GIB)
    assert "ICEWRIGHT_OPTIMIZER__MEMORY=4096m icewright optimizer" in made.by_hand
    assert made.new.reason.figures["last_table"] == "lake.db.t2 rewrite_data_files"
    advised.after(one(), turns=30)
    assert [said for said in advised.said() if said[1] is Move.MORE_MEMORY] == [(NORMAL, Move.MORE_MEMORY, OPEN)]
    advised.after(one(memory_bytes=4 * GIB))
    assert (NORMAL, Move.MORE_MEMORY, DONE) in advised.said()


def test_an_optimizer_that_says_nothing_of_its_memory_is_left_as_it_is(advised: Advised) -> None:
    quiet = replace(one(), memory_bytes=None, cores=None)
    advised.after(quiet)
    for name in TABLES:
        advised.served.control.maintainer.look(name)
        advised.run_out(advised.claim(quiet))
    advised.after(quiet, turns=3)
    assert [said for said in advised.said() if said[1] is Move.MORE_MEMORY] == []


def test_what_waits_behind_a_halt_starts_nothing(advised: Advised) -> None:
    advised.after(one())
    for name in TABLES:
        advised.served.control.maintainer.look(name)
    advised.claim(one())
    advised.served.post("/queue/pause", {"part": "group", "name": "default", "reason": ""})
    advised.after(one(), turns=10)
    assert advised.said() == []
    advised.served.post("/queue/resume", {"part": "group", "name": "default"})
    advised.after(one(), turns=4)
    assert advised.said() == [(NORMAL, Move.START, OPEN)]


def test_a_group_for_which_applications_are_submitted_is_left_to_its_submitter(advised: Advised) -> None:
    advised.after(turns=4)
    assert advised.said() == [(NORMAL, Move.START, OPEN)]
    submitting = Submitting("submitter-1", "edge", 0, 2)
    advised.served.control.tables.submitters.note(Submitter(submitting, "default", ("lake",), tuple(Queue), 1, GIB))
    advised.after()
    assert advised.said() == [(NORMAL, Move.START, LAPSED)]


def test_a_server_that_comes_to_lead_waits_anew_and_repeats_no_advice(advised: Advised) -> None:
    advised.after(turns=4)
    advised.autotune = advised.begun()
    advised.after(turns=20)
    assert advised.said() == [(NORMAL, Move.START, OPEN)]


def test_trouble_with_one_turn_stops_no_later_one(advised: Advised, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []

    class Stops:
        def wait(self, _: float) -> bool:
            return len(turns) == 2

    def turn() -> None:
        turns.append(1)
        raise ValueError("a defect")

    monkeypatch.setattr(advised.autotune, "turn", turn)
    run: Callable[..., None] = advised.autotune.run
    run(Stops())
    assert len(turns) == 2


def test_what_waits_behind_the_cap_of_optimizers_starts_nothing(advised: Advised) -> None:
    """One more could not claim anything, and would never count as unneeded, since tasks wait."""
    advised.define(ResourceGroup("default", optimizers_max=1))
    advised.after(one())
    for name in TABLES:
        advised.served.control.maintainer.look(name)
    advised.claim(one())
    advised.after(one(), turns=10)
    assert advised.said() == []
    advised.define(ResourceGroup("default", optimizers_max=2))
    advised.after(one(), turns=4)
    assert advised.said() == [(NORMAL, Move.START, OPEN)]


def test_no_look_reads_all_that_was_ever_tried(advised: Advised, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a group with few attempts the last 500 are behind all those of the others."""
    monkeypatch.setattr(watch, "AMONG_MAX", 2)
    advised.after(one())
    for name in TABLES:
        advised.served.control.maintainer.look(name)
        advised.run_out(advised.claim(one()))
    advised.after(one())
    assert advised.said() == []  # of three attempts two are looked at
    monkeypatch.setattr(watch, "AMONG_MAX", 3)
    advised.after(one())
    assert (NORMAL, Move.MORE_MEMORY, OPEN) in advised.said()
