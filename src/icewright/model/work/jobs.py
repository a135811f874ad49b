"""What server and optimizer say to each other: the spec of a task going out, the report coming back.

Both travel as JSON (`icewright.core.codec`). A change that an older peer could misread raises
:data:`PROTOCOL_VERSION`; a peer of another version is refused. It is the version of the envelope: hello, claim, lease
and report. What an action says has a version of its own (``protocol_version`` of
:class:`icewright.model.actions.traits.ActionTraits`): an optimizer announces those that it understands, and gets no
task of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Final, Literal, TypeAlias

from icewright.core.codec import loads
from icewright.core.errors import InvalidMessage, VersionMismatch
from icewright.model.actions.actions import Action, RewriteDataFiles, rewrite_of
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.optimizers import WorkerEnvironment
from icewright.model.work.tasks import Attempt, LogLines, Progress

PROTOCOL_VERSION = 14


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What an optimizer asks for: any task, or one more for a batch that it fills.

    With ``shareable_bytes_max``, only a task that was never tried and whose groups can all share a Spark job with those
    of other tasks, of at most so many bytes to read.
    """

    shareable_bytes_max: int | None = None


ANY_TASK: Final = ClaimRequest()


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """All that an optimizer needs to know of one attempt; it chooses nothing itself.

    ``action_version`` is the version in which the action is said.
    """

    protocol_version: int
    task_id: str
    attempt: int
    fencing_token: int
    table_id: TableId
    table_name: TableName
    action: Action
    lease_ms: int
    action_version: int

    @property
    def rewrite(self) -> RewriteDataFiles:
        """The action, where it is known to be to rewrite data files. Raises :class:`TypeError` for any other."""
        return rewrite_of(self.action)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The proof that one group kept its rows.

    ``input_digest`` and ``output_digest`` are taken over the rows as read from the input files and as read back
    from the output files by another library; they are equal, or there is no commit. ``records`` are the rows
    written, ``deleted_records`` those that delete files removed: together the rows in the input files.
    """

    group_id: int
    method: str
    input_digest: str
    output_digest: str
    records: int
    deleted_records: int = 0


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """What one group cost and brought.

    ``proof_cpu_ms`` is what of ``cpu_ms`` went into its proof: reading what was written back and all that is taken over
    rows and bytes for it. It is 0 where nobody measured it, as before protocol 6.
    """

    group_id: int
    input_files: int
    input_bytes: int
    output_paths: tuple[str, ...]
    output_bytes: int
    records: int
    cpu_ms: int
    wall_ms: int
    peak_memory_bytes: int
    proof_cpu_ms: int = 0


GROUP_CONFLICT = "conflict"
"""The code of a group that met somebody else's commit."""


@dataclass(frozen=True, slots=True)
class GroupLeft:
    """A group that is not in the commit, and why: :data:`GROUP_CONFLICT`, or the code of what failed.

    Nothing of it is in the table; a file that was written for it stays where it is. ``retryable`` tells whether the
    same group may do better next time.
    """

    group_id: int
    code: str
    detail: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit is in the table, of the groups that the report does not say are left.

    ``snapshot_id`` is None for what makes no snapshot.
    """

    kind: ClassVar[Literal["committed"]] = "committed"
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class Conflicted:
    """The table refused the commit, since somebody else's came first. Nothing changed."""

    kind: ClassVar[Literal["conflict"]] = "conflict"
    detail: str


@dataclass(frozen=True, slots=True)
class CommitUnknown:
    """The commit may or may not be in the table."""

    kind: ClassVar[Literal["unknown"]] = "unknown"
    detail: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing was committed. ``retryable`` tells whether the same spec may do better next time."""

    kind: ClassVar[Literal["failed"]] = "failed"
    code: str
    detail: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Stopped on request, before the commit."""

    kind: ClassVar[Literal["cancelled"]] = "cancelled"
    detail: str


Result: TypeAlias = Committed | Conflicted | CommitUnknown | Failed | Cancelled


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What an attempt did. ``receipts`` and ``groups`` are of the groups that were rewritten, committed or not.

    ``answer`` is what a task found that only reads, as JSON of a document of its own; empty of all others.
    """

    protocol_version: int
    task_id: str
    attempt: int
    fencing_token: int
    result: Result
    receipts: tuple[Receipt, ...]
    groups: tuple[GroupFigures, ...]
    wall_ms: int
    cpu_ms: int
    left: tuple[GroupLeft, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class SentReport(TaskReport):
    """A report as it is sent, with what the attempt logged and the server has not yet; the log lies apart from it."""

    log: LogLines | None = None

    @classmethod
    def of(cls, report: TaskReport, log: LogLines | None) -> SentReport:
        """A report with these lines."""
        return cls(**{one.name: getattr(report, one.name) for one in fields(TaskReport)}, log=log)

    @property
    def report(self) -> TaskReport:
        """The report alone."""
        return TaskReport(**{one.name: getattr(self, one.name) for one in fields(TaskReport)})


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """An optimizer says that it is still at it; ``log`` has lines of the attempt that the server has not yet."""

    fencing_token: int
    progress: Progress
    log: LogLines | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The server's answer: how long the lease now runs, and whether to stop."""

    lease_ms: int
    cancel: bool


@dataclass(frozen=True, slots=True)
class TableCheck:
    """What an optimizer sees of a table through Spark's catalog, to be compared with what the server sees."""

    table_id: TableId
    metadata_location: str


@dataclass(frozen=True, slots=True)
class OptimizerHello:
    """An optimizer introduces itself. ``catalogs`` are those that its Spark session can reach.

    ``workers`` is what its Python workers have, None of one that did not say. ``cores`` and ``memory_bytes`` are what
    its application may take at most, None where that cannot be told, and ``queues`` those whose tasks it takes.
    ``actions`` are the kinds of actions that it carries out, each with the version in which it understands them: it
    gets tasks of no others. ``application_id`` is what Spark and the manager of its cluster call its application, and
    ``spark_ui_url`` the address of Spark's UI, None where that is off.
    """

    protocol_version: int
    optimizer_id: str
    version: str
    resource_group: str
    slots: int
    catalogs: tuple[str, ...]
    spark_version: str
    iceberg_version: str
    workers: WorkerEnvironment | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    is_resident: bool = True
    queues: tuple[Queue, ...] = tuple(Queue)
    actions: Mapping[str, int] = field(default_factory=dict)
    application_id: str = ""
    spark_ui_url: str | None = None

    def __post_init__(self) -> None:
        """Refuse what would count against the sums of its group, and a link that is none to a page."""
        if self.slots < 1 or min(self.cores or 0, self.memory_bytes or 0) < 0:
            raise InvalidMessage("an optimizer has at least one slot, and no less than no cores and no memory")
        if self.spark_ui_url is not None and not self.spark_ui_url.startswith(("http://", "https://")):
            raise InvalidMessage("the address of Spark's UI begins with http:// or https://")


def check_protocol(version: int, who: str) -> None:
    """Whether somebody speaks our version. Raises :class:`~icewright.core.errors.VersionMismatch`."""
    if version != PROTOCOL_VERSION:
        raise VersionMismatch(
            f"{who} speaks version {version} of the protocol, the server speaks {PROTOCOL_VERSION}",
            hint="run the same release of icewright on both sides",
        )


def report_of(attempt: Attempt) -> TaskReport | None:
    """The report of an attempt; None where there is none, or another release wrote it in another shape."""
    if attempt.report_json is None:
        return None
    try:
        return loads(TaskReport, attempt.report_json)
    except InvalidMessage:
        return None
