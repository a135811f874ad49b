"""``icewright notify`` and ``events``: what the server is told of commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.core.errors import NotAllowed
from icewright.model.events.events import Channel, CommitEvent, EventState
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Operation
from icewright.terminal import figures as text
from icewright.terminal.cli import Column
from icewright.terminal.invocation import AsJson, Cursor, Limit, ShowApi, TableArgument, Yes, begin
from icewright.terminal.lists import print_page

if TYPE_CHECKING:
    from icewright.events.views import EventView

app = typer.Typer(help="Commits that other programs reported to the server.", no_args_is_help=True)

_EVENTS: Final = (
    Column("event", is_number=True),
    Column("state"),
    Column("table"),
    Column("snapshot", is_number=True),
    Column("channel"),
    Column("received"),
    Column("done"),
    Column("tries", is_number=True),
    Column("problem"),
)


@app.command("list")
def list_events(
    context: typer.Context,
    *,
    state: Annotated[EventState | None, typer.Option("--state", help="Only these.")] = None,
    channel: Annotated[Channel | None, typer.Option("--channel", help="Only what came in by this one.")] = None,
    table: Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only events of this table.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """List events that came in, newest first: those that wait for a look, and those that had one within a day."""
    from icewright.events.views import EventView  # noqa: PLC0415 - `--help` stays quick
    from icewright.terminal.invocation import table_name  # noqa: PLC0415 - see above

    invocation = begin(context, as_json=as_json)
    name = None if table is None else str(table_name(invocation.config, table))
    only = {"state": None if state is None else state.value, "channel": None if channel is None else channel.value}
    print_page(
        invocation,
        lambda client: client.events(**only, name=name, limit=limit, cursor=cursor),
        EventView,
        _EVENTS,
        event_cells,
        none="no events",
        show_api=show_api,
    )


@app.command()
def delete(
    context: typer.Context,
    event_id: Annotated[int, typer.Argument(metavar="ID", min=0, help="As `icewright events list` shows it.")],
    *,
    yes: Yes = False,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Delete an event, such as one that is parked; only with --yes. It may be reported again."""
    from icewright.events.views import EventView  # noqa: PLC0415 - `--help` stays quick
    from icewright.terminal.connection import server  # noqa: PLC0415 - see above

    invocation = begin(context, as_json=as_json)
    if not yes:
        raise NotAllowed(f"event {event_id} is not deleted", hint="add --yes to delete it")
    with server(invocation, show_api=show_api) as client:
        deleted = from_json(EventView, client.delete_event(event_id))
    if as_json:
        invocation.terminal.document(deleted)
    else:
        invocation.terminal.say(f"event {event_id} of {deleted.table} is deleted")


def event_cells(event: EventView) -> tuple[str, ...]:
    """An event as a row."""
    return (
        str(event.event_id),
        event.state.value,
        event.table,
        "-" if event.snapshot_id is None else str(event.snapshot_id),
        event.channel.value,
        text.instant(event.received_at),
        text.instant(event.done_at),
        text.number(event.tries),
        _problem(event),
    )


def _problem(event: EventView) -> str:
    """Why its table is not looked after by now; else why the last try came to nothing."""
    if event.problem is not None:
        return event.problem.text
    return "" if event.trouble is None else f"{event.trouble.text} ({text.instant(event.tried_at)})"


def notify(
    context: typer.Context,
    table: TableArgument,
    *,
    snapshot_id: Annotated[int, typer.Option("--snapshot-id", min=0, max=2**63 - 1, help="The committed snapshot.")],
    uuid: Annotated[str | None, typer.Option("--uuid", help="The table's uuid, where it is known.")] = None,
    operation: Annotated[Operation | None, typer.Option("--operation", help="What the commit did.")] = None,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Tell the server that somebody committed to a table, so that it looks now. Telling twice does no harm."""
    from icewright.terminal.connection import server  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=as_json)
    name = _event_name(table, [entry.name for entry in invocation.config.catalogs])
    with server(invocation, show_api=show_api) as client:
        answer = client.notify(CommitEvent(name, snapshot_id, table_uuid=uuid, operation=operation))
    if as_json:
        invocation.terminal.document(answer)
    else:
        invocation.terminal.say("known already" if answer.get("repeated") else "the server will look at it now")


def _event_name(table: str, catalogs: list[str]) -> TableName:
    return TableName.parse(table, default_catalog=catalogs[0] if len(catalogs) == 1 else None)
