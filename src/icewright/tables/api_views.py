"""Tables as the API shows them, for it and for the readers of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icewright.core.times import Instant
from icewright.model.events.events import Reporting
from icewright.model.iceberg.snapshot_sightings import Mark
from icewright.model.plans.observation import WorkerAccess
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Mode
from icewright.model.work.figures import FiguresView, Grade, HealthChange, HealthPart, PlanSummary, TableHealth
from icewright.model.work.tasks import AttemptState
from icewright.model.work.why import Considered
from icewright.plans.views import PlanView
from icewright.tables.views import TableView


@dataclass(frozen=True, slots=True)
class HealthSummary:
    """A health in a list; ``worst`` is the part that costs the most points, null where none costs any."""

    score: int
    grade: Grade
    worst: HealthPart | None


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What is known of a table as of ``snapshot_id``, by its last look; no catalog is asked.

    ``figures``, ``plan`` and ``optimized_at`` are by the last look that came to a plan, null before; ``mode`` is by the
    policies of now; ``problem`` says why the table cannot be looked after, if so. ``last_task_at`` is when a task of it
    last ended, ``failures`` the most of one kind that failed since the last success of that kind.
    """

    name: str
    catalog: str
    namespace: str
    uuid: str
    format_version: int
    snapshot_id: str | None
    observed_at: Instant
    changed_at: Instant
    optimized_at: Instant | None
    next_look_at: Instant
    commit_interval_ms: int | None
    mode: Mode | None
    figures: FiguresView | None
    plan: PlanSummary | None
    problem: Reason | None
    health: HealthSummary | None
    last_task_at: Instant | None
    failures: int


@dataclass(frozen=True, slots=True)
class HealthView:
    """The health of a table as of its last look, ``at``; ``change`` is the last time that it changed.

    Both are null before the first look that came to a plan.
    """

    table: str
    catalog: str
    uuid: str
    at: Instant
    health: TableHealth | None
    change: HealthChange | None


@dataclass(frozen=True, slots=True)
class TableDocument:
    """One table: ``summary`` as of its own ``snapshot_id``; ``table`` by its metadata as it is now.

    The figures of both are as of the summary's snapshot. ``attempts`` counts how the tries at the table's tasks ended:
    ``conflict`` are those that a writer's commit came before, ``lost`` those whose optimizer fell silent.
    ``reporting`` says how many commits of others were reported by events, and how many only the sweep found.
    """

    summary: TableSummary
    table: TableView
    attempts: Mapping[AttemptState, int]
    reporting: Reporting | None = None


@dataclass(frozen=True, slots=True)
class ObservationView:
    """What the last look at a table saw, all of it as of ``snapshot_id``. Of looks before it only marks are kept.

    ``changed_at`` is when a look last found the table changed. ``figures`` are null before a look came to a plan;
    ``problem`` says why the table cannot be looked after. ``first_seen`` says by when snapshots
    were there, by the sequence number: some 170 marks of a year, further apart the older they are. ``considered`` is
    what was decided of upkeep when it was looked into last, ``exclusions`` which executors are left out for a day.
    ``worker_access`` is whether workers were proved to reach its storage. ``plan_at`` is where the present plan is.
    """

    table: str
    catalog: str
    uuid: str
    snapshot_id: str | None
    metadata_location: str
    format_version: int
    observed_at: Instant
    changed_at: Instant
    next_look_at: Instant
    commit_interval_ms: int | None
    manifests: int
    figures: FiguresView | None
    storage_root: str | None
    worker_access: WorkerAccess
    exclusions: tuple[Reason, ...]
    first_seen: tuple[Mark, ...]
    considered: tuple[Considered, ...]
    reporting: Reporting | None
    problem: Reason | None
    plan_at: str | None


@dataclass(frozen=True, slots=True)
class LookAnswer:
    """What a look at a table came to; ``task_id`` is the task that carries the plan, where it was queued.

    ``upkeep`` says of each other automatic kind why it is, or is not, done now.
    """

    plan: PlanView
    task_id: str | None
    upkeep: tuple[Reason, ...] = ()
