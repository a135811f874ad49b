"""Commits of metadata alone to tables of one catalog: what changes of properties and of snapshots have in common.

A new metadata file and a moved pointer, or a REST catalog's commit. PyIceberg's own commits are not used: they drop
what their models do not know, cannot write tables of version 3, and open files by what the table's properties say.
A metadata file that lost its race is left where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import uuid4

from icewright.adapters.pyiceberg.commits import HiveCommits, SqlCommits
from icewright.adapters.pyiceberg.metadata import parse_metadata
from icewright.adapters.pyiceberg.next_metadata import content, next_location, next_metadata
from icewright.adapters.pyiceberg.pointers import Pointed
from icewright.adapters.pyiceberg.rest_commits import RestCommits
from icewright.adapters.pyiceberg.translate import reading
from icewright.domain.catalogs import CatalogEntry, CatalogKind
from icewright.domain.errors import TableReplaced, Unsupported
from icewright.domain.names import TableId, TableName
from icewright.domain.tables import Instant, TableMetadata

TRIES_MAX: Final = 10
"""Commits of others that may come first before whoever asks is told to try again."""

ByFile: TypeAlias = SqlCommits | HiveCommits
"""Catalogs that leave writing the metadata file to their clients."""


def commits_of(entry: CatalogEntry) -> ByFile | RestCommits:
    """What commits to the tables of a catalog."""
    match entry.kind:
        case CatalogKind.SQL:
            return SqlCommits(entry)
        case CatalogKind.REST:
            return RestCommits(entry)
        case CatalogKind.HIVE:
            return HiveCommits(entry)


def checked(name: TableName, table_id: TableId, pointed: Pointed) -> TableMetadata:
    """The table as it is. Raises ``TableReplaced``, and ``Unsupported`` for one that cannot be told from another."""
    with reading(f"metadata of table {name} in {pointed.metadata_location}"):
        now = parse_metadata(pointed.metadata, name=name, metadata_location=pointed.metadata_location)
    if now.table_id != table_id:
        raise TableReplaced(f"{name} is another table by now")
    if not now.has_uuid:
        raise Unsupported(f"table {name} has no uuid", hint="any commit by a current writer gives it one")
    return now


def prepared(
    commits: ByFile,
    name: TableName,
    pointed: Pointed,
    changed: Mapping[str, Any],
    parameters: Mapping[str, str | None],
    now: Instant,
) -> Callable[[], bool]:
    """Write the next metadata file; what is returned moves the pointer, and is False when another commit came first.

    ``parameters`` are what a metastore keeps beside the pointer as a copy. ``Unavailable`` out of the move may be a
    commit, too.
    """
    before = pointed.metadata_location
    metadata = next_metadata(pointed.metadata, changed, before, now)
    after = next_location(before, metadata, str(uuid4()))
    file = commits.file_io(before).new_output(after)
    with reading(f"metadata of table {name} in {after}"), file.create(overwrite=False) as stream:
        stream.write(content(metadata))
    return partial(commits.move, name, before, after, parameters)
