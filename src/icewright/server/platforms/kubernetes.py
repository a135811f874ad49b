"""Replicas of a Deployment or StatefulSet, changed through the API of the cluster that the server runs in.

The subresource ``scale`` is read and patched, so that a role needs ``get`` and ``patch`` of that alone. The patch has
the version that was read: whoever changed the number meanwhile stands over it.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2

from icewright.core.errors import Conflict, InvalidConfiguration, OutcomeUnknown, Rejected, Unavailable
from icewright.work.autotune.servers.platform import Resize

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes mounts the account of a pod: its token, its namespace, and the authority of the API."""
TIMEOUT_S: Final = 15.0
ANSWER_BYTES_MAX: Final = 1 << 20
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_MERGE_PATCH: Final = "application/merge-patch+json"
_NOT_REACHED: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


@dataclass(frozen=True, slots=True)
class Workload:
    """Whose replicas the servers are: ``kind`` is ``deployment`` or ``statefulset``."""

    kind: str
    name: str
    namespace: str

    @property
    def path(self) -> str:
        """Of its scale, below the address of the API."""
        return f"/apis/apps/v1/namespaces/{self.namespace}/{self.kind}s/{self.name}/scale"

    def __str__(self) -> str:
        return f"{self.kind}/{self.name} of namespace {self.namespace}"


@dataclass(frozen=True, slots=True)
class ApiServer:
    """The API of Kubernetes. The token is read from its file for each request, since Kubernetes exchanges it."""

    url: str
    token_file: Path
    context: ssl.SSLContext = field(repr=False)


def api_of_pod(environ: Mapping[str, str], account: Path = ACCOUNT) -> ApiServer:
    """The API of the cluster that this pod runs in. Raises :class:`InvalidConfiguration` outside of one."""
    host, port = environ.get(_HOST, ""), environ.get(_PORT, "443")
    if not host or not port.isdecimal():
        raise InvalidConfiguration(f"platform.kind = kubernetes: there is no {_HOST}", hint="it works in a pod alone")
    try:
        context = ssl.create_default_context(cafile=str(account / "ca.crt"))
    except (OSError, ssl.SSLError) as error:
        raise InvalidConfiguration(
            f"platform.kind = kubernetes: no certificates can be read from {account / 'ca.crt'}",
            hint="the pod needs a service account (automountServiceAccountToken)",
        ) from error
    return ApiServer(f"https://{f'[{host}]' if ':' in host else host}:{port}", account / "token", context)


def own_namespace(account: Path = ACCOUNT) -> str:
    """The namespace of this pod. Raises :class:`InvalidConfiguration`."""
    try:
        return (account / "namespace").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfiguration("platform.namespace is missing, and the pod does not say its own") from error


