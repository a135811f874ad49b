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
from icewright.domain.ownership import Claim, Missing
from icewright.domain.plans import Reason
from icewright.domain.tables import Instant
from icewright.planning.wording import cut

if TYPE_CHECKING:
    from icewright.cli.offline import Offline
    from icewright.domain.names import TableName
    from icewright.planning.ownership import Ownership
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


_Looked: TypeAlias = "tuple[ScanRow, Claim | Missing]"
"""A table, and the places that it lays claim to; or that these are not known, with why."""

_NAMED_MAX = 5
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
    offline = Offline(invocation.config, invocation.rules)
    looked = list(_with_progress(terminal, offline, names))
    others = [entry.name for entry in invocation.config.catalogs if entry.name not in names]
    owned = _ownership(looked, others, offline)
    rows = [row if isinstance(one, Missing) else _with_places(row, one, owned) for row, one in looked]
    found = [row for row in rows if row.findings or row.problem]
    missing = [one for of_catalog in owned.missing.values() for one in of_catalog]
    if as_json:
        terminal.document({"tables": rows, "found": len(found), "unknown_places": missing})
    else:
        _print(invocation, rows, len(found), missing)
    raise typer.Exit(FOUND if found else FINE)


def _ownership(looked: list[_Looked], others: list[str], offline: Offline) -> Ownership:
    """What only all tables together tell: whose location is somebody else's as well, and where nobody knows."""
    from icewright.planning.ownership import ownership  # noqa: PLC0415 - `--help` stays quick

    not_asked = Reason("not-looked-at", "it was left out of this scan")
    missing = [one for _, one in looked if isinstance(one, Missing)]
    return ownership(
        (one for _, one in looked if isinstance(one, Claim)),
        (*missing, *(Missing(name, name, not_asked) for name in others)),
        offline.places,
    )


def _with_places(row: ScanRow, one: Claim, owned: Ownership) -> ScanRow:
    return replace(row, findings=(*row.findings, *owned.findings.get(one.name, ())))


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
        problem = Reason(error.code, error.message)
        yield ScanRow(catalog, None, None, None, None, (), problem), Missing(catalog, catalog, problem)
        return
    for name in follow(names):
        yield _look(offline, name)


def _look(offline: Offline, name: TableName) -> _Looked:
    from icewright.services.plan_views import findings  # noqa: PLC0415 - `--help` stays quick
    from icewright.services.views import figures_view, written_at  # noqa: PLC0415 - see above

    try:
        planned = offline.plan(name)
    except IcewrightError as error:
        problem = Reason(error.code, error.message)
        return ScanRow(str(name), None, None, None, None, (), problem), _claimed(offline, name, problem)
    observation = planned.observation
    figures = figures_view(observation.inventory.partitions, planned.policy)
    found = findings(figures, planned.policy, planned.plan)
    uuid, mode = observation.metadata.table_id.uuid, planned.policy.mode.value
    row = ScanRow(str(name), uuid, mode, figures, written_at(observation.metadata), found, None)
    return row, _claimed(offline, name, None)


def _claimed(offline: Offline, name: TableName, problem: Reason | None) -> Claim | Missing:
    """The claim of a table that was looked at, as long as its metadata can be read."""
    told = problem or Reason("unclaimed", "nothing is known of its places")
    return offline.registry.claim(name) or Missing(name.catalog, str(name), told)


def _print(invocation: Invocation, rows: list[ScanRow], found: int, missing: list[Missing]) -> None:
    terminal = invocation.terminal
    if not rows:
        terminal.say("no tables")
        return
    terminal.table(_COLUMNS, [_cells(row) for row in rows], styles=[_style(row) for row in rows])
    terminal.say()
    terminal.say(f"{len(rows):,} looked at, {found:,} with something to say. Next: icewright plan TABLE")
    if missing:
        names = ", ".join(cut(one.what) for one in missing[:_NAMED_MAX]) + (
            ", ..." if len(missing) > _NAMED_MAX else ""
        )
        terminal.say(f"Where these have files is not known, so that their files may be in any other's place: {names}")


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
