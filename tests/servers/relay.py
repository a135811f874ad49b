"""A way to a server that may be long, and be cut: whoever is connected through it then finds nobody at its end."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from tests.servers.processes import HOST

_CHUNK_BYTES = 1 << 16


class Relay:
    """Passes bytes on between its own port and a server's, until it is cut."""

    def __init__(self, port: int, delay_s: float = 0.0) -> None:
        """``delay_s`` is how long whatever is sent takes at least, in each direction."""
        self._to, self._delay_s = port, delay_s
        self._listener = socket.create_server((HOST, 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Take nobody any more, and hang up on all."""
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):  # cut
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((HOST, self._to))
                self._open += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(source, target, self._delay_s), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, delay_s: float) -> None:
    with suppress(OSError):  # hung up
        for one in (source, target):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := source.recv(_CHUNK_BYTES):
            if delay_s:
                time.sleep(delay_s)
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
