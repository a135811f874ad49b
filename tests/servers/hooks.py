"""Receivers of webhooks on loopback, plain or over TLS with a certificate of their own; they keep what comes in."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.servers.in_threads import answering

HOST = "hooks.example.org"
"""What the certificate is for, besides 127.0.0.1."""


@dataclass
class Received:
    """A request."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    server_name: str | None


@dataclass
class Hooks:
    """A receiver: what came in, and what it answers from now on, after ``waits_s``."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    status: int = 204
    answer: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    connections: int = 0
    waits_s: float = 0.0

    @property
    def ids(self) -> list[str]:
        return [one.headers["webhook-id"] for one in self.received]


@contextmanager
def hooks(authority: tuple[Path, Path] | None = None, address: str = "127.0.0.1") -> Iterator[Hooks]:
    """A receiver at a free port; over TLS where it is given certificate and key."""
    state = Hooks()
    names: dict[int, str | None] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(length)
            state.received.append(Received(self.path, headers, body, names.get(id(self.connection))))
            time.sleep(state.waits_s)
            self.send_response(state.status)
            for name, value in state.answer.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(state.body)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def get_request(self) -> tuple[Any, Any]:
            found = super().get_request()
            state.connections += 1
            return found

        def handle_error(self, *_: Any) -> None:
            pass  # a client that went away, or did not like the certificate

    server = Server((address, 0), Handler)
    if authority is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority)
        context.sni_callback = lambda one, name, _context: names.__setitem__(id(one), name)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    state.port = server.server_address[1]
    with answering(server):
        yield state


@cache
def _made() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def certificate(folder: Path) -> tuple[Path, Path]:
    """Files with a certificate that signed itself, and its key."""
    found = folder / "hooks.pem", folder / "hooks.key"
    for path, content in zip(found, _made(), strict=True):
        path.write_bytes(content)
    return found
