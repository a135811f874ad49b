"""What a job in Spark's driver counts as its cost, and as that of its proof."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from icewright.model.work.jobs import GroupFigures
from icewright_spark.optimizer.attempt import cpu_ms_of
from icewright_spark.session.driver_cost import DriverCost, jvm_thread_clock

FIGURES = GroupFigures(0, 3, 300, ("file:/m.avro",), 100, 30, cpu_ms=90, wall_ms=100, peak_memory_bytes=1)


def test_both_sides_of_the_thread_are_added_up_and_proof_is_a_part_of_them() -> None:
    spent = {"jvm": 700_000_000, "python": 40_000_000}  # before the job

    def work(jvm_ms: int, python_ms: int) -> None:
        spent["jvm"] += jvm_ms * 1_000_000
        spent["python"] += python_ms * 1_000_000

    cost = DriverCost(lambda: spent["jvm"], lambda: spent["python"])
    work(100, 10)
    for _ in range(2):
        with cost.proof():
            work(30, 5)
    work(1, 2)
    assert (cost.cpu_ms, cost.python_ms, cost.proof_cpu_ms) == (183, 22, 70)


def test_a_proof_that_fails_is_work() -> None:
    spent = [0]
    cost = DriverCost(lambda: spent[0], lambda: 0)

    def prove() -> None:
        with cost.proof():
            spent[0] += 5_000_000
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        prove()
    assert (cost.cpu_ms, cost.proof_cpu_ms) == (5, 0)


@pytest.mark.parametrize(("supported", "expected"), [(True, 7), (False, 0)])
def test_a_jvm_without_such_a_clock_costs_nothing(expected: int, *, supported: bool) -> None:
    bean = SimpleNamespace(isCurrentThreadCpuTimeSupported=lambda: supported, getCurrentThreadCpuTime=lambda: 7)
    factory = SimpleNamespace(getThreadMXBean=lambda: bean)
    management = SimpleNamespace(ManagementFactory=factory)
    jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(management=management)))
    assert jvm_thread_clock(jvm)() == expected


def test_an_attempt_counts_its_own_thread_once() -> None:
    """Of 50 ms of the attempt's thread 22 are in the group's figures already."""
    assert cpu_ms_of(50, (FIGURES,), in_figures_ms=22) == 28 + FIGURES.cpu_ms
    assert cpu_ms_of(50, (FIGURES, FIGURES)) == 50 + 2 * FIGURES.cpu_ms
    assert cpu_ms_of(21, (FIGURES,), in_figures_ms=22) == FIGURES.cpu_ms  # by rounding
