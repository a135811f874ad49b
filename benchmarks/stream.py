"""Commits at an even pace, told to several servers in turn, and when each is in the inventory of their store.

Looks into the store are at least :data:`LOOK_INTERVAL_S` apart, by which a lag may be too long. A look is one query by
the index of the tables, and takes a twentieth of the time at most.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from types import TracebackType
from typing import Final, Self

import psycopg
from sqlalchemy import make_url

from benchmarks.lake import Mismatch
from benchmarks.many_tables import CATALOG, Commit, Pointers
from icewright.api_client.client import Client
from icewright.core.errors import Unavailable
from icewright.model.events.events import CommitEvent

LOOK_INTERVAL_S: Final = 0.05
_LOOK_REST: Final = 20
_STALLED_S: Final = 300.0
_TELLING_S: Final = 300.0
_AGAIN_S: Final = 1.0


class Stream:
    """What is told to servers, and what of it has arrived. ``lags_s``: from each swap until it is in the inventory."""

    def __init__(self, database: str, pointers: Pointers, clients: Sequence[Client]) -> None:
        self._pointers, self._clients = pointers, tuple(clients)
        self._store = psycopg.connect(_conninfo(database), autocommit=True)
        self._tellers = [ThreadPoolExecutor(1, thread_name_prefix="teller") for _ in clients]
        self._telling: deque[Future[int]] = deque()
        self._waiting: dict[str, list[tuple[int, float]]] = {}
        """By uuid of the table: snapshots that are not in the inventory, and when they became its present state."""
        self._number, self._look_at_s, self._arrived_s = 0, 0.0, time.monotonic()
        self.lags_s: list[float] = []
        self.told_again = 0
        """Events that a server did not take at once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with closing(self._store):
            for teller in self._tellers:
                teller.shutdown(cancel_futures=True)

    @property
    def behind(self) -> int:
        """Commits that are not in the inventory."""
        return sum(len(snapshots) for snapshots in self._waiting.values())

    def send(self, commits: Iterable[Commit], per_s: float, meanwhile: Callable[[], None]) -> None:
        """Commit and tell of it, at an even pace; ``meanwhile`` is called again and again.

        Raises :class:`Mismatch` when nothing arrives any more.
        """
        started_s = self._arrived_s = time.monotonic()
        for number, commit in enumerate(commits):
            due_s = started_s + number / per_s
            while True:
                self._look()
                meanwhile()
                rest_s = due_s - time.monotonic()
                if rest_s <= 0:
                    break
                time.sleep(min(LOOK_INTERVAL_S, rest_s))
            self._pointers.swap(commit)
            self._waiting.setdefault(commit.table_uuid, []).append((commit.snapshot_id, time.monotonic()))
            place = self._number % len(self._clients)
            self._telling.append(self._tellers[place].submit(_tell, self._clients[place], commit))
            self._number += 1

    def drain(self, meanwhile: Callable[[], None]) -> None:
        """Wait until all is in the inventory. Raises :class:`Mismatch` when nothing arrives any more."""
        while self._waiting or self._telling:
            self._look()
            meanwhile()
            time.sleep(LOOK_INTERVAL_S)

    def _look(self) -> None:
        """Take out the commits that the store has, or a later one of the same table."""
        while self._telling and self._telling[0].done():
            self.told_again += self._telling.popleft().result()
        began_s = time.monotonic()
        if began_s < self._look_at_s:
            return
        if not self._waiting:
            self._arrived_s = began_s
            return
        found = self._store.execute(
            "SELECT table_uuid, snapshot_id FROM tables WHERE catalog = %s AND table_uuid = ANY(%s)",
            (CATALOG, list(self._waiting)),
        ).fetchall()
        now_s = time.monotonic()
        for uuid, snapshot_id in found:
            waiting = self._waiting[uuid]
            left = [one for one in waiting if snapshot_id is None or one[0] > snapshot_id]
            self.lags_s += [now_s - since_s for one, since_s in waiting if (one, since_s) not in left]
            if len(left) < len(waiting):
                self._arrived_s = now_s
            if left:
                self._waiting[uuid] = left
            else:
                del self._waiting[uuid]
        self._look_at_s = now_s + max(LOOK_INTERVAL_S, _LOOK_REST * (now_s - began_s))
        if now_s - self._arrived_s > _STALLED_S:
            raise Mismatch(f"{self.behind} commits never came into the inventory")


def lost(database: str, last: Sequence[Commit]) -> list[Commit]:
    """Those of the last commits of their tables that the store does not have."""
    with psycopg.connect(_conninfo(database)) as store:
        found = store.execute("SELECT table_uuid, snapshot_id FROM tables WHERE catalog = %s", (CATALOG,)).fetchall()
    has: dict[str, int] = dict(found)
    return [commit for commit in last if has.get(commit.table_uuid) != commit.snapshot_id]


def _tell(client: Client, commit: Commit) -> int:
    """Tell of a commit, as often as the server cannot take it; how often it could not."""
    until_s, again = time.monotonic() + _TELLING_S, 0
    while True:
        try:
            client.notify(CommitEvent(commit.name, commit.snapshot_id))
        except Unavailable:
            if time.monotonic() > until_s:
                raise
            again += 1
            time.sleep(_AGAIN_S)
        else:
            client.calls.clear()  # an hour's would be much
            return again


def _conninfo(database: str) -> str:
    return make_url(database).set(drivername="postgresql").render_as_string(hide_password=False)
