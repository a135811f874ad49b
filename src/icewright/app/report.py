"""``icewright report``: the state of a table, or of all of them, as one HTML file that needs nothing else.

No script, no font and no picture of elsewhere; the file's own policy forbids them. Every text of strangers is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import dropwhile, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.api_client.paging import pages
from icewright.core.codec import from_json
from icewright.core.errors import NotFound, Rejected, Unreadable
from icewright.core.system_clock import SystemClock
from icewright.core.wording import safe
from icewright.maintenance.registry.cli import measured_cells, predicted
from icewright.model.work.figures import FiguresView, TableHealth
from icewright.model.work.tasks import TaskState
from icewright.plans.views import PlanView, TaskView, WaitingView
from icewright.ports.table_lists import TableTotals
from icewright.tables.api_views import HealthView, TableSummary
from icewright.tables.detail_views import HistogramView
from icewright.tables.table_cells import health_cells
from icewright.terminal import figures as text
from icewright.terminal.invocation import Invocation, api_command, table_name
from icewright.work.tasks.task_views import TaskDocument

if TYPE_CHECKING:
    from icewright.api_client.client import Client
    from icewright.model.iceberg.tables import Json

_TABLES_MAX: Final = 1_000
_TASKS_SHOWN: Final = 20
_MEASURED_SHOWN: Final = 5
_BAR_WIDTH, _BAR_HEIGHT, _GRAPH_HEIGHT = 40, 120, 160
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b2733; --paper: #ffffff; --soft: #5d6b7a; --line: #d8dee5;
  --good: #1a7f4b; --fair: #9a6700; --poor: #c0362c; --bar: #2f6fde; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ef; --paper: #12181f; --soft: #9aa7b5; --line: #2d3845;
  --good: #4cc38a; --fair: #e2b340; --poor: #ff7b6f; --bar: #6ea0ff; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 68rem;
  margin: 0 auto; padding: 1.5rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p.soft, caption, footer { color: var(--soft); text-align: left; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; overflow-wrap: normal; }
.good { color: var(--good); } .fair { color: var(--fair); } .poor { color: var(--poor); }
strong.score { font-size: 2rem; } svg rect { fill: var(--bar); } svg text { fill: var(--ink); font-size: 11px; }
@media print { body { max-width: none; padding: 0; } }
"""


@api_command
def report(
    invocation: Invocation,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="The table; else --fleet.")] = None,
    *,
    html: Annotated[Path, typer.Option("--html", metavar="FILE", help="Where to write it.")],
    fleet: Annotated[bool, typer.Option("--fleet", help="All tables that you may read, the worst first.")] = False,
) -> None:
    """Write the state of a table, or of all, as one HTML file to keep or send.

    It needs no server to be read. Health with its reasons, file sizes, figures, plans that wait for a person, and of
    recent tasks what was predicted and what was measured.
    """
    if (table is None) is not fleet:
        raise Rejected("a report is of one table, or of all with --fleet", hint="give exactly one of the two")
    client = invocation.client
    document = _fleet(client) if table is None else _table(client, client.table(table_name(invocation.config, table)))
    try:
        html.write_text(document, encoding="utf-8")
    except OSError as error:
        raise Rejected(f"{html} cannot be written: {error.strerror or error}") from error
    invocation.print_answer({"file": str(html), "bytes": len(document.encode())}, f"wrote {html}")


def _table(client: Client, known: Json) -> str:
    summary = from_json(TableSummary, known)
    of_table = summary.uuid, summary.catalog
    health = from_json(HealthView, client.health(*of_table))
    waiting = [one for one in _waiting(client) if (one.uuid, one.catalog) == of_table]
    tasks = _tasks(client, known)
    return _page(
        summary.name,
        [
            f"<p class=soft>observed {_e(text.instant(summary.observed_at))}</p>",
            *_problem(summary),
            *_health(health.health),
            *(
                []
                if health.change is None
                else [f"<p>{_e(text.instant(health.change.at))}: {_e(health.change.text)}</p>"]
            ),
            *([] if summary.figures is None else _figures(summary.figures)),
            *_histogram(client, *of_table),
            *_plan(client, summary),
            *_waits(waiting),
            *_work(client, tasks),
        ],
    )


