"""Observing a table: its metadata as it is now, and its inventory moved forward to that snapshot.

A commit costs the manifests that it changed. Everything in an observation belongs to one snapshot.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from icewright.catalogs.parallel_catalogs import BoundedLoads
from icewright.catalogs.port import Catalog
from icewright.core.clock import Clock
from icewright.core.errors import IcewrightError, NotAllowed, NotFound, TableReplaced, Unreadable
from icewright.core.fault_points import Fault, fault
from icewright.core.times import Instant
from icewright.events.reporting import counted, new_commits, unreported_snapshots
from icewright.inventory.arithmetic import advance, affected_partitions, manifest_changes, needing_remaining, recompute
from icewright.inventory.commit_rate import commit_interval_ms, has_rhythm, rhythm_ms
from icewright.inventory.histogram import NegativeCount
from icewright.inventory.row_removals import CLOCK_AHEAD_MS_MAX
from icewright.model.access.redacted_text import names_a_secret
from icewright.model.events.events import ReportedCommits, Reporting
from icewright.model.iceberg.files import FileContent, Partition
from icewright.model.iceberg.inventory import Inventory, ManifestKey, ManifestSummary
from icewright.model.iceberg.layouts import runs_of
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.snapshot_sightings import Mark, marked
from icewright.model.iceberg.tables import Operation, Snapshot, TableMetadata
from icewright.model.plans.observation import Observation, Removal, Removals
from icewright.model.policy.policy import PREFIX
from icewright.observation.access import AccessBook, storage_root
from icewright.observation.executor_exclusions import NOT_SORTED, NOT_STITCHABLE, ExecutorExclusions
from icewright.observation.inventory_steps import run_ids, summaries, updated, with_runs
from icewright.ownership.reachable_folders import AlreadyRead
from icewright.ownership.registry import Registry
from icewright.ports.store import InventoryUpdate, TableRecord, TableStore
from icewright.ports.table_records import StoredTable

KNOWN_CHARACTERS_MAX = 65_536
"""Of the properties of one table together: every writer of a table can put anything into them."""
REMOVALS_LOOKED_AT = 20
"""Commits that removed rows and are looked at one by one; with more of them, the whole table counts as touched."""
REWRITES_LOOKED_AT = 100
"""The same of commits of ours; with more within :data:`REWRITES_SINCE_MS`, all partitions count as rewritten."""
REWRITES_SINCE_MS = 86_400_000
"""For how long a rewrite of ours can put the next one off, a day."""
CHANGES_REMEMBERED = 1_000 * (REMOVALS_LOOKED_AT + REWRITES_LOOKED_AT)
"""Commits whose changes are remembered, the most that 1,000 tables have; then the one asked for longest ago goes."""


class CatalogNotConfigured(NotFound):
    """No catalog of that name is configured. It says nothing about its tables: they are not gone."""


class OtherName(NotAllowed):
    """The name leads to a table that is looked after under another one; ``table_id`` says which table."""

    def __init__(self, table_id: TableId, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.table_id = table_id


@dataclass(frozen=True, slots=True)
class _Changed:
    """Where one commit removed files or added delete files; immutable, hence remembered."""

    partitions: frozenset[Partition]
    everywhere: bool
    writer_run_ms: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A table that was observed, and the record of that as the store has it, or is to have it where not ``is_kept``."""

    observation: Observation
    record: TableRecord
    is_kept: bool


