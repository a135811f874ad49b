"""``icewright scan``: every table of every catalog in one line, and what is wrong with it. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from icewright.cli import figures as text
from icewright.cli.invocation import AsJson, Invocation, begin
from icewright.cli.terminal import FINE, FOUND, Column, Terminal
from icewright.domain.errors import IcewrightError
from icewright.domain.plans import Reason
from icewright.domain.tables import Instant

if TYPE_CHECKING:
    from icewright.cli.offline import Offline
    from icewright.domain.names import TableName
    from icewright.planning.ownership import Claim
    from icewright.services.views import FiguresView


@dataclass(frozen=True, slots=True)
class ScanRow:
    """One table, or one catalog that could not be listed (``uuid`` and ``figures`` are then None).

    ``findings`` say what is wrong; ``problem`` says why the table could not be read, if so.
    """

    name: str
    uuid: str | None
    mode: str | None
    figures: FiguresView | None
    written_at: Instant | None
    findings: tuple[Reason, ...]
    problem: Reason | None


_Looked: TypeAlias = "tuple[ScanRow, Claim | None]"
"""A table, and the places that it lays claim to; None where it could not be read."""

_COLUMNS = (
    Column("table"),
    Column("files", is_number=True),
    Column("bytes", is_number=True),
    Column("small", is_number=True),
    Column("deletes", is_number=True),
    Column("done", is_number=True),
    Column("mode"),
    Column("what is wrong"),
)


def scan(
    context: typer.Context,
    *,
    catalog: Annotated[list[str] | None, typer.Option("--catalog", help="Only this catalog; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Look at all tables: files, bytes, share of small files, deletes, and what is wrong. Changes nothing.

    Exit status 1 when something was found. "done" is how much of what merging can do is done.
    """
    from icewright.cli.offline import Offline  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=as_json)
    terminal = invocation.terminal
    chosen = [invocation.config.catalog(name).name for name in catalog or ()]
    names = chosen or [entry.name for entry in invocation.config.catalogs]
    rows = _with_places(list(_with_progress(terminal, Offline(invocation.config), names)))
    found = [row for row in rows if row.findings or row.problem]
    if as_json:
        terminal.document({"tables": rows, "found": len(found)})
    else:
        _print(invocation, rows, len(found))
    raise typer.Exit(FOUND if found else FINE)


def _with_places(looked: list[_Looked]) -> list[ScanRow]:
    """The rows, with what only all tables together tell: whose location is somebody else's as well."""
    from icewright.planning.ownership import contested  # noqa: PLC0415 - `--help` stays quick

    found = contested([claim for _, claim in looked if claim is not None])
    return [
        row if claim is None else replace(row, findings=(*row.findings, *found.get(claim.name, ())))
        for row, claim in looked
    ]


def _with_progress(terminal: Terminal, offline: Offline, catalogs: list[str]) -> Iterator[_Looked]:
    if terminal.as_json or not terminal.err.is_terminal:
        for catalog in catalogs:
            yield from _scan(offline, catalog, list)
        return
    from rich.progress import Progress  # noqa: PLC0415 - only where somebody looks

    with Progress(console=terminal.err, transient=True) as progress:
        for catalog in catalogs:
            yield from _scan(offline, catalog, partial(progress.track, description=f"scanning {catalog}"))


def _scan(
    offline: Offline, catalog: str, follow: Callable[[list[TableName]], Iterable[TableName]]
) -> Iterator[_Looked]:
    """One catalog; whatever cannot be read becomes a row of its own and stops nothing."""
    try:
        names = list(offline.names(catalog))
    except IcewrightError as error:
        yield ScanRow(catalog, None, None, None, None, (), Reason(error.code, error.message)), None
        return
    for name in follow(names):
        yield _look(offline, name)


def _look(offline: Offline, name: TableName) -> _Looked:
    from icewright.planning.ownership import claim  # noqa: PLC0415 - `--help` stays quick
    from icewright.services.plan_views import findings  # noqa: PLC0415 - `--help` stays quick
    from icewright.services.views import observed_table_view  # noqa: PLC0415 - see above

    try:
        planned = offline.plan(name)
    except IcewrightError as error:
        return ScanRow(str(name), None, None, None, None, (), Reason(error.code, error.message)), None
    view = observed_table_view(planned.observation, planned.policy)
    found = findings(view.figures, planned.policy, planned.plan)
    row = ScanRow(view.name, view.uuid, view.mode.value, view.figures, view.written_at, found, None)
    return row, claim(planned.observation.metadata, offline.aliases(name.catalog))


def _print(invocation: Invocation, rows: list[ScanRow], found: int) -> None:
    terminal = invocation.terminal
    if not rows:
        terminal.say("no tables")
        return
    terminal.table(_COLUMNS, [_cells(row) for row in rows], styles=[_style(row) for row in rows])
    terminal.say()
    terminal.say(f"{len(rows):,} looked at, {found:,} with something to say. Next: icewright plan TABLE")


def _cells(row: ScanRow) -> tuple[str, ...]:
    said = "; ".join(reason.text for reason in (row.findings if row.problem is None else (row.problem,)))
    if row.figures is None:
        return (row.name, "-", "-", "-", "-", "-", row.mode or "-", said)
    return (
        row.name,
        text.number(row.figures.data_files),
        text.size(row.figures.size_bytes),
        text.share(row.figures.small_files, row.figures.data_files),
        text.number(row.figures.delete_files),
        text.ratio(row.figures.optimization_ratio),
        row.mode or "-",
        said or "nothing",
    )


def _style(row: ScanRow) -> str:
    if row.problem is not None:
        return "red"
    return "yellow" if row.findings else ""
