"""Signed webhooks: what arrives, and where nothing ever does (hazard T7)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Address, ip_network
from pathlib import Path
from typing import Any

import pytest

from icewright.core.errors import Forbidden, IcewrightError, InvalidConfiguration, Rejected, Unavailable
from icewright.notifications.port import Outgoing, TryLater
from icewright.notifications.senders.guard import RESPONSE_BYTES_MAX, Guard
from icewright.notifications.senders.requests import Requests
from icewright.notifications.senders.signatures import parse_secret, signed
from icewright.notifications.senders.urls import Proxy, parse_proxy, parse_url
from icewright.notifications.senders.webhook import Endpoint, WebhookSender
from tests.cases import each_case, for_each
from tests.servers.hooks import HOST, Hooks, certificate, hooks

KEY = "receivers.test.url"
NEW, OLD = b"n" * 32, b"o" * 32
AT = 1_700_000_000_123
OUTGOING = Outgoing("msg_1", "title", "plain", "markdown", "html", {"type": "icewright.facts", "data": {"täble": "x"}})
LOOPBACK = (ip_network("127.0.0.0/8"),)
TLS = ssl.create_default_context()


class _Watch:
    """Which addresses this process connects to, told by the interpreter itself."""

    def __init__(self) -> None:
        self.seen: list[Any] | None = None
        sys.addaudithook(self)

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.seen is not None and event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            self.seen.append(args[1])


_WATCH = _Watch()


@contextmanager
def connections() -> Iterator[list[Any]]:
    seen: list[Any] = []
    _WATCH.seen = seen
    try:
        yield seen
    finally:
        _WATCH.seen = None


def sender(
    url: str,
    *,
    resolve: Callable[[str, int], Sequence[str]] = lambda _host, _port: ["127.0.0.1"],
    allowed: tuple[Any, ...] = (),
    context: ssl.SSLContext | None = None,
    proxy: str | None = None,
    secrets: tuple[bytes, ...] = (NEW,),
    timeout_s: float = 15.0,
) -> WebhookSender:
    by: Proxy | None = None if proxy is None else parse_proxy(proxy, "proxy")
    endpoint = Endpoint(parse_url(url, KEY), secrets)
    guard = Guard(allowed, resolve)
    requests = Requests(guard, context=context or TLS, proxy=lambda: by, timeout_s=timeout_s)
    return WebhookSender(lambda: endpoint, requests)


@pytest.fixture
def trusted(tmp_path: Path) -> tuple[tuple[Path, Path], ssl.SSLContext]:
    files = certificate(tmp_path)
    return files, ssl.create_default_context(cafile=str(files[0]))


def verified(body: bytes, headers: Any, secret: bytes) -> bool:
    """The specification, read by somebody else: https://www.standardwebhooks.com, scheme v1."""
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body.decode()}".encode()
    wanted = "v1," + base64.b64encode(hmac.new(secret, content, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(wanted, given) for given in headers["webhook-signature"].split(" "))


class TestSignatures:
    def test_the_example_of_the_specification(self) -> None:
        secret = parse_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "secret")
        headers = signed("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', [secret])
        assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

    def test_both_secrets_are_valid_while_they_are_exchanged(self) -> None:
        headers = signed("msg_1", 5, b"{}", [NEW, OLD])
        assert verified(b"{}", headers, NEW)
        assert verified(b"{}", headers, OLD)
        assert not verified(b"{} ", headers, NEW)
        assert not verified(b"{}", {**headers, "webhook-timestamp": "6"}, NEW)
        assert not verified(b"{}", headers, b"x" * 32)

    @each_case("text", ["", "whsec_", "whsec_c2hvcnQ=", "c2VjcmV0" * 4, "whsec_" + "!" * 40])
    def test_t1_what_is_no_secret_is_refused_and_not_shown(self, text: str) -> None:
        with pytest.raises(InvalidConfiguration) as refused:
            parse_secret(text, "receivers.a.secret")
        assert "receivers.a.secret" in refused.value.message
        assert len(text) < 10 or text not in str(refused.value)


class TestArriving:
    def test_over_tls_to_the_address_that_was_looked_at_with_the_name_that_was_asked_for(
        self, trusted: tuple[tuple[Path, Path], ssl.SSLContext]
    ) -> None:
        asked: list[str] = []

        def resolve(host: str, _port: int) -> Sequence[str]:
            asked.append(host)
            return ["127.0.0.1"]

        files, context = trusted
        with hooks(files) as receiver, connections() as seen:
            url = f"https://{HOST}:{receiver.port}/icewright?team=1"
            sender(url, resolve=resolve, allowed=LOOPBACK, context=context, secrets=(NEW, OLD)).send(OUTGOING, AT)
        (got,) = receiver.received
        assert (got.path, got.server_name, asked) == ("/icewright?team=1", HOST, [HOST])
        assert got.headers["host"] == f"{HOST}:{receiver.port}"
        assert got.headers["webhook-id"] == "msg_1"
        assert got.headers["webhook-timestamp"] == "1700000000"
        assert json.loads(got.body) == OUTGOING.document
        assert verified(got.body, got.headers, NEW)
        assert verified(got.body, got.headers, OLD)
        assert ("127.0.0.1", receiver.port) in seen

    def test_a_certificate_that_nobody_vouches_for_is_not_accepted(self, tmp_path: Path) -> None:
        with hooks(certificate(tmp_path)) as receiver, pytest.raises(Unavailable, match="certificate"):
            sender(f"https://{HOST}:{receiver.port}/", allowed=LOOPBACK).send(OUTGOING, AT)
        assert receiver.received == []

    def test_nor_is_one_for_another_name(self, trusted: tuple[tuple[Path, Path], ssl.SSLContext]) -> None:
        files, context = trusted
        with hooks(files) as receiver, pytest.raises(Unavailable, match="certificate"):
            sender(f"https://other.example.org:{receiver.port}/", allowed=LOOPBACK, context=context).send(OUTGOING, AT)
        assert receiver.received == []

    def test_without_tls_to_allowed_networks_alone(self) -> None:
        with hooks() as receiver:
            sender(f"http://127.0.0.1:{receiver.port}/", allowed=LOOPBACK).send(OUTGOING, AT)
            assert len(receiver.received) == 1
        public = sender("http://example.org/", resolve=lambda _h, _p: ["93.184.216.34"])
        with connections() as seen, pytest.raises(Forbidden, match="https"):
            public.send(OUTGOING, AT)
        assert seen == []

    @each_case(
        ("status", "error"),
        [(301, Rejected), (400, Rejected), (404, Rejected), (410, Rejected), (408, TryLater), (500, TryLater)],
    )
    def test_what_is_answered(self, status: int, error: type[IcewrightError]) -> None:
        with hooks() as receiver:
            receiver.status, receiver.body = status, b"the-secret-of-the-inside"
            with pytest.raises(error) as told:
                sender(f"http://127.0.0.1:{receiver.port}/", allowed=LOOPBACK).send(OUTGOING, AT)
        assert str(status) in told.value.message
        assert "secret" not in f"{told.value.message} {told.value.hint} {told.value.__cause__}"

    def test_a_receiver_says_when_to_come_again(self) -> None:
        with hooks() as receiver:
            receiver.status, receiver.answer = 429, {"Retry-After": "30"}
            with pytest.raises(TryLater) as told:
                sender(f"http://127.0.0.1:{receiver.port}/", allowed=LOOPBACK).send(OUTGOING, AT)
            receiver.answer = {"Retry-After": "9" * 30}
            with pytest.raises(TryLater) as endless:
                sender(f"http://127.0.0.1:{receiver.port}/", allowed=LOOPBACK).send(OUTGOING, AT)
        assert (told.value.wait_ms, endless.value.wait_ms) == (30_000, 0)

    def test_nobody_there(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match="does not answer"):
            sender(f"http://127.0.0.1:{port}/hidden-path", allowed=LOOPBACK).send(OUTGOING, AT)

    def test_the_next_address_is_tried_and_each_is_judged(self) -> None:
        with hooks(address="127.0.0.3") as receiver:
            resolve = ["127.0.0.2", "127.0.0.3"]
            url = f"http://two.example.org:{receiver.port}/"
            sender(url, resolve=lambda _h, _p: resolve, allowed=LOOPBACK).send(OUTGOING, AT)
            assert len(receiver.received) == 1
            only = (ip_network("127.0.0.2/32"),)
            with connections() as seen, pytest.raises(Forbidden):
                sender(url, resolve=lambda _h, _p: resolve, allowed=only).send(OUTGOING, AT)
            assert seen == []


class _Dripping:
    """A server that answers a byte at a time, or without end."""

    def __init__(self, answer: bytes, *, drips: bool) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.ended = threading.Event()
        threading.Thread(target=self._serve, args=(answer, drips), daemon=True).start()

    def _serve(self, answer: bytes, drips: bool) -> None:  # noqa: FBT001 - a case
        connection, _ = self._server.accept()
        with connection, self._server:
            connection.recv(65_536)
            try:
                while True:
                    for piece in [answer[n : n + 1] for n in range(len(answer))] if drips else [answer]:
                        connection.sendall(piece)
                        if drips:
                            self.ended.wait(0.01)
                    answer = b"x-more: " + b"y" * 100 + b"\r\n"
            except OSError:
                self.ended.set()


class TestLimits:
    @pytest.mark.parametrize("drips", [True, False])
    def test_neither_slow_nor_endless_answers_hold_anybody_up(self, *, drips: bool) -> None:
        server = _Dripping(b"HTTP/1.1 200 OK\r\n", drips=drips)
        with pytest.raises(Unavailable):
            sender(f"http://127.0.0.1:{server.port}/", allowed=LOOPBACK, timeout_s=0.5 if drips else 60).send(
                OUTGOING, AT
            )
        assert server.ended.wait(60)

    def test_a_long_body_is_not_read(self) -> None:
        with hooks() as receiver:
            receiver.status, receiver.body = 200, b"x" * 50 * RESPONSE_BYTES_MAX
            sender(f"http://127.0.0.1:{receiver.port}/", allowed=LOOPBACK).send(OUTGOING, AT)

    def test_a_message_has_a_size(self) -> None:
        huge = Outgoing("msg_1", "", "", "", "", {"text": "x" * 2_000_000})
        with connections() as seen, pytest.raises(Rejected, match="bytes"):
            sender("http://127.0.0.1:9/", allowed=LOOPBACK).send(huge, AT)
        assert seen == []


INSIDE_4 = (
    "0.0.0.0",  # noqa: S104 - nothing is bound to it
    *("0.1.2.3", "127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.254", "10.0.0.1", "10.255.255.255"),
    *("172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255", "169.254.169.254", "169.254.170.2"),
    *("100.64.0.1", "100.100.100.200", "192.0.0.192", "168.63.129.16", "224.0.0.1", "239.255.255.250"),
    *("255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.2.1", "203.0.113.5"),
)
INSIDE_6 = (
    *("::", "::1", "fe80::1", "fe80::a9fe:a9fe", "fec0::1", "fc00::1", "fd00:ec2::254", "fd12:3456:789a::1", "ff02::1"),
    *("::ffff:7f00:1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "::127.0.0.1", "::a9fe:a9fe", "64:ff9b::7f00:1"),
    *("64:ff9b::169.254.169.254", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::", "100::1"),
    *("2001:db8::1", "3fff::1", "5f00::1", "4000::1", "1::1", "2001:10::1", "2001:20::1", "::ffff:8.8.8.8"),
)


def spellings(address: str) -> Iterator[str]:
    """An IPv4 address as some program or other reads it."""
    number, octets = int(IPv4Address(address)), [int(octet) for octet in address.split(".")]
    a, b, c, d = octets
    yield address
    yield str(number)
    yield hex(number)
    yield f"0{number:o}"
    yield f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"
    yield f"0{a:o}.0{b:o}.0{c:o}.0{d:o}"
    yield f"{a:03}.{b:03}.{c:03}.{d:03}"
    yield f"{a}.{(b << 16) + (c << 8) + d}"
    yield f"{a}.{b}.{(c << 8) + d}"
    yield f"{address}."
    yield f"[::ffff:{address}]"
    yield f"[::{address}]"
    yield f"[64:ff9b::{address}]"
    yield f"[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1]"
    yield "".join(chr(0xFF10 + int(sign)) if sign.isdigit() else sign for sign in address)
    yield address.replace(".", "。")
    yield address.replace(".", "%2e")
    yield f"example.org@{address}"


HOSTILE = (
    *(f"https://{host}/" for address in INSIDE_4 for host in spellings(address)),
    *(f"https://[{address}]/" for address in INSIDE_6),
    *(f"https://[{address}%25eth0]/" for address in INSIDE_6),
    *(
        f"https://{host}/"
        for host in (
            "localhost",
            "LOCALHOST",
            "localhost.",
            "localhost.localdomain",
            "ip6-localhost",
            "metadata.google.internal",
            "metadata",
            "127.0.0.1.nip.io",
            "user@localhost",
            "user:pass@127.0.0.1",
            "127.0.0.1:80@example.org",
            "example.org#@127.0.0.1",
            "example.org\\@127.0.0.1",
            "127.0.0.1\\@example.org",
            "127.0.0.1%00.example.org",
            "127.0.0.1\x00.example.org",
            "127.0.0.1\r\nHost: example.org",
            "127.0.0.1\t",
            " 127.0.0.1",
            "①②⑦.0.0.1",
            "ⓛocalhost",
            "xn--",
            "-localhost",
            "a..b",
            ".",
            "[::1",
            "::1",
            "[127.0.0.1]",
            "[::1].example.org",
            "[v1.fe80::1]",
            "localhost:443",
            "localhost:0443",
            "localhost:99999",
            "localhost:",
            "localhost:+443",
            "localhost:" + chr(0xFF14) + "43",
            "a" * 64 + ".example.org",
            ".".join(["a"] * 200),
        )
    ),
    *(
        f"{scheme}127.0.0.1/"
        for scheme in (
            *("http://", "ftp://", "file://", "gopher://", "dict://", "ldap://", "unix://", "HTTPS://", "https:/"),
            *("https:", "https:///", "//", "https://https://", "jar:https://", "https:\\\\", "\thttps://", "https ://"),
        )
    ),
    *(f"https://localhost/{path}" for path in ("a b", "\x00", "\r\nx: y", "ä", "#x", "\\", "\x7f")),
)


def test_t7_no_connection_to_the_inside_by_any_spelling() -> None:
    for_each(HOSTILE, no_connection_to_the_inside)


def no_connection_to_the_inside(url: str) -> None:
    """With a resolver that reads numbers as liberally as any, and knows every name as this machine."""

    def liberal(host: str, _port: int) -> Sequence[str]:
        try:
            return [socket.inet_ntoa(socket.inet_aton(host))]
        except OSError:
            return ["127.0.0.1"]

    with connections() as seen, pytest.raises((InvalidConfiguration, Forbidden)) as refused:
        sender(url, resolve=liberal, timeout_s=2).send(OUTGOING, AT)
    assert seen == []
    if isinstance(refused.value, InvalidConfiguration):
        assert KEY in refused.value.message  # said of the setting, and nothing of what may be a secret


def test_t7_the_corpus_is_large_enough() -> None:
    assert len(set(HOSTILE)) >= 300


def test_t7_no_connection_by_a_name_that_is_inside_beside_other_addresses() -> None:
    def check(addresses: list[str]) -> None:
        with connections() as seen, pytest.raises(Forbidden):
            sender("https://example.org/", resolve=lambda _h, _p: addresses).send(OUTGOING, AT)
        assert seen == []

    inside = [*INSIDE_4, *INSIDE_6, "fe80::1%eth0", "::1%lo"]
    for_each(([*others, address] for address in inside for others in ([], ["93.184.216.34"])), check)


def test_t7_a_resolver_that_answers_differently_the_second_time_is_not_asked_again(
    trusted: tuple[tuple[Path, Path], ssl.SSLContext],
) -> None:
    files, context = trusted
    answers = iter([["127.0.0.2"], *[["127.0.0.1"]] * 10])
    with hooks(files, "127.0.0.2") as receiver, connections() as seen:
        url = f"https://{HOST}:{receiver.port}/"
        allowed = (ip_network("127.0.0.2/32"),)
        one = sender(url, resolve=lambda _h, _p: next(answers), allowed=allowed, context=context)
        one.send(OUTGOING, AT)
        with pytest.raises(Forbidden):
            one.send(OUTGOING, AT)  # what it answers the next time is judged anew
    assert {address[0] for address in seen} == {"127.0.0.2"}
    assert len(receiver.received) == 1


@each_case("status", [300, 301, 302, 303, 305, 307, 308])
def test_t7_no_redirect_is_followed(status: int) -> None:
    with hooks() as inside, hooks() as receiver:
        receiver.status = status
        for location in (
            f"http://127.0.0.1:{inside.port}/",
            f"//127.0.0.1:{inside.port}/",
            f"http://[::1]:{inside.port}",
        ):
            receiver.answer = {"Location": location}
            with pytest.raises(Rejected, match="redirects are not followed"):
                sender(f"http://127.0.0.1:{receiver.port}/", allowed=LOOPBACK).send(OUTGOING, AT)
    assert (inside.connections, len(receiver.received)) == (0, 3)


def test_the_watch_would_notice() -> None:
    with hooks() as receiver, connections() as seen:
        sender(f"http://127.0.0.1:{receiver.port}/", allowed=LOOPBACK).send(OUTGOING, AT)
    assert seen == [("127.0.0.1", receiver.port)]


def test_no_proxy_of_the_environment_is_gone_by(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with hooks() as receiver:
        sender(f"http://127.0.0.1:{receiver.port}/", allowed=LOOPBACK).send(OUTGOING, AT)
        assert len(receiver.received) == 1


class _Tunnels:
    """A proxy that lets through to one port, whatever it is asked for, and keeps what it was asked."""

    def __init__(self, target: Hooks) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port, self.asked = self._server.getsockname()[1], b""
        threading.Thread(target=self._serve, args=(target.port,), daemon=True).start()

    def _serve(self, port: int) -> None:
        client, _ = self._server.accept()
        with client, self._server, socket.create_connection(("127.0.0.1", port)) as server:
            self.asked = client.recv(65_536)
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=self._copy, args=(server, client), daemon=True)
            back.start()
            self._copy(client, server)
            back.join()

    @staticmethod
    def _copy(one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65_536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            return


class TestProxy:
    def test_an_administrators_proxy_connects_and_tls_goes_through_it(
        self, trusted: tuple[tuple[Path, Path], ssl.SSLContext]
    ) -> None:
        files, context = trusted

        def unknown(_host: str, _port: int) -> Sequence[str]:
            raise OSError("names of the outside are not known here")

        with hooks(files) as receiver:
            proxy = _Tunnels(receiver)
            by = f"http://me:p%40ss@127.0.0.1:{proxy.port}"
            sender(f"https://{HOST}/", resolve=unknown, context=context, proxy=by).send(OUTGOING, AT)
        assert proxy.asked.startswith(f"CONNECT {HOST}:443 ".encode())
        assert base64.b64encode(b"me:p@ss") in proxy.asked
        assert receiver.received[0].server_name == HOST

    def test_t7_it_is_asked_for_nothing_that_is_known_to_be_inside(self) -> None:
        with hooks() as proxy, connections() as seen:
            by = f"http://127.0.0.1:{proxy.port}"
            for url in ("https://127.0.0.1/", "https://[::1]/", "https://localhost/", "http://93.184.216.34/"):
                with pytest.raises(Forbidden):
                    sender(url, proxy=by).send(OUTGOING, AT)
        assert (seen, proxy.connections) == ([], 0)

    def test_a_proxy_that_refuses(self) -> None:
        with hooks() as proxy:
            by = f"http://127.0.0.1:{proxy.port}"
            one = sender("https://example.org/", resolve=lambda _h, _p: ["93.184.216.34"], proxy=by)
            with pytest.raises(Unavailable, match="proxy"):
                one.send(OUTGOING, AT)

    @each_case("text", ["", "127.0.0.1:3128", "socks5://h:1", "http://h:1/path", "http://user@", "http://h:0"])
    def test_what_is_no_proxy(self, text: str) -> None:
        with pytest.raises(InvalidConfiguration, match=r"notifications\.proxy"):
            parse_proxy(text, "notifications.proxy")
