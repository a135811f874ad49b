"""All files of tables that Spark wrote, by Iceberg's own account of them; and what its expiry then really deletes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icewright.catalogs.local_spool import open_disk_spool
from icewright.catalogs.pointers.table_files import PyIcebergTableFiles
from icewright.core.completeness import Complete
from icewright.inventory.reference_bits import ReferenceBits, reference_bits
from icewright.inventory.snapshot_retention import retained_snapshots
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import FileClass, ReachableFile
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.reachable import reachable
from icewright_spark.iceberg.java_api import SparkTable
from tests.lakes.deletes import delete_where_equal

pytestmark = pytest.mark.spark

canonical = Aliases().canonical
NOT_OF = {2: FileClass.DELETION_VECTORS, 3: FileClass.POSITION_DELETES}
"""What Spark writes no more, or not yet."""
CITY = "Kö %2F+#?"


def reach(
    entry: CatalogEntry, name: TableName, rules: tuple[ExpiryRule, ...], now: int
) -> tuple[TableMetadata, ReferenceBits, dict[CanonicalPath, ReachableFile]]:
    with reachable(
        PyIcebergTableFiles(entry),
        name,
        lambda metadata: reference_bits(metadata, rules, now),
        open_disk_spool,
        aliases=Aliases(),
        progress=lambda _step, _done, _total: None,
    ) as known:
        assert isinstance(known, Complete), known
        files = {file.path: file for file in known.value.files()}
        return known.value.metadata, known.value.references, files


def by_iceberg(spark: SparkSession, table: SparkTable, name: str) -> dict[CanonicalPath, FileClass]:
    """All files by metadata tables and ``ReachableFileUtil``."""
    found: dict[str, FileClass] = {}
    for row in spark.table(f"{name}.all_files").select("file_path", "content", "file_format").distinct().collect():
        position = FileClass.DELETION_VECTORS if row["file_format"] == "PUFFIN" else FileClass.POSITION_DELETES
        found[row["file_path"]] = (FileClass.DATA, position, FileClass.EQUALITY_DELETES)[row["content"]]
    for row in spark.table(f"{name}.all_manifests").select("path").distinct().collect():
        found[row["path"]] = FileClass.MANIFEST
    util = table.jvm.org.apache.iceberg.ReachableFileUtil
    found |= dict.fromkeys(util.statisticsFilesLocations(table.java), FileClass.STATISTICS)
    partitions = [file.path() for file in table.java.partitionStatisticsFiles()]
    found |= dict.fromkeys(partitions, FileClass.PARTITION_STATISTICS)
    found |= dict.fromkeys(util.manifestListLocations(table.java), FileClass.MANIFEST_LIST)
    found |= dict.fromkeys(util.metadataFileLocations(table.java, False), FileClass.METADATA)
    found[util.versionHintLocation(table.java)] = FileClass.VERSION_HINT
    return {canonical(path): file_class for path, file_class in found.items()}


def play(spark: SparkSession, name: TableName, version: int) -> None:
    """Everything that Spark can do to a table, and equality deletes as Flink writes them."""

    def run(text: str) -> None:
        words = {
            "$P": f"'{CITY}'",
            "$T": str(name),
            "$C": f"CALL {name.catalog}.system",
            "$A": f"table => '{'.'.join(name.path)}'",
        }
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        spark.sql(text)

    run(f"CREATE NAMESPACE {name.catalog}.db")
    modes = ", ".join(f"'write.{what}.mode'='merge-on-read'" for what in ("delete", "update"))
    run(
        "CREATE TABLE $T (id INT, city STRING) USING iceberg PARTITIONED BY (truncate(1000, id), city) "
        f"TBLPROPERTIES ('format-version'='{version}', {modes})"
    )
    run("INSERT INTO $T SELECT id, $P FROM range(0, 10, 1, 2)")
    run("INSERT INTO $T SELECT id, $P FROM range(10, 20, 1, 1)")
    run("$C.compute_table_stats($A)")
    run("$C.compute_partition_stats($A)")
    run("ALTER TABLE $T CREATE TAG first")
    run("DELETE FROM $T WHERE id IN (1, 2, 11)")
    table = SparkTable(spark, name).java
    partition = table.newScan().planFiles().iterator().next().file().partition()
    delete_where_equal(spark, table, [{"id": 12}], partition=partition)
    run("UPDATE $T SET id = 100 WHERE id = 3")
    run("ALTER TABLE $T CREATE BRANCH side")
    run("INSERT INTO $T.branch_side VALUES (200, $P)")
    run("$C.rewrite_data_files($A, options => map('rewrite-all', 'true'))")
    run("$C.rewrite_manifests($A)")
    rewritten = SparkTable(spark, name).java.currentSnapshot().snapshotId()
    run("INSERT OVERWRITE $T VALUES (300, $P)")
    run(f"$C.rollback_to_snapshot($A, snapshot_id => {rewritten})")
    run("INSERT INTO $T VALUES (400, $P)")


@pytest.mark.parametrize("version", [2, 3])
def test_o7_o11_all_files_are_those_that_iceberg_knows_and_expiry_frees_what_was_said(
    spark: SparkSession, lake: CatalogEntry, version: int
) -> None:
    name = TableName(lake.name, ("db",), "events")
    play(spark, name, version)
    times = sorted(one.committed_at for one in PyIcebergTableFiles(lake).roots(name).metadata.snapshots)
    now = times[-1] + 1000
    for rule in (ExpiryRule(now - times[3], 2), ExpiryRule(0, 3), ExpiryRule(0, 1)):
        metadata, keeping, files = reach(lake, name, (rule,), now)
        classes = {path: file.file_class for path, file in files.items()}
        assert classes == by_iceberg(spark, SparkTable(spark, name), str(name))
        if rule.older_than_ms:
            assert {*classes.values()} == {*FileClass} - {NOT_OF[version]}
        there = {path for path in files if Path(path.removeprefix("file://")).exists()}
        assert {classes[path] for path in files.keys() - there} <= {FileClass.VERSION_HINT}

        table = SparkTable(spark, name)
        (expiry,) = keeping.expiries
        table.java.expireSnapshots().expireOlderThan(now - rule.older_than_ms).retainLast(rule.retain_last).commit()
        left = {one.snapshot_id for one in PyIcebergTableFiles(lake).roots(name).metadata.snapshots}
        assert left == retained_snapshots(metadata, rule, now)
        assert len(metadata.snapshots) - len(left) == expiry.snapshots > 0
        deleted = {path for path in there if not Path(path.removeprefix("file://")).exists()}
        assert deleted == {path for path, file in files.items() if not file.kept_by & expiry.bit}
        spark.sql(f"REFRESH TABLE {name}")
    assert sorted(row["id"] for row in spark.table(str(name)).collect()) == sorted(
        {*range(20), 100, 400} - {1, 2, 3, 11, 12}
    )
