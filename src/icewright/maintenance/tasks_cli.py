"""``icewright tasks ...``: the server's queue, from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from icewright.core.codec import from_json
from icewright.maintenance.registry.cli import measured_cells, read, undo, work
from icewright.model.iceberg.tables import Json
from icewright.model.work.tasks import TaskState
from icewright.model.work.why import StartEstimate, Wait
from icewright.terminal import figures as text
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import (
    Cursor,
    Invocation,
    Limit,
    api_command,
    table_name,
)
from icewright.terminal.tables import headings
from icewright.work.tasks.attempts import attempts
from icewright.work.tasks.task_views import ListedAttempt, TaskDocument, TaskView

app = typer.Typer(help="The server's tasks: list, show, cancel, retry, expedite.", no_args_is_help=True)

TaskArgument = Annotated[str, typer.Argument(metavar="TASK_ID", help="As `icewright tasks list` shows it.")]

_TASKS = headings(
    "task",
    "state",
    "table",
    "#try",
    "#progress",
    "#files read",
    "#bytes read",
    "since",
    "because",
    drop=("since", "files read", "try", "bytes read", "progress"),
    below=("because", "table"),
)
_FIGURES = headings("", "#predicted", "#measured")
_HISTORY = headings("at", "state", "#try", "because", below=("because",))
_ATTEMPTS = headings("#try", "state", "started", "ended", "optimizer", drop=("optimizer",))


@app.command("list")
@api_command
def list_tasks(
    invocation: Invocation,
    *,
    state: Annotated[list[TaskState] | None, typer.Option("--state", help="Only these; may be repeated.")] = None,
    table: Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only tasks of this table.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List tasks, newest first."""
    client = invocation.client
    of_table = None if table is None else client.table(table_name(invocation.config, table))
    invocation.print_page(
        client.tasks(states=tuple(state or ()), table=of_table, limit=limit, cursor=cursor),
        read_task,
        _TASKS,
        _task_cells,
        none="no tasks",
    )


@app.command()
@api_command
def show(invocation: Invocation, task_id: TaskArgument) -> None:
    """Show one task with its history and its attempts."""
    found = from_json(TaskDocument, invocation.client.task(task_id))
    invocation.print_answer(found, _print_document)


@app.command()
@api_command
def cancel(invocation: Invocation, task_id: TaskArgument) -> None:
    """Cancel a waiting task; ask a running one to stop before its commit."""
    _print_answer(invocation.terminal, read_task(invocation.client.cancel(task_id)))


@app.command()
@api_command
def retry(invocation: Invocation, task_id: TaskArgument) -> None:
    """Queue a failed or cancelled task again."""
    _print_answer(invocation.terminal, read_task(invocation.client.retry(task_id)))


@app.command()
@api_command
def expedite(invocation: Invocation, task_id: TaskArgument) -> None:
    """Have a waiting task started before all others of its resource group."""
    _print_answer(invocation.terminal, read_task(invocation.client.expedite(task_id)))


app.command()(attempts)


def read_task(data: Json) -> TaskView:
    """A task as the server sent it. Raises :class:`~icewright.core.errors.InvalidMessage`."""
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
            ("work", work(task)),
            ("undo", undo(task)),
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
    figures = [] if found.measured is None else measured_cells(found.task, found.measured)
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
        *read(task),
        text.instant(task.updated_at),
        (task.reason if task.outcome is None else task.outcome.reason).text,
    )


def _attempt_cells(attempt: ListedAttempt) -> tuple[str, ...]:
    return (
        str(attempt.attempt),
        attempt.state.value,
        text.instant(attempt.started_at),
        text.instant(attempt.ended_at),
        attempt.optimizer_id,
    )


def say_waits(terminal: Terminal, waits: Sequence[Wait], start: StartEstimate | None) -> None:
    """A line for each wait, and one for the start; nothing of a task that is not queued."""
    for wait in waits:
        until = "" if wait.until is None else f", until {text.instant(wait.until)}"
        terminal.say(f"Waits: {wait.reason.text}{until}.")
    if start is not None:
        is_said = any(wait.reason == start.reason for wait in waits)
        terminal.say(f"Starts: {_when(start)}" + ("." if is_said else f": {start.reason.text}."))


def _when(start: StartEstimate) -> str:
    if start.at is not None:
        return f"about {text.instant(start.at)}, by an estimate"
    soonest = "" if start.soonest_at is None else f", not before {text.instant(start.soonest_at)}"
    return f"it is not known when{soonest}"
