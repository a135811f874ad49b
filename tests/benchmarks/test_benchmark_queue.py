"""The benchmark of the queue, in its short form: it measures claims, and tells of a claim that gives nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import queue
from icewright.model.work.tasks import TaskState
from icewright.store.engine import open_store
from icewright.work.store.task_store import SqlTaskStore

OPTIONS = replace(queue.short(seed=1), waiting=60, claims=5)


def test_all_callers_claim_tasks_of_their_own_and_end_them(tmp_path: Path) -> None:
    engine = open_store(f"sqlite:///{tmp_path}/queue.db")
    queue.fill(engine, OPTIONS)
    for number, ends in enumerate((False, True), start=1):
        wall_s, each_s = queue.claim_all(engine, OPTIONS, ends=ends)
        assert len(each_s) == OPTIONS.callers * OPTIONS.claims
        assert 0 < max(each_s) <= wall_s
        assert SqlTaskStore(engine).counts()[TaskState.SUPERSEDED] == number * len(each_s)
    with pytest.raises(RuntimeError, match="gave nothing"):
        queue.claim_all(engine, replace(OPTIONS, claims=20), ends=True)
    engine.dispose()
