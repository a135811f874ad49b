"""Files on Google's storage are given up in time, and read by the settings that PyIceberg knows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pyarrow.fs import GcsFileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO

from icewright.catalogs.pointers import file_io as patient_files
from icewright.catalogs.pointers.file_io import open_files
from icewright.catalogs.pointers.pointers import read_metadata
from icewright.core.errors import StorageUnavailable
from icewright.model.iceberg.names import TableName
from tests.servers.processes import HOST, free_port


def test_google_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_files, "GOOGLE_TIMEOUTS", timedelta(seconds=0.2))
    properties = {
        "gcs.oauth2.token": "hunter2",
        "gcs.oauth2.token-expires-at": "4102444800000",
        "gcs.service.host": f"http://{HOST}:{free_port()}",
    }
    location = "gs://bucket/m.json"
    with pytest.raises(StorageUnavailable) as caught:
        read_metadata(open_files(properties, location), TableName("lake", ("db",), "t"), location)
    assert "hunter2" not in caught.value.message


def test_the_limit_is_set_without_any_setting() -> None:
    system = open_files({}, "gs://bucket/m.json").fs_by_scheme("gs", "bucket")  # type: ignore[attr-defined]  # Arrow's
    assert isinstance(system, GcsFileSystem)
    assert system == GcsFileSystem(retry_time_limit=patient_files.GOOGLE_TIMEOUTS)


@pytest.mark.parametrize("location", ["gs://bucket/m.json", "abfss://c@a.dfs.core.windows.net/m.json"])
def test_stores_are_read_by_what_is_installed(location: str) -> None:
    assert isinstance(open_files({"adls.account-name": "a", "adls.account-key": "YWJj"}, location), PyArrowFileIO)
