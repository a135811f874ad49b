"""``icewright top``: what runs, what waits, and the worst health, live on a terminal and once elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.core.errors import Unavailable
from icewright.core.wording import safe
from icewright.maintenance.tasks_cli import progress_text, read_task
from icewright.model.work.tasks import ACTIVE_STATES, TaskState
from icewright.plans.views import TaskView, WaitingView
from icewright.tables.api_views import TableSummary
from icewright.terminal import figures as text
from icewright.terminal.invocation import Invocation, api_command
from icewright.terminal.tables import Column, fit, headings, row_lines, short_id, title_line

if TYPE_CHECKING:
    from icewright.api_client.client import Client
    from icewright.model.iceberg.tables import Json
    from icewright.terminal.cli import Terminal

_SHOWN: Final = 10
_RUNNING: Final = headings("task", "table", "action", "#progress", "#try", drop=("try", "action"), below=("table",))
_QUEUED: Final = headings("task", "table", "action", "since", drop=("since", "action"), below=("table",))
_PLANS: Final = headings("plan", "table", "action", "since", drop=("since", "action"), below=("table",))
_WORST: Final = headings(
    "table", "#health", "worst part", "#files", "#small", "mode", drop=("mode", "files", "small", "worst part")
)


@dataclass(frozen=True, slots=True)
class Now:
    """What the server says at one moment; of each list the first few."""

    status: Json
    running: tuple[TaskView, ...]
    queued: tuple[TaskView, ...]
    waiting: tuple[WaitingView, ...]
    worst: tuple[TableSummary, ...]


@api_command
def top(
    invocation: Invocation,
    *,
    once: Annotated[bool, typer.Option("--once", help="Print it once; a pipe and --json always get it so.")] = False,
    every_s: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.5, help="How often the server is asked.")
    ] = 2.0,
) -> None:
    """Watch what runs, what waits and the worst health, live, until Ctrl-C."""
    terminal, client = invocation.terminal, invocation.client
    if once or invocation.as_json or not terminal.out.is_terminal:
        invocation.print_answer(_now(client), _print)
        return
    _watch(terminal, client, every_s)


def _watch(terminal: Terminal, client: Client, every_s: float) -> None:
    from rich.live import Live  # noqa: PLC0415 - `--help` stays quick
    from rich.text import Text  # noqa: PLC0415 - see above

    shown = list(_lines(_now(client), terminal.out.width))
    with Live(console=terminal.out, auto_refresh=False) as live:
        try:
            while True:
                live.update(Text("\n".join(shown)), refresh=True)
                time.sleep(every_s)
                try:
                    shown = list(_lines(_now(client), terminal.out.width))
                except Unavailable as error:
                    said = f"{safe(error.message)}; this is what it said before"
                    shown = [said, *(line for line in shown if line != said)]
        except KeyboardInterrupt:
            return


def _now(client: Client) -> Now:
    def tasks(*states: TaskState) -> tuple[TaskView, ...]:
        return tuple(map(read_task, client.tasks(states=states, limit=_SHOWN).items))

    tables = client.tables(sort="health", filters={"health_min": 0}, limit=_SHOWN).items
    return Now(
        client.status(),
        tasks(*sorted(ACTIVE_STATES)),
        tasks(TaskState.QUEUED),
        tuple(from_json(WaitingView, one) for one in client.waiting(limit=_SHOWN).items),
        tuple(from_json(TableSummary, one) for one in tables),
    )


def _print(terminal: Terminal, now: Now) -> None:
    for line in _lines(now, terminal.out.width):
        terminal.say(line)


def _lines(now: Now, width: int) -> Iterator[str]:
    """All of it, in lines of that width."""
    counts = now.status.get("tasks", {})
    tasks = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()) if count)
    yield f"tasks: {tasks or 'none'}; optimizers: {len(now.status.get('optimizers', ()))}"
    running = [(one.task_id, one.table, one.action.kind, progress_text(one), _tries(one)) for one in now.running]
    yield from _section("Running", "nothing runs", _RUNNING, running, width)
    queued = [(one.task_id, one.table, one.action.kind, text.instant(one.created_at)) for one in now.queued]
    yield from _section("Queued, the newest", "nothing is queued", _QUEUED, queued, width)
    plans = [(one.plan_id, one.table, one.kind.value, text.instant(one.since)) for one in now.waiting]
    yield from _section("Waiting for a person", "no plan waits for approval", _PLANS, plans, width)
    yield from _section("Worst health", "no table has a health yet", _WORST, [_worst(one) for one in now.worst], width)


def _section(
    title: str, none: str, columns: Sequence[Column], rows: Sequence[tuple[str, ...]], width: int
) -> Iterator[str]:
    yield ""
    if not rows:
        yield none
        return
    shown = [tuple(short_id(safe(cell)) for cell in row) for row in rows]
    laid = fit(columns, shown, width)
    yield title
    if laid is None:  # a terminal of some 20 columns
        yield from ("  ".join(row) for row in shown)
        return
    yield title_line(columns, laid)
    for row in shown:
        yield from row_lines(columns, row, laid)


def _tries(task: TaskView) -> str:
    return f"{task.attempt}/{task.attempts_max}"


def _worst(table: TableSummary) -> tuple[str, ...]:
    health, figures = table.health, table.figures
    return (
        table.name,
        "" if health is None else str(health.score),
        "" if health is None or health.worst is None else health.worst.value,
        "" if figures is None else text.number(figures.data_files),
        "" if figures is None else text.number(figures.small_files),
        "" if table.mode is None else table.mode.value,
    )
