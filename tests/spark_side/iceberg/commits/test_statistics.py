"""What a commit of statistics may change of a table's metadata, on documents alone."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from icewright.core.errors import Conflict
from icewright.model.actions.compute_statistics import ComputeStatistics, PartitionTotals, StatisticsColumn
from icewright_spark.iceberg.commits.statistics import check_base, check_update
from icewright_spark.iceberg.statistics_files import ComputedFile, ComputedFiles
from icewright_spark.parquet.errors import ProofFailed
from tests.cases import each_case

ACTION = ComputeStatistics(2, "v1", 0, (StatisticsColumn(1, "id"),), 10, PartitionTotals(1, 10, 0))
FILES = ComputedFiles(ComputedFile(None, "s2", 9), ComputedFile(None, "p2", 9))
BEFORE: dict[str, Any] = {
    "location": "file:/t",
    "last-updated-ms": 1,
    "current-snapshot-id": 3,
    "snapshots": [{"snapshot-id": 2, "schema-id": 0}, {"snapshot-id": 3, "schema-id": 0}],
    "refs": {"main": {"snapshot-id": 3, "type": "branch"}},
    "properties": {"a": "b"},
    "metadata-log": [],
    "statistics": [{"snapshot-id": 3, "statistics-path": "s3"}],
}


def entry(snapshot_id: int, path: str) -> dict[str, Any]:
    return {"snapshot-id": snapshot_id, "statistics-path": path}


def after(**changes: Any) -> dict[str, Any]:
    its = deepcopy(BEFORE) | {"last-updated-ms": 2, "metadata-log": [{"metadata-file": "v1"}]}
    its |= {"statistics": [entry(2, "s2"), *BEFORE["statistics"]], "partition-statistics": [entry(2, "p2")]}
    return its | {key.replace("_", "-"): value for key, value in changes.items()}


def test_its_own_entries_and_nothing_else() -> None:
    check_base(BEFORE, ACTION)
    check_update(BEFORE, after(), ACTION, FILES)


@each_case(
    "changes",
    [
        {"current_snapshot_id": 2},
        {"refs": {}},
        {"snapshots": BEFORE["snapshots"][:1]},
        {"properties": {}},
        {"of_the_future": 1},
        {"statistics": [entry(2, "s2")]},
        {"statistics": [entry(2, "s2"), entry(3, "other")]},
        {"statistics": [entry(2, "other"), *BEFORE["statistics"]]},
        {"partition_statistics": []},
        {"partition_statistics": [entry(2, "p2"), entry(3, "p3")]},
    ],
)
def test_whatever_else_would_change_is_not_committed(changes: dict[str, Any]) -> None:
    with pytest.raises(ProofFailed):
        check_update(BEFORE, after(**changes), ACTION, FILES)


def test_what_goes_without_a_word_is_noticed() -> None:
    gone = after()
    del gone["properties"]
    with pytest.raises(ProofFailed, match="properties"):
        check_update(BEFORE, gone, ACTION, FILES)


@each_case(
    ("changes", "said"),
    [
        ({"snapshots": BEFORE["snapshots"][1:]}, "expired"),
        ({"snapshots": [{"snapshot-id": 2, "schema-id": 1}]}, "of schema 1"),
        ({"snapshots": [{"snapshot-id": 2}]}, "of schema None"),
        ({"statistics": [entry(2, "theirs")]}, "another client set statistics of snapshot"),
        ({"partition-statistics": [entry(2, "theirs")]}, "another client set statistics of the partitions"),
    ],
)
def test_c1_e9_a_snapshot_that_is_not_as_it_was_is_a_conflict(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(Conflict, match=said):
        check_base(BEFORE | changes, ACTION)
