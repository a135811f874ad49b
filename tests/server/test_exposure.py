"""How a server is found by others: TLS on a real socket, certificates that are replaced, who must be there before."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from icewright.api_client.client import Client
from icewright.audit.sql import SqlAudit
from icewright.config.model import ServerConfig
from icewright.core.errors import InvalidConfiguration, NotAllowed, Rejected, Unavailable
from icewright.identity.authentication import Access, loopback_hosts
from icewright.identity.sql import SqlIdentities
from icewright.server.exposure import (
    Certificate,
    allowed_hosts,
    build_access,
    certificate,
    own_url,
    peer_url,
    require_access,
)
from icewright.server.http.app import create_app
from icewright.server.server import listen
from icewright.server.web import web_server
from icewright.web.transport import LOCAL, Transport
from icewright_spark.reports.client import Server
from icewright_spark.reports.destination import Destination
from tests.builders.served import TOKEN, Served, hello
from tests.cases import each_case
from tests.lakes.stores import new_store
from tests.narrowing import not_none
from tests.servers.certificates import Authority
from tests.servers.in_threads import serving_web

ANYWHERE = "0.0.0.0"  # noqa: S104 - nothing listens there, it is what is tested


def config(folder: Path, **changes: Any) -> ServerConfig:
    here = ServerConfig("127.0.0.1", 7077, folder, "sqlite:////x", None, 30_000, 20)
    return replace(here, **changes)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def vouched(tmp_path: Path, authority: Authority) -> Certificate:
    made = Certificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    authority.vouch(made.certificate, made.key, "localhost")
    return made


@contextmanager
def serving(made: Certificate) -> Iterator[int]:
    """An application behind TLS on loopback; its port."""
    served = Served()
    with listen("127.0.0.1", 0) as listening:
        port = int(listening.getsockname()[1])
        access = Access(TOKEN, loopback_hosts("127.0.0.1", port), served.access.identities, served.audit)
        web = web_server(create_app(served.control, access), made.context())
        with serving_web(web, listening):
            yield port


def test_clients_believe_whom_their_machine_trusts_and_nobody_else(
    vouched: Certificate, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(vouched) as port:
        url = f"https://localhost:{port}"
        with Client(url, TOKEN) as client, pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED") as refused:
            client.status()
        assert "SSL_CERT_FILE" in refused.value.hint
        with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            Server(url, TOKEN).hello(hello())
        monkeypatch.setenv("TEST_TOKEN", TOKEN)
        with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            Destination(url, "env:TEST_TOKEN").tell([], time.monotonic() + 30)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
        with Client(url, TOKEN) as client:
            assert client.status()["catalogs"]
        Server(url, TOKEN).hello(hello())
        with Client(f"https://127.0.0.1:{port}", TOKEN) as client, pytest.raises(Unavailable, match="not valid for"):
            client.status()  # the certificate is of localhost


def test_t5_no_client_sends_its_token_to_another_machine_in_the_clear() -> None:
    for build in (lambda: Client("http://lake.example", TOKEN), lambda: Server("http://lake.example", TOKEN)):
        with pytest.raises(Rejected, match="in the clear"):
            build()
    with pytest.raises(InvalidConfiguration, match="in the clear"):
        Destination("http://lake.example", "env:HOME")


def shown(port: int, authority: Authority) -> bytes:
    """The certificate that a client gets to see."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        return not_none(secure.getpeercert(binary_form=True))


def test_a_certificate_that_was_replaced_is_the_one_of_the_connections_to_come(
    vouched: Certificate, authority: Authority
) -> None:
    with serving(vouched) as port:
        before = shown(port, authority)
        assert shown(port, authority) == before
        authority.vouch(vouched.certificate, vouched.key, "localhost")
        shown(port, authority)
        assert shown(port, authority) != before


def test_a_certificate_that_cannot_be_used_leaves_the_one_in_use(vouched: Certificate, authority: Authority) -> None:
    with serving(vouched) as port, capture_logs() as logs:
        before, key = shown(port, authority), vouched.key.read_bytes()
        authority.vouch(vouched.certificate, vouched.key, "localhost")
        after = vouched.key.read_bytes()
        vouched.key.write_bytes(key)  # half of it was replaced
        assert shown(port, authority) == shown(port, authority) == before
        vouched.key.unlink()
        assert shown(port, authority) == before
        vouched.key.touch(0o600)
        vouched.key.write_bytes(after)
        shown(port, authority)
        assert shown(port, authority) != before
    assert "certificate not read again" in {entry["event"] for entry in logs}


