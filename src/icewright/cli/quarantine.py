"""``icewright quarantine ...``: what was removed and can come back, until it is purged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.cli import figures as text
from icewright.cli.invocation import AsJson, Cursor, Limit, ShowApi, begin
from icewright.cli.terminal import Column, Terminal
from icewright.domain.codec import from_json

if TYPE_CHECKING:
    from icewright.services.quarantine_views import QuarantineView

app = typer.Typer(
    help="Removed files that can come back: list them, purge what is over its time.", no_args_is_help=True
)

_HELD: Final = (
    Column("task"),
    Column("table"),
    Column("because"),
    Column("files", is_number=True),
    Column("bytes", is_number=True),
    Column("purged from"),
    Column("approved by"),
)


@app.command("list")
def list_quarantine(
    context: typer.Context,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """List the tasks whose removed files are in quarantine, newest first."""
    from icewright.cli.connection import server  # noqa: PLC0415 - `--help` stays quick
    from icewright.services.quarantine_views import QuarantineView  # noqa: PLC0415 - see above

    invocation = begin(context, as_json=as_json)
    with server(invocation, show_api=show_api) as client:
        page = client.quarantine(limit=limit, cursor=cursor)
    found = [from_json(QuarantineView, item) for item in page.items]
    if as_json:
        invocation.terminal.documents(found, page.next_cursor)
        return
    if not found:
        invocation.terminal.say("nothing is in quarantine")
        return
    invocation.terminal.table(_HELD, [_cells(one) for one in found])
    for one in found:
        _tell_unknown(invocation.terminal, one)
    if page.next_cursor is not None:
        invocation.terminal.aside(f"there are more: --cursor {page.next_cursor}")
    invocation.terminal.say()
    invocation.terminal.say("To have files back: icewright undo TASK_ID")


@app.command()
def purge(
    context: typer.Context,
    task_id: Annotated[str, typer.Argument(metavar="TASK_ID", help="As `icewright quarantine list` shows it.")],
    *,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Delete for good what a task removed and what has been in quarantine for its time; nothing goes before that.

    The server does so by itself, once a day. What the table has come to need by now is put back first. It goes by some
    thousand files at a time: broken off, it goes on when it is repeated.
    """
    from icewright.cli.connection import server  # noqa: PLC0415 - `--help` stays quick
    from icewright.domain.plans import Reason  # noqa: PLC0415 - see above
    from icewright.services.quarantine_views import QuarantineView  # noqa: PLC0415 - see above

    invocation = begin(context, as_json=as_json)
    with server(invocation, show_api=show_api) as client:
        answer = client.purge(task_id)
        said = answer["waits"]
        while answer["next_cursor"] is not None:
            invocation.terminal.note(_so_far(from_json(QuarantineView, answer["quarantine"])))
            answer = client.purge(task_id, cursor=answer["next_cursor"])
            said = said or answer["waits"]
    if as_json:
        invocation.terminal.document({**answer, "waits": said})
        return
    one = from_json(QuarantineView, answer["quarantine"])
    waits = None if said is None else from_json(Reason, said)
    left = f"{text.count(one.held_files, 'file')} ({text.size(one.held_bytes)})"
    when = "" if one.purged_from is None else f", to be purged from {text.instant(one.purged_from)} on"
    invocation.terminal.pairs(
        [
            ("purged", f"{one.purged_files:,} so far"),
            ("put back", f"{one.restored_files:,} so far"),
            ("in quarantine", left + when),
            ("but", "" if waits is None else waits.text),
        ]
    )
    _tell_unknown(invocation.terminal, one)


def _so_far(one: QuarantineView) -> str:
    held = text.count(one.held_files, "file")
    return f"{one.purged_files:,} purged and {one.restored_files:,} put back so far, {held} in quarantine"


def _tell_unknown(terminal: Terminal, one: QuarantineView) -> None:
    if one.unknown_files:
        why = "" if one.why is None else f": {one.why.text}"
        terminal.note(f"{one.task_id}: of {text.count(one.unknown_files, 'file')} it is not known where it is{why}")


def _cells(one: QuarantineView) -> tuple[str, ...]:
    return (
        one.task_id,
        one.table,
        one.cause.value,
        text.number(one.held_files),
        text.size(one.held_bytes),
        "" if one.purged_from is None else text.instant(one.purged_from),
        one.approved_by or "",
    )
