"""``icewright tasks ...``: the server's queue, from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from icewright.cli import figures as text
from icewright.cli.attempts import attempts
from icewright.cli.deletes import delete_costs_cells
from icewright.cli.invocation import AsJson, Cursor, Limit, ShowApi, begin
from icewright.cli.lists import print_page
from icewright.cli.terminal import Column, Terminal
from icewright.cli.waits import say_waits
from icewright.domain.actions import RewriteFigures
from icewright.domain.codec import from_json
from icewright.domain.compute_statistics import ComputeStatisticsFigures, ComputeStatisticsPrediction
from icewright.domain.expire_data import ExpireDataFigures, ExpireDataPrediction
from icewright.domain.expire_snapshots import ExpireSnapshotsFigures, ExpireSnapshotsPrediction
from icewright.domain.plans import Estimate, RewritePrediction
from icewright.domain.remove_dangling_deletes import RemoveDanglingDeletesFigures, RemoveDanglingDeletesPrediction
from icewright.domain.remove_expired_files import RemoveExpiredFilesFigures, RemoveExpiredFilesPrediction
from icewright.domain.remove_orphan_files import RemoveOrphanFilesFigures, RemoveOrphanFilesPrediction
from icewright.domain.restore_files import RestoreFilesFigures, RestoreFilesPrediction
from icewright.domain.rewrite_manifests import RewriteManifestsFigures, RewriteManifestsPrediction
from icewright.domain.rewrite_position_deletes import RewritePositionDeletesFigures, RewritePositionDeletesPrediction
from icewright.domain.rollback import RollbackFigures, RollbackPrediction
from icewright.domain.tables import Json
from icewright.domain.tasks import TaskState
from icewright.domain.undo import UNDO_WINDOW_MS, SecondTable, UndoExpiryFigures, UndoExpiryPrediction
from icewright.domain.undo_data import UndoExpireDataFigures, UndoExpireDataPrediction

if TYPE_CHECKING:
    from icewright.adapters.http.client import Client
    from icewright.adapters.http.connection import Page
    from icewright.api.task_views import ListedAttempt, TaskDocument, TaskView
    from icewright.services.measures import Measured

app = typer.Typer(help="The server's tasks: list, show, cancel, retry, expedite.", no_args_is_help=True)

TaskArgument = Annotated[str, typer.Argument(metavar="TASK_ID", help="As `icewright tasks list` shows it.")]

_TASKS = (
    Column("task"),
    Column("state"),
    Column("table"),
    Column("try", is_number=True),
    Column("progress", is_number=True),
    Column("files read", is_number=True),
    Column("bytes read", is_number=True),
    Column("since"),
    Column("because"),
)
_FIGURES = (Column(""), Column("predicted", is_number=True), Column("measured", is_number=True))
_HISTORY = (Column("at"), Column("state"), Column("try", is_number=True), Column("because"))
_ATTEMPTS = (Column("try", is_number=True), Column("state"), Column("started"), Column("ended"), Column("optimizer"))


@app.command("list")
def list_tasks(
    context: typer.Context,
    *,
    state: Annotated[list[TaskState] | None, typer.Option("--state", help="Only these; may be repeated.")] = None,
    table: Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only tasks of this table.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """List tasks, newest first."""
    from icewright.cli.offline import table_name  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=as_json)

    def ask(client: Client) -> Page:
        of_table = None if table is None else client.table(table_name(invocation.config, table))
        return client.tasks(states=tuple(state or ()), table=of_table, limit=limit, cursor=cursor)

    print_page(invocation, ask, read_task, _TASKS, _task_cells, none="no tasks", show_api=show_api)


@app.command()
def show(context: typer.Context, task_id: TaskArgument, *, as_json: AsJson = False, show_api: ShowApi = False) -> None:
    """Show one task with its history and its attempts."""
    from icewright.api.task_views import TaskDocument  # noqa: PLC0415 - `--help` stays quick
    from icewright.cli.connection import server  # noqa: PLC0415 - see above

    invocation = begin(context, as_json=as_json)
    with server(invocation, show_api=show_api) as client:
        found = from_json(TaskDocument, client.task(task_id))
    if as_json:
        invocation.terminal.document(found)
    else:
        _print_document(invocation.terminal, found)


@app.command()
def cancel(
    context: typer.Context, task_id: TaskArgument, *, as_json: AsJson = False, show_api: ShowApi = False
) -> None:
    """Cancel a waiting task; ask a running one to stop before its commit."""
    from icewright.cli.connection import server  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=as_json)
    with server(invocation, show_api=show_api) as client:
        task = read_task(client.cancel(task_id))
    _print_answer(invocation.terminal, task)


@app.command()
def retry(context: typer.Context, task_id: TaskArgument, *, as_json: AsJson = False, show_api: ShowApi = False) -> None:
    """Queue a failed or cancelled task again."""
    from icewright.cli.connection import server  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=as_json)
    with server(invocation, show_api=show_api) as client:
        task = read_task(client.retry(task_id))
    _print_answer(invocation.terminal, task)


@app.command()
def expedite(
    context: typer.Context, task_id: TaskArgument, *, as_json: AsJson = False, show_api: ShowApi = False
) -> None:
    """Have a waiting task started before all others of its resource group."""
    from icewright.cli.connection import server  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=as_json)
    with server(invocation, show_api=show_api) as client:
        task = read_task(client.expedite(task_id))
    _print_answer(invocation.terminal, task)


app.command()(attempts)


def read_task(data: Json) -> TaskView:
    """A task as the server sent it. Raises :class:`~icewright.domain.errors.InvalidMessage`."""
    from icewright.api.task_views import TaskView  # noqa: PLC0415 - `--help` stays quick

    return from_json(TaskView, data)


def print_task(terminal: Terminal, task: TaskView) -> None:
    """Print what a task is and how it stands."""
    stopping = task.cancel_requested and task.state is TaskState.RUNNING
    terminal.pairs(
        [
            ("task", task.task_id),
            ("table", task.table),
            ("state", task.state.value + (" (asked to stop)" if stopping else "")),
            ("because", task.reason.text),
            ("outcome", "" if task.outcome is None else task.outcome.reason.text),
            ("committed", "" if task.outcome is None else str(task.outcome.snapshot_id or "")),
            ("action", task.action.kind),
            ("work", _work(task)),
            ("undo", _undo(task)),
            ("progress", _progress(task)),
            ("queue", _queue(task)),
            ("try", f"{task.attempt} of {task.attempts_max}"),
            ("optimizer", "" if task.lease is None else task.lease.optimizer_id),
            ("plan", task.plan_id),
            ("created", text.instant(task.created_at)),
            ("changed", text.instant(task.updated_at)),
        ]
    )


def _queue(task: TaskView) -> str:
    owner = f", owner {task.lane.tenant}" if task.lane.tenant else ""
    return f"{task.lane.queue.value} of group {task.resource_group}, {task.lane.urgency.value}{owner}"


def print_queued(terminal: Terminal, task: TaskView) -> None:
    """Print a task that was just queued, and where one sees how it goes on."""
    if terminal.as_json:
        terminal.document(task)
        return
    print_task(terminal, task)
    terminal.say(f"Next: icewright tasks show {task.task_id}")


def _work(task: TaskView) -> str:  # noqa: C901, PLR0911 - one case for each action
    """What is to be done, in a few words."""
    match task.prediction:
        case RewritePrediction() as said:
            return f"{said.input_files:,} files ({text.size(said.input_bytes)}) become {said.output_files:,}"
        case RewriteManifestsPrediction() as said:
            return f"{said.manifests_before:,} manifests become {said.manifests_after:,}"
        case RemoveDanglingDeletesPrediction() | RewritePositionDeletesPrediction() as said:
            return f"{said.before.listed:,} delete files become {said.after.listed:,}"
        case ExpireDataPrediction() as said:
            return f"{said.records:,} of {said.records_before:,} rows expire"
        case UndoExpireDataPrediction() as said:
            return f"rows of {text.count(said.files, 'file')} ({text.size(said.size_bytes)}) inserted again"
        case ExpireSnapshotsPrediction() as said:
            return f"{said.snapshots_before:,} snapshots become {said.snapshots_after:,}"
        case UndoExpiryPrediction(second=SecondTable(name=second)) as said:
            return f"{text.count(said.snapshots_after, 'snapshot')} in a second table, {second}"
        case UndoExpiryPrediction() as said:
            return f"{said.snapshots_before:,} snapshots become {said.snapshots_after:,} again"
        case ComputeStatisticsPrediction() as said:
            return f"statistics of {text.count(len(said.columns), 'column')}" + (
                " and of partitions" if said.of_partitions else ""
            )

        case RemoveOrphanFilesPrediction() | RemoveExpiredFilesPrediction() as said:
            return f"{text.count(said.files, 'file')} ({text.size(said.size_bytes)}) go into quarantine"
        case RestoreFilesPrediction() as said:
            return f"{text.count(said.files, 'file')} ({text.size(said.size_bytes)}) come back"
        case RollbackPrediction() as said:
            return f"{text.count(said.snapshots, 'commit')} {'back' if said.is_forward else 'lost'}"


def _undo(task: TaskView) -> str:
    """Whether and how what the task does, or did, can be taken back, and until when."""
    match task.prediction:
        case ExpireSnapshotsPrediction(can_be_undone=True) as said if task.state is TaskState.SUCCEEDED:
            until = text.instant(task.updated_at + UNDO_WINDOW_MS)
            beside = f"; as a second table, {said.second_table}" if said.second_table else ""
            return f"icewright undo {task.task_id}, until {until}, as long as all files are there{beside}"
        case ExpireSnapshotsPrediction() | ExpireDataPrediction() | RollbackPrediction() as said:
            return said.undo.replace("TASK_ID", task.task_id)
        case _:
            return ""


def _print_answer(terminal: Terminal, task: TaskView) -> None:
    if terminal.as_json:
        terminal.document(task)
    else:
        print_task(terminal, task)


def _print_document(terminal: Terminal, found: TaskDocument) -> None:
    print_task(terminal, found.task)
    say_waits(terminal, found.waits, found.start)
    if found.files_at is not None:
        terminal.say(f"Its files: icewright approve {found.task.plan_id} --show, all of them at GET {found.files_at}")
    figures = [] if found.measured is None else _figures_cells(found.task, found.measured)
    if figures:
        terminal.say()
        terminal.say("Figures", style="bold")
        terminal.table(_FIGURES, figures)
    terminal.say()
    terminal.say("History", style="bold")
    terminal.table(
        _HISTORY, [(text.instant(e.at), e.state.value, str(e.attempt), e.reason.text) for e in found.history]
    )
    if found.attempts:
        terminal.say()
        terminal.say("Attempts", style="bold")
        terminal.table(_ATTEMPTS, [_attempt_cells(attempt) for attempt in found.attempts])


def _progress(task: TaskView) -> str:
    if task.progress is None:
        return ""
    return f"{task.progress.phase} {task.progress.groups_done}/{task.progress.groups_total}"


def _task_cells(task: TaskView) -> tuple[str, ...]:
    return (
        task.task_id,
        task.state.value,
        task.table,
        f"{task.attempt}/{task.attempts_max}",
        _progress(task) or "-",
        *_read(task),
        text.instant(task.updated_at),
        (task.reason if task.outcome is None else task.outcome.reason).text,
    )


def _read(task: TaskView) -> tuple[str, str]:
    """How many files are read, and bytes."""
    match task.action:
        case RewriteFigures() as action:
            return text.number(action.input_files), text.size(action.input_bytes)
        case RewriteManifestsFigures() as action:
            return text.number(action.manifests_replaced), text.size(action.input_bytes)
        case RewritePositionDeletesFigures() as action:
            return text.number(action.input_files), text.size(action.input_bytes)
        case ExpireDataFigures() | UndoExpireDataFigures() as action:
            return text.number(action.files), text.size(action.size_bytes)
        case (
            ExpireSnapshotsFigures()
            | RemoveDanglingDeletesFigures()
            | UndoExpiryFigures()
            | ComputeStatisticsFigures()
            | RollbackFigures()
            | RemoveOrphanFilesFigures()
            | RemoveExpiredFilesFigures()
            | RestoreFilesFigures()
        ):
            return "-", "-"


def _figures_cells(task: TaskView, measured: Measured) -> list[tuple[str, str, str]]:
    """What the plan of a rewrite predicted and what the attempts measured, side by side; nothing of other actions."""
    said = task.prediction
    if isinstance(said, RemoveDanglingDeletesPrediction | RewritePositionDeletesPrediction):
        return delete_costs_cells(said.before, said.after, {} if task.outcome is None else task.outcome.reason.figures)
    if not (isinstance(said, RewritePrediction) and isinstance(task.action, RewriteFigures)):
        return []
    estimate = said.estimate
    left = measured.groups_conflicted + measured.groups_failed
    rows = [
        ("groups", text.number(task.action.groups), text.number(measured.groups_committed)),
        ("groups left: conflicts", "", text.number(measured.groups_conflicted) if left else ""),
        ("groups left: failures", "", text.number(measured.groups_failed) if left else ""),
        ("files replaced", text.number(said.input_files), text.number(measured.input_files)),
        ("files written", text.number(said.output_files), text.number(measured.output_files)),
        ("bytes replaced", text.size(said.input_bytes), text.size(measured.input_bytes)),
        (
            "bytes written",
            "" if estimate is None else text.size(estimate.output_bytes),
            text.size(measured.output_bytes),
        ),
        *_lookup_cells(task, estimate),
        ("rows read", text.number(said.records), text.number(measured.records + measured.deleted_records)),
        ("rows deleted", "", text.number(measured.deleted_records)),
        ("CPU", "" if estimate is None else text.seconds(estimate.cpu_ms), text.seconds(measured.cpu_ms)),
        ("of which proof", "", text.seconds(measured.proof_cpu_ms) if measured.proof_cpu_ms else ""),
        ("time", "", text.seconds(measured.wall_ms)),
        ("peak memory of a worker", "", text.size(measured.peak_memory_bytes)),
        ("bytes read in all", "", text.size(measured.read_bytes)),
        ("bytes wasted", "", text.size(measured.wasted_bytes)),
    ]
    return [(name, predicted or "-", found) for name, predicted, found in rows if found]


def _lookup_cells(task: TaskView, estimate: Estimate | None) -> list[tuple[str, str, str]]:
    """In how many of the new files one value of each column of the layout may be, on the mean and at worst."""
    outcome = task.outcome
    found = {} if outcome is None else outcome.reason.figures
    rows = []
    for number, said in enumerate(() if estimate is None else estimate.lookups, start=1):
        mean, worst = found.get(f"lookup_{number}_mean"), found.get(f"lookup_{number}_files")
        measured = "-" if mean is None or worst is None else f"{mean} ({worst} at most)"
        rows.append((f"files with one {said.column}", f"{said.mean_after} ({said.files_after:,} at most)", measured))
    return rows


def _attempt_cells(attempt: ListedAttempt) -> tuple[str, ...]:
    return (
        str(attempt.attempt),
        attempt.state.value,
        text.instant(attempt.started_at),
        text.instant(attempt.ended_at),
        attempt.optimizer_id,
    )
