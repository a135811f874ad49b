"""What a plan to rewrite manifests must fulfil, stated a second time; a part of the checker's second opinion.

Nothing of the planner is imported. Checked is what could do harm: a manifest that is not the table's, an entry that has
no place or two, figures that do not add up. Summaries are those of the store, which were read from the manifests; the
job reads them again and proves what it wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from icewright.model.actions.rewrite_manifests import (
    InputManifest,
    ManifestContent,
    RewriteManifests,
    RewriteManifestsPrediction,
)
from icewright.model.iceberg.files import FileContent, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary
from icewright.model.plans.observation import Observation
from icewright.model.policy.policy import Policy
from icewright.plans.check_table import Wrong, base_violations, not_writable, table_violations

_MOST_ENTRIES: Final = 100_000
_MOST_OF_ONE: Final = 500_000
_MOST_SHARES: Final = 100_000
_MOST_WRITTEN: Final = 1_000
_FORMATS: Final = (1, 2, 3)


def manifest_violations(
    action: RewriteManifests,
    prediction: RewriteManifestsPrediction,
    observation: Observation,
    policy: Policy,
    summaries: Iterable[ManifestSummary],
) -> Iterator[Wrong]:
    """What is wrong with a plan to rewrite manifests; ``summaries`` are those of the table's inventory."""
    planned = {manifest.path for manifest in action.manifests}
    known = {summary.key: summary for summary in summaries if summary.key.path in planned}
    yield from _table(action, observation, policy)
    if not action.manifests:
        yield "empty", "it rewrites no manifest"
    if len(planned) < len(action.manifests):
        yield "twice", "a manifest is to be replaced twice"
    for manifest in action.manifests:
        yield from _manifest(manifest, observation, known)
    yield from _places(action, known)
    yield from _limits(action)
    yield from _figures(action, prediction, observation)


def _table(action: RewriteManifests, observation: Observation, policy: Policy) -> Iterator[Wrong]:
    """The table is the one that it was planned for, and may be worked on."""
    metadata = observation.metadata
    yield from base_violations(action.base_snapshot_id, metadata)
    yield from table_violations(metadata, policy, _FORMATS)
    for partition in sorted(action.partitions):
        problem = not_writable(metadata, partition)
        if problem is not None:
            yield "partition-value", f"{partition.values} of spec {partition.spec_id}: {problem}"


def _manifest(
    manifest: InputManifest, observation: Observation, known: Mapping[ManifestKey, ManifestSummary]
) -> Iterator[Wrong]:
    """A manifest is one of the snapshot's, and what is said of it is so."""
    key = ManifestKey(manifest.path, manifest.size_bytes, manifest.added_snapshot_id)
    summary = known.get(key)
    if key not in observation.inventory.manifests or summary is None:
        yield "not-a-manifest", f"{manifest.path} is no manifest of the snapshot, or not as it is said to be"
        return
    is_data = summary.content is FileContent.DATA
    if is_data is not (manifest.belongs_to.content is ManifestContent.DATA):
        yield "wrong-content", f"{manifest.path} is said to have {manifest.belongs_to.content}"
    if {partition.spec_id for partition in summary.partitions} != {manifest.belongs_to.spec_id}:
        yield "wrong-spec", f"{manifest.path} is said to be of spec {manifest.belongs_to.spec_id}"
    counted = sum(_live(summary).values())
    removed = sum(said.removed_files for said in summary.partitions.values())
    if (counted, removed) != (manifest.entries, manifest.removed_entries):
        found = f"{counted} live entries and {removed} removed ones"
        yield "wrong-count", f"{manifest.path} has {found}, not {manifest.entries} and {manifest.removed_entries}"


def _places(action: RewriteManifests, known: Mapping[ManifestKey, ManifestSummary]) -> Iterator[Wrong]:
    """Each live entry has one place in a manifest of its own class, and no place is without an entry."""
    entries: Counter[tuple[int, ManifestContent, str]] = Counter()
    for manifest in action.manifests:
        summary = known.get(ManifestKey(manifest.path, manifest.size_bytes, manifest.added_snapshot_id))
        for partition, live in ({} if summary is None else _live(summary)).items():
            entries[partition.spec_id, manifest.belongs_to.content, partition.values] += live
    places: Counter[tuple[int, ManifestContent, str]] = Counter()
    for number, output in enumerate(action.outputs):
        if not output.shares:
            yield "empty-output", f"manifest {number} would have no entry"
        if len({share.values for share in output.shares}) < len(output.shares):
            yield "share-twice", f"manifest {number} has two shares of one partition"
        for share in output.shares:
            if share.entries < 1:
                yield "wrong-share", f"manifest {number} has {share.entries} entries of {share.values}"
            places[output.belongs_to.spec_id, output.belongs_to.content, share.values] += share.entries
    for place in sorted(entries.keys() | places.keys()):
        if entries[place] != places[place]:
            spec_id, content, values = place
            what = f"{content} of partition {values} of spec {spec_id}"
            yield "no-place", f"{entries[place]} entries with {what} would have {places[place]} places"


def _limits(action: RewriteManifests) -> Iterator[Wrong]:
    moved = sum(manifest.entries for manifest in action.manifests)
    filled = sum(manifest.entries > 0 for manifest in action.manifests)
    if moved > (_MOST_OF_ONE if filled == 1 else _MOST_ENTRIES):
        yield "too-much", f"it moves {moved} entries"
    named = sum(len(output.shares) for output in action.outputs)
    if named > _MOST_SHARES or len(action.outputs) > _MOST_WRITTEN:
        yield "too-much", f"it names {named} shares of partitions in {len(action.outputs)} manifests"
    if action.target_size_bytes < 1:
        yield "wrong-target", f"the target is {action.target_size_bytes} bytes"


def _figures(
    action: RewriteManifests, prediction: RewriteManifestsPrediction, observation: Observation
) -> Iterator[Wrong]:
    before = len(observation.inventory.manifests)
    after = before + len(action.outputs) - len(action.manifests)
    if (prediction.manifests_before, prediction.manifests_after) != (before, after):
        said = f"{prediction.manifests_before} manifests to become {prediction.manifests_after}"
        yield "wrong-prediction", f"it predicts {said}, and it is {before} to {after}"
    if prediction.entries != sum(manifest.entries for manifest in action.manifests):
        yield "wrong-prediction", f"it predicts {prediction.entries} entries"
    classes = {manifest.belongs_to for manifest in action.manifests}
    if {opened.belongs_to for opened in prediction.opened} != classes:
        yield "wrong-prediction", "it predicts what is opened of other manifests"


def _live(summary: ManifestSummary) -> dict[Partition, int]:
    """Live entries per partition."""
    counts = {one: said.counts for one, said in summary.partitions.items()}
    live = {
        one: its.data_files + its.position_delete_files + its.deletion_vectors + its.equality_delete_files
        for one, its in counts.items()
    }
    return {one: entries for one, entries in live.items() if entries}
