"""ZooKeeper says which server is to lead, and the store makes it the leader: its epoch is what fences off the last one.

Why so: ``docs/decisions``, 0078.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

import structlog
from sqlalchemy import Engine

from icewright.core.errors import CoordinatorUnavailable
from icewright.server.cluster.zookeeper import ZooKeeper
from icewright.store.transactions import taken_over
from icewright.store_admin.leader_lock import LeaderElection

_log = structlog.get_logger("icewright.server")

DEPOSE_S: Final = 3.0
"""How long the last leader has to give the lead away by itself, from when this server is elected."""


class StoreElection(LeaderElection, Protocol):
    """The election at a store that has an end also where the last leader does not hear of it."""

    def lead(self, *, deposes: bool = False) -> Engine | None:
        """As that of :class:`.leader_lock.LeaderElection`; with ``deposes`` also while another server leads."""


class ZooKeeperElection:
    """A :class:`~icewright.store_admin.leader_lock.LeaderElection`.

    While ZooKeeper does not answer, who leads goes on as long as the store confirms it, and nobody else comes to lead.
    """

    def __init__(
        self, store: StoreElection, zookeeper: ZooKeeper, *, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._zookeeper, self._monotonic_s = store, zookeeper, monotonic_s
        self._elected_s: float | None = None

    def lead(self) -> Engine | None:
        """See the protocol."""
        try:
            is_elected = self._zookeeper.stand()
        except CoordinatorUnavailable:  # which says so itself
            is_elected = False
        if not is_elected:
            self._elected_s = None
            return None
        now_s = self._monotonic_s()
        if self._elected_s is None:
            self._elected_s = now_s
        engine = self._store.lead()
        if engine is None and now_s - self._elected_s >= DEPOSE_S:
            _log.warning("the last leader is deposed", elected_s=round(now_s - self._elected_s))
            engine = self._store.lead(deposes=True)
        return engine

    @property
    def epoch(self) -> int | None:
        """See the protocol."""
        return self._store.epoch

    @property
    def backend(self) -> int:
        """See the protocol."""
        return self._store.backend

    def check(self) -> None:
        """See the protocol. A leader that ZooKeeper does not elect any more gives the lead away."""
        self._store.check()
        if self._store.epoch is None:
            return
        try:
            is_elected = self._zookeeper.stand()
        except CoordinatorUnavailable:
            return
        if not is_elected:
            self._store.resign()
            raise taken_over()

    def resign(self) -> None:
        """See the protocol."""
        self._elected_s = None
        self._store.resign()
        self._zookeeper.withdraw()
