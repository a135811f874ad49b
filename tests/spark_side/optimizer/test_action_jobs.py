"""The registry of jobs: every kind that Spark carries out, and no other."""

from __future__ import annotations

from collections import Counter

from icewright.model.actions.actions import OPTIMIZER_ACTIONS, ActionKind, understood
from icewright.model.actions.traits import RunsOn
from icewright_spark.optimizer.action_types import ACTION_JOBS


def test_each_kind_that_spark_carries_out_has_a_job() -> None:
    assert Counter(job.action for job in ACTION_JOBS) == Counter(
        kind.traits.action for kind in ActionKind if kind.traits.runs_on is RunsOn.OPTIMIZER
    )
    assert {job.action.kind for job in ACTION_JOBS} == OPTIMIZER_ACTIONS.keys()


def test_what_is_announced_is_understood_and_nothing_else() -> None:
    assert understood(OPTIMIZER_ACTIONS) == {ActionKind(kind) for kind in OPTIMIZER_ACTIONS}
    for kind, version in OPTIMIZER_ACTIONS.items():
        for other in (version - 1, version + 1):
            assert ActionKind(kind) not in understood({**OPTIMIZER_ACTIONS, kind: other})
    assert understood({"of_a_later_release": 1}) == frozenset()
