"""``icewright tasks ...``: the server's queue, from the command line."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from icewright.core.codec import from_json
from icewright.core.errors import Unavailable
from icewright.maintenance.registry.cli import measured_cells, read, undo, work
from icewright.model.iceberg.tables import Json
from icewright.model.work.tasks import TERMINAL_STATES, TaskState
from icewright.model.work.why import StartEstimate, Wait
from icewright.plans.views import TaskView
from icewright.terminal import figures as text
from icewright.terminal.cli import FINE, FOUND, Terminal
from icewright.terminal.invocation import (
    Cursor,
    Invocation,
    Limit,
    api_command,
    table_name,
)
from icewright.terminal.tables import headings
from icewright.work.tasks.attempts import attempts, logs
from icewright.work.tasks.task_views import ListedAttempt, TaskDocument

if TYPE_CHECKING:
    from icewright.api_client.client import Client

app = typer.Typer(help="The server's tasks: list, show, cancel, retry, expedite.", no_args_is_help=True)

Waiting = Annotated[
    bool, typer.Option("--wait", help="Say each step of the task until it ends; exit status 1 unless it succeeds.")
]
"""Of commands that queue one task."""
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

ASK_AGAIN_S: Final = 1.0
_MISSES_MAX: Final = 20
"""So many times in a row a server that does not answer is asked again."""


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
def show(
    invocation: Invocation,
    task_id: TaskArgument,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Say each step until it ends; exit status 1 unless it succeeds.")
    ] = False,
) -> None:
    """Show one task with its history and its attempts."""
    if follow:
        follow_task(invocation.terminal, invocation.client, task_id)
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
app.command()(logs)


def print_and_follow(terminal: Terminal, client: Client, task: TaskView) -> NoReturn:
    """Print a task that was queued just now, then :func:`follow_task`."""
    if not terminal.as_json:
        print_task(terminal, task)
    follow_task(terminal, client, task.task_id)


def follow_task(terminal: Terminal, client: Client, task_id: str) -> NoReturn:
    """Say each step of a task until it ends, and leave: with exit status 1 unless it has succeeded.

    Ctrl-C ends only this.
    """
    try:
        found = followed(terminal, client, task_id)
    except KeyboardInterrupt:
        terminal.note(f"the task continues: icewright tasks show {task_id} --follow")
        raise typer.Exit(FOUND) from None
    if terminal.as_json:
        terminal.document(found)
    else:
        _print_figures(terminal, found)
    raise typer.Exit(FINE if found.task.state is TaskState.SUCCEEDED else FOUND)


def followed(terminal: Terminal, client: Client, task_id: str) -> TaskDocument:
    """The task when it has ended; each line of what happens to it is said once."""
    said: set[str] = set()
    misses = 0
    while True:
        try:
            found = from_json(TaskDocument, client.task(task_id))
        except Unavailable as error:
            misses += 1
            if misses == 1:
                terminal.note(f"{error.message}; asked again")
            if misses > _MISSES_MAX:
                raise
        else:
            misses = 0
            for line in () if terminal.as_json else _steps(found):
                if line not in said:
                    said.add(line)
                    terminal.prose(line)
                    terminal.out.file.flush()
            if found.task.state in TERMINAL_STATES:
                return found
        time.sleep(ASK_AGAIN_S)


def _steps(found: TaskDocument) -> Iterator[str]:
    """What has happened to a task so far, and where it is now."""
    for entry in found.history:
        yield f"{text.instant(entry.at)}  {entry.state.value}: {entry.reason.text}"
    yield from (f"Waits: {wait.reason.text}." for wait in found.waits)
    if found.task.state is TaskState.RUNNING and found.task.progress is not None:
        yield f"  {progress_text(found.task)}, try {found.task.attempt} of {found.task.attempts_max}"


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
            ("progress", progress_text(task)),
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
    _print_figures(terminal, found)
    terminal.say()
    terminal.say("History", style="bold")
    terminal.table(
        _HISTORY, [(text.instant(e.at), e.state.value, str(e.attempt), e.reason.text) for e in found.history]
    )
    if found.attempts:
        terminal.say()
        terminal.say("Attempts", style="bold")
        terminal.table(_ATTEMPTS, [_attempt_cells(attempt) for attempt in found.attempts])
        terminal.say()
        terminal.say(f"What the last one logged: icewright tasks logs {found.task.task_id}")


def _print_figures(terminal: Terminal, found: TaskDocument) -> None:
    figures = [] if found.measured is None else measured_cells(found.task, found.measured)
    if figures:
        terminal.say()
        terminal.say("Figures", style="bold")
        terminal.table(_FIGURES, figures)


def progress_text(task: TaskView) -> str:
    """``merging 3/30``, or nothing."""
    if task.progress is None:
        return ""
    return f"{task.progress.phase} {task.progress.groups_done}/{task.progress.groups_total}"


def _task_cells(task: TaskView) -> tuple[str, ...]:
    return (
        task.task_id,
        task.state.value,
        task.table,
        f"{task.attempt}/{task.attempts_max}",
        progress_text(task) or "-",
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
