"""Tasks: one durable row for one action of one table, the only thing with a life cycle; attempts are its tries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

from icewright.core.errors import Cause, InvalidMessage
from icewright.core.times import Instant
from icewright.model.actions.actions import Action, ActionFigures, ActionKind, RewriteDataFiles, rewrite_of
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Prediction, Reason, RewritePrediction
from icewright.model.work.admission import NO_LANE, NOTHING, Holding, Lane


class TaskState(StrEnum):
    """Where a task is.

    queued -> running -> committed -> succeeded
                 |           `-> failed (verification did not hold: an alarm)
                 |-> in_doubt -> committed | queued | superseded | failed
                 |-> queued (to be tried again) | superseded (the world moved) | failed | cancelled

    What has ended becomes committed once more when its commit turns up in the table after all.
    """

    QUEUED = "queued"
    RUNNING = "running"
    IN_DOUBT = "in_doubt"
    """The attempt is gone or cannot tell; the server looks into the table before anything else happens."""
    COMMITTED = "committed"
    """The commit is reported; the server has not verified it yet."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    """The world moved; the table is planned anew."""


ACTIVE_STATES = frozenset({TaskState.RUNNING, TaskState.IN_DOUBT, TaskState.COMMITTED})
"""At most one task of a table and slot is in one of these: the database's constraint."""

TERMINAL_STATES = frozenset({TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED, TaskState.SUPERSEDED})

TRANSITIONS: Mapping[TaskState, frozenset[TaskState]] = {
    TaskState.QUEUED: frozenset({TaskState.RUNNING, TaskState.CANCELLED, TaskState.SUPERSEDED}),
    TaskState.RUNNING: frozenset(
        {
            TaskState.COMMITTED,
            TaskState.IN_DOUBT,
            TaskState.QUEUED,
            TaskState.FAILED,
            TaskState.CANCELLED,
            TaskState.SUPERSEDED,
        }
    ),
    TaskState.IN_DOUBT: frozenset(
        {
            TaskState.COMMITTED,
            TaskState.QUEUED,
            TaskState.FAILED,
            TaskState.CANCELLED,
            TaskState.SUPERSEDED,
        }
    ),
    TaskState.COMMITTED: frozenset({TaskState.SUCCEEDED, TaskState.FAILED}),
    TaskState.SUCCEEDED: frozenset({TaskState.COMMITTED}),  # another part of it that came late (decision 0016)
    TaskState.FAILED: frozenset({TaskState.QUEUED, TaskState.COMMITTED}),  # a person's retry; a commit that came late
    TaskState.CANCELLED: frozenset({TaskState.QUEUED, TaskState.COMMITTED}),
    TaskState.SUPERSEDED: frozenset({TaskState.COMMITTED}),
}


@dataclass(frozen=True, slots=True)
class Lease:
    """Who works on a task until when, and what that takes of its resource group.

    The fencing token grows with each claim and is checked at each write.
    """

    optimizer_id: str
    fencing_token: int
    expires_at: Instant
    holding: Holding = NOTHING


COMMITTING = "committing"
"""The phase of an attempt that asks for its last leave: its next step is the commit."""
REMOVING = "removing"
"""The phase of an attempt that moves files into quarantine, and asks for leave before each batch."""
RESTORING = "restoring"
"""The phase of an attempt that puts files back."""
ASKING_LEAVE = frozenset({COMMITTING, REMOVING})
IN_BATCHES = frozenset({REMOVING, RESTORING})
"""Phases in which an attempt may stop before each batch, so that another one goes on from there."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an attempt is."""

    phase: str
    """``planned``, ``merging``, ``proving``, ``committing`` or ``done``."""
    groups_done: int
    groups_total: int


@dataclass(frozen=True, slots=True)
class NewTask:
    """An action to be queued. Enqueueing the same candidate again coalesces.

    ``delay_ms`` puts the first try of a new task off, counted by the store's clock; one that takes a task's place keeps
    when that may start.
    """

    task_id: str
    table_id: TableId
    table_name: TableName
    plan_id: str
    action: Action
    reason: Reason
    prediction: Prediction
    priority: int
    resource_group: str
    attempts_max: int
    lane: Lane = NO_LANE
    delay_ms: int = 0


ASKED_FOR: Final = "asked_for"
"""The figure in a task's reason that says: a person asked for just this, and its plan was applied."""


@dataclass(frozen=True, slots=True)
class TaskHead:
    """A task as it stands, but for its action. ``version`` grows with each change and guards compare-and-swap."""

    task_id: str
    table_id: TableId
    table_name: TableName
    plan_id: str
    reason: Reason
    prediction: Prediction
    priority: int
    resource_group: str
    attempts_max: int
    state: TaskState
    version: int
    attempt: int
    """Tries so far; 0 before the first claim."""
    created_at: Instant
    updated_at: Instant
    not_before_at: Instant
    lease: Lease | None
    progress: Progress | None
    cancel_requested: bool
    outcome: Outcome | None
    lane: Lane

    @property
    def kind(self) -> ActionKind:
        """Of which kind its action is."""
        return ActionKind(self.prediction.kind)

    @property
    def rewrite_prediction(self) -> RewritePrediction | None:
        """What rewriting data files would bring, where that is the task's action."""
        return self.prediction if isinstance(self.prediction, RewritePrediction) else None

    @property
    def was_asked_for(self) -> bool:
        """Whether a person asked for it beyond the policy: what is planned by itself never takes its place."""
        return ASKED_FOR in self.reason.figures


@dataclass(frozen=True, slots=True)
class Task(TaskHead):
    """A task as it stands, with all that its action needs."""

    action: Action

    @property
    def rewrite(self) -> RewriteDataFiles:
        """The action, where it is known to be to rewrite data files. Raises :class:`TypeError` for any other."""
        return rewrite_of(self.action)

    @property
    def figures(self) -> ActionFigures:
        """What lists show of the action."""
        return self.action.figures

    def listed(self) -> ListedTask:
        """The task as lists show it."""
        head = {field.name: getattr(self, field.name) for field in fields(TaskHead)}
        return ListedTask(**head, figures=self.figures)


@dataclass(frozen=True, slots=True)
class ListedTask(TaskHead):
    """A task as it stands, as lists show it: without the files of its action."""

    figures: ActionFigures


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended, or how its last attempt did: a reason, and measured figures where there are any.

    ``cause`` is why it came to nothing, where an attempt did.
    """

    reason: Reason
    snapshot_id: int | None = None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One change of a task's state, appended in the same transaction as the change."""

    task_id: str
    version: int
    state: TaskState
    attempt: int
    at: Instant
    reason: Reason


class AttemptState(StrEnum):
    """Where one try of a task is."""

    RUNNING = "running"
    COMMITTED = "committed"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    """Its lease ran out."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a task; kept as long as the task, with the report that ended it as JSON."""

    task_id: str
    attempt: int
    optimizer_id: str
    fencing_token: int
    state: AttemptState
    started_at: Instant
    ended_at: Instant | None
    progress: Progress | None
    report_json: str | None


LINES_MAX: Final = 200
"""Of the log of an attempt, the last ones: so many are kept."""
LINE_LENGTH_MAX: Final = 500
"""In characters."""
LOG_BYTES_MAX: Final = 64 * 1024
"""The texts of all lines of an attempt together, as UTF-8."""
_NUMBER_MAX: Final = 2**31 - 1
_AT_MAX: Final[Instant] = 253_402_300_799_999
"""The last instant of the year 9999."""


class LogLevel(StrEnum):
    """How much a line matters."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: when it was logged, by the clock of the optimizer, and what it says."""

    at: Instant
    level: LogLevel
    text: str

    def __post_init__(self) -> None:
        """Refuse what no optimizer of ours sends, and a terminal or a page would act on."""
        if len(self.text) > LINE_LENGTH_MAX or not self.text.isprintable():
            raise InvalidMessage(f"a line of a log has at most {LINE_LENGTH_MAX} characters, and all of them print")
        if not 0 <= self.at <= _AT_MAX:
            raise InvalidMessage(f"a line of a log is of an instant from 1970 to 9999, not of {self.at}")

    @property
    def size_bytes(self) -> int:
        """What the text counts of :data:`LOG_BYTES_MAX`."""
        return len(self.text.encode())


@dataclass(frozen=True, slots=True)
class LogLines:
    """Lines of one attempt that follow each other, none left out between them; ``first`` is the number of the first.

    Numbers begin with 1.
    """

    first: int
    lines: tuple[LogLine, ...]

    def __post_init__(self) -> None:
        """Refuse more than is kept of an attempt."""
        if not 1 <= self.first <= self.last <= _NUMBER_MAX:
            raise InvalidMessage(f"lines of a log are at least one, and have numbers from 1 to {_NUMBER_MAX}")
        if len(self.lines) > LINES_MAX or sum(line.size_bytes for line in self.lines) > LOG_BYTES_MAX:
            raise InvalidMessage(f"of a log are at most {LINES_MAX} lines of {LOG_BYTES_MAX:,} bytes together")

    @property
    def last(self) -> int:
        """The number of the last line."""
        return self.first + len(self.lines) - 1

    @property
    def left_out(self) -> int:
        """How many lines of the attempt came before these."""
        return self.first - 1

    def followed_by(self, more: LogLines) -> LogLines:
        """These and more, which may be sent again, as far as they are kept: the newest. No line is there twice.

        What is behind a gap alone, where some between were never sent: those before are older than all that is kept.
        """
        if more.last <= self.last:
            return self
        if not self.first < more.first <= self.last + 1:
            return more
        lines = (*self.lines[: more.first - self.first], *more.lines)
        kept = newest_lines(reversed(lines))
        return LogLines(more.last - kept + 1, lines[len(lines) - kept :])


def newest_lines(lines: Iterable[LogLine]) -> int:
    """How many of these lines are kept, of which the newest comes first."""
    count = size_bytes = 0
    for line in lines:
        size_bytes += line.size_bytes
        if count == LINES_MAX or size_bytes > LOG_BYTES_MAX:
            break
        count += 1
    return count
