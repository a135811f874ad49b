"""Whether the demo kept its word, found out without icewright: bytes are read, paths are looked for.

``count(*)`` would be answered from metadata; so every row is read back and compared with the source, and every file
that any snapshot can reach is looked for on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from icewright.demo import flights_writer
from icewright.demo.folder import DemoFolder
from icewright.model.iceberg.tables import PROOF_KEY, TASK_ID_KEY

OBSERVATIONS = "nyc.observations"
"""The table of format version 2 that the Spark writer deletes rows of: position deletes."""
PLANES = "nyc.planes"
"""The one of format version 3: deletion vectors."""
TABLES = (flights_writer.FLIGHTS, flights_writer.WEATHER, flights_writer.DELAYS, OBSERVATIONS, PLANES)
"""All tables of the demo, without the catalog's name."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was promised, whether it held, and what was found."""

    promise: str
    held: bool
    found: str


def check_promises(folder: DemoFolder, days: int, has_decided: Callable[[], bool]) -> list[Check]:
    """Check all promises of a demo whose writer wrote ``days`` days.

    ``has_decided`` says whether a person let the plan go by now: asked after the tables were read, since somebody may
    decide in the same moment.
    """
    entry = folder.entry
    catalog = SqlCatalog(entry.name, **entry.pyiceberg_properties())
    flights, weather, delays, observations, planes = (catalog.load_table(name) for name in TABLES)
    is_decided = has_decided()
    source = flights_writer.read_flights()
    written = pa.concat_tables(day for number, day in enumerate(flights_writer.by_day(source)) if number < days)
    return [
        _rows_equal(flights, written, "every flight is there, once, unchanged"),
        _rows_equal(weather, flights_writer.read_weather(), "the good table has its rows"),
        _rows_equal(observations, _observations_left(), "rows deleted by position stay deleted, the others are there"),
        _rows_equal(planes, _planes_left(), "rows deleted by deletion vectors stay deleted, the others are there"),
        _files_fewer(flights),
        _deletes_folded(observations, planes),
        _all_signed(flights, observations, planes),
        _untouched(weather),
        _left_to_its_owner(delays, flights_writer.delayed(source), is_decided=is_decided),
        _all_reachable((flights, weather, delays, observations, planes)),
    ]


def _observations_left() -> pa.Table:
    observations = flights_writer.read_weather()
    return observations.filter(pc.not_equal(observations["hour"], 0))


def _planes_left() -> pa.Table:
    planes = flights_writer.read_planes()
    return planes.filter(pc.is_valid(planes["year"]))


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


def _deletes_folded(*tables: Table) -> Check:
    """No delete applies to a live file any more; position deletes stay listed until their snapshots expire."""
    deleted = live = 0
    for table in tables:
        for snapshot in table.metadata.snapshots:
            if snapshot.summary and snapshot.summary.operation.value == "delete":
                deleted += int(snapshot.summary["added-position-deletes"] or 0)
        live += sum(len(task.delete_files) for task in table.scan().plan_files())
    found = f"{deleted:,} rows were deleted by delete files, {live:,} delete files still apply"
    return Check("deletes are folded in", deleted > 0 and live == 0, found)


def _all_signed(*tables: Table) -> Check:
    snapshots = [snapshot for table in tables for snapshot in table.metadata.snapshots]
    replaced = [s for s in snapshots if s.summary and s.summary.operation.value == "replace"]
    signed = [s for s in replaced if s.summary and s.summary[TASK_ID_KEY] and s.summary[PROOF_KEY]]
    held = len(signed) == len(replaced) > 0
    return Check("every rewrite carries its proof", held, f"{len(signed)} of {len(replaced)} rewrites")


def _untouched(table: Table) -> Check:
    commits = len(table.metadata.snapshots)
    return Check("the good table was left alone", commits == 1, f"{commits} commit")


def _left_to_its_owner(table: Table, delayed: pa.Table, *, is_decided: bool) -> Check:
    days = islice(flights_writer.by_day(delayed), flights_writer.DELAYS_DAYS)
    rows = _rows_equal(table, pa.concat_tables(days), "what waits for a person was not done")
    commits = len(table.metadata.snapshots)
    if is_decided:
        return Check(rows.promise, rows.held, f"a person decided; {commits} commits; {rows.found}")
    held = rows.held and commits == flights_writer.DELAYS_DAYS
    return Check(rows.promise, held, f"{commits} commits, all of its writer; {rows.found}")


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
