"""What attempts reported, as far as this release can read it: for people and for waiting, never as the truth."""

from __future__ import annotations

from icewright.core.failure_causes import Cause
from icewright.model.work.jobs import Failed, report_of
from icewright.model.work.tasks import Attempt, AttemptState
from icewright.work.tasks.causes import CAUSES_BY_CODE


def cause_of(attempt: Attempt) -> Cause | None:
    """Why an attempt came to nothing, by how it ended and what it reported; None of others."""
    match attempt.state:
        case AttemptState.RUNNING | AttemptState.COMMITTED | AttemptState.CANCELLED:
            return None
        case AttemptState.CONFLICT:
            return Cause.CONFLICT
        case AttemptState.UNKNOWN:
            return Cause.UNKNOWN
        case AttemptState.LOST:
            return Cause.LOST
        case AttemptState.FAILED:
            report = report_of(attempt)
            code = report.result.code if report is not None and isinstance(report.result, Failed) else ""
            return CAUSES_BY_CODE.get(code, Cause.DEFECT)
