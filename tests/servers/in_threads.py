"""Servers that answer in a thread while a block runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socket import socket
from socketserver import BaseServer

from uvicorn import Server

from tests.waiting import PATIENCE_S


@contextmanager
def answering(server: BaseServer) -> Iterator[None]:
    """A server of the standard library, which is closed behind the block."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serving_web(web: Server, listening: socket) -> Iterator[None]:
    """An application behind a socket that listens."""
    thread = threading.Thread(target=web.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        web.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "something that is open keeps the server"
