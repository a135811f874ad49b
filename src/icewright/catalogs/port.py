"""The catalog port: what tables there are, what each is, and what its manifests say. Read-only."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from icewright.core.times import Instant
from icewright.model.iceberg.files import DataFile, DeleteFile, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Snapshot, SortField, TableMetadata


@dataclass(frozen=True, slots=True)
class TablePointers:
    """What a catalog shows at one time: the pointers of ``tables``, None for one of which it cannot tell.

    ``others`` are the folders, as spelled, of its tables of other formats.
    """

    tables: Mapping[TableName, str | None]
    others: Mapping[TableName, Sequence[str]] = field(default_factory=dict)


class Catalog(Protocol):
    """One catalog and the metadata of its tables.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the catalog or the storage does not answer,
    and :class:`~icewright.core.errors.Unreadable` when the metadata of the one table is damaged or missing.
    """

    @property
    def name(self) -> str:
        """The catalog's name in the configuration."""

    @property
    def takes_snapshots_back(self) -> bool:
        """Whether snapshots that expired can be put back into the metadata of its tables."""

    def tables(self) -> Iterator[TableName]:
        """The names of all tables, in all namespaces at any depth, in no particular order."""

    @property
    def has_other_formats(self) -> bool:
        """Whether tables of other formats may be in the catalog as well."""

    @property
    def lists_pointers(self) -> bool:
        """Whether :meth:`pointers` asks for many tables at once, and not for each."""

    def pointers(self) -> TablePointers:
        """Where the pointers of all tables are now, by as few questions as the catalog allows.

        None for a table of which the catalog cannot tell. Tables of other catalogs may be among them that are not
        configured and kept in the same place, under names of catalogs of their own; :meth:`load` gives these as well.
        Raises ``Unavailable`` or ``Unreadable`` where not all can be asked, or not all is shown.
        """

    def load(self, name: TableName) -> TableMetadata:
        """The table as it is now, uncached.

        Raises :class:`~icewright.core.errors.NotFound`, and :class:`~icewright.core.errors.Unsupported` for
        metadata that cannot be understood (a newer format version, a type without a reader).
        """

    def earlier(self, table: TableMetadata, metadata_location: str) -> TableMetadata:
        """The table as an earlier metadata file of its log has it; writers may delete these: raises ``Unreadable``."""

    def metadata_location(self, name: TableName) -> str:
        """Where the catalog's pointer is now: the cheap question whether a table changed. Raises ``NotFound``."""

    def manifests(self, table: TableMetadata, snapshot: Snapshot) -> Sequence[ManifestKey]:
        """The keys of all manifests (data and delete) of a snapshot: one read of its manifest list."""

    def summarize(
        self,
        table: TableMetadata,
        snapshot: Snapshot,
        keys: Sequence[ManifestKey],
        runs: AbstractSet[int] = frozenset(),
    ) -> Iterator[ManifestSummary]:
        """Read some manifests of a snapshot, one after the other, and sum each up per partition.

        ``runs`` are the snapshots whose files make a run, to be counted by themselves as well.
        """

    def data_files(
        self,
        table: TableMetadata,
        snapshot: Snapshot,
        keys: Sequence[ManifestKey],
        partitions: frozenset[Partition],
        fields: Sequence[SortField] = (),
    ) -> Iterator[DataFile]:
        """The live data files of some partitions, read from those manifests one after the other.

        With their spans of ``fields``.
        """

    def delete_files(
        self, table: TableMetadata, snapshot: Snapshot, keys: Sequence[ManifestKey], partitions: frozenset[Partition]
    ) -> Iterator[DeleteFile]:
        """The live delete files that may apply to data files of some partitions, as :meth:`data_files`.

        Those of the partitions themselves, and equality deletes of an unpartitioned spec, which apply everywhere
        (spec, "Scan Planning").
        """

    def first_written_at(self, table: TableMetadata, snapshot: Snapshot) -> Instant | None:
        """When the storage first saw one of the files that this snapshot added, None when it cannot tell.

        The span to the snapshot's commit is a lower bound of how long its writer ran. Looks at a handful of files.
        """
