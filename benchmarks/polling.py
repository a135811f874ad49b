"""The polling peer's process: ``python -m benchmarks.polling <catalog> <properties>``, told on its standard input.

Each line is what to do and with which table; each answer is ``ok`` and the rows that came out.
"""

from __future__ import annotations

import json
import sys

from pyiceberg.catalog.sql import SqlCatalog

from benchmarks.many_tables import NAMESPACE


def main(name: str, properties: str) -> None:
    """Answer until standard input ends."""
    catalog = SqlCatalog(name, **json.loads(properties))
    for line in sys.stdin:
        how, _, table_name = line.rstrip("\n").partition(" ")
        rows = 0 if how == "ready" else _inspect(catalog, how, table_name)
        print(f"ok {rows}", flush=True)


def _inspect(catalog: SqlCatalog, how: str, table_name: str) -> int:
    table = catalog.load_table((NAMESPACE, table_name))
    match how:
        case "load":
            return len(table.metadata.snapshots)
        case "partitions":
            return int(table.inspect.partitions().num_rows)
        case "files":
            return int(table.inspect.files().num_rows)
        case _:
            raise ValueError(f"what is {how!r}?")


if __name__ == "__main__":
    main(*sys.argv[1:])
