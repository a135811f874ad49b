"""What workers count as the cost of proof."""

from __future__ import annotations

import time

import pytest

from icewright_spark.parquet.proof_cost import ProofCost


def test_what_is_spent_while_proving_is_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = {"process": 0, "thread": 0}
    monkeypatch.setattr(time, "process_time_ns", lambda: spent["process"])
    monkeypatch.setattr(time, "thread_time_ns", lambda: spent["thread"])

    def work(process_ms: int, thread_ms: int) -> None:
        spent["process"] += process_ms * 1_000_000
        spent["thread"] += thread_ms * 1_000_000

    cost = ProofCost()
    work(1000, 1000)
    with cost.of_process():
        work(20, 3)
    work(1000, 1000)
    for _ in range(2):
        with cost.of_thread():
            work(500, 4)
    assert cost.cpu_ms == 28
