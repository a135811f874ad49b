"""``icewright tasks attempts`` and ``logs``: each try of a task by itself, what its optimizer reported, and its log."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.core.wording import count
from icewright.model.work.jobs import Committed
from icewright.model.work.tasks import AttemptState
from icewright.terminal import figures as text
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import Cursor, Invocation, Limit, api_command
from icewright.terminal.tables import headings
from icewright.work.tasks.task_views import AttemptDocument, AttemptLog, ListedAttempt

_ATTEMPTS: Final = headings(
    "#try",
    "state",
    "cause",
    "#progress",
    "started",
    "ended",
    "optimizer",
    "says",
    drop=("optimizer", "started", "progress"),
    below=("says",),
)


@api_command
def attempts(
    invocation: Invocation,
    task_id: Annotated[str, typer.Argument(metavar="TASK_ID", help="As `icewright tasks list` shows it.")],
    *,
    number: Annotated[
        int | None, typer.Option("--number", metavar="N", min=1, help="Only this one, with what it took and reported.")
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> None:
    """List the tries of a task: who had it, how far it got, how it ended, and why it failed."""
    if number is not None:
        print_attempt(invocation.terminal, from_json(AttemptDocument, invocation.client.attempt(task_id, number)))
        return
    page = invocation.client.attempts(task_id, limit=limit, cursor=cursor)
    invocation.print_page(page, ListedAttempt, _ATTEMPTS, _cells, none="it was not tried yet")


@api_command
def logs(
    invocation: Invocation,
    task_id: Annotated[str, typer.Argument(metavar="TASK_ID", help="As `icewright tasks list` shows it.")],
    *,
    attempt: Annotated[
        int | None, typer.Option("--attempt", metavar="N", min=1, help="Of this try instead of the last one.")
    ] = None,
) -> None:
    """Show the last lines that a try of a task logged."""
    invocation.print_answer(from_json(AttemptLog, invocation.client.log(task_id, attempt)), print_log)


def print_attempt(terminal: Terminal, found: AttemptDocument) -> None:
    """Print one try; as JSON with its whole report."""
    if terminal.as_json:
        terminal.document(found)
        return
    attempt, measured = found.attempt, found.measured
    terminal.pairs(
        [
            ("task", attempt.task_id),
            ("try", str(attempt.attempt)),
            ("state", attempt.state.value),
            ("cause", "" if attempt.cause is None else attempt.cause.value),
            ("says", _says(attempt)),
            ("progress", _progress(attempt)),
            ("optimizer", attempt.optimizer_id),
            ("fencing token", str(attempt.fencing_token)),
            ("started", text.instant(attempt.started_at)),
            ("ended", text.instant(attempt.ended_at)),
        ]
    )
    if measured is None:
        terminal.say("It has reported nothing.")
        return
    left = measured.groups_conflicted + measured.groups_failed
    terminal.pairs(
        [
            ("groups committed", text.number(measured.groups_committed)),
            ("groups left", text.number(left) if left else ""),
            ("bytes written", text.size(measured.written_bytes)),
            ("CPU", text.seconds(measured.cpu_ms)),
            ("time", text.seconds(measured.wall_ms)),
            ("peak memory of a worker", text.size(measured.peak_memory_bytes)),
        ]
    )


def print_log(terminal: Terminal, found: AttemptLog) -> None:
    """Print the lines, oldest first."""
    if found.attempt is None:
        terminal.say("It was not tried yet.")
        return
    if not found.lines:
        terminal.say(f"No lines of attempt {found.attempt} are kept: see the log of {found.optimizer_id}.")
        return
    if found.left_out:
        terminal.note(f"{count(found.left_out, 'earlier line')} left out: see the log of {found.optimizer_id}")
    for line in found.lines:
        terminal.say(f"{text.instant(line.at)}  {line.level.value:<8}  {line.text}")


def _cells(attempt: ListedAttempt) -> tuple[str, ...]:
    return (
        str(attempt.attempt),
        attempt.state.value,
        "-" if attempt.cause is None else attempt.cause.value,
        _progress(attempt) or "-",
        text.instant(attempt.started_at),
        text.instant(attempt.ended_at),
        attempt.optimizer_id,
        _says(attempt),
    )


def _progress(attempt: ListedAttempt) -> str:
    progress = attempt.progress
    return "" if progress is None else f"{progress.phase} {progress.groups_done}/{progress.groups_total}"


def _says(attempt: ListedAttempt) -> str:
    """How it ended, by its own word."""
    match attempt.result:
        case None:
            return "" if attempt.state is AttemptState.RUNNING else "never reported"
        case Committed(snapshot_id):
            return "committed" if snapshot_id is None else f"committed as snapshot {snapshot_id}"
        case result:
            return result.detail
