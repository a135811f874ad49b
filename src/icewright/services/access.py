"""Which storages the optimizers' workers reach: what was proved, what is to be found out, and by whom.

A merge runs in Python workers, which do not have the ``FileIO`` that Spark has. So nothing is planned for them before
one of them has written, seen and read an object where the table keeps its files. What is known is kept in the store;
what is to be found out is kept in memory, since every look at a table says it again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from icewright.domain.names import TableId, TableName
from icewright.domain.observation import Observation, WorkerAccess
from icewright.domain.storage import AccessRecord, ProbeReport, ProbeRequest
from icewright.domain.tables import Instant, TableMetadata
from icewright.planning.storage import storage_root
from icewright.ports.clock import Clock
from icewright.ports.store import TableStore

PROVED_FOR_MS: Final = 24 * 3_600_000
"""After this a proof is asked for again; it counts until there is another answer."""
REFUSED_FOR_MS: Final = 10 * 60_000
"""The same for a refusal: somebody may have granted what was missing."""
ASKED_FOR_MS: Final = 120_000
"""How long an optimizer has for its answer before another one is asked."""
PROBES_MAX: Final = 20
"""Tables in one answer to an optimizer."""
WANTED_MAX: Final = 10_000
"""Tables to be found out about at most; the next look at a table that is left out asks again."""

REFUSED_CODES: Final = frozenset({"storage-refused", "unsupported-location"})
"""Codes of failed attempts by which a worker says that it was not let in, or could not be."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that an optimizer has."""

    request: ProbeRequest
    optimizer_id: str
    at: Instant


class AccessBook:
    """Safe for use by several threads at once."""

    def __init__(self, tables: TableStore, clock: Clock) -> None:
        self._tables, self._clock = tables, clock
        self._lock = threading.Lock()
        self._wanted: dict[tuple[str, str], ProbeRequest] = {}
        self._asked: dict[tuple[str, str], _Asked] = {}
        self._roots: dict[TableId, str] = {}

    def known(self, metadata: TableMetadata) -> tuple[WorkerAccess, str]:
        """What is known of a table's storage, and why it is refused. Local file systems need no proof."""
        root = storage_root(metadata)
        if root is None:
            return WorkerAccess.PROVED, ""
        with self._lock:
            self._roots[metadata.table_id] = root
        record = self._tables.access(metadata.table_id.catalog, root)
        return (WorkerAccess.UNKNOWN, "") if record is None else (record.access, record.detail)

    def want(self, metadata: TableMetadata) -> None:
        """Have an optimizer find out about a table's storage, unless that is known and fresh.

        For tables that their owners let us act on alone: a probe writes an object.
        """
        root = storage_root(metadata)
        if root is None:
            return
        record = self._tables.access(metadata.table_id.catalog, root)
        key = (metadata.table_id.catalog, root)
        with self._lock:
            if record is not None and self._clock.now() - record.decided_at < _fresh_for_ms(record.access):
                self._wanted.pop(key, None)
            elif not self._is_asked(key) and (key in self._wanted or len(self._wanted) < WANTED_MAX):
                self._wanted[key] = ProbeRequest(metadata.table_id, metadata.name, root)

    def requests(self, optimizer_id: str, catalogs: Iterable[str]) -> tuple[ProbeRequest, ...]:
        """What an optimizer that reaches these catalogs shall find out now, each thing told to one optimizer.

        What it does not answer in time is wanted again by the next look at the table, if that is still there.
        """
        reached = frozenset(catalogs)
        with self._lock:
            self._asked = {key: asked for key, asked in self._asked.items() if self._is_asked(key)}
            given = [key for key in self._wanted if key[0] in reached][:PROBES_MAX]
            for key in given:
                self._asked[key] = _Asked(self._wanted.pop(key), optimizer_id, self._clock.now())
            return tuple(self._asked[key].request for key in given)

    def settle(self, optimizer_id: str, report: ProbeReport) -> TableName | None:
        """Take down what an optimizer found out; the table whose planning may change by that, if it may.

        What this optimizer was not asked is passed over: the server may have forgotten the question, and asks again.
        """
        key = (report.table_id.catalog, report.root)
        with self._lock:
            asked = self._asked.get(key)
            if asked is None or asked.optimizer_id != optimizer_id or asked.request.table_id != report.table_id:
                return None
        before = self._tables.access(*key)
        self._save(key, report.access, report.detail, optimizer_id)
        with self._lock:
            self._asked.pop(key, None)
        unchanged = before is not None and (before.access, before.detail) == (report.access, report.detail)
        return None if unchanged else asked.request.table_name

    def demote(self, table_id: TableId, detail: str, optimizer_id: str) -> None:
        """A worker was not let in after all: what was proved of the table's storage is not true any more."""
        with self._lock:
            root = self._roots.get(table_id)
        if root is not None:
            self._save((table_id.catalog, root), WorkerAccess.REFUSED, detail, optimizer_id)

    def _is_asked(self, key: tuple[str, str]) -> bool:
        """Whether an optimizer has the question, and time left for its answer. To be asked under the lock."""
        asked = self._asked.get(key)
        return asked is not None and 0 <= self._clock.now() - asked.at < ASKED_FOR_MS

    def _save(self, key: tuple[str, str], access: WorkerAccess, detail: str, optimizer_id: str) -> None:
        catalog, root = key
        self._tables.save_access(AccessRecord(catalog, root, access, detail, optimizer_id, self._clock.now()))


def assumed(observation: Observation) -> Observation:
    """The observation as if access were proved, where nobody knows and the plan is only to be shown."""
    if observation.worker_access is not WorkerAccess.UNKNOWN:
        return observation
    detail = "assumed: no optimizer has been asked whether its workers can read and write there"
    return replace(observation, worker_access=WorkerAccess.PROVED, access_detail=detail)


def _fresh_for_ms(access: WorkerAccess) -> int:
    return PROVED_FOR_MS if access is WorkerAccess.PROVED else REFUSED_FOR_MS
