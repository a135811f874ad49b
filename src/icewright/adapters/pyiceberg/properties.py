"""The properties port over PyIceberg's libraries: a new metadata file and a moved pointer, or a REST catalog's commit.

PyIceberg's own commits are not used: they drop what their models do not know, cannot write tables of version 3, and
open files by what the table's properties say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from uuid import uuid4

from icewright.adapters.pyiceberg.commits import HiveCommits, SqlCommits
from icewright.adapters.pyiceberg.metadata import parse_metadata
from icewright.adapters.pyiceberg.next_metadata import content, next_location, next_metadata
from icewright.adapters.pyiceberg.pointers import Pointed
from icewright.adapters.pyiceberg.rest_commits import RestCommits
from icewright.adapters.pyiceberg.translate import reading
from icewright.domain.catalogs import CatalogEntry, CatalogKind
from icewright.domain.errors import Conflict, IcewrightError, TableReplaced, Unavailable, Unknown, Unsupported
from icewright.domain.tables import TableMetadata
from icewright.domain.writer_settings import encryption_property
from icewright.planning import wording
from icewright.ports.clock import Clock

TRIES_MAX: Final = 10
"""Commits of others that may come first before the owner is told to try again."""


class PyIcebergProperties:
    """Changes properties of the tables of one catalog. A metadata file that lost its race is left where it is."""

    def __init__(self, entry: CatalogEntry, clock: Clock) -> None:
        """Raises :class:`~icewright.domain.errors.InvalidConfiguration` for an entry that cannot be used."""
        entry.check()
        self._commits = _commits(entry)
        self._clock = clock

    def change(self, table: TableMetadata, changes: Mapping[str, str | None]) -> None:
        """Set properties, and remove those whose value is None, in one commit of metadata alone."""
        for _ in range(TRIES_MAX):
            pointed = self._commits.load(table.name)
            if self._is_done(table, pointed, changes):
                return
            commit = self._prepared(table, pointed, changes)
            try:
                if commit():
                    return
            except Unavailable as error:
                self._look(table, changes, error)
                return
        raise Conflict(f"table {table.name} is committed to all the time", hint="try again in a moment")

    def _is_done(self, seen: TableMetadata, pointed: Pointed, changes: Mapping[str, str | None]) -> bool:
        """Whether all is as wanted. Raises what forbids the change."""
        with reading(f"metadata of table {seen.name} in {pointed.metadata_location}"):
            now = parse_metadata(pointed.metadata, name=seen.name, metadata_location=pointed.metadata_location)
        if now.table_id != seen.table_id:
            raise TableReplaced(f"{seen.name} is another table by now")
        if not now.has_uuid:
            raise Unsupported(f"table {seen.name} has no uuid", hint="any commit by a current writer gives it one")
        if all(now.properties.get(key) == text for key, text in changes.items()):
            return True
        encryption = encryption_property(now.properties)
        if encryption is not None:
            raise Unsupported(f"table {seen.name} is encrypted", hint="change its properties by ALTER TABLE in Spark")
        for key in changes:
            before, found = seen.properties.get(key), now.properties.get(key)
            if before != found:
                value = "removed" if found is None else f"set to {wording.quoted(found)}"
                raise Conflict(f"somebody else has {value} {key} of table {seen.name}", hint="look again, then decide")
        return False

    def _prepared(
        self, table: TableMetadata, pointed: Pointed, changes: Mapping[str, str | None]
    ) -> Callable[[], bool]:
        """One try, which is False when another commit came first; ``Unavailable`` out of it may be a commit, too."""
        commits = self._commits
        if isinstance(commits, RestCommits):
            return partial(commits.commit, table.name, table.table_id.uuid, changes)
        before = pointed.metadata_location
        metadata = next_metadata(pointed.metadata, before, changes, self._clock.now())
        after = next_location(before, metadata, str(uuid4()))
        file = commits.file_io(before).new_output(after)
        with reading(f"metadata of table {table.name} in {after}"), file.create(overwrite=False) as stream:
            stream.write(content(metadata))
        return partial(commits.move, table.name, before, after, changes)

    def _look(self, table: TableMetadata, changes: Mapping[str, str | None], error: Unavailable) -> None:
        """Look whether a commit that nobody answered for was made. Raises ``Unknown`` when the table does not tell."""
        hint = "look with `icewright policy show`; the same change may be asked for again"
        try:
            if self._is_done(table, self._commits.load(table.name), changes):
                return
        except IcewrightError as second:
            raise Unknown(f"{error.message}; then: {second.message}", hint=hint) from error
        raise Unknown(
            f"it cannot be told whether table {table.name} was changed: {error.message}", hint=hint
        ) from error


def _commits(entry: CatalogEntry) -> SqlCommits | HiveCommits | RestCommits:
    match entry.kind:
        case CatalogKind.SQL:
            return SqlCommits(entry)
        case CatalogKind.REST:
            return RestCommits(entry)
        case CatalogKind.HIVE:
            return HiveCommits(entry)
