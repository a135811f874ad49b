"""``icewright scan``: every table of every catalog in one line, and what is wrong with it. Reads only."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeAlias

import typer

from icewright.api_client.paging import pages
from icewright.core.codec import from_json
from icewright.core.errors import IcewrightError, NotFound, Unavailable, Unreadable
from icewright.core.times import Instant
from icewright.core.wording import cut, grouped
from icewright.model.iceberg.names import split_parts
from icewright.model.plans.plans import Reason
from icewright.observation.figures import figures_view
from icewright.ownership.model import Claim, Missing
from icewright.ownership.ownership import ownership
from icewright.tables.api_views import TableDocument, TableSummary
from icewright.tables.views import written_at
from icewright.terminal import figures as text
from icewright.terminal.cli import FINE, FOUND, Terminal
from icewright.terminal.invocation import Invocation, command, reads_here
from icewright.terminal.tables import headings

if TYPE_CHECKING:
    from icewright.api_client.client import Client
    from icewright.maintenance.offline import Offline
    from icewright.model.iceberg.names import TableName
    from icewright.model.work.figures import FiguresView
    from icewright.ownership.ownership import Ownership


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

_GIVEN = "lake"
"""The name of the catalog of ``--uri``."""
_NAMED_MAX = 5
_COLUMNS = headings(
    *("table", "#files", "#bytes", "#small", "#deletes", "#done", "mode", "found"),
    drop=("deletes", "mode", "files", "done"),
    below=("found",),
)


@command
def scan(
    invocation: Invocation,
    *,
    catalog: Annotated[list[str] | None, typer.Option("--catalog", help="Only this catalog; may be repeated.")] = None,
    uri: Annotated[
        str | None,
        typer.Option(
            "--uri",
            help="A catalog that no configuration names: https://... (REST), thrift://... (Hive), sqlite:////... or "
            "postgresql://...; only it is read, as the catalog `lake`.",
        ),
    ] = None,
    warehouse: Annotated[str | None, typer.Option("--warehouse", help="The warehouse of --uri.")] = None,
) -> None:
    """Look at all tables: files, bytes, share of small files, deletes, and what is wrong. Changes nothing.

    Below each table stands what was found: small files, partitions that are too many, snapshots, metadata that is too
    much for the data, deletes, settings that cannot be used, and orphan files where a server runs that has looked for
    them; at the end, for each kind of finding, the command to begin with. Without a catalog in the configuration the
    server says what it has found, which is all but metadata that is too much for the data. Exit status 1 when
    something was found. "done" is how much of what merging can do is done.
    """
    from icewright.maintenance.offline import Offline  # noqa: PLC0415 - `--help` stays quick

    terminal = invocation.terminal
    if uri is None and warehouse is not None:
        raise typer.BadParameter("--warehouse needs --uri")
    if uri is None and not reads_here(invocation):
        _show(invocation, _with_orphans(invocation, list(_served(invocation, catalog))), [])
    config = invocation.config if uri is None else invocation.with_one_catalog(_GIVEN, uri, warehouse)
    chosen = [config.catalog(name).name for name in catalog or ()]
    names = chosen or [entry.name for entry in config.catalogs]
    offline = Offline(config, invocation.rules if uri is None else ())
    looked = list(_with_progress(terminal, offline, names))
    others = [entry.name for entry in config.catalogs if entry.name not in names]
    owned = _ownership(looked, others, offline)
    rows = [row if isinstance(one, Missing) else _with_places(row, one, owned) for row, one in looked]
    missing = [one for of_catalog in owned.missing.values() for one in of_catalog]
    _show(invocation, _with_orphans(invocation, rows) if uri is None else rows, missing)


def _show(invocation: Invocation, rows: list[ScanRow], missing: list[Missing]) -> NoReturn:
    """Print the rows, and leave with the exit status that they are worth."""
    found = [row for row in rows if row.findings or row.problem]
    if invocation.terminal.as_json:
        invocation.terminal.document({"tables": rows, "found": len(found), "unknown_places": missing})
    else:
        _print(invocation, rows, len(found), missing)
    raise typer.Exit(FOUND if found else FINE)


def _ownership(looked: list[_Looked], others: list[str], offline: Offline) -> Ownership:
    """What only all tables together show: whose location is another table's as well, and where that is unknown."""
    not_asked = Reason("not-looked-at", "it was left out of this scan")
    missing = [one for _, one in looked if isinstance(one, Missing)]
    return ownership(
        (one for _, one in looked if isinstance(one, Claim)),
        (*missing, *(Missing(name, name, not_asked) for name in others)),
        offline.places,
    )


def _served(invocation: Invocation, catalogs: list[str] | None) -> Iterator[ScanRow]:
    """The tables of a server, as its last looks at them saw them."""
    client = invocation.client
    for known in pages(TableSummary, lambda cursor: client.tables(limit=1000, cursor=cursor)):
        plan, mode = known.plan, None if known.mode is None else known.mode.value
        if not catalogs or known.catalog in catalogs:
            planned = () if plan is None or not plan.can_apply else (plan.reason,)
            found = (*planned, *_of_document(invocation, client, known))
            yield ScanRow(known.name, known.uuid, mode, known.figures, None, found, known.problem)
    status = client.status()
    for table in status["unreadable"]:
        if not catalogs or split_parts(table["name"])[0] in catalogs:
            yield ScanRow(table["name"], None, None, None, None, (), from_json(Reason, table["reason"]))
    more = status.get("unreadable_count", 0) - len(status["unreadable"])
    if more > 0:
        invocation.terminal.note(f"without {text.count(more, 'more table')} that the server cannot read")


