"""The benchmark of many tables works from end to end with a real server, and counts only what it can vouch for."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from benchmarks import b7
from benchmarks.lake import Mismatch
from benchmarks.many_tables import NAMESPACE, Commit, Kind, ManyTables, Pointers
from benchmarks.results import dumps, loads
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.inventory.arithmetic import recompute
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Operation

KINDS = (Kind("few files", 2, 2, 3), Kind("more files", 1, 4, 12))


def lake(folder: Path, seed: int = 1) -> ManyTables:
    tables = ManyTables(folder, KINDS, 6, seed)
    tables.write(["one", "other"])
    return tables


def test_the_short_form_runs_and_judges_every_target(tmp_path: Path) -> None:
    said: list[str] = []
    result = b7.run(tmp_path, b7.short(seed=3), said.append)
    assert loads(dumps(result)) == result
    assert {(case.case, case.metric) for case in result.cases if case.met is not None} == {
        ("all", "cpu_ratio"),
        ("all", "lag p99, s"),
        ("all", "memory of our server, GiB"),
    }
    by_case = {(case.case, case.metric): case for case in result.cases}
    assert 0 < by_case["all", "lag p50, s"].value <= by_case["all", "lag p99, s"].value
    assert by_case["all", "memory of our server, GiB"].value > 0.01
    assert sum("what PyIceberg counts" in line for line in said) == 2


def test_an_inventory_that_is_wrong_does_not_count() -> None:
    name = TableName("many", ("lake",), "t")
    told = [{"path": f"day=2026-01-0{day}", "data_files": 2, "records": 30, "size_bytes": 400} for day in (1, 2)]
    counted = [
        {
            "partition": {"day": date(2026, 1, day)},
            "file_count": 2,
            "record_count": 30,
            "total_data_file_size_in_bytes": 400,
        }
        for day in (1, 2)
    ]
    b7.check_inventory(name, told, counted)
    for wrong in ([told[0]], [*told, {**told[0], "path": "day=2026-01-03"}], [told[0], {**told[1], "records": 31}]):
        with pytest.raises(Mismatch, match="1 partitions differ from what PyIceberg counts"):
            b7.check_inventory(name, wrong, counted)


def test_two_readers_agree_on_what_was_made_up(tmp_path: Path) -> None:
    """Appends, late data and removals, read by PyIceberg and by icewright's own reader after each commit."""
    tables = lake(tmp_path)
    entry = tables.entry("one")
    theirs, ours, pointers = (
        SqlCatalog(entry.name, **entry.pyiceberg_properties()),
        PyIcebergCatalog(entry),
        Pointers(entry),
    )
    operations = set()
    for commit in (commit for kind in KINDS for commit in tables.commits(kind, 25)):
        pointers.swap(commit)
        metadata = ours.load(commit.name)
        snapshot = metadata.current_snapshot
        assert snapshot is not None
        assert snapshot.snapshot_id == commit.snapshot_id
        assert metadata.table_id.uuid == commit.table_uuid
        operations.add(snapshot.operation)
        summaries = ours.summarize(metadata, snapshot, ours.manifests(metadata, snapshot))
        counted = theirs.load_table((NAMESPACE, commit.name.name)).inspect.partitions().to_pylist()
        assert {p.path: (p.counts.data_files, p.counts.records) for p in recompute(metadata, summaries)} == {
            f"day={row['partition']['day'].isoformat()}": (row["file_count"], row["record_count"]) for row in counted
        }
    pointers.close()
    assert operations == {Operation.APPEND, Operation.OVERWRITE}


def test_commits_come_from_the_seed_and_each_contestant_has_pointers_of_its_own(tmp_path: Path) -> None:
    def made(folder: str, seed: int) -> list[tuple[str, int]]:
        (tmp_path / folder).mkdir()
        commits = lake(tmp_path / folder, seed).commits(KINDS[0], 12)
        return [(commit.table_uuid, commit.snapshot_id) for commit in commits]

    assert made("a", 1) == made("b", 1) != made("c", 2)
    tables = lake(tmp_path)
    (commit,) = tables.commits(KINDS[0], 1)
    pointers = Pointers(tables.entry("one"))
    pointers.swap(commit)
    pointers.close()
    seen = {name: PyIcebergCatalog(tables.entry(name)).metadata_location(commit.name) for name in ("one", "other")}
    assert seen["one"] == commit.metadata_location != seen["other"]
    assert _version(commit) == 1


def _version(commit: Commit) -> int:
    metadata = json.loads(Path(commit.metadata_location.removeprefix("file://")).read_text())
    return int(metadata["last-sequence-number"]) - int(metadata["snapshots"][-2]["sequence-number"])