def _fleet(client: Client) -> str:
    totals = from_json(TableTotals, client.totals())
    found = pages(TableSummary, lambda cursor: client.tables(sort="health", limit=500, cursor=cursor))
    tables = [*islice(found, _TABLES_MAX)]
    rows = [
        (
            one.name,
            "" if one.health is None else str(one.health.score),
            "" if one.health is None or one.health.worst is None else one.health.worst.value,
            "" if one.figures is None else text.size(one.figures.size_bytes),
            "" if one.figures is None else text.number(one.figures.data_files),
            "" if one.figures is None else text.number(one.figures.small_files),
            "" if one.mode is None else one.mode.value,
            one.problem.text if one.problem is not None else "" if one.plan is None else one.plan.reason.text,
        )
        for one in tables
    ]
    more = totals.tables - len(tables)
    heads = ("table", "#health", "worst part", "#bytes", "#files", "#small", "mode", "says")
    grades = ", ".join(f"{count:,} {grade.value}" for grade, count in totals.grades.items() if count)
    summed = (
        ("tables", text.number(totals.tables)),
        ("health", "not known yet" if totals.health is None else f"{totals.health} of 100, weighted by bytes"),
        ("grades", grades or "none yet"),
        ("bytes", text.size(totals.bytes)),
        ("data files", text.number(totals.files)),
        ("small files", f"{text.number(totals.small_files)} ({text.share(totals.small_files, totals.files)})"),
        ("delete files", text.number(totals.delete_files)),
        ("failing tables", text.number(totals.failing)),
    )
    return _page(
        "All tables",
        [
            *_pairs("Totals", summed),
            *_listed("Tables, the least healthy first", heads, rows),
            *([f"<p>And {more:,} more tables, healthier than these.</p>"] if more > 0 else []),
            *_waits(_waiting(client)),
            *_work(client, _tasks(client, None)),
        ],
    )


def _waiting(client: Client) -> list[WaitingView]:
    return [*islice(pages(WaitingView, lambda cursor: client.waiting(limit=100, cursor=cursor)), _TABLES_MAX)]


def _tasks(client: Client, of_table: Json | None) -> list[TaskView]:
    return [from_json(TaskView, one) for one in client.tasks(table=of_table, limit=_TASKS_SHOWN).items]


def _problem(summary: TableSummary) -> list[str]:
    return [] if summary.problem is None else [f"<p class=poor>{_e(summary.problem.text)}</p>"]


def _health(health: TableHealth | None) -> Iterator[str]:
    yield "<h2>Health</h2>"
    if health is None:
        yield "<p>No look has come to a plan yet.</p>"
        return
    grade = health.grade.value
    yield f"<p><strong class='score {_e(grade)}'>{health.score}</strong> of 100, {_e(grade)}</p>"
    yield from _listed("", ("part", "#score", "#weight", "because", "would raise it"), health_cells(health))


def _figures(figures: FiguresView) -> Iterator[str]:
    yield from _pairs(
        "Figures",
        (
            ("partitions", text.number(figures.partitions)),
            ("data files", f"{text.number(figures.data_files)} ({text.size(figures.size_bytes)})"),
            ("rows", text.number(figures.records)),
            (
                "small files",
                f"{text.number(figures.small_files)} ({text.share(figures.small_files, figures.data_files)})",
            ),
            ("delete files", f"{text.number(figures.delete_files)} ({text.number(figures.deleted_records)} rows)"),
            ("done", text.ratio(figures.optimization_ratio)),
        ),
    )


def _histogram(client: Client, uuid: str, catalog: str) -> Iterator[str]:
    """The sizes of the data files as bars, and as the numbers that they are drawn from."""
    try:
        found = from_json(HistogramView, client.histogram(uuid, catalog))
    except (NotFound, Unreadable) as error:
        yield f"<h2>File sizes</h2><p>{_e(error.message)}</p>"
        return
    most = max((bucket.files for bucket in found.buckets), default=0)
    if not most:
        return
    buckets = list(dropwhile(lambda bucket: not bucket.files, found.buckets))
    yield "<h2>File sizes</h2>"
    width = _BAR_WIDTH * len(buckets)
    said = f"Data files by size; target {text.size(found.target_file_size_bytes)}"
    yield f"<div class=wide><svg role=img width={width} height={_GRAPH_HEIGHT} aria-label='{_e(said)}'>"
    for number, bucket in enumerate(buckets):
        height, left = round(_BAR_HEIGHT * bucket.files / most), number * _BAR_WIDTH
        label = f"{text.size(bucket.from_bytes)}: {text.count(bucket.files, 'file')}"
        top = _GRAPH_HEIGHT - 20 - height
        yield f"<rect x={left + 2} y={top} width={_BAR_WIDTH - 4} height={height}><title>{_e(label)}</title></rect>"
        if bucket.files:
            yield f"<text x={left + 4} y={top - 4}>{bucket.files:,}</text>"
    yield "</svg></div>"
    rows = [
        (
            f"{text.size(bucket.from_bytes)} to {text.size(bucket.to_bytes)}",
            text.number(bucket.files),
            text.size(bucket.bytes),
        )
        for bucket in buckets
        if bucket.files
    ]
    limits = f"{said}; small is below {text.size(found.small_file_size_bytes)}."
    yield f"<p class=soft>{_e(limits)}{' Not all partitions were read.' if found.truncated else ''}</p>"
    yield from _listed("", ("size", "#files", "#bytes"), rows)


