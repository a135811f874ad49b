"""Places on this machine that no table may have for its own: the server's own files, and the databases of catalogs.

Whoever may say where a table lies could have its token, or its store, be taken for garbage of that table.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from icewright.config.model import Config
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.sql_urls import sqlite_paths


def own_places(config: Config, entries: Iterable[CatalogEntry]) -> tuple[str, ...]:
    """The state directory, the configuration, and databases that are files: as written, and where links lead."""
    urls = (config.server.store_url, *(entry.uri for entry in entries))
    files = [config.server.state_dir, *(Path(path) for url in urls for path in sqlite_paths(url))]
    if config.path is not None:
        files.append(config.path)
    return tuple(sorted({str(path) for file in files for path in (file.absolute(), file.resolve())}))
