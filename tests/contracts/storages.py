"""Storages that the contracts of objects and of quarantines are checked on."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest
from hdfs_native import Client, WriteOptions

from icewright.actions.remove_files.adapters.opened import CatalogObjects, CatalogQuarantine
from icewright.actions.remove_files.quarantine_port import Quarantine
from icewright.catalogs.objects import Objects
from icewright.catalogs.storage.s3 import S3Client
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.locations import CanonicalPath, storage_and_key
from tests.doubles.clock import ManualClock
from tests.doubles.objects import MemoryObjects, MemoryStorage
from tests.doubles.quarantine import MemoryQuarantine
from tests.servers.hdfs import Hdfs
from tests.servers.s3 import S3Server

HELD = "held"
"""The key of the quarantine, beside everything else."""


class Storage(Protocol):
    """A storage, and ways to change it behind the ports' backs."""

    @property
    def objects(self) -> Objects: ...
    @property
    def quarantine(self) -> Quarantine: ...
    def at(self, key: str) -> CanonicalPath: ...
    def put(self, key: str, content: bytes) -> None: ...
    def remove(self, key: str) -> None: ...


class InMemory:
    def __init__(self) -> None:
        self.storage = MemoryStorage(ManualClock())
        self.objects = MemoryObjects(self.storage)
        self.quarantine = MemoryQuarantine(self.storage, self.at(HELD))

    def at(self, key: str) -> CanonicalPath:
        return CanonicalPath(f"mem://world/{key}")

    def put(self, key: str, content: bytes) -> None:
        self.storage.write(self.at(key), content)

    def remove(self, key: str) -> None:
        self.storage.remove(self.at(key))


class Local:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entry = CatalogEntry("lake", CatalogKind.SQL, f"sqlite:///{folder}/lake.db", str(folder))
        (folder / HELD).mkdir()
        self.objects = CatalogObjects(self.entry)
        self.quarantine = CatalogQuarantine(self.entry, [self.at(HELD)])

    def at(self, key: str) -> CanonicalPath:
        return CanonicalPath(f"file://{self.folder}/{key}")

    def put(self, key: str, content: bytes) -> None:
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def remove(self, key: str) -> None:
        (self.folder / key).unlink()


class OnS3:
    def __init__(self, server: S3Server, *, versions: str | None = None) -> None:
        self.server, self.bucket = server, server.new_bucket()
        self.s3: Any = S3Client(server.file_io).writes
        if versions is not None:
            self.s3.put_bucket_versioning(Bucket=self.bucket, VersioningConfiguration={"Status": versions})
        self.entry = CatalogEntry("lake", CatalogKind.SQL, "sqlite:////lake.db", f"s3://{self.bucket}", server.file_io)
        self.objects = CatalogObjects(self.entry)
        self.quarantine = CatalogQuarantine(self.entry, [self.at(HELD)])

    def at(self, key: str) -> CanonicalPath:
        return CanonicalPath(f"s3://{self.bucket}/{key}")

    def put(self, key: str, content: bytes) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=content)

    def remove(self, key: str) -> None:
        self.s3.delete_object(Bucket=self.bucket, Key=key)


class OnHdfs:
    _numbers = count()

    def __init__(self, cluster: Hdfs) -> None:
        self.root = f"{cluster.uri}/storage-{next(self._numbers)}"
        self.client = Client(cluster.uri)
        self.entry = CatalogEntry("lake", CatalogKind.SQL, "sqlite:////lake.db", self.root)
        self.objects = CatalogObjects(self.entry)
        self.quarantine = CatalogQuarantine(self.entry, [self.at(HELD)])

    def at(self, key: str) -> CanonicalPath:
        return CanonicalPath(f"{self.root}/{key}")

    def put(self, key: str, content: bytes) -> None:
        writer = self.client.create(storage_and_key(self.at(key))[1], WriteOptions(overwrite=True))
        writer.write(content)
        writer.close()

    def remove(self, key: str) -> None:
        self.client.delete(storage_and_key(self.at(key))[1])


KINDS = ("memory", "local", "s3", "s3-versions", "s3-suspended", "hdfs")


def make_storage(kind: str, request: pytest.FixtureRequest, folder: Path) -> Storage:
    """An empty one."""
    match kind:
        case "memory":
            return InMemory()
        case "local":
            return Local(folder.resolve())
        case "hdfs":
            return OnHdfs(request.getfixturevalue("hdfs_cluster"))
        case _:
            versions = {"s3-versions": "Enabled", "s3-suspended": "Suspended"}.get(kind)
            return OnS3(request.getfixturevalue("s3"), versions=versions)
