"""A table of very many snapshots: one that Spark wrote, whose history is told anew, a commit that added nothing each.

Each snapshot has a manifest list of its own, and all of them the same manifest. So nothing but manifest lists goes when
snapshots expire, which is the least work for whoever deletes what is not needed any more. The rows can be read.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from benchmarks.table_metadata import snapshot_id
from icewright.core.times import Instant
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policy import MODE_KEY, Mode

INTERVAL_MS: Final = 75 * 60_000
"""How far commits lie apart."""
AGE_MS: Final = 5 * 24 * 3_600_000
"""Older snapshots are to expire; no snapshot comes to that age within half an interval after it was written."""
RETAIN_LAST: Final = 10


@dataclass(frozen=True, slots=True)
class History:
    """A table as it was written at ``now``: the ids of its snapshots in their order, and their manifest lists."""

    name: TableName
    now: Instant
    snapshot_ids: tuple[int, ...]
    manifest_lists: tuple[str, ...]
    retained: int
    """So many of the last ones are younger than :data:`AGE_MS`, or are to be retained whatever their age."""


class Histories:
    """Writes such tables."""

    def __init__(self, spark: SparkSession, entry: CatalogEntry, namespace: str) -> None:
        self._entry, self._namespace = entry, namespace
        source = f"{entry.name}.{namespace}.source"
        properties = f"'format-version' = '2', '{MODE_KEY}' = '{Mode.APPROVE.value}'"
        spark.sql(f"CREATE TABLE {source} (id BIGINT, name STRING) USING iceberg TBLPROPERTIES ({properties})")
        spark.range(0, 1_000, 1, 4).selectExpr("id", "concat('name ', id) AS name").writeTo(source).append()
        with self._catalog() as catalog:
            location = catalog.load_table((namespace, "source")).metadata_location
        self._source: dict[str, Any] = json.loads(_plain(location).read_text())

    def write(self, table: str, snapshots: int) -> History:
        """A table of so many snapshots, the last one of a moment ago, in the catalog under a new name."""
        name = TableName(self._entry.name, (self._namespace,), table)
        folder = Path(self._entry.warehouse, *name.path) / "metadata"
        folder.mkdir(parents=True)
        now = time.time_ns() // 1_000_000
        (written,) = self._source["snapshots"]
        lists = [folder / f"snap-{number}.avro" for number in range(1, snapshots + 1)]
        for path in lists:
            shutil.copyfile(_plain(written["manifest-list"]), path)
        made = [
            self._snapshot(written, number, str(path), now - (snapshots - number) * INTERVAL_MS - INTERVAL_MS // 2)
            for number, path in enumerate(lists, start=1)
        ]
        document = {
            **self._source,
            "table-uuid": str(uuid4()),
            "location": str(folder.parent),
            "last-sequence-number": snapshots,
            "last-updated-ms": now,
            "current-snapshot-id": made[-1]["snapshot-id"],
            "refs": {"main": {"snapshot-id": made[-1]["snapshot-id"], "type": "branch"}},
            "snapshots": made,
            "snapshot-log": [{"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]} for one in made],
            "metadata-log": [],
        }
        location = folder / f"{snapshots:05d}-{document['table-uuid']}.metadata.json"
        location.write_text(json.dumps(document))
        with self._catalog() as catalog:
            catalog.register_table(name.path, location.as_uri())
        young = sum(one["timestamp-ms"] >= now - AGE_MS for one in made)
        return History(
            name=name,
            now=now,
            snapshot_ids=tuple(one["snapshot-id"] for one in made),
            manifest_lists=tuple(map(str, lists)),
            retained=min(snapshots, max(young, RETAIN_LAST)),
        )

    def _snapshot(self, written: dict[str, Any], number: int, manifest_list: str, at: Instant) -> dict[str, Any]:
        parent = {} if number == 1 else {"parent-snapshot-id": snapshot_id(number - 1)}
        own = {"snapshot-id": snapshot_id(number), "sequence-number": number, "timestamp-ms": at}
        return {**written, **parent, **own, "manifest-list": manifest_list}

    def _catalog(self) -> SqlCatalog:
        return SqlCatalog(self._entry.name, **self._entry.pyiceberg_properties())


def _plain(location: str) -> Path:
    return Path(location.removeprefix("file://").removeprefix("file:"))
