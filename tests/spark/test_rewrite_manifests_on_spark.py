"""Manifests rewritten on real Spark: nothing of a table changes but where its entries are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icewright.actions.rewrite_manifests.classes import known_classes
from icewright.core.errors import Conflict
from icewright.core.fault_points import Fault, arm
from icewright.model.actions.rewrite_manifests import ManifestClass, ManifestContent, RewriteManifestsRequest
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import Committed, Conflicted
from icewright.model.work.tasks import TaskState
from icewright_spark.actions import rewrite_manifests as job
from icewright_spark.iceberg.commits import manifests as commit_manifests
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.iceberg.manifest_entries import EntriesDigest, ManifestEntries
from icewright_spark.parquet.errors import ProofFailed
from tests.builders.deletions import Died
from tests.conftest import CAMPAIGN
from tests.spark.beginnings import Beginnings, Write
from tests.spark.loop import OPTIMIZER, SparkLoop
from tests.spark.manifest_plans import PILES_UP, ManifestLake, action_of, with_action
from tests.spark.tables import contents, local, missing_files, sql_name

pytestmark = pytest.mark.spark

Make = Callable[..., TableName]
CITIES = ("'Lima'", "'Oslo'", "NULL")


@pytest.fixture
def its_lake(spark: SparkSession, lake: CatalogEntry) -> ManifestLake:
    return ManifestLake(spark, lake)


@cache
def write(version: int, commits: int, properties: tuple[tuple[str, str], ...]) -> Write:
    """A table by city, with a file for each city in each commit."""

    def written(spark: SparkSession, name: TableName) -> None:
        mode = "copy-on-write" if version == 1 else "merge-on-read"
        said = {"format-version": str(version), "write.delete.mode": mode, **PILES_UP, **dict(properties)}
        text = ", ".join(f"'{key}' = '{value}'" for key, value in said.items())
        spark.sql(
            f"CREATE TABLE {sql_name(name)} (id BIGINT, city STRING) USING iceberg PARTITIONED BY (city) "
            f"TBLPROPERTIES ({text})"
        )
        for number in range(commits):
            insert(spark, name, range(number * 30, number * 30 + 30))

    return written


@pytest.fixture
def make(lake: CatalogEntry, beginnings: Beginnings) -> Make:
    """A table of so many commits, of format version 2 unless told otherwise."""

    def made(version: int = 2, name: str = "t", commits: int = 4, **properties: str) -> TableName:
        return beginnings.table(lake, write(version, commits, tuple(properties.items())), name)

    return made


def insert(spark: SparkSession, name: TableName, ids: Sequence[int]) -> None:
    cases = " ".join(f"WHEN id % 3 = {number} THEN {city}" for number, city in enumerate(CITIES))
    rows = f"SELECT id, CASE {cases} END FROM range({ids[0]}, {ids[-1] + 1})"  # noqa: S608 - a test
    spark.sql(f"INSERT INTO {sql_name(name)} {rows}")


@pytest.mark.parametrize("version", [1, 2, 3] if CAMPAIGN else [1, 3])
def test_w8_nothing_changes_but_where_entries_are(its_lake: ManifestLake, make: Make, version: int) -> None:
    """Several specs, partitions of NULL, deletes of the version, removed entries, a tag and a branch."""
    name = make(version)
    spark, table = its_lake.spark, sql_name(name)
    for gone in (3, 33, 63):
        spark.sql(f"DELETE FROM {table} WHERE id = {gone}")  # noqa: S608 - a test
    spark.sql(f"ALTER TABLE {table} CREATE TAG old")
    spark.sql(f"DELETE FROM {table} WHERE city = 'Oslo' AND id < 30")  # noqa: S608 - a test
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD city")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)")
    spark.sql(f"ALTER TABLE {table} CREATE BRANCH side")  # main leaves it behind, or it would be left alone
    for number in range(3):
        insert(its_lake.spark, name, range(1000 + 10 * number, 1000 + 10 * number + 6))
    rows, entries, refs = contents(spark, name), its_lake.entries(name), its_lake.refs(name)
    of_refs = [sorted(map(str, spark.table(f"{table}.{ref}").collect())) for ref in ("tag_old", "branch_side")]
    spec = its_lake.plan(name)
    assert len({manifest.belongs_to.spec_id for manifest in action_of(spec).manifests}) == 2
    if version > 1:
        assert any(manifest.belongs_to.content is ManifestContent.DELETES for manifest in action_of(spec).manifests)

    made = its_lake.carry_out(spec)

    assert isinstance(made.result, Committed)
    assert made.receipts[0].input_digest == made.receipts[0].output_digest
    assert 0 < made.figures[0].proof_cpu_ms < made.figures[0].cpu_ms
    assert made.driver_cpu_ms < made.figures[0].cpu_ms  # the rest is the JVM's
    assert contents(spark, name) == rows
    assert its_lake.entries(name) == entries
    assert its_lake.refs(name) == refs
    assert of_refs == [sorted(map(str, spark.table(f"{table}.{ref}").collect())) for ref in ("tag_old", "branch_side")]
    assert missing_files(spark, name) == []
    assert its_lake.problem(spec, made) is None
    left = spark.sql(f"SELECT * FROM {table}.manifests").count()  # noqa: S608 - a test
    assert left == len(its_lake.observe(name)[0].inventory.manifests)
    assert its_lake.decide(name).action is None
    # A writer goes on from there, and deletes still reach what they did.
    insert(its_lake.spark, name, range(2000, 2006))
    spark.sql(f"DELETE FROM {table} WHERE id IN (6, 1001)")  # noqa: S608 - a test
    assert contents(spark, name).total() == rows.total() + 6 - 2


@pytest.mark.parametrize("given_ids", ["before", "meanwhile"])
def test_v1_ids_that_rows_are_given_after_an_upgrade_stay_theirs(
    its_lake: ManifestLake, make: Make, given_ids: str
) -> None:
    """The first commit of data after an upgrade gives them, and may come while manifests are rewritten."""
    name = make()
    spark, table = its_lake.spark, sql_name(name)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '3')")
    spec = its_lake.plan(name)
    given: list[Counter[str]] = []

    def give_ids() -> None:
        insert(its_lake.spark, name, range(500, 506))
        given.append(contents(spark, name))

    if given_ids == "before":
        give_ids()
        assert isinstance(its_lake.carry_out(spec).result, Committed)
    else:
        with pytest.raises(Conflict, match="have no ids"):
            its_lake.carry_out(spec, give_ids)
        assert given == []
        give_ids()
        made = its_lake.carry_out(replace(spec, attempt=2))
        assert its_lake.problem(spec, made) is None
    assert contents(spark, name) == given[0]
    ids = [row[0] for row in spark.table(table).select("_row_id").collect()]
    assert None not in ids
    assert len(set(ids)) == len(ids)


def test_an_append_between_is_not_taken_for_a_copy_in_format_version_1(
    its_lake: ManifestLake, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = make(1)
    rows, spec, added = contents(its_lake.spark, name), its_lake.plan(name), commit_manifests._added

    def after_an_append(table: SparkTable, operation: Any) -> list[Any]:
        insert(its_lake.spark, name, range(500, 506))
        return added(table, operation)

    monkeypatch.setattr(commit_manifests, "_added", after_an_append)
    made = its_lake.carry_out(spec)
    assert its_lake.problem(spec, made) is None
    assert contents(its_lake.spark, name).total() == rows.total() + 6


WRITE = ManifestEntries.write


def twice(entries: ManifestEntries, writer: Any, chunk: Any, places: Sequence[int]) -> None:
    """One entry takes the place of another."""
    WRITE(entries, writer, chunk, [places[0], places[0], *places[2:]])


def one_fewer(entries: ManifestEntries, writer: Any, chunk: Any, places: Sequence[int]) -> None:
    """One entry is left out."""
    WRITE(entries, writer, chunk, places[1:])


def another_sequence_number(entries: ManifestEntries, writer: Any, chunk: Any, places: Sequence[int]) -> None:
    """One entry is said to be younger than it is."""
    WRITE(entries, writer, chunk, places[1:])
    file = entries._file.apply(chunk.get(places[0]))
    writer.existing(file, 77, file.dataSequenceNumber() + 1, file.fileSequenceNumber())


class TestFaults:
    """What a writer could do wrong is caught by the proof, and by the verifier where there were no proof."""

    @pytest.mark.parametrize("fault", [twice, another_sequence_number])
    def test_w8_entries_that_are_not_written_as_they_were_read(
        self, its_lake: ManifestLake, make: Make, monkeypatch: pytest.MonkeyPatch, fault: Any
    ) -> None:
        name = make()
        rows, spec = contents(its_lake.spark, name), its_lake.plan(name)
        monkeypatch.setattr(ManifestEntries, "write", fault)
        with pytest.raises(ProofFailed, match="those to be replaced"):
            its_lake.carry_out(spec)
        assert contents(its_lake.spark, name) == rows
        assert missing_files(its_lake.spark, name) == []

        monkeypatch.setattr(job, "check_entries", lambda _table, _moved: EntriesDigest())
        made = its_lake.carry_out(replace(spec, attempt=2))
        assert its_lake.problem(spec, made) is not None

    def test_w8_an_entry_that_is_left_out(
        self, its_lake: ManifestLake, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = make()
        rows, spec = contents(its_lake.spark, name), its_lake.plan(name)
        monkeypatch.setattr(ManifestEntries, "write", one_fewer)
        with pytest.raises(ProofFailed, match="existing ones were planned"):
            its_lake.carry_out(spec)
        assert contents(its_lake.spark, name) == rows

    def test_w8_entries_never_leave_their_spec(self, its_lake: ManifestLake, make: Make) -> None:
        name = make()
        its_lake.spark.sql(f"ALTER TABLE {sql_name(name)} DROP PARTITION FIELD city")
        spec = its_lake.plan(name)
        other = ManifestClass(1, ManifestContent.DATA)
        outputs = tuple(replace(output, belongs_to=other) for output in action_of(spec).outputs)
        with pytest.raises(ProofFailed, match="no place in any new manifest"):
            its_lake.carry_out(with_action(spec, outputs=outputs))
        inputs = tuple(replace(manifest, belongs_to=other) for manifest in action_of(spec).manifests)
        with pytest.raises(ProofFailed, match="is of spec 0"):
            its_lake.carry_out(with_action(spec, outputs=outputs, manifests=inputs))


class TestOthers:
    """Commits of others while the job runs."""

    def test_w9_an_append_is_no_conflict(self, its_lake: ManifestLake, make: Make) -> None:
        name = make()
        rows, spec = contents(its_lake.spark, name), its_lake.plan(name)
        made = its_lake.carry_out(spec, lambda: insert(its_lake.spark, name, range(500, 506)))
        assert isinstance(made.result, Committed)
        assert its_lake.problem(spec, made) is None
        assert contents(its_lake.spark, name).total() == rows.total() + 6
        assert missing_files(its_lake.spark, name) == []

    @pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
    def test_w2_a_delete_is_never_lost(self, its_lake: ManifestLake, make: Make, mode: str) -> None:
        """One that rewrites a planned manifest is a conflict; one that adds a delete file stays."""
        name = make(**{"write.delete.mode": mode})
        spark, spec, written = its_lake.spark, its_lake.plan(name), its_lake.entries(name)
        statement = f"DELETE FROM {sql_name(name)} WHERE id IN (1, 32)"  # noqa: S608 - a test

        def delete() -> None:
            spark.sql(statement)

        made = its_lake.carry_out(spec, delete)
        assert isinstance(made.result, Conflicted if mode == "copy-on-write" else Committed)
        ids = {row.id for row in spark.table(sql_name(name)).collect()}
        assert ids == set(range(120)) - {1, 32}
        assert missing_files(spark, name) == []
        assert all(local(path).exists() for path in made.figures[0].output_paths)
        assert written.total() == 12

    def test_l4_another_table_of_the_name(self, its_lake: ManifestLake, make: Make) -> None:
        name = make()
        spec = its_lake.plan(name)
        other = replace(spec, table_id=replace(spec.table_id, uuid="another"))
        with pytest.raises(Conflict, match="another table now"):
            its_lake.carry_out(other)

    def test_c1_whatever_comes_of_it_nothing_is_deleted(self, its_lake: ManifestLake, make: Make) -> None:
        """A refused commit leaves its manifests, and a second attempt finds the first one's commit in its way."""
        name = make()
        spec = its_lake.plan(name)
        first = its_lake.carry_out(spec)
        assert isinstance(first.result, Committed)
        with pytest.raises(Conflict, match="no longer a manifest of the table"):
            its_lake.carry_out(replace(spec, attempt=2))
        assert all(local(path).exists() for path in first.figures[0].output_paths)
        assert all(Path(local(manifest.path)).exists() for manifest in action_of(spec).manifests)
        assert SparkTable(its_lake.spark, name).snapshot_of_task(spec.task_id, 1) == first.result.snapshot_id


