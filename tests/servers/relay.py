"""A way to a server that is long, or can be cut: whoever is connected then finds nobody at the other end."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from tests.servers.processes import HOST

_CHUNK_BYTES = 1 << 16


class Relay:
    """Passes bytes on between its own port and a server's, until it is cut.

    What is sent to the server waits ``delay_s`` on its way, which may be changed: so much longer a round trip takes.
    """

    def __init__(self, port: int, delay_s: float = 0.0) -> None:
        self._to, self.delay_s = port, delay_s
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
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(source, target, source is client), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_late: bool) -> None:  # noqa: FBT001 - a thread's
        with suppress(OSError):  # hung up
            while data := source.recv(_CHUNK_BYTES):
                if is_late and self.delay_s:
                    time.sleep(self.delay_s)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
