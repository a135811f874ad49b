"""Tables as the API shows them, for it and for whoever reads its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icewright.domain.events import Reporting
from icewright.domain.plans import Reason
from icewright.domain.policy import Mode
from icewright.domain.tables import Instant
from icewright.domain.tasks import AttemptState
from icewright.services.plan_views import PlanView
from icewright.services.views import FiguresView, TableView


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan in one line."""

    plan_id: str
    planned_at: Instant
    reason: Reason
    can_apply: bool
    data_files_after: int | None


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What is known of a table as of ``snapshot_id``.

    ``mode`` and ``figures`` are null while the catalog does not answer or the table cannot be read; ``problem`` says
    why the table cannot be looked after, if so.
    """

    name: str
    catalog: str
    uuid: str
    format_version: int
    snapshot_id: int | None
    observed_at: Instant
    changed_at: Instant
    optimized_at: Instant | None
    next_look_at: Instant
    commit_interval_ms: int | None
    mode: Mode | None
    figures: FiguresView | None
    plan: PlanSummary | None
    problem: Reason | None


@dataclass(frozen=True, slots=True)
class TableDocument:
    """One table: ``summary`` as of its own ``snapshot_id``; ``table`` by its metadata as it is now.

    The figures of both are as of the summary's snapshot. ``attempts`` counts how the tries at the table's tasks ended:
    ``conflict`` are those that a writer's commit came before, ``lost`` those whose optimizer fell silent.
    ``reporting`` says how many commits of others events told of, and how many only the sweep found.
    """

    summary: TableSummary
    table: TableView
    attempts: Mapping[AttemptState, int]
    reporting: Reporting | None = None


@dataclass(frozen=True, slots=True)
class LookAnswer:
    """What a look at a table came to; ``task_id`` is the task that carries the plan, where it was queued.

    ``upkeep`` says of each thing that its owner lets happen by itself beside that why it is, or is not, done now.
    """

    plan: PlanView
    task_id: str | None
    upkeep: tuple[Reason, ...] = ()
