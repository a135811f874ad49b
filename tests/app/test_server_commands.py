"""With a server: plan, apply, the queue, notify and status, through a real server process on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from icewright.core.codec import from_json
from icewright.maintenance.tasks_cli import read_task
from icewright.model.actions.actions import ActionKind
from icewright.model.work.tasks import TaskState
from icewright.model.work.why import Stance, Why
from icewright.plans.views import TaskView
from icewright.terminal.address import read_address
from icewright.work.tasks.task_views import TaskDocument
from tests.builders.command_line import at_home, icewright, write_configuration
from tests.cases import each_case
from tests.lakes.sqlite import append, make_lake, make_table
from tests.narrowing import not_none

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("server")]

_PATIENCE_S = 60.0
WATCHED = tuple(f"lake.db.{name}" for name in ("watched", "asked", "again", "old", "agreed"))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    entry = make_lake(folder)
    for name, mode in (
        ("watched", "observe"),
        ("asked", "approve"),
        ("again", "approve"),
        ("old", "approve"),
        ("agreed", "approve"),
        ("unwanted", "approve"),
    ):
        table = make_table(entry, ("db", name), properties={"icewright.mode": mode})
        for first in range(0, 60, 10):
            append(table, range(first, first + 10))
    kept = {"expire-snapshots.enabled": "true", "mode": "auto", "maintenance-window.cron": "0 0 29 2 *"}
    append(make_table(entry, ("db", "kept"), properties={f"icewright.{key}": kept[key] for key in kept}), range(10))
    broken = make_table(entry, ("db", "broken"))
    append(broken, range(10))
    Path(broken.metadata_location.removeprefix("file://")).unlink()
    write_configuration(folder, entry)
    return folder


@pytest.fixture(scope="module")
def server(lake: Path) -> Iterator[None]:
    environ = {**os.environ, "HOME": str(lake / "home")}
    command = [sys.executable, "-m", "icewright", "--config", str(lake / "icewright.toml"), "serve"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - our own words
        try:
            with pytest.MonkeyPatch.context() as patch:
                at_home(lake, patch)
                deadline = time.monotonic() + _PATIENCE_S
                while icewright("status").status or not all(map(is_seen, WATCHED)):
                    assert time.monotonic() < deadline, "the server does not answer, or does not see its tables"
                    time.sleep(0.2)
            yield
        finally:
            process.terminate()


@pytest.fixture(autouse=True)
def here(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_home(lake, monkeypatch)


def is_seen(table: str) -> bool:
    return bool(icewright("plan", table, "--json").json["from_server"])


def plan_id(table: str) -> str:
    answer = icewright("plan", table, "--json").json
    assert answer["from_server"]
    found: str = answer["plan"]["plan_id"]
    return found


def test_status_in_words_and_as_json() -> None:
    said = icewright("status")
    assert (said.status, "catalogs  lake" in said.out) == (0, True)
    assert "no optimizer yet" in said.out
    assert ": leads, http://127.0.0.1:" in said.out
    assert icewright("status", "--json").json["catalogs"][0]["name"] == "lake"


def test_tables_are_listed_in_any_order_and_the_health_of_one_is_explained() -> None:
    found = icewright("tables", "list", "--sort", "-name", "--namespace", "lake.db", "--search", "ED", "--json").json
    names = [one["name"] for one in found["items"]]
    assert names == sorted(names, reverse=True)
    assert {"lake.db.watched", "lake.db.asked", "lake.db.agreed"} <= set(names)
    assert "lake.db.kept" not in names
    listed = icewright("tables", "list", "--mode", "observe", "--health-max", "99")
    assert (listed.status, "lake.db.watched" in listed.out, "lake.db.asked" in listed.out) == (0, True, False)
    assert icewright("tables", "list", "--sort", "size").status == 2
    said = icewright("health", "lake.db.watched")
    assert (said.status, "of 100" in said.out, "the plan is not carried out" in said.out) == (0, True, True)
    parts = icewright("health", "lake.db.watched", "--json").json["health"]["parts"]
    assert sum(part["weight"] for part in parts) == 100


class TestWithoutCatalogs:
    """With a token and no configuration, commands that read tables ask the server."""

    @pytest.fixture
    def remote(self, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = read_address(lake / "state" / "server.json")
        at_home(tmp_path, monkeypatch)
        monkeypatch.setenv("ICEWRIGHT_URL", found.url)
        monkeypatch.setenv("ICEWRIGHT_TOKEN", found.token)

    @pytest.mark.usefixtures("remote")
    @each_case(
        ("command", "status", "says"),
        [
            ("why", 0, "lake.db.watched: rewrite_data_files"),
            ("plan", 1, "merge 6 small files"),
            ("explain", 0, "lake.db.watched: merge 6 small files"),
            ("policy show", 0, "icewright.mode"),
            ("table show", 0, "lake.db.watched"),
            ("table partitions", 0, "(unpartitioned)"),
            ("table snapshots", 0, "append"),
            ("table refs", 0, "main"),
        ],
    )
    def test_the_server_is_asked(self, command: str, status: int, says: str) -> None:
        said = icewright(*command.split(), "lake.db.watched")
        assert (said.status, said.err, says in said.out) == (status, "", True), said

    @pytest.mark.usefixtures("remote")
    def test_who_may_only_read_is_shown_the_plan_that_the_server_has(
        self, monkeypatch: pytest.MonkeyPatch, lake: Path
    ) -> None:
        known = icewright("table", "show", "lake.db.watched", "--json").json["uuid"]
        made = icewright("--config", str(lake / "icewright.toml"), "token", "create", "reads", "--scope", "lake")
        monkeypatch.setenv("ICEWRIGHT_TOKEN", made.out.strip())
        explained, planned = icewright("explain", "lake.db.watched"), icewright("plan", "lake.db.watched", "--json")
        assert (explained.status, "lake.db.watched: merge 6 small files" in explained.out) == (0, True)
        assert "lacks the permission `operate` on lake.db, so it is not planned again" in explained.err
        assert (planned.status, planned.json["plan"]["uuid"], planned.json["from_server"]) == (1, known, True)
        asked = icewright("plan", "lake.db.watched", "--action", "expire-snapshots")
        assert (asked.status, "lacks the permission" in asked.err) == (2, True)

    @pytest.mark.usefixtures("remote")
    def test_what_is_only_observed_is_not_told_to_be_applied(self) -> None:
        observed, waiting = icewright("plan", "lake.db.watched"), icewright("plan", "lake.db.again")
        assert observed.out.splitlines()[-1] == "Next: icewright policy set lake.db.watched mode=approve --yes"
        assert waiting.out.splitlines()[-1].startswith("Next: icewright approve plan-")

    @pytest.mark.usefixtures("remote")
    def test_scan_says_what_the_server_has_found(self) -> None:
        said = icewright("scan")
        assert (said.status, said.err) == (1, "")
        (watched,) = [line for line in said.out.splitlines() if line.startswith("lake.db.watched ")]
        assert "  merge 6 small files" in watched
        rows = {row["name"]: row for row in icewright("scan", "--json", "--catalog", "lake").json["tables"]}
        assert rows["lake.db.watched"]["figures"]["small_files"] == 6
        assert rows["lake.db.broken"]["problem"]["code"] == "unreadable"
        assert icewright("scan", "--json", "--catalog", "pond").json["tables"] == []

    @pytest.mark.usefixtures("remote")
    def test_a_list_is_read_to_its_end_page_by_page(self) -> None:
        assert len(icewright("table", "snapshots", "lake.db.watched", "--json").json["items"]) == 6
        assert icewright("table", "snapshots", "lake.db.watched", "--limit", "5").err.startswith("the first 5 only")

    @pytest.mark.usefixtures("remote")
    def test_a_table_that_the_server_does_not_know_is_said(self) -> None:
        for command in ("why", "plan", "explain", "policy show", "table show"):
            said = icewright(*command.split(), "lake.db.nowhere")
            assert (said.status, "the server does not know a table lake.db.nowhere" in said.err) == (2, True)

    def test_without_a_server_either_both_ways_are_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        at_home(tmp_path, monkeypatch)
        for command in ("plan", "explain", "policy show", "table show"):
            said = icewright(*command.split(), "lake.db.watched")
            assert (said.status, "no catalogs are configured" in said.err) == (2, True)
            assert "icewright login" in said.err


def test_the_api_call_is_shown_without_the_token(lake: Path) -> None:
    said = icewright("plan", "db.watched", "--show-api")
    get, post, again = said.err.splitlines()
    assert get.startswith("GET http://127.0.0.1:")
    assert "/api/v1/tables?name=lake.db.watched&limit=1" in get
    assert post.endswith("/look?catalog=lake")
    asked = icewright("plan", "db.watched", "--migrate", "all", "--show-api")
    assert "/plans?catalog=lake {" in asked.err.splitlines()[1]
    assert again == get
    token = json.loads((lake / "state" / "server.json").read_text())["token"]
    assert token not in said.out + said.err


def test_what_is_kept_up_by_itself_is_explained() -> None:
    said = icewright("explain", "db.kept")
    assert said.out.splitlines()[-1].startswith("Automatic expiry of snapshots: nothing to do: none of 1 snapshot is ")
    (reason,) = icewright("explain", "db.kept", "--json").json["upkeep"]
    assert reason["code"] == "nothing-expires"
    assert icewright("explain", "db.watched", "--json").json["upkeep"] == []


def test_why_nothing_happens_is_answered() -> None:
    said = icewright("why", "db.watched", "--show-api")
    first, look, mode, *_ = said.out.splitlines()
    assert said.status == 0
    assert first.startswith("lake.db.watched: rewrite_data_files is kept back (merge 6 small files")
    assert look.startswith("Last observed at ")
    assert mode == "Mode observe (from table property): only observed: nothing is done."
    assert said.err.splitlines()[1].endswith("/why?catalog=lake")
    found = from_json(Why, icewright("why", "db.kept", "--json").json)
    (expiry,) = [each for each in found.kinds if each.kind is ActionKind.EXPIRE_SNAPSHOTS]
    assert expiry.stance in {Stance.KEPT_BACK, Stance.NOTHING_TO_DO}
    assert expiry.considered is not None
    rules = "  - Level 0, small files are merged"
    assert rules not in said.out
    assert rules in icewright("why", "db.watched", "--verbose").out
    assert rules in icewright("--verbose", "why", "db.watched").out


def test_why_of_a_table_that_nobody_knows_is_wrong_use() -> None:
    said = icewright("why", "db.absent")
    assert (said.status, said.out) == (2, "")
    assert "does not know a table lake.db.absent" in said.err


def test_why_says_of_an_unreadable_table_what_the_error_is_and_since_when() -> None:
    said = icewright("why", "db.broken")
    assert (said.status, said.err) == (0, "")
    first, following = said.out.splitlines()
    assert first.startswith("lake.db.broken cannot be read since 20")
    assert "metadata.json" in first
    assert following.startswith("Next: nothing is planned or done for it")
    assert icewright("why", "db.broken", "--json").json["answer"] == first
    assert "cannot be read since" in icewright("table", "observation", "db.broken").err


def test_in_mode_approve_every_message_names_the_command_that_works() -> None:
    said = icewright("plan", "db.agreed")
    assert (said.status, said.err) == (1, "")
    assert said.out.splitlines()[-1].startswith("Next: icewright approve plan-")
    (waiting,) = [one for one in icewright("approve", "--json").json["items"] if one["table"] == "lake.db.agreed"]
    waiting_id = waiting["plan_id"]
    assert (waiting["kind"], waiting_id) == ("rewrite_data_files", said.out.split()[-1])
    assert f"waits for approval: `icewright approve {waiting_id}`" in icewright("why", "db.agreed").out
    assert icewright("approve", waiting_id, "--show").out.splitlines()[-1] == f"Next: icewright approve {waiting_id}"
    task = read_task(icewright("approve", waiting_id, "--by", "Ada", "--json").json)
    assert (task.state, task.plan_id) == (TaskState.QUEUED, waiting_id)
    assert waiting_id not in icewright("approve").out


def test_a_refused_plan_is_shown_with_who_refused_it_and_is_never_run() -> None:
    refused = icewright("plan", "db.unwanted").out.split()[-1]
    said = icewright("refuse", refused, "--reason", "it moves next week", "--by", "Ada")
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith(f"lake.db.unwanted: owner (Ada) refused plan {refused}: it moves next week\n")
    assert refused not in icewright("approve").out
    assert f"owner (Ada) refused plan {refused}: it moves next week" in icewright("why", "db.unwanted").out
    assert "refused" in icewright("approve", refused, "--show").out
    for verb in (["approve", refused, "--by", "Eve"], ["apply", refused]):
        late = icewright(*verb)
        assert (late.status != 0, "was refused by owner (Ada)" in late.err) == (True, True)


def test_a_plan_that_was_asked_for_is_applied() -> None:
    said = icewright("plan", "db.agreed", "--migrate", "spec")
    assert "icewright approve" not in said.out


def test_what_is_only_observed_is_not_applied() -> None:
    said = icewright("apply", plan_id("db.watched"))
    assert said.status == 1
    assert "mode observe" in said.err
    assert "icewright.mode" in said.err


def test_a_plan_is_applied_cancelled_and_retried() -> None:
    task = read_task(icewright("apply", plan_id("db.asked"), "--json").json)
    assert (task.state, task.table) == (TaskState.QUEUED, "lake.db.asked")
    listed = icewright("tasks", "list", "--table", "db.asked", "--state", "queued", "--json").json
    assert [item["task_id"] for item in listed["items"]] == [task.task_id]
    assert task.task_id in icewright("tasks", "list").out
    cancelled = icewright("tasks", "cancel", task.task_id)
    assert (cancelled.status, "state    cancelled" in cancelled.out) == (0, True)
    assert icewright("tasks", "cancel", task.task_id).status == 1
    assert read_task(icewright("tasks", "retry", task.task_id, "--json").json).state is TaskState.QUEUED
    document = from_json(TaskDocument, icewright("tasks", "show", task.task_id, "--json").json)
    assert [entry.state.value for entry in document.history] == ["queued", "cancelled", "queued"]
    shown = icewright("tasks", "show", task.task_id).out
    assert "History" in shown
    assert (document.start is not None, "Starts: it is not known when.\n" in shown) == (True, True)


def test_what_happens_is_told_page_by_page_and_as_it_happens(lake: Path) -> None:
    environ = {**os.environ, "HOME": str(lake / "home")}
    command = [sys.executable, "-m", "icewright", "feed", "--follow", "--json", "--under", "lake.db.asked"]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background ignores it
    task_id = icewright("tasks", "list", "--table", "db.asked", "--json").json["items"][0]["task_id"]
    with subprocess.Popen(command, env=environ, cwd=lake, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own words
        lines = ThreadPoolExecutor(1).submit(not_none(process.stdout).readline)
        deadline = time.monotonic() + _PATIENCE_S
        while not lines.done():  # it is told what happens from when it has begun
            assert time.monotonic() < deadline, "no facts yet"
            icewright("tasks", "cancel", task_id)
            icewright("tasks", "retry", task_id)
        process.send_signal(signal.SIGINT)
        told = json.loads(lines.result())
        assert (told["task_id"], told["kind"] in ("queued", "cancelled")) == (task_id, True)
        assert process.wait(20) == 0
    first = icewright("feed", "--limit", "2", "--under", "lake.db.asked", "--json").json
    assert [fact["kind"] for fact in first["items"]] == ["waits-for-approval", "queued"]
    said = icewright("feed", "--limit", "2", "--under", "lake.db.asked", "--cursor", first["next_cursor"])
    assert (said.status, said.out.splitlines()[0].split()) == (0, ["when", "what", "table", "task", "because"])
    assert icewright("feed", "--kind", "parked").out == "no facts yet\n"


def test_e11_snapshots_expire_when_a_person_says_yes_and_not_before() -> None:
    asked = ("expire-snapshots", "db.old", "--older-than", "PT0S", "--retain-last", "2")
    shown = icewright(*asked)
    assert (shown.status, "6 -> 2" in shown.out) == (1, True), shown.out
    assert "4 snapshots of any age; kept: 2 by age and number" in shown.out
    assert "icewright undo TASK_ID" in shown.out
    assert icewright("plan", "db.old", "--action", "expire-snapshots", "--retain-last", "2").status == 0
    for wrong in ("now", "2026-11-22", "432000000"):
        assert icewright("expire-snapshots", "db.old", "--older-than", wrong, "--yes").status == 2
    assert icewright("expire-snapshots", "db.old", "--retain-last", "0").status == 2
    assert icewright("plan", "db.old", "--older-than", "P1D").status == 2
    assert len(icewright("table", "snapshots", "db.old", "--json").json["items"]) == 6
    task = succeeded(read_task(icewright(*asked, "--yes", "--json").json))
    assert not_none(task.outcome).reason.text == "4 snapshots expired, 2 left"
    assert len(icewright("table", "snapshots", "db.old", "--json").json["items"]) == 2
    assert icewright(*asked, "--yes").status == 0
    undo_and_look(task.task_id)
    roll_back_and_look()


def undo_and_look(task_id: str) -> None:
    shown = icewright("tasks", "show", task_id)
    assert f"icewright undo {task_id}, until " in shown.out
    undo = icewright("undo", task_id)
    assert (undo.status, "2 -> 6" in undo.out) == (1, True), undo.out
    assert f"4 snapshots of task {task_id} put back" in undo.out
    assert len(icewright("table", "snapshots", "db.old", "--json").json["items"]) == 2
    task = succeeded(read_task(icewright("undo", task_id, "--yes", "--json").json))
    assert not_none(task.outcome).reason.text == f"4 snapshots of task {task_id} put back"
    assert len(icewright("table", "snapshots", "db.old", "--json").json["items"]) == 6
    again = icewright("undo", task_id, "--yes")
    assert (again.status, "nothing of it is missing" in again.out) == (0, True)
    assert icewright("undo", task.task_id).status == 1
    assert icewright("undo", "task-none").status == 2


def roll_back_and_look() -> None:
    *_, third, _, _ = snapshots = [
        one["snapshot_id"] for one in reversed(icewright("table", "snapshots", "db.old", "--json").json["items"])
    ]
    asked = ("rollback", "db.old", "--to-snapshot", str(third))
    shown = icewright(*asked)
    assert (shown.status, "2 commits lost" in shown.out) == (1, True), shown.out
    assert "2 commits (append) by unknown" in shown.out
    task = succeeded(read_task(icewright(*asked, "--yes", "--json").json))
    assert icewright(*asked).status == 0
    assert f"main set forward again from snapshot {third} to {snapshots[-1]}" in icewright("undo", task.task_id).out
    succeeded(read_task(icewright("undo", task.task_id, "--yes", "--json").json))
    assert icewright(*asked).status == 1
    for wrong in (("--to-time", "2026-11-22"), (), (*asked[2:], "--to-time", "2026-11-22T10:00:00Z")):
        assert icewright("rollback", "db.old", *wrong).status == 2


def succeeded(task: TaskView) -> TaskView:
    deadline = time.monotonic() + _PATIENCE_S
    while task.state is not TaskState.SUCCEEDED:
        assert time.monotonic() < deadline, task
        time.sleep(0.2)
        task = from_json(TaskDocument, icewright("tasks", "show", task.task_id, "--json").json).task
    return task


def test_lists_go_on_where_they_ended() -> None:
    for table in ("db.asked", "db.again"):
        icewright("apply", plan_id(table))
    first = icewright("tasks", "list", "--limit", "1", "--json").json
    rest = icewright("tasks", "list", "--limit", "1", "--cursor", first["next_cursor"], "--json").json
    assert first["items"][0]["task_id"] > rest["items"][0]["task_id"]
    assert "there are more: --cursor" in icewright("tasks", "list", "--limit", "1").err


def test_an_event_is_taken_once() -> None:
    assert icewright("notify", "db.watched", "--snapshot-id", "7").out == "the server will look at it now\n"
    assert icewright("notify", "db.watched", "--snapshot-id", "7", "--json").json["repeated"] is True
    assert icewright("notify", "pond.db.watched", "--snapshot-id", "7").status == 2
    assert icewright("notify", "db.watched", "--snapshot-id", "-1").status == 2


@each_case("arguments", [["apply", "plan-0"], ["tasks", "show", "../x"], ["tasks", "cancel", "task-0"]])
def test_what_is_not_there_is_wrong_use(arguments: list[str]) -> None:
    said = icewright(*arguments, "--json")
    assert (said.status, said.json["error"]["code"]) == (2, "not-found")


def test_a_token_of_another_server_is_refused(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = json.loads((lake / "state" / "server.json").read_text())
    monkeypatch.setenv("ICEWRIGHT_OPTIMIZER__SERVER_URL", address["url"])
    monkeypatch.setenv("ICEWRIGHT_OPTIMIZER__SERVER_TOKEN", "env:TOKEN")
    monkeypatch.setenv("TOKEN", "wrong")
    assert icewright("status").status == 2
    monkeypatch.setenv("TOKEN", address["token"])
    assert icewright("status").status == 0
    monkeypatch.setenv("ICEWRIGHT_OPTIMIZER__SERVER_URL", "http://127.0.0.1:9")
    said = icewright("status")
    assert (said.status, "does not answer" in said.err) == (1, True)


_POLICIES = """\
version: 1
rules:
  - name: watched
    match:
      tables: [lake.db.watched]
    settings:
      icewright.level-2.runs: 7
