"""What optimizers found out, and what they are asked, in an SQL database."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, insert, or_, select, tuple_, update

from icewright.core.times import Instant
from icewright.model.iceberg.names import TableId
from icewright.model.work.storage import AccessRecord, ProbeRequest
from icewright.ports.findings import EXCLUSION_KEPT_MS, PROBES_KEPT_MS, ExecutorExclusion, Question
from icewright.store.documents import digest, dump, load
from icewright.store.locks import LockKind, lock, table_lock
from icewright.store.schema import worker_access
from icewright.store.table_rows import id_columns, is_table, replacing
from icewright.store.transactions import asking, reading, writing
from icewright.work.optimizers.findings_schema import exclusion_rows, probes


class SqlFindings:
    """The port over an engine of :func:`icewright.store.engine.open_store`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def note_exclusion(self, table_id: TableId, code: str, exclusion: ExecutorExclusion) -> None:
        """See the port."""
        row = {**id_columns(table_id), "code": code, "detail": exclusion.detail, "found_at": exclusion.found_at}
        with writing(self._engine, (table_lock(table_id),)) as connection:
            connection.execute(replacing(exclusion_rows), row)

    def exclusions(self, table_id: TableId) -> Mapping[str, ExecutorExclusion]:
        """See the port."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(exclusion_rows).where(*is_table(exclusion_rows, table_id))).mappings()
            return {row["code"]: ExecutorExclusion(row["found_at"], row["detail"]) for row in rows}

    def want_probe(self, request: ProbeRequest, now: Instant) -> None:
        """See the port."""
        key = {"catalog": request.table_id.catalog, "root_digest": digest(request.root)}
        same = [probes.c[name] == value for name, value in key.items()]
        with writing(self._engine, (lock(LockKind.STORAGE, *key.values()),)) as connection:
            if connection.execute(update(probes).where(*same).values(wanted_at=now)).rowcount == 0:
                connection.execute(insert(probes).values(**key, request=dump(request), wanted_at=now))

    def want_no_probe(self, catalog: str, root: str) -> None:
        """See the port."""
        with writing(self._engine) as connection:
            connection.execute(delete(probes).where(probes.c.catalog == catalog, probes.c.root_digest == digest(root)))

    def take_probes(
        self, optimizer_id: str, catalogs: frozenset[str], *, limit: int, now: Instant, again_ms: int
    ) -> tuple[ProbeRequest, ...]:
        """See the port."""
        query = select(probes).where(*_to_take(catalogs, now, again_ms))
        order = (probes.c.wanted_at, probes.c.catalog, probes.c.root_digest)
        with reading(self._engine) as connection:
            if connection.execute(query.limit(1)).first() is None:
                return ()  # optimizers ask every few seconds: that takes no turn among the writers
        with writing(self._engine) as connection:
            found = connection.execute(query.order_by(*order).limit(limit)).mappings().all()
            for row in found:
                same = (probes.c.catalog == row["catalog"], probes.c.root_digest == row["root_digest"])
                connection.execute(update(probes).where(*same).values(optimizer_id=optimizer_id, asked_at=now))
            return tuple(load(ProbeRequest, row["request"]) for row in found)

    def probes_to_take(self, catalogs: frozenset[str], *, now: Instant, again_ms: int) -> int:
        """See the port."""
        query = select(func.count()).select_from(probes).where(*_to_take(catalogs, now, again_ms))
        with reading(self._engine) as connection:
            return int(connection.scalar(query) or 0)

    def save_access(self, record: AccessRecord) -> None:
        """See the port."""
        key = {"catalog": record.catalog, "root_digest": digest(record.root)}
        row = {**key, "record": dump(record), "decided_at": record.decided_at}
        with writing(self._engine, (lock(LockKind.STORAGE, *key.values()),)) as connection:
            connection.execute(replacing(worker_access), row)

    def access(self, catalog: str, root: str) -> AccessRecord | None:
        """See the port."""
        query = select(worker_access.c.record).where(
            worker_access.c.catalog == catalog, worker_access.c.root_digest == digest(root)
        )
        with asking(self._engine, beside=True) as connection:
            found = connection.scalar(query)
            return None if found is None else load(AccessRecord, found)

    def probe(self, catalog: str, root: str) -> Question | None:
        """See the port."""
        query = select(probes).where(probes.c.catalog == catalog, probes.c.root_digest == digest(root))
        with asking(self._engine, beside=True) as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            return None
        return Question(load(ProbeRequest, row["request"]), row["optimizer_id"], row["asked_at"])


def _to_take(catalogs: frozenset[str], now: Instant, again_ms: int) -> tuple[ColumnElement[bool], ...]:
    asked = probes.c.asked_at
    return probes.c.catalog.in_(sorted(catalogs)), or_(asked.is_(None), asked > now, asked <= now - again_ms)


def prune_findings(connection: Connection, now: Instant, access_ms: int, limit: int) -> int:
    """Forget what counts no more, and questions that nobody repeats; how many answers of storages went."""
    key, at = (worker_access.c.catalog, worker_access.c.root_digest), worker_access.c.decided_at
    old = select(*key).where(at < now - access_ms).order_by(at, *key).limit(limit)
    removed = connection.execute(delete(worker_access).where(tuple_(*key).in_(old))).rowcount
    connection.execute(delete(exclusion_rows).where(exclusion_rows.c.found_at < now - EXCLUSION_KEPT_MS))
    connection.execute(delete(probes).where(probes.c.wanted_at < now - PROBES_KEPT_MS))
    return removed
