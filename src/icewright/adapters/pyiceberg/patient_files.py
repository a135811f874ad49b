"""PyIceberg's files with the one limit that its settings cannot say: Arrow tries Google for a quarter of an hour."""

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

GOOGLE_PATIENCE: Final = timedelta(seconds=30)
_BY_ARROW: Final = frozenset({"gs", "gcs", "abfs", "abfss", "wasb", "wasbs"})
"""Where PyIceberg would take a library that is not installed, or wait for too long."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def open_files(properties: Mapping[str, str], location: str) -> FileIO:
    """What reads a location by these settings: Arrow, where the user chose nothing else."""
    if urlsplit(location).scheme in _BY_ARROW and PY_IO_IMPL not in properties:
        return _Patient(dict(properties))
    return load_file_io(dict(properties), location)


class _Patient(PyArrowFileIO):
    def _initialize_gcs_fs(self) -> FileSystem:
        """As PyIceberg's own, but for the limit."""
        found = self.properties
        settings: dict[str, Any] = {"retry_time_limit": GOOGLE_PATIENCE}
        if GCS_TOKEN in found:
            expires_at = timedelta(milliseconds=int(found.get(GCS_TOKEN_EXPIRES_AT_MS, 0)))
            settings |= {"access_token": found[GCS_TOKEN], "credential_token_expiration": _EPOCH + expires_at}
        if GCS_DEFAULT_LOCATION in found:
            settings["default_bucket_location"] = found[GCS_DEFAULT_LOCATION]
        if GCS_SERVICE_HOST in found:
            parts = urlsplit(found[GCS_SERVICE_HOST])
            settings |= {"scheme": parts.scheme, "endpoint_override": parts.netloc}
        return GcsFileSystem(**settings)
