"""The control plane as one value: what the API serves and the loop turns, wired by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, get_type_hints

from icewright.actions.expire_snapshots.expirer import Expirer
from icewright.actions.remove_files.clock_watch import ClockWatch
from icewright.actions.remove_files.expired_files import ExpiredFilesPlanner
from icewright.actions.remove_files.orphans.gone_tables import GoneUuids
from icewright.actions.remove_files.orphans.planner import OrphanPlanner
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.remove_files.quarantine_scheduler import Plans, QuarantineScheduler
from icewright.actions.remove_files.removals_port import RemovalPorts
from icewright.actions.remove_files.restores import RestorePlanner
from icewright.actions.remove_files.wiring import build_expired_doors, build_finders, build_remover, sleep_ms
from icewright.actions.rollback.port import Rollbacks
from icewright.actions.rollback.service import Rollbacker
from icewright.actions.undo.second_tables_port import SecondTables
from icewright.actions.undo.second_tables_service import SecondTabler
from icewright.approvals.service import Approvals
from icewright.catalogs.port import Catalog
from icewright.catalogs.properties_port import TableProperties
from icewright.core.clock import Clock, Ids
from icewright.events.intake import Intake
from icewright.explain.service import Explanations
from icewright.feed.publisher import FeedPublisher
from icewright.footprint.storage_views import StorageReader
from icewright.maintenance.dispatch.dispatcher import Dispatcher, DispatchLimits, NextRound
from icewright.maintenance.dispatch.server_tasks import ServerTaskRunner
from icewright.maintenance.dispatch.verifier import Verifier
from icewright.maintenance.first_run_approval import FirstRunApproval
from icewright.maintenance.planner import Planner
from icewright.maintenance.quiet_tables import QuietTables
from icewright.maintenance.registry.services import ACTION_TYPES, DUE_RULES, build_carriers
from icewright.maintenance.registry.undo import Undoing
from icewright.maintenance.table_maintainer import TableMaintainer
from icewright.maintenance.undoer import Undoer
from icewright.model.actions.actions import FILE_MOVES, ActionKind
from icewright.model.policy.policy import PolicyRule
from icewright.model.policy.resource_groups import SERVER_FILES, ResourceGroup
from icewright.model.work.retention import Retention
from icewright.notifications.owners import Owners
from icewright.notifications.service import MessageDelivery, Notifications
from icewright.observation.access import AccessBook
from icewright.observation.executor_exclusions import ExecutorExclusions
from icewright.observation.observer import Observer
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.location_rules import PlaceRules
from icewright.ownership.model import Missing
from icewright.ownership.registry import Registry
from icewright.policy.apply import PolicyBook
from icewright.policy.groups.definitions import Groups
from icewright.policy.rules.port import PolicyStore
from icewright.policy.source import PolicySource
from icewright.ports.carriers import Carrier
from icewright.ports.deletions import DeletionStore
from icewright.ports.snapshot_expiry import SnapshotExpiry
from icewright.ports.store import TableStore, TaskStore
from icewright.ports.undo_records import UndoRecordStore
from icewright.queries.service import QueryLog
from icewright.recommendations.benefit import Benefit
from icewright.recommendations.ledger import Ledger, Measuring, MeasuringTasks
from icewright.recommendations.policy_acceptance import PolicyAcceptance
from icewright.recommendations.service import Recommendations
from icewright.recommendations.sql import SqlRecommendations
from icewright.retention.history import HistoryProgress
from icewright.retention.pruning import Keeping, Past, Pruner
from icewright.retention.prunings_sql import SqlPrunings
from icewright.server.cluster.share import ALL_TABLES, Part
from icewright.server.liveness import HeardCatalog, Liveness, heard
from icewright.server.loop import Loop
from icewright.server.others_tables import OthersTables
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.groups.queue_waits import QueueWaits
from icewright.work.groups.views import GroupViews
from icewright.work.halts.service import Halting
from icewright.work.optimizers.backlog import Backlogs
from icewright.work.tasks.start_estimates import StartEstimates


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """All services over one set of ports."""

    catalogs: Mapping[str, Catalog]
    tables: TableStore
    tasks: TaskStore
    clock: Clock
    observer: Observer
    planner: Planner
    dispatcher: Dispatcher
    maintainer: TableMaintainer
    registry: Registry
    gone: GoneUuids
    verifier: Verifier
    undoer: Undoer
    loop: Loop
    deletions: DeletionStore
    sightings: SqlSightings
    removal_rounds: QuarantineScheduler
    backlogs: Backlogs
    intake: Intake
    policies: PolicyBook
    explainer: Explanations
    notifications: Notifications
    queue_waits: QueueWaits
    starts: StartEstimates
    halting: Halting
    prunings: SqlPrunings | None
    retention: Retention
    history: HistoryProgress | None
    group_views: GroupViews
    approvals: Approvals
    next_round: NextRound
    storage: StorageReader
    queries: QueryLog
    recommendations: Recommendations
    ledger: Ledger
    benefit: Benefit
    autotune: SqlDecisions

    def service(self, kind: type[Any]) -> Any:
        """The service of that type."""
        return self if kind is ControlPlane else getattr(self, _fields()[kind])


@cache
def _fields() -> Mapping[Any, str]:
    return {kind: name for name, kind in get_type_hints(ControlPlane).items()}


def build_control_plane(
    catalogs: Mapping[str, Catalog],
    tables: TableStore,
    tasks: TaskStore,
    clock: Clock,
    ids: Ids,
    removals: RemovalPorts,
    kept: UndoRecordStore,
    delivery: MessageDelivery,
    *,
    rules: Sequence[PolicyRule] = (),
    groups: Sequence[ResourceGroup] = (),
    policies: PolicyStore | None = None,
    limits: DispatchLimits | None = None,
    keeping: Keeping | None = None,
    carriers: Mapping[ActionKind, Carrier] = MappingProxyType({}),
    expiries: Mapping[str, SnapshotExpiry] = MappingProxyType({}),
    places: PlaceRules | None = None,
    claims: SqlClaims | None = None,
    pause: Callable[[int], None] = sleep_ms,
    rollbacks: Mapping[str, Rollbacks] = MappingProxyType({}),
    seconds: Mapping[str, SecondTables] = MappingProxyType({}),
    event_prefixes: Mapping[str, str] = MappingProxyType({}),
    wake: Callable[[], None] | None = None,
    queries: QueryLog | None = None,
    recommendations: SqlRecommendations | None = None,
    properties: Mapping[str, TableProperties] = MappingProxyType({}),
    part: Part = ALL_TABLES,
    parallel_looks: int = 1,
    decisions: SqlDecisions,
    elsewhere: Callable[[], Sequence[Missing]] = tuple,
) -> ControlPlane:
    """Wire the services over these ports.

    ``rules`` and resource ``groups`` are those of the configuration; ``policies`` keeps the applied ones above them, if
    any can be applied.
    ``keeping`` is how long the store keeps what is of the past, ``carriers`` are what the server carries out itself.
    ``expiries`` expire snapshots, by the names of their catalogs; without any, nothing expires.
    ``places`` is what an administrator says of places, and ``claims`` where it is kept what tables say. ``kept``
    is where it is kept what tasks take, and
    ``pause`` waits for so many ms. ``rollbacks`` set
    ``main`` back, and ``seconds`` register tables beside others, by the names of their catalogs.
    ``event_prefixes`` say which catalogs prefixes of REST catalogs stand for, ``delivery`` who is told of what happens.
    ``wake`` is called when events come in, where the loop that works on them is another one than this plane's.
    ``queries`` is the query log of this process, if it keeps one, and ``recommendations`` where those made from it are
    kept; accepting one changes ``properties`` of tables, by the names of their catalogs. ``part`` is what of all tables
    the loop works on, ``parallel_looks`` of them at once, ``decisions`` are those of autotuning, and ``elsewhere`` asks
    for catalogs that other servers have, and this one does not.
    """
    queries, keeping = queries or QueryLog(catalogs, tables, clock), keeping or Keeping()
    limits, pulse = limits or DispatchLimits(), Liveness(clock)
    removals = heard(removals, pulse)
    catalogs = {name: HeardCatalog(catalog, pulse) for name, catalog in catalogs.items()}
    access = AccessBook(tables, clock)
    exclusions = ExecutorExclusions(tables, clock)
    registry = Registry(catalogs, clock, places, claims, elsewhere)
    observer = Observer(catalogs, tables, clock, access, exclusions, registry)
    source = PolicySource(rules, policies)
    planner = Planner(observer, tables, clock, ids, source, queries)
    tidings = FeedPublisher(tasks.feed, clock)

    approvals = Approvals(tables, removals.store, clock, tidings, registry, ACTION_TYPES)
    queue = Groups(groups, source)
    queue_waits, starts = QueueWaits(tasks, tables, queue), StartEstimates(tasks, tables, queue)
    dispatcher = Dispatcher(
        tasks, tables, observer, access, ids, limits, source, exclusions=exclusions, approvals=approvals, groups=queue
    )
    expired = ExpiredFilesPlanner(
        build_expired_doors(removals, registry, expiries, tasks), kept, tables, tasks, ids, planner.policy
    )
    watch = ClockWatch(removals.sightings, removals.uptime)
    remover = build_remover(removals, registry, tasks, tables, expired, pause, tidings, watch)
    finders = build_finders(removals, registry, watch, tasks)
    orphans = OrphanPlanner(finders, catalogs, registry, tables, clock, ids, planner.policy)
    moves = dict.fromkeys(FILE_MOVES, remover)
    files_keeper = ServerTaskRunner(dispatcher, moves, clock, SERVER_FILES, alive=pulse.beat)
    rounds = QuarantineScheduler(
        files_keeper,
        remover,
        Plans(orphans, expired, watch),
        approvals,
        dispatcher,
        tasks,
        removals.store,
        removals.sightings,
    )

    maintainer = TableMaintainer(
        observer,
        planner,
        dispatcher,
        access,
        tables,
        tasks,
        clock,
        orphans=orphans,
        want_pass=lambda *looked: others.looked_at(*looked),  # noqa: PLW0108 - made below
        first_runs=FirstRunApproval(tables, tasks, dispatcher, approvals),
        quiet=QuietTables(catalogs, tables, source, registry, clock, limits.chance),
        tidings=tidings,
        chance=limits.chance,
    )
    expirer = Expirer(expiries, tasks, kept, registry.namesakes)
    restores = RestorePlanner(remover, observer, tables, clock, ids, planner.policy)
    files = {name: own.files for name, own in removals.catalogs.items()}
    beside = SecondTabler(seconds, files, observer, registry)
    doors = Undoing(expiries, files, kept, restores.plan, remover.bring_back, beside)
    undoer = Undoer(doors, observer, tables, tasks, ids, planner.policy, registry.namesakes)
    measuring = None if recommendations is None else Measuring(recommendations, tasks, tables, queries, clock)
    verifier = Verifier(
        tasks, tables, observer, dispatcher, expirer, undoer, remover, recommendations, measuring=measuring
    )
    own: dict[ActionKind, Carrier] = {
        ActionKind.EXPIRE_SNAPSHOTS: expirer,
        ActionKind.UNDO_EXPIRE_SNAPSHOTS: undoer,
    }
    back: dict[ActionKind, Carrier] = {ActionKind.ROLLBACK_TO_SNAPSHOT: Rollbacker(rollbacks)}
    carriers = {**build_carriers(catalogs), **(own if expiries else {}), **(back if rollbacks else {}), **carriers}
    housekeeper = ServerTaskRunner(dispatcher, carriers, clock, alive=pulse.beat)
    past = Past(
        tasks, tables, kept, delivery.store, removals.store, policies, queries.kept_sums, recommendations, decisions
    )

    def wake_up() -> None:
        (wake or loop.wake)()

    intake = Intake(catalogs, tables, wake_up, event_prefixes)
    accepting = Recommendations(recommendations, catalogs, tables, properties, planner.policy, clock, intake.look_at)
    ledger = Ledger(
        accepting,
        catalogs,
        tables,
        tasks,
        queries,
        planner.policy,
        MeasuringTasks(maintainer.plan_asked, dispatcher.apply),
        clock,
    )
    benefit = Benefit(recommendations, tables, tasks, queries, clock)
    acceptance = PolicyAcceptance(accepting, clock)
    others = OthersTables(
        tables,
        observer,
        source,
        clock,
        part,
        want=rounds.want,
        acceptance=acceptance,
        answers=lambda catalog: loop.paused_until(catalog) is None,
    )
    loop = Loop(
        catalogs,
        tables,
        tasks,
        maintainer,
        dispatcher,
        verifier,
        housekeeper,
        clock,
        registry=registry,
        removals=rounds,
        pulse=pulse,
        pruner=Pruner(past, clock, keeping),
        tidings=tidings,
        more_steps=(
            ledger.keep_ledger,
            others.consider_tables_of_others,
            *(() if keeping.audit is None else (keeping.audit.link,)),
        ),
        part=part,
        parallel_looks=parallel_looks,
    )
    halting = Halting(tasks, tables, queue, catalogs, wake or loop.wake)
    return ControlPlane(
        catalogs,
        tables,
        tasks,
        clock,
        observer,
        planner,
        dispatcher,
        maintainer,
        registry,
        GoneUuids(registry),
        verifier,
        undoer,
        loop,
        removals.store,
        removals.sightings,
        rounds,
        Backlogs(tasks, tables, access, queue, catalogs),
        intake,
        PolicyBook(source, tables, clock, queue),
        Explanations(
            tables,
            tasks,
            removals.sightings,
            observer,
            planner.policy,
            dispatcher.leave,
            queue_waits,
            starts,
            approvals=approvals,
            benefit=benefit,
            never=frozenset(kind for kind, rule in DUE_RULES.items() if not rule.is_possible(planner)),
        ),
        Notifications(delivery, tasks.feed, Owners(tables, source, clock), clock),
        queue_waits,
        starts,
        halting,
        keeping.prunings,
        keeping.retention,
        keeping.history,
        GroupViews(tasks, tables, queue, halting),
        approvals,
        NextRound(wake or loop.wake),
        StorageReader(files, registry.aliases_of, removals.open_spool, clock.now),
        queries,
        accepting,
        ledger,
        benefit,
        decisions,
    )
