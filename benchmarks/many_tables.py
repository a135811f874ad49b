"""A lake of many tables, and commits to them: metadata alone, written directly, since nobody reads the data.

Manifest lists, manifests and metadata files are what a writer would leave. Tables of one kind begin with the very
same manifests, which readers cannot tell: it keeps a hundred thousand tables on a small disk. A commit is written
whole beforehand; replaying it swaps one pointer. Each contestant has a catalog of its own over the same files.
"""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile

from benchmarks.table_metadata import (
    added_entry,
    data_file,
    snapshot_id,
    table_document,
    write_list,
    write_manifest,
)
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName

CATALOG: Final = "many"
NAMESPACE: Final = "lake"
HISTORY: Final = 40
"""Snapshots that a table's metadata begins with."""
COMMIT_INTERVAL_MS: Final = 75 * 60_000
"""How far they lie apart: 100,000 tables at 22 commits a second have 76 minutes between two commits of one."""

_FIRST_DAY: Final = 20_000
_REMOVAL_SHARE: Final = 0.1
_LATE_SHARE: Final = 0.2
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Kind:
    """Tables of one size: a partition per manifest. ``share``: how many of them to those of other kinds."""

    name: str
    share: int
    manifests: int
    files_per_manifest: int

    @property
    def files(self) -> int:
        """Data files of a table to begin with."""
        return self.manifests * self.files_per_manifest


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that lies ready: what the pointer of its table is to become."""

    table_uuid: str
    name: TableName
    snapshot_id: int
    metadata_location: str


@dataclass(slots=True)
class _Table:
    """What a table has come to by the commits that were written for it."""

    number: int
    kind: Kind
    manifests: list[ManifestFile]
    snapshots: list[dict[str, Any]]
    sequence_number: int
    partitions: dict[int, list[DataFile]] = field(default_factory=dict)
    """Files of manifests that were written anew, by the manifest's place in the list."""


