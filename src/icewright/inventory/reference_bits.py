"""What keeps a file: the current snapshot, a ref, or an expiry that would spare one of its snapshots; as bits.

Which snapshots need a file is a set that may be large. All that is ever asked of it is whether it has one of a few
kinds of snapshots, so each kind is a bit, and a file's bits are those of its snapshots together. All is then told
by one pass over the manifests, in memory that does not grow with the number of snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from icewright.core.times import Instant
from icewright.inventory.snapshot_retention import retained_snapshots
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.iceberg.tables import MAIN_BRANCH, Ref, TableMetadata

CURRENT: Final = 1
"""The bit of the current snapshot."""
OWN: Final = 2
"""The bit of the table's own files, which no snapshot is needed for."""
_FIRST_REF: Final = 4
REFS_MAX: Final = 500
"""Refs with a bit of their own, ``main`` among them; all further ones share one."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """An expiry that was asked about: how many snapshots it would remove, and the bit of those that it would keep."""

    rule: ExpiryRule
    snapshots: int
    bit: int


@dataclass(frozen=True, slots=True)
class ReferenceBits:
    """The bits of one table. ``refs`` have a bit each, ``other_refs`` are those without."""

    refs: Mapping[int, Ref]
    other_refs: int
    expiries: tuple[Expiry, ...]
    of_snapshots: Mapping[int, int]
    refs_mask: int
    everything: int

    def of(self, snapshot_id: int | None) -> int:
        """The bits of a file that a snapshot needs; all bits for the table's own, which no expiry removes."""
        return self.everything if snapshot_id is None else self.of_snapshots.get(snapshot_id, self.everything)


def reference_bits(metadata: TableMetadata, rules: Sequence[ExpiryRule], now: Instant) -> ReferenceBits:
    """The reference bits of a table, for these questions."""
    refs = sorted(metadata.refs, key=lambda ref: (ref.name != MAIN_BRANCH, ref.name))
    bits = {_FIRST_REF << number: ref for number, ref in enumerate(refs[:REFS_MAX])}
    shared = _FIRST_REF << len(bits)
    of_snapshots = {snapshot.snapshot_id: 0 for snapshot in metadata.snapshots}
    for bit, ref in (*bits.items(), *((shared, ref) for ref in refs[REFS_MAX:])):
        if ref.snapshot_id in of_snapshots:
            of_snapshots[ref.snapshot_id] |= bit
    if metadata.current_snapshot_id in of_snapshots:
        of_snapshots[metadata.current_snapshot_id] |= CURRENT
    expiries: list[Expiry] = []
    for number, rule in enumerate(rules, start=1):
        bit = shared << number
        kept = retained_snapshots(metadata, rule, now)
        expiries.append(Expiry(rule, len(metadata.snapshots) - len(kept), bit))
        for snapshot_id in kept:
            of_snapshots[snapshot_id] |= bit
    return ReferenceBits(
        refs=bits,
        other_refs=len(refs) - len(bits),
        expiries=tuple(expiries),
        of_snapshots=of_snapshots,
        refs_mask=sum(bits) + shared,
        everything=(shared << len(rules) + 1) - 1,
    )
