"""Our expiry of tables that Spark wrote: it retains what Iceberg's own does, and Spark reads all that is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icewright.actions.expire_snapshots.commit import problem_of_expiry
from icewright.actions.expire_snapshots.iceberg import PyIcebergExpiry
from icewright.actions.expire_snapshots.plan import decide_expiry
from icewright.actions.rollback.iceberg import PyIcebergRollbacks
from icewright.actions.undo.missing_files import first_missing
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.table_files import PyIcebergTableFiles
from icewright.core.errors import Conflict
from icewright.core.system_clock import SystemClock
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpiryRule
from icewright.model.actions.rollback import Rollback
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.policy.effective import effective_policy
from icewright_spark.iceberg.java_api import SparkTable
from tests.contracts.undoing import Shelf, decided

pytestmark = pytest.mark.spark


def run_on(spark: SparkSession, name: TableName, text: str, number: int = 0) -> None:
    spark.sql(text.replace("$T", str(name)).replace("$N", str(number)))


def play(spark: SparkSession, name: TableName, version: int) -> None:
    """Two tags, one of them past its age soon, a branch with a rule of its own, and a staged snapshot."""

    def run(text: str, number: int = 0) -> None:
        run_on(spark, name, text, number)

    run(
        "CREATE TABLE $T (id INT) USING iceberg TBLPROPERTIES "
        f"('format-version'='{version}', 'write.delete.mode'='merge-on-read', 'write.wap.enabled'='true')"
    )
    run("INSERT INTO $T SELECT id FROM range(0, 10, 1, 1)")
    run("ALTER TABLE $T CREATE TAG soon RETAIN 1 MINUTES")
    run("INSERT INTO $T VALUES (10)")
    run("ALTER TABLE $T CREATE TAG first")
    run("DELETE FROM $T WHERE id = 3")
    run("ALTER TABLE $T CREATE BRANCH side WITH SNAPSHOT RETENTION 2 SNAPSHOTS 1 MINUTES")
    for number in (20, 21, 22):
        run("INSERT INTO $T.branch_side VALUES ($N)", number)
    spark.conf.set("spark.wap.id", "w1")
    run("INSERT INTO $T VALUES (99)")
    spark.conf.unset("spark.wap.id")
    for number in (11, 12, 13):
        run("INSERT INTO $T VALUES ($N)", number)


def planned(metadata: TableMetadata, rule: ExpiryRule, now: int) -> ExpireSnapshots:
    action = decide_expiry(metadata, effective_policy(metadata, ()), rule, now, can_put_back=True).action
    assert action is not None
    return action


@pytest.mark.parametrize("version", [2, 3])
def test_e1_e4_it_retains_what_iceberg_retains_and_all_of_that_is_read(
    spark: SparkSession, lake: CatalogEntry, version: int
) -> None:
    ours, peers = TableName(lake.name, ("db",), "ours"), TableName(lake.name, ("db",), "peers")
    spark.sql(f"CREATE NAMESPACE {lake.name}.db")
    play(spark, ours, version)
    catalog, expiry = PyIcebergCatalog(lake), PyIcebergExpiry(lake, SystemClock())
    before = catalog.load(ours)
    rows = {one.snapshot_id: read(spark, ours, one.snapshot_id) for one in before.snapshots}
    spark.sql(
        f"CALL {lake.name}.system.register_table('db.peers', '{before.metadata_location}')"
    )  # the peer expires the same metadata, under another name

    # As of ten minutes from now, when the tag and the branch are past their ages; Iceberg has a clock of its own.
    now = before.updated_at + 600_000
    shift_refs(spark, peers)
    action = planned(before, ExpiryRule(0, 2), now)
    peer = SparkTable(spark, peers).java
    peer.expireSnapshots().expireOlderThan(now).retainLast(2).cleanExpiredFiles(False).commit()
    shelf = Shelf()
    expiry.expire(ours, before.table_id, action, may_commit=lambda: None, keep=shelf.keep)

    after, theirs = catalog.load(ours), catalog.load(peers)
    assert ids(after) == ids(theirs)
    assert len(after.snapshots) < len(before.snapshots)
    assert {ref.name for ref in after.refs} == {ref.name for ref in theirs.refs} == {"main", "first", "side"}
    assert [one.snapshot_id for one in after.snapshot_log] == [one.snapshot_id for one in theirs.snapshot_log]
    found = expiry.commit_of(ours, before.table_id, action)
    assert found is not None
    assert problem_of_expiry(found.before, found.after, action) is None

    spark.sql(f"REFRESH TABLE {ours}")
    for one in after.snapshots:
        assert read(spark, ours, one.snapshot_id) == rows[one.snapshot_id]
    run_on(spark, ours, "INSERT INTO $T VALUES ($N)", 14)
    assert read(spark, ours, None) == sorted([*rows[before.current_snapshot_id or 0], 14])

    undo(lake, ours, action, shelf.content)
    back = catalog.load(ours)
    entries = {one["snapshot-id"]: one for one in raw(back)["snapshots"]}
    assert all(entries[one["snapshot-id"]] == one for one in raw(before)["snapshots"])
    assert {name: ref for name, ref in raw(back)["refs"].items() if name != "main"} == {
        name: ref for name, ref in raw(before)["refs"].items() if name != "main"
    }
    spark.sql(f"REFRESH TABLE {ours}")
    for one in before.snapshots:
        assert read(spark, ours, one.snapshot_id) == rows[one.snapshot_id]
    run_on(spark, ours, "INSERT INTO $T VALUES ($N)", 15)
    assert {ref.name for ref in catalog.load(ours).refs} == {"main", "first", "side", "soon"}
    roll_back(spark, lake, ours, rows)


def roll_back(spark: SparkSession, lake: CatalogEntry, name: TableName, rows: dict[int, list[int]]) -> None:
    """Spark reads what main is set back to, and forward again, and writes on from both."""
    now, rollbacks = PyIcebergCatalog(lake).load(name), PyIcebergRollbacks(lake, SystemClock())
    newest, target = now.ancestors()[0].snapshot_id, now.ancestors()[3].snapshot_id
    before = read(spark, name, None)

    def go(action: Rollback, task_id: str) -> None:
        rollbacks.roll_back(name, now.table_id, action, task_id=task_id, may_commit=lambda: None)
        spark.sql(f"REFRESH TABLE {name}")

    go(Rollback(newest, target), "task-back")
    assert read(spark, name, None) == rows[target]
    go(Rollback(target, newest, "task-back"), "task-forward")
    assert read(spark, name, None) == before
    go(Rollback(newest, target), "task-again")
    run_on(spark, name, "INSERT INTO $T VALUES ($N)", 16)
    assert read(spark, name, None) == sorted([*rows[target], 16])


def undo(lake: CatalogEntry, name: TableName, action: ExpireSnapshots, content: bytes) -> None:
    """The drill: with a file missing nothing comes back; with all of them there, everything."""
    now, expiry, files = (
        PyIcebergCatalog(lake).load(name),
        PyIcebergExpiry(lake, SystemClock()),
        PyIcebergTableFiles(lake),
    )
    found = decided(expiry, now, action, content).action
    assert found is not None
    taken = expiry.read_taken(name, content)
    lists = [one.manifest_list for one in taken.snapshots if one.snapshot_id in found.snapshot_ids]

    def put_back() -> None:
        expiry.put_back(
            name,
            now.table_id,
            found,
            content,
            task_id="task-undo",
            may_commit=lambda: None,
            first_missing=lambda table: first_missing(files, table, found.snapshot_ids),
        )

    away = Path(lists[0].removeprefix("file:"))
    away.rename(f"{away}.away")
    with pytest.raises(Conflict, match="is not there any more"):
        put_back()
    assert PyIcebergCatalog(lake).load(name) == now
    Path(f"{away}.away").rename(away)
    put_back()


def raw(metadata: TableMetadata) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(metadata.metadata_location.removeprefix("file:")).read_bytes())
    return found


def shift_refs(spark: SparkSession, name: TableName) -> None:
    """Ages of refs so short that they are over by now, for the one who cannot be told another instant."""
    manage = SparkTable(spark, name).java.manageSnapshots()
    manage.setMaxRefAgeMs("soon", 1).setMaxSnapshotAgeMs("side", 1).commit()


def ids(metadata: TableMetadata) -> list[int]:
    return [one.snapshot_id for one in metadata.snapshots]


def read(spark: SparkSession, name: TableName, snapshot_id: int | None) -> list[int]:
    """The rows of a snapshot, by their bytes."""
    reader = spark.read if snapshot_id is None else spark.read.option("versionAsOf", snapshot_id)
    return sorted(row["id"] for row in reader.table(str(name)).collect())
