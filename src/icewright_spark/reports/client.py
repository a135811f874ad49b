"""The optimizer's side of the server's HTTP API.

Every call either answers, or raises :class:`ServerUnavailable` (no answer: ask again later) or what the server said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeVar

import httpx2

from icewright.core.codec import from_json, to_json
from icewright.core.errors import (
    IcewrightError,
    InvalidMessage,
    LeaseLost,
    Rejected,
    ServerUnavailable,
    Unavailable,
    VersionMismatch,
)
from icewright.core.server_urls import client_url, trusted
from icewright.model.work.jobs import (
    ANY_TASK,
    ClaimRequest,
    Heartbeat,
    HeartbeatReply,
    OptimizerHello,
    TableCheck,
    TaskReport,
    TaskSpec,
)
from icewright.model.work.storage import ProbeReports, ProbeRequest, Probes

T = TypeVar("T")

_TIMEOUT_S: Final = 10.0
_ERRORS: Final[dict[str, type[IcewrightError]]] = {
    error.code: error for error in (LeaseLost, VersionMismatch, InvalidMessage)
}


@dataclass(frozen=True, slots=True)
class _Agreement:
    agrees: bool


_AWAY: Final = frozenset({502, 503, 504})
"""What a server says whose store is away, and a proxy whose server is."""


class Server:
    """The server that hands out tasks."""

    def __init__(self, url: str, token: str, *, transport: httpx2.BaseTransport | None = None) -> None:
        """Raises :class:`Rejected` for what is not the address of a server, or would send the token in the clear."""
        self._http = httpx2.Client(
            base_url=client_url(url),
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT_S,
            trust_env=False,
            verify=trusted(url),
            transport=transport,
        )

    def hello(self, hello: OptimizerHello) -> None:
        """Introduce this optimizer. Raises :class:`VersionMismatch` when the server speaks another version."""
        self._post("/api/v1/optimizers", hello)

    def claim(self, optimizer_id: str, request: ClaimRequest = ANY_TASK) -> TaskSpec | None:
        """The next task for this optimizer of those that it asks for, if there is one."""
        data = self._post(f"/api/v1/optimizers/{optimizer_id}/claims", request)
        return None if data is None else from_json(TaskSpec, data)

    def heartbeat(self, task_id: str, heartbeat: Heartbeat) -> HeartbeatReply:
        """Keep the lease. Raises :class:`LeaseLost` when it is somebody else's by now."""
        return from_json(HeartbeatReply, self._post(f"/api/v1/tasks/{task_id}/heartbeat", _said(heartbeat)))

    def report(self, report: TaskReport) -> None:
        """Say how the attempt ended. Raises :class:`LeaseLost` when nobody waits for it any more."""
        self._post(f"/api/v1/tasks/{report.task_id}/report", _said(report))

    def probes(self, optimizer_id: str) -> tuple[ProbeRequest, ...]:
        """The tables of which the server wants to know whether workers reach their storage."""
        data = self._post(f"/api/v1/optimizers/{optimizer_id}/probes", None)
        return () if data is None else from_json(Probes, data).requests

    def probed(self, optimizer_id: str, reports: ProbeReports) -> None:
        """Say what became of probes."""
        self._post(f"/api/v1/optimizers/{optimizer_id}/probe-reports", reports)

    def sees_the_same(self, check: TableCheck) -> bool:
        """Whether the server's catalog has the same table at the same metadata file as ours."""
        answer = from_json(_Agreement, self._post(f"/api/v1/tables/{check.table_id.uuid}/check", check))
        return answer.agrees

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _post(self, path: str, body: Any) -> Any:
        try:
            response = self._http.post(path, json=None if body is None else to_json(body))
        except httpx2.HTTPError as error:
            raise ServerUnavailable(f"the server at {self._http.base_url} does not answer: {error}") from error
        if response.status_code == httpx2.codes.NO_CONTENT:
            return None
        try:
            data = response.json()
        except ValueError as error:
            raise ServerUnavailable(f"the server answered {response.status_code} without JSON") from error
        if response.is_success:
            return data
        if not isinstance(data, dict):
            raise ServerUnavailable(f"the server answered {response.status_code} and did not say why")
        if response.is_server_error:
            # A request at which the server fails itself is no outage: it may fail so each time.
            away = response.status_code in _AWAY
            raise (ServerUnavailable if away else Unavailable)(
                f"the server answered {response.status_code}: {data.get('detail', '')}"
            )
        problem = _ERRORS.get(str(data.get("code")), Rejected)
        raise problem(str(data.get("detail", response.status_code)), hint=str(data.get("hint", "")))


def _said(message: Heartbeat | TaskReport) -> Any:
    """A message in JSON. Where there is no log, none is said: servers of before there was one refuse the field."""
    return {name: value for name, value in to_json(message).items() if name != "log" or value is not None}