"""


def test_policies_are_shown_applied_and_taken_back(lake: Path) -> None:
    (lake / "policies").mkdir()
    (lake / "policies" / "watched.yaml").write_text(_POLICIES)
    said = icewright("policy", "apply", "policies")
    assert said.status == 1
    assert "1 of 7 tables would have other settings than by revision 0." in said.out
    assert "Nothing has been changed yet: add --yes --if-revision 0 to do exactly this." in said.out
    assert icewright("policy", "history").out == "no policies were applied yet\n"
    said = icewright("policy", "apply", "policies", "--yes", "--if-revision", "0", "--by", "alice", "--note", "t-7")
    assert (said.status, said.out.splitlines()[-1]) == (0, "Applied as revision 1.")
    said = icewright("policy", "apply", "policies", "--yes")
    assert (said.status, said.out) == (0, "Nothing to apply: revision 1 says the same already.\n")
    assert icewright("policy", "rollback", "0", "--yes", "--if-revision", "0").status == 1
    shown = icewright("policy", "show", "db.watched", "--json").json["settings"]
    assert [(one["value"], one["origin"]) for one in shown if one["key"] == "icewright.level-2.runs"] == [
        ("7", "rule watched")
    ]
    tested = icewright("policy", "test", "db.watched", "--json").json["table"]
    assert (tested["revision"], tested["from_files"]) == (1, False)
    assert "rule watched" in icewright("table", "show", "db.watched").out
    said = icewright("policy", "rollback", "0", "--yes", "--json")
    assert (said.status, said.json["applied"]) == (0, 2)
    items = icewright("policy", "history", "--json").json["items"]
    assert [(one["number"], one["rules"], one["note"]) for one in items] == [
        (2, 0, "rollback to revision 0"),
        (1, 1, "t-7"),
    ]
    assert items[1]["applied_by"] == "owner (alice)"
    said = icewright("policy", "show", "--revision", "1")
    assert "icewright.level-2.runs  7" in said.out
