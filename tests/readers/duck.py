"""DuckDB: a reader of Iceberg tables that we did not write. Its extensions are packages; nothing is downloaded."""

from __future__ import annotations

from functools import cache
from importlib.metadata import files

import duckdb


def duckdb_with_iceberg() -> duckdb.DuckDBPyConnection:
    """A connection that can ``iceberg_scan('<metadata file>')``."""
    return _instance().cursor()


@cache
def _instance() -> duckdb.DuckDBPyConnection:
    """One for the process, since to load the extensions takes a third of a second; it keeps nothing of any file."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "enable_external_file_cache": "false"})
    for package in ("duckdb-ext-avro", "duckdb-ext-iceberg"):
        paths = [str(file.locate()) for file in files(package) or () if str(file).endswith(".duckdb_extension")]
        (path,) = paths
        connection.execute("LOAD '{}'".format(path.replace("'", "''")))
    return connection
