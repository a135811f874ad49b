"""The shape of a kind of action: what has to be said of it so that it can be planned, carried out, verified and shown.

An action says this in its own folder; :mod:`icewright.maintenance.registry` lists all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar

from icewright.core.clock import Clock, Ids
from icewright.core.errors import NotAllowed
from icewright.core.times import Instant
from icewright.model.actions.actions import Action
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.iceberg.files import DataFile, Partition
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Policy
from icewright.model.queries.templates import TemplateWeek
from icewright.model.work.tasks import Outcome, Task
from icewright.plans.due import Due

if TYPE_CHECKING:
    from icewright.catalogs.port import Catalog
    from icewright.plans.evidence.measures import Measured
    from icewright.ports.store import TableStore

A = TypeVar("A")
Q = TypeVar("Q")
P = TypeVar("P")
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Effect:
    """What a table has of a task. ``snapshot_id`` and ``attempt`` are None where the action makes no snapshot."""

    text: str
    snapshot_id: int | None = None
    attempt: int | None = None


def _as_planned(_action: Any, _policy: Policy) -> None:
    """Nothing in the policy makes a plan stale that was made by itself."""


def _within_budget(_action: Any) -> None:
    """Nobody has to approve it."""


def _always(_planner: Any) -> bool:
    return True


def _nothing_more(_prediction: Any) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Upkeep(Generic[A]):
    """How a kind of action happens by itself, beside work on data files.

    ``key`` is the property that lets it, ``off`` what is said where the owner lets it no more. ``changed`` says why
    the owner wants less by now than what an action does.
    """

    key: str
    is_wanted: Callable[[Policy], bool]
    off: str
    changed: Callable[[A, Policy], Reason | None] = _as_planned


@dataclass(frozen=True, slots=True)
class ActionRules(Generic[A]):
    """What is decided of one kind of action, by pure functions.

    ``obstacle`` says why it must not be carried out on a table as it is now, ``conflict`` why a plan does not hold any
    more, ``effect`` what a table has of a task. ``done_by_others`` is why nothing is left to do where the effect is
    there before anybody tried; None where it can be our own alone. ``explain`` says in sentences what a prediction of
    this kind would bring. ``upkeep`` is None where it does not happen by itself. ``over_budget`` says
    why somebody has to approve it.
    """

    action: type[A]
    obstacle: Callable[[A, TableMetadata, Policy, Instant], Reason | None]
    conflict: Callable[[A, TableMetadata], Reason | None]
    effect: Callable[[A, Task, TableMetadata], Effect | None]
    done_by_others: Reason | None = None
    explain: Callable[[Any], Sequence[str]] = _nothing_more
    upkeep: Upkeep[A] | None = None
    over_budget: Callable[[A], Reason | None] = _within_budget


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and what it was made from."""

    plan: Plan
    observation: Observation
    policy: Policy


@dataclass(frozen=True, slots=True)
class Rest:
    """What tells whether something is due by itself, beside the table.

    ``now`` is by the store's clock, ``rested_ms`` how long ago it was done last, None where it never was. ``holds``
    gives the snapshots that tasks of the table go on from.
    """

    now: Instant
    rested_ms: int | None
    holds: Callable[[], Sequence[Hold]]


class QueryHistory(Protocol):
    """What is known of the queries of engines."""

    @property
    def table(self) -> TableName | None:
        """The table in which they are kept, None where there is none."""

    def queries_of(self, table_id: TableId, since: Instant) -> int:
        """How many queries of a table were counted in the weeks since an instant."""

    def weeks_of(self, table_id: TableId, since: Instant) -> Mapping[Instant, int]:
        """How many queries of a table were counted in each week since an instant that has any, by its beginning."""

    def templates_of(self, table_id: TableId, since: Instant) -> Sequence[TemplateWeek]:
        """What was counted of a table in the weeks since an instant, by template and week."""


class Planning(Protocol):
    """What an action that is planned in its own folder takes of the server's planner."""

    @property
    def tables(self) -> TableStore:
        """Where plans are kept."""

    @property
    def clock(self) -> Clock:
        """What time it is."""

    @property
    def ids(self) -> Ids:
        """Names for plans."""

    @property
    def queries(self) -> QueryHistory | None:
        """The queries of engines, None where nobody counts them."""

    def policy(self, metadata: TableMetadata) -> Policy:
        """The effective policy of a table."""

    def catalog(self, name: str) -> Catalog:
        """The catalog of that name. Raises ``CatalogNotConfigured``."""

    def namesakes(self, metadata: TableMetadata) -> Collection[TableName]:
        """Under which other names, in any catalog, the same table was seen."""

    def live_files(self, observation: Observation, partitions: frozenset[Partition]) -> Iterator[DataFile]:
        """The live data files of some partitions, read from manifests each time."""


