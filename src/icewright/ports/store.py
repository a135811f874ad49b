"""The store ports: the queue of tasks, and what is known of tables. Durable, and shared by all server processes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from icewright.core.times import Instant
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.layouts import Run
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.approvals import Refusal
from icewright.model.plans.plans import Plan, Reason
from icewright.model.work.figures import SeriesPoint
from icewright.model.work.halts import Halt, NewHalt, Part
from icewright.model.work.history import Ending
from icewright.model.work.jobs import OptimizerHello
from icewright.model.work.retention import RETENTION, Retention, RowKind
from icewright.model.work.tasks import (
    Attempt,
    AttemptState,
    HistoryEntry,
    ListedTask,
    LogLines,
    NewTask,
    Outcome,
    Progress,
    Task,
    TaskState,
)
from icewright.ports.admissions import Admissions
from icewright.ports.census import TableCensus, TaskCensus
from icewright.ports.feed import Feed
from icewright.ports.findings import Findings
from icewright.ports.inbox import Inbox
from icewright.ports.submitters import Submitters
from icewright.ports.table_lists import TableLists
from icewright.ports.table_records import InventoryUpdate as InventoryUpdate  # noqa: PLC0414 - most find it here
from icewright.ports.table_records import Looks
from icewright.ports.table_records import TableRecord as TableRecord  # noqa: PLC0414 - see above
from icewright.ports.table_records import WaitingPlan as WaitingPlan  # noqa: PLC0414 - see above


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What became of an enqueue: a new task, or an earlier one of the same candidate.

    ``coalesced``: a task of the table was waiting, untried, and now carries the newer action.
    ``task`` with neither flag: a task of the table is under way already and nothing was queued.
    """

    task: Task
    created: bool
    coalesced: bool


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a task's state, applied only if the task still has ``version``.

    ``attempt_state`` also ends the present attempt, with ``report_json`` if there is one; for an attempt that has
    ended it corrects how (what was unknown may turn out to be committed) and keeps the instant.
    ``delay_ms`` puts the next try of a task that is queued again off, counted by the store's clock. ``log`` has lines
    that the present attempt logged.
    """

    task_id: str
    version: int
    state: TaskState
    outcome: Outcome
    attempt_state: AttemptState | None = None
    report_json: str | None = None
    delay_ms: int = 0
    log: LogLines | None = None


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks to list; None does not restrict. ``within``: of tables in these scopes, by their records."""

    states: frozenset[TaskState] | None = None
    table_id: TableId | None = None
    kind: ActionKind | None = None
    within: Scopes = EVERYWHERE
    resource_group: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptOfTask:
    """A try of a task in a list of those of many tasks: without its report, and with what its task is."""

    attempt: Attempt
    table_name: TableName
    table_id: TableId
    kind: ActionKind
    resource_group: str
    queued_at: Instant


