"""The whole loop on tables that Spark deleted rows from: what the planner reads of real manifests, and what follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest
from pyspark.sql import Row, SparkSession

from icewright.model.actions.actions import Executor, FileGroup, InputFile
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.files import DeleteFile
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Plan
from icewright.model.work.tasks import TaskState
from icewright_spark.iceberg.java_api import SparkTable
from tests.conftest import CAMPAIGN
from tests.lakes.deletes import delete_where_equal
from tests.spark.beginnings import Beginnings, Write
from tests.spark.hand_planned import hand_planned
from tests.spark.loop import SparkLoop
from tests.spark.tables import sql_name

pytestmark = pytest.mark.spark

FILES, ROWS = 6, 40
LINEAGE = "id, _row_id, _last_updated_sequence_number"


@dataclass
class Table:
    """A table of six files under the loop's care."""

    loop: SparkLoop
    name: TableName

    def sql(self, text: str) -> list[Row]:
        return list(self.loop.spark.sql(text.format(t=sql_name(self.name))).collect())

    def contents(self, columns: str = "*") -> Counter[Row]:
        """The rows, read from bytes."""
        return Counter(self.sql(f"SELECT {columns} FROM {{t}}"))  # noqa: S608 - a test

    def plan(self) -> Plan:
        return self.loop.control.maintainer.look(self.name, plan_anew=True).plan

    def append(self, number: int) -> None:
        append(self.loop.spark, self.name, number)


def append(spark: SparkSession, name: TableName, number: int) -> None:
    """A file of its own."""
    ids = spark.range(number * ROWS, (number + 1) * ROWS)
    ids.selectExpr("CAST(id AS int) AS id").coalesce(1).writeTo(sql_name(name)).append()


@cache
def write(version: int) -> Write:
    """Six files, each by a commit."""

    def written(spark: SparkSession, name: TableName) -> None:
        spark.sql(
            f"CREATE TABLE {sql_name(name)} (id int) USING iceberg TBLPROPERTIES ('format-version' = '{version}', "
            "'write.delete.mode' = 'merge-on-read', 'icewright.ignore-other-optimizers' = 'true')"
        )
        for number in range(FILES):
            append(spark, name, number)

    return written


@pytest.fixture
def table_of(spark: SparkSession, lake: CatalogEntry, beginnings: Beginnings) -> Callable[[int], Table]:
    """A table of this format version."""
    return lambda version: Table(SparkLoop(spark, lake), beginnings.table(lake, write(version)))


def told(groups: tuple[FileGroup, ...]) -> dict[str, tuple[int, int | None, frozenset[tuple[object, ...]]]]:
    """What a plan says of each file and of its deletes."""
    return {
        file.path: (file.data_sequence_number, file.first_row_id, _deletes(group, file))
        for group in groups
        for file in group.files
    }


def _deletes(group: FileGroup, file: InputFile) -> frozenset[tuple[object, ...]]:
    return frozenset(_fact(group.delete_files[number]) for number in file.deletes)


def _fact(delete: DeleteFile) -> tuple[object, ...]:
    return (
        delete.path,
        delete.content_offset,
        delete.content_size_bytes,
        delete.record_count,
        delete.data_sequence_number,
    )


@pytest.mark.parametrize("version", [2, 3] if CAMPAIGN else [2])
def test_deletes_are_planned_folded_in_and_verified(
    spark: SparkSession, table_of: Callable[[int], Table], version: int
) -> None:
    table = table_of(version)
    table.sql("DELETE FROM {t} WHERE id % 10 = 3")
    table.sql("DELETE FROM {t} WHERE id < 15")
    table.append(FILES)
    before = table.contents(), None if version == 2 else table.contents(LINEAGE)
    (action,) = table.plan().rewrites
    planned, by_hand = told(action.groups), told(hand_planned(spark, table.name).rewrite.groups)
    assert planned.keys() == by_hand.keys()
    for path, (number, first_row_id, deletes) in planned.items():
        # By hand nothing is told by the bounds of paths, which is how version 2 says that deletes are for one file.
        assert (number, first_row_id) == by_hand[path][:2]
        assert deletes == by_hand[path][2] if version > 2 else deletes <= by_hand[path][2]
    assert sum(len(file.deletes) for group in action.groups for file in group.files) >= FILES

    task = table.loop.rewrite(table.name)

    assert task.outcome is not None
    assert (task.state, task.outcome.reason.code) == (TaskState.SUCCEEDED, "verified"), task.outcome
    assert task.outcome.reason.figures["deleted_records"] == (FILES * ROWS) // 10 + 13
    assert before == (table.contents(), None if version == 2 else table.contents(LINEAGE))
    assert [row[0] for row in table.sql("SELECT count(*) FROM {t}.data_files")] == [1]
    # Vectors go with their files; position deletes that are older than all data Iceberg drops with any commit.
    assert table.sql("SELECT * FROM {t}.delete_files") == []
    assert table.plan().is_empty


def test_an_upgraded_table_has_row_ids_from_its_next_commit_on(
    spark: SparkSession, table_of: Callable[[int], Table]
) -> None:
    table = table_of(2)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')")
    (verdict,) = table.plan().verdicts
    assert verdict.reason.code == "no-row-ids"
    table.append(FILES)
    (action,) = table.plan().rewrites
    planned = told(action.groups)
    assert planned == told(hand_planned(spark, table.name).rewrite.groups)
    firsts = {first for _, first, _ in planned.values()}
    assert firsts == {ROWS * number for number in range(FILES + 1)}
    before = table.contents(LINEAGE)
    assert table.loop.rewrite(table.name).state is TaskState.SUCCEEDED
    assert table.contents(LINEAGE) == before


def test_a_file_with_many_deletes_is_rewritten_alone(table_of: Callable[[int], Table]) -> None:
    table = table_of(3)
    assert table.loop.rewrite(table.name).state is TaskState.SUCCEEDED
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.target-file-size-bytes' = '1')")
    table.loop.clock.ahead_ms = 0
    table.sql("DELETE FROM {t} WHERE id % 4 = 0")
    table.loop.clock.ahead_ms = 2 * 3_600_000
    assert [verdict.reason.code for verdict in table.plan().verdicts] == ["few-deletes"]
    table.sql("DELETE FROM {t} WHERE id % 4 = 1")
    table.loop.clock.ahead_ms = 4 * 3_600_000
    before = table.contents(LINEAGE)
    plan = table.plan()
    assert plan.reason.code == "deletes", plan.verdicts
    task = table.loop.rewrite(table.name)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert table.contents(LINEAGE) == before
    assert table.sql("SELECT * FROM {t}.delete_files") == []


def test_equality_deletes_are_staged_and_verified(spark: SparkSession, table_of: Callable[[int], Table]) -> None:
    table = table_of(2)
    delete_where_equal(spark, SparkTable(spark, table.name).java, [{"id": 3}, {"id": 77}])
    table.append(FILES)
    before = table.contents()
    plan = table.plan()
    (action,) = plan.rewrites
    assert [group.executor for group in action.groups] == [Executor.STAGED]
    assert plan.verdicts[0].reason.text.endswith("equality deletes apply to it, which a merge cannot do")
    task = table.loop.rewrite(table.name)
    assert task.outcome is not None
    assert (task.state, task.outcome.reason.code) == (TaskState.SUCCEEDED, "verified"), task.outcome
    assert task.outcome.reason.figures["deleted_records"] == 2
    assert table.contents() == before
    assert table.plan().is_empty