class ManyTables:
    """The lake in a folder. The same arguments give the same lake, but for the times of commits."""

    def __init__(self, folder: Path, kinds: Sequence[Kind], tables: int, seed: int) -> None:
        self._folder, self._kinds, self.tables = folder, tuple(kinds), tables
        self._chance = random.Random(seed)  # noqa: S311 - made-up tables, no secret
        self._kind_of = [kind for kind in kinds for _ in range(kind.share)]
        self._changed: dict[int, _Table] = {}
        self._base: dict[str, tuple[list[ManifestFile], list[list[DataFile]], list[dict[str, Any]]]] = {}
        self._started_at = int(time.time() * 1000)

    def entry(self, contestant: str) -> CatalogEntry:
        """The catalog of a contestant."""
        uri = f"sqlite:///{self._folder}/{contestant}.db"
        return CatalogEntry(CATALOG, CatalogKind.SQL, uri, str(self._folder / "warehouse"))

    def name(self, number: int) -> TableName:
        """The name of a table."""
        return TableName(CATALOG, (NAMESPACE,), f"t{number:06d}")

    def touched(self, kind: Kind) -> list[TableName]:
        """The tables of a kind that have commits."""
        return [self.name(number) for number in sorted(self._changed) if self._kind(number) is kind]

    def write(self, contestants: Sequence[str]) -> None:
        """Write all tables as they begin, and a catalog for each contestant."""
        for kind in self._kinds:
            self._write_kind(kind)
        locations = [self._write_metadata(self._table(number), 0) for number in range(self.tables)]
        for contestant in contestants:
            entry = self.entry(contestant)
            catalog = SqlCatalog(entry.name, **entry.pyiceberg_properties())
            catalog.create_namespace(NAMESPACE)
            catalog.close()
            with closing(sqlite3.connect(_database(entry))) as connection, connection:
                connection.execute("PRAGMA journal_mode = WAL")
                rows = [(CATALOG, NAMESPACE, self.name(n).name, where, "TABLE") for n, where in enumerate(locations)]
                connection.executemany(
                    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location,"
                    " iceberg_type) VALUES (?, ?, ?, ?, ?)",
                    rows,
                )

    def commits(self, kind: Kind, count: int) -> list[Commit]:
        """So many commits to tables of a kind, each upon the one before; nine appends for one that removes files."""
        numbers = [number for number in range(self.tables) if self._kind(number) is kind]
        return [self._commit(self._chance.choice(numbers), self._started_at) for _ in range(count)]

    def mixed(self, count: int) -> Iterator[Commit]:
        """So many commits to tables of all kinds, as many to each table; each is written when it is asked for."""
        for _ in range(count):
            yield self._commit(self._chance.randrange(self.tables), int(time.time() * 1000))

    def kind_of(self, name: TableName) -> Kind:
        """The kind of a table."""
        return self._kind(int(name.name[1:]))

    def _kind(self, number: int) -> Kind:
        return self._kind_of[number % len(self._kind_of)]

    def _table(self, number: int) -> _Table:
        kind = self._kind(number)
        manifests, _, snapshots = self._base[kind.name]
        return _Table(number, kind, list(manifests), list(snapshots), HISTORY)

    def _write_kind(self, kind: Kind) -> None:
        manifests, contents = [], []
        folder = self._folder / "shared" / str(kind.files)
        folder.mkdir(parents=True)
        for place in range(kind.manifests):
            # All but today's partition are as large as they get, as in a lake that is looked after.
            sizes = [self._chance.randint(400, 560) * _MIB for _ in range(kind.files_per_manifest)]
            files = [
                data_file(f"{folder}/{place}-{n}.parquet", _FIRST_DAY + place, size) for n, size in enumerate(sizes)
            ]
            entries = [added_entry(file) for file in files]
            manifests.append(write_manifest(folder / f"{place}.avro", entries, place % HISTORY + 1))
            contents.append(files)
        snapshots = [
            self._snapshot(number, f"{folder}/list.avro", "append", kind.files, self._history_at(number))
            for number in range(1, HISTORY + 1)
        ]
        write_list(folder / "list.avro", manifests)
        self._base[kind.name] = manifests, contents, snapshots

    def _history_at(self, number: int) -> int:
        return self._started_at - (HISTORY + 1 - number) * COMMIT_INTERVAL_MS

    def _commit(self, number: int, at: int) -> Commit:
        table = self._changed.setdefault(number, self._table(number))
        table.sequence_number += 1
        folder = self._table_folder(number)
        today = _FIRST_DAY + table.kind.manifests
        removes = self._chance.random() < _REMOVAL_SHARE
        day = _FIRST_DAY + self._chance.randrange(table.kind.manifests) if removes else today
        if not removes and self._chance.random() < _LATE_SHARE:
            day -= 1
        count = self._rewrite_a_manifest(table, day - _FIRST_DAY) if removes else self._chance.randint(1, 8)
        names = (f"{folder}/data/{table.sequence_number}-{n}.parquet" for n in range(count))
        sizes = [self._chance.randint(1, 32) * _MIB for _ in range(count)]
        added = [added_entry(data_file(name, day, size)) for name, size in zip(names, sizes, strict=True)]
        path = folder / f"m{table.sequence_number}.avro"
        table.manifests.append(write_manifest(path, added, table.sequence_number))
        manifest_list = folder / f"list{table.sequence_number}.avro"
        write_list(manifest_list, table.manifests)
        operation = "overwrite" if removes else "append"
        at = max(at, table.snapshots[-1]["timestamp-ms"] + 1)
        files = sum((m.added_files_count or 0) + (m.existing_files_count or 0) for m in table.manifests)
        table.snapshots.append(self._snapshot(table.sequence_number, str(manifest_list), operation, files, at))
        location = self._write_metadata(table, table.sequence_number - HISTORY)
        return Commit(_uuid(number), self.name(number), snapshot_id(table.sequence_number), location)

    def _rewrite_a_manifest(self, table: _Table, place: int) -> int:
        """Copy on write: the manifest is written anew with a tenth of its files, one at least, marked as deleted."""
        before = table.partitions.get(place, self._base[table.kind.name][1][place])
        if len(before) == 1:
            return 1
        gone = set(self._chance.sample(range(len(before)), max(1, len(before) // 10)))
        old = place % HISTORY + 1
        entries = [
            ManifestEntry.from_args(
                status=ManifestEntryStatus.DELETED if n in gone else ManifestEntryStatus.EXISTING,
                snapshot_id=snapshot_id(table.sequence_number if n in gone else old),
                sequence_number=old,
                file_sequence_number=old,
                data_file=file,
            )
            for n, file in enumerate(before)
        ]
        path = self._table_folder(table.number) / f"r{table.sequence_number}.avro"
        table.manifests[place] = write_manifest(path, entries, table.sequence_number)
        table.partitions[place] = [file for n, file in enumerate(before) if n not in gone]
        return len(gone)

    def _snapshot(self, number: int, manifest_list: str, operation: str, files: int, at: int) -> dict[str, Any]:
        parent = {} if number == 1 else {"parent-snapshot-id": snapshot_id(number - 1)}
        summary = {
            "operation": operation,
            "spark.app.id": "local-1750000000000",
            "added-data-files": "8",
            "added-records": "800000",
            "added-files-size": "134217728",
            "changed-partition-count": "1",
            "total-records": str(files * 1_000_000),
            "total-files-size": str(files * 400 * _MIB),
            "total-data-files": str(files),
            "total-delete-files": "0",
            "total-position-deletes": "0",
            "total-equality-deletes": "0",
            "engine-version": "4.1.4",
            "engine-name": "spark",
            "iceberg-version": "Apache Iceberg 1.12.0",
        }
        return {
            "snapshot-id": snapshot_id(number),
            **parent,
            "sequence-number": number,
            "timestamp-ms": at,
            "manifest-list": manifest_list,
            "summary": summary,
            "schema-id": 0,
        }

    def _write_metadata(self, table: _Table, version: int) -> str:
        folder = self._table_folder(table.number)
        folder.mkdir(parents=True, exist_ok=True)
        metadata = table_document(
            _uuid(table.number), str(folder), table.snapshots, {"write.parquet.compression-codec": "zstd"}
        )
        path = folder / f"{version:05d}-{table.number}.metadata.json"
        path.write_text(json.dumps(metadata))
        return path.as_uri()

    def _table_folder(self, number: int) -> Path:
        return self._folder / "warehouse" / NAMESPACE / f"{number // 1000}" / f"t{number:06d}"


class Pointers:
    """Swaps the pointers in one contestant's catalog."""

    def __init__(self, entry: CatalogEntry) -> None:
        self._connection = sqlite3.connect(_database(entry), timeout=30, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = OFF")

    def swap(self, commit: Commit) -> None:
        """Make a commit the present state of its table."""
        self._connection.execute(
            "UPDATE iceberg_tables SET previous_metadata_location = metadata_location, metadata_location = ?"
            " WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
            (commit.metadata_location, CATALOG, NAMESPACE, commit.name.name),
        )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _database(entry: CatalogEntry) -> str:
    return entry.uri.removeprefix("sqlite:///")


def _uuid(number: int) -> str:
    return str(UUID(int=number))
