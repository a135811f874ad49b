"""``icewright tables list`` and ``icewright health``: what the server knows of many tables, and how one of them is."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.model.policy.policy import Mode
from icewright.model.work.figures import HEALTH_MAX
from icewright.tables.api_views import HealthView, TableSummary
from icewright.tables.table_cells import health_cells
from icewright.terminal import figures as text
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import Cursor, Invocation, Limit, TableArgument, api_command, table_name
from icewright.terminal.tables import headings

app = typer.Typer(help="List the tables that the server knows, in any order.", no_args_is_help=True)

_TABLES: Final = headings(
    "table",
    "#health",
    "worst part",
    "#bytes",
    "#files",
    "#small",
    "#deletes",
    "mode",
    "last look",
    "last task",
    drop=("last look", "last task", "deletes", "worst part", "small", "mode", "files"),
)
_PARTS: Final = headings(
    "part", "#score", "#weight", "because", "would raise it", drop=("weight",), below=("because", "would raise it")
)


@app.callback()
def _group() -> None:
    """Keep ``list`` a command of the group, although it is the only one."""


@app.command("list")
@api_command
def list_tables(
    invocation: Invocation,
    *,
    sort: Annotated[
        str,
        typer.Option(
            "--sort",
            metavar="FIELD",
            help="name, health, bytes, files, small_files, delete_files, last_look or last_task; "
            "with - before it the greatest first.",
        ),
    ] = "name",
    catalog: Annotated[str | None, typer.Option("--catalog", help="Only tables of this catalog.")] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", help="Only tables of this namespace (catalog.namespace) and below it.")
    ] = None,
    search: Annotated[
        str | None, typer.Option("--search", metavar="TEXT", help="Only names with this in them.")
    ] = None,
    mode: Annotated[Mode | None, typer.Option("--mode", help="Only tables in this mode.")] = None,
    health_min: Annotated[
        int | None, typer.Option("--health-min", min=0, max=HEALTH_MAX, help="Only tables at least this healthy.")
    ] = None,
    health_max: Annotated[
        int | None, typer.Option("--health-max", min=0, max=HEALTH_MAX, help="Only tables at most this healthy.")
    ] = None,
    failing: Annotated[
        bool, typer.Option("--failing", help="Only tables that cannot be looked after or whose tasks failed last.")
    ] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> None:
    """List tables, as their last look found them: sorted, and only those that are asked for.

    `--sort health` begins with those that no look came to a plan for, and then the least healthy.
    """
    filters = {
        "namespace": namespace,
        "search": search,
        "mode": None if mode is None else mode.value,
        "health_min": health_min,
        "health_max": health_max,
        "failing": "true" if failing else None,
    }

    page = invocation.client.tables(catalog=catalog, sort=sort, filters=filters, limit=limit, cursor=cursor)
    invocation.print_page(page, TableSummary, _TABLES, _cells, none="no such table is known")


@api_command
def health(invocation: Invocation, table: TableArgument) -> None:
    """Show how healthy a table is, from 0 to 100: each part, why it is so, and what would raise it.

    As of the server's last look at the table.
    """
    client = invocation.client
    known = client.table(table_name(invocation.config, table))
    invocation.print_answer(from_json(HealthView, client.health(known["uuid"], known["catalog"])), _print_health)


def _print_health(terminal: Terminal, view: HealthView) -> None:
    health, change = view.health, view.change
    if health is None:
        terminal.say(f"{view.table}: no look has come to a plan yet")
        return
    terminal.say(f"{view.table}: {health.score} of 100, {health.grade} (observed {text.instant(view.at)})")
    if change is not None:
        terminal.say(f"{text.instant(change.at)}: {change.text}")
    terminal.say()
    terminal.table(_PARTS, health_cells(health))


def _cells(one: TableSummary) -> tuple[str, ...]:
    figures, health = one.figures, one.health
    counts: tuple[str, ...] = ("", "", "", "")
    if figures is not None:
        numbers = (figures.data_files, figures.small_files, figures.delete_files)
        counts = (text.size(figures.size_bytes), *(text.number(number) for number in numbers))
    return (
        one.name,
        "" if health is None else str(health.score),
        "" if health is None or health.worst is None else health.worst.value,
        *counts,
        "" if one.mode is None else one.mode.value,
        text.instant(one.observed_at),
        text.instant(one.last_task_at),
    )
