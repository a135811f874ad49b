"""Finds the server that a command talks to: the one that is configured, or the one that runs on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from icewright.adapters.http.client import Client
from icewright.app.address import ServerAddress, read_address
from icewright.config.secrets import resolve
from icewright.domain.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from icewright.cli.invocation import Invocation
    from icewright.config.model import ServerConfig

TOKEN_VARIABLE: Final = "ICEWRIGHT_TOKEN"  # noqa: S105 - the name of a variable


@contextmanager
def server(invocation: Invocation, *, show_api: bool = False) -> Iterator[Client]:
    """A client of the server: the configured one, the one that was logged in to, or the one of this machine.

    With ``show_api`` the calls that were made are printed behind the result.

    A token in the environment goes before any other. Raises :class:`~icewright.domain.errors.Unavailable` when no
    server runs here and none is configured.
    """
    config = invocation.config
    if config.optimizer.server_url is not None:
        url = config.optimizer.server_url
        token = resolve(config.optimizer.server_token or "", key="optimizer.server_token", environ=os.environ)
    else:
        address = _address(config.server)
        url, token = address.url, address.token
    with Client(url, os.environ.get(TOKEN_VARIABLE) or token) as client:
        try:
            yield client
        finally:
            if show_api:
                for call in client.calls:
                    invocation.terminal.aside(str(call))


def _address(config: ServerConfig) -> ServerAddress:
    try:
        return read_address(config.login_file)
    except NotFound:
        pass
    try:
        return read_address(config.address_file)
    except NotFound as error:
        raise Unavailable(error.message, hint=error.hint) from error
