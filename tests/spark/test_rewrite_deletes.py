"""Deletes and row lineage on real Spark: folded in, kept, and never resurrected whoever comes first."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from icewright.model.actions.actions import FileGroup, InputFile
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import GROUPS_KEY, PROOF_KEY
from icewright.model.work.jobs import Committed, Conflicted, Failed, TaskReport, TaskSpec
from icewright.model.work.tasks import TaskState
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifests import PartitionFiles
from tests.conftest import CAMPAIGN
from tests.lakes.sqlite import current_snapshot_id, writer
from tests.readers.duck import duckdb_with_iceberg
from tests.spark.beginnings import Beginnings, Write
from tests.spark.loop import SparkLoop
from tests.spark.pause import Pause
from tests.spark.tables import missing_files, sql_name

pytestmark = pytest.mark.spark

FILES, ROWS = 4, 50
ONE_FILE_A_TASK = {"fanout-enabled": "true", "distribution-mode": "none"}
"""In each partition."""
VERSIONS = (2, 3) if CAMPAIGN else (3,)
"""For what version 2 shows nothing new: its position deletes are validated by the same code of Iceberg's."""
SOME = "id % 10 = 3"
MONTH_MS = 30 * 86_400_000
LINEAGE = "_row_id, _last_updated_sequence_number"


@cache
def write(version: int, partitioned: bool, where: str) -> Write:  # noqa: FBT001 - of a table
    """Two commits of two files of fifty rows for each city; ids from 0, in the cities c0 and c1; then a DELETE."""

    def written(spark: SparkSession, name: TableName) -> None:
        table, by = sql_name(name), "PARTITIONED BY (city)" if partitioned else ""
        spark.sql(
            f"CREATE TABLE {table} (id bigint, city string) USING iceberg {by} "
            f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', "
            "'write.update.mode' = 'merge-on-read', 'icewright.rewrite-data-files.min-input-files' = '2')"
        )
        for number in range(0, FILES, 2):
            ids = spark.range(number * ROWS, (number + 2) * ROWS, 1, 2)
            frame = ids.selectExpr("id", "concat('c', id % 2) AS city")
            frame.writeTo(table).options(**ONE_FILE_A_TASK).append()
        if where:
            spark.sql(f"DELETE FROM {table} WHERE {where}")  # noqa: S608 - a test

    return written


class Lake:
    """A lake with tables of a few files each, to be deleted from; icewright looks at it a month later."""

    def __init__(self, spark: SparkSession, entry: CatalogEntry, beginnings: Beginnings) -> None:
        self.spark, self.entry, self._beginnings = spark, entry, beginnings
        self.loop = SparkLoop(spark, entry)
        self.loop.clock.ahead_ms = MONTH_MS

    def table(self, version: int, where: str = "", *, name: str = "t", partitioned: bool = True) -> TableName:
        """One as :func:`write` says, with the rows deleted ``where``."""
        return self._beginnings.table(self.entry, write(version, partitioned, where), name)

    def sql(self, text: str, name: TableName) -> list[Row]:
        return list(self.spark.sql(text.format(t=sql_name(name))).collect())

    def delete(self, name: TableName, where: str) -> None:
        self.sql(f"DELETE FROM {{t}} WHERE {where}", name)  # noqa: S608 - a test

    def contents(self, name: TableName, columns: str = "*") -> Counter[Row]:
        """The multiset of rows, read from bytes."""
        return Counter(self.sql(f"SELECT {columns} FROM {{t}}", name))  # noqa: S608 - a test

    def live(self, name: TableName) -> Counter[tuple[str, int]]:
        """Live entries by format and content."""
        rows = self.sql("SELECT data_file.* FROM {t}.entries WHERE status < 2", name)
        return Counter((row["file_format"], row["content"]) for row in rows)

    def by_duckdb(self, name: TableName) -> Counter[Any]:
        location = writer(self.entry).load_table(name.path).metadata_location.removeprefix("file://")
        connection = duckdb_with_iceberg()
        return Counter(connection.sql(f"SELECT id, city FROM iceberg_scan('{location}')").fetchall())  # noqa: S608 - a test

    def by_pyiceberg(self, name: TableName) -> Counter[Any]:
        found = writer(self.entry).load_table(name.path).scan(selected_fields=("id", "city")).to_arrow()
        return Counter((row["id"], row["city"]) for row in found.to_pylist())

    def rewrite(self, name: TableName) -> TaskReport:
        """Planned, carried out and verified."""
        return self.carry_out(self.loop.claim(name))

    def carry_out(self, spec: TaskSpec) -> TaskReport:
        report = self.loop.attempt(spec)
        assert isinstance(report.result, Committed), report.result
        task = self.loop.verified(report)
        assert task.state is TaskState.SUCCEEDED, task.outcome
        return report

    def missing(self, name: TableName) -> list[str]:
        """Reachable paths that are not there."""
        return missing_files(self.spark, name)

    def summary(self, name: TableName) -> dict[str, str]:
        rows = self.sql("SELECT summary FROM {t}.snapshots ORDER BY committed_at", name)
        return dict(rows[-1]["summary"])


