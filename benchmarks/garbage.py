"""A table of very many files of which it is known which are garbage: true metadata written directly, and empty files.

Beside the files that the table needs there are orphans, old enough by every clock, and files that must be kept: such
as a writer may still commit, such as hide behind a dot or an underscore, and such whose times tell nothing.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import ManifestFile

from benchmarks.table_metadata import (
    added_entry,
    data_file,
    snapshot_id,
    table_document,
    write_list,
    write_manifest,
)
from icewright.actions.remove_files.orphans.rules import Kept
from icewright.core.times import Instant
from icewright.model.actions.remove_files import FILES_MAX
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName

DAY_MS: Final = 24 * 3_600_000
_FIRST_DAY: Final = 20_000
_OLDEST_MS: Final = 60 * DAY_MS
_LATEST_MS: Final = 30 * DAY_MS
"""The table's commits lie in between, before :attr:`Garbage.now`."""
_COMMIT_MS: Final = 60_000
"""What a writer takes from a file to its commit."""
_ORPHAN_MS: Final = 20 * DAY_MS
_YOUNG_MS: Final = 3 * DAY_MS
_SIZE_BYTES: Final = 128 << 20
_ORPHANS_EACH: Final = 100
_ODD_EACH: Final = 1_000
_IN_METADATA_EACH: Final = 10
_EPOCH: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Garbage:
    """What is known of the table: all plain paths of this machine.

    ``now`` is the instant that every age is told at, ``root`` the table's location. ``needed`` data files are in its
    manifests. ``temporary`` are orphans in a job's folder, which the peer does not list. ``undated`` are files of no
    need whose times lie before the table began, or before Iceberg: nobody knows how old they are. ``kept`` counts what
    must be kept of what nothing needs, by our codes.
    """

    name: TableName
    uuid: str
    root: str
    now: Instant
    listed: int
    needed: int
    orphans: frozenset[str]
    temporary: frozenset[str]
    undated: frozenset[str]
    kept: dict[str, int]


