"""PyIceberg's files with what its settings cannot say: limits of time, and HDFS without Hadoop."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from pyarrow.fs import FileSystem, GcsFileSystem
from pyiceberg.io import (
    GCS_DEFAULT_LOCATION,
    GCS_SERVICE_HOST,
    GCS_TOKEN,
    GCS_TOKEN_EXPIRES_AT_MS,
    PY_IO_IMPL,
    FileIO,
    load_file_io,
)
from pyiceberg.io.pyarrow import PyArrowFileIO

from icewright.core.extras import require_extra

GOOGLE_TIMEOUTS: Final = timedelta(seconds=30)
_OURS: Final = frozenset({"gs", "gcs", "abfs", "abfss", "wasb", "wasbs", "hdfs", "viewfs"})
"""Where PyIceberg would take a library that is not installed, or wait for too long: Arrow tries Google for a quarter of
an hour."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def open_files(properties: Mapping[str, str], location: str) -> FileIO:
    """What reads a location by these settings: Arrow, where the user chose nothing else."""
    if urlsplit(location).scheme in _OURS and PY_IO_IMPL not in properties:
        return PatientFiles(dict(properties))
    return load_file_io(dict(properties), location)


class PatientFiles(PyArrowFileIO):
    """PyIceberg's files by Arrow, with these limits."""

    def _initialize_hdfs_fs(self, scheme: str, netloc: str | None) -> FileSystem:
        require_extra("hdfs", "tables on HDFS")
        from icewright.catalogs.storage.hdfs_files import open_hdfs  # noqa: PLC0415 - its library is an extra

        return open_hdfs(scheme, netloc)

    def _initialize_gcs_fs(self) -> FileSystem:
        """As PyIceberg's own, but for the limit."""
        found = self.properties
        settings: dict[str, Any] = {"retry_time_limit": GOOGLE_TIMEOUTS}
        if GCS_TOKEN in found:
            expires_at = timedelta(milliseconds=int(found.get(GCS_TOKEN_EXPIRES_AT_MS, 0)))
            settings |= {"access_token": found[GCS_TOKEN], "credential_token_expiration": _EPOCH + expires_at}
        if GCS_DEFAULT_LOCATION in found:
            settings["default_bucket_location"] = found[GCS_DEFAULT_LOCATION]
        if GCS_SERVICE_HOST in found:
            parts = urlsplit(found[GCS_SERVICE_HOST])
            settings |= {"scheme": parts.scheme, "endpoint_override": parts.netloc}
        return GcsFileSystem(**settings)
