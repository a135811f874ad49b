"""The key of hashed values on its way from an optimizer's settings to the analysis."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from icewright.model.actions.analyze_queries import AnalyzeQueries
from icewright_spark.optimizer import action_types, application, attempt, engine
from icewright_spark.optimizer.action_types import Given, run_job

KEY = "a key of enough bytes"


def test_it_reaches_the_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the settings through the engine and the attempt to the job, and never to Spark's own configuration."""
    made: list[Any] = []
    monkeypatch.setattr(application, "SparkEngine", lambda *args: made.append(args[-1]))
    settings = SimpleNamespace(queries_hash_key=KEY, tasks_max=None)
    application._engine(cast("Any", None), cast("Any", None), cast("Any", None), None, cast("Any", settings))
    assert made == [KEY.encode()]
    monkeypatch.setattr(engine, "iceberg_version", lambda _spark: "1")
    monkeypatch.setattr(engine, "worker_environment", lambda _spark: None)
    context = SimpleNamespace(applicationId="local-1", uiWebUrl=None)
    spark, given = cast("Any", SimpleNamespace(version="4", sparkContext=context)), list[bytes | None]()

    class Noted:
        def __init__(self, *_args: Any, hash_key: bytes | None, **_more: Any) -> None:
            given.append(hash_key)

    monkeypatch.setattr(engine, "Attempt", Noted)
    ours = engine.SparkEngine(spark, cast("Any", None), hash_key=KEY.encode())
    with pytest.raises(AttributeError):
        ours.attempt(cast("Any", SimpleNamespace(task_id="task-1")), claimed_s=0.0, pool="p")
    assert given == [KEY.encode()]
    monkeypatch.setattr(attempt, "activate", lambda _spark: None)
    monkeypatch.setattr(attempt, "SparkTable", lambda *_: SimpleNamespace(uuid="u", metadata_location="m"))
    jobs: list[Given] = []
    monkeypatch.setattr(attempt, "run_job", jobs.append)
    context = SimpleNamespace(setJobGroup=lambda *_args, **_more: None, setLocalProperty=lambda *_: None)
    action = AnalyzeQueries(1, cast("Any", "lake.q"), 0, 1, 1, 1, None, None)
    spec = SimpleNamespace(
        task_id="t", attempt=1, lease_ms=1, action=action, table_name="n", table_id=SimpleNamespace(uuid="other")
    )
    session = cast("Any", SimpleNamespace(sparkContext=context))
    one = attempt.Attempt(session, cast("Any", None), cast("Any", spec), hash_key=KEY.encode())
    one._carry_out()
    assert jobs[0].hash_key == KEY.encode()
    assert KEY not in repr(jobs[0])
    seen: list[Any] = []
    done = SimpleNamespace(result=None, figures=None, driver_cpu_ms=0, answer="")

    def analyzed(*args: Any) -> Any:
        seen.append(args[-1])
        return done

    monkeypatch.setattr(action_types, "analyze_queries", analyzed)
    run_job(jobs[0])
    assert seen == [KEY.encode()]
