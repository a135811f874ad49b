"""The server's HTTP API as methods: JSON in and out, problems as the very errors that the server raised.

Answers are JSON objects; the caller knows which view it asked for and reads it with :mod:`icewright.domain.codec`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import httpx2

from icewright.adapters.http.problems import problem
from icewright.adapters.http.stream import followed
from icewright.adapters.http.tls import trusted
from icewright.domain.asked import Asked, AskedRemoveOrphanFiles
from icewright.domain.codec import to_json
from icewright.domain.errors import NotFound, Rejected, Unavailable
from icewright.domain.events import CommitEvent
from icewright.domain.identity import NewToken
from icewright.domain.names import TableName
from icewright.domain.optimizers import BacklogRequest
from icewright.domain.policies import NewRevision, Policies
from icewright.domain.server_urls import client_url
from icewright.domain.tables import Json
from icewright.domain.tasks import TaskState

_TIMEOUT_S: Final = 30.0
_SENDING_S: Final = 90.0
"""How long a service may take to accept a message, with the process that sends it."""
_LONG_S: Final = 3600.0
"""How long it may take to list all files of a table, or to read all its metadata before any of them goes."""
_API: Final = "/api/v1"
_PAUSES_S: Final = (0.2, 1.0, 3.0)
"""Before what got no answer is asked for again: a server that is started anew, or the next one behind a balancer."""
_KEY: Final = "Idempotency-Key"
_UNDER_WAY: Final = "in-progress"


@dataclass(frozen=True, slots=True)
class Page:
    """Some items of a list; ``next_cursor`` is None on the last page."""

    items: tuple[Json, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request as it was sent, but for the token."""

    method: str
    url: str
    body: Json | None

    def __str__(self) -> str:
        """``POST http://127.0.0.1:7077/api/v1/... {"json": ...}`` in ASCII."""
        return f"{self.method} {self.url}" + ("" if self.body is None else f" {json.dumps(self.body)}")