@pytest.fixture
def deletes(spark: SparkSession, lake: CatalogEntry, beginnings: Beginnings) -> Lake:
    return Lake(spark, lake, beginnings)


def plain(rows: Counter[Row]) -> Counter[Any]:
    return Counter({tuple(row): count for row, count in rows.items()})


def test_position_deletes_of_version_2_are_folded_in(deletes: Lake) -> None:
    """Two DELETEs: one with a delete file per data file, one with those per partition, and no row left of one file."""
    name = deletes.table(2, SOME)
    deletes.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.granularity' = 'partition')", name)
    deletes.delete(name, "id < 30 OR id % 7 = 0 OR (id >= 150 AND city = 'c1')")
    before = deletes.contents(name)
    report = deletes.rewrite(name)

    assert deletes.contents(name) == before
    assert deletes.by_duckdb(name) == deletes.by_pyiceberg(name) == plain(before)
    assert deletes.live(name)["PARQUET", 0] == 2
    assert sum(receipt.records for receipt in report.receipts) == before.total()
    assert sum(receipt.deleted_records for receipt in report.receipts) == FILES * ROWS - before.total() > 0
    assert f";records={before.total()};deleted={FILES * ROWS - before.total()};" in deletes.summary(name)[PROOF_KEY]
    assert deletes.missing(name) == []
    # Position deletes stay listed, since Iceberg cannot tell whether they are needed elsewhere; they remove nothing.
    assert deletes.live(name)["PARQUET", 1] > 0


def test_v1_s5_vectors_of_version_3_are_folded_in_and_every_row_keeps_its_lineage(deletes: Lake) -> None:
    name = deletes.table(3, SOME)
    deletes.sql("UPDATE {t} SET id = id + 1000 WHERE id % 25 = 4", name)  # rows that were moved to other files
    before, lineage = deletes.contents(name), deletes.contents(name, f"*, {LINEAGE}")
    assert len({row["_row_id"] for row in lineage}) == before.total() == FILES * ROWS * 9 // 10
    spec = deletes.loop.claim(name)

    deletes.carry_out(spec)

    assert deletes.contents(name, f"*, {LINEAGE}") == lineage
    assert deletes.live(name) == {("PARQUET", 0): 2}  # no vector without its data file
    assert deletes.by_duckdb(name) == deletes.by_pyiceberg(name) == plain(before)
    assert deletes.missing(name) == []
    assert (
        int(deletes.summary(name)["removed-dvs"]) == sum(len(group.delete_files) for group in spec.rewrite.groups) > 0
    )

    # Once more, now from files that have the lineage as columns, with rows deleted and added since.
    deletes.delete(name, "id % 10 = 5")
    deletes.sql("INSERT INTO {t} VALUES (5000, 'c0'), (5001, 'c1')", name)
    lineage = deletes.contents(name, f"*, {LINEAGE}")
    deletes.rewrite(name)
    assert deletes.contents(name, f"*, {LINEAGE}") == lineage
    assert deletes.live(name) == {("PARQUET", 0): 2}


