"""The registry of jobs: every kind that Spark carries out, and no other."""

from __future__ import annotations

from collections import Counter

from icewright.model.actions.action_types import ACTION_TRAITS, RunsOn
from icewright_spark.optimizer.action_types import ACTION_JOBS


def test_each_kind_that_spark_carries_out_has_a_job() -> None:
    assert Counter(job.action for job in ACTION_JOBS) == Counter(
        traits.action for traits in ACTION_TRAITS if traits.runs_on is RunsOn.OPTIMIZER
    )
