"""What a plan or a task predicts, where it is known to be of a rewrite."""

from __future__ import annotations

from icewright.model.plans.plans import Estimate, Plan, RewritePrediction
from icewright.model.work.tasks import TaskHead
from tests.narrowing import not_none


def predicted(of: Plan | TaskHead) -> RewritePrediction:
    """The prediction of a rewrite."""
    assert isinstance(of.prediction, RewritePrediction)
    return of.prediction


def estimated(of: Plan | TaskHead) -> Estimate:
    """What carrying out a rewrite is estimated to take."""
    return not_none(predicted(of).estimate)
