"""An Iceberg REST catalog of the tests' own: Iceberg's test fixture, over a catalog on SQLite and local files.

It asks for no password and listens on all interfaces: for tests alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers.java import SPARK_JARS, java, resolve
from tests.servers.processes import HOST, accepts, free_port, running

NEEDS = Path(__file__).with_name("rest_catalog.ivy.xml")


@dataclass(frozen=True)
class RestCatalogServer:
    """A running catalog. All its tests share its namespaces."""

    port: int
    warehouse: Path
    database: Path

    @property
    def uri(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.port}"

    def forget(self) -> None:
        """Forget all namespaces and tables; their files stay."""
        with closing(sqlite3.connect(self.database, timeout=30)) as connection, connection:
            for table in ("iceberg_tables", "iceberg_namespace_properties"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - the two names above


@contextmanager
def rest_catalog_server(folder: Path) -> Iterator[RestCatalogServer]:
    """A catalog without namespaces."""
    port, warehouse, database = free_port(), folder / "warehouse", folder / "catalog.db"
    warehouse.mkdir()
    environ = {
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{database}?busy_timeout=30000",
        "CATALOG_JDBC_SCHEMA__VERSION": "V1",
        "CATALOG_WAREHOUSE": warehouse.as_uri(),
        "CATALOG_REST_PORT": str(port),
    }
    command = java("-cp", f"{resolve(NEEDS)}:{SPARK_JARS}/*", "org.apache.iceberg.rest.RESTCatalogServer")
    with running(command, log=folder / "rest.log", ready=lambda: accepts(port), environ=environ):
        yield RestCatalogServer(port, warehouse, database)
