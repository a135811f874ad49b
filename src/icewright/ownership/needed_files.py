"""What a table needs of some paths, now: all its metadata is read anew whenever it has changed, and never trusted half.

The answer is the same for the same metadata file, which nobody changes. So it is kept for as long as the table's
pointer stays where it was, and carrying out a plan in batches reads the manifests once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from icewright.catalogs.local_spool import OpenSpool
from icewright.catalogs.table_files_port import TableFiles
from icewright.core.completeness import Complete, Gap, Gaps, Known, Partial
from icewright.core.errors import NotFound
from icewright.core.reasons import Reason
from icewright.inventory.reference_bits import reference_bits
from icewright.model.actions.deletion import Needs
from icewright.model.iceberg.locations import Aliases, CanonicalPath, topmost
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.path_aliasing import comparison_key
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.reachable import Reachable, reachable


class NeedsOf(Protocol):
    """Asked right before files go, and right after."""

    def __call__(self, name: TableName, paths: Iterable[CanonicalPath]) -> Known[Needs]:
        """What the table of that name needs of these paths.

        Raises ``NotFound`` and ``Unavailable`` as :meth:`~icewright.catalogs.table_files_port.TableFiles.roots` does.
        """


class TableNeeds:
    """Answers for the tables of one catalog. Keeps the last complete answer; for one thread."""

    def __init__(self, files: TableFiles, open_spool: OpenSpool, aliases: Aliases) -> None:
        self._files, self._open_spool, self._aliases = files, open_spool, aliases
        self._kept: tuple[TableName, Complete[Needs]] | None = None

    def __call__(self, name: TableName, paths: Iterable[CanonicalPath]) -> Known[Needs]:
        """See the protocol."""
        asked = frozenset(paths)
        if self._kept is not None and self._kept[0] == name:
            kept = self._kept[1]
            metadata = self._files.roots(name).metadata
            unchanged = (metadata.table_id, metadata.metadata_location) == (
                kept.value.table_id,
                kept.value.metadata_location,
            )
            if unchanged and asked <= kept.value.asked:
                return kept
        self._kept = None
        found = self._read(name, asked)
        if isinstance(found, Complete):
            self._kept = name, found
        return found

    def _read(self, name: TableName, asked: frozenset[CanonicalPath]) -> Known[Needs]:
        with reachable(
            self._files,
            name,
            lambda metadata: reference_bits(metadata, (), 0),
            self._open_spool,
            aliases=self._aliases,
            progress=lambda _step, _done, _total: None,
        ) as known:
            if isinstance(known, Partial):
                return Partial(_needs(known.found.metadata, frozenset(), frozenset(), 0), known.gaps, known.gaps_count)
            return Gaps().judge(_counted(known.value, asked))


class UsersNow(Protocol):
    """See :meth:`icewright.ownership.registry.Registry.users_now`."""

    def __call__(self, uuid: str, folders: Collection[str]) -> Known[frozenset[TableName]]:
        """Which tables have this uuid, or a place or files where these folders are."""


class OtherTables:
    """What all other tables of all catalogs need of some paths, exactly. For one thread.

    Tables are told by the places of all their snapshots; those that have one where the paths are get read in full.
    """

    def __init__(self, users_now: UsersNow, needs: Mapping[str, NeedsOf]) -> None:
        """``needs`` are by the names of their catalogs."""
        self._users_now, self._needs = users_now, dict(needs)

    def __call__(self, name: TableName, paths: Sequence[CanonicalPath]) -> Known[Mapping[CanonicalPath, TableName]]:
        """Which of these paths a table other than ``name`` needs, and which table.

        Complete only where all tables are known. Raises ``Unavailable`` where store or catalog stop answering.
        """
        known, gaps = self._users_now("", topmost({f"{path.rpartition('/')[0]}/" for path in paths})), Gaps()
        if isinstance(known, Partial):
            for gap in known.gaps:
                gaps.add(gap)
        found: dict[CanonicalPath, TableName] = {}
        for other in sorted((known.found if isinstance(known, Partial) else known.value) - {name}):
            needs = self._needs.get(other.catalog)
            if needs is None:
                gaps.add(Gap(str(other), Reason("not-configured", "what it needs cannot be read: no such catalog")))
                continue
            try:
                theirs = needs(other, paths)
            except NotFound:
                continue
            if isinstance(theirs, Partial):
                for gap in theirs.gaps:
                    gaps.add(Gap(str(other), gap.reason))
                continue
            found.update(dict.fromkeys(theirs.value.needed & frozenset(paths), other))
        return gaps.judge(found)


def _counted(found: Reachable, asked: frozenset[CanonicalPath]) -> Needs:
    """One pass over all files. A size that nobody knows counts as none, so that the budget is the smaller one.

    A path counts as needed where it may be another spelling of a needed one: a table may know one object by two names
    of its storage, or by two spellings.
    """
    wanted, met = {comparison_key(path) for path in asked}, set[str]()
    table_bytes = 0
    for file in found.files():
        table_bytes += file.size_bytes or 0
        if wanted and (key := comparison_key(file.path)) in wanted:
            met.add(key)
    needed = frozenset(path for path in asked if comparison_key(path) in met) if met else frozenset[CanonicalPath]()
    return _needs(found.metadata, asked, needed, table_bytes)


def _needs(
    metadata: TableMetadata, asked: frozenset[CanonicalPath], needed: frozenset[CanonicalPath], table_bytes: int
) -> Needs:
    return Needs(
        table_id=metadata.table_id,
        metadata_location=metadata.metadata_location,
        collects_garbage=metadata.collects_garbage,
        table_bytes=table_bytes,
        asked=asked,
        needed=needed,
    )