def write_garbage(
    entry: CatalogEntry, name: TableName, files: int, per_manifest: int, now: Instant, seed: int
) -> Garbage:
    """Write a table of so many needed data files, a hundredth of them orphans beside them, and register it."""
    root = Path(entry.warehouse, *name.path)
    metadata = root / "metadata"
    metadata.mkdir(parents=True)
    uuid = str(UUID(int=random.Random(seed).getrandbits(128), version=4))  # noqa: S311 - a made-up table, no secret
    location = _write_needed(root, uuid, files, per_manifest, now)
    days = sorted((root / "data").iterdir())
    temporary = frozenset(_temporary(root / "data" / "_temporary" / "0", files // _ODD_EACH + 1, now))
    # One plan takes so many files; with more, ours would rightly leave some for the next.
    orphans = frozenset(_orphans(metadata, days, min(files // _ORPHANS_EACH, FILES_MAX - len(temporary)), now))
    undated = frozenset(_undated(days, files // _ODD_EACH + 1, now))
    kept = {
        Kept.HIDDEN.value: _empty_files(days, ".left", files // _ODD_EACH + 1, now - _ORPHAN_MS),
        Kept.YOUNG.value: _empty_files(days, "young", files // _ORPHANS_EACH + 1, now - _YOUNG_MS),
        Kept.FUTURE.value: _empty_files(days, "future", files // _ODD_EACH + 1, now + DAY_MS),
        Kept.BEFORE_TABLE.value: sum("/undated-0" not in path for path in undated),
        Kept.NO_TIME.value: sum("/undated-0" in path for path in undated),
    }
    catalog = SqlCatalog(entry.name, **entry.pyiceberg_properties())
    catalog.register_table(name.path, location.as_uri())
    catalog.close()
    listed = sum(len(found) for _, _, found in os.walk(root))
    return Garbage(name, uuid, str(root), now, listed, files, orphans, temporary, undated, kept)


def write_listing(table: Garbage, file: Path) -> None:
    """The table's files as ``remove_orphan_files`` takes them for a ``file_list_view``: without the hidden ones."""
    schema = pa.schema([("file_path", pa.string()), ("last_modified", pa.timestamp("us", "UTC"))])
    with pq.ParquetWriter(file, schema) as writer:
        for folder, below, names in os.walk(table.root):
            below[:] = [name for name in below if not name.startswith("_")]
            paths = [f"{folder}/{name}" for name in names if not name.startswith(".")]
            times = [os.lstat(path).st_mtime_ns // 1_000 for path in paths]
            columns = [pa.array([f"file:{path}" for path in paths], pa.string()), pa.array(times, schema.types[1])]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _write_needed(root: Path, uuid: str, files: int, per_manifest: int, now: Instant) -> Path:
    """A day and a commit for each manifest; the metadata file."""
    manifests: list[ManifestFile] = []
    snapshots: list[dict[str, Any]] = []
    count = -(-files // per_manifest)
    for place in range(count):
        number, day = place + 1, _FIRST_DAY + place
        at = now - _OLDEST_MS + (_OLDEST_MS - _LATEST_MS) * place // count
        folder = root / "data" / f"day={date.fromordinal(_EPOCH + day).isoformat()}"
        folder.mkdir(parents=True)
        of_day = range(place * per_manifest, min(files, number * per_manifest))
        paths = [f"{folder}/{one:08d}.parquet" for one in of_day]
        for path in paths:
            _empty(path, at - _COMMIT_MS)
        manifest = root / "metadata" / f"m{number}.avro"
        entries = [added_entry(data_file(path, day, _SIZE_BYTES)) for path in paths]
        manifests.append(write_manifest(manifest, entries, number))
        manifest_list = root / "metadata" / f"snap-{number}.avro"
        write_list(manifest_list, manifests)
        snapshots.append(_snapshot(number, str(manifest_list), of_day.stop, len(of_day), at))
        for path in (str(manifest), str(manifest_list)):
            _date(path, at)
    metadata = root / "metadata" / f"{count:05d}-{uuid}.metadata.json"
    metadata.write_text(json.dumps(table_document(uuid, str(root), snapshots, {})))
    _date(str(metadata), snapshots[-1]["timestamp-ms"])
    return metadata


def _snapshot(number: int, manifest_list: str, files: int, added: int, at: Instant) -> dict[str, Any]:
    parent = {} if number == 1 else {"parent-snapshot-id": snapshot_id(number - 1)}
    totals = {"added-data-files": added, "total-data-files": files, "total-delete-files": 0}
    return {
        "snapshot-id": snapshot_id(number),
        **parent,
        "sequence-number": number,
        "timestamp-ms": at,
        "manifest-list": manifest_list,
        "summary": {"operation": "append", **{key: str(value) for key, value in totals.items()}},
        "schema-id": 0,
    }


def _orphans(metadata: Path, days: list[Path], count: int, now: Instant) -> Iterator[str]:
    """What writers left behind: data files in all days, and some manifests."""
    for number in range(count):
        in_metadata = number % _IN_METADATA_EACH == 0
        folder, kind = (metadata, "avro") if in_metadata else (days[number % len(days)], "parquet")
        path = f"{folder}/left-{number}.{kind}"
        _empty(path, now - _ORPHAN_MS)
        yield path


def _undated(days: list[Path], count: int, now: Instant) -> Iterator[str]:
    """Times of zero, of before Iceberg, and of before the table."""
    for at in (0, 1_420_070_400_000, now - 400 * DAY_MS):
        for number in range(count):
            path = f"{days[number % len(days)]}/undated-{at}-{number}.parquet"
            _empty(path, at)
            yield path


def _temporary(folder: Path, count: int, now: Instant) -> Iterator[str]:
    """What a job left behind that was not committed."""
    folder.mkdir(parents=True)
    for number in range(count):
        path = f"{folder}/part-{number}.parquet"
        _empty(path, now - _ORPHAN_MS)
        yield path


def _empty_files(folders: list[Path], name: str, count: int, at: Instant) -> int:
    for number in range(count):
        _empty(f"{folders[number % len(folders)]}/{name}-{number}.parquet", at)
    return count


def _empty(path: str, at: Instant) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    _date(path, at)


def _date(path: str, at: Instant) -> None:
    os.utime(path, ns=(at * 1_000_000, at * 1_000_000))
