"""A way to a REST catalog on which commits go wrong: applied or dropped, and answered by whatever a network can do.

Everything but commits to tables passes through. What befalls a commit is set before it is made.
"""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.servers.processes import HOST

_HOP_BY_HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive", "host"})
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Answer(StrEnum):
    """What comes back of a commit."""

    OK = "200"
    CONFLICT = "409"
    BAD_REQUEST = "400"
    INTERNAL = "500"
    BAD_GATEWAY = "502"
    UNAVAILABLE = "503"
    UNAVAILABLE_RETRY_AFTER = "503 with Retry-After"
    GATEWAY_TIMEOUT = "504"
    RESET_BEFORE_SEND = "reset before send"
    RESET_AFTER_SEND = "reset after send"
    TIMEOUT = "timeout"
    TRUNCATED = "truncated body"
    MALFORMED = "malformed body"
    KILLED = "kill -9"


_REFUSALS = {
    Answer.CONFLICT: (409, "CommitFailedException"),
    Answer.BAD_REQUEST: (400, "BadRequestException"),
    Answer.INTERNAL: (500, "InternalServerError"),
    Answer.BAD_GATEWAY: (502, "BadGateway"),
    Answer.UNAVAILABLE: (503, "ServiceUnavailable"),
    Answer.UNAVAILABLE_RETRY_AFTER: (503, "ServiceUnavailable"),
    Answer.GATEWAY_TIMEOUT: (504, "GatewayTimeout"),
}


@dataclass
class Cell:
    """What befalls commits: the first one, or each (``always``), as when a client tries again by itself."""

    answer: Answer
    applied: bool
    always: bool = False
    kill: Callable[[], None] = lambda: None
    """Ends who has asked, for :data:`Answer.KILLED`."""
    met: int = 0
    """Commits that it befell."""


@dataclass
class FaultProxy:
    """Listens at ``port`` for a catalog at ``upstream``."""

    upstream: int
    cell: Cell | None = None
    commits: list[str] = field(default_factory=list)
    """Paths of the commits that came by."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._over = threading.Event()
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def uri(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.port}"

    def close(self) -> None:
        """Listen no more; who still waits for an answer gets none."""
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    def take(self, path: str) -> Cell | None:
        """What befalls the commit that just came."""
        with self._lock:
            self.commits.append(path)
            cell = self.cell
            if cell is None or (cell.met and not cell.always):
                return None
            cell.met += 1
            return cell

    def wait(self) -> None:
        """As long as this proxy lives: nobody answers."""
        self._over.wait()


class _Handler(BaseHTTPRequestHandler):
    owner: FaultProxy
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_DELETE = do_POST = do_GET  # noqa: N815 - the library's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        cell = self.owner.take(self.path) if self._is_commit() else None
        if cell is None:
            self._pass_on(*self._ask(body))
            return
        if cell.answer is Answer.RESET_BEFORE_SEND and not cell.applied:
            self._reset()
            return
        answered = self._ask(body) if cell.applied else (200, [], b"{}")
        self._mislead(cell, answered)

    def _is_commit(self) -> bool:
        return self.command == "POST" and "/tables/" in self.path and not self.path.endswith("/metrics")

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(HOST, self.owner.upstream, timeout=60)
        headers = {key: value for key, value in self.headers.items() if key.lower() not in _HOP_BY_HOP}
        try:
            connection.request(self.command, self.path, body=body or None, headers=headers)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    def _pass_on(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for key, value in headers:
            if key.lower() not in _HOP_BY_HOP:
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _mislead(self, cell: Cell, answered: tuple[int, list[tuple[str, str]], bytes]) -> None:
        status, headers, body = answered
        match cell.answer:
            case Answer.OK:
                self._pass_on(status, headers, body)
            case Answer.RESET_BEFORE_SEND | Answer.RESET_AFTER_SEND:
                self._reset()
            case Answer.TIMEOUT:
                self.owner.wait()
            case Answer.TRUNCATED:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body) + 1000))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2])
                self._reset(hard=False)
            case Answer.MALFORMED:
                self._pass_on(status, [("Content-Type", "application/json")], b'{"metadata-location": 7, "metadata": [')
            case Answer.KILLED:
                cell.kill()
                self._reset()
            case refused:
                code, kind = _REFUSALS[refused]
                said = f'{{"error": {{"message": "it went wrong", "type": "{kind}", "code": {code}}}}}'.encode()
                retry = [("Retry-After", "1")] if refused is Answer.UNAVAILABLE_RETRY_AFTER else []
                self._pass_on(code, [("Content-Type", "application/json"), *retry], said)

    def _reset(self, *, hard: bool = True) -> None:
        with suppress(OSError):
            self.wfile.flush()
            if hard:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            else:
                self.connection.shutdown(socket.SHUT_WR)
        self.close_connection = True
