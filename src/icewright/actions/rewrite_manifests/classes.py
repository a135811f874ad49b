"""The manifests of a table by class, from the stored inventory: what is in each, and which queries open it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from icewright.inventory.partition_order import PartitionOrder, Pruning
from icewright.inventory.placement import column_types, placement_obstacle
from icewright.model.actions.rewrite_manifests import ManifestClass, ManifestContent, OutputManifest
from icewright.model.iceberg.column_types import all_fields
from icewright.model.iceberg.files import FileContent, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionCounts
from icewright.model.iceberg.tables import TableMetadata

_HEAD_BYTES: Final = 5_500
_HEAD_BYTES_A_COLUMN: Final = 80
"""A manifest begins with its own schema and the table's, as JSON: this is what Iceberg 1.12 writes, or less."""


@dataclass(frozen=True, slots=True)
class KnownManifest:
    """A manifest of the inventory.

    ``live`` counts its live entries per partition, ``removed`` those that are marked as deleted; ``live_bytes`` is
    about what the live ones take, without what every manifest has at its head. ``mask`` has the partitions whose
    queries open it, ``age`` the highest data sequence number in it. ``is_fixed`` is whether one of its partitions could
    not be told to Iceberg, or be told by it, so that it stays as it is.
    """

    key: ManifestKey
    live: Mapping[str, int]
    removed: int
    live_bytes: float
    mask: int
    age: int
    is_fixed: bool

    @property
    def entries(self) -> int:
        """Live entries."""
        return sum(self.live.values())


@dataclass(frozen=True, slots=True)
class KnownClass:
    """The manifests of one spec and content, the oldest first. Masks are of the live partitions of the spec.

    ``head_bytes`` is about what every manifest has at its head.
    """

    name: ManifestClass
    head_bytes: int
    manifests: tuple[KnownManifest, ...]
    order: PartitionOrder
    pruning: Pruning

    @property
    def size_bytes(self) -> int:
        """Bytes of all its manifests."""
        return sum(manifest.key.length_bytes for manifest in self.manifests)

    def opened(self, masks: Iterable[int]) -> tuple[int, float]:
        """How many of the manifests with these masks a query for one partition opens: at worst, and the mean."""
        counts = self.pruning.opened(masks)
        return max(counts, default=0), sum(counts) / max(1, len(counts))

    def mask(self, output: OutputManifest) -> int:
        """The partitions whose queries will open a manifest that is to be written."""
        return self.pruning.within(self.order.box(share.values for share in output.shares))


def known_classes(metadata: TableMetadata, summaries: Collection[ManifestSummary]) -> list[KnownClass]:
    """A table's manifests by class. A manifest without any entry is of no class, and left alone."""
    members: dict[ManifestClass, list[ManifestSummary]] = {}
    for summary in summaries:
        partition = next(iter(summary.partitions), None)
        if partition is not None:
            content = ManifestContent.DATA if summary.content is FileContent.DATA else ManifestContent.DELETES
            members.setdefault(ManifestClass(partition.spec_id, content), []).append(summary)
    by_spec = {spec_id: _Spec(metadata, spec_id, summaries) for spec_id in {name.spec_id for name in members}}
    return [by_spec[name.spec_id].of_class(name, its) for name, its in sorted(members.items())]


class _Spec:
    """The partitions of one spec."""

    def __init__(self, metadata: TableMetadata, spec_id: int, summaries: Iterable[ManifestSummary]) -> None:
        columns = sum(1 for _ in all_fields(metadata.schema.fields))
        self._head_bytes = _HEAD_BYTES + _HEAD_BYTES_A_COLUMN * columns
        every: set[Partition] = set()
        live: set[str] = set()
        for summary in summaries:
            its = {one: said for one, said in summary.partitions.items() if one.spec_id == spec_id}
            every |= its.keys()
            live |= {one.values for one, said in its.items() if _entries(said.counts)}
        types, spec = column_types(metadata), metadata.spec(spec_id)
        # Iceberg 1.12 has no JSON of files of a spec with ``void`` alone, so that nothing could be proved of them.
        void_alone = spec.is_unpartitioned and bool(spec.fields)
        self._fixed = {one for one in every if void_alone or placement_obstacle(metadata, types, one) is not None}
        self._order = PartitionOrder(metadata, spec)
        self._pruning = Pruning(self._order.key(values) for values in live)

    def of_class(self, name: ManifestClass, summaries: Iterable[ManifestSummary]) -> KnownClass:
        its = list(summaries)
        head_bytes = min(self._head_bytes, *(each.key.length_bytes for each in its))
        known = sorted(
            (self._known(each, head_bytes) for each in its), key=lambda manifest: (manifest.age, manifest.key)
        )
        return KnownClass(name, head_bytes, tuple(known), self._order, self._pruning)

    def _known(self, summary: ManifestSummary, head_bytes: int) -> KnownManifest:
        said = summary.partitions
        live = {one.values: _entries(its.counts) for one, its in said.items() if _entries(its.counts)}
        entries, removed = sum(live.values()), sum(its.removed_files for its in said.values())
        return KnownManifest(
            key=summary.key,
            live=live,
            removed=removed,
            live_bytes=(summary.key.length_bytes - head_bytes) * entries / max(1, entries + removed),
            mask=self._pruning.within(self._order.box(one.values for one in said)),
            age=max(its.sequence_number_max or 0 for its in said.values()),
            is_fixed=not self._fixed.isdisjoint(said),
        )


def _entries(counts: PartitionCounts) -> int:
    """Live entries; a manifest has either data files or delete files."""
    return counts.data_files + counts.delete_files
