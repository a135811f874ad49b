"""The properties port over PyIceberg's libraries, see :mod:`icewright.catalogs.pointers.table_commits`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from icewright.catalogs.pointers.next_metadata import with_properties
from icewright.catalogs.pointers.pointers import Pointed
from icewright.catalogs.pointers.rest_commits import RestCommits, property_updates
from icewright.catalogs.pointers.table_commits import TRIES_MAX, checked, commits_of, prepared
from icewright.core import wording
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, IcewrightError, OutcomeUnknown, Unavailable, Unsupported
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.iceberg.writer_settings import encryption_property


class PyIcebergProperties:
    """Changes properties of the tables of one catalog. A metadata file that lost its race is left where it is."""

    def __init__(self, entry: CatalogEntry, clock: Clock) -> None:
        """Raises :class:`~icewright.core.errors.InvalidConfiguration` for an entry that cannot be used."""
        entry.check()
        self._commits = commits_of(entry)
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
        now = checked(seen.name, seen.table_id, pointed)
        if all(now.properties.get(key) == text for key, text in changes.items()):
            return True
        encryption = encryption_property(now.properties)
        if encryption is not None:
            raise Unsupported(f"table {seen.name} is encrypted", hint="change its properties by ALTER TABLE in Spark")
        for key in changes:
            before, found = seen.properties.get(key), now.properties.get(key)
            if before != found:
                value = "removed" if found is None else f"set to {wording.quoted(found)}"
                raise Conflict(f"another client has {value} {key} of table {seen.name}", hint="look again, then decide")
        return False

    def _prepared(
        self, table: TableMetadata, pointed: Pointed, changes: Mapping[str, str | None]
    ) -> Callable[[], bool]:
        """One try, which is False when another commit came first; ``Unavailable`` out of it may be a commit, too."""
        commits = self._commits
        if isinstance(commits, RestCommits):
            return partial(commits.commit, table.name, table.table_id.uuid, property_updates(changes))
        changed = with_properties(pointed.metadata, changes)
        return prepared(commits, table.name, pointed, changed, changes, self._clock.now())

    def _look(self, table: TableMetadata, changes: Mapping[str, str | None], error: Unavailable) -> None:
        """Look whether an unanswered commit was made. Raises ``OutcomeUnknown`` when the table does not tell."""
        hint = "look with `icewright policy show`; the same change may be asked for again"
        try:
            if self._is_done(table, self._commits.load(table.name), changes):
                return
        except IcewrightError as second:
            raise OutcomeUnknown(f"{error.message}; then: {second.message}", hint=hint) from error
        raise OutcomeUnknown(
            f"it is unknown whether table {table.name} was changed: {error.message}", hint=hint
        ) from error
