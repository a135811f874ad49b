"""Which server a program of a user talks to: named, configured, logged in to, or at home on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from icewright.config.secrets import resolve
from icewright.core.errors import NotFound, Rejected, Unavailable
from icewright.terminal.address import ServerAddress, read_address

if TYPE_CHECKING:
    from icewright.config.model import Config, ServerConfig

TOKEN_VARIABLE: Final = "ICEWRIGHT_TOKEN"  # noqa: S105 - the name of a variable
URL_VARIABLE: Final = "ICEWRIGHT_URL"


@dataclass(frozen=True, slots=True)
class FoundServer:
    """The URL of a server, and the token to show it."""

    url: str
    token: str = field(repr=False)


def found_server(config: Config, environ: Mapping[str, str]) -> FoundServer:
    """The server of ``$ICEWRIGHT_URL``, the configured one, the one that was logged in to, or that of this machine.

    A token in the environment goes before any other. The server of ``$ICEWRIGHT_URL`` is shown no token but that one
    and the one that is kept for this very address. Raises :class:`Unavailable` when no server runs here and none is
    configured, and :class:`Rejected` for a URL without a token.
    """
    given = environ.get(TOKEN_VARIABLE)
    if environ.get(URL_VARIABLE):
        return server_at(environ[URL_VARIABLE], None, config, environ)
    if config.optimizer.server_url is not None:
        return FoundServer(config.optimizer.server_url, given or _configured_token(config, environ))
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
    kept = _kept_token(url, config, environ)
    if kept is None:
        hint = f"`icewright login` keeps one; or set {TOKEN_VARIABLE}: `icewright token create` makes one"
        raise Rejected(f"no token for {url}", hint=hint)
    return FoundServer(url, kept)


def _kept_token(url: str, config: Config, environ: Mapping[str, str]) -> str | None:
    """The token that is kept for the server of this very address, wherever it is kept."""
    configured = config.optimizer.server_url
    if configured is not None and _is_same(configured, url):
        return _configured_token(config, environ)
    for path in (config.server.login_file, config.server.address_file):
        try:
            address = read_address(path)
        except NotFound:
            continue
        if _is_same(address.url, url):
            return address.token
    return None


def _configured_token(config: Config, environ: Mapping[str, str]) -> str:
    return resolve(config.optimizer.server_token or "", key="optimizer.server_token", environ=environ)


def _is_same(url: str, other: str) -> bool:
    return url.rstrip("/") == other.rstrip("/")


def _address(config: ServerConfig) -> ServerAddress:
    try:
        return read_address(config.login_file)
    except NotFound:
        pass
    try:
        return read_address(config.address_file)
    except NotFound as error:
        raise Unavailable(error.message, hint=error.hint) from error