def _plan(client: Client, summary: TableSummary) -> Iterator[str]:
    if summary.plan is None:
        return
    view = from_json(PlanView, client.plan(summary.plan.plan_id))
    yield from _pairs("Plan, and what it would bring", (("because", view.reason.text), *predicted(view)))
    yield "".join(f"<p>{_e(line)}</p>" for line in view.explanation[1:])


def _waits(waiting: Sequence[WaitingView]) -> Iterator[str]:
    rows = [(one.plan_id, one.table, one.kind.value, text.instant(one.since), one.reason.text) for one in waiting]
    if not rows:
        yield "<h2>Plans that wait for a person</h2><p>None.</p>"
        return
    yield from _listed("Plans that wait for a person", ("plan", "table", "action", "since", "because"), rows)


def _work(client: Client, tasks: Sequence[TaskView]) -> Iterator[str]:
    """Recent tasks, and of the last ones that succeeded what was predicted and measured."""
    if not tasks:
        yield "<h2>Tasks</h2><p>None yet.</p>"
        return
    rows = [
        (
            one.task_id,
            one.table,
            one.action.kind,
            one.state.value,
            text.instant(one.updated_at),
            (one.reason if one.outcome is None else one.outcome.reason).text,
        )
        for one in tasks
    ]
    yield from _listed(
        f"The last {text.count(len(rows), 'task')}", ("task", "table", "action", "state", "at", "says"), rows
    )
    done = [one for one in tasks if one.state is TaskState.SUCCEEDED]
    for task in done[:_MEASURED_SHOWN]:
        found = from_json(TaskDocument, client.task(task.task_id))
        cells = [] if found.measured is None else measured_cells(found.task, found.measured)
        if cells:
            title = f"Benefit of {task.task_id}: {task.table}"
            yield from _listed(title, ("", "#predicted", "#measured"), cells)


def _page(title: str, parts: Iterable[str]) -> str:
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    made = text.instant(SystemClock().now())
    return (
        f'<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta http-equiv="Content-Security-Policy" '
        f'content="{policy}"><meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{_e(title)} - icewright</title><style>{_STYLE}</style></head><body>\n<h1>{_e(title)}</h1>\n"
        + "\n".join(parts)
        + f"\n<footer><p>Made by icewright at {_e(made)}.</p></footer></body></html>\n"
    )


def _pairs(title: str, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from _listed(title, (), [pair for pair in pairs if pair[1]])


def _listed(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table; ``#`` before a heading: of numbers."""
    if title:
        yield f"<h2>{_e(title)}</h2>"
    yield "<div class=wide><table>"
    numbers = [head.startswith("#") for head in heads] or [False] * max((len(row) for row in rows), default=0)
    if heads:
        titles = zip((head.removeprefix("#") for head in heads), numbers, strict=True)
        yield f"<tr>{''.join(f'<th{_n(n)} scope=col>{_e(head)}</th>' for head, n in titles)}</tr>"
    for row in rows:
        yield f"<tr>{''.join(f'<td{_n(n)}>{_e(cell)}</td>' for cell, n in zip(row, numbers, strict=True))}</tr>"
    yield "</table></div>"


def _n(is_number: bool) -> str:  # noqa: FBT001 - one question
    return " class=n" if is_number else ""


def _e(value: str) -> str:
    """Text of strangers: nothing of it is markup, and nothing of it changes how the page reads."""
    return escape(safe(value), quote=True)
