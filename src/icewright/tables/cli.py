"""``icewright table ...``: what there is to see of one table, read straight from its catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, TypeVar

import typer

from icewright.api_client.paging import pages
from icewright.catalogs.port import Catalog
from icewright.core.codec import from_json, to_json
from icewright.core.errors import IcewrightError, NotFound
from icewright.footprint.cli import storage
from icewright.model.events.events import Reporting
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.observation.figures import PartitionView, partition_view
from icewright.observation.rewritten_partitions import optimized_at
from icewright.ownership.location_views import others_not_looked_at, place_view
from icewright.plans.action_types import Planned
from icewright.tables.observations import observation
from icewright.tables.policy_cli import layout_text, table_document
from icewright.tables.table_cells import (
    FILES,
    MANIFESTS,
    PARTITIONS,
    REFS,
    SNAPSHOTS,
    file_cells,
    manifest_cells,
    partition_cells,
    partition_groups,
    ref_cells,
    snapshot_cells,
)
from icewright.tables.views import (
    RefView,
    SnapshotView,
    TableView,
    file_view,
    manifest_view,
    observed_table_view,
    ref_views,
    snapshot_views,
)
from icewright.terminal import figures as text
from icewright.terminal.cli import FOUND, Terminal
from icewright.terminal.invocation import (
    Invocation,
    TableArgument,
    Yes,
    api_command,
    command,
    logged_in,
    reads_here,
    table_name,
)
from icewright.terminal.tables import Column, headings

V = TypeVar("V")

app = typer.Typer(help="Show one table: what it is, and what it is made of. Reads only.", no_args_is_help=True)

_SINGLE_MAX = 20
"""So many partitions are shown one by one."""
_GROUPED_MAX = 10_000

Limit = Annotated[int, typer.Option("--limit", min=0, help="At most so many; 0 for all.")]


@app.command()
@command
def show(invocation: Invocation, table: TableArgument) -> None:
    """Show the table as a whole: figures, policy and where it comes from, schema, refs, and whose its place is.

    The last one as far as the table itself tells; `icewright scan` looks at all others as well. Where a server runs and
    knows the table, also how well its commits are reported. Without a catalog in the configuration the server is asked
    for all of it.
    """
    from icewright.maintenance.offline import Offline  # noqa: PLC0415 - `--help` stays quick

    name = table_name(invocation.config, table)
    if reads_here(invocation):
        offline = Offline(invocation.config, invocation.rules)
        planned = offline.plan(name)
        place = place_view(offline.registry.ownership().without((others_not_looked_at(),)).place(name))
        view = observed_table_view(planned.observation, planned.policy, place)
        reporting = _reporting(invocation, name)
    else:
        known = table_document(invocation, name)
        view, reporting = known.table, known.reporting
    if invocation.as_json:
        invocation.terminal.document({**to_json(view), "reporting": to_json(reporting)})
    else:
        _print_table(invocation.terminal, view, reporting)


@app.command()
@api_command
def unpark(invocation: Invocation, table: TableArgument) -> None:
    """Resume a table that was parked after repeated failures, and have the server look at it now.

    Earlier failures no longer count. First see why they happened: `icewright why`.
    """
    client = invocation.client
    known = client.table(table_name(invocation.config, table))
    answer = client.unpark(known["uuid"], known["catalog"])
    if invocation.as_json:
        invocation.terminal.document(answer)
        return
    task_id = answer.get("task_id")
    queued = "nothing was queued" if task_id is None else f"queued as task {task_id}"
    invocation.terminal.say(f"{known['name']} is parked no more: {answer['plan']['reason']['text']}; {queued}")


@app.command("declare-lost")
@api_command
def declare_lost(
    invocation: Invocation,
    table: TableArgument,
    *,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take the declaration back.")] = False,
    yes: Yes = False,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so; else who is logged in.")] = None,
) -> None:
    """Declare a table lost that cannot be read. Only said without --yes.

    While a table was never read, or has changed and cannot be read, any file anywhere may be needed by it, and nothing
    is removed in any catalog. Once it is declared lost, it keeps what it claimed when it was last read, and nothing
    else. The declaration is in the audit, and counts no more as soon as the catalog's pointer to the table moves.
    """
    name = str(table_name(invocation.config, table))
    if not (yes or withdraw):
        invocation.terminal.say(
            f"{name} would keep no file any more that it did not claim before; --yes declares it lost"
        )
        raise typer.Exit(FOUND)
    client = invocation.client
    answer = client.withdraw_lost(name) if withdraw else client.declare_lost(name, by or logged_in())
    if invocation.as_json:
        invocation.terminal.document(answer)
    elif withdraw:
        invocation.terminal.say(f"{name} is not declared lost any more: until it is read, nothing is removed anywhere")
    else:
        invocation.terminal.say(f"{name} is declared lost at {answer['pointer'] or 'an unknown pointer'}")


@app.command("declare-gone")
@api_command
def declare_gone(
    invocation: Invocation,
    table: TableArgument,
    uuid: Annotated[str, typer.Argument(help="The uuid of the table of before; `icewright orphans` says it.")],
    *,
    in_no_catalog: Annotated[
        bool, typer.Option("--in-no-catalog", help="Say that no catalog has it, nor one that icewright does not know.")
    ] = False,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take the declaration back.")] = False,
    yes: Yes = False,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so; else who is logged in.")] = None,
) -> None:
    """Declare a former table in the place of TABLE gone. Only shown without --yes.

    A table that was dropped without purge and created again at its location leaves files there. Nothing in that place
    is removed while metadata of another table is in it, since a catalog that is not configured may have that one. Once
    an administrator has named it, its files are orphans of TABLE: none for seven days, and each by approval. The
    declaration is in the audit; it does not count where the table was committed to in the seven days before, or since.
    """
    name = str(table_name(invocation.config, table))
    if not withdraw and not (yes and in_no_catalog):
        invocation.terminal.say(
            f"files of table {uuid} in the place of {name} could be removed, by approval, from seven days on; if no "
            "catalog has that table, also none that icewright does not know, --in-no-catalog --yes declares it gone"
        )
        raise typer.Exit(FOUND)
    client = invocation.client
    if withdraw:
        answer = client.withdraw_gone(name, uuid)
    else:
        answer = client.declare_gone(name, uuid, by or logged_in(), in_no_catalog=in_no_catalog)
    if invocation.as_json:
        invocation.terminal.document(answer)
    elif withdraw:
        invocation.terminal.say(f"{uuid} is no longer declared gone: nothing in the place of {name} is removed")
    else:
        invocation.terminal.say(f"{uuid} is declared gone: its files in the place of {name} are orphans of it")


@app.command()
@command
def partitions(invocation: Invocation, table: TableArgument, *, limit: Limit = 100) -> None:
    """List the partitions: files, sizes, deletes, how much of the possible is done, and when."""
    if not reads_here(invocation):
        views = _served(invocation, table, "partitions", PartitionView)
        _list_partitions(invocation.terminal, views, limit)
        return
    planned, catalog = _look(invocation, table)
    optimized = optimized_at(catalog, planned.observation.metadata)
    found = planned.observation.inventory.partitions
    views = (partition_view(s, planned.policy, optimized.get(s.partition)) for s in found)
    _list_partitions(invocation.terminal, views, limit)


@app.command()
@command
def snapshots(invocation: Invocation, table: TableArgument, *, limit: Limit = 100) -> None:
    """List the snapshots, newest first; those that icewright made carry their task."""
    if not reads_here(invocation):
        views = _served(invocation, table, "snapshots", SnapshotView)
        _list(invocation.terminal, SNAPSHOTS, views, snapshot_cells, limit)
        return
    metadata, _ = _load(invocation, table)
    _list(invocation.terminal, SNAPSHOTS, snapshot_views(metadata), snapshot_cells, limit)


@app.command()
@command
def refs(invocation: Invocation, table: TableArgument) -> None:
    """List the branches and tags."""
    if not reads_here(invocation):
        _list(invocation.terminal, REFS, _served(invocation, table, "refs", RefView), ref_cells, 0)
        return
    metadata, _ = _load(invocation, table)
    _list(invocation.terminal, REFS, ref_views(metadata), ref_cells, 0)


@app.command()
@command
def manifests(invocation: Invocation, table: TableArgument, *, limit: Limit = 100) -> None:
    """List the manifests of the current snapshot, and what is in each."""
    metadata, catalog = _load(invocation, table)
    snapshot = metadata.current_snapshot
    keys = () if snapshot is None else catalog.manifests(metadata, snapshot)
    found = () if snapshot is None else catalog.summarize(metadata, snapshot, keys)
    _list(invocation.terminal, MANIFESTS, (manifest_view(summary) for summary in found), manifest_cells, limit)


@app.command()
@command
def files(
    invocation: Invocation,
    table: TableArgument,
    *,
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="PATH", help="Only this partition, such as month=2013-01.")
    ] = None,
    limit: Limit = 100,
) -> None:
    """List the live data files of the current snapshot."""
    planned, catalog = _look(invocation, table)
    observation = planned.observation
    paths = {s.partition: s.path for s in observation.inventory.partitions if partition in (None, s.path)}
    if partition is not None and not paths:
        raise NotFound(f"no partition {partition!r}", hint=f"`icewright table partitions {table}` lists them")
    snapshot = observation.metadata.current_snapshot
    if snapshot is None:
        _list(invocation.terminal, FILES, (), file_cells, limit)
        return
    found = catalog.data_files(observation.metadata, snapshot, observation.inventory.manifests, frozenset(paths))
    views = (file_view(file, paths, planned.policy) for file in found)
    _list(invocation.terminal, FILES, views, file_cells, limit)


app.command()(observation)
app.command()(storage)


def _look(invocation: Invocation, table: str) -> tuple[Planned, Catalog]:
    from icewright.maintenance.offline import Offline  # noqa: PLC0415 - `--help` stays quick

    name = table_name(invocation.config, table)
    offline = Offline(invocation.config, invocation.rules)
    return offline.plan(name), offline.catalog(name.catalog)


def _served(invocation: Invocation, table: str, what: str, of: type[V]) -> Iterator[V]:
    """What a table is made of, from the server, as it is asked for."""
    client = invocation.client
    known = client.table(table_name(invocation.config, table))
    of_table = known["uuid"], known["catalog"]
    return pages(of, lambda cursor: client.parts_of_table(what, *of_table, cursor=cursor))


def _list_partitions(terminal: Terminal, views: Iterator[PartitionView], limit: int) -> None:
    """As :func:`_list`; on a terminal, equal ones of many partitions are one row."""
    if terminal.as_json or not terminal.out.is_terminal:
        _list(terminal, PARTITIONS, views, partition_cells, limit)
        return
    found = list(islice(views, _GROUPED_MAX))
    rows = partition_groups(found) if len(found) > _SINGLE_MAX else [partition_cells(view) for view in found]
    terminal.table(PARTITIONS, rows[: limit or None])
    if len(rows) < len(found):
        terminal.note(f"{len(found):,} partitions, the figures of each; a pipe, or --json, shows them one by one")
    if next(views, None) is not None:
        terminal.aside(f"the first {_GROUPED_MAX:,} partitions only; a pipe, or --json, shows all with --limit 0")
    elif limit and len(rows) > limit:
        terminal.aside(f"the first {limit:,} rows only; --limit 0 shows all")


def _reporting(invocation: Invocation, name: TableName) -> Reporting | None:
    """How well the commits of the table are reported, as the server says; None where none runs or knows the table."""
    try:
        client = invocation.client
        known = client.table(name)
        found = client.table_document(known["uuid"], known["catalog"])["reporting"]
    except IcewrightError as error:
        if not isinstance(error, NotFound) and not isinstance(error.__cause__, NotFound):
            invocation.terminal.note(f"without how its commits are reported: {error.message}")
        return None
    return None if found is None else from_json(Reporting, found)


def _reported(reporting: Reporting | None) -> str:
    if reporting is None:
        return ""
    by_event = [f"{count:,} by {channel.value}" for channel, count in sorted(reporting.told.items()) if count]
    said = [*by_event, f"{reporting.sweep_only:,} found by the sweep alone"]
    if reporting.untold:
        said.append(f"{len(reporting.untold):,} not reported yet")
    return f"commits since {text.instant(reporting.since)}: {', '.join(said)}"


def _load(invocation: Invocation, table: str) -> tuple[TableMetadata, Catalog]:
    from icewright.maintenance.offline import Offline  # noqa: PLC0415 - `--help` stays quick

    name = table_name(invocation.config, table)
    offline = Offline(invocation.config)
    catalog = offline.catalog(name.catalog)
    with offline.suggesting(name):
        return catalog.load(name), catalog


def _list(
    terminal: Terminal, columns: Sequence[Column], views: Iterable[V], cells: Callable[[V], Sequence[str]], limit: int
) -> None:
    """Print views one after the other, at most ``limit``; never more of them in memory than are printed."""
    rest = iter(views)
    shown = islice(rest, limit) if limit else rest
    if terminal.as_json:
        terminal.documents(shown)
    else:
        terminal.table(columns, (cells(view) for view in shown))
    if limit and next(rest, None) is not None:
        terminal.aside(f"the first {limit:,} only; --limit 0 shows all")


def _print_table(terminal: Terminal, view: TableView, reporting: Reporting | None) -> None:
    figures = view.figures
    terminal.pairs(
        [
            ("table", view.name),
            ("uuid", view.uuid),
            ("format version", str(view.format_version)),
            ("location", view.location),
            ("snapshot", str(view.current_snapshot_id or "none yet")),
            ("snapshots", text.number(view.snapshots)),
            ("partitions", text.number(figures.partitions)),
            ("files", f"{text.number(figures.data_files)} ({text.size(figures.size_bytes)})"),
            ("rows", text.number(figures.records)),
            (
                "small files",
                f"{text.number(figures.small_files)} ({text.share(figures.small_files, figures.data_files)})",
            ),
            ("delete files", f"{text.number(figures.delete_files)} ({text.number(figures.deleted_records)} rows)"),
            ("done", text.ratio(figures.optimization_ratio)),
            ("last write", text.instant(view.written_at)),
            ("last optimized", text.instant(view.optimized_at)),
            ("partitioned by", view.partition_spec or "nothing"),
            ("sorted by", view.sort_order or "nothing"),
            ("layout", layout_text(view.layout)),
            ("mode", view.mode.value),
            ("reporting", _reported(reporting)),
        ]
    )
    for title, columns, rows in _sections(view):
        terminal.say()
        terminal.say(title, style="bold")
        terminal.table(columns, rows)


def _sections(view: TableView) -> list[tuple[str, tuple[Column, ...], list[tuple[str, ...]]]]:
    settings = [(setting.key, setting.value or "-", setting.origin) for setting in view.policy]
    problems = [(problem.origin, problem.key, problem.problem) for problem in view.policy_problems]
    columns = [(str(c.field_id), c.name, c.type, "required" if c.required else "", c.doc or "") for c in view.columns]
    place = [("may be cleaned", root, "") for root in view.place.roots]
    place += [("not ours", outside, "") for outside in view.place.not_ours]
    place += [("nothing may be deleted", reason.text, reason.code) for reason in view.place.findings]
    place += [("not known", gap.what, gap.reason.text) for gap in view.place.unknown]
    parts = [
        ("Place", headings("finding", "place", "because", below=("because", "place")), place),
        ("Policy", headings("property", "value", "from", drop=("from",), below=("value",)), settings),
        ("Settings that cannot be used", headings("from", "property", "problem", below=("problem",)), problems),
        ("Refs", REFS, [ref_cells(ref) for ref in view.refs]),
        ("Columns", headings("#id", "name", "type", "", "doc", below=("doc", "type")), columns),
    ]
    return [(title, heads, rows) for title, heads, rows in parts if rows]  # type: ignore[misc] # rows of any width
