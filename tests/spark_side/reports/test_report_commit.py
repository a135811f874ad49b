"""Jobs tell of their commits, whoever is there; without Spark."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from icewright.core.errors import IcewrightError, Unavailable
from icewright.model.events.events import Channel
from icewright_spark import report_commit
from icewright_spark.reports import outbox as outbox_module
from icewright_spark.reports.outbox import Flushed, Outbox, main
from icewright_spark.reports.report import Reported, within
from tests.builders.served import EVENTS, TOKEN, Served, at_a_port
from tests.servers.processes import free_port

TABLE = str(EVENTS)


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEWRIGHT_TOKEN", TOKEN)


@pytest.fixture
def box(tmp_path: Path) -> Path:
    return tmp_path / "outbox"


def told(served: Served) -> list[tuple[int | None, Channel]]:
    return [(stored.event.snapshot_id, stored.channel) for stored in served.control.tables.inbox(99)]


def test_a_server_that_is_down_and_comes_back_is_told_of_everything(box: Path) -> None:
    served, port = Served(), free_port()
    url = f"http://127.0.0.1:{port}"
    for number in (1, 2):
        kept = report_commit(url, TABLE, number, outbox=box)
        assert (kept.told, kept.kept) == (False, True)
        assert "does not answer" in kept.problem
    assert {path.stat().st_mode & 0o777 for path in box.iterdir()} == {0o600}
    with at_a_port(served.control, port):
        assert report_commit(url, TABLE, outbox=box) == Reported(told=True)
        assert told(served) == [(None, Channel.HTTP), (1, Channel.OUTBOX), (2, Channel.OUTBOX)]
        assert list(box.iterdir()) == []


def test_an_outbox_is_flushed_by_a_command(box: Path, capsys: pytest.CaptureFixture[str]) -> None:
    served, port = Served(), free_port()
    url = f"http://127.0.0.1:{port}"
    report_commit(url, TABLE, 1, outbox=box)
    arguments = ["flush", "--outbox", str(box), "--url", url]
    assert main(arguments) == 1
    assert "does not answer" in capsys.readouterr().err
    with at_a_port(served.control, port):
        assert main(arguments) == 0
    assert capsys.readouterr().out == "1 sent, 0 refused, 0 waiting\n"
    assert told(served) == [(1, Channel.OUTBOX)]
    assert main([*arguments, "--token", "env:NOBODY_HAS_THIS"]) == 2
    assert main([*arguments, "--token", TOKEN]) == 2
    assert TOKEN not in capsys.readouterr().err


def test_what_the_server_takes_for_wrong_is_set_aside_and_is_in_nobodys_way(
    served: Served, box: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, table in ((1, TABLE), (2, "nowhere.db.t"), (3, TABLE)):
        report_commit("http://127.0.0.1:1", table, number, outbox=box)
    torn = box / f"{0:020d}-{0:016x}.json"
    torn.write_bytes(b"{")
    with at_a_port(served.control) as url:
        assert main(["flush", "--outbox", str(box), "--url", url]) == 0
    assert capsys.readouterr().out == "2 sent, 2 refused, 0 waiting\n"
    assert told(served) == [(1, Channel.OUTBOX), (3, Channel.OUTBOX)]
    assert {path.suffix for path in box.iterdir()} == {".refused"}


def test_t13_what_others_put_into_an_outbox_is_set_aside_whatever_it_is(box: Path) -> None:
    """Deep JSON is no recursion without end, and a pipe that nobody writes to is not waited for."""
    sent: list[Any] = []
    Outbox(box).keep({"n": 1})
    (box / f"{0:020d}-{0:016x}.json").write_text("[" * 60_000)
    os.mkfifo(box / f"{0:020d}-{1:016x}.json")
    (box / f"{0:020d}-{2:016x}.json").mkdir()
    (box / f"{0:020d}-{3:016x}.json").symlink_to("/dev/zero")
    assert Outbox(box).flush(sent.extend, time.monotonic() + 60) == Flushed(1, 4, 0)
    assert sent == [{"n": 1}]


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_t13_an_outbox_that_others_can_write_to_is_refused(
    box: Path, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    Outbox(box).keep({"n": 1})
    box.chmod(mode)
    kept = report_commit("http://127.0.0.1:1", TABLE, 1, outbox=box)
    assert (kept.kept, "others can write to the outbox" in kept.problem) == (False, True)
    assert main(["flush", "--outbox", str(box), "--url", "http://127.0.0.1:1"]) == 2
    assert "others can write to the outbox" in capsys.readouterr().err
    box.chmod(0o755)
    assert report_commit("http://127.0.0.1:1", TABLE, 1, outbox=box).kept


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("text/html", "<h1>Not Found</h1>"),
        ("application/json", json.dumps({"type": "urn:icewright:problem:not-found", "code": "not-found"})),
        ("application/problem+json", json.dumps({"type": "about:blank", "title": "Not Found", "status": 404})),
        ("application/problem+json", json.dumps({"code": "not-found"})),
        ("application/problem+json", "[" * 60_000),
        ("application/problem+json", "[]"),
    ],
)
@pytest.mark.parametrize("status", [400, 404])
def test_t13_what_a_proxy_refuses_waits_on(
    monkeypatch: pytest.MonkeyPatch, box: Path, status: int, media_type: str, body: str
) -> None:
    answered = httpx2.Response(status, headers={"Content-Type": media_type}, content=body.encode())
    monkeypatch.setattr(httpx2, "post", lambda *_, **__: answered)
    Outbox(box).keep({"n": 1})
    assert report_commit("http://127.0.0.1:1", TABLE, 1, outbox=box).kept
    assert main(["flush", "--outbox", str(box), "--url", "http://127.0.0.1:1"]) == 1
    assert [path.suffix for path in box.iterdir()] == [".json", ".json"]


def test_a_wrong_token_is_no_reason_to_forget_a_report(
    served: Served, box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICEWRIGHT_TOKEN", "another")
    with at_a_port(served.control) as url:
        assert report_commit(url, TABLE, 1, outbox=box).kept
        monkeypatch.delenv("ICEWRIGHT_TOKEN")
        assert report_commit(url, TABLE, 2, outbox=box).kept
        secret = box.parent / "token"
        secret.write_text(TOKEN + "\n")
        assert report_commit(url, TABLE, 3, outbox=box, token=f"file:{secret}").told
    assert [number for number, _ in told(served)] == [3, 1, 2]


class Session:
    """As much of a Spark session as is asked for."""

    def __init__(self, **settings: str) -> None:
        self.conf: Any = settings


def test_a_session_knows_where_to(served: Served, box: Path) -> None:
    with at_a_port(served.control) as url:
        session = Session(**{"spark.icewright.url": url, "spark.icewright.outbox": str(box)})
        assert report_commit(session, TABLE, 5).told
    assert report_commit(session, TABLE, 6).kept
    assert told(served) == [(5, Channel.HTTP)]
    assert report_commit(Session(**{"spark.icewright.outbox": str(box)}), TABLE, 7).kept


@pytest.mark.parametrize("table", ["db.t", "", "a.`b", 5])
def test_nothing_is_raised_into_the_job_unless_it_is_asked_for(table: Any, box: Path) -> None:
    found = report_commit("http://127.0.0.1:1", table, 1, outbox=box)
    assert (found.told, found.kept) == (False, False)
    assert found.problem
    with pytest.raises((IcewrightError, TypeError, AttributeError)):
        report_commit("http://127.0.0.1:1", table, 1, outbox=box, must_work=True)
    assert not report_commit("http://127.0.0.1:1", TABLE, 1).kept
    with pytest.raises(Unavailable):
        report_commit("http://127.0.0.1:1", TABLE, 1, must_work=True)


@pytest.fixture
def hanging() -> Iterator[str]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_hangs_holds_the_job_up_no_longer_than_it_may(hanging: str, box: Path) -> None:
    assert report_commit(hanging, TABLE, 1, outbox=box, timeout_s=0.5).kept
    (kept,) = box.iterdir()
    assert json.loads(kept.read_text())["snapshot_id"] == 1


def test_whatever_hangs_is_left_behind() -> None:
    never = threading.Event()
    with pytest.raises(Unavailable, match="longer than it may"):
        within(never.wait, 0.0)
    never.set()


def test_a_full_outbox_takes_no_more_and_says_so(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "WAITING_MAX", 1)
    assert report_commit("http://127.0.0.1:1", TABLE, 1, outbox=box).kept
    second = report_commit("http://127.0.0.1:1", TABLE, 2, outbox=box)
    assert (second.kept, "full" in second.problem) == (False, True)


def test_a_report_whose_answer_is_lost_is_told_again_and_is_one_event(served: Served, box: Path) -> None:
    with at_a_port(served.control) as url:
        report_commit(url, TABLE, 1)
        Outbox(box).keep({"table_name": TABLE, "snapshot_id": 1})
        assert main(["flush", "--outbox", str(box), "--url", url]) == 0
    assert told(served) == [(1, Channel.HTTP)]


def test_an_outbox_that_cannot_be_written_costs_the_report_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = report_commit("http://127.0.0.1:1", TABLE, 1, outbox=tmp_path / "file" / "outbox")
    assert (found.told, found.kept) == (False, False)
    assert "cannot be" in found.problem