class Client:
    """A connection to a server.

    Every method raises :class:`~icewright.domain.errors.Unavailable` when nobody answers, and what the server says
    is wrong as the error of the same code. ``calls`` are the requests made so far. A request whose answer got lost is
    made again, by a key under which the server carries it out once.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx2.BaseTransport | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raises :class:`Rejected` for what is not the address of a server, or would send the token in the clear."""
        self.url, self._pause = client_url(url), pause
        self.calls: list[ApiCall] = []
        self._http = httpx2.Client(
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT_S,
            trust_env=False,
            verify=trusted(self.url),
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    def status(self) -> Json:
        """What the server sees and does."""
        return self._object("GET", "/status")

    def backlog(self, asked: BacklogRequest, catalogs: Sequence[str]) -> Json:
        """What waits for optimizers of a group that reach these catalogs: a ``Backlog``."""
        told: dict[str, Any] = {"cores": asked.cores, "memory_bytes": asked.memory_bytes}
        told |= {} if asked.submitting is None else to_json(asked.submitting)
        said = {key: value for key, value in told.items() if value is not None}
        queues = [queue.value for queue in asked.queues]
        parameters = {"resource_group": asked.resource_group, "catalog": list(catalogs), "queue": queues, **said}
        return self._object("GET", "/backlog", parameters)

    def login_code(self) -> Json:
        """A one-time way into the server's page: ``{"path": ...}``, to be put behind the server's URL."""
        return self._object("POST", "/login-codes")

    def me(self) -> Json:
        """Who the server takes us for, and what we may do."""
        return self._object("GET", "/me")

    def create_token(self, new: NewToken) -> Json:
        """A new token, the only time that it is shown. Raises ``NotAllowed`` for a name that is taken."""
        return self._object("POST", "/tokens", body=to_json(new))

    def tokens(self, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Tokens by name."""
        return self._page("/tokens", {"limit": limit, "cursor": cursor})

    def revoke_token(self, name: str) -> Json:
        """Let a token in no more. Raises ``NotFound``."""
        return self._object("POST", f"/tokens/{_part(name)}/revoke")

    def sessions(
        self, *, own: bool = False, name: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> Page:
        """Sessions of browsers, the latest first: one's own, or all, or those of one name."""
        return self._page("/me/sessions" if own else "/sessions", {"name": name, "limit": limit, "cursor": cursor})

    def end_session(self, session_id: str) -> Json:
        """End one session: an ``EndedSessions``. Raises ``NotFound``."""
        return self._object("POST", f"/sessions/{_part(session_id)}/end")

    def end_sessions(self, name: str | None) -> Json:
        """End all sessions of somebody, None for one's own: an ``EndedSessions``. Raises ``NotFound``."""
        if name is None:
            return self._object("POST", "/me/sessions/end")
        return self._object("POST", "/sessions/end", body={"name": name})

    def receivers(self) -> Page:
        """Who is told by messages: all of them on one page."""
        return Page(tuple(self._object("GET", "/notifications")["items"]), None)

    def test_receiver(self, name: str) -> Json:
        """Send a receiver a message that says nothing: a ``Trial``. Raises ``NotFound``."""
        return self._object("POST", f"/notifications/receivers/{_part(name)}/test", timeout_s=_SENDING_S)

    def dead_letters(self, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Messages that were given up, the latest first."""
        return self._page("/notifications/dead-letters", {"limit": limit, "cursor": cursor})

    def retry_dead_letter(self, message_id: str) -> Json:
        """Have one sent again: ``{"message_id": ..., "receiver": ...}``. Raises ``NotFound`` and ``NotAllowed``."""
        return self._object("POST", f"/notifications/dead-letters/{_part(message_id)}/retry")

    def audit(self, *, limit: int = 100, cursor: str | None = None, after: int | None = None) -> Page:
        """What was done by whom: the newest first, or those behind ``after`` in order."""
        return self._page("/audit", {"limit": limit, "cursor": cursor, "after": after})

    def audit_head(self) -> Json:
        """Where the audit begins and ends: ``{"start": ..., "head": ...}``."""
        return self._object("GET", "/audit/head")

    def tables(
        self,
        *,
        name: TableName | None = None,
        catalog: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Tables that the server has seen."""
        of_name = None if name is None else str(name)
        return self._page("/tables", {"name": of_name, "catalog": catalog, "limit": limit, "cursor": cursor})

    def table_document(self, uuid: str, catalog: str) -> Json:
        """One table in full: a ``TableDocument``. Raises ``NotFound``."""
        return self._object("GET", f"/tables/{_part(uuid)}", {"catalog": catalog})

    def table(self, name: TableName) -> Json:
        """The summary of one table. Raises :class:`~icewright.domain.errors.NotFound`."""
        found = self.tables(name=name, limit=1).items
        if not found:
            raise NotFound(f"the server does not know a table {name}", hint="it looks for new tables now and then")
        return found[0]

    def partitions(self, uuid: str, catalog: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """The partitions of a table as of its last observed snapshot."""
        return self._page(f"/tables/{_part(uuid)}/partitions", {"catalog": catalog, "limit": limit, "cursor": cursor})

    def observations(self, uuid: str, catalog: str) -> Page:
        """What looks at a table have seen, the last one alone: an ``ObservationView``. Raises ``NotFound``."""
        return self._page(f"/tables/{_part(uuid)}/observations", {"catalog": catalog})

    def why(self, uuid: str, catalog: str) -> Json:
        """Why something happens to a table, or nothing: a ``Why``. Raises ``NotFound``."""
        return self._object("GET", f"/tables/{_part(uuid)}/why", {"catalog": catalog})

    def unneeded(self, uuid: str, catalog: str) -> Json:
        """Files that a table does not need: an ``UnneededView``. Raises ``NotFound``."""
        return self._object("GET", f"/tables/{_part(uuid)}/unneeded", {"catalog": catalog})

    def plan_table(self, uuid: str, catalog: str) -> Json:
        """Have the table observed and planned now: ``{"plan": PlanView, "task_id": ..., "upkeep": [...]}``."""
        return self._object("POST", f"/tables/{_part(uuid)}/plan", {"catalog": catalog})

    def unpark(self, uuid: str, catalog: str) -> Json:
        """Close the breaker of a table, and have it looked at; as :meth:`plan_table`."""
        return self._object("POST", f"/tables/{_part(uuid)}/unpark", {"catalog": catalog})

    def plan_asked(self, uuid: str, catalog: str, asked: Asked) -> Json:
        """Have that planned which is asked for, to be applied: a ``PlanView``."""
        timeout_s = _LONG_S if isinstance(asked, AskedRemoveOrphanFiles) else _TIMEOUT_S
        path = f"/tables/{_part(uuid)}/plans"
        return self._object("POST", path, {"catalog": catalog}, to_json(asked), timeout_s=timeout_s)

    def apply(self, plan_id: str) -> Json:
        """Queue exactly that plan; the task."""
        return self._object("POST", f"/plans/{_part(plan_id)}/apply")

    def approve(self, plan_id: str, approved_by: str) -> Json:
        """Let exactly that plan go beyond its budget, and queue it; the task."""
        return self._object("POST", f"/plans/{_part(plan_id)}/approve", body={"approved_by": approved_by})

    def waiting(self, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Plans that wait for a person, oldest first."""
        return self._page("/plans/waiting", {"limit": limit, "cursor": cursor})

    def plan(self, plan_id: str) -> Json:
        """One plan: a ``PlanView``."""
        return self._object("GET", f"/plans/{_part(plan_id)}")

    def plan_files(self, plan_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """The files that a plan would remove."""
        return self._page(f"/plans/{_part(plan_id)}/files", {"limit": limit, "cursor": cursor})

    def quarantine(self, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Tasks whose removed files are in quarantine, newest first."""
        return self._page("/quarantine", {"limit": limit, "cursor": cursor})

    def held(self, task_id: str) -> Json:
        """What one task has in quarantine: a ``QuarantineView``."""
        return self._object("GET", f"/quarantine/{_part(task_id)}")

    def held_files(self, task_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """The files that one task has in quarantine."""
        return self._page(f"/quarantine/{_part(task_id)}/files", {"limit": limit, "cursor": cursor})

    def purge_of_gone_table(self, task_id: str, purged_by: str) -> Json:
        """Have some of it purged although its table is gone: ``{"quarantine": QuarantineView, "waits": ...}``."""
        path = f"/quarantine/{_part(task_id)}/purge-of-gone-table"
        return self._object("POST", path, body={"purged_by": purged_by}, timeout_s=_LONG_S)

    def purge(self, task_id: str, *, cursor: str | None = None) -> Json:
        """Have it looked after now what a task removed, a page of its files: a ``PurgeAnswer``."""
        path = f"/quarantine/{_part(task_id)}/purge"
        return self._object("POST", path, {"cursor": cursor}, timeout_s=_LONG_S)

    def tasks(
        self,
        *,
        states: tuple[TaskState, ...] = (),
        table: Json | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Tasks, newest first; ``table`` is a summary that :meth:`table` gave."""
        of_table = {} if table is None else {"table": table["uuid"], "catalog": table["catalog"]}
        wanted = [state.value for state in states]
        return self._page("/tasks", {"state": wanted, **of_table, "limit": limit, "cursor": cursor})

    def task(self, task_id: str) -> Json:
        """One task with its history and attempts."""
        return self._object("GET", f"/tasks/{_part(task_id)}")

    def attempts(self, task_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """All tries of a task, oldest first: a ``ListedAttempt`` each."""
        return self._page(f"/tasks/{_part(task_id)}/attempts", {"limit": limit, "cursor": cursor})

    def attempt(self, task_id: str, number: int) -> Json:
        """One try of a task with its report: an ``AttemptDocument``. Raises ``NotFound``."""
        return self._object("GET", f"/tasks/{_part(task_id)}/attempts/{number}")

    def cancel(self, task_id: str) -> Json:
        """Cancel a task; the task."""
        return self._object("POST", f"/tasks/{_part(task_id)}/cancel")

    def expedite(self, task_id: str) -> Json:
        """Have a waiting task started before all others of its group; the task."""
        return self._object("POST", f"/tasks/{_part(task_id)}/expedite")

    def retry(self, task_id: str) -> Json:
        """Queue a failed or cancelled task again; the task."""
        return self._object("POST", f"/tasks/{_part(task_id)}/retry")

    def queue(self) -> Json:
        """What of the queue is halted: a ``QueueView``."""
        return self._object("GET", "/queue")

    def groups(self, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Resource groups by name: a ``GroupView`` each."""
        return self._page("/groups", {"limit": limit, "cursor": cursor})

    def group(self, name: str) -> Json:
        """One resource group in full: a ``GroupDocument``. Raises ``NotFound``."""
        return self._object("GET", f"/groups/{_part(name)}")

    def change_queue(self, verb: str, asked: Json) -> Json:
        """Pause, drain, stop or resume a part of the queue: a ``HaltView``, or a ``Resumed``."""
        return self._object("POST", f"/queue/{verb}", body=asked)

    def undo(self, task_id: str) -> Json:
        """Have it planned to take a task back, to be applied: a ``PlanView``."""
        return self._object("POST", f"/tasks/{_part(task_id)}/undo")

    def feed(
        self, *, kinds: Sequence[str] = (), under: Sequence[str] = (), limit: int = 100, cursor: str | None = None
    ) -> Page:
        """What happened, oldest first: a ``FactView`` each."""
        return self._page("/feed", {"kind": [*kinds], "under": [*under], "limit": limit, "cursor": cursor})

    def follow(
        self, *, kinds: Sequence[str] = (), under: Sequence[str] = (), after: int | None = None
    ) -> Iterator[Json]:
        """What happens from now on, or after a number, as it happens: a ``FactView`` each, until the caller stops.

        A stream that ends is taken up again where it ended. ``{"asked_after": ..., "begins_after": ...}`` comes where
        facts in between are not kept any more.
        """
        query = [*_query_pairs({"kind": [*kinds], "under": [*under]})]
        url = f"{self.url}{_API}/feed/stream" + (f"?{urlencode(query, errors='surrogatepass')}" if query else "")
        self.calls.append(ApiCall("GET", url, None))
        yield from followed(self._http, url, after)

    def policies(self, revision: int | None = None) -> Json:
        """A revision of the policies, by default the present one: a ``PolicyRevision``. Raises ``NotFound``."""
        return self._object("GET", "/policies" if revision is None else f"/policies/revisions/{revision}")

    def policy_revisions(self, *, limit: int = 20, cursor: str | None = None) -> Page:
        """What was applied, newest first."""
        return self._page("/policies/revisions", {"limit": limit, "cursor": cursor})

    def preview_policies(self, policies: Policies) -> Json:
        """What applying these would change: a ``PolicyDifference``."""
        return self._object("POST", "/policies/preview", body=to_json(policies), timeout_s=_LONG_S)

    def apply_policies(self, new: NewRevision, expected: int) -> Json:
        """Apply these in place of revision ``expected``: a ``PolicyRevision``. Raises ``Conflict``."""
        headers = {"If-Match": f'"{expected}"'}
        return self._object("POST", "/policies", body=to_json(new), timeout_s=_LONG_S, headers=headers)

    def events(self, *, limit: int = 100, cursor: str | None = None, **only: str | None) -> Page:
        """Events that came in, newest first: an ``EventView`` each; ``only`` by ``state``, ``channel`` or ``name``."""
        return self._page("/events/inbox", {**only, "limit": limit, "cursor": cursor})

    def notify(self, event: CommitEvent) -> Json:
        """Say that somebody committed."""
        return self._object("POST", "/events/commits", body=to_json(event))

    def _page(self, path: str, query: Mapping[str, Any]) -> Page:
        found = self._object("GET", path, query)
        try:
            return Page(tuple(found["items"]), found["next_cursor"])
        except KeyError as error:
            raise Unavailable(f"{self.url}: the answer is not a page of a list: {error} is missing") from error

    def _object(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Json | None = None,
        *,
        timeout_s: float = _TIMEOUT_S,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, Any]:
        pairs = list(_query_pairs(query or {}))
        url = f"{self.url}{_API}{path}" + (f"?{urlencode(pairs, errors='surrogatepass')}" if pairs else "")
        self.calls.append(ApiCall(method, url, body))
        # Bodies go out in ASCII: names may hold characters that UTF-8 cannot.
        content = None if body is None else json.dumps(body).encode("ascii")
        key = {_KEY: f'"{uuid.uuid4()}"'} if method == "POST" else {}
        headers = {**headers, **key, **({} if body is None else {"Content-Type": "application/json"})}
        try:
            request = self._http.build_request(method, url, content=content, headers=headers, timeout=timeout_s)
            response, found = self._answer(request)
        except httpx2.InvalidURL as error:
            raise Rejected(f"not the address of a server: {self.url}") from error
        if not response.is_success:
            raise problem(response.status_code, found)
        if not isinstance(found, dict):
            raise Unavailable(f"{self.url} does not answer as icewright does")
        return found

    def _answer(self, request: httpx2.Request) -> tuple[httpx2.Response, Any]:
        """What the server answers at last; a key's first request may still be under way when the second one comes."""
        for pause_s in _PAUSES_S:
            try:
                response, found = self._once(request)
            except _Lost:
                self._pause(pause_s)
                continue
            if not isinstance(found, dict) or found.get("code") != _UNDER_WAY:
                return response, found
            self._pause(pause_s)
        return self._once(request)

    def _once(self, request: httpx2.Request) -> tuple[httpx2.Response, Any]:
        try:
            response = self._http.send(request)
        except httpx2.HTTPError as error:
            lost = isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError)
            raise (_Lost if lost and not isinstance(error, httpx2.ConnectError) else Unavailable)(
                f"the server at {self.url} does not answer: {error or type(error).__name__}", hint=_hint(error)
            ) from error
        try:
            return response, response.json()
        except ValueError as error:
            raise Unavailable(f"{self.url} answers {response.status_code}, and not as icewright does") from error


class _Lost(Unavailable):
    """The connection broke off behind the request: it may have been carried out."""


def _hint(error: httpx2.HTTPError) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "its certificate is of nobody that this machine trusts; SSL_CERT_FILE names a file with others"
    return "is it running? `icewright serve` starts it"


def _part(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def _query_pairs(query: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in query.items():
        if isinstance(value, list):
            yield from ((key, str(item)) for item in value)
        elif value is not None:
            yield key, str(value)
