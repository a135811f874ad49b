"""What follows work to its end: ``apply --wait``, ``tasks show --follow`` and ``top``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from icewright.core.errors import Unavailable
from icewright.model.work.tasks import TaskState
from tests.builders.command_line import beside, icewright, on_screen
from tests.builders.lakehouse import NAME, Lakehouse
from tests.builders.worker import FINAL, Worker

FOLLOWING, WATCHING = "icewright.maintenance.tasks_cli.time", "icewright.app.top.time"


@pytest.fixture
def lakehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakehouse]:
    lakehouse = Lakehouse()
    lakehouse.create(properties={"icewright.mode": "auto"})
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, beside(lakehouse.control, folder, patch):
        yield lakehouse


def meanwhile(patch: pytest.MonkeyPatch, where: str, *steps: Callable[[], object]) -> None:
    """Let one step happen each time that a command waits before it asks again."""
    rest = iter(steps)
    patch.setattr(where, SimpleNamespace(sleep=lambda _seconds: next(rest)()))


def queued(lakehouse: Lakehouse) -> str:
    lakehouse.append(12)
    lakehouse.pass_time(48 * 3_600_000)
    lakehouse.rounds(2)
    return lakehouse.only_task().task_id


def test_a_task_is_followed_to_its_end_and_each_step_said_once(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id, worker = queued(lakehouse), Worker(lakehouse)
    spec = worker.claimed()
    meanwhile(
        monkeypatch,
        FOLLOWING,
        lambda: worker.beat(spec),
        lambda: None,
        lambda: worker.report(spec, worker.try_commit(spec)),
        lambda: lakehouse.rounds(3),
    )
    said = icewright("tasks", "show", task_id, "--follow")
    steps = [line.split("  ")[1].split(":")[0] for line in said.out.splitlines() if " UTC  " in line]
    assert steps[:4] == ["queued", "running", "committed", "succeeded"], said
    assert said.status == 0
    assert len(steps) == len({*steps})


def test_a_task_that_fails_is_exit_status_1_and_json_is_the_task(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id, worker = queued(lakehouse), Worker(lakehouse)
    spec = worker.claimed()
    meanwhile(monkeypatch, FOLLOWING, lambda: worker.report(spec, FINAL))
    said = icewright("tasks", "show", task_id, "--follow", "--json")
    assert (said.status, said.json["task"]["state"]) == (1, "failed")


def test_a_plan_is_applied_and_waited_for(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = queued(lakehouse)
    lakehouse.control.dispatcher.cancel(task_id)
    plan_id = lakehouse.tasks.get(task_id).plan_id

    def cancel() -> None:
        (live,) = [task for task in lakehouse.all_tasks() if task.state is TaskState.QUEUED]
        lakehouse.control.dispatcher.cancel(live.task_id)

    meanwhile(monkeypatch, FOLLOWING, cancel)
    said = icewright("apply", plan_id, "--wait")
    assert (said.status, "  queued: " in said.out, "  cancelled: " in said.out) == (1, True, True), said


def test_a_plan_is_approved_and_waited_for(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    lakehouse.catalog.set_properties(NAME, {"icewright.mode": "approve"})
    lakehouse.append(12)
    lakehouse.pass_time(48 * 3_600_000)
    lakehouse.rounds(2)
    (waiting,) = lakehouse.tables.waiting(limit=9)
    for wrong in (["--wait"], [waiting.plan_id, "--show", "--wait"], ["--namespace", "lake.db", "--yes", "--wait"]):
        said = icewright("approve", *wrong)
        assert (said.status, said.out, "for one plan that is approved by its id" in said.err) == (2, "", True), said
    assert lakehouse.all_tasks() == []
    meanwhile(monkeypatch, FOLLOWING, lambda: lakehouse.control.dispatcher.cancel(lakehouse.only_task().task_id))
    said = icewright("approve", waiting.plan_id, "--by", "Ada", "--wait")
    assert (said.status, "  queued: " in said.out, "  cancelled: " in said.out) == (1, True, True), said


def test_a_server_that_does_not_answer_is_asked_again_and_then_named(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = queued(lakehouse)
    asked = []

    def away(_client: object, _task_id: str) -> None:
        asked.append(1)
        raise Unavailable("the server is away")

    monkeypatch.setattr("icewright.api_client.client.Client.task", away)
    monkeypatch.setattr(FOLLOWING, SimpleNamespace(sleep=lambda _seconds: None))
    said = icewright("tasks", "show", task_id, "--follow")
    assert (said.status, len(asked)) == (1, 21)
    assert said.err.splitlines() == ["the server is away; asked again", "icewright: the server is away"]


def test_ctrl_c_ends_the_watching_and_not_the_task(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = queued(lakehouse)

    def interrupt() -> None:
        raise KeyboardInterrupt

    meanwhile(monkeypatch, FOLLOWING, interrupt)
    said = icewright("tasks", "show", task_id, "--follow")
    assert (said.status, f"the task continues: icewright tasks show {task_id} --follow" in said.err) == (1, True)
    assert lakehouse.tasks.get(task_id).state.value == "queued"


def test_top_says_what_runs_what_waits_and_the_worst_health(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no table has a health yet" in icewright("top").out
    task_id = queued(lakehouse)
    once = on_screen("top", "--once")
    assert once.out.splitlines()[0].startswith("tasks: 1 queued; optimizers: ")
    assert ("nothing runs" in once.out, str(NAME) in once.out, once.status) == (True, True, 0)
    assert max(map(len, once.out.splitlines())) <= 80
    found = json.loads(icewright("top", "--json").out)
    assert [task["task_id"] for task in found["queued"]] == [task_id]
    assert [table["name"] for table in found["worst"]] == [str(NAME)]
    worker = Worker(lakehouse)

    def interrupt() -> None:
        raise KeyboardInterrupt

    meanwhile(monkeypatch, WATCHING, worker.claimed, interrupt)
    live = on_screen("top")
    assert live.status == 0
    assert live.out.index("nothing runs") < live.out.index("Running"), live.out
