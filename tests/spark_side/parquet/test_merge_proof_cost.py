"""All that a merge does for its proof is counted as that, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from icewright.model.actions.actions import Executor
from icewright_spark.executors.merge import merge as merge_module
from icewright_spark.executors.merge.digest import RowsDigest
from icewright_spark.executors.merge.merge import MergeJob, merge_group
from icewright_spark.executors.merge.proof import RowsMultiset
from icewright_spark.executors.merge.write import ARROW_RS, ArrowRsWriter
from icewright_spark.parquet.statistics.check import StatedCheck
from tests.builders.spent import Spent
from tests.cases import each_case
from tests.spark_side.executors.merge.test_merge_by_key import numbered_job

PROVING = {"update": 7, "decode_arrow_rs": 100, "read_back": 300, "finish": 20, "check_pages": 30}
WORK = {"decode_pyarrow": 1_000, "write": 5_000, "metrics_of": 10_000}


def as_they_come(job: MergeJob) -> MergeJob:
    return replace(job, sorted_by=None)


def by_key(job: MergeJob) -> MergeJob:
    return job


def at_once(job: MergeJob) -> MergeJob:
    return replace(job, group=replace(job.group, executor=Executor.SORT))


@each_case("kind", [as_they_come, by_key, at_once], ids=lambda kind: kind.__name__)
def test_the_cost_of_proof_is_all_of_it_and_nothing_else(
    kind: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert callable(kind)
    job = kind(numbered_job(tmp_path, [[1, 3, 5], [2, 4, 6]]))
    spent = Spent(monkeypatch)
    for owner in (RowsDigest, RowsMultiset):
        spent.by(owner, "update", PROVING["update"])
    spent.by(ArrowRsWriter, "read_back", PROVING["read_back"], static=True)
    spent.by(ArrowRsWriter, "write", WORK["write"])
    spent.by(StatedCheck, "finish", PROVING["finish"])
    for name in ("decode_arrow_rs", "check_pages", "decode_pyarrow", "metrics_of"):
        spent.by(merge_module, name, {**PROVING, **WORK}[name])

    figures = merge_group(job, writer=ARROW_RS).figures

    assert set(spent.calls) == {*PROVING, *WORK}
    assert spent.calls["update"] >= 4  # on the way in, of the sample twice, and read back
    assert figures.proof_cpu_ms == sum(cost * spent.calls[name] for name, cost in PROVING.items())
    assert figures.cpu_ms == figures.proof_cpu_ms + sum(cost * spent.calls[name] for name, cost in WORK.items())
