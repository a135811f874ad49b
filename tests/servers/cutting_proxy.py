"""A line between a client and PostgreSQL that breaks at a COMMIT: before the server heard of it, or after it obeyed."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from enum import Enum, auto
from types import TracebackType
from typing import Self

from tests.servers.processes import HOST

_COMMIT = b"COMMIT\0"
_CHUNK_BYTES = 1 << 16


class Cut(Enum):
    """When the line breaks."""

    BEFORE = auto()
    """The server never hears of the commit."""
    AFTER = auto()
    """The server commits, and its answer is lost."""


class CuttingProxy:
    """Listens on ``port`` and passes everything on to ``target`` until :attr:`cut` says otherwise, once."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server((HOST, 0))
        self.port = int(self._listening.getsockname()[1])
        self.cut: Cut | None = None
        self.cuts = 0
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        # Closing alone would not wake the thread that waits in accept().
        for each in (self._listening, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection((HOST, self._target))
            self._sockets += [client, server]
            lost = threading.Event()
            for move in (
                threading.Thread(target=self._send, args=(client, server, lost)),
                threading.Thread(target=self._answer, args=(server, client, lost)),
            ):
                self._threads.append(move)
                move.start()

    def _send(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK_BYTES):
                cut = self.cut if _COMMIT in data else None
                if cut is not None:
                    self.cut, self.cuts = None, self.cuts + 1
                if cut is Cut.BEFORE:
                    break
                if cut is Cut.AFTER:
                    lost.set()
                server.sendall(data)
        self._break(server if not lost.is_set() else None)
        self._break(client if not lost.is_set() else None)

    def _answer(self, server: socket.socket, client: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK_BYTES):
                if lost.is_set():
                    break  # it has obeyed, and nobody hears of it
                client.sendall(data)
        self._break(server)
        self._break(client)

    @staticmethod
    def _break(line: socket.socket | None) -> None:
        if line is not None:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
