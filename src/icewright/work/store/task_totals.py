"""What a change of a task adds to the totals, as a pure function, so that every store counts the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from icewright.model.work.lifecycle import Step
from icewright.model.work.tasks import AttemptState, TaskState
from icewright.model.work.totals import Total, TotalKey, bound_of


def added(step: Step) -> Mapping[TotalKey, int]:
    """What is to be added to which total, in the transaction that writes the step; never negative."""
    task, attempt, kind = step.task, step.attempt, step.task.kind.value
    sums: Counter[TotalKey] = Counter()
    if step.before is not task.state:
        sums[TotalKey(Total.CHANGES, kind, task.state.value)] += 1
    if attempt is not None and attempt.state is AttemptState.RUNNING:
        waited_ms = max(0, task.updated_at - max(task.created_at, task.not_before_at))
        _span(sums, Total.WAIT_MS, Total.WAITED, kind, waited_ms)
    if attempt is not None and step.ends_attempt:
        sums[TotalKey(Total.ATTEMPTS, kind, attempt.state.value)] += 1
        _span(sums, Total.ATTEMPT_MS, Total.TOOK, kind, max(0, task.updated_at - attempt.started_at))
        read_bytes, written_bytes = _bytes(attempt.report_json)
        sums[TotalKey(Total.READ_BYTES, kind)] += read_bytes
        sums[TotalKey(Total.WRITTEN_BYTES, kind)] += written_bytes
    if (step.before, task.state) == (TaskState.COMMITTED, TaskState.SUCCEEDED):
        _span(sums, Total.TURNAROUND_MS, Total.TURNED, kind, max(0, task.updated_at - task.created_at))
    return {key: amount for key, amount in sums.items() if amount}


def _span(sums: Counter[TotalKey], total: Total, by_bound: Total, kind: str, span_ms: int) -> None:
    sums[TotalKey(total, kind)] += span_ms
    sums[TotalKey(by_bound, kind, bound_of(span_ms))] += 1


def _bytes(report_json: str | None) -> tuple[int, int]:
    """What a report says was read and written; nothing where it has no such figures.

    Not read as the domain's type, which is ten times the work and would be done while others wait to write.
    """
    try:
        groups: Any = json.loads(report_json or "{}").get("groups", ())
        read, written = (sum(int(group[key]) for group in groups) for key in ("input_bytes", "output_bytes"))
    except (ValueError, TypeError, KeyError, AttributeError):
        return 0, 0
    return max(0, read), max(0, written)
