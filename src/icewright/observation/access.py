"""Which storages the optimizers' workers reach: what was proved, what is to be found out, and by whom.

A merge runs in Python workers, which do not have the ``FileIO`` that Spark has. So nothing is planned for them before
one of them has written, seen and read an object where the table keeps its files. What is known is kept in the store,
and so is what is to be found out: optimizers ask and answer any server, and looks are taken by several.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from icewright.core.clock import Clock
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation, WorkerAccess
from icewright.model.work.storage import AccessRecord, ProbeReport, ProbeRequest
from icewright.ports.store import TableStore
from icewright.ports.table_records import StoredTable

_LOCAL: Final = ("/", "file:")
_DATA_PATH: Final = "write.data.path"
_FOLDER_PATH: Final = "write.folder-storage.path"
_OBJECT_PATH: Final = "write.object-storage.path"
_OBJECT_LAYOUT: Final = "write.object-storage.enabled"

PROVED_FOR_MS: Final = 24 * 3_600_000
"""After this a proof is asked for again; it counts until there is another answer."""
REFUSED_FOR_MS: Final = 10 * 60_000
"""The same for a refusal: what was missing may be granted by then."""
ASKED_FOR_MS: Final = 120_000
"""How long an optimizer has for its answer before another one is asked."""
PROBES_MAX: Final = 20
"""Tables in one answer to an optimizer."""

REFUSED_CODES: Final = frozenset({"storage-refused", "unsupported-location"})
"""Codes of failed attempts by which a worker says that it was not let in, or could not be."""


class AccessBook:
    """Nothing of it is kept in the process."""

    def __init__(self, tables: TableStore, clock: Clock) -> None:
        self._tables, self._clock = tables, clock

    def known(self, metadata: TableMetadata, stored: StoredTable) -> tuple[WorkerAccess, str]:
        """What is known of a table's storage, and why it is refused. Local file systems need no proof.

        ``stored`` is of the table, as of the beginning of the look.
        """
        root = storage_root(metadata)
        if root is None:
            return WorkerAccess.PROVED, ""
        record, _ = self._stored(metadata.table_id.catalog, root, stored)
        return (WorkerAccess.UNKNOWN, "") if record is None else (record.access, record.detail)

    def want(self, metadata: TableMetadata, stored: StoredTable) -> None:
        """Have an optimizer find out about a table's storage, unless that is known and fresh.

        For tables that their owners let us act on alone: a probe writes an object.
        """
        root = storage_root(metadata)
        if root is None:
            return
        (record, is_asked), now = self._stored(metadata.table_id.catalog, root, stored), self._clock.now()
        if record is not None and now - record.decided_at < _fresh_for_ms(record.access):
            if is_asked:
                self._tables.want_no_probe(metadata.table_id.catalog, root)
        else:
            self._tables.want_probe(ProbeRequest(metadata.table_id, metadata.name, root), now)

    def _stored(self, catalog: str, root: str, stored: StoredTable) -> tuple[AccessRecord | None, bool]:
        """What is known of a storage, and whether it is asked about; asked for where the table is there only now."""
        if stored.record is not None and stored.record.storage_root == root:
            return stored.access, stored.is_asked
        return self._tables.access(catalog, root), self._tables.probe(catalog, root) is not None

    def requests(self, optimizer_id: str, catalogs: Iterable[str]) -> tuple[ProbeRequest, ...]:
        """What an optimizer that reaches these catalogs shall find out now, each question to one optimizer.

        What it does not answer in time is asked of the next one, as long as looks at the table want to know it.
        """
        return self._tables.take_probes(
            optimizer_id, frozenset(catalogs), limit=PROBES_MAX, now=self._clock.now(), again_ms=ASKED_FOR_MS
        )

    def count_questions(self, catalogs: Iterable[str]) -> int:
        """How many things an optimizer that reaches these catalogs would be asked to find out."""
        return self._tables.probes_to_take(frozenset(catalogs), now=self._clock.now(), again_ms=ASKED_FOR_MS)

    def settle(self, optimizer_id: str, report: ProbeReport) -> TableName | None:
        """Take down what an optimizer found out; the table whose planning may change by that, if it may.

        What this optimizer was not asked is passed over, and so is what another one was asked since.
        """
        key = (report.table_id.catalog, report.root)
        asked = self._tables.probe(*key)
        if asked is None or asked.optimizer_id != optimizer_id or asked.request.table_id != report.table_id:
            return None
        before = self._tables.access(*key)
        self._save(key, report.access, report.detail, optimizer_id)
        self._tables.want_no_probe(*key)
        unchanged = before is not None and (before.access, before.detail) == (report.access, report.detail)
        return None if unchanged else asked.request.table_name

    def demote(self, table_id: TableId, detail: str, optimizer_id: str) -> None:
        """A worker was not let in after all: what was proved of the table's storage is not true any more."""
        record = self._tables.record(table_id)
        if record is not None and record.storage_root is not None:
            self._save((table_id.catalog, record.storage_root), WorkerAccess.REFUSED, detail, optimizer_id)

    def _save(self, key: tuple[str, str], access: WorkerAccess, detail: str, optimizer_id: str) -> None:
        catalog, root = key
        self._tables.save_access(AccessRecord(catalog, root, access, detail, optimizer_id, self._clock.now()))


def assumed(observation: Observation) -> Observation:
    """The observation as if access were proved, where it is unknown and the plan is only to be shown."""
    if observation.worker_access is not WorkerAccess.UNKNOWN:
        return observation
    detail = "assumed: no optimizer has been asked whether its workers can read and write there"
    return replace(observation, worker_access=WorkerAccess.PROVED, access_detail=detail)


def _fresh_for_ms(access: WorkerAccess) -> int:
    return PROVED_FOR_MS if access is WorkerAccess.PROVED else REFUSED_FOR_MS


def is_local(location: str) -> bool:
    """Whether a location is on a local file system."""
    return location.lower().startswith(_LOCAL)


def storage_root(metadata: TableMetadata) -> str | None:
    """The location that stands for a table's storage; None when all of it is local, which needs no proof.

    The rules are those of Iceberg's ``LocationProviders`` (1.12). A table whose new files go to another place than its
    own stands for both with the one that is not local.
    """
    properties = metadata.properties
    objects = properties.get(_OBJECT_LAYOUT, "").strip().lower() == "true"
    keys = (_DATA_PATH, _OBJECT_PATH, _FOLDER_PATH) if objects else (_DATA_PATH, _FOLDER_PATH)
    given = next((properties[key] for key in keys if key in properties), None)
    data = given or f"{metadata.location.rstrip('/')}/data"
    return next((place for place in (data, metadata.location) if not is_local(place)), None)
