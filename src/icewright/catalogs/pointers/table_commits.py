"""Commits of metadata alone to tables of one catalog: what changes of properties and of snapshots have in common.

A new metadata file and a moved pointer, or a REST catalog's commit. PyIceberg's own commits are not used: they drop
what their models do not know, cannot write tables of version 3, and open files by what the table's properties say.
A metadata file that lost its race is left where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import uuid4

from icewright.catalogs.metadata.metadata import parse_metadata
from icewright.catalogs.metadata.translated_errors import reading
from icewright.catalogs.pointers.next_metadata import content, next_location, next_metadata
from icewright.catalogs.pointers.pointers import Pointed, read_metadata
from icewright.catalogs.pointers.rest_commits import RestCommits
from icewright.catalogs.pointers.sql_pointers import SqlCommits
from icewright.catalogs.pointers.table_files import check_same
from icewright.core.errors import (
    Conflict,
    IcewrightError,
    NotAllowed,
    OutcomeUnknown,
    TableReplaced,
    Unavailable,
    Unsupported,
)
from icewright.core.times import Instant
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import TableMetadata

if TYPE_CHECKING:
    from icewright.catalogs.pointers.hive_commits import HiveCommits

TRIES_MAX: Final = 10
"""Commits of others that may come first before whoever asks is told to try again."""

ByFile: TypeAlias = "SqlCommits | HiveCommits"
"""Catalogs that leave writing the metadata file to their clients."""


def commits_of(entry: CatalogEntry) -> ByFile | RestCommits:
    """What commits to the tables of a catalog."""
    match entry.kind:
        case CatalogKind.SQL:
            return SqlCommits(entry)
        case CatalogKind.REST:
            return RestCommits(entry)
        case CatalogKind.HIVE:
            from icewright.catalogs.pointers.hive_commits import (  # noqa: PLC0415 - it takes a second of CPU to load
                HiveCommits,
            )

            return HiveCommits(entry)


def checked(name: TableName, table_id: TableId, pointed: Pointed) -> TableMetadata:
    """The table as it is. Raises ``TableReplaced``, and ``Unsupported`` for one that cannot be told from another."""
    with reading(f"metadata of table {name} in {pointed.metadata_location}"):
        now = parse_metadata(pointed.metadata, name=name, metadata_location=pointed.metadata_location)
    if now.table_id != table_id:
        raise TableReplaced(f"{name} is another table now")
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


def look(commits: ByFile | RestCommits, name: TableName, table_id: TableId) -> tuple[Pointed, TableMetadata]:
    """The table as it is now; of a REST catalog by the file as well, of which it may leave some out."""
    pointed = commits.load(name)
    now = checked(name, table_id, pointed)
    if isinstance(commits, RestCommits):
        check_same(now, state(commits, now, pointed.metadata_location))
    return pointed, now


def state(commits: ByFile | RestCommits, now: TableMetadata, location: str) -> TableMetadata:
    """The table as a metadata file has it. Raises ``Unreadable`` when it is not there any more."""
    pointed = read_metadata(commits.file_io(now.metadata_location), now.name, location)
    with reading(f"metadata of table {now.name} in {location}"):
        return parse_metadata(pointed.metadata, name=now.name, metadata_location=location)


def until_done(
    name: TableName,
    attempt: Callable[[], Callable[[], bool] | None],
    may_commit: Callable[[], None],
    is_done: Callable[[], bool],
) -> None:
    """Try until nobody else comes first; an answer that was lost is looked for and never asked for again.

    ``attempt`` looks at the table and gives what commits, None when nothing is left to do.
    """
    for _ in range(TRIES_MAX):
        commit = attempt()
        if commit is None:
            return
        may_commit()
        try:
            if commit():
                return
        except Unavailable as error:
            _look_for(name, is_done, error)
            return
        except NotAllowed:
            if not is_done():  # gateways answer 400 to what they have passed on
                raise
            return
    raise Conflict(f"table {name} is committed to all the time", hint="try again in a moment")


def _look_for(name: TableName, is_done: Callable[[], bool], error: Unavailable) -> None:
    """Look whether an unanswered commit was made. Raises ``OutcomeUnknown`` when the table does not tell."""
    hint = "nothing is done or cleaned up meanwhile; the table is looked at again"
    try:
        if is_done():
            return
    except IcewrightError as second:
        raise OutcomeUnknown(f"{error.message}; then: {second.message}", hint=hint) from error
    raise OutcomeUnknown(f"it is unknown whether table {name} was changed: {error.message}", hint=hint) from error
