"""Where all snapshots of a table have files: on every branch, under every tag, however old; each manifest read once.

A snapshot and its manifests never change. So what was read of them holds as long as the snapshot is there, and a table
that was committed to costs its new manifests alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from icewright.catalogs.port import Catalog
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary
from icewright.model.iceberg.tables import Snapshot, TableMetadata

LISTS_REMEMBERED: Final = 100_000
"""Manifests of which it is remembered, within one reading, that they were read: some 20 MB."""


@dataclass(frozen=True, slots=True)
class AlreadyRead:
    """What the caller has read just now: manifest lists by the ids of their snapshots, and what manifests said."""

    lists: Mapping[int, Sequence[ManifestKey]] = field(default_factory=dict)
    summaries: Iterable[ManifestSummary] = ()


class Reach:
    """Reads the snapshots of one table one after the other. What it found stands in it, also when a file fails.

    ``lacking`` are the ids of snapshots to be read; the manifests of all others are known. ``done`` are those that
    were read since, and ``places`` the folders in which their manifests have files, as spelled.
    """

    def __init__(self, catalog: Catalog, metadata: TableMetadata, lacking: frozenset[int], read: AlreadyRead) -> None:
        self._catalog, self._metadata, self._lists = catalog, metadata, dict(read.lists)
        self._summaries = {summary.key: summary.places for summary in read.summaries}
        self._lacking, self._known = lacking, set[ManifestKey]()
        self.done: set[int] = set()
        self.places: set[str] = set()

    def go_on(self, reads_max: int) -> None:
        """Read what is lacking, at most so many files, and what began at that.

        Raises what :meth:`~icewright.catalogs.port.Catalog.manifests` and ``summarize`` raise.
        """
        left = reads_max
        by_id = {snapshot.snapshot_id: snapshot for snapshot in self._metadata.snapshots}
        for snapshot in sorted(by_id.values(), key=lambda one: (one.sequence_number, one.committed_at)):
            if snapshot.snapshot_id not in self._lacking or snapshot.snapshot_id in self.done:
                continue
            if left <= 0:
                return
            parent = by_id.get(snapshot.parent_id) if snapshot.parent_id is not None else None
            left -= self._read(snapshot, parent)
            self.done.add(snapshot.snapshot_id)

    def _read(self, snapshot: Snapshot, parent: Snapshot | None) -> int:
        """Read one snapshot; how many files that took."""
        reads = 0
        if parent is not None and parent.snapshot_id not in self._lacking:
            reads += parent.snapshot_id not in self._lists
            self._remember(self._listed(parent))
        reads += snapshot.snapshot_id not in self._lists
        listed = self._listed(snapshot)
        new = [key for key in listed if key not in self._known]
        for key in new:
            self.places.update(self._summaries.get(key, ()))
        unread = [key for key in new if key not in self._summaries]
        for summary in self._catalog.summarize(self._metadata, snapshot, unread):
            self.places.update(summary.places)
        self._remember(listed)
        return reads + len(unread)

    def _listed(self, snapshot: Snapshot) -> Sequence[ManifestKey]:
        listed = self._lists.get(snapshot.snapshot_id)
        return self._catalog.manifests(self._metadata, snapshot) if listed is None else listed

    def _remember(self, keys: Sequence[ManifestKey]) -> None:
        if len(self._known) > LISTS_REMEMBERED:
            self._known.clear()
        self._known.update(keys)
