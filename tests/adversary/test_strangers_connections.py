"""Strangers that open connections and say nothing, or little: the server answers others, and its log stays short."""

from __future__ import annotations

import resource
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs

from icewright.server.exposure import Certificate
from icewright.server.server import listen
from icewright.server.web import BEYOND_MAX, Limits, web_server
from icewright.web.transport import Transport
from tests.conftest import CAMPAIGN
from tests.e2e.processes import Processes
from tests.lakes.sqlite import make_lake
from tests.servers.certificates import Authority
from tests.servers.in_threads import serving_web
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

STRANGERS = 1_400 if CAMPAIGN else 400
DESCRIPTORS = 1_024 if CAMPAIGN else 256
LOG_BYTES_MAX = 64 * 1024
HALF = b"POST /api/v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"


def said(figure: str) -> None:
    print(figure)  # noqa: T201 - what the campaign is for


def stranger(port: int, begins: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
    made.sendall(begins)
    return made


def is_closed(made: socket.socket) -> bool:
    made.settimeout(0)
    try:
        while made.recv(65_536):  # what it was answered
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def test_s2_idle_connections_and_half_sent_bodies_stop_nobody_else(tmp_path: Path) -> None:
    server = Processes(tmp_path, make_lake(tmp_path))
    server.start("serve")
    process = psutil.Process(server.running["serve"].pid)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    with ExitStack() as ending:
        ending.callback(server.end)
        client = ending.enter_context(server.client())
        port = int(client.url.rpartition(":")[2])
        held, answered = [], 0
        for number in range(STRANGERS):
            held.append(ending.enter_context(stranger(port, HALF if number % 4 == 0 else b"")))
            if number % 50 == 0:
                assert httpx2.get(f"{client.url}/api/v1/healthz", trust_env=False, timeout=30).status_code == 200
                assert client.status()["catalogs"]
                answered += 1
        open_count = sum(not is_closed(one) for one in held)
        said(f"{open_count} of {STRANGERS} connections held, {process.num_fds()} of {DESCRIPTORS} descriptors in use")
        assert open_count < DESCRIPTORS
        assert client.status()["catalogs"]
        if CAMPAIGN:  # those that go on to say nothing go, those with a half-sent body last
            until(lambda: all(is_closed(one) for one in held), within_s=90)
        assert httpx2.get(f"{client.url}/api/v1/healthz", trust_env=False, timeout=30).status_code == 200
        log_bytes = len(server.log("serve").encode())
        said(f"{log_bytes} bytes of log, {answered} times all else was answered")
        assert log_bytes < LOG_BYTES_MAX
        assert "accept" not in server.log("serve")


HANGING: list[str] = []
"""One for each request that is at work."""


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers by the path: at once, after the body, or never."""
    if scope["path"] == "/hangs":
        HANGING.append(scope["path"])
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@contextmanager
def serving(limits: Limits, tls: ssl.SSLContext | None = None, proxies: Any = ()) -> Iterator[int]:
    with listen("127.0.0.1", 0) as listening:
        port = int(listening.getsockname()[1])
        web = web_server(application, tls, limits, Transport(is_exposed=False, proxies=proxies))
        with serving_web(web, listening):
            yield port


def get(port: int, path: str = "/x", headers: str = "", made: socket.socket | None = None) -> bytes:
    """The first bytes of the answer."""
    with stranger(port) if made is None else made as asking:
        asking.settimeout(30)
        asking.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
        return asking.recv(12)


def test_s2_who_takes_too_long_for_a_head_or_a_body_is_closed() -> None:
    with serving(Limits(10, head_s=1, body_s=2)) as port, ExitStack() as ending:
        idle, half, body = (ending.enter_context(stranger(port, one)) for one in (b"", b"GET / HTTP/1.1\r\nHo", HALF))
        begun_s = time.monotonic()
        until(lambda: is_closed(idle) and is_closed(half))
        until(lambda: is_closed(body))
        assert time.monotonic() - begun_s >= 2
        assert get(port) == b"HTTP/1.1 200"


def test_s2_the_oldest_that_waits_makes_room_and_who_is_at_work_stays() -> None:
    HANGING.clear()
    with serving(Limits(4)) as port, ExitStack() as ending:
        working = ending.enter_context(stranger(port, b"GET /hangs HTTP/1.1\r\nHost: x\r\n\r\n"))
        until(lambda: HANGING)
        idle = [ending.enter_context(stranger(port)) for _ in range(10)]
        until(lambda: sum(not is_closed(one) for one in idle) == 3)
        assert [is_closed(one) for one in idle] == [True] * 7 + [False] * 3
        assert not is_closed(working)
        assert get(port) == b"HTTP/1.1 200"


def test_s2_health_is_answered_when_all_are_at_work_and_all_else_is_told_so() -> None:
    HANGING.clear()
    with serving(Limits(4)) as port, ExitStack() as ending:
        for _ in range(4):
            ending.enter_context(stranger(port, b"GET /hangs HTTP/1.1\r\nHost: x\r\n\r\n"))
        until(lambda: len(HANGING) == 4)
        assert get(port) == b"HTTP/1.1 503"
        for _ in range(3 * BEYOND_MAX):
            ending.enter_context(stranger(port))
        assert get(port, "/api/v1/healthz") == b"HTTP/1.1 200"
        assert get(port) == b"HTTP/1.1 503"


def test_s2_accepts_that_fail_are_one_line_of_log_and_who_comes_later_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The event loop itself writes a line for each of them, and tries dozens in a row."""
    with capture_logs() as logs, serving(Limits(64)) as port, ExitStack() as ending:
        assert get(port) == b"HTTP/1.1 200"
        waiting = [ending.enter_context(socket.socket()) for _ in range(8)]
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(one.fileno() for one in waiting), hard))
        try:
            for one in waiting:  # they need no descriptor more, but the server one for each
                one.connect(("127.0.0.1", port))
            until(lambda: any("not_accepted" in one for one in logs))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert get(port) == b"HTTP/1.1 200"
    told, *_ = [one for one in logs if "not_accepted" in one]
    said(f"{told['not_accepted']} accepts that failed are one line of log")
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_s2_by_a_trusted_proxy_each_client_counts_for_itself() -> None:
    HANGING.clear()
    hangs = b"GET /hangs HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: %s\r\n\r\n"
    with serving(Limits(8), proxies=[ip_network("127.0.0.1")]) as port, ExitStack() as ending:
        for _ in range(4):  # what a client writes in front counts for nothing
            ending.enter_context(stranger(port, hangs % b"10.0.0.9, 10.0.0.1"))
        until(lambda: len(HANGING) == 4)
        greedy = "X-Forwarded-For: 10.0.0.1\r\n"
        until(lambda: get(port, headers=greedy) == b"HTTP/1.1 503")
        assert get(port, headers="X-Forwarded-For: 10.0.0.9\r\n") == b"HTTP/1.1 200"


def test_s2_a_handshake_that_never_begins_counts_and_ends(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    made = Certificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    authority.vouch(made.certificate, made.key, "localhost")
    trusts = ssl.create_default_context(cafile=authority.certificate)
    with serving(Limits(4, handshake_s=2), made.context()) as port, ExitStack() as ending:
        for _ in range(3):
            idle = [ending.enter_context(stranger(port)) for _ in range(8)]
            assert get(port, made=trusts.wrap_socket(stranger(port), server_hostname="localhost")) == b"HTTP/1.1 200"
        until(lambda: all(is_closed(one) for one in idle))
