"""A load balancer as anybody's: connections go in turn to whichever of several servers takes them.

It may lose replies: the server has done what it was asked for, and whoever asked hears nothing.
"""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Self

from tests.servers.processes import HOST

_CHUNK_BYTES = 1 << 16
_CONNECT_S = 1.0


class Balancer:
    """Listens on ``port`` and knows nothing of HTTP: a server that does not take connections is passed over.

    ``loses`` is the share of replies that are lost, with their connection.
    """

    def __init__(self, servers: Sequence[int], *, loses: float = 0.0) -> None:
        self.loses, self._chance = loses, random.Random(3)  # noqa: S311 - which replies are lost
        self._servers = tuple(servers)
        self._turns = count()
        self._listening = socket.create_server((HOST, 0))
        self.port = int(self._listening.getsockname()[1])
        self.refused = 0
        """Connections for which no server was there."""
        self.lost = 0
        """Replies that were lost."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it has ended
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client, next(self._turns)), daemon=True).start()

    def _serve(self, client: socket.socket, turn: int) -> None:
        server = self._someone(turn)
        if server is None:
            self.refused += 1
            client.close()
            return
        back = threading.Thread(target=self._pass_on, args=(server, client), kwargs={"may_lose": True}, daemon=True)
        back.start()
        self._pass_on(client, server, may_lose=False)
        back.join()
        client.close()
        server.close()

    def _someone(self, turn: int) -> socket.socket | None:
        for offset in range(len(self._servers)):
            port = self._servers[(turn + offset) % len(self._servers)]
            with suppress(OSError):
                server = socket.create_connection((HOST, port), _CONNECT_S)
                server.settimeout(None)
                return server
        return None

    def _pass_on(self, source: socket.socket, target: socket.socket, *, may_lose: bool) -> None:
        with suppress(OSError):  # hung up, or killed
            while data := source.recv(_CHUNK_BYTES):
                if may_lose and self._chance.random() < self.loses:
                    self.lost += 1
                    break
                target.sendall(data)
        for one in (source, target):  # whoever has lost one side has lost both
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
