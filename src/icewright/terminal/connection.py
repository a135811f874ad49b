"""Finds the server that a command talks to: the one that is configured, or the one that runs on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from icewright.api_client.client import Client
from icewright.terminal.found_server import found_server

if TYPE_CHECKING:
    from icewright.terminal.invocation import Invocation


@contextmanager
def server(invocation: Invocation, *, show_api: bool = False) -> Iterator[Client]:
    """A client of the server: as :func:`~icewright.terminal.found_server.found_server` finds it.

    With ``show_api`` the calls that were made are printed behind the result.

    Raises as :func:`~icewright.terminal.found_server.found_server`.
    """
    found = found_server(invocation.config, os.environ)
    with Client(found.url, found.token) as client:
        try:
            yield client
        finally:
            if show_api:
                for call in client.calls:
                    invocation.terminal.aside(str(call))