@dataclass(frozen=True, slots=True)
class RequestedPlan(Generic[Q]):
    """How what a person asks for is planned, of a table that was just observed.

    ``plan`` is given the server's planner (:class:`Planning`), and told the snapshots that tasks of the table go on
    from.
    """

    asked: type[Q]
    plan: Callable[[Any, Observation, Q, Sequence[Hold]], Planned]


@dataclass(frozen=True, slots=True)
class DueRule:
    """How a kind is kept up by itself: what is said of it, and what finds out whether it is due.

    ``is_possible`` says of the server's planner whether this server does it at all. ``waiting_max`` is how many tasks
    of the kind wait in the queue at most, of all tables; None for any number. ``priority`` is None for that of upkeep.
    Tasks whose reason has a code of ``other_reasons`` do something else: they do not count as done.
    """

    said: str
    due: Callable[[Any, Observation, Rest], Due]
    is_possible: Callable[[Any], bool] = _always
    priority: int | None = None
    waiting_max: int | None = None
    other_reasons: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ActionType(Generic[A]):
    """What is decided of one kind of action, and what the server does about it.

    ``verify`` says what the table has of a committed task, ``plan_undo`` plans to take it back, or refuses
    (:func:`never`); the first is given what the server can ask the table, the second its planner of undos.
    ``plan_asked`` plans what a person asks for; None where a kind cannot be asked for.
    ``due`` is how it is looked into, with a look at its table, whether it is due; None where it is not.
    ``carrier`` makes what carries it out (a ``Carrier``) over the catalogs, by name; None where Spark does, or where
    that needs more and is wired by the server (:mod:`icewright.server.control`).
    """

    rules: ActionRules[A]
    verify: Callable[[Any, Task, A, TableMetadata], Outcome]
    plan_undo: Callable[[Any, Task, A], Plan]
    plan_asked: RequestedPlan[Any] | None = None
    due: DueRule | None = None
    carrier: Callable[[Mapping[str, Catalog]], Any] | None = None

    @property
    def action(self) -> type[A]:
        """The action."""
        return self.rules.action


def beyond_budget(types: Mapping[str, ActionType[Any]], plan: Plan) -> Reason | None:
    """Why a plan needs approval, None where it does not."""
    found = (types[action.kind].rules.over_budget(action) for action in plan.actions)
    return next((reason for reason in found if reason is not None), None)


def upkeep_obstacle(types: Mapping[str, ActionType[Any]], action: Action, policy: Policy) -> Reason | None:
    """Why the owner's policy no longer allows an action that was planned without a request."""
    upkeep = types[action.kind].rules.upkeep
    if upkeep is None:
        return None
    return upkeep.changed(action, policy) if upkeep.is_wanted(policy) else Reason("upkeep-off", upkeep.off)


def no_longer_wanted(types: Mapping[str, ActionType[Any]], plan: Plan, policy: Policy) -> Reason | None:
    """As :func:`upkeep_obstacle`, of a plan, which may have waited for long; None where a person asked for it."""
    found = () if plan.asked else (upkeep_obstacle(types, action, policy) for action in plan.actions)
    return next((reason for reason in found if reason is not None), None)


def never(because: str, instead: str) -> Callable[[Any, Task, Any], NoReturn]:
    """Of a kind that is never undone: the refusal, with what can be done instead."""

    def refuse(_plans: Any, task: Task, _action: Any) -> NoReturn:
        raise cannot_be_undone(task, because, instead)

    return refuse


def cannot_be_undone(task: Task, because: str, instead: str) -> NotAllowed:
    """The refusal to take a task back, with what can be done instead."""
    return NotAllowed(f"task {task.task_id} ({task.action.kind}) cannot be undone: {because}", hint=instead)


def _no_way_back(_said: Any, _task: Any) -> str:
    return ""


def _reads_nothing(_action: Any) -> tuple[str, str]:
    return "-", "-"


def _nothing_measured(_task: Any, _said: Any, _action: Any, _measured: Measured) -> list[tuple[str, str, str]]:
    return []


@dataclass(frozen=True, slots=True)
class ActionWords(Generic[P, F]):
    """How one kind of action is shown, of which the ``PlanView`` and the ``TaskView`` are given.

    ``predicted`` is what its plan would bring, name by name; ``work`` says what is to be done in a few words, ``undo``
    whether and how it is taken back. ``read`` is how many files are read, and bytes; ``measured`` what was predicted
    and what was measured, side by side.
    """

    prediction: type[P]
    figures: type[F]
    predicted: Callable[[P, Any], list[tuple[str, str]]]
    work: Callable[[P], str]
    undo: Callable[[P, Any], str] = _no_way_back
    read: Callable[[F], tuple[str, str]] = _reads_nothing
    measured: Callable[[Any, P, F, Measured], list[tuple[str, str, str]]] = _nothing_measured
