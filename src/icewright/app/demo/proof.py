"""Whether the demo kept its word, found out without icewright: bytes are read, paths are looked for.

``count(*)`` would be answered from metadata; so every row is read back and compared with the source, and every file
that any snapshot can reach is looked for on disk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from icewright.app.demo import flights_writer
from icewright.app.demo.folder import DemoFolder
from icewright.domain.tables import PROOF_KEY, TASK_ID_KEY


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was promised, whether it held, and what was found."""

    promise: str
    held: bool
    found: str


def check_promises(folder: DemoFolder, days: int) -> list[Check]:
    """Check all promises of a demo whose writer wrote ``days`` days."""
    entry = folder.entry
    catalog = SqlCatalog(entry.name, **entry.pyiceberg_properties())
    flights, weather = catalog.load_table(flights_writer.FLIGHTS), catalog.load_table(flights_writer.WEATHER)
    source = flights_writer.read_flights()
    written = pa.concat_tables(day for number, day in enumerate(flights_writer.by_day(source)) if number < days)
    return [
        _rows_equal(flights, written, "every flight is there, once, unchanged"),
        _rows_equal(weather, flights_writer.read_weather(), "the good table has its rows"),
        _files_fewer(flights),
        _all_signed(flights),
        _untouched(weather),
        _all_reachable((flights, weather)),
    ]


def _rows_equal(table: Table, expected: pa.Table, promise: str) -> Check:
    found = table.scan().to_arrow()
    same = _sorted(found, found.schema).equals(_sorted(expected, found.schema))
    return Check(promise, same, f"{found.num_rows:,} rows read, {expected.num_rows:,} in the source")


def _sorted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    aligned = rows.select(schema.names).cast(schema)
    order = pc.sort_indices(aligned, sort_keys=[(name, "ascending") for name in schema.names])
    return aligned.take(order).combine_chunks()


def _files_fewer(table: Table) -> Check:
    added = [s.summary for s in table.metadata.snapshots if s.summary and s.summary.operation.value == "append"]
    committed = sum(int(summary["added-data-files"] or 0) for summary in added)
    live = table.inspect.data_files().num_rows
    return Check("there are fewer files", live < committed, f"{committed:,} files were committed, {live:,} are live")


def _all_signed(table: Table) -> Check:
    replaced = [s for s in table.metadata.snapshots if s.summary and s.summary.operation.value == "replace"]
    signed = [s for s in replaced if s.summary and s.summary[TASK_ID_KEY] and s.summary[PROOF_KEY]]
    held = len(signed) == len(replaced) > 0
    return Check("every rewrite carries its proof", held, f"{len(signed)} of {len(replaced)} rewrites")


def _untouched(table: Table) -> Check:
    commits = len(table.metadata.snapshots)
    return Check("the good table was left alone", commits == 1, f"{commits} commit")


def _all_reachable(tables: tuple[Table, ...]) -> Check:
    paths = {path for table in tables for path in _reachable(table)}
    missing = sorted(path for path in paths if not os.path.exists(_local(path)))  # noqa: PTH110 - thousands of strings
    found = f"{len(paths):,} reachable paths, {len(missing)} missing" + "".join(f"\n  {path}" for path in missing[:5])
    return Check("every reachable file exists", not missing, found)


def _reachable(table: Table) -> set[str]:
    paths = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    manifests = {}
    for snapshot in table.metadata.snapshots:
        paths.add(snapshot.manifest_list)
        manifests.update({manifest.manifest_path: manifest for manifest in snapshot.manifests(table.io)})
    for path, manifest in manifests.items():
        paths.add(path)
        paths.update(entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))
    return paths


def _local(path: str) -> str:
    return path.removeprefix("file://").removeprefix("file:")