class Observer:
    """Looks at tables through their catalogs, and keeps what it saw in the store."""

    def __init__(
        self,
        catalogs: Mapping[str, Catalog],
        tables: TableStore,
        clock: Clock,
        access: AccessBook | None = None,
        exclusions: ExecutorExclusions | None = None,
        registry: Registry | None = None,
    ) -> None:
        """``access`` is what is known of storages, by default what the store knows; ``exclusions`` of files.

        ``registry`` gets each table's places.
        """
        self._catalogs, self._tables, self._clock = catalogs, tables, clock
        self._access = access or AccessBook(tables, clock)
        self._exclusions = exclusions or ExecutorExclusions(tables, clock)
        self._registry = registry or Registry(catalogs, clock)
        self._loads = BoundedLoads()
        self._changed: OrderedDict[tuple[TableId, int], _Changed] = OrderedDict()
        self._lock = threading.Lock()

    def catalog(self, name: str) -> Catalog:
        """The catalog of that name. Raises :class:`CatalogNotConfigured`."""
        try:
            return self._catalogs[name]
        except KeyError:
            known = ", ".join(sorted(self._catalogs)) or "none"
            raise CatalogNotConfigured(f"no catalog {name!r}", hint=f"configured catalogs: {known}") from None

    def present(self, record: TableRecord) -> TableMetadata:
        """The metadata of a table as it is now, for a person who waits for it: within a few seconds, or not at all.

        Raises :class:`~icewright.core.errors.TableReplaced` when its name leads to another table, and as
        :meth:`icewright.catalogs.parallel_catalogs.BoundedLoads.load` does.
        """
        metadata = self._loads.load(self.catalog(record.name.catalog), record.name)
        if metadata.table_id != record.table_id:
            raise TableReplaced(f"{record.name} is another table now (uuid {metadata.table_id.uuid})")
        return metadata

    def namesakes(self, name: TableName, uuid: str) -> frozenset[TableName]:
        """See :meth:`icewright.ownership.registry.Registry.namesakes`."""
        return self._registry.namesakes(name, uuid)

    def has_seen(self, name: TableName) -> bool:
        """Whether a table of that name was seen, by this server or an earlier one."""
        return self._registry.claim(name) is not None

    @property
    def catalog_names(self) -> frozenset[str]:
        """The catalogs that are configured."""
        return frozenset(self._catalogs)

    def observe(self, name: TableName) -> Observation:
        """The table as it is now, which is kept.

        Raises as :meth:`load` and :meth:`seen` do, and :class:`~icewright.core.errors.LookLost` as the latter.
        """
        metadata = self.load(name)
        seen = self.seen(metadata, self._tables.before_look_at(metadata.table_id).stored)
        if not seen.is_kept:
            self._tables.save_record(seen.record)
        return seen.observation

    def load(self, name: TableName) -> TableMetadata:
        """The metadata of a table as it is now. Raises what :meth:`icewright.catalogs.port.Catalog.load` raises."""
        metadata = self.catalog(name.catalog).load(name)
        self._registry.saw(metadata)
        return metadata

    def seen(self, metadata: TableMetadata, stored: StoredTable) -> Seen:
        """A table that was just loaded, by what is ``stored`` of it. Its inventory is kept where that moved.

        Raises :class:`~icewright.core.errors.Unreadable` for damaged manifests, and :class:`OtherName` for a table that
        is looked after under another name; then the store is as it was. And
        :class:`~icewright.core.errors.LookLost` when another look moved the inventory meanwhile.
        """
        catalog = self.catalog(metadata.name.catalog)
        _check_name(catalog, metadata, stored.record)
        record = self._record(metadata, stored.record)
        inventory, is_kept = self._move_forward(catalog, metadata, stored, record)
        observation = self._observation(catalog, metadata, inventory, stored, record.marks)
        return Seen(observation, replace(record, revision=record.revision + is_kept), is_kept)

    def _observation(
        self,
        catalog: Catalog,
        metadata: TableMetadata,
        inventory: Inventory,
        stored: StoredTable,
        marks: tuple[Mark, ...],
    ) -> Observation:
        access, detail = self._access.known(metadata, stored)
        exclusions = self._exclusions.lately(stored.exclusions)
        return Observation(
            metadata=metadata,
            observed_at=self._clock.now(),
            inventory=inventory,
            removals=self._look_for_removals(catalog, metadata),
            commit_interval_ms=commit_interval_ms(metadata),
            worker_access=access,
            access_detail=detail,
            not_stitched=exclusions.get(NOT_STITCHABLE, ""),
            not_sorted=exclusions.get(NOT_SORTED, ""),
            marks=marks,
            is_queried=stored.is_queried,
        )

    def _move_forward(
        self, catalog: Catalog, metadata: TableMetadata, before: StoredTable, record: TableRecord
    ) -> tuple[Inventory, bool]:
        """The inventory as it is now, and whether the record was kept: where either is not there yet, or has moved."""
        snapshot, known, stored = metadata.current_snapshot, before.runs, tuple(before.partitions)
        after = () if snapshot is None else tuple(catalog.manifests(metadata, snapshot))
        came, gone = manifest_changes(before.manifests, after)
        fault(Fault.OBSERVE_BEFORE)
        runs, is_kept = {**known, **runs_of(metadata)}, bool(came or gone)
        added: Sequence[ManifestSummary] = ()
        if is_kept:
            try:
                update = self._update(catalog, metadata, record, before, came, gone, runs.keys())
            except NegativeCount:
                # The stored sum is not the sum of its manifests. It is only a copy: count again from the table.
                update = self._recount(catalog, metadata, record, before, after, runs.keys())
            stored = updated(stored, update)
            self._tables.apply_inventory(with_runs(update, known, runs, metadata, run_ids(stored)))
            added = update.added_manifests
        elif before.record is None or before.record.name != record.name or before.record.dropped_at is not None:
            self._tables.apply_inventory(InventoryUpdate(record, (), (), (), ()))  # found by its id and name then
            is_kept = True
        lists: dict[int, Sequence[ManifestKey]] = {} if snapshot is None else {snapshot.snapshot_id: after}
        if before.record is not None and before.record.snapshot_id is not None:
            lists.setdefault(before.record.snapshot_id, before.manifests)
        self._registry.read(catalog, metadata, AlreadyRead(lists, added))
        fault(Fault.OBSERVE_AFTER)
        live = {snapshot_id: runs[snapshot_id] for snapshot_id in run_ids(stored) if snapshot_id in runs}
        return Inventory(metadata.current_snapshot_id, after, stored, live), is_kept

    def _update(
        self,
        catalog: Catalog,
        metadata: TableMetadata,
        record: TableRecord,
        before: StoredTable,
        came: tuple[ManifestKey, ...],
        gone: tuple[ManifestKey, ...],
        runs: AbstractSet[int],
    ) -> InventoryUpdate:
        table_id = metadata.table_id
        added = summaries(catalog, metadata, came, runs)
        gone_keys = frozenset(gone)
        removed = [s for s in self._tables.manifest_summaries(table_id) if s.key in gone_keys] if gone else []
        affected = affected_partitions((*added, *removed))
        current = {s.partition: s for s in before.partitions if s.partition in affected}
        needing = needing_remaining(metadata, added, removed)
        remaining = self._tables.manifest_summaries(table_id, needing) if needing and before.manifests else ()
        change = advance(metadata, current, added=added, removed=removed, remaining=remaining)
        return InventoryUpdate(record, added, gone, change.changed, change.removed)

    def _recount(
        self,
        catalog: Catalog,
        metadata: TableMetadata,
        record: TableRecord,
        before: StoredTable,
        after: tuple[ManifestKey, ...],
        runs: AbstractSet[int],
    ) -> InventoryUpdate:
        found = summaries(catalog, metadata, after, runs)
        statistics = recompute(metadata, found)
        kept = {entry.partition for entry in statistics}
        removed = tuple(s.partition for s in before.partitions if s.partition not in kept)
        return InventoryUpdate(record, found, before.manifests, statistics, removed)

    def _record(self, metadata: TableMetadata, record: TableRecord | None) -> TableRecord:
        now = self._clock.now()
        same = record is not None and record.metadata_location == metadata.metadata_location
        return TableRecord(
            table_id=metadata.table_id,
            name=metadata.name,
            metadata_location=metadata.metadata_location,
            snapshot_id=metadata.current_snapshot_id,
            format_version=metadata.format_version,
            observed_at=now,
            changed_at=record.changed_at if same and record is not None else now,
            commit_interval_ms=commit_interval_ms(metadata),
            next_look_at=now if record is None else record.next_look_at,
            plan_id=None if record is None else record.plan_id,
            problem=None,
            properties=known_properties(metadata.properties),
            marks=marked(() if record is None else record.marks, metadata, now),
            reporting=self._reporting(metadata, record, now),
            storage_root=storage_root(metadata),
            considered=() if record is None else record.considered,
            unparked_at=None if record is None else record.unparked_at,
            listed=None if record is None else record.listed,
            revision=0 if record is None else record.revision,
        )

    def _reporting(self, metadata: TableMetadata, record: TableRecord | None, now: Instant) -> Reporting:
        """How well the table's commits are reported, as of this look. The inbox is asked only where one is new."""
        before = None if record is None else record.reporting
        new = () if record is None else new_commits(metadata, record.snapshot_id, record.observed_at)
        ids = unreported_snapshots(before, new)
        kinds = (
            self._tables.reported_commits(metadata.name, ids, before.counted_at)
            if before is not None and ids
            else ReportedCommits({})
        )
        return counted(before, new, kinds, now)

    def _look_for_removals(self, catalog: Catalog, metadata: TableMetadata) -> Removals:
        # A date in the future would stand in the way of the dates of the removals before it.
        now = self._clock.now()
        ancestors = [s for s in metadata.ancestors() if s.committed_at <= now + CLOCK_AHEAD_MS_MAX]
        removing = [snapshot for snapshot in ancestors if _may_have_removed(snapshot)]
        if not removing:
            return Removals()
        latest, run_ms_max, removed_before = self._changes(catalog, metadata, removing, REMOVALS_LOOKED_AT)
        ours = [s for s in ancestors if _is_our_rewrite(s) and s.committed_at > now - REWRITES_SINCE_MS]
        rewrites, _, rewritten_before = self._changes(catalog, metadata, ours, REWRITES_LOOKED_AT)
        times = _times(latest)
        looked_at = removing[: REMOVALS_LOOKED_AT + 1] if removed_before is not None else metadata.ancestors()
        since = min((snapshot.committed_at for snapshot in looked_at), default=0)
        return Removals(
            removed_at={partition: max(found) for partition, found in times.items()},
            everywhere_at=_everywhere_at(latest, removed_before),
            writer_run_ms_max=run_ms_max,
            every_ms={partition: rhythm_ms(found, since) for partition, found in times.items()},
            rhythmic=frozenset(partition for partition, found in times.items() if has_rhythm(found)),
            latest=latest,
            rewritten_at={partition: max(found) for partition, found in _times(rewrites).items()},
            all_rewritten_at=_everywhere_at(rewrites, rewritten_before),
        )

    def _changes(
        self, catalog: Catalog, metadata: TableMetadata, snapshots: Sequence[Snapshot], most: int
    ) -> tuple[tuple[Removal, ...], int, Instant | None]:
        """Where each of these commits, up to ``most``, changed files, and the longest run of their writers.

        Then when the newest of the others was.
        """
        found: list[Removal] = []
        run_ms_max = 0
        for snapshot in snapshots[:most]:
            try:
                changed = self._change(catalog, metadata, snapshot)
            except Unreadable:
                found.append(Removal(snapshot.committed_at, frozenset(), everywhere=True))
                continue
            run_ms_max = max(run_ms_max, changed.writer_run_ms)
            found.append(Removal(snapshot.committed_at, changed.partitions, changed.everywhere))
        return tuple(found), run_ms_max, snapshots[most].committed_at if len(snapshots) > most else None

    def _change(self, catalog: Catalog, metadata: TableMetadata, snapshot: Snapshot) -> _Changed:
        key = (metadata.table_id, snapshot.snapshot_id)
        with self._lock:
            known = self._changed.get(key)
            if known is not None:
                self._changed.move_to_end(key)
                return known
        keys = [k for k in catalog.manifests(metadata, snapshot) if k.added_snapshot_id == snapshot.snapshot_id]
        touched: set[Partition] = set()
        unpartitioned = {spec.spec_id for spec in metadata.specs if spec.is_unpartitioned}
        everywhere = False
        for summary in catalog.summarize(metadata, snapshot, keys):
            # Equality deletes of an unpartitioned spec apply to all partitions (spec, "Scan Planning").
            everywhere = everywhere or any(
                share.counts.equality_delete_files
                for partition, share in summary.partitions.items()
                if partition.spec_id in unpartitioned
            )
            deletes = summary.content is not FileContent.DATA
            touched |= {p for p, share in summary.partitions.items() if deletes or share.removed_files}
        first = None if _is_our_rewrite(snapshot) else catalog.first_written_at(metadata, snapshot)
        run_ms = 0 if first is None else max(0, snapshot.committed_at - first)
        changed = _Changed(frozenset(touched), everywhere, run_ms)
        with self._lock:
            self._changed[key] = changed
            while len(self._changed) > CHANGES_REMEMBERED:
                self._changed.popitem(last=False)
        return changed


