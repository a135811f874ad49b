"""``icewright notify`` and ``events``: what the server is told of commits."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.core.errors import NotAllowed
from icewright.events.views import EventView
from icewright.model.events.events import Channel, CommitEvent, EventState
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Operation
from icewright.terminal import figures as text
from icewright.terminal.invocation import (
    Cursor,
    Invocation,
    Limit,
    TableArgument,
    Yes,
    api_command,
    table_name,
)
from icewright.terminal.tables import headings

app = typer.Typer(help="Commits that other programs reported to the server.", no_args_is_help=True)

_EVENTS: Final = headings(
    "#event",
    "state",
    "table",
    "#snapshot",
    "channel",
    "received",
    "done",
    "#tries",
    "problem",
    drop=("done", "tries", "snapshot", "channel", "received"),
    below=("problem", "table"),
)


@app.command("list")
@api_command
def list_events(
    invocation: Invocation,
    *,
    state: Annotated[EventState | None, typer.Option("--state", help="Only these.")] = None,
    channel: Annotated[Channel | None, typer.Option("--channel", help="Only what came in by this one.")] = None,
    table: Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only events of this table.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List events that came in, newest first: those that wait for a look, and those that had one within a day."""
    name = None if table is None else str(table_name(invocation.config, table))
    only = {"state": None if state is None else state.value, "channel": None if channel is None else channel.value}
    page = invocation.client.events(**only, name=name, limit=limit, cursor=cursor)
    invocation.print_page(page, EventView, _EVENTS, event_cells, none="no events")


@app.command()
@api_command
def delete(
    invocation: Invocation,
    event_id: Annotated[int, typer.Argument(metavar="ID", min=0, help="As `icewright events list` shows it.")],
    *,
    yes: Yes = False,
) -> None:
    """Delete an event, such as one that is parked; only with --yes. It may be reported again."""
    if not yes:
        raise NotAllowed(f"event {event_id} is not deleted", hint="add --yes to delete it")
    deleted = from_json(EventView, invocation.client.delete_event(event_id))
    invocation.print_answer(deleted, f"event {event_id} of {deleted.table} is deleted")


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


@api_command
def notify(
    invocation: Invocation,
    table: TableArgument,
    *,
    snapshot_id: Annotated[int, typer.Option("--snapshot-id", min=0, max=2**63 - 1, help="The committed snapshot.")],
    uuid: Annotated[str | None, typer.Option("--uuid", help="The table's uuid, where it is known.")] = None,
    operation: Annotated[Operation | None, typer.Option("--operation", help="What the commit did.")] = None,
) -> None:
    """Report a commit to a table to the server, so that it looks now. Reporting twice does no harm."""
    name = _event_name(table, [entry.name for entry in invocation.config.catalogs])
    answer = invocation.client.notify(CommitEvent(name, snapshot_id, table_uuid=uuid, operation=operation))
    invocation.print_answer(answer, "known already" if answer.get("repeated") else "the server will look at it now")


def _event_name(table: str, catalogs: list[str]) -> TableName:
    return TableName.parse(table, default_catalog=catalogs[0] if len(catalogs) == 1 else None)
