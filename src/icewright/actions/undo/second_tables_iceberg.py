"""The port of second tables over a REST catalog, which registers the metadata file that it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from icewright.catalogs.metadata.metadata import parse_metadata
from icewright.catalogs.metadata.referenced_files import parse_roots
from icewright.catalogs.metadata.translated_errors import reading
from icewright.catalogs.pointers.pointers import read_metadata
from icewright.catalogs.pointers.rest_commits import RestCommits, property_updates
from icewright.catalogs.pointers.table_commits import checked, until_done
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.reachable_files import Roots
from icewright.model.iceberg.tables import TableMetadata


class PyIcebergSecondTables:
    """Registers tables beside those of one REST catalog."""

    def __init__(self, entry: CatalogEntry) -> None:
        """Raises :class:`~icewright.core.errors.InvalidConfiguration` for an entry that cannot be used."""
        entry.check()
        self._commits = RestCommits(entry)

    def read(self, table: TableMetadata, metadata_location: str) -> Roots:
        """The table as an earlier metadata file of its has it."""
        io = self._commits.file_io(self._commits.load(table.name).metadata_location)
        found = read_metadata(io, table.name, metadata_location)
        with reading(f"metadata of table {table.name} in {metadata_location}"):
            metadata = parse_metadata(found.metadata, name=table.name, metadata_location=metadata_location)
            return parse_roots(found.metadata, metadata)

    def register(self, name: TableName, metadata_location: str) -> None:
        """Register a metadata file as a table."""
        self._commits.register(name, metadata_location)

    def say(self, name: TableName, table_id: TableId, properties: Mapping[str, str]) -> None:
        """Set properties of a table."""

        def is_said() -> bool:
            now = checked(name, table_id, self._commits.load(name))
            return all(now.properties.get(key) == text for key, text in properties.items())

        def attempt() -> Callable[[], bool] | None:
            if is_said():
                return None
            return partial(self._commits.commit, name, table_id.uuid, property_updates(properties))

        until_done(name, attempt, lambda: None, is_said)
