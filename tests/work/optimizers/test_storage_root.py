"""Where new files go, as Iceberg's location providers have it."""

from __future__ import annotations

from dataclasses import replace

from icewright.observation.access import is_local, storage_root
from tests.builders.observations import table
from tests.cases import each_case

TABLE = "s3://bucket/wh/t"
LOCAL = "file:///wh/t"


@each_case(
    ("location", "properties", "root"),
    [
        (LOCAL, {}, None),
        ("/wh/t", {}, None),
        ("FILE:/wh/t", {}, None),
        (TABLE, {}, f"{TABLE}/data"),
        (f"{TABLE}/", {}, f"{TABLE}/data"),
        ("hdfs://nn:8020/t", {}, "hdfs://nn:8020/t/data"),
        (TABLE, {"write.data.path": "s3://other/d"}, "s3://other/d"),
        (TABLE, {"write.folder-storage.path": "s3://other/f"}, "s3://other/f"),
        (TABLE, {"write.object-storage.path": "s3://other/o"}, f"{TABLE}/data"),
        (TABLE, {"write.object-storage.enabled": "true", "write.object-storage.path": "s3://o/o"}, "s3://o/o"),
        (TABLE, {"write.object-storage.enabled": "true"}, f"{TABLE}/data"),
        (LOCAL, {"write.data.path": "s3://other/d"}, "s3://other/d"),
        (TABLE, {"write.data.path": "/local"}, TABLE),
    ],
)
def test_the_root_of_a_table(location: str, properties: dict[str, str], root: str | None) -> None:
    found = replace(table(), location=location, properties=properties)
    assert storage_root(found) == root
    assert root is None or not is_local(root)
