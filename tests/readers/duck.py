"""DuckDB: a reader of Iceberg tables that we did not write. Its extensions are packages; nothing is downloaded."""

from __future__ import annotations

from importlib.metadata import files

import duckdb


def duckdb_with_iceberg() -> duckdb.DuckDBPyConnection:
    """A connection that can ``iceberg_scan('<metadata file>')``."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    for package in ("duckdb-ext-avro", "duckdb-ext-iceberg"):
        paths = [str(file.locate()) for file in files(package) or () if str(file).endswith(".duckdb_extension")]
        (path,) = paths
        connection.execute("LOAD '{}'".format(path.replace("'", "''")))
    return connection