def test_w8_w11_wherever_the_job_dies_the_next_attempt_finds_a_whole_table(
    its_lake: ManifestLake, make: Make, dying_at: Callable[[Fault], None]
) -> None:
    name = make()
    rows, entries, spec = contents(its_lake.spark, name), its_lake.entries(name), its_lake.plan(name)
    points = (
        Fault.MANIFESTS_BEFORE,
        Fault.MANIFESTS_AFTER,
        Fault.COMMIT_PREPARED,
        Fault.COMMIT_BEFORE,
        Fault.COMMIT_AFTER,
    )
    for attempt, point in enumerate(points, 1):
        dying_at(point)
        with pytest.raises(Died):
            its_lake.carry_out(replace(spec, attempt=attempt))
        assert its_lake.entries(name) == entries
        made = SparkTable(its_lake.spark, name).snapshot_of_task(spec.task_id)
        assert (made is not None) is (point is Fault.COMMIT_AFTER)
    arm(None)
    assert contents(its_lake.spark, name) == rows
    assert missing_files(its_lake.spark, name) == []
    with pytest.raises(Conflict, match="no longer a manifest of the table"):
        its_lake.carry_out(replace(spec, attempt=9))


def test_from_what_is_asked_for_to_verified(its_lake: ManifestLake, make: Make) -> None:
    name = make()
    rows, loop = contents(its_lake.spark, name), SparkLoop(its_lake.spark, its_lake.entry)
    plan = loop.control.maintainer.plan_asked(name, RewriteManifestsRequest())
    loop.control.dispatcher.apply(plan.plan_id)
    spec = loop.control.dispatcher.claim(OPTIMIZER)
    assert spec is not None
    report = loop.attempt(spec)
    task = loop.verified(report)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert task.outcome is not None
    assert task.outcome.reason.figures["manifests_replaced"] == 4
    assert report.receipts[0].method == "manifest-entries-sha256"
    (figures,) = report.groups
    assert 0 < figures.proof_cpu_ms < figures.cpu_ms <= report.cpu_ms
    assert contents(its_lake.spark, name) == rows


def test_a_query_opens_no_more_manifests_than_after_icebergs_own_action(its_lake: ManifestLake, make: Make) -> None:
    target = {"commit.manifest.target-size-bytes": "16384"}
    ours, theirs = make(2, "ours", 9, **target), make(2, "theirs", 9, **target)
    its_lake.carry_out(its_lake.plan(ours))
    call = f"CALL {its_lake.entry.name}.system.rewrite_manifests(table => 'db.theirs', use_caching => false)"
    its_lake.spark.sql(call).collect()

    def opened(name: TableName) -> tuple[int, float]:
        observation, summaries = its_lake.observe(name)
        (only,) = known_classes(observation.metadata, summaries)
        return only.opened(manifest.mask for manifest in only.manifests)

    assert opened(ours) <= opened(theirs)
    assert opened(ours)[1] < 9
