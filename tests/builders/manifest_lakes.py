"""Summaries of made-up manifests for the tests of planning them, and observations that go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from icewright.model.iceberg.files import FileContent, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionCounts, PartitionSummary
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from tests.builders.observations import observe, table

KIB = 1024


def manifest(
    number: int,
    live: Mapping[Partition, int],
    size_bytes: int = 8 * KIB,
    *,
    removed: Mapping[Partition, int] | None = None,
    deletes: bool = False,
) -> ManifestSummary:
    """Manifest ``number``, which snapshot ``number`` added, with so many live and removed entries per partition."""
    removed = removed or {}
    partitions = {
        partition: PartitionSummary(
            PartitionCounts(deletion_vectors=live.get(partition, 0))
            if deletes
            else PartitionCounts(data_files=live.get(partition, 0)),
            number,
            frozenset(),
            removed.get(partition, 0),
        )
        for partition in {**live, **removed}
    }
    key = ManifestKey(f"file:/lake/t/metadata/{number:06}-m0.avro", size_bytes, number)
    return ManifestSummary(key, FileContent.POSITION_DELETES if deletes else FileContent.DATA, partitions)


def of_manifests(summaries: Sequence[ManifestSummary], metadata: TableMetadata | None = None) -> Observation:
    """The observation of a table that has these manifests."""
    observation = observe([], metadata or table())
    keys = tuple(sorted(summary.key for summary in summaries))
    return replace(observation, inventory=replace(observation.inventory, manifests=keys))


_values = st.one_of(st.none(), st.integers(-3, 12))
_sizes = st.sampled_from([1 * KIB, 40 * KIB, 300 * KIB, 700 * KIB, 1_500 * KIB, 5_000 * KIB])


def _entries(partitions: st.SearchStrategy[Partition]) -> tuple[st.SearchStrategy[dict[Partition, int]], ...]:
    """Live entries by partition, and removed ones."""
    live = st.dictionaries(partitions, st.integers(1, 40), max_size=8)
    removed: st.SearchStrategy[dict[Partition, int]] = st.just({})
    return live, removed | st.dictionaries(partitions, st.integers(1, 3), max_size=2)


# Made once: what is made while an example is drawn is looked through anew each time, two fifths of the CPU.
_BY_MONTH = _entries(st.builds(lambda value: Partition(0, "[null]" if value is None else f"[{value}]"), _values))
_WHOLE = _entries(st.just(Partition(1, "[]")))


@st.composite
def lakes(draw: st.DrawFn) -> tuple[ManifestSummary, ...]:
    """Up to 60 manifests of two specs and both contents, around a target of 1 MiB."""
    found = []
    for number in range(1, draw(st.integers(0, 60)) + 1):
        live, removed = map(draw, _BY_MONTH if draw(st.integers(0, 4)) else _WHOLE)
        found.append(manifest(number, live, draw(_sizes), removed=removed, deletes=draw(st.integers(0, 3)) == 0))
    return tuple(found)
