"""``icewright benefit``: what our work has brought and cost, by week."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from icewright.core import wording
from icewright.core.codec import from_json
from icewright.core.errors import Rejected
from icewright.model.queries.recommendations import Interval
from icewright.recommendations.benefit import AcceptedView, BenefitRow, BenefitWeek, FleetBenefit, TableBenefit
from icewright.recommendations.causes import CauseBenefit
from icewright.terminal import figures as text
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import Invocation, api_command, table_name
from icewright.terminal.tables import headings

_WEEKS: Final = headings(
    "week",
    "#queries",
    "#read",
    "#saved",
    "#predicted",
    "#CPU saved",
    "#CPU spent",
    "#written",
    "#tasks",
    drop=("tasks",),
)
_TABLES: Final = headings("table", "measured", "#saved", "#CPU saved", "#CPU spent", "#written", below=())

_CAUSES: Final = headings("cause", "#predicted", "#CPU saved", "#CPU spent", "#written", "#tasks", below=())

Weeks = Annotated[int, typer.Option("--weeks", min=1, max=26, help="How many weeks, this one and those before it.")]


@api_command
def benefit(
    invocation: Invocation,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Or --fleet for all of them.")] = None,
    *,
    fleet: Annotated[bool, typer.Option("--fleet", help="All tables that you may read.")] = False,
    weeks: Weeks = 8,
) -> None:
    """Show by week what our work has brought, as measured and as predicted, and what it cost.

    Saved is what the same templates of queries read before the change, less what they read since.
    """
    client = invocation.client
    if (table is None) is not fleet:
        raise Rejected("either a table or --fleet says of what", hint="icewright benefit lake.sales.orders")
    if table is None:
        invocation.print_answer(from_json(FleetBenefit, client.fleet_benefit(weeks=weeks)), _print_fleet)
        return
    known = client.table(table_name(invocation.config, table))
    answer = client.table_benefit(known["uuid"], known["catalog"], weeks=weeks)
    invocation.print_answer(from_json(TableBenefit, answer), _print_table)


def _print_table(terminal: Terminal, found: TableBenefit) -> None:
    terminal.say(f"{found.table}: since {text.instant(found.since)}")
    for view in found.accepted:
        _print_accepted(terminal, view)
    terminal.say()
    _print_weeks(terminal, found.weeks, found.total)
    _print_causes(terminal, found.causes)
    _print_notes(terminal, found.notes)


def _print_fleet(terminal: Terminal, found: FleetBenefit) -> None:
    terminal.say(f"All tables: since {text.instant(found.since)}")
    terminal.say()
    _print_weeks(terminal, found.weeks, found.total)
    _print_causes(terminal, found.causes)
    if found.tables:
        terminal.say()
        terminal.table(_TABLES, [_row_cells(row) for row in found.tables])
    _print_notes(terminal, found.notes)


def _print_accepted(terminal: Terminal, view: AcceptedView) -> None:
    said = "-" if view.effect is None else view.effect.value
    terminal.say()
    terminal.prose(f"{view.change} ({view.recommendation_id}, {view.state}): {said}. {view.reason}")
    if view.predicted is not None:
        terminal.prose(f"  predicted: {_change(view.predicted)} bytes a query")
    if view.planned is not None and view.files is not None and view.files_before is not None:
        opened = f"{view.files_before:,.1f} to {view.files:,.1f} files"
        terminal.prose(f"  measured by bounds, of {view.planned_queries:,} queries: {_change(view.planned)}; {opened}")
    if view.scanned is not None:
        tables = wording.count(view.compared_tables, "similar table", "similar tables")
        beside = f"against {tables}" if view.compared_tables else "with no table to compare with"
        terminal.prose(f"  measured by scans, {beside}: {_change(view.scanned)}")


def _print_weeks(terminal: Terminal, weeks: Sequence[BenefitWeek], total: BenefitWeek) -> None:
    if not weeks:
        terminal.say("no queries and no finished tasks in these weeks")
        return
    rows = [_week_cells(text.instant(week.week_at)[:10], week) for week in weeks]
    terminal.table(_WEEKS, [*rows, _week_cells("total", total)])
    if total.rewritten_files:
        terminal.say(f"files rewritten: {total.rewritten_files:,} into {total.written_files:,}")


def _print_causes(terminal: Terminal, causes: Sequence[CauseBenefit]) -> None:
    if causes:
        terminal.say()
        terminal.table(_CAUSES, [_cause_cells(one) for one in causes])


def _cause_cells(one: CauseBenefit) -> tuple[str, ...]:
    return (
        one.cause.value,
        _signed_seconds(one.predicted_cpu_ms),
        _signed_seconds(one.saved_cpu_ms),
        text.seconds(one.cpu_ms) if one.tasks else "-",
        text.size(one.written_bytes) if one.tasks else "-",
        text.number(one.tasks),
    )


def _print_notes(terminal: Terminal, notes: Sequence[str]) -> None:
    terminal.say()
    for note in notes:
        terminal.prose(f"note: {note}")


def _week_cells(name: str, week: BenefitWeek) -> tuple[str, ...]:
    return (
        name,
        text.number(week.queries),
        text.size(week.bytes_read) if week.queries_with_bytes else "-",
        _signed_size(week.saved_bytes),
        "-" if week.predicted_bytes is None else _signed_size(week.predicted_bytes.mean),
        _signed_seconds(week.saved_cpu_ms),
        text.seconds(week.cpu_ms) if week.tasks else "-",
        text.size(week.written_bytes) if week.tasks else "-",
        text.number(week.tasks),
    )


def _row_cells(row: BenefitRow) -> tuple[str, ...]:
    total = row.total
    return (
        row.table,
        "-" if row.effect is None else row.effect.value,
        _signed_size(total.saved_bytes),
        _signed_seconds(total.saved_cpu_ms),
        text.seconds(total.cpu_ms) if total.tasks else "-",
        text.size(total.written_bytes) if total.tasks else "-",
    )


def _signed_size(value: float | None) -> str:
    if value is None:
        return "-"
    return ("-" if value < 0 else "") + text.size(round(abs(value)))


def _signed_seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return ("-" if value < 0 else "") + text.seconds(round(abs(value)))


def _change(found: Interval) -> str:
    return f"{100 * found.mean:+.0f} % ({100 * found.low:+.0f} to {100 * found.high:+.0f} %)"
