"""Data that expires on real Spark: exactly the planned files go, whatever others do meanwhile, and a tag keeps them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import Conflict
from icewright.core.fault_points import Fault, arm
from icewright.model.actions.expire_data import TAG_AGE_MS, ExpireData, ExpireDataRequest, tag_of
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import Committed, Conflicted, TaskSpec
from icewright.model.work.tasks import TaskState
from icewright_spark.actions.done import Done
from icewright_spark.actions.expire_data import expire_data
from icewright_spark.actions.phase import Phase
from icewright_spark.iceberg.commits import data as commit_data
from icewright_spark.iceberg.commits.commit import make_tag
from icewright_spark.iceberg.java_api import SparkTable
from tests.builders.deletions import Died
from tests.conftest import CAMPAIGN
from tests.spark.beginnings import Beginnings, Write
from tests.spark.loop import SparkLoop
from tests.spark.tables import contents, missing_files, sql_name

pytestmark = pytest.mark.spark

OWNER = {
    "icewright.expire-data.field": "at",
    "icewright.expire-data.older-than": "P30D",
    "icewright.expire-data.time-zone": "America/New_York",
}
Make = Callable[..., TableName]
OLD = ("2020-02-28 23:59:59", "2020-02-29 00:00:00", "2021-07-01 12:00:00")


@pytest.fixture
def loop(spark: SparkSession, lake: CatalogEntry) -> SparkLoop:
    made = SparkLoop(spark, lake)
    made.clock.ahead_ms = 0
    return made


@cache
def write(version: int) -> Write:
    """A table by day, with a file of each of three old days, and many rows of today."""

    def written(spark: SparkSession, name: TableName) -> None:
        mode = "copy-on-write" if version == 1 else "merge-on-read"
        said = {"format-version": str(version), "write.delete.mode": mode, **OWNER}
        text = ", ".join(f"'{key}' = '{value}'" for key, value in said.items())
        spark.sql(
            f"CREATE TABLE {sql_name(name)} (id BIGINT, at TIMESTAMP) USING iceberg PARTITIONED BY (days(at)) "
            f"TBLPROPERTIES ({text})"
        )
        values = ", ".join(f"({number}, TIMESTAMP '{at} UTC')" for number, at in enumerate(OLD * 2))
        spark.sql(f"INSERT INTO {sql_name(name)} VALUES {values}")  # noqa: S608 - a test
        spark.sql(f"INSERT INTO {sql_name(name)} SELECT id + 100, current_timestamp() FROM range(100)")  # noqa: S608 - a test

    return written


@pytest.fixture
def make(lake: CatalogEntry, beginnings: Beginnings) -> Make:
    """A table of this format version, 2 unless told otherwise."""
    return lambda version=2: beginnings.table(lake, write(version))


def insert(loop: SparkLoop, name: TableName, rows: str) -> None:
    loop.spark.sql(f"INSERT INTO {sql_name(name)} {rows}")


def run(loop: SparkLoop, name: TableName, statement: str) -> None:
    loop.spark.sql(statement.format(sql_name(name)))


def claim(loop: SparkLoop, name: TableName) -> TaskSpec:
    return loop.claim_asked(name, ExpireDataRequest())


def action_of(spec: TaskSpec) -> ExpireData:
    assert isinstance(spec.action, ExpireData)
    return spec.action


def carry_out(loop: SparkLoop, spec: TaskSpec, may_commit: Callable[[], None] = lambda: None, **more: Any) -> Done:
    table = SparkTable(loop.spark, spec.table_name)
    return expire_data(table, spec, action_of(spec), Phase(1), may_commit, **more)


def tags(loop: SparkLoop, name: TableName) -> dict[str, int]:
    """The tags of a table and the snapshots that they are at."""
    metadata = PyIcebergCatalog(loop.entry).load(name)
    return {ref.name: ref.snapshot_id for ref in metadata.refs if ref.name != "main"}


def tagged(loop: SparkLoop, name: TableName, tag: str) -> list[str]:
    """All rows as of a tag, read from bytes."""
    found = loop.spark.sql(f"SELECT * FROM {sql_name(name)} VERSION AS OF '{tag}'")  # noqa: S608 - a test
    return sorted(str(row) for row in found.collect())


@pytest.mark.parametrize("version", [1, 2, 3] if CAMPAIGN else [2, 3])
def test_x1_x2_i5_exactly_the_plan_from_what_is_asked_for_to_verified(
    loop: SparkLoop, make: Make, version: int
) -> None:
    """Several specs, deletes of the version in old and young partitions, no value, and an append right before."""
    name = make(version)
    run(loop, name, "DELETE FROM {} WHERE id IN (0, 100)")
    run(loop, name, "ALTER TABLE {} REPLACE PARTITION FIELD at_day WITH months(at)")
    insert(loop, name, "VALUES (50, TIMESTAMP '2020-03-31 23:59:59 UTC'), (51, NULL)")
    rows = sorted(str(row) for row in loop.spark.table(sql_name(name)).collect())
    stays = contents(loop.spark, name)
    spec = claim(loop, name)
    assert len(action_of(spec).partitions) == 4
    late = "VALUES (77, TIMESTAMP '2020-03-01 00:00:00 UTC')"
    loop.before_commit = lambda: insert(loop, name, late)

    report = loop.attempt(spec)

    assert isinstance(report.result, Committed), report.result
    task = loop.verified(report)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    ids = {row.id for row in loop.spark.table(sql_name(name)).collect()}
    assert ids == {51, 77, *range(101, 200)}
    left = contents(loop.spark, name)
    assert {row for row in left if "id=77" not in row} <= set(stays)
    assert missing_files(loop.spark, name) == []
    assert tagged(loop, name, tag_of(spec.task_id)) == rows
    tag = SparkTable(loop.spark, name).java.refs().get(tag_of(spec.task_id))
    assert tag.maxRefAgeMs() >= TAG_AGE_MS
    # A writer goes on, and what came late expires the next time.
    insert(loop, name, "SELECT id + 900, current_timestamp() FROM range(3)")
    (again,) = loop.control.maintainer.plan_asked(name, ExpireDataRequest()).actions
    assert isinstance(again, ExpireData)
    assert [each.records for each in again.partitions] == [1]


class TestOthers:
    """Commits of others while the job runs."""

    def test_w2_a_planned_file_that_somebody_rewrites_is_a_conflict(self, loop: SparkLoop, make: Make) -> None:
        name = make(1)
        spec = claim(loop, name)
        made = carry_out(loop, spec, once(lambda: run(loop, name, "DELETE FROM {} WHERE id = 0")))
        assert isinstance(made.result, Conflicted)
        assert {row.id for row in loop.spark.table(sql_name(name)).collect()} == {*range(1, 6), *range(100, 200)}
        assert missing_files(loop.spark, name) == []

    def test_w2_iceberg_validates_that_files_are_there_as_well(
        self, loop: SparkLoop, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where our own look were left out, it is a conflict all the same."""
        name = make(1)
        spec = claim(loop, name)
        monkeypatch.setattr(commit_data, "gone_files", lambda _action, _found: [])
        made = carry_out(loop, spec, once(lambda: run(loop, name, "DELETE FROM {} WHERE id = 0")))
        assert isinstance(made.result, Conflicted)
        assert "Missing required files to delete" in made.result.detail
        assert {row.id for row in loop.spark.table(sql_name(name)).collect()} == {*range(1, 6), *range(100, 200)}

    def test_another_tag_of_the_name_is_a_conflict(self, loop: SparkLoop, make: Make) -> None:
        name = make()
        spec = claim(loop, name)
        first = PyIcebergCatalog(loop.entry).load(name).snapshots[0].snapshot_id
        run(loop, name, f"ALTER TABLE {{}} CREATE TAG `{tag_of(spec.task_id)}` AS OF VERSION {first}")
        rows = contents(loop.spark, name)
        with pytest.raises(Conflict, match="at another snapshot"):
            carry_out(loop, spec)
        assert contents(loop.spark, name) == rows

    def test_i12_the_tag_of_an_attempt_long_ago_stays_as_long_as_a_new_one(self, loop: SparkLoop, make: Make) -> None:
        name = make()
        spec = claim(loop, name)
        table, tag = SparkTable(loop.spark, name), tag_of(spec.task_id)
        make_tag(table, tag, action_of(spec).base_snapshot_id, TAG_AGE_MS // 8, lambda: None)
        assert isinstance(carry_out(loop, spec).result, Committed)
        table.refresh()
        assert table.java.refs().get(tag).maxRefAgeMs() >= TAG_AGE_MS
        assert tags(loop, name) == {tag: action_of(spec).base_snapshot_id}

    def test_l4_x1_another_table_and_another_clock(self, loop: SparkLoop, make: Make) -> None:
        name = make()
        spec = claim(loop, name)
        with pytest.raises(Conflict, match="another table now"):
            carry_out(loop, replace(spec, table_id=replace(spec.table_id, uuid="another")))
        behind = action_of(spec).as_of / 1000 - 120
        with pytest.raises(Conflict, match="one of two clocks is wrong"):
            carry_out(loop, spec, clock=lambda: behind)
        assert tags(loop, name) == {}


def once(act: Callable[[], None]) -> Callable[[], None]:
    """Does it the first time that it is called."""
    left = [act]
    return lambda: left.pop()() if left else None


def test_w11_c1_wherever_the_job_dies_the_next_attempt_finds_a_whole_table(
    loop: SparkLoop, make: Make, dying_at: Callable[[Fault], None]
) -> None:
    name = make()
    rows, spec = contents(loop.spark, name), claim(loop, name)
    points = (
        Fault.DATA_CHECKED,
        Fault.DATA_TAG_BEFORE,
        Fault.DATA_TAG_AFTER,
        Fault.COMMIT_PREPARED,
        Fault.COMMIT_BEFORE,
        Fault.COMMIT_AFTER,
    )
    for attempt, point in enumerate(points, 1):
        assert contents(loop.spark, name) == rows
        dying_at(point)
        with pytest.raises(Died):
            carry_out(loop, replace(spec, attempt=attempt))
        before_tag = point in points[:2]
        assert tags(loop, name) == ({} if before_tag else {tag_of(spec.task_id): action_of(spec).base_snapshot_id})
    arm(None)
    assert {row.id for row in loop.spark.table(sql_name(name)).collect()} == set(range(100, 200))
    assert missing_files(loop.spark, name) == []
    with pytest.raises(Conflict, match="no longer in the table as it was planned"):
        carry_out(loop, replace(spec, attempt=9))
