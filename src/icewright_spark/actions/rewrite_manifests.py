"""``rewrite_manifests``: put the live entries of some manifests into others, as the plan says, prove it, commit.

The job chooses nothing: which manifests go, which come, and how many entries of which partition each of these has, is
the planner's. It runs in Spark's driver alone: a core moves and proves thousands of entries a second, and a task has
half a million at most (decision 0031).
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icewright.core.errors import Conflict, LeaseLost
from icewright.core.fault_points import Fault, fault
from icewright.model.actions.rewrite_manifests import InputManifest, ManifestClass, OutputManifest, RewriteManifests
from icewright.model.iceberg.tables import ROW_LINEAGE_SINCE
from icewright.model.work.jobs import Receipt, TaskSpec
from icewright_spark.actions.done import ONE_GROUP, Done, done_by_driver
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.planned_table import check_table
from icewright_spark.iceberg.commits.manifests import SnapshotManifests, commit_manifests
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifest_entries import EntriesDigest, ManifestEntries
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.session.driver_cost import DriverCost, jvm_thread_clock

METHOD: Final = "manifest-entries-sha256"
"""The multiset of all live entries, as read before from the old manifests and afterwards from the new ones."""


@dataclass(frozen=True, slots=True)
class _Moved:
    """The new manifests of one class, as Java's, and the entries of the old ones."""

    of: ManifestClass
    manifests: tuple[Any, ...]
    digest: EntriesDigest


def rewrite_manifests(
    table: SparkTable,
    spec: TaskSpec,
    action: RewriteManifests,
    phase: Phase,
    may_commit: Callable[[], None],
    is_stopped: Callable[[], bool] = lambda: False,
) -> Done:
    """Carry out one attempt. ``is_stopped`` is asked now and then whether somebody wants it to end.

    Raises :class:`Conflict` when the table is not what was planned any more, :class:`ProofFailed` when the new
    manifests do not have the entries of the old ones, :class:`Unsupported` for what Iceberg cannot tell of an entry; in
    all these cases nothing has been committed.
    """
    cost = DriverCost(jvm_thread_clock(table.jvm))
    check_table(table, spec)
    found, format_version = SnapshotManifests(table), table.format_version
    gone = found.missing(action)
    if gone:
        raise Conflict(f"{gone[0]} is no longer a manifest of the table")
    # The next commit of anybody gives such rows their ids, which would be others where ours came behind it.
    if format_version >= ROW_LINEAGE_SINCE and found.without_row_ids(action):
        raise Conflict(
            f"rows of {spec.table_name} have no ids since it was upgraded to format version {format_version}; "
            "the next append, or any other commit of data, gives them: plan again after that"
        )
    phase.name = "merging"
    fault(Fault.MANIFESTS_BEFORE)
    moved = [_Mover(table, spec, action, of, found, cost, is_stopped).move() for of in classes(action)]
    phase.name = "proving"
    with cost.proof():
        before = together(each.digest for each in moved)
        after = check_entries(table, moved)
    fault(Fault.MANIFESTS_AFTER)
    phase.name = "committing"
    written = [manifest for each in moved for manifest in each.manifests]

    def prove_copies(copies: Sequence[Any]) -> None:
        with cost.proof():
            check_copies(table, moved, copies)

    result = commit_manifests(
        table,
        spec,
        action,
        written,
        proof=proof_of(action, after),
        prove_copies=prove_copies,
        format_version=format_version,
        may_commit=may_commit,
    )
    phase.name = "done"
    receipt = Receipt(ONE_GROUP, METHOD, before.text, after.text, after.entries)
    return done_by_driver(
        result,
        (receipt,),
        cost,
        input_files=len(action.manifests),
        input_bytes=action.input_bytes,
        output_paths=tuple(str(manifest.path()) for manifest in written),
        output_bytes=sum(int(manifest.length()) for manifest in written),
        records=after.entries,
    )


def classes(action: RewriteManifests) -> list[ManifestClass]:
    """The classes that an action is of, in their order."""
    return sorted({manifest.belongs_to for manifest in action.manifests})


def together(digests: Iterable[EntriesDigest]) -> EntriesDigest:
    """All entries as one multiset."""
    found = EntriesDigest()
    for digest in digests:
        found = found.both(digest)
    return found


def proof_of(action: RewriteManifests, digest: EntriesDigest) -> str:
    """The proof for the snapshot summary: method, manifests, and the multiset of entries."""
    manifests = f"replaced={len(action.manifests)};written={len(action.outputs)}"
    return f"{METHOD};{manifests};entries={digest.entries};digest={digest.text}"


def check_entries(table: SparkTable, moved: Sequence[_Moved]) -> EntriesDigest:
    """Read the new manifests back: each class has the entries of the old ones. Raises :class:`ProofFailed`."""
    read = [_read_back(table, each.of, each.manifests, committed=False) for each in moved]
    for each, found in zip(moved, read, strict=True):
        if found != each.digest:
            raise ProofFailed(
                f"the new manifests with {each.of.content} of spec {each.of.spec_id} have {found.entries} entries "
                f"({found.text[:16]}), those to be replaced {each.digest.entries} ({each.digest.text[:16]})"
            )
    return together(read)


