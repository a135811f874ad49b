"""``icewright queries`` and ``send-queries``: which queries read which tables."""

from __future__ import annotations

from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer

from icewright.core import wording
from icewright.core.codec import from_json
from icewright.core.errors import InvalidMessage
from icewright.core.system_clock import SystemClock
from icewright.model.queries.bounds import bounded_ones
from icewright.model.queries.templates import Sums
from icewright.queries.views import Accepted, TableQueries, TableReadsView
from icewright.terminal import figures as text
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import Invocation, Limit, api_command, table_name
from icewright.terminal.tables import headings

_AT_ONCE: Final = 200
"""Queries of a request: the server takes 1 MiB of SQL at once, and 4,000 characters of each."""
_TABLES: Final = headings("table", "#queries", "#bytes read")
_COLUMNS: Final = headings("column", "#queries", "#bytes read", "compared by", below=("compared by",))
_TEMPLATES: Final = headings(
    "template",
    "#queries",
    "#bytes read",
    "#files opened",
    "#of all",
    "#CPU",
    "users",
    "last",
    drop=("last", "users", "CPU", "of all"),
)

Weeks = Annotated[int, typer.Option("--weeks", min=1, help="How many weeks, this one and those before it.")]


class LogFormat(StrEnum):
    """What a file of queries is."""

    SPARK_EVENT_LOG = "spark-event-log"
    SQL = "sql"


@api_command
def queries(
    invocation: Invocation,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Without one: the tables read most.")] = None,
    *,
    weeks: Weeks = 4,
    limit: Limit = 20,
) -> None:
    """Show which queries read a table: their templates, the columns that they filter by, and what they cost.

    Queries come from Trino's event listener, Spark's event logs, Iceberg's scan reports and `icewright send-queries`.
    """
    client = invocation.client
    if table is None:
        page = client.queried_tables(weeks=weeks, limit=limit)
        none = "no queries are known; docs/queries.md says how to send them"
        invocation.print_page(page, TableReadsView, _TABLES, _reads_cells, none=none)
        return
    known = client.table(table_name(invocation.config, table))
    answer = client.table_queries(known["uuid"], known["catalog"], weeks=weeks, limit=limit)
    invocation.print_answer(
        from_json(TableQueries, answer), lambda terminal, view: _print(terminal, known["name"], view)
    )


@api_command
def send_queries(
    invocation: Invocation,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A file, or a folder of them.")],
    *,
    log_format: Annotated[LogFormat, typer.Option("--format", help="What the files are.")] = LogFormat.SPARK_EVENT_LOG,
    catalog: Annotated[str, typer.Option("--catalog", help="With sql: the catalog of names that have none.")] = "",
    dialect: Annotated[
        str, typer.Option("--dialect", help="With sql: whose SQL it is, such as spark, trino or hive.")
    ] = "spark",
) -> None:
    """Send the server the queries of a Spark event log, or of a file of SQL. Sending twice does no harm."""
    from icewright.queries import sending  # noqa: PLC0415 - its parser of SQL takes half a second to load

    found = (
        sending.spark_queries(path, _refused)
        if log_format is LogFormat.SPARK_EVENT_LOG
        else sending.sql_queries(path, catalog, dialect, _refused)
    )
    accepted, repeated, ignored = 0, 0, 0
    bounded = bounded_ones(found, SystemClock().now(), _refused)
    while batch := [*islice(bounded, _AT_ONCE)]:
        answer = from_json(Accepted, invocation.client.send_queries(batch))
        accepted, repeated, ignored = (
            accepted + answer.accepted,
            repeated + answer.repeated,
            ignored + answer.ignored,
        )
    invocation.print_answer(
        Accepted(accepted, repeated, ignored),
        f"{wording.count(accepted, 'query', 'queries')} accepted, {repeated:,} of them known before; "
        f"{ignored:,} read no table of a configured catalog",
    )


def _refused(error: InvalidMessage) -> None:
    """A line that is none is left out; the others count."""
    typer.echo(f"left out: {error.message}", err=True)


def _reads_cells(reads: TableReadsView) -> tuple[str, ...]:
    return reads.table, text.number(reads.queries), text.size(reads.bytes_read)


def _print(terminal: Terminal, name: str, found: TableQueries) -> None:
    total = found.total
    since = text.instant(found.since)
    if not total.queries:
        terminal.say(f"{name}: no queries are known since {since}")
        return
    terminal.say(f"{name}: {wording.count(total.queries, 'query', 'queries')} since {since}, {total.failed:,} failed")
    if found.opened_share is not None:
        opened = f"{total.files_read:,} of {total.files_read + total.files_skipped:,}"
        terminal.say(f"files opened: {opened} ({text.ratio(found.opened_share)}), bytes: {text.size(total.bytes_read)}")
    terminal.say()
    columns = [
        (one.column, text.number(one.queries), text.size(one.bytes_read), ", ".join(sorted(one.operators)))
        for one in found.columns
    ]
    if columns:
        terminal.table(_COLUMNS, columns)
        terminal.say()
    terminal.table(_TEMPLATES, [_template_cells(one.text, one.sums) for one in found.templates])
    if found.templates_left_out:
        terminal.say(f"{found.templates_left_out:,} more templates; --limit shows them")


def _template_cells(said: str, sums: Sums) -> tuple[str, ...]:
    return (
        said,
        text.number(sums.queries),
        text.size(sums.bytes_read) if sums.with_bytes else "-",
        text.number(sums.files_read) if sums.with_files else "-",
        text.share(sums.files_read, sums.files_read + sums.files_skipped),
        text.seconds(sums.cpu_ms),
        ", ".join(sorted(sums.users, key=lambda user: -sums.users[user])[:3]),
        text.instant(sums.last_at),
    )
