"""What optimizers found out, and what they are asked, in memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from icewright.core.times import Instant
from icewright.model.iceberg.names import TableId
from icewright.model.work.storage import AccessRecord, ProbeRequest
from icewright.ports.findings import EXCLUSION_KEPT_MS, PROBES_KEPT_MS, ExecutorExclusion, Question


class MemoryFindings:
    """The port, gone with the process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._exclusions: dict[tuple[TableId, str], ExecutorExclusion] = {}
        self._accesses: dict[tuple[str, str], AccessRecord] = {}
        self._probes: dict[tuple[str, str], tuple[Instant, Question]] = {}

    def note_exclusion(self, table_id: TableId, code: str, exclusion: ExecutorExclusion) -> None:
        with self._lock:
            self._exclusions[table_id, code] = exclusion

    def exclusions(self, table_id: TableId) -> Mapping[str, ExecutorExclusion]:
        with self._lock:
            return {code: one for (of, code), one in self._exclusions.items() if of == table_id}

    def want_probe(self, request: ProbeRequest, now: Instant) -> None:
        with self._lock:
            key = request.table_id.catalog, request.root
            _, question = self._probes.get(key, (now, Question(request)))
            self._probes[key] = now, question

    def want_no_probe(self, catalog: str, root: str) -> None:
        with self._lock:
            self._probes.pop((catalog, root), None)

    def take_probes(
        self, optimizer_id: str, catalogs: frozenset[str], *, limit: int, now: Instant, again_ms: int
    ) -> tuple[ProbeRequest, ...]:
        with self._lock:
            found = self._to_take(catalogs, now, again_ms)
            keys = [key for _, key in sorted(found, key=lambda one: one[0])[:limit]]
            for key in keys:
                wanted_at, question = self._probes[key]
                self._probes[key] = wanted_at, replace(question, optimizer_id=optimizer_id, asked_at=now)
            return tuple(self._probes[key][1].request for key in keys)

    def probes_to_take(self, catalogs: frozenset[str], *, now: Instant, again_ms: int) -> int:
        with self._lock:
            return len(self._to_take(catalogs, now, again_ms))

    def save_access(self, record: AccessRecord) -> None:
        with self._lock:
            self._accesses[record.catalog, record.root] = record

    def access(self, catalog: str, root: str) -> AccessRecord | None:
        with self._lock:
            return self._accesses.get((catalog, root))

    def probe(self, catalog: str, root: str) -> Question | None:
        with self._lock:
            found = self._probes.get((catalog, root))
            return None if found is None else found[1]

    def _to_take(self, catalogs: frozenset[str], now: Instant, again_ms: int) -> list[tuple[Instant, tuple[str, str]]]:
        def is_free(asked_at: Instant | None) -> bool:
            return asked_at is None or not asked_at <= now < asked_at + again_ms

        return [
            (wanted_at, key)
            for key, (wanted_at, question) in self._probes.items()
            if key[0] in catalogs and is_free(question.asked_at)
        ]

    def forget_exclusions(self, table_id: TableId) -> None:
        """Forget what was found of a table's files."""
        with self._lock:
            self._exclusions = {key: one for key, one in self._exclusions.items() if key[0] != table_id}

    def _prune_findings(self, now: Instant, access_ms: int, limit: int) -> int:
        """How many answers of storages went, the oldest first; what counts for a day alone goes all at once."""
        with self._lock:
            old = [key for key, one in self._accesses.items() if one.decided_at < now - access_ms]
            old = sorted(old, key=lambda key: self._accesses[key].decided_at)[:limit]
            for key in old:
                del self._accesses[key]
            self._exclusions = {
                key: one for key, one in self._exclusions.items() if one.found_at >= now - EXCLUSION_KEPT_MS
            }
            self._probes = {key: one for key, one in self._probes.items() if one[0] >= now - PROBES_KEPT_MS}
            return len(old)
