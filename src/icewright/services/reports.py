"""What attempts reported, as far as this release can read it: for people and for waiting, never as the truth."""

from __future__ import annotations

from icewright.domain.codec import loads
from icewright.domain.errors import InvalidMessage
from icewright.domain.jobs import TaskReport
from icewright.domain.tasks import Attempt


def report_of(attempt: Attempt) -> TaskReport | None:
    """The report of an attempt; None where there is none, or another release wrote it in another shape."""
    if attempt.report_json is None:
        return None
    try:
        return loads(TaskReport, attempt.report_json)
    except InvalidMessage:
        return None
