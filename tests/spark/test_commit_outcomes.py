"""Every outcome of a commit against every answer that may come back, by Iceberg's REST client on real Spark.

Applied or dropped, times fourteen answers. In each cell the table is readable and has its rows once, our result is true
of it, and nothing that was written is deleted. What the client itself does with an answer (it repeats a commit that
was answered 503, and one that was answered 409 after looking) is part of the cell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from icewright.model.actions.actions import FileGroup, InputFile, RewriteDataFiles
from icewright.model.actions.compute_statistics import ComputeStatistics, StatisticsColumn
from icewright.model.actions.rewrite_manifests import (
    InputManifest,
    ManifestCause,
    ManifestClass,
    ManifestContent,
    OutputManifest,
    RewriteManifests,
    Share,
)
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TASK_ID_KEY
from icewright.model.work.jobs import Committed, CommitUnknown, Conflicted, Result, TaskSpec
from icewright_spark.actions.compute_statistics import compute_statistics
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.rewrite_data_files import merge_jobs, merged_outputs, proof_of
from icewright_spark.actions.rewrite_manifests import rewrite_manifests
from icewright_spark.executors.merge.merge import merge_group
from icewright_spark.iceberg.commits.commit import CommitResult, commit_rewrite
from icewright_spark.iceberg.java_api import SparkTable
from tests.builders.specs import first_attempt
from tests.lakes.sqlite import SCHEMA, files_of, rows
from tests.readers.duck import duckdb_with_iceberg
from tests.servers.fault_proxy import Answer, Cell, FaultProxy
from tests.servers.rest import RestCatalogServer

pytestmark = pytest.mark.spark

CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))
CATALOG, NAMESPACE = "outcomes", "commit_outcomes"
ROWS = 30
CELLS: list[tuple[Answer, bool, bool]] = [
    (answer, applied, always)
    for always in ((False, True) if CAMPAIGN else (False,))
    for answer in Answer
    for applied in (True, False)
    if answer is not Answer.KILLED  # tests/e2e/test_kill_matrix.py
]
"""Each with the first commit befallen; in the campaign also with every one, should the client or we try again."""


@dataclass(frozen=True)
class Rig:
    """Spark reaches the catalog through the proxy, everybody else directly."""

    spark: SparkSession
    proxy: FaultProxy
    catalog: Catalog


@pytest.fixture(scope="module")
def rig(spark: SparkSession, rest_catalog: RestCatalogServer) -> Iterator[Rig]:
    proxy = FaultProxy(rest_catalog.port)
    entry = CatalogEntry(CATALOG, CatalogKind.REST, proxy.uri, "")
    impatient = {f"spark.sql.catalog.{CATALOG}.rest.client.socket-timeout-ms": "1500"}
    for key, value in {**entry.spark_properties(), **impatient}.items():
        spark.conf.set(key, value)
    catalog = load_catalog(CATALOG, type="rest", uri=rest_catalog.uri)
    catalog.create_namespace(NAMESPACE)
    try:
        yield Rig(spark, proxy, catalog)
    finally:
        proxy.close()


def make_table(rig: Rig, name: str) -> Table:
    """A table of two small files."""
    table = rig.catalog.create_table((NAMESPACE, name), SCHEMA)
    for first in range(0, ROWS, 15):
        table.append(rows(range(first, first + 15)))
    return table.refresh()


def spec_of(table: Table) -> TaskSpec:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    files = tuple(
        InputFile(task.file.file_path, task.file.file_size_in_bytes, task.file.record_count, 1)
        for task in table.scan().plan_files()
    )
    group = FileGroup(0, Partition(0, "[]"), "", files)
    action = RewriteDataFiles(snapshot.snapshot_id, table.schema().schema_id, (group,), 1 << 29)
    name = TableName(CATALOG, (NAMESPACE,), table.name()[-1])
    return first_attempt(name, str(table.metadata.table_uuid), action, f"task-{name.name}")


def commit(rig: Rig, spec: TaskSpec, cell: Cell) -> tuple[CommitResult, list[str]]:
    """Merge as the job does, commit into the cell; the result, and the files written."""
    table = SparkTable(rig.spark, spec.table_name)
    results = [merge_group(job) for job in merge_jobs(rig.spark, table, spec)]
    outputs = merged_outputs(table, spec.rewrite, results)
    receipts = [result.receipt for result in results]
    rig.proxy.cell = cell
    try:
        result = commit_rewrite(
            table,
            spec,
            outputs,
            proof=lambda _group_ids: proof_of(receipts),
            format_version=2,
            may_commit=lambda: None,
            pause=lambda _s: None,
        ).result
    finally:
        rig.proxy.cell = None
    return result, [output.path for output in outputs]


def is_there(path: str) -> bool:
    return Path(urlsplit(path).path).is_file()


def check(rig: Rig, spec: TaskSpec, result: Result, written: list[str]) -> None:
    """What must hold in every cell."""
    table = rig.catalog.load_table((NAMESPACE, spec.table_name.name))
    assert [path for path in (*files_of(table), *written) if not is_there(path)] == []
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(ROWS))
    found = duckdb_with_iceberg().execute("SELECT id FROM iceberg_scan(?) ORDER BY id", [table.metadata_location])
    assert [row[0] for row in found.fetchall()] == list(range(ROWS))

    signed = [s for s in table.metadata.snapshots if s.summary and s.summary[TASK_ID_KEY] == spec.task_id]
    assert len(signed) <= 1
    match result:
        case Committed(snapshot_id):
            assert [s.snapshot_id for s in signed] == [snapshot_id]
        case Conflicted():
            assert signed == []
        case CommitUnknown():
            pass


@pytest.mark.parametrize(
    ("answer", "applied", "always"),
    CELLS,
    ids=[
        f"{answer}, {'applied' if applied else 'dropped'}{', always' if always else ''}"
        for answer, applied, always in CELLS
    ],
)
def test_c1_c2_w6_our_result_is_true_of_the_table(rig: Rig, answer: Answer, applied: bool, always: bool) -> None:  # noqa: FBT001 - a cell
    spec = spec_of(make_table(rig, f"t{CELLS.index((answer, applied, always))}"))
    cell = Cell(answer, applied=applied, always=always)
    result, written = commit(rig, spec, cell)
    assert cell.met >= 1
    check(rig, spec, result, written)
    if applied:
        assert isinstance(result, Committed)


def manifests_of(table: Table) -> RewriteManifests:
    """All manifests of a table are to become one."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    its = ManifestClass(0, ManifestContent.DATA)
    found = tuple(
        InputManifest(each.manifest_path, each.manifest_length, each.added_snapshot_id or 0, its, 1, 0)
        for each in snapshot.manifests(table.io)
    )
    outputs = (OutputManifest(its, (Share("[]", len(found)),)),)
    return RewriteManifests(snapshot.snapshot_id, (ManifestCause.MANY_SMALL,), found, outputs, 8 << 20)


