"""The part of Kubernetes' API that changes replicas, over TLS: it checks tokens, versions and the schema of a Scale."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import kubernetes_validate

from tests.servers.hooks import certificate
from tests.servers.in_threads import answering

NAMESPACE, NAME, TOKEN = "lakes", "icewright", "token-of-a-service-account"
PATH = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}/scale"
MERGE_PATCH = "application/merge-patch+json"
HANGS_S = 30.0
"""At most: whoever ends the API ends the silence too."""


@dataclass
class FakeApi:
    """``answers`` are statuses in place of an answer by method, ``hangs`` methods that are done and not answered."""

    url: str
    context: ssl.SSLContext
    replicas: int = 2
    version: int = 7
    token: str = TOKEN
    allowed: set[str] = field(default_factory=lambda: {"GET", "PATCH"})
    answers: dict[str, int] = field(default_factory=dict)
    hangs: set[str] = field(default_factory=set)
    patched: list[int] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    body: bytes | None = None
    pause_s: float = 0.0
    """Between two bytes of a body."""
    changes_meanwhile: bool = False

    @property
    def scale(self) -> dict[str, Any]:
        """As the API shows it."""
        found = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "resourceVersion": str(self.version)},
            "spec": {"replicas": self.replicas},
            "status": {"replicas": self.replicas, "selector": "app=icewright"},
        }
        checked(found)
        return found

    def send(self, to: BufferedIOBase, body: bytes) -> None:
        """At once, or a byte after the other."""
        for part in [body[n : n + 1] for n in range(len(body))] if self.pause_s else [body]:
            to.write(part)
            time.sleep(self.pause_s)

    def patch(self, change: dict[str, Any]) -> int:
        """Apply a merge patch; the status."""
        scale = self.scale
        for part in ("metadata", "spec"):
            scale[part] |= change.pop(part, {})
        if change:
            return 422
        try:
            checked(scale)
        except kubernetes_validate.ValidationError:
            return 422
        if self.changes_meanwhile:
            self.version += 1
        if scale["metadata"]["resourceVersion"] != str(self.version):
            return 409
        self.replicas, self.version = scale["spec"]["replicas"], self.version + 1
        self.patched.append(self.replicas)
        return 200


def checked(scale: dict[str, Any]) -> None:
    """Raises what the schemas of Kubernetes say against it."""
    kubernetes_validate.validate(scale, kubernetes_validate.latest_version(), strict=True)


@contextmanager
def kubernetes_api(folder: Path) -> Iterator[FakeApi]:
    """The API while the block runs."""
    files = certificate(folder)
    state = FakeApi("", ssl.create_default_context(cafile=str(files[0])))
    checked(state.scale)  # the schemas are read now, and not while somebody waits for an answer
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._do(lambda: 200)

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self._do(lambda: state.patch(body) if self.headers["content-type"] == MERGE_PATCH else 415)

        def _do(self, work: Any) -> None:
            state.asked.append(self.command)
            status = self._refusal() or state.answers.get(self.command) or work()
            if self.command in state.hangs:
                ended.wait(HANGS_S)
            said = state.scale if status == 200 else {"kind": "Status", "apiVersion": "v1", "code": status}
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            body = json.dumps(said).encode() if state.body is None else state.body
            state.send(self.wfile, body)

        def _refusal(self) -> int | None:
            if self.headers["authorization"] != f"Bearer {state.token}":
                return 401
            if self.command not in state.allowed:
                return 403
            return None if self.path == PATH else 404

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            pass  # a client that went away

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    state.url = f"https://127.0.0.1:{server.server_address[1]}"
    with answering(server):
        try:
            yield state
        finally:
            ended.set()
