"""A proxy before an Iceberg REST catalog that tells icewright of commits, by the reports that clients send anyway.

Clients are pointed at the proxy instead of at the catalog. All of it goes to the catalog; what is sent to
`.../metrics` goes to icewright as well, behind the client's back: it waits for nothing, and whether icewright is there
makes no difference to it. The client's credentials go to the catalog alone. For a catalog without TLS of its own:

    ICEWRIGHT_TOKEN=... python examples/mirror_metrics.py --listen 8182
        --catalog http://127.0.0.1:8181 --icewright http://127.0.0.1:7077
"""

from __future__ import annotations

import argparse
import os
import queue
import threading
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 60
WAITING_MAX = 1_000
"""Reports that wait for icewright; when there are more, new ones are dropped. What they tell of is found later."""
BODY_BYTES_MAX = 64 << 20
OF_ONE_CONNECTION = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}


class Mirror(ThreadingHTTPServer):
    """The proxy. ``prefix`` is what the catalog's address has before `/v1`."""

    daemon_threads = True

    def __init__(self, port: int, catalog: str, icewright: str, token: str) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.catalog, self.icewright, self.token = urlsplit(catalog), urlsplit(icewright), token
        self.prefix = self.catalog.path.rstrip("/")
        self.reports: queue.Queue[tuple[str, bytes]] = queue.Queue(WAITING_MAX)
        threading.Thread(target=self._tell, daemon=True).start()

    def _tell(self) -> None:
        while True:
            path, body = self.reports.get()
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection = HTTPConnection(self.icewright.netloc, timeout=TIMEOUT_S)
            try:
                connection.request("POST", path, body, headers)
                status = connection.getresponse().status
                if status != HTTPStatus.NO_CONTENT:
                    print(f"icewright answered {status} to {path}", flush=True)  # noqa: T201 - what it has to say
            except (OSError, HTTPException) as error:
                print(f"icewright does not answer: {error}", flush=True)  # noqa: T201 - what it has to say
            finally:
                connection.close()


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    server: Mirror

    def _pass_on(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            self.send_error(411)
            return
        body = self.rfile.read(int(length))
        names = {name.lower() for name in self.headers.get("Connection", "").replace(" ", "").split(",")}
        dropped = OF_ONE_CONNECTION | names | {"host", "content-length"}
        headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
        upstream = HTTPConnection(self.server.catalog.netloc, timeout=TIMEOUT_S)
        try:
            upstream.request(self.command, self.server.prefix + self.path, body, headers)
            answer = upstream.getresponse()
            content = answer.read()
        except (OSError, HTTPException):
            self.send_error(502)
            return
        finally:
            upstream.close()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in OF_ONE_CONNECTION | {"content-length"}:
                self.send_header(name, value)
        if answer.status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        path = self.path.partition("?")[0]
        if self.command == "POST" and path.endswith("/metrics") and not self.server.reports.full():
            self.server.reports.put((path, body))

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _pass_on  # noqa: N815 - the library's names

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing of each request."""


def main() -> None:
    """Run until it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", type=int, required=True, help="a port of 127.0.0.1")
    parser.add_argument("--catalog", required=True, help="http://host:port/path, as clients would have it")
    parser.add_argument("--icewright", required=True, help="http://host:port of its server")
    options = parser.parse_args()
    Mirror(options.listen, options.catalog, options.icewright, os.environ["ICEWRIGHT_TOKEN"]).serve_forever()


if __name__ == "__main__":
    main()