class KubernetesPlatform:
    """A :class:`~icewright.work.autotune.servers.platform.Platform` of one workload."""

    def __init__(self, api: ApiServer, workload: Workload, *, timeout_s: float = TIMEOUT_S) -> None:
        self._api, self._workload, self._timeout_s = api, workload, timeout_s

    def resize(self, wanted: Resize) -> str:
        """See the port. Replicas that are neither as many as are seen nor as many as are wanted are left alone."""
        with httpx2.Client(
            base_url=self._api.url, timeout=self._timeout_s, trust_env=False, verify=self._api.context
        ) as http:
            scale = self._scale(http)
            replicas, version = _replicas(scale), _version(scale)
            if replicas == wanted.after:
                return f"{self._workload} has {replicas:,} replicas already"
            if replicas != wanted.before:
                text = f"{self._workload} has {replicas:,} replicas, and {wanted.before:,} servers are seen"
                raise Conflict(f"{text}: nothing is changed")
            self._patch(http, {"metadata": {"resourceVersion": version}, "spec": {"replicas": wanted.after}})
        return f"{self._workload} was set from {replicas:,} to {wanted.after:,} replicas"

    def _scale(self, http: httpx2.Client) -> Mapping[str, Any]:
        try:
            status, body = self._asked(http, "GET", None)
        except httpx2.HTTPError as error:
            raise Unavailable(f"the API of Kubernetes does not answer: {_told(error)}") from error
        self._judge(status, "get")
        try:
            found = json.loads(body)
        except ValueError as error:
            raise Unavailable("the API of Kubernetes does not answer with JSON") from error
        if not isinstance(found, dict):
            raise Unavailable("the API of Kubernetes does not answer with an object")
        return found

    def _patch(self, http: httpx2.Client, change: Mapping[str, Any]) -> None:
        try:
            status, _ = self._asked(http, "PATCH", json.dumps(change).encode())
        except _NOT_REACHED as error:
            raise Unavailable(f"the API of Kubernetes does not answer: {_told(error)}") from error
        except (httpx2.HTTPError, Unavailable) as error:
            raise OutcomeUnknown(f"the API of Kubernetes stopped answering: {_told(error)}") from error
        if status >= httpx2.codes.INTERNAL_SERVER_ERROR or status == httpx2.codes.REQUEST_TIMEOUT:
            raise OutcomeUnknown(f"the API of Kubernetes answers with status {status}")
        self._judge(status, "patch")

    def _asked(self, http: httpx2.Client, method: str, body: bytes | None) -> tuple[int, bytes]:
        """Status and body. Raises what the client raises; ``Unavailable`` where the answer has no end."""
        headers = {"Authorization": f"Bearer {self._token()}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = _MERGE_PATCH
        found, until_s = b"", time.monotonic() + self._timeout_s
        with http.stream(method, self._workload.path, headers=headers, content=body) as response:
            for part in response.iter_bytes():
                found += part
                if len(found) > ANSWER_BYTES_MAX:
                    raise Unavailable("the API of Kubernetes answers with too much")
                if time.monotonic() > until_s:
                    raise Unavailable(f"the API of Kubernetes does not end its answer within {self._timeout_s:g} s")
            return response.status_code, found

    def _token(self) -> str:
        try:
            token = self._api.token_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Rejected(f"no token can be read from {self._api.token_file}") from error
        if not token or not token.isprintable():
            raise Rejected(f"{self._api.token_file} has no token")
        return token

    def _judge(self, status: int, verb: str) -> None:
        what = f"{self._workload.kind}s/scale"
        match status:
            case _ if status in (httpx2.codes.OK, httpx2.codes.CREATED):
                return
            case httpx2.codes.UNAUTHORIZED:
                raise Rejected("Kubernetes does not accept the token of the service account")
            case httpx2.codes.FORBIDDEN:
                raise Rejected(f"the service account may not {verb} {what} in {self._workload.namespace}")
            case httpx2.codes.NOT_FOUND:
                raise Rejected(f"Kubernetes has no {self._workload}")
            case httpx2.codes.CONFLICT:
                raise Conflict(f"the replicas of {self._workload} were changed at the same time")
            case _ if status == httpx2.codes.TOO_MANY_REQUESTS or status >= httpx2.codes.INTERNAL_SERVER_ERROR:
                raise Unavailable(f"the API of Kubernetes answers with status {status}")
            case _:
                raise Rejected(f"Kubernetes refuses to {verb} {what} with status {status}")


def _replicas(scale: Mapping[str, Any]) -> int:
    spec = scale.get("spec")
    found = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if scale.get("kind") != "Scale" or not isinstance(found, int) or isinstance(found, bool):
        raise Unavailable("the API of Kubernetes does not answer with a Scale")
    return found


def _version(scale: Mapping[str, Any]) -> str:
    metadata = scale.get("metadata")
    found = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    if not isinstance(found, str) or not found:
        raise Unavailable("the API of Kubernetes does not say the version of the Scale")
    return found


def _told(error: Exception) -> str:
    return type(error).__name__