def check_copies(table: SparkTable, moved: Sequence[_Moved], copies: Sequence[Any]) -> None:
    """The copies that Iceberg commits in format version 1 have the same entries. Raises :class:`ProofFailed`."""
    for each in moved:
        its = [copy for copy in copies if copy.partitionSpecId() == each.of.spec_id]
        if _read_back(table, each.of, its, committed=True) != each.digest:
            raise ProofFailed(f"Iceberg copied manifests of spec {each.of.spec_id}, and not all that is in them")


def _read_back(table: SparkTable, of: ManifestClass, manifests: Iterable[Any], *, committed: bool) -> EntriesDigest:
    entries, builder = ManifestEntries(table, of), table.jvm.org.apache.iceberg.GenericManifestFile
    own = manifests if committed else (builder.copyOf(each).withSnapshotId(-1).build() for each in manifests)
    return together(entries.digest(manifest, committed=committed) for manifest in own)


class _Mover:
    """Moves the entries of one class, manifest by manifest, into all of its new manifests at once."""

    def __init__(
        self,
        table: SparkTable,
        spec: TaskSpec,
        action: RewriteManifests,
        of: ManifestClass,
        found: SnapshotManifests,
        cost: DriverCost,
        is_stopped: Callable[[], bool],
    ) -> None:
        self._entries, self._of, self._cost, self._is_stopped = ManifestEntries(table, of), of, cost, is_stopped
        self._inputs = [each for each in action.manifests if each.belongs_to == of]
        self._outputs = [each for each in action.outputs if each.belongs_to == of]
        self._found, self._java = found.places, found.java
        self._deal = Deal(self._outputs)
        self._numbering = self._entries.numbering(self._deal.values)
        stem = f"{spec.task_id}-{spec.attempt}-{of.content}-{of.spec_id}-{uuid.uuid4()}"
        operations = table.java.operations()
        self._locations = [
            str(operations.metadataFileLocation(f"{stem}-m{number}.avro")) for number in range(len(self._outputs))
        ]

    def move(self) -> _Moved:
        """Write the new manifests. Raises as :func:`rewrite_manifests` does."""
        writers = [self._entries.writer(location) for location in self._locations]
        digest = EntriesDigest()
        try:
            for manifest in self._inputs:
                of_manifest = self._move_from(manifest, writers)
                if of_manifest.entries != manifest.entries:
                    text = (
                        f"{manifest.path} has {of_manifest.entries} live entries, and {manifest.entries} were planned"
                    )
                    raise ProofFailed(text)
                digest = digest.both(of_manifest)
        finally:
            for writer in writers:
                writer.close()
        if self._deal.left:
            raise ProofFailed(f"{self._deal.left} planned places have no entry")
        return _Moved(self._of, tuple(self._checked(writer) for writer in self._written(writers)), digest)

    def _move_from(self, manifest: InputManifest, writers: Sequence[Any]) -> EntriesDigest:
        digest, java = EntriesDigest(), self._java.get(self._found[manifest.path])
        if java.partitionSpecId() != self._of.spec_id or str(java.content().name()).lower() != self._of.content:
            raise ProofFailed(f"{manifest.path} is of spec {java.partitionSpecId()} and has {java.content()}")
        for entries in self._entries.chunks(java, committed=True):
            if self._is_stopped():
                raise LeaseLost("the attempt was to stop before its commit")
            with self._cost.proof():
                digest = digest.plus(self._entries.hashes(entries))
            for output, places in self._deal.out(self._numbering.of(entries)).items():
                self._entries.write(writers[output], entries, places)
        return digest

    def _written(self, writers: Sequence[Any]) -> Iterator[tuple[OutputManifest, Any]]:
        for output, writer in zip(self._outputs, writers, strict=True):
            yield output, writer.toManifestFile()

    def _checked(self, written: tuple[OutputManifest, Any]) -> Any:
        """A manifest has as many entries as planned, all of them existing ones."""
        output, manifest = written
        counts = (manifest.existingFilesCount(), manifest.addedFilesCount(), manifest.deletedFilesCount())
        if counts != (output.entries, 0, 0):
            raise ProofFailed(
                f"{manifest.path()} has {counts} entries, and {output.entries} existing ones were planned"
            )
        return manifest


class Deal:
    """Deals entries out to the manifests that have shares of their partitions, in the order of these."""

    def __init__(self, outputs: Sequence[OutputManifest]) -> None:
        shares: dict[str, deque[list[int]]] = {}
        for number, output in enumerate(outputs):
            for share in output.shares:
                shares.setdefault(share.values, deque()).append([number, share.entries])
        self.values = tuple(shares)
        self._shares = tuple(shares.values())

    @property
    def left(self) -> int:
        """Places that no entry has come for."""
        return sum(places for shares in self._shares for _, places in shares)

    def out(self, partitions: Sequence[int | None]) -> dict[int, list[int]]:
        """Which of some entries, by their places, go into which manifest; each is of a partition, by its number.

        Raises :class:`ProofFailed` for an entry that has no place.
        """
        dealt: dict[int, list[int]] = {}
        for place, partition in enumerate(partitions):
            shares = self._shares[partition] if partition is not None and self._shares else deque()
            if not shares:
                where = "an unplanned partition" if partition is None else self.values[partition : partition + 1]
                raise ProofFailed(f"an entry of {where} has no place in any new manifest")
            share = shares[0]
            dealt.setdefault(share[0], []).append(place)
            share[1] -= 1
            if not share[1]:
                shares.popleft()
        return dealt
