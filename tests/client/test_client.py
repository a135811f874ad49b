"""The Python client against the very application, over HTTP on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import icewright
from icewright.api_client.client import Client
from icewright.client import Lake, StillGoing, connect
from icewright.core.errors import IcewrightError, InvalidName, NotAllowed, NotFound, Rejected, Unavailable
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.events.events import Channel, CommitEvent, EventState
from icewright.model.events.feed import FactKind
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policy import Mode
from icewright.model.work.jobs import Committed
from icewright.model.work.tasks import TaskState
from icewright.model.work.why import Stance
from icewright.ports.store import WaitingPlan
from icewright.terminal.address import ServerAddress, write_address
from tests.builders.served import EVENTS, TOKEN, Served, at_a_port, hello
from tests.work.tasks.test_api_tasks import carry_out, report

HOSTILE = TableName("lake", ("d`b",), "<img src=x onerror=alert(1)>\u202e\x1b[31m&'\"")


@pytest.fixture
def url(served: Served) -> Iterator[str]:
    with at_a_port(served.control) as url:
        yield url


@pytest.fixture
def lake(url: str) -> Iterator[Lake]:
    with connect(url, token=TOKEN) as lake:
        yield lake


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("ICEWRIGHT_", "PYICEBERG_", "XDG_"))]:
        monkeypatch.delenv(name)


def loaded(code: str, *prefixes: str) -> str:
    """The modules with these beginnings that are there after some code, in a process of its own."""
    code = f"import sys; {code}; print([name for name in sys.modules if name.startswith({prefixes!r})])"
    return subprocess.check_output([sys.executable, "-c", code], text=True).strip()  # noqa: S603 - our own words


class TestConnecting:
    def test_the_import_is_lazy_and_knows_no_other_name(self) -> None:
        assert loaded("import icewright", "icewright.", "pyspark", "httpx") == "[]"
        assert icewright.connect is connect
        with pytest.raises(AttributeError, match="nothing_of_that_name"):
            _ = icewright.nothing_of_that_name  # type: ignore[attr-defined]  # that is what is asked

    def test_the_client_never_imports_spark(self) -> None:
        assert loaded("from icewright import connect", "pyspark", "py4j") == "[]"

    def test_without_a_server_it_says_how_to_get_one(self) -> None:
        with pytest.raises(Unavailable, match="no server is running") as error:
            connect()
        assert "icewright serve" in error.value.hint

    def test_the_server_of_the_environment(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ICEWRIGHT_URL", url)
        with pytest.raises(Rejected, match="no token"):
            connect()
        monkeypatch.setenv("ICEWRIGHT_TOKEN", TOKEN)
        assert list(connect().tables()) == []

    def test_the_server_of_this_machine(self, url: str, tmp_path: Path) -> None:
        (tmp_path / "icewright.toml").write_text('[server]\nstate_dir = "state"\n')
        write_address(tmp_path / "state" / "server.json", ServerAddress(url, TOKEN, 1))
        assert list(connect().tables()) == []
        assert list(connect(url).tables()) == []

    def test_a_token_that_is_kept_for_one_server_is_shown_to_no_other(self, url: str, tmp_path: Path) -> None:
        (tmp_path / "icewright.toml").write_text('[server]\nstate_dir = "state"\n')
        write_address(tmp_path / "state" / "server.json", ServerAddress(url, TOKEN, 1))
        with pytest.raises(Rejected, match="no token for"):
            connect("http://127.0.0.1:1")

    def test_the_log_in_at_the_server_of_the_environment_is_used(
        self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "icewright.toml").write_text('[server]\nstate_dir = "state"\n')
        write_address(tmp_path / "state" / "login.json", ServerAddress(url, TOKEN, 1))
        monkeypatch.setenv("ICEWRIGHT_URL", f"{url}/")
        assert list(connect().tables()) == []
        monkeypatch.setenv("ICEWRIGHT_URL", "http://127.0.0.1:1")
        with pytest.raises(Rejected, match=r"no token for http://127\.0\.0\.1:1") as error:
            connect()
        assert "icewright login" in error.value.hint

    def test_a_token_by_reference(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MINE", TOKEN)
        lake = connect(url, token="env:MINE")  # noqa: S106 - a reference
        assert list(lake.tables()) == []
        with pytest.raises(Rejected, match="no variable ABSENT"):
            connect(url, token="env:ABSENT")  # noqa: S106 - see above

    def test_a_wrong_token_is_an_error_that_does_not_show_it(self, url: str) -> None:
        lake = connect(url, token="wrong-and-secret")  # noqa: S106 - opens nothing
        with pytest.raises(IcewrightError) as error:
            list(lake.tables())
        assert "secret" not in f"{error.value}{lake!r}{error.value.hint}"


class TestTables:
    def test_all_tables_come_page_by_page(self, served: Served, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        names = {f"lake.db.t{number}" for number in range(5)}
        for number in range(5):
            served.table(TableName("lake", ("db",), f"t{number}"), files=1)
        asked = []
        real = Client.tables

        def two_at_a_time(self: Client, **given: object) -> object:
            asked.append(given.get("cursor"))
            return real(self, **{**given, "limit": 2})  # type: ignore[arg-type]  # what was given, and the limit

        monkeypatch.setattr(Client, "tables", two_at_a_time)
        assert {table.name for table in lake.tables()} == names
        assert len(asked) == 3
        assert list(lake.tables(catalog="other")) == []

    def test_a_table_by_its_name(self, served: Served, lake: Lake) -> None:
        uuid = served.table()
        assert lake.table("lake.db.events").uuid == uuid
        with pytest.raises(NotFound):
            lake.table("lake.db.absent")
        with pytest.raises(InvalidName):
            lake.table("db.events")  # there are two catalogs

    def test_health_in_figures_and_words(self, served: Served, lake: Lake) -> None:
        served.table(cities=2)
        health = lake.table("lake.db.events").health()
        assert not health.is_well
        assert health.document.table.figures.small_files == 24
        assert "merge 24 small files" in health.says
        assert "  small files     24 (" in repr(health)
        assert "<tr><th>is well</th><td>no</td></tr>" in health._repr_html_()

    def test_policy_by_setting_with_its_origin(self, served: Served, lake: Lake) -> None:
        served.table()
        policy = lake.table("lake.db.events").policy()
        assert (policy.mode, policy["icewright.mode"]) == (Mode.AUTO, "auto")
        assert policy.settings["icewright.mode"].origin == "table property"
        assert "  icewright.mode  auto (table property)" in repr(policy)
        with pytest.raises(KeyError):
            _ = policy["icewright.absent"]

    def test_why(self, served: Served, lake: Lake) -> None:
        served.table()
        answer = lake.table("lake.db.events").why()
        assert answer.kinds[0].stance is Stance.QUEUED
        assert repr(answer).startswith("lake.db.events: rewrite_data_files is queued (merge 12 small files")
        assert "<th>rewrite_data_files</th><td>queued</td>" in answer._repr_html_()

    def test_history_is_what_the_feed_says_of_the_table_alone(self, served: Served, lake: Lake) -> None:
        served.table()
        served.table(TableName("lake", ("db",), "other"))
        facts = list(lake.table("lake.db.events").history())
        assert [(fact.kind, fact.table) for fact in facts] == [(FactKind.QUEUED, "lake.db.events")]
        assert len(list(lake.feed())) == 2
        assert list(lake.feed(kinds=[FactKind.FAILED])) == []

    def test_what_the_last_look_saw(self, served: Served, lake: Lake) -> None:
        served.table()
        table = lake.table("lake.db.events")
        assert table.observation().snapshot_id == table.summary.snapshot_id


class TestWork:
    def test_exactly_the_plan_that_was_looked_at_is_applied(self, served: Served, lake: Lake) -> None:
        served.table(mode="approve")
        table = lake.table("lake.db.events")
        with pytest.raises(NotAllowed, match="no plan"):
            table.apply()
        plan = table.plan()
        assert (plan.is_empty, plan.queued) == (False, None)
        task = table.apply()
        assert (task.state, task.view.plan_id) == (TaskState.QUEUED, plan.plan_id)
        assert [one.task_id for one in table.tasks(TaskState.QUEUED)] == [task.task_id]
        assert [one.task_id for one in lake.tasks()] == [task.task_id]

    def test_what_is_asked_for(self, served: Served, lake: Lake) -> None:
        served.table(mode="approve")
        plan = lake.table("lake.db.events").plan(ExpireSnapshotsRequest("PT0S", 1))
        assert "snapshots" in plan.says
        assert plan.apply().view.action.kind == "expire_snapshots"

    def test_in_mode_auto_a_plan_says_which_task_has_it(self, served: Served, lake: Lake) -> None:
        served.table(mode="observe")
        served.lake.set_properties(EVENTS, {"icewright.mode": "auto"})
        plan = lake.table("lake.db.events").plan()
        assert plan.queued is not None
        assert lake.task(plan.queued).state is TaskState.QUEUED

    def test_the_plans_of_a_table_are_there_newest_first_whoever_made_them(self, served: Served, lake: Lake) -> None:
        served.table(mode="approve")
        table = lake.table("lake.db.events")
        made = [table.plan().plan_id for _ in range(12)]  # more than a page
        found = [plan.plan_id for plan in table.plans()]
        assert found[: len(made)] == made[::-1]
        assert next(table.plans()).apply().view.plan_id == made[-1]

    def test_what_the_mode_forbids_is_the_domains_own_error(self, served: Served, lake: Lake) -> None:
        served.table(mode="observe")
        with pytest.raises(NotAllowed, match="observe") as error:
            lake.table("lake.db.events").plan().apply()
        assert "icewright.mode" in error.value.hint

    def test_a_task_is_waited_for_until_it_has_ended(self, served: Served, url: str) -> None:
        served.table(mode="approve")
        served.control.dispatcher.hello(hello())

        def work(_seconds: float) -> None:
            """Between two polls an optimizer carries the task out, and the server verifies it."""
            spec = served.control.dispatcher.claim("optimizer-1")
            if spec is not None:
                served.control.dispatcher.report(report(spec, Committed(carry_out(served, spec))))
                served.control.loop.round()

        with Lake(Client(url, TOKEN), pause=work) as lake:
            task = lake.table("lake.db.events").plan().apply()
            assert task.wait(timeout=60).succeeded
            assert [attempt.attempt for attempt in task.document().attempts] == [1]
            (attempt,) = task.attempts()
            assert task.attempt(1).attempt == attempt
            assert (attempt.optimizer_id, attempt.cause) == ("optimizer-1", None)
            with pytest.raises(NotFound):
                task.attempt(2)
        assert task.says == "12 files became 1, the same 1,200 rows"
        assert repr(task) == f"<Task {task.task_id} of lake.db.events: succeeded, {task.says}>"

    def test_who_waits_for_too_long_is_told_and_the_task_goes_on(self, served: Served, url: str) -> None:
        served.table(mode="approve")
        time = [0.0]

        def pause(seconds: float) -> None:
            time[0] += seconds

        with Lake(Client(url, TOKEN), pause=pause, now=lambda: time[0]) as lake:
            task = lake.table("lake.db.events").plan().apply()
            with pytest.raises(StillGoing, match=r"queued after 2\.5 s") as error:
                task.wait(timeout=2.5)
            assert isinstance(error.value, TimeoutError)
            assert time == [2.5]
            assert ".why()" in error.value.hint
            assert lake.task(task.task_id).state is TaskState.QUEUED

    def test_cancel_and_retry(self, served: Served, lake: Lake) -> None:
        served.table(mode="approve")
        task = lake.table("lake.db.events").plan().apply().cancel()
        assert (task.state, task.has_ended, task.succeeded) == (TaskState.CANCELLED, True, False)
        assert task.wait() is task
        with pytest.raises(NotAllowed):
            task.cancel()
        assert task.retry().state is TaskState.QUEUED


class TestPeopleAndTheQueue:
    def test_a_plan_waits_and_is_approved_by_somebody(self, served: Served, lake: Lake) -> None:
        served.table(mode="auto")
        table = lake.table("lake.db.events")
        asked = served.control.maintainer.plan_asked(EVENTS, ExpireSnapshotsRequest("PT0S", 1))
        served.control.tables.wait(
            WaitingPlan(asked.plan_id, asked.table_id, EVENTS, ActionKind.EXPIRE_SNAPSHOTS, asked.reason, 7)
        )
        (waiting,) = lake.waiting()
        plan = lake.plan(waiting.plan_id)
        assert plan.says == asked.reason.text
        with pytest.raises(NotFound):
            plan.approval()
        assert list(lake.approvals()) == []
        assert plan.approve("Ada").table == "lake.db.events"
        approval = plan.approval()
        assert (approval.plan_id, approval.approved_by) == (plan.plan_id, "owner (Ada)")
        assert list(lake.approvals()) == list(table.approvals()) == [approval]
        with pytest.raises(NotFound):
            lake.plan("plan-none")

    def test_what_the_server_was_told_and_what_came_of_it(self, served: Served, lake: Lake) -> None:
        served.table()
        served.control.tables.receive(CommitEvent(EVENTS), CommitEvent(HOSTILE))
        served.control.loop.round()
        assert {event.table: event.state for event in lake.events()} == {
            str(EVENTS): EventState.DONE,
            str(HOSTILE): EventState.DONE,
        }
        (event,) = lake.events(table="lake.db.events", state=EventState.DONE, channel=Channel.HTTP)
        assert event.table_name == EVENTS
        assert list(lake.events(state=EventState.WAITING)) == []

    def test_how_full_the_groups_are(self, served: Served, lake: Lake) -> None:
        served.table(mode="approve")
        lake.table("lake.db.events").plan().apply()
        waiting = {group.name: group.waiting for group in lake.groups()}
        assert waiting["default"] == 1
        assert [lane.waiting for lane in lake.group("default").lanes] == [1]
        with pytest.raises(NotFound):
            lake.group("none")


class Elements(HTMLParser):
    """The elements of some HTML, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_t12_what_strangers_call_their_tables_is_text_in_every_representation(served: Served, lake: Lake) -> None:
    served.table(HOSTILE, mode="approve")
    (table,) = lake.tables()
    plan = table.plan()
    task = plan.apply()
    shown = [lake, table, table.health(), table.policy(), table.why(), plan, task]
    for one in shown:
        html = Elements(one._repr_html_())  # type: ignore[attr-defined]  # each has one
        assert html.found <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p", "strong"}
        assert html.attributes == []
        assert html.text.isprintable()
        assert all(line.isprintable() for line in repr(one).splitlines())
    assert "<img src=x onerror=alert(1)>\\u202e\\x1b[31m&'\"" in Elements(table._repr_html_()).text
