"""The way in: a server's tables, tasks and feed, for programs and notebooks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from icewright.api_client.client import Client
from icewright.api_client.paging import pages
from icewright.approvals.views import ApprovalView
from icewright.client import display as shown
from icewright.client.tables import Plan, Table, facts, full_name, rows_of
from icewright.client.tasks import Task
from icewright.configuration.load import load_config
from icewright.core import wording
from icewright.core.codec import from_json
from icewright.events.views import EventView
from icewright.feed.views import FactView
from icewright.model.events.events import Channel, EventState
from icewright.model.events.feed import FactKind
from icewright.model.work.tasks import TaskState
from icewright.plans.views import PlanView, TaskView, WaitingView
from icewright.tables.api_views import TableSummary
from icewright.terminal.found_server import FoundServer, found_server, server_at
from icewright.work.groups.views import GroupDocument, GroupView

LISTED_MAX = 20
"""So many tables are shown of a lake; :meth:`Lake.tables` has all of them."""


def connect(url: str | None = None, *, token: str | None = None, config: Path | None = None) -> Lake:
    """A connection to a server: the one at ``url``, else the one that the command line would talk to.

    That is the one of ``$ICEWRIGHT_URL``, the configured one, the one of `icewright login`, or the one that runs on
    this machine; ``config`` names a configuration file. ``token`` may be a reference, ``env:NAME`` or ``file:/path``;
    without one it is that of ``$ICEWRIGHT_TOKEN``, or the one that is kept for that very server.

    Raises :class:`~icewright.core.errors.Unavailable` when no server is found, and
    :class:`~icewright.core.errors.Rejected` for an address that is none, or without a token. Nothing is sent yet.
    """
    settings = load_config(config, os.environ, Path.cwd())
    found = found_server(settings, os.environ) if url is None else server_at(url, token, settings, os.environ)
    if url is None and token is not None:
        found = server_at(found.url, token, settings, os.environ)
    return Lake(_client(found))


def _client(found: FoundServer) -> Client:
    return Client(found.url, found.token)


class Lake:
    """A server, and all tables that it looks after and you may read. A context manager; sync, one request at a time.

    Errors are those of :mod:`icewright.core.errors`, as the server raised them.
    """

    def __init__(
        self,
        client: Client,
        *,
        pause: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._task: Callable[[TaskView], Task] = partial(Task, client, pause=pause, now=now)

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._client.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections; nothing can be asked any more."""
        self._client.__exit__()

    def tables(self, *, catalog: str | None = None) -> Iterator[Table]:
        """All tables, page by page as they are asked for; of one catalog, if one is named."""
        found = pages(TableSummary, lambda cursor: self._client.tables(catalog=catalog, cursor=cursor))
        return (Table(self._client, view, self._task) for view in found)

    def table(self, name: str) -> Table:
        """The table of that name: ``catalog.namespace.table``, odd parts in backticks.

        Raises ``NotFound``, and ``InvalidName`` for what is no name.
        """
        summary = self._client.table(full_name(self._client, name))
        return Table(self._client, from_json(TableSummary, summary), self._task)

    def task(self, task_id: str) -> Task:
        """A task. Raises ``NotFound``."""
        return self._task(from_json(TaskView, self._client.task(task_id)["task"]))

    def tasks(self, *states: TaskState) -> Iterator[Task]:
        """All tasks, newest first; only those in these states, if any are named."""
        found = pages(TaskView, lambda cursor: self._client.tasks(states=states, cursor=cursor))
        return (self._task(view) for view in found)

    def plan(self, plan_id: str) -> Plan:
        """A plan by its id, of any client. Raises ``NotFound``."""
        return Plan(self._client, from_json(PlanView, self._client.plan(plan_id)), None, self._task)

    def waiting(self) -> Iterator[WaitingView]:
        """The plans that wait for a person, the oldest first: ``lake.plan(waiting.plan_id)`` can be approved."""
        return pages(WaitingView, lambda cursor: self._client.waiting(cursor=cursor))

    def approvals(self) -> Iterator[ApprovalView]:
        """Who let which plan go, when, and why it had to wait, the latest first."""
        return pages(ApprovalView, lambda cursor: self._client.approvals(cursor=cursor))

    def events(
        self, *, state: EventState | None = None, channel: Channel | None = None, table: str | None = None
    ) -> Iterator[EventView]:
        """Commits that were reported to the server, newest first: whether their tables were looked at, or why not."""
        states, channels = (None if one is None else one.value for one in (state, channel))
        name = None if table is None else str(full_name(self._client, table))
        return pages(
            EventView, lambda cursor: self._client.events(cursor=cursor, state=states, channel=channels, name=name)
        )

    def groups(self) -> Iterator[GroupView]:
        """The resource groups by name: their caps, what is held of them, and what waits."""
        return pages(GroupView, lambda cursor: self._client.groups(cursor=cursor))

    def group(self, name: str) -> GroupDocument:
        """A resource group with who holds what of it, and what waits in its lanes. Raises ``NotFound``."""
        return from_json(GroupDocument, self._client.group(name))

    def feed(self, *, kinds: Sequence[FactKind] = (), under: Sequence[str] = ()) -> Iterator[FactView]:
        """What happened, oldest first, as far as it is kept; of some kinds, or of tables under some names."""
        return facts(self._client, kinds=[kind.value for kind in kinds], under=under)

    def follow(self, *, kinds: Sequence[FactKind] = (), under: Sequence[str] = ()) -> Iterator[FactView]:
        """What happens from now on, as it happens; without end."""
        found = self._client.follow(kinds=[kind.value for kind in kinds], under=under)
        return (from_json(FactView, item) for item in found if "sequence" in item)

    def __repr__(self) -> str:
        """Where it is; nothing is asked."""
        return wording.safe(f"<Lake at {self.url}>")

    def _repr_html_(self) -> str:
        page = self._client.tables(limit=LISTED_MAX)
        found = [from_json(TableSummary, item) for item in page.items]
        more = "" if page.next_cursor is None else f", the first {LISTED_MAX} tables"
        rows = [(one.name, *(value for _, value in rows_of(one))) for one in found]
        return shown.table(f"{self.url}{more}", rows, ("table", "mode", "files", "says"))
