"""The registry of jobs: every kind that Spark carries out, and no other."""

from __future__ import annotations

from collections import Counter

from icewright.model.actions.actions import ActionKind
from icewright.model.actions.traits import RunsOn
from icewright_spark.optimizer.action_types import ACTION_JOBS


def test_each_kind_that_spark_carries_out_has_a_job() -> None:
    assert Counter(job.action for job in ACTION_JOBS) == Counter(
        kind.traits.action for kind in ActionKind if kind.traits.runs_on is RunsOn.OPTIMIZER
    )
