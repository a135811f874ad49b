"""What the latest commits of a table wrote, against what was modelled for them: told by their tasks' outcomes.

The verifier took the bytes from the manifests. A commit of several executors, or of a part of its groups, tells
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from icewright.model.actions.actions import Executor
from icewright.model.iceberg.layouts import Level
from icewright.model.plans.observation import Written
from icewright.model.work.tasks import TaskHead, TaskState

COMMITS_MAX: Final = 8
"""Of a level and an executor: older ones may be of other rows, another codec, another schema."""


def written(latest: Iterable[TaskHead]) -> tuple[Written, ...]:
    """By level and executor, from the latest tasks of a table, newest first."""
    found: dict[tuple[Level, Executor], list[tuple[int, int]]] = {}
    for task in latest:
        prediction, outcome = task.rewrite_prediction, task.outcome
        estimate = None if prediction is None else prediction.estimate
        if task.state is not TaskState.SUCCEEDED or estimate is None or outcome is None:
            continue
        said = outcome.reason.figures
        level, executor, wrote = said.get("level"), said.get("executors"), said.get("output_bytes")
        whole = said.get("groups") == said.get("groups_committed")
        if not whole or level not in tuple(Level) or executor not in tuple(Executor) or not isinstance(wrote, int):
            continue
        commits = found.setdefault((Level(level), Executor(executor)), [])
        if len(commits) < COMMITS_MAX and estimate.modelled_bytes > 0 and wrote > 0:
            commits.append((estimate.modelled_bytes, wrote))
    return tuple(
        Written(level, executor, len(commits), sum(said for said, _ in commits), sum(wrote for _, wrote in commits))
        for (level, executor), commits in sorted(found.items())
        if commits
    )
