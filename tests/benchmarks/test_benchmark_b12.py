"""50,000 tasks a day: what was never merged or lost rows does not count, and the queue alone is told from the rest.

With real processes it is ``python -m benchmarks B12 --short``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from benchmarks import b12
from benchmarks.b12 import Day, queue_cpu_s
from benchmarks.lake import Mismatch
from benchmarks.measure import Cost
from benchmarks.watchers import Server
from icewright.model.iceberg.tables import TASK_ID_KEY
from tests.contracts.samples import new_task

OPTIONS = replace(b12.short(seed=3), tables=2, commits=3, per_s=1000.0, files=2, rows=4)


def pass_by(folder: Path) -> tuple[Day, list[Any]]:
    day = Day(folder, OPTIONS)
    told: list[Any] = []
    day.pass_by(cast("Server", SimpleNamespace(client=SimpleNamespace(notify=told.append))))
    return day, told


def merge(day: Day, name: str, rows: int | None = None) -> None:
    table: Table = SqlCatalog("day", **day.entry.pyiceberg_properties()).load_table(("lake", name))
    table.overwrite(table.scan().to_arrow()[:rows], snapshot_properties={TASK_ID_KEY: "t"})


def test_the_time_of_each_commit_is_that_until_its_files_were_merged(tmp_path: Path) -> None:
    day, told = pass_by(tmp_path)
    assert [event.snapshot_id for event in told] == [snapshot_id for _, snapshot_id in day.commits]
    with pytest.raises(Mismatch, match="was never merged"):
        list(day.check())
    for name in ("t00000", "t00001"):
        assert not day.merged()
        merge(day, name)
    assert day.merged()
    latencies_s = list(day.check())
    assert len(latencies_s) == 3
    assert min(latencies_s) >= 0
    merge(day, "t00001", rows=5)
    with pytest.raises(Mismatch, match="t00001 has 5 rows"):
        list(day.check())


def test_a_table_may_keep_a_large_file_beside_the_merged_ones(tmp_path: Path) -> None:
    day, _ = pass_by(tmp_path)
    merge(day, "t00000")
    merge(day, "t00001")
    name, before = "t00000", day._ids["t00000"]
    day.commits.append((name, day._commit(name)))
    assert not day.merged()
    table = SqlCatalog("day", **day.entry.pyiceberg_properties()).load_table(("lake", name))
    rows = table.scan(row_filter=f"id >= {before}").to_arrow()
    table.overwrite(rows, overwrite_filter=f"id >= {before}", snapshot_properties={TASK_ID_KEY: "t"})
    assert len(table.inspect.data_files()) == 2
    assert day.merged()
    assert len(list(day.check())) == 4


def test_the_queue_alone_takes_each_task_through(tmp_path: Path) -> None:
    assert queue_cpu_s([new_task(f"task-{n}", catalog="day") for n in range(3)], f"sqlite:///{tmp_path}/alone.db") > 0


def test_every_target_is_judged() -> None:
    ours, theirs = Cost(4.0, 20.0, 300 << 20, 0, 0.0, {}), Cost(6.0, 20.0, 900 << 20, 0, 0.0, {})
    found = {case.metric: case for case in b12.cases(OPTIONS, [float(n) for n in range(1000)], ours, theirs, 0.4)}
    p99 = found["commit to optimized, p99, s"]
    assert (p99.value, p99.met) == (990.0, False)
    queue = found["the queue's share of all CPU"]
    assert queue.value == pytest.approx(0.04)
    assert queue.met
    assert found["the server's share of all CPU"].value == pytest.approx(0.4)
    assert found["cores in use"].value == pytest.approx(0.5)
