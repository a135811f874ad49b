"""Bytes that are meant to hurt, at the very web server that ships: smuggled, endless, slow, broken off."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from tests.builders.served import TOKEN, V1, Served, at_a_port

ENDS_WITHIN_S = 60.0
"""Hang detection: far more than anything takes."""
QUIET_S = 2.0
"""How long a connection is listened to on which nothing comes: the server may rightly wait for more."""
SMUGGLED = f"POST {V1}/login-codes HTTP/1.1\r\n".encode()


CLOSE = b"Connection: close\r\n\r\n"


class Wire:
    """Raw connections to a server."""

    def __init__(self, served: Served, url: str) -> None:
        address = urlsplit(url)
        self.served, self.port = served, int(address.port or 0)
        self.head = f"Host: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {TOKEN}\r\n".encode()

    @contextmanager
    def connection(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.port), timeout=ENDS_WITHIN_S) as open_one:
            yield open_one

    def said(self, sent: bytes, quiet_s: float = ENDS_WITHIN_S) -> bytes:
        """All that is answered to bytes, until the server ends it, or says nothing for so long."""
        got = bytearray()
        with self.connection() as talking:
            talking.settimeout(quiet_s)
            try:
                talking.sendall(sent)
                while piece := talking.recv(65_536):
                    got += piece
            except (ConnectionError, TimeoutError):
                return bytes(got)
        return bytes(got)

    def is_well(self) -> bool:
        return b" 200 OK" in self.said(f"GET {V1}/tables HTTP/1.1\r\n".encode() + self.head + CLOSE)


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    served = Served()
    served.table()
    with at_a_port(served.control) as url:
        yield Wire(served, url)


def statuses(said: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", said)]


POST = f"POST {V1}/events/commits HTTP/1.1\r\n".encode()
GET = f"GET {V1}/me HTTP/1.1\r\n".encode()
JSON = b"Content-Type: application/json\r\n"

BROKEN = {
    "length and chunks": POST + b"{head}" + JSON + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"{head}" + JSON + b"Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}" + SMUGGLED,
    "lengths in one": POST + b"{head}" + JSON + b"Content-Length: 2, 40\r\n\r\n{}" + SMUGGLED,
    "a length that is none": POST + b"{head}" + JSON + b"Content-Length: +2\r\n\r\n{}",
    "a length below zero": POST + b"{head}" + JSON + b"Content-Length: -1\r\n\r\n{}",
    "an endless length": POST + b"{head}" + JSON + b"Content-Length: " + b"9" * 400 + b"\r\n\r\n{}",
    "another coding": POST + b"{head}" + JSON + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "codings in a row": POST + b"{head}" + JSON + b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
    "a coding with a tab": POST + b"{head}" + JSON + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": POST + b"{head}" + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a chunk that is none": POST + b"{head}" + JSON + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "a chunk beyond all": POST + b"{head}" + JSON + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 60 + b"\r\n",
    "a folded header": GET + b"{host}" + b"X-A: 1\r\n Host: evil\r\n\r\n",
    "NUL in a header": GET + b"{head}" + b"X-A: a\x00b\r\n\r\n",
    "NUL in the address": b"GET /api/v1/\x00 HTTP/1.1\r\n{head}\r\n",
    "a bare carriage return": GET + b"{head}" + b"X-A: a\rb\r\n\r\n",
    "an address with a space": b"GET /api/v1/me /x HTTP/1.1\r\n{head}\r\n",
    "no method": b" /api/v1/me HTTP/1.1\r\n{head}\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
    "an older HTTP": b"GET /api/v1/me HTTP/0.9\r\n{host}\r\n",
    "a newer HTTP": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an endless header": GET + b"{head}" + b"X-A: " + b"a" * 200_000 + b"\r\n\r\n",
    "endless headers": GET + b"{head}" + b"".join(b"X-%d: a\r\n" % n for n in range(20_000)) + b"\r\n",
    "an endless address": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n{head}\r\n",
    "two hosts": GET + b"{head}" + b"Host: evil.example\r\n\r\n",
    "another host": GET + b"Host: evil.example\r\n\r\n",
    "no host": GET + b"\r\n",
    "a stranger's second request": b"GET /api/v1/me HTTP/1.1\r\n{host}\r\nGET /api/v1/tables HTTP/1.1\r\n{host}\r\n",
    "an absolute address": b"GET http://evil.example/api/v1/me HTTP/1.1\r\n{host}\r\n",
    "a tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\n{head}\r\n",
    "a web socket of a stranger": GET
    + b"{host}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    "plain HTTP/2": GET
    + b"{host}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
}


@pytest.fixture(scope="module")
def said_to_broken(wire: Wire) -> dict[str, bytes]:
    """What is said to each of them; some are listened to at once, since most of that is waiting."""
    host = f"Host: 127.0.0.1:{wire.port}\r\n".encode()

    def said(name: str) -> bytes:
        return wire.said(BROKEN[name].replace(b"{head}", wire.head).replace(b"{host}", host), QUIET_S)

    with ThreadPoolExecutor(8) as listening:
        return dict(zip(BROKEN, listening.map(said, BROKEN), strict=True))


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_g9_t14_what_is_no_request_gets_nothing(wire: Wire, said_to_broken: dict[str, bytes], name: str) -> None:
    """Refused, or the connection is closed: no 2xx, no 5xx, and nothing behind it is taken for another request."""
    said = said_to_broken[name]
    assert all(400 <= status < 500 for status in statuses(said)), (name, said[:2_000])
    assert wire.is_well()


def test_requests_in_a_row_are_each_let_in_by_themselves(wire: Wire) -> None:
    host = f"Host: 127.0.0.1:{wire.port}\r\n".encode()
    own, stranger = GET + wire.head + b"\r\n", GET + host + b"\r\n"
    assert statuses(wire.said(own + stranger + own + GET + host + CLOSE)) == [200, 401, 200, 401]


def test_what_an_answered_body_leaves_is_not_the_next_request(wire: Wire) -> None:
    """A body that was refused unread stays the body: its bytes, which look like a request, are none."""
    inner = f"POST {V1}/login-codes HTTP/1.1\r\n".encode() + wire.head + b"Content-Length: 0\r\n\r\n"
    outer = POST + wire.head + b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(inner)
    assert statuses(wire.said(outer + inner, QUIET_S)) == [415]


def test_slow_ones_keep_nobody_waiting(wire: Wire) -> None:
    """A hundred who send a byte of a head, a hundred who never send their body: all others are answered."""
    with ExitStack() as stack:
        for number in range(200):
            open_one = stack.enter_context(wire.connection())
            body = POST + wire.head + JSON + b"Content-Length: 60000\r\n\r\n{"
            open_one.sendall(b"G" if number % 2 else body)
        for _ in range(20):
            assert wire.is_well()
    assert wire.is_well()


def test_those_who_go_in_the_middle_leave_nothing_behind(wire: Wire) -> None:
    for length in (1, 10, len(POST) + 20):
        whole = POST + wire.head + JSON + b"Content-Length: 60000\r\n\r\n{"
        with wire.connection() as gone:
            gone.sendall(whole[:length])
        with wire.connection() as gone:
            gone.sendall(whole)
    assert wire.is_well()


def test_t14_a_proxys_headers_are_not_believed(wire: Wire) -> None:
    for header in (
        "X-Forwarded-For: 127.0.0.1",
        "X-Forwarded-Host: 127.0.0.1",
        "Forwarded: for=127.0.0.1",
        "X-Real-IP: 1",
    ):
        said = wire.said(GET + f"Host: 127.0.0.1:{wire.port}\r\n{header}\r\nConnection: close\r\n\r\n".encode())
        assert statuses(said) == [401]
