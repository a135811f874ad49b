"""Whether there is room for what an attempt is about to write: asked before, of storages that can say it.

Local file systems and HDFS say how much is free. Object stores do not; there is nothing to ask them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from icewright.model.work.jobs import TaskSpec
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.parquet.errors import DiskFull, unwritable
from icewright_spark.parquet.storage import is_local, local_path

KEPT_FREE_RATIO: Final = 0.05
"""The share of a file system that is left to everybody else; as much as ext4 keeps for the superuser."""
KEPT_FREE_BYTES_MAX: Final = 4 << 30
METADATA_BYTES: Final = 64 << 10
"""What is written to see that the metadata directory takes a file: more than the blocks that a tiny file may share."""
_HADOOP: Final = ("hdfs:", "viewfs:")


@dataclass(frozen=True, slots=True)
class _Space:
    """A file system: its bytes, how many of them are free, and how often each byte of a file is kept."""

    name: str
    size_bytes: int
    free_bytes: int
    copies: int = 1


_lock = threading.Lock()
_promised: dict[str, int] = {}
"""Bytes that attempts of this process are about to write, by file system."""


@contextmanager
def room_for(table: SparkTable, planned_bytes: int) -> Iterator[None]:
    """Where new data files of a table go there is room for so many bytes, during the block, and for others as well.

    What other attempts of this process were promised counts as used. Raises :class:`DiskFull`, before anything is
    written.
    """
    location = str(table.java.locationProvider().newDataLocation("any"))
    space = _space(table, location)
    if space is None:
        yield
        return
    needed = planned_bytes * space.copies
    kept_free = int(min(space.size_bytes * KEPT_FREE_RATIO, KEPT_FREE_BYTES_MAX * space.copies))
    with _lock:
        promised = _promised.get(space.name, 0)
        if space.free_bytes - promised < needed + kept_free:
            others = f", {_size(promised)} of them promised to other tasks" if promised else ""
            raise DiskFull(
                f"{location}: {_size(space.free_bytes)} are free{others}; {_size(needed)} are to be "
                f"written, and {_size(kept_free)} stay free for others",
                hint="make room, or remove files of expired snapshots",
            )
        _promised[space.name] = promised + needed
    try:
        yield
    finally:
        with _lock:
            _promised[space.name] -= needed


def check_metadata_directory(table: SparkTable, spec: TaskSpec) -> None:
    """The directory that the commit writes to takes a file; else all that is written before it were in vain.

    A file of an own name is written and deleted, on local file systems and HDFS. Raises :class:`DiskFull` and
    :class:`OutputUnwritable`.
    """
    location = str(table.java.operations().metadataFileLocation(f"icewright-probe-{spec.task_id}-{spec.attempt}"))
    if not (is_local(location) or location.startswith(_HADOOP)):
        return
    java_io = table.java.io()
    try:
        stream = java_io.newOutputFile(location).createOrOverwrite()
        try:
            stream.write(bytearray(METADATA_BYTES))
        finally:
            stream.close()
    except (Py4JError, PySparkException) as error:
        raise unwritable(f"the metadata directory takes no file: {location}", error) from error
    finally:
        _forget(java_io, location)


def _forget(java_io: Any, location: str) -> None:
    """Delete the file that was written to try a directory out; a directory that is full may hold a part of it."""
    try:
        java_io.deleteFile(location)
    except (Py4JError, PySparkException):
        return  # it was not made; or it stays, as an orphan without data


def _space(table: SparkTable, location: str) -> _Space | None:
    """What the file system of a location says of itself, None where it says nothing."""
    if is_local(location):
        try:
            path = local_path(location)
            there = next(parent for parent in path.parents if parent.exists())
            said = os.statvfs(there)
            if not said.f_blocks:
                return None  # /proc and the like have no size
            return _Space(f"local {_device(there)}", said.f_blocks * said.f_frsize, said.f_bavail * said.f_frsize)
        except OSError:
            return None
    if not location.startswith(_HADOOP):
        return None
    try:
        path = table.jvm.org.apache.hadoop.fs.Path(location)
        system = path.getFileSystem(table.jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf())
        status, copies = system.getStatus(path), int(system.getDefaultReplication(path))
        return _Space(str(system.getUri()), int(status.getCapacity()), int(status.getRemaining()), copies)
    except (Py4JError, PySparkException):
        return None


def _device(path: Path) -> int:
    return path.stat().st_dev


def _size(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):,.1f} MiB"
