"""Pausing, draining, stopping and resuming from the command line, and closing the breaker of a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from icewright.model.iceberg.names import TableName
from icewright.model.work.halts import EVERYTHING, WHY_LENGTH_MAX, HaltState
from icewright.model.work.tasks import AttemptState, Task, TaskState
from icewright.ports.store import Change
from tests.builders.command_line import icewright, within
from tests.contracts.samples import OUTCOME, new_task
from tests.lakes.house import HOUR_MS, House
from tests.narrowing import not_none

VERBS = ("pause", "drain", "stop", "resume")
EVENTS = TableName("lake", ("db",), "events")
PARTS = (
    (("all",), "everything", "all"),
    (("--group", "default"), "group default", "--group default"),
    (("--catalog", "lake"), "catalog lake", "--catalog lake"),
    (("--table", "db.events"), "table lake.db.events", "--table lake.db.events"),
)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    made = House(tmp_path)
    made.table()
    made.round()
    with within(made, monkeypatch):
        yield made


def running(house: House) -> Task:
    """A task that is at work."""
    house.control.tasks.enqueue(new_task("task-1"))
    lake = frozenset({"lake"})
    return not_none(house.control.tasks.claim("o", resource_group="default", catalogs=lake, lease_ms=HOUR_MS))


def end(house: House, task: Task) -> None:
    """Its attempt ends before its commit, and it waits again."""
    house.control.tasks.change(Change(task.task_id, task.version, TaskState.QUEUED, OUTCOME, AttemptState.CANCELLED))


def given_a_role(monkeypatch: pytest.MonkeyPatch, role: str, scope: str = "*") -> None:
    """From now on the command line is that of somebody with this role alone."""
    made = icewright("token", "create", "somebody", "--role", role, "--scope", scope, "--expires", "2d")
    assert made.status == 0, made.err
    monkeypatch.setenv("ICEWRIGHT_TOKEN", made.out.strip())


def instead_of_sleeping(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """What happens while the command waits before it asks again."""
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _seconds: act())
    monkeypatch.setattr("icewright.work.halts.cli.time", clock)


def states(house: House) -> list[tuple[str, str]]:
    return [(str(halt.part), halt.state.value) for halt in house.control.tasks.halts.present()]


@pytest.mark.parametrize(("verb", "state"), [("pause", "paused"), ("drain", "draining"), ("stop", "stopped")])
def test_a_part_is_halted_shown_and_resumed(house: House, verb: str, state: str) -> None:
    for arguments, part, resume in PARTS:
        halted_and_resumed(house, verb, state, arguments, part, resume)


def halted_and_resumed(house: House, verb: str, state: str, arguments: tuple[str, ...], part: str, resume: str) -> None:
    planned = icewright("queue", verb, *arguments, "--reason", "a move")
    assert (planned.status, f"{verb} {part}: 0 tasks at work there" in planned.out) == (1, True), planned.out
    assert (states(house), "add --yes" in planned.out) == ([], True), "it is only shown"
    said = icewright("queue", verb, *arguments, "--reason", "a move", "--yes")
    assert said.status == 0, said.err
    first, last = said.out.splitlines()
    assert (first.startswith(f"{part} is {state} since "), first.endswith(": a move, nothing runs")) == (True, True)
    assert last == f"Resume it: icewright queue resume {resume}"
    assert states(house) == [(part, state)]
    shown = icewright("queue").out.splitlines()
    assert shown[0].split() == ["part", "state", "running", "since", "by", "because"]
    assert (shown[1].startswith(f"{part} "), shown[1].endswith(" a move")) == (True, True)
    assert f"{part} is {state}" in icewright("status").out
    assert icewright("queue", "resume", *resume.split()).out == "resumed\n"
    assert (states(house), icewright("queue").out) == ([], "nothing is paused\n")


@pytest.mark.usefixtures("house")
def test_each_answer_is_json_for_programs() -> None:
    assert icewright("queue", "--json").json == {"halts": []}
    for verb in ("pause", "drain", "stop"):
        planned = icewright("queue", verb, "--catalog", "lake", "--reason", "x", "--json")
        assert (planned.status, planned.json["preview"]["name"]) == (1, "lake")
        halt = icewright("queue", verb, "--catalog", "lake", "--reason", "x", "--yes", "--json").json
        assert (halt["kind"], halt["name"], halt["why"], halt["running"]) == ("catalog", "lake", "x", 0)
        assert icewright("queue", "--json").json == {"halts": [halt]}
    assert icewright("queue", "resume", "--catalog", "lake", "--json").json == {"resumed": True, "halts": []}
    assert icewright("queue", "resume", "--catalog", "lake", "--json").json == {"resumed": False, "halts": []}


@pytest.mark.usefixtures("house")
def test_what_else_is_halted_stays_and_is_shown() -> None:
    icewright("queue", "pause", "all", "--yes")
    icewright("queue", "stop", "--catalog", "lake", "--yes")
    said = icewright("queue", "resume", "all").out.splitlines()
    assert (said[:2], said[3].startswith("catalog lake  stopped")) == (["resumed", "Still halted:"], True)
    assert icewright("queue", "resume", "--group", "default").out.startswith("no halt of its own\n")


WRONG = (
    ((), "say exactly one part of the queue"),
    (("all", "--catalog", "lake"), "say exactly one part of the queue"),
    (("--group", "default", "--table", "db.events"), "say exactly one part of the queue"),
    (("some",), "'some' is no part of the queue"),
    (("--group", "absent"), "there is no resource group 'absent'"),
    (("--catalog", "absent"), "there is no catalog 'absent'"),
    (("--table", "db.absent"), "the server does not know a table lake.db.absent"),
    (("--group", ""), "`name` is needed of a group"),
    (("all", "--reason", "x" * (WHY_LENGTH_MAX + 1)), "a reason has at most 1,000 characters"),
)


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_wrong_halts_nothing(house: House, verb: str) -> None:
    for arguments, said in WRONG:
        refused = icewright("queue", verb, *arguments)
        assert (refused.status, said in refused.err, refused.out) == (2, True, ""), refused.err
    assert states(house) == []


def test_a_time_that_is_none_is_wrong_use_and_so_is_one_where_nothing_waits(house: House) -> None:
    for verb, seconds in (("drain", "-1"), ("stop", "soon"), ("pause", "5"), ("resume", "5")):
        assert icewright("queue", verb, "all", "--timeout", seconds).status == 2
    assert states(house) == []


def test_whoever_may_only_look_changes_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    given_a_role(monkeypatch, "viewer")
    for verb in VERBS:
        refused = icewright("queue", verb, "--catalog", "lake")
        assert (refused.status, "lacks the permission `operate`" in refused.err) == (2, True), refused.err
    assert (states(house), icewright("queue").out) == ([], "nothing is paused\n")


def test_whoever_operates_one_catalog_halts_no_more_than_that(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    given_a_role(monkeypatch, "operator", "lake")
    for more in (("all",), ("--group", "default"), ("--catalog", "other")):
        refused = icewright("queue", "stop", *more, "--yes")
        assert (refused.status, "lacks the permission `operate`" in refused.err) == (2, True), refused.err
    assert states(house) == []
    assert icewright("queue", "stop", "--catalog", "lake", "--yes").status == 0
    assert states(house) == [("catalog lake", "stopped")]


@pytest.mark.parametrize("verb", ["drain", "stop"])
def test_it_waits_until_what_runs_has_ended(house: House, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = running(house)
    instead_of_sleeping(monkeypatch, lambda: end(house, task))
    said = icewright("queue", verb, "all", "--yes")
    assert (said.status, said.err.strip()) == (0, "1 still running")
    assert ", nothing runs\n" in said.out


@pytest.mark.parametrize("verb", ["drain", "stop"])
def test_what_still_runs_in_the_end_is_status_1_and_stays_halted(house: House, verb: str) -> None:
    running(house)
    said = icewright("queue", verb, "all", "--timeout", "0", "--yes")
    assert (said.status, ", 1 still running\n" in said.out) == (1, True)
    assert [part for part, _ in states(house)] == ["everything"]
    assert icewright("queue", "pause", "all", "--yes").status == 0  # which does not ask for it to end


def test_whoever_waits_is_told_that_somebody_let_it_go_on(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    running(house)
    instead_of_sleeping(monkeypatch, lambda: house.control.halting.resume(EVERYTHING, "enough"))
    said = icewright("queue", "drain", "all", "--yes")
    assert (said.status, "it was resumed meanwhile" in said.err) == (2, True)


def test_a_halt_says_how_it_ends_in_words_for_a_shell(house: House) -> None:
    house.table("it's")
    house.clock.advance(HOUR_MS)  # new tables are looked for once a minute
    house.round()
    last = icewright("queue", "pause", "--table", "lake.db.`it's`", "--yes").out.splitlines()[-1]
    assert last == "Resume it: icewright queue resume --table 'lake.db.`it'\"'\"'s`'"


def test_the_call_that_it_equals_is_printed(house: House) -> None:
    said = icewright("queue", "pause", "all", "--show-api", "--yes")
    assert "POST" in said.err
    assert "/queue/pause" in said.err
    assert [halt.state for halt in house.control.tasks.halts.present()] == [HaltState.PAUSED]


def test_a_table_is_unparked_and_looked_at(house: House) -> None:
    before = house.control.tables.record_by_name(EVENTS)
    said = icewright("table", "unpark", "db.events")
    assert (said.status, said.out.startswith("lake.db.events is parked no more: ")) == (0, True), said.err
    after = house.control.tables.record_by_name(EVENTS)
    assert before is not None
    assert after is not None
    assert (before.unparked_at, after.unparked_at) == (None, house.clock.now())
    answer = icewright("table", "unpark", "db.events", "--json").json
    latest = not_none(house.control.tables.record_by_name(EVENTS))
    assert answer["plan"]["plan_id"] == latest.plan_id != after.plan_id


@pytest.mark.parametrize(
    ("name", "said"),
    [("db.absent", "lake.db.absent"), ("nowhere.db.events", "nowhere"), ("events", "events")],
)
@pytest.mark.usefixtures("house")
def test_what_is_no_table_is_not_unparked(name: str, said: str) -> None:
    refused = icewright("table", "unpark", name)
    assert (refused.status, said in refused.err) == (2, True), refused.err


def test_whoever_may_only_look_does_not_unpark(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    given_a_role(monkeypatch, "viewer")
    refused = icewright("table", "unpark", "db.events")
    assert (refused.status, "lacks the permission `operate`" in refused.err) == (2, True), refused.err
    assert not_none(house.control.tables.record_by_name(EVENTS)).unparked_at is None