def _of_document(invocation: Invocation, client: Client, known: TableSummary) -> tuple[Reason, ...]:
    """What a table's own document tells beside its line in the list: partitions and snapshots that are too many."""
    from icewright.tables.findings import layout_findings, snapshot_findings  # noqa: PLC0415 - see above

    try:
        table = from_json(TableDocument, client.table_document(known.uuid, known.catalog)).table
    except (NotFound, Unreadable, Unavailable) as error:
        invocation.terminal.note(f"{known.name}: without its snapshots and partitions: {error.message}")
        return ()
    return (*layout_findings(table.figures, table.small_file_size_bytes), *snapshot_findings(table.snapshots))


def _with_orphans(invocation: Invocation, rows: list[ScanRow]) -> list[ScanRow]:
    """The rows with what a server has found of orphan files of these tables; as they are where none runs."""
    from icewright.footprint.unneeded_views import UnneededView  # noqa: PLC0415 - see above
    from icewright.tables.findings import orphan_findings  # noqa: PLC0415 - see above

    shown = list(rows)
    try:
        for number, row in enumerate(rows):
            with suppress(NotFound):  # it does not know the table
                found = {} if row.uuid is None else invocation.client.unneeded(row.uuid, split_parts(row.name)[0])
                orphans = orphan_findings(from_json(UnneededView, found)) if found else ()
                shown[number] = replace(row, findings=(*row.findings, *orphans))
    except IcewrightError as error:
        if not isinstance(error.__cause__, NotFound):  # there is one, and it does not say
            invocation.terminal.note(f"without orphan files that the server knows of: {error.message}")
    return shown


def _with_places(row: ScanRow, one: Claim, owned: Ownership) -> ScanRow:
    return replace(row, findings=(*row.findings, *owned.findings.get(one.name, ())))


def _with_progress(terminal: Terminal, offline: Offline, catalogs: list[str]) -> Iterator[_Looked]:
    if terminal.as_json or not terminal.err.is_terminal:
        for catalog in catalogs:
            yield from _scan(offline, catalog, list)
        return
    from rich.progress import Progress  # noqa: PLC0415 - only on a terminal

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
    from icewright.tables.findings import findings, layout_findings, metadata_findings  # noqa: PLC0415 - as above

    try:
        planned = offline.plan(name)
    except IcewrightError as error:
        problem = Reason(error.code, error.message)
        return ScanRow(str(name), None, None, None, None, (), problem), _claimed(offline, name, problem)
    observation = planned.observation
    figures = figures_view(observation.inventory.partitions, planned.policy)
    metadata = observation.metadata
    found = (
        *findings(figures, planned.policy, planned.plan),
        *layout_findings(figures, planned.policy.small_file_size_bytes),
        *metadata_findings(observation, figures, lambda: offline.metadata_file_bytes(metadata)),
    )
    uuid, mode = observation.metadata.table_id.uuid, planned.policy.mode.value
    row = ScanRow(str(name), uuid, mode, figures, written_at(observation.metadata), found, None)
    return row, _claimed(offline, name, None)


def _claimed(offline: Offline, name: TableName, problem: Reason | None) -> Claim | Missing:
    """The claim of a table that was looked at, as long as its metadata can be read."""
    why = problem or Reason("unclaimed", "nothing is known of its places")
    return offline.registry.claim(name) or Missing(name.catalog, str(name), why)


def _print(invocation: Invocation, rows: list[ScanRow], found: int, missing: list[Missing]) -> None:
    terminal = invocation.terminal
    if not rows:
        terminal.say("no tables")
        return
    terminal.table(_COLUMNS, [_cells(row) for row in rows], styles=[_style(row) for row in rows])
    _print_commands(terminal, rows)
    terminal.say()
    terminal.say(f"{text.count(len(rows), 'table')}, {found:,} with findings.")
    if missing:
        names = ", ".join(cut(one.what) for one in missing[:_NAMED_MAX]) + (
            ", ..." if len(missing) > _NAMED_MAX else ""
        )
        terminal.prose(f"{names}: the places of these tables are unknown, so no file is removed where theirs may be")


def _cells(row: ScanRow) -> tuple[str, ...]:
    found = "; ".join(reason.text for reason in (row.findings if row.problem is None else (row.problem,)))
    if row.figures is None:
        return (row.name, "-", "-", "-", "-", "-", row.mode or "-", found)
    return (
        row.name,
        text.number(row.figures.data_files),
        text.size(row.figures.size_bytes),
        text.share(row.figures.small_files, row.figures.data_files),
        text.number(row.figures.delete_files),
        text.ratio(row.figures.optimization_ratio),
        row.mode or "-",
        found,
    )


def _print_commands(terminal: Terminal, rows: list[ScanRow]) -> None:
    """The command to begin with, of each kind of finding: for the first of its tables, and how many there are."""
    from icewright.tables.findings import help_with  # noqa: PLC0415 - `--help` stays quick

    found = [(row.name, reason) for row in rows if row.problem is None for reason in row.findings]
    for alike in grouped(found, lambda one: help_with(one[1], "TABLE")):
        name, reason = alike[0]
        kinds = ", ".join(dict.fromkeys(reason.code.replace("-", " ") for _, reason in alike))
        terminal.say()
        terminal.prose(f"{kinds}, {text.count(len({name for name, _ in alike}), 'table')}; begin with:")
        for line in help_with(reason, shlex.quote(name)).splitlines():
            terminal.say(f"  {line}")


def _style(row: ScanRow) -> str:
    if row.problem is not None:
        return "red"
    return "yellow" if row.findings else ""
