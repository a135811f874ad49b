"""Whether Spark lives, told by what py4j does when it does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from icewright.model.work.optimizers import WorkerEnvironment
from icewright_spark.optimizer.engine import SparkEngine


def engine(sc: Any, monkeypatch: pytest.MonkeyPatch) -> SparkEngine:
    monkeypatch.setattr("icewright_spark.optimizer.engine.iceberg_version", lambda _spark: "1.12.0")
    workers = WorkerEnvironment("3.11.7", "4.1.4", {})
    monkeypatch.setattr("icewright_spark.optimizer.engine.worker_environment", lambda _spark: workers)
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=sc), applicationId="local-1", uiWebUrl=None)
    spark: Any = SimpleNamespace(version="4.1.4", sparkContext=context)
    return SparkEngine(spark, SimpleNamespace())


@pytest.mark.parametrize("stopped", [True, False])
def test_a_context_that_was_stopped_is_dead(monkeypatch: pytest.MonkeyPatch, *, stopped: bool) -> None:
    context = SimpleNamespace(isStopped=lambda: stopped)
    assert engine(lambda: context, monkeypatch).alive() is not stopped


@pytest.mark.parametrize("error", [Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError(111)])
def test_a_jvm_that_does_not_answer_is_dead(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def sc() -> Any:
        raise error

    assert not engine(sc, monkeypatch).alive()
