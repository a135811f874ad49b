"""Files on HDFS for PyIceberg, without Hadoop on the machine: hdfs-native, held to a time limit.

It speaks to name nodes and data nodes itself, and reads the Hadoop configuration (``HADOOP_CONF_DIR``) for names of
clusters, Kerberos and tokens. A name node that accepts a connection and then says nothing would keep it for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from hdfs_native.fsspec import HdfsFileSystem, ViewfsFileSystem
from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

from icewright.model.iceberg.catalog_entries import ANSWER_TIMEOUT_MS

SETTINGS: Final = {
    "dfs.client.socket-timeout": str(ANSWER_TIMEOUT_MS),
    # Its own fifteen tries at a name node that is not there take three minutes.
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.base.millis": "200",
    "dfs.client.failover.sleep.max.millis": "2000",
}

_Answer = TypeVar("_Answer")


class _Patient:
    """Plain paths, characters as they are; every question is answered in time or not at all."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        return in_time(lambda: super(_Patient, self).info(path, **options))  # type: ignore[misc]  # of its siblings

    def isfile(self, path: str) -> bool:
        """As the general one, which takes every error for a file that is not there."""
        try:
            return bool(self.info(path)["type"] == "file")
        except FileNotFoundError:
            return False

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        return in_time(lambda: super(_Patient, self)._open(path, mode, **options))  # type: ignore[misc]  # the same


class _Hdfs(_Patient, HdfsFileSystem):  # type: ignore[misc]  # options are passed on
    """``hdfs:``."""


class _Viewfs(_Patient, ViewfsFileSystem):  # type: ignore[misc]  # the same
    """``viewfs:``."""


def open_hdfs(scheme: str, authority: str | None) -> FileSystem:
    """The file system of a cluster, or that of the Hadoop configuration where a location names none."""
    host, _, port = (authority or "").partition(":")
    kind = _Viewfs if scheme == "viewfs" else _Hdfs
    return PyFileSystem(FSSpecHandler(kind(host or None, int(port) if port else None, **SETTINGS)))


def in_time(ask: Callable[[], _Answer]) -> _Answer:
    """The answer. Raises ``TimeoutError`` when it takes too long, and leaves the thread behind that waits for it."""
    outcome: list[Callable[[], _Answer]] = []

    def run() -> None:
        try:
            found = ask()
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            raised = error
            outcome.append(lambda: _raise(raised))
        else:
            outcome.append(lambda: found)

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    asking.join(ANSWER_TIMEOUT_MS / 1000)
    if not outcome:
        raise TimeoutError(f"HDFS said nothing for {ANSWER_TIMEOUT_MS / 1000:.0f} s")
    return outcome[0]()


def _raise(error: BaseException) -> Any:
    raise error