@pytest.mark.parametrize(
    ("answer", "applied"),
    [(Answer.CONFLICT, True), (Answer.RESET_AFTER_SEND, True), (Answer.INTERNAL, False), (Answer.CONFLICT, False)],
)
def test_c1_our_result_of_rewritten_manifests_is_true(rig: Rig, answer: Answer, applied: bool) -> None:  # noqa: FBT001 - a cell
    table = make_table(rig, f"m{answer.name.lower()}{int(applied)}")
    action, spec = manifests_of(table), spec_of(table)
    cell = Cell(answer, applied=applied)

    def befall() -> None:
        rig.proxy.cell = cell

    try:
        made = rewrite_manifests(
            SparkTable(rig.spark, spec.table_name), replace(spec, action=action), action, Phase(1), befall
        )
    finally:
        rig.proxy.cell = None
    assert cell.met >= 1
    check(rig, spec, made.result, list(made.figures[0].output_paths))
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    if isinstance(made.result, Committed):
        assert [each.manifest_path for each in snapshot.manifests(table.io)] == list(made.figures[0].output_paths)
    if applied:
        assert isinstance(made.result, Committed)


@pytest.mark.parametrize(
    ("answer", "applied"),
    [(Answer.CONFLICT, True), (Answer.RESET_AFTER_SEND, True), (Answer.INTERNAL, False), (Answer.CONFLICT, False)],
)
def test_c1_our_result_of_statistics_is_true(rig: Rig, answer: Answer, applied: bool) -> None:  # noqa: FBT001 - a cell
    table = make_table(rig, f"s{answer.name.lower()}{int(applied)}")
    spec, cell = spec_of(table), Cell(answer, applied=applied)
    columns = tuple(
        StatisticsColumn(field.field_id, field.name) for field in table.schema().fields if field.name == "id"
    )
    location, base = table.metadata_location, spec.rewrite.base_snapshot_id
    action = ComputeStatistics(base, location, table.schema().schema_id, columns, ROWS)
    spec = replace(spec, action=action)

    def befall() -> None:
        rig.proxy.cell = cell if cell.met == 0 else None

    try:
        java = SparkTable(rig.spark, spec.table_name)
        made = compute_statistics(rig.spark, java, spec, action, Phase(1), befall)
    finally:
        rig.proxy.cell = None
    assert cell.met >= 1
    table = rig.catalog.load_table((NAMESPACE, spec.table_name.name))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(ROWS))
    assert all(is_there(path) for path in made.figures[0].output_paths)
    assert len(table.metadata.snapshots) == ROWS // 15
    listed = [(one.snapshot_id, one.statistics_path) for one in table.metadata.statistics]
    match made.result:
        case Committed():
            assert listed == [(base, made.figures[0].output_paths[0])]
            assert table.metadata.statistics[0].blob_metadata[0].properties == {"ndv": str(ROWS)}
        case Conflicted():
            assert listed == []
        case CommitUnknown():
            assert not applied
    if applied:
        assert isinstance(made.result, Committed)
