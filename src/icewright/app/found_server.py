"""Which server a program of a user talks to: named, configured, logged in to, or at home on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from icewright.app.address import ServerAddress, read_address
from icewright.config.model import Config, ServerConfig
from icewright.config.secrets import resolve
from icewright.domain.errors import NotFound, Rejected, Unavailable

TOKEN_VARIABLE: Final = "ICEWRIGHT_TOKEN"  # noqa: S105 - the name of a variable
URL_VARIABLE: Final = "ICEWRIGHT_URL"


@dataclass(frozen=True, slots=True)
class FoundServer:
    """The URL of a server, and the token to show it."""

    url: str
    token: str = field(repr=False)


def found_server(config: Config, environ: Mapping[str, str]) -> FoundServer:
    """The server of ``$ICEWRIGHT_URL``, the configured one, the one that was logged in to, or that of this machine.

    A token in the environment goes before any other, and the server of ``$ICEWRIGHT_URL`` is shown no other: those
    that are kept are for the servers that they came from. Raises :class:`Unavailable` when no server runs here and none
    is configured, and :class:`Rejected` for a URL without a token.
    """
    given = environ.get(TOKEN_VARIABLE)
    if environ.get(URL_VARIABLE):
        return FoundServer(environ[URL_VARIABLE], given or _missing_token(environ[URL_VARIABLE]))
    if config.optimizer.server_url is not None:
        token = resolve(config.optimizer.server_token or "", key="optimizer.server_token", environ=environ)
        return FoundServer(config.optimizer.server_url, given or token)
    address = _address(config.server)
    return FoundServer(address.url, given or address.token)


def server_at(url: str, token: str | None, config: Config, environ: Mapping[str, str]) -> FoundServer:
    """The server at an address, with a token, or a reference to one, that somebody gives for it.

    Without one it is that of the environment, or one that is kept for the server of this very address; never another
    server's. Raises :class:`Rejected` where there is none, and ``InvalidConfiguration`` for a reference to nothing.
    """
    if token is not None:
        return FoundServer(url, resolve(token, key="token", environ=environ))
    if environ.get(TOKEN_VARIABLE):
        return FoundServer(url, environ[TOKEN_VARIABLE])
    try:
        kept = found_server(config, environ)
    except Unavailable:
        _missing_token(url)
    return kept if kept.url.rstrip("/") == url.rstrip("/") else FoundServer(url, _missing_token(url))


def _missing_token(url: str) -> NoReturn:
    raise Rejected(f"no token for {url}", hint=f"set {TOKEN_VARIABLE} to one: `icewright token create` makes it")


def _address(config: ServerConfig) -> ServerAddress:
    try:
        return read_address(config.login_file)
    except NotFound:
        pass
    try:
        return read_address(config.address_file)
    except NotFound as error:
        raise Unavailable(error.message, hint=error.hint) from error
