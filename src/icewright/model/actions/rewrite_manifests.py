"""Rewriting manifests: the action, what lists show of it, and what it would bring.

Metadata alone: live entries move to other manifests as they are, and no data or delete file is touched. What the table
holds is the same before and after; what changes is how many manifests a reader has to open.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, Literal

from icewright.model.actions.traits import ON_MAIN, ActionTraits, TableSlot
from icewright.model.iceberg.files import Partition

ENTRIES_MAX: Final = 100_000
"""The most live entries that one action moves: half a minute of one core, and less for the server to verify it. What is
left over is for the next one."""

ONE_MANIFEST_ENTRIES_MAX: Final = 500_000
"""The most that it moves where all of them are in one manifest, which nobody can take a part of."""

OUTPUTS_MAX: Final = 200
"""The most manifests of one class that an action writes: they are all open at once; the classes take turns."""

SHARES_MAX: Final = 50_000
"""The most shares that one action names, some 4 MB of JSON."""


class ManifestContent(StrEnum):
    """What the files in a manifest are, in the spec's words; never both."""

    DATA = "data"
    DELETES = "deletes"


class ManifestCause(StrEnum):
    """Why manifests are worth rewriting."""

    OVERSIZED = "oversized"
    """One commit put more into one manifest than the target size."""
    MANY_SMALL = "many-small"
    """Frequent writes left many small manifests."""
    SPREAD = "spread"
    """The files of one partition are in more manifests than they need."""


@dataclass(frozen=True, slots=True, order=True)
class ManifestClass:
    """Manifests of one spec and one content: entries never leave their class."""

    spec_id: int
    content: ManifestContent


@dataclass(frozen=True, slots=True)
class InputManifest:
    """A manifest to be replaced, with what must be found when it is read.

    ``entries`` are the live ones, which move; ``removed_entries`` are marked as deleted and left out, as the next
    commit that touches the manifest would do (spec, "Manifest Entry Fields").
    """

    path: str
    size_bytes: int
    added_snapshot_id: int
    belongs_to: ManifestClass
    entries: int
    removed_entries: int


@dataclass(frozen=True, slots=True)
class Share:
    """So many entries of one partition. ``values`` as in :class:`~icewright.model.iceberg.files.Partition`."""

    values: str
    entries: int


@dataclass(frozen=True, slots=True)
class OutputManifest:
    """A manifest to be written: shares of partitions, in the order of their values.

    The entries of a partition go into the manifests that have a share of it in the order of these, as many as each
    share says; they come in the order of the manifests to be replaced, and of the entries within each.
    """

    belongs_to: ManifestClass
    shares: tuple[Share, ...]

    @property
    def entries(self) -> int:
        """Entries in it, all of them live."""
        return sum(share.entries for share in self.shares)


@dataclass(frozen=True, slots=True)
class RewriteManifestsFigures:
    """What lists show of the action: everything but its manifests and partitions."""

    kind: ClassVar[Literal["rewrite_manifests"]] = "rewrite_manifests"
    base_snapshot_id: int
    causes: tuple[ManifestCause, ...]
    manifests_replaced: int
    manifests_written: int
    entries: int
    removed_entries: int
    input_bytes: int
    target_size_bytes: int


@dataclass(frozen=True, slots=True)
class RewriteManifests:
    """Replace these manifests by others with the same live entries, in one commit.

    Every entry keeps its file, partition, snapshot id, both sequence numbers and row ids. All other manifests stay, and
    so does everything that is committed meanwhile; a manifest to be replaced that is gone by then refuses the whole
    action. ``outputs`` of one class are in the order of their partitions' values, by the fields of the spec. Files per
    partition, rows and deletes are the same before and after.
    """

    kind: ClassVar[Literal["rewrite_manifests"]] = "rewrite_manifests"
    base_snapshot_id: int
    causes: tuple[ManifestCause, ...]
    manifests: tuple[InputManifest, ...]
    outputs: tuple[OutputManifest, ...]
    target_size_bytes: int

    @property
    def entries(self) -> int:
        """Entries that move."""
        return sum(manifest.entries for manifest in self.manifests)

    @property
    def input_bytes(self) -> int:
        """Bytes of the manifests to be replaced."""
        return sum(manifest.size_bytes for manifest in self.manifests)

    @property
    def partitions(self) -> frozenset[Partition]:
        """The partitions whose entries move."""
        return frozenset(Partition(out.belongs_to.spec_id, s.values) for out in self.outputs for s in out.shares)

    @property
    def figures(self) -> RewriteManifestsFigures:
        """The action without its manifests and partitions."""
        return RewriteManifestsFigures(
            base_snapshot_id=self.base_snapshot_id,
            causes=self.causes,
            manifests_replaced=len(self.manifests),
            manifests_written=len(self.outputs),
            entries=self.entries,
            removed_entries=sum(manifest.removed_entries for manifest in self.manifests),
            input_bytes=self.input_bytes,
            target_size_bytes=self.target_size_bytes,
        )


@dataclass(frozen=True, slots=True)
class Opened:
    """How many manifests of one class a query for one partition opens, by the bounds that manifest lists have.

    Of ``partitions`` of the class's live partitions; where there are too many to look at each, of so many of them,
    evenly spaced.
    """

    belongs_to: ManifestClass
    partitions: int
    worst_before: int
    worst_after: int
    mean_before: float
    mean_after: float


@dataclass(frozen=True, slots=True)
class RewriteManifestsPrediction:
    """What carrying out the action would bring, over the whole table.

    Exact but for ``bytes_after``, which supposes that entries stay as long as they are. ``opened`` has each class of
    the action, ``call`` is the Spark statement that comes nearest.
    """

    kind: ClassVar[Literal["rewrite_manifests"]] = "rewrite_manifests"
    manifests_before: int
    manifests_after: int
    bytes_before: int
    bytes_after: int
    entries: int
    opened: tuple[Opened, ...]
    call: str


@dataclass(frozen=True, slots=True)
class RewriteManifestsRequest:
    """Rewrite the manifests of a table, where that would help."""

    kind: ClassVar[Literal["rewrite_manifests"]] = "rewrite_manifests"


TRAITS: Final = ActionTraits(
    RewriteManifests,
    RewriteManifestsFigures,
    RewriteManifestsPrediction,
    names=lambda action: len(action.manifests) + sum(len(output.shares) for output in action.outputs),
    asked=RewriteManifestsRequest,
    slot=TableSlot.DATA,
    settings=ON_MAIN
    | {"manifest_target_size_bytes", "manifest_min_count", "manifest_merge", "rewrite_manifests_min_gain"}
    | {"max_task_time_ratio", "write_window_ms"},
)