def _check_name(catalog: Catalog, metadata: TableMetadata, record: TableRecord | None) -> None:
    """Raises :class:`OtherName` for the second name of a table: what is kept of a table is kept by its uuid, once."""
    if record is None or record.name == metadata.name:
        return
    try:
        first = catalog.load(
            record.name
        )  # also where it was not there once: a catalog may not show a table for a while
    except NotFound:
        return  # it was renamed
    if first.table_id == metadata.table_id:
        raise OtherName(
            metadata.table_id,
            f"{metadata.name} has the uuid of {record.name}; one of them is looked after, and that is the latter",
            hint="drop one of them, without PURGE: they share their files",
        )


def _may_have_removed(snapshot: Snapshot) -> bool:
    """Whether a commit may have taken rows away: anything but an append or a rewrite."""
    return snapshot.operation not in (Operation.APPEND, Operation.REPLACE)


def _is_our_rewrite(snapshot: Snapshot) -> bool:
    return snapshot.task_id is not None and snapshot.operation is Operation.REPLACE


def _times(changes: Sequence[Removal]) -> dict[Partition, list[Instant]]:
    """When each partition was changed, newest first."""
    times: dict[Partition, list[Instant]] = {}
    for change in changes:
        for partition in change.partitions:
            times.setdefault(partition, []).append(change.at)
    return times


def _everywhere_at(changes: Sequence[Removal], before: Instant | None) -> Instant | None:
    everywhere = [change.at for change in changes if change.everywhere]
    return max(everywhere if before is None else [*everywhere, before], default=None)


def known_properties(properties: Mapping[str, str]) -> Mapping[str, str] | None:
    """The properties without those that may hold a secret; None where they are too long to be kept."""
    known = {key: value for key, value in properties.items() if key.startswith(PREFIX) or not names_a_secret(key)}
    return known if sum(len(key) + len(value) for key, value in known.items()) <= KNOWN_CHARACTERS_MAX else None


def why_gone(record: TableRecord, error: IcewrightError) -> str | None:
    """Why a table is not under its name any more, by how a look at that name failed; None where it may be."""
    if isinstance(error, NotFound) and not isinstance(error, CatalogNotConfigured):
        return f"{record.name} was dropped"
    if isinstance(error, OtherName) and error.table_id != record.table_id:
        return f"{record.name} is another table now (uuid {error.table_id.uuid})"
    return None