def test_a_server_does_not_start_with_a_certificate_that_is_none(vouched: Certificate, tmp_path: Path) -> None:
    server = config(tmp_path, tls_certificate=vouched.certificate, tls_key=vouched.key)
    assert certificate(server) is not None
    assert certificate(config(tmp_path)) is None
    with pytest.raises(InvalidConfiguration, match="no certificate and its key"):
        certificate(replace(server, tls_certificate=vouched.key))
    with pytest.raises(InvalidConfiguration, match="cannot be read"):
        certificate(replace(server, tls_key=tmp_path / "nothing"))
    vouched.key.chmod(0o644)
    with pytest.raises(InvalidConfiguration, match="everybody may read"):
        certificate(server)
    vouched.key.chmod(0o640)
    assert certificate(server) is not None


@each_case("host", [ANYWHERE, "::", "192.0.2.1"])
def test_nobody_else_reaches_a_server_to_which_nobody_may_come_yet(tmp_path: Path, host: str) -> None:
    with pytest.raises(NotAllowed, match="no principal has access yet") as refused:
        require_access(config(tmp_path, host=host), has_tokens=False)
    assert "icewright token create" in refused.value.hint
    require_access(config(tmp_path, host=host), has_tokens=True)
    require_access(config(tmp_path, host=host), has_tokens=False, has_people=True)
    require_access(config(tmp_path, host=host, token="env:TOKEN"), has_tokens=False)  # noqa: S106 - a reference
    require_access(config(tmp_path), has_tokens=False)


def test_it_answers_to_its_public_name_and_to_those_of_its_machine(tmp_path: Path) -> None:
    server = config(tmp_path, host=ANYWHERE, public_url="https://lake.example", trusted_proxies=("10.0.0.7",))
    store = new_store()
    identities, audit = SqlIdentities(store), SqlAudit(store)
    exposed = build_access(replace(server, allowed_hosts=("balancer.example",)), 7077, TOKEN, identities, audit)
    assert exposed.allowed_hosts >= {"lake.example", "lake.example:443", "127.0.0.1:7077", "balancer.example"}
    assert exposed.transport == Transport(is_exposed=True, proxies=[ip_network("10.0.0.7")])
    assert exposed.public_url == "https://lake.example"
    own = build_access(config(tmp_path), 7077, TOKEN, identities, audit)
    assert own.allowed_hosts == loopback_hosts("127.0.0.1", 7077)
    assert (own.transport, own.public_url) == (LOCAL, None)


@each_case(
    ("host", "tls", "url"),
    [
        (ANYWHERE, None, "http://127.0.0.1:7077"),
        ("::", None, "http://[::1]:7077"),
        ("192.0.2.1", None, "https://lake.example"),
        ("127.0.0.1", None, "http://127.0.0.1:7077"),
        ("localhost", None, "http://localhost:7077"),
        (ANYWHERE, "tls", "https://lake.example"),
        ("127.0.0.1", "tls", "https://lake.example"),
    ],
)
def test_programs_of_its_machine_find_it_where_it_answers_them(
    tmp_path: Path, host: str, tls: str | None, url: str
) -> None:
    files = {"tls_certificate": Path("/c"), "tls_key": Path("/k")} if tls else {}
    assert own_url(config(tmp_path, host=host, public_url="https://lake.example", **files), 7077) == url


def test_other_servers_find_it_where_it_says_or_where_it_listens(tmp_path: Path) -> None:
    files = {"tls_certificate": tmp_path / "tls.crt", "tls_key": tmp_path / "tls.key"}
    assert peer_url(config(tmp_path), 7077) == "http://127.0.0.1:7077"
    everywhere = config(tmp_path, host=ANYWHERE, public_url="https://lake.example", **files)
    assert peer_url(everywhere, 7077) == f"https://{socket.gethostname()}:7077"
    assert peer_url(replace(everywhere, peer_url="https://server-1.example:7077"), 7077) == (
        "https://server-1.example:7077"
    )
    store = new_store()
    access = Access(TOKEN, allowed_hosts(everywhere, 7077), SqlIdentities(store), SqlAudit(store))
    assert f"{socket.gethostname()}:7077".lower() in access.allowed_hosts