class Halts(Protocol):
    """What of the queue is paused, draining or stopped, the same for all servers of a store.

    Each claim reads all halts in its own transaction. Each method is one transaction, with an entry in the audit
    and a fact in the feed for each change, on behalf of :func:`icewright.audit.acting.acting`. All raise
    :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def present(self) -> Sequence[Halt]:
        """All of them, by their parts. Asked for at each heartbeat: cheap."""

    def halt(self, new: NewHalt) -> Halt:
        """Halt a part from now on, also one that is halted already in another way.

        What is given out afterwards was not covered: no claim is under way that has not seen it. The same once more
        changes nothing and keeps its time. Raises :class:`~icewright.core.errors.NotAllowed` where there are
        ``HALTS_MAX`` already.
        """

    def resume(self, part: Part, why: str) -> Halt | None:
        """End the halt of exactly this part; what it was, None where there was none. Others stay."""


class TaskStore(Admissions, Protocol):
    """The queue. Every method is one transaction; instants are by the store's own clock.

    Raises :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    @property
    def feed(self) -> Feed:
        """Where each change of a task is told, in the same transaction: :func:`icewright.feed.task_events.fact_of`."""

    @property
    def halts(self) -> Halts:
        """What :meth:`claim` gives nothing out of, and :meth:`claimable` does not count; read in its transaction."""

    def now(self) -> Instant:
        """The store's clock, by which all leases run."""

    def enqueue(self, new: NewTask) -> Enqueued:
        """Queue an action, or coalesce it with a waiting, never tried task of the same table and kind of action.

        A task that coalesces takes over everything of the newer candidate but keeps its id, its age and the higher of
        the two priorities; the history tells. When a task of the same table and kind waits to be tried again or is
        active, that one is returned unchanged: at most one task of a table and kind has not ended.
        Raises :class:`~icewright.core.errors.Conflict` when the id of the new task has been used.
        """

    def heartbeat(
        self, task_id: str, fencing_token: int, *, progress: Progress, lease_ms: int, log: LogLines | None = None
    ) -> Task:
        """Extend the lease (never shorten it), remember the progress, keep the log; no new version, no history.

        Raises ``NotFound``, and :class:`~icewright.core.errors.LeaseLost` for an old token, for a task that is not
        running, and for a lease that has run out, also when nobody noticed yet: a lease never comes back.
        """

    def check_lease(self, task_id: str, fencing_token: int) -> Task:
        """The running task that this token holds. Raises as :meth:`heartbeat` does."""

    def change(self, change: Change) -> Task:
        """Apply a change, and release the lease unless the task is then in doubt.

        A person's retry (queued again after the end) also forgets that a cancel was requested.
        Raises ``NotFound``; :class:`~icewright.core.errors.Conflict` when the version is not the present one, and for
        queueing again a task whose plan was refused; and :class:`~icewright.core.errors.NotAllowed`

        - for a transition that ``TRANSITIONS`` does not have, and for a start, which only :meth:`claim` can make;
        - for queueing again a task that was asked to stop, or that has ended while a newer one of the same table and
          kind waits or is active, and for taking up one that has ended while any other of the table is active;
        - when the lease would be released while the present attempt is still open; when ``attempt_state`` is
          ``running`` or there is no attempt; and for a report without ``attempt_state``.
        """

    def expired(self, limit: int) -> Sequence[Task]:
        """Running tasks whose lease has run out, longest first."""

    def request_cancel(self, task_id: str, reason: Reason, version: int | None = None) -> Task:
        """Cancel a waiting task at once; ask the optimizer of a running one to stop at its next heartbeat.

        A task in doubt is marked as well, so that it is not tried again. Asking twice changes nothing.
        Raises ``NotFound``, ``Conflict`` when another version is meant, ``NotAllowed`` once it has ended or committed.
        """

    def get(self, task_id: str) -> Task:
        """One task. Raises :class:`~icewright.core.errors.NotFound`."""

    def head(self, task_id: str) -> ListedTask:
        """As :meth:`get`, without the files of its action, which may be megabytes."""

    def ids_like(self, part: str, within: Scopes, limit: int) -> Sequence[str]:
        """Ids of tasks of tables in scopes whose UUID begins or ends with ``part``, newest first.

        ``part`` has hexadecimal digits and hyphens alone.
        """

    def tasks(self, only: TaskFilter, *, limit: int, before: str | None = None) -> Sequence[Task]:
        """Tasks, newest first by id; ``before`` is the id that the last page ended with."""

    def listed(self, only: TaskFilter, *, limit: int, before: str | None = None) -> Sequence[ListedTask]:
        """As :meth:`tasks`, without the files of their actions: for lists, however long those are."""

    def history(self, task_id: str) -> Sequence[HistoryEntry]:
        """All changes of a task, oldest first; folding them gives its present state. Raises ``NotFound``."""

    def attempts(self, task_id: str, *, limit: int | None = None, after: int = 0) -> Sequence[Attempt]:
        """Tries of a task, oldest first, those behind the one of a number. Raises ``NotFound``."""

    def log(self, task_id: str, attempt: int) -> LogLines | None:
        """The last lines that an attempt logged; None where none are kept."""

    def attempts_of(self, task_ids: Sequence[str]) -> Mapping[str, Sequence[Attempt]]:
        """Tries of several tasks, oldest first, by the ids of those that have any."""

    def latest_attempts(
        self,
        only: TaskFilter,
        *,
        states: frozenset[AttemptState] | None = None,
        limit: int,
        before: int | None = None,
        among: int | None = None,
    ) -> Sequence[AttemptOfTask]:
        """Tries of the tasks that a filter lets through, those that began last first.

        ``before`` is the fencing token of the one that the last page ended with. ``among`` is how many of the last
        tries of all tasks are looked through, None for all: what asks again and again must not read all that is kept.
        """

    def counts(self, within: Scopes = EVERYWHERE) -> Mapping[TaskState, int]:
        """Tasks by state, as :attr:`TaskFilter.within`; every state is there."""

    def restored_at(self) -> Instant | None:
        """When the store was made from a backup, which does not know what happened after it; None if it never was."""

    def census(self, oldest_max: int) -> TaskCensus:
        """The queue in figures, for metrics, with at most so many of the tasks that wait or run longest."""

    def attempt_counts(self, table_id: TableId) -> Mapping[AttemptState, int]:
        """All tries at the tasks of a table, by state; every state is there."""

    def ended(self, after: Ending | None, before: Instant, limit: int) -> Sequence[ListedTask]:
        """Tasks that have ended before an instant, in the order in which they did, ``after`` one of them."""

    def prune(self, ended_before: Instant, limit: int) -> int:
        """Forget at most so many tasks, with all that is theirs, of those that ended before, oldest first; how many."""

    def prune_logs(self, written_before: Instant, limit: int) -> int:
        """Forget at most so many logs of attempts that were last written before, oldest first; how many."""