def test_metrics_and_columns_of_the_lineage_are_those_of_spark(deletes: Lake) -> None:
    ours, theirs = (deletes.table(3, SOME, name=name, partitioned=False) for name in ("ours", "theirs"))
    deletes.rewrite(ours)
    catalog = deletes.entry.name
    deletes.sql(
        f"CALL {catalog}.system.rewrite_data_files(table => 'db.theirs', options => map('rewrite-all', 'true'))", theirs
    )
    metrics = "record_count, value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds"
    text = f"SELECT {metrics} FROM {{t}}.files"  # noqa: S608 - a test
    (mine,), (his,) = (deletes.sql(text, name) for name in (ours, theirs))
    assert mine == his
    assert 2147483540 in mine["lower_bounds"]


@pytest.mark.parametrize("planned", ["after the next commit", "before the upgrade"])
def test_a_table_upgraded_from_version_2(deletes: Lake, planned: str) -> None:
    """The commit after the upgrade gives all rows their ids. Where it is ours, they keep when they were updated."""
    name = deletes.table(2, SOME)
    upgrade = "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')"
    if planned == "before the upgrade":
        spec = deletes.loop.claim(name)
        deletes.sql(upgrade, name)
    else:
        deletes.sql(upgrade, name)
        deletes.delete(name, "id % 10 = 4")  # vectors beside, and instead of, the position deletes
        spec = deletes.loop.claim(name)
    before, lineage = deletes.contents(name), deletes.contents(name, f"*, {LINEAGE}")
    added_by = {row["id"]: 1 + row["id"] // (2 * ROWS) for row in before}

    deletes.carry_out(spec)

    after = deletes.contents(name, f"*, {LINEAGE}")
    assert deletes.contents(name) == before
    assert deletes.live(name)["PUFFIN", 1] == 0
    assert (after == lineage) == (planned == "after the next commit")
    assert len({row["_row_id"] for row in after}) == before.total()
    assert {row["id"]: row["_last_updated_sequence_number"] for row in after} == added_by
    assert deletes.missing(name) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_w2_a_delete_that_comes_first_stands_and_the_rewrite_conflicts(deletes: Lake, version: int) -> None:
    name = deletes.table(version, SOME)
    spec = deletes.loop.claim(name)
    deletes.loop.before_commit = lambda: deletes.delete(name, "id IN (14, 15)")

    report = deletes.loop.attempt(spec)

    assert isinstance(report.result, Conflicted), report.result
    assert "ValidationException" in report.result.detail  # Iceberg's own, after all our looks
    assert [left.code for left in report.left] == ["conflict", "conflict"]
    assert deletes.loop.control.dispatcher.report(report).state is TaskState.SUPERSEDED
    assert sorted(row["id"] for row in deletes.contents(name)) == [
        row for row in range(FILES * ROWS) if row % 10 != 3 and row not in (14, 15)
    ]
    deletes.rewrite(name)
    assert {14, 15}.isdisjoint(row["id"] for row in deletes.contents(name))


@pytest.mark.parametrize("comes", ["before the work", "before the commit"])
def test_a_delete_on_one_group_leaves_the_others_to_be_committed(deletes: Lake, comes: str) -> None:
    """It stands, no row changes, the deletion vectors of the other group go, and only the first is planned again."""
    name = deletes.table(3)
    deletes.delete(name, "id % 10 IN (3, 4)")
    spec = deletes.loop.claim(name)
    assert len(spec.rewrite.groups) == 2
    (lost,) = [group for group in spec.rewrite.groups if '"c0"' in group.partition.values]

    def delete() -> None:
        deletes.delete(name, "id = 16")

    if comes == "before the work":
        delete()
    else:
        deletes.loop.before_commit = delete
    report = deletes.carry_out(spec)

    assert [(left.group_id, left.code) for left in report.left] == [(lost.group_id, "conflict")]
    assert [group.group_id for group in report.groups] == [
        group.group_id for group in spec.rewrite.groups if group != lost or comes == "before the commit"
    ]
    task = deletes.loop.control.tasks.get(spec.task_id)
    assert task.outcome is not None
    assert task.outcome.reason.text.endswith("; 1 met another commit and is planned again")
    kept = [row for row in range(FILES * ROWS) if row % 10 not in (3, 4) and row != 16]
    assert sorted(row["id"] for row in deletes.contents(name)) == kept
    assert deletes.missing(name) == []
    assert deletes.summary(name)[GROUPS_KEY] == str(1 - lost.group_id)

    deletes.loop.clock.ahead_ms += MONTH_MS
    again = deletes.loop.claim(name)
    assert [group.partition for group in again.rewrite.groups] == [lost.partition]
    deletes.carry_out(again)
    assert sorted(row["id"] for row in deletes.contents(name)) == kept
    assert deletes.by_duckdb(name) == deletes.by_pyiceberg(name) == plain(deletes.contents(name))


@pytest.mark.parametrize("version", VERSIONS)
def test_w2_a_delete_that_is_rolled_back_meanwhile_is_a_conflict(deletes: Lake, version: int) -> None:
    """The rewrite has folded it in, and all of its inputs are there: its rows would be lost."""
    name = deletes.table(version)
    before, snapshot_id = deletes.contents(name), current_snapshot_id(writer(deletes.entry).load_table(name.path))
    deletes.delete(name, "id % 10 = 3")
    spec = deletes.loop.claim(name)
    call = f"CALL {name.catalog}.system.rollback_to_snapshot('{'.'.join(name.path)}', {snapshot_id})"

    def roll_back() -> None:
        deletes.spark.sql(call).collect()

    deletes.loop.before_commit = roll_back
    report = deletes.loop.attempt(spec)

    assert isinstance(report.result, Conflicted), report.result
    assert deletes.contents(name) == before


@pytest.mark.parametrize("seed", range(24 if CAMPAIGN else 1))
def test_w2_no_history_of_statements_and_rewrites_changes_a_row(deletes: Lake, seed: int) -> None:
    """A statement is what it says, and a rewrite is nothing at all: whatever happened before it."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    version, partitioned = chance.choice([(2, True), (3, True), (2, False), (3, False)])
    name = deletes.table(version, partitioned=partitioned)
    statements = (
        "DELETE FROM {{t}} WHERE id % {a} = {b}",
        "UPDATE {{t}} SET id = id + 10000 WHERE id % {a} = {b}",
        "INSERT INTO {{t}} SELECT id + 20000, 'c0' FROM range({a}, {a} + {b} + 1)",
        "ALTER TABLE {{t}} SET TBLPROPERTIES ('write.delete.granularity' = '{granularity}')",
        "ALTER TABLE {{t}} SET TBLPROPERTIES ('format-version' = '3')",
    )
    for _ in range(12 if CAMPAIGN else 3):
        for text in chance.choices(statements, weights=(5, 3, 4, 1, 1), k=chance.randint(1, 3)):
            a = chance.randint(2, 40)
            granularity = chance.choice(["file", "partition"])
            deletes.sql(text.format(a=a, b=chance.randrange(a), granularity=granularity), name)
        version = max(version, SparkTable(deletes.spark, name).format_version)
        columns = f"*, {LINEAGE}" if version > 2 else "*"
        before = deletes.contents(name, columns)
        spec = deletes.loop.claim_if_any(name)
        if spec is not None:
            deletes.carry_out(spec)
            assert deletes.contents(name, columns) == before
            assert deletes.missing(name) == []
    assert deletes.by_duckdb(name) == plain(deletes.contents(name, "id, city"))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_delete_that_comes_second_fails_as_iceberg_says_and_nothing_is_lost(
    deletes: Lake, version: int, tmp_path: Path
) -> None:
    """It is of a snapshot whose files the rewrite replaced meanwhile; done again, it finds the new ones."""
    name, pause = deletes.table(version, SOME), Pause(tmp_path)
    before = deletes.contents(name)
    deletes.spark.udf.register("paused", pause, "boolean")
    errors: list[Exception] = []

    def delete() -> None:
        try:
            deletes.delete(name, "id = 14 AND paused(id)")
        except (Py4JJavaError, PySparkException) as error:
            errors.append(error)

    deleting = InheritableThread(target=delete)
    deleting.start()
    pause.asked(errors)
    deletes.rewrite(name)
    pause.end()
    deleting.join()

    assert "missing data files" in str(errors[0])
    assert deletes.contents(name) == before
    deletes.delete(name, "id = 14")
    assert deletes.contents(name) == Counter({row: count for row, count in before.items() if row["id"] != 14})


def changed(spec: TaskSpec, files: tuple[InputFile, ...]) -> TaskSpec:
    """The spec with other files in its first group."""
    first, *others = spec.rewrite.groups
    return replace(spec, action=replace(spec.rewrite, groups=(replace(first, files=files), *others)))


def _without_a_delete(spec: TaskSpec) -> TaskSpec:
    """As a planner would have it that forgot a delete file of the last data file."""
    group = spec.rewrite.groups[0]
    files = (*group.files[:-1], replace(group.files[-1], deletes=()))
    return changed(spec, files)


def _with_another_row_id(spec: TaskSpec) -> TaskSpec:
    first, *others = spec.rewrite.groups[0].files
    return changed(spec, (replace(first, first_row_id=(first.first_row_id or 0) + 1), *others))


def _with_another_sequence_number(spec: TaskSpec) -> TaskSpec:
    first, *others = spec.rewrite.groups[0].files
    return changed(spec, (replace(first, data_sequence_number=99), *others))


def _with_deletes_of_another_file(spec: TaskSpec) -> TaskSpec:
    first, second, *others = spec.rewrite.groups[0].files
    return changed(spec, (replace(first, deletes=second.deletes), replace(second, deletes=first.deletes), *others))


MISTAKES = {
    2: [_without_a_delete, _with_another_sequence_number],
    3: [
        _without_a_delete,
        _with_another_sequence_number,
        _with_another_row_id,
        _with_deletes_of_another_file,
    ],
}


@pytest.mark.parametrize("version", [2, 3])
def test_a_plan_that_differs_from_its_snapshot_is_a_conflict(deletes: Lake, version: int) -> None:
    """The job reads the manifests itself, and believes nothing of the plan."""
    name = deletes.table(version)
    deletes.delete(name, "id % 10 = 4")
    before = deletes.contents(name)
    spec = deletes.loop.claim(name)

    for mistake in MISTAKES[version]:
        report = deletes.loop.attempt(mistake(spec))
        assert isinstance(report.result, Conflicted), (mistake, report.result)
        assert "planned with" in report.result.detail

    deletes.carry_out(spec)
    assert deletes.contents(name) == before


def test_equality_deletes_are_refused_and_delete_files_elsewhere_are_no_matter(deletes: Lake) -> None:
    """Written by Java's own writer, since Spark writes none."""
    name = deletes.table(2)
    deletes.delete(name, "city = 'c1' AND id % 10 = 3")
    spec = deletes.loop.claim(name)
    c0, c1 = sorted(spec.rewrite.groups, key=lambda group: group.partition)
    assert (len(c0.delete_files) > 0, len(c1.delete_files) > 0) == (False, True)
    table = SparkTable(deletes.spark, name)
    for group in (c0, c1):  # those of other partitions never leave the JVM
        files = PartitionFiles(table, spec.rewrite.base_snapshot_id, {group.partition})
        found = files.delete_files({file.path for file in group.files}, since=0)
        assert {each.delete.path for each in found} == {delete.path for delete in group.delete_files}
    base = add_equality_delete(deletes.spark, name, c1.partition)

    def attempt(*groups: FileGroup) -> TaskReport:
        return deletes.loop.attempt(replace(spec, action=replace(spec.rewrite, base_snapshot_id=base, groups=groups)))

    report = attempt(c0, c1)
    assert isinstance(report.result, Failed), report.result
    assert (report.result.code, report.result.retryable) == ("unsupported", False)
    assert "equality deletes" in report.result.detail
    assert isinstance(attempt(c0).result, Committed)


def add_equality_delete(spark: SparkSession, name: TableName, partition: Partition) -> int:
    """An entry for a file of equality deletes; that there is no such file is noticed by readers only.

    Gives the snapshot's id.
    """
    table = SparkTable(spark, name)
    jvm = table.jvm
    builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.java.specs().get(partition.spec_id))
    gateway: Any = spark.sparkContext._gateway
    ids = gateway.new_array(jvm.int, 1)
    ids[0] = 1
    made = (
        builder.ofEqualityDeletes(ids)
        .withPath(f"{table.java.location()}/data/equality.parquet")
        .withFormat("parquet")
        .withPartition(table.partition_data(partition))
        .withFileSizeInBytes(100)
        .withRecordCount(1)
        .build()
    )
    table.java.newRowDelta().addDeletes(made).commit()
    return int(table.java.currentSnapshot().snapshotId())
