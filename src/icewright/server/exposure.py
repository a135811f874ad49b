"""How a server is found by others: its names, TLS, the addresses for links, and whether anybody may come in at all."""

from __future__ import annotations

import socket
import ssl
import stat
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog

from icewright.audit.sql import SqlAudit
from icewright.config.model import ServerConfig
from icewright.config.settings import ONE_PERSON
from icewright.core.errors import InvalidConfiguration, NotAllowed
from icewright.core.server_urls import authorities
from icewright.identity.authentication import Access, authority, loopback_hosts
from icewright.identity.logins import Logins
from icewright.identity.sql import SqlIdentities
from icewright.web.idempotent_answers_sql import SqlAnswers
from icewright.web.transport import Transport

_log = structlog.get_logger("icewright.server")

_EVERYBODY: Final = 0o007


def require_access(server: ServerConfig, *, has_tokens: bool, has_people: bool = False) -> None:
    """Raises :class:`NotAllowed` for a server that others reach while nobody was let in by its owner yet.

    A server that is new is its owner's alone, on its own machine; what opens it there must not be all that protects it
    from everybody else (hazards 3.2).
    """
    if server.is_exposed and not (has_tokens or has_people) and server.token is None:
        raise NotAllowed(
            f"no principal has access yet, so this server does not listen on {server.host}",
            hint="give it the token that you chose (server.token), or start it with server.host = 127.0.0.1 and "
            "`icewright token create` one, or configure how people log in ([oidc] with roles)",
        )


def build_access(
    server: ServerConfig,
    port: int,
    token: str,
    identities: SqlIdentities,
    audit: SqlAudit,
    answers: SqlAnswers | None = None,
    *,
    logins: Logins | None = None,
) -> Access:
    """Who gets in, by which names, and by TLS where it is not a program of this machine."""
    proxies = [ip_network(network) for network in server.trusted_proxies]
    transport = Transport(server.is_exposed, proxies)
    hosts = allowed_hosts(server, port)
    return Access(
        token,
        hosts,
        identities,
        audit,
        transport=transport,
        public_url=server.public_url,
        answers=answers,
        logins=logins,
        one_person=server.approvals == ONE_PERSON,
    )


def allowed_hosts(server: ServerConfig, port: int) -> frozenset[str]:
    """The Host headers that the server answers to."""
    public = frozenset() if server.public_url is None else authorities(server.public_url)
    peers = {urlsplit(peer_url(server, port)).netloc}
    return loopback_hosts(server.host, port) | public | peers | frozenset(server.allowed_hosts)


def own_url(server: ServerConfig, port: int) -> str:
    """Where programs of this machine find the server: under the name that its certificate has, if it has one."""
    if server.tls_certificate is not None and server.public_url is not None:
        return server.public_url
    host = server.host
    if host != "localhost" and ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    elif server.is_exposed and server.public_url is not None:  # it listens there alone, and answers TLS alone
        return server.public_url
    return f"http://{authority(host, port)}"


def peer_url(server: ServerConfig, port: int) -> str:
    """Where the other servers of the store reach this one: as configured, or by its machine's name if everywhere."""
    if server.peer_url is not None:
        return server.peer_url
    host = server.host
    if host != "localhost" and ip_address(host).is_unspecified:
        host = socket.gethostname()
    return f"{'http' if server.tls_certificate is None else 'https'}://{authority(host, port)}"


def certificate(server: ServerConfig) -> ssl.SSLContext | None:
    """What connections are accepted with, None where TLS ends elsewhere. Raises :class:`InvalidConfiguration`."""
    if server.tls_certificate is None or server.tls_key is None:
        return None
    return Certificate(server.tls_certificate, server.tls_key).context()


@dataclass(slots=True)
class Certificate:
    """A certificate and its key in files, read anew for the next connection once they were replaced."""

    certificate: Path
    key: Path
    _read: tuple[int, ...] = field(default=(), init=False)

    def context(self) -> ssl.SSLContext:
        """What connections are accepted with. Raises :class:`InvalidConfiguration`."""
        context = _new_context()
        self._read = self._state()
        self._load_into(context)
        context.sni_callback = self._renew
        return context

    def _renew(self, _connection: ssl.SSLObject, _name: str | None, context: ssl.SSLContext) -> None:
        """At each handshake, for the next one. What cannot be used leaves everything as it was, until it changes."""
        try:
            state = self._state()
            if state != self._read:
                self._read = state
                self._load_into(_new_context())  # a pair that does not fit would spoil the one in use
                self._load_into(context)
                _log.info("certificate read again", certificate=str(self.certificate))
        except InvalidConfiguration as error:
            _log.warning("certificate not read again", detail=error.message)

    def _state(self) -> tuple[int, ...]:
        found = []
        for path in (self.certificate, self.key):
            try:
                status = path.stat()
            except OSError as error:
                raise InvalidConfiguration(f"{path}: cannot be read: {error.strerror}", hint="see [server]") from error
            found += [status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode]
        return tuple(found)

    def _load_into(self, context: ssl.SSLContext) -> None:
        if stat.S_IMODE(self.key.stat().st_mode) & _EVERYBODY:
            raise InvalidConfiguration(f"{self.key}: everybody may read this key", hint="chmod o= it, or make another")
        try:
            context.load_cert_chain(self.certificate, self.key, password=_no_password)
        except (OSError, ValueError) as error:
            raise InvalidConfiguration(
                f"{self.certificate} and {self.key} are no certificate and its key: {error}", hint="both are PEM"
            ) from error


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _no_password() -> str:
    raise ValueError("the key is protected by a password, which a server cannot type")