@dataclass(frozen=True, slots=True)
class OptimizerRecord:
    """An optimizer as it introduced itself, and when it was last heard of."""

    hello: OptimizerHello
    seen_at: Instant


AT_ONCE: Final[Instant] = 0
"""From here on down, the ``next_look_at`` of a table that is to be looked at before all others: each wish lowers it."""
ROWS_AT_ONCE_MAX: Final = 5_000
"""Rows of a kind that go in one transaction: writers of the store wait for it."""


@dataclass(frozen=True, slots=True)
class PlanPlace:
    """Where a plan is among those of its table, by when it was made."""

    planned_at: Instant
    plan_id: str


class TableStore(Findings, Inbox, Looks, Protocol):
    """What icewright knows of tables: records, inventory, plans, the inbox of events, and optimizers seen.

    Raises :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    @property
    def submitters(self) -> Submitters:
        """Who starts optimizers for what waits."""

    @property
    def lists(self) -> TableLists:
        """Tables as lists show them, written with their records."""

    def record(self, table_id: TableId) -> TableRecord | None:
        """What is known of a table."""

    def record_by_name(self, name: TableName) -> TableRecord | None:
        """The table that was last seen under that name and is not known to be dropped."""

    def records_by_name(self, names: Collection[TableName]) -> Mapping[TableName, TableRecord]:
        """As :meth:`record_by_name`, of many names at once; those that nothing is known of are left out."""

    def unknown(self, catalog: str, names: Collection[TableName]) -> frozenset[TableName]:
        """Those of a catalog's names of which :meth:`record_by_name` knows nothing, however many: asked at once."""

    def records(
        self, *, catalog: str | None = None, limit: int, after: TableId | None = None, within: Scopes = EVERYWHERE
    ) -> Sequence[TableRecord]:
        """Tables in scopes, not known to be dropped, by id; ``after`` is the id that the last page ended with."""

    def save_record(
        self, record: TableRecord, *, policies: int | None = None, series: Sequence[SeriesPoint] | None = None
    ) -> None:
        """Insert or replace what is known of a table, if nobody has since ``record`` was read: the next revision.

        With ``policies``, also only if that is still the present revision of the policies. With ``series``, that
        replaces the table's as well.
        Raises :class:`~icewright.core.errors.LookLost` otherwise, and nothing changes. Another table that was last
        seen under the same name becomes dropped, as of ``observed_at``; unless the saved one is dropped itself.
        """

    def gathered(self) -> AbstractContextManager[None]:
        """Write the inventory, the plan and the record of a look together, as far as nothing comes between them.

        Within the block and its thread, what a look keeps of one table waits until its record is saved, until anything
        else of the store is read or written, or until the block ends, also by an error. A look that is lost, or whose
        bucket is, may so be told of it later, and again by whatever it writes next.
        """

    def look_by(self, table_ids: Sequence[TableId], at: Instant) -> None:
        """Have tables looked at by then, where that is sooner than planned; harmless for what is not known."""

    def apply_inventory(self, update: InventoryUpdate) -> None:
        """Move a table's inventory forward, together with its record: from what was stored when that was read.

        Removing what is not there is harmless. Raises :class:`~icewright.core.errors.LookLost` when somebody else has
        written the record since, as :meth:`save_record`: the update may be no step from what is stored now.
        """

    def look_at_once(self, name: TableName) -> None:
        """Have the table of that name looked at before all others, by whichever server looks at it.

        A look that is being taken does not count, since it may have begun before: it finds ``next_look_at`` lower than
        it was. Harmless where no such table is known.
        """

    def manifest_keys(self, table_id: TableId) -> Sequence[ManifestKey]:
        """The manifests that the stored inventory was summed from, in order."""

    def manifest_summaries(
        self, table_id: TableId, partitions: frozenset[Partition] | None = None
    ) -> Iterable[ManifestSummary]:
        """The stored summaries, one at a time; with ``partitions``, only those that have one of them.

        All of them as of the moment when the first is taken, in no particular order.
        """

    def partitions(
        self, table_id: TableId, *, limit: int | None = None, after: Partition | None = None
    ) -> Sequence[PartitionStatistics]:
        """The stored statistics, by partition; ``after`` is the partition that the last page ended with."""

    def runs(self, table_id: TableId) -> Mapping[int, Run]:
        """The runs that are remembered of a table, by the snapshots that added them; they may have expired since."""

    def save_plan(self, plan: Plan, *, is_present: bool = True) -> None:
        """Keep a plan, and make it the present one of the table, if that is known, unless it is said not to be.

        A plan never changes: saving it again is harmless, saving another under the same id raises
        :class:`~icewright.core.errors.Conflict`.
        """

    def plan(self, plan_id: str) -> Plan:
        """A plan. Raises :class:`~icewright.core.errors.NotFound`."""

    def ids_like(self, part: str, within: Scopes, limit: int) -> Sequence[str]:
        """Ids of plans, as :meth:`TaskStore.ids_like`."""

    def asked_by(self, plan_id: str) -> str | None:
        """On whose behalf a plan was saved that was asked for; None of others, and of those that are not there."""

    def plans(self, table_id: TableId, *, limit: int, before: PlanPlace | None = None) -> Sequence[Plan]:
        """Plans of a table, newest first; ``before`` is that which the last page ended with."""

    def wait(self, waiting: WaitingPlan) -> None:
        """Let a plan wait, in place of another one of the same table and kind; one that was refused waits again."""

    def waits(self, table_id: TableId) -> Mapping[ActionKind, WaitingPlan]:
        """The plans that wait for a table, by the kinds of their actions, at most one of each; also refused ones."""

    def refuse(self, refusal: Refusal) -> Refusal:
        """Remember that somebody refuses a plan that waits; the first refusal of a plan stays, and is given back.

        Raises :class:`~icewright.core.errors.Conflict` for a plan that does not wait or whose table was dropped, that
        was approved and not tried yet, or that a task carries out. A task of one that was refused is a conflict as
        well, and so is its first approval: of two people who decide at once one is heard.
        """

    def refusal(self, plan_id: str) -> Refusal | None:
        """Who refused a plan, and why."""

    def refusals(self, table_id: TableId) -> Mapping[ActionKind, Refusal]:
        """The latest refusal of each kind of action of a table."""

    def waits_no_more(self, table_id: TableId, kind: ActionKind) -> None:
        """Forget that a plan of that kind waits for a table; harmless where none does."""

    def waiting(self, *, limit: int, after: str | None = None, within: Scopes = EVERYWHERE) -> Sequence[WaitingPlan]:
        """Plans that wait and were not refused, of tables in scopes, not known to be dropped, by id.

        ``after`` ended the last page.
        """

    def prune(self, now: Instant, keep: Retention = RETENTION, limit: int = ROWS_AT_ONCE_MAX) -> Mapping[RowKind, int]:
        """Delete what nothing needs any more, at most ``limit`` rows of a kind, the oldest first; how many of each.

        Those are events that were worked on, what was found out of storages and optimizers that were not heard of,
        each as long ago as ``keep`` says; and findings and questions that count no more after a day, which are not
        counted.
        """

    def prune_plans(self, keep: int, limit: int) -> int:
        """Forget at most so many plans that nothing needs, the oldest first; how many. No single transaction.

        Needed are a table's present plan, plans that wait for a person, the plans that tasks were made from, and the
        ``keep`` newest of each table. No plan of a table that was dropped waits any more. A refusal goes behind its
        plan, once it holds no more.
        """

    def prune_dropped(self, dropped_before: Instant, limit: int) -> int:
        """Forget at most so many tables that were dropped before an instant, with all that is known of them; how many.

        Each in a transaction of its own, the ones that were dropped first first; none of which a task or a removal is
        left: what was done to it is found by its record.
        """

    def optimizer_seen(self, hello: OptimizerHello) -> None:
        """Remember that an optimizer was heard of just now."""

    def optimizers(self) -> Sequence[OptimizerRecord]:
        """Optimizers, the one seen last first."""

    def census(self) -> TableCensus:
        """What is known of tables in figures, for metrics."""
