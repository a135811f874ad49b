"""What a table needs of some paths, now: all its metadata is read anew whenever it has changed, and never trusted half.

The answer is the same for the same metadata file, which nobody changes. So it is kept for as long as the table's
pointer stays where it was, and carrying out a plan in batches reads the manifests once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from icewright.domain.deletion import Needs
from icewright.domain.knowledge import Complete, Gaps, Known, Partial
from icewright.domain.locations import Aliases, CanonicalPath
from icewright.domain.names import TableName
from icewright.domain.tables import TableMetadata
from icewright.planning.keepers import keepers
from icewright.ports.spool import OpenSpool
from icewright.ports.table_files import TableFiles
from icewright.services.reachable import Reachable, reachable


class NeedsOf(Protocol):
    """Asked right before files go, and right after."""

    def __call__(self, name: TableName, paths: Iterable[CanonicalPath]) -> Known[Needs]:
        """What the table of that name needs of these paths.

        Raises ``NotFound`` and ``Unavailable`` as :meth:`~icewright.ports.table_files.TableFiles.roots` does.
        """
        ...


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
            lambda metadata: keepers(metadata, (), 0),
            self._open_spool,
            aliases=self._aliases,
            progress=lambda _step, _done, _total: None,
        ) as known:
            if isinstance(known, Partial):
                return Partial(_needs(known.found.metadata, frozenset(), frozenset(), 0), known.gaps, known.gaps_count)
            return Gaps().judge(_counted(known.value, asked))


def _counted(found: Reachable, asked: frozenset[CanonicalPath]) -> Needs:
    """One pass over all files. A size that nobody knows counts as none, so that the budget is the smaller one."""
    needed: set[CanonicalPath] = set()
    table_bytes = 0
    for file in found.files():
        table_bytes += file.size_bytes or 0
        if file.path in asked:
            needed.add(file.path)
    return _needs(found.metadata, asked, frozenset(needed), table_bytes)


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
