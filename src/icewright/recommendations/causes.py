"""By cause what work has brought and cost: layouts, merged files, applied deletes, and the analysis of queries.

Costs are told apart by what each task did. What was saved is measured against the weeks before one change
(:mod:`icewright.recommendations.benefit`): it counts for that change alone, what was accepted where it is carried out,
else what rewrites did; and for no single cause where these did several things.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from icewright.model.actions.actions import ActionKind, RewriteFigures
from icewright.model.iceberg.layouts import Level
from icewright.model.work.tasks import ListedTask


class Cause(StrEnum):
    """Why work was done, or queries read less."""

    LAYOUT = "layout"
    """Rows were put in order by a layout."""
    PROPERTIES = "properties"
    """Files are written by other table properties. No task is done for that alone: it has savings, and no costs."""
    COMPACTION = "compaction"
    """Small files were merged."""
    DELETES = "deletes"
    """Deletes were applied, or their files merged."""
    ANALYSIS = "analysis"
    """Queries were analyzed or measured. It saves nothing by itself."""
    SEVERAL = "several"
    """Savings after rewrites of several causes: nobody can tell them apart."""


@dataclass(frozen=True, slots=True)
class CauseBenefit:
    """What was saved and spent for one cause, in CPU at the rates that are stated, and as tasks measured it.

    ``saved_cpu_ms`` is negative where queries took more, and null where nothing can be compared;
    ``predicted_cpu_ms`` is of accepted recommendations alone.
    """

    cause: Cause
    predicted_cpu_ms: float | None = None
    saved_cpu_ms: float | None = None
    tasks: int = 0
    cpu_ms: int = 0
    written_bytes: int = 0

    def __add__(self, other: CauseBenefit) -> CauseBenefit:
        """Both together; what only one of them knows is what it knows."""
        return CauseBenefit(
            self.cause,
            _sum(self.predicted_cpu_ms, other.predicted_cpu_ms),
            _sum(self.saved_cpu_ms, other.saved_cpu_ms),
            self.tasks + other.tasks,
            self.cpu_ms + other.cpu_ms,
            self.written_bytes + other.written_bytes,
        )


def cause_of(task: ListedTask) -> Cause:
    """Why a task was done. A rewrite that merges files and applies deletes counts for the deletes."""
    if task.kind is ActionKind.ANALYZE_QUERIES:
        return Cause.ANALYSIS
    figures = task.figures
    if not isinstance(figures, RewriteFigures):
        return Cause.DELETES
    if figures.level is not Level.LEVEL_0:
        return Cause.LAYOUT
    return Cause.DELETES if figures.delete_files else Cause.COMPACTION


def summed(found: Iterable[CauseBenefit]) -> tuple[CauseBenefit, ...]:
    """One for each cause that anything is known of, in the order of :class:`Cause`."""
    by_cause: dict[Cause, CauseBenefit] = {}
    for one in found:
        known = by_cause.get(one.cause)
        by_cause[one.cause] = one if known is None else known + one
    return tuple(by_cause[cause] for cause in Cause if cause in by_cause)


def with_saved(
    costs: Iterable[CauseBenefit], change: Cause | None, saved_cpu_ms: float | None, predicted_cpu_ms: float | None
) -> tuple[CauseBenefit, ...]:
    """The costs of a table with what was saved since its change: None where that is its first rewrite.

    After rewrites of one cause that is the cause, else :attr:`Cause.SEVERAL`.
    """
    spent = summed(one for one in costs if one.tasks)
    if saved_cpu_ms is None:
        return spent
    rewrites = [one.cause for one in spent if one.cause is not Cause.ANALYSIS]
    cause = change or (rewrites[0] if len(rewrites) == 1 else Cause.SEVERAL)
    predicted = predicted_cpu_ms if cause in (Cause.LAYOUT, Cause.PROPERTIES) else None
    return summed([*spent, CauseBenefit(cause, predicted, saved_cpu_ms)])


def _sum(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other
