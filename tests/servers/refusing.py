"""A storage that lets nobody in: every request is answered as S3 answers strangers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.servers.in_threads import answering
from tests.servers.processes import HOST

_BODY = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class _Refuses(BaseHTTPRequestHandler):
    def _refuse(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.send_response(403)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(_BODY)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(_BODY)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _refuse  # noqa: N815 - names of http.server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - a name of http.server
        """Say nothing."""


@contextmanager
def refusing_server() -> Iterator[str]:
    """Its address, while the block runs."""
    server = ThreadingHTTPServer((HOST, 0), _Refuses)
    with answering(server):
        yield f"http://{HOST}:{server.server_port}"
