"""``icewright quarantine ...``: what was removed and can come back, until it is purged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.model.plans.plans import Reason
from icewright.terminal import figures as text
from icewright.terminal.cli import FINE, FOUND, Terminal
from icewright.terminal.invocation import (
    Cursor,
    Invocation,
    Limit,
    Yes,
    api_command,
    logged_in,
)
from icewright.terminal.tables import headings

if TYPE_CHECKING:
    from icewright.actions.remove_files.views import QuarantineView
    from icewright.api_client.connection import Page
    from icewright.core.reasons import Reason

app = typer.Typer(
    help="Removed files that can be restored: list them, purge those past their window.", no_args_is_help=True
)

_FILES_SHOWN: Final = 20
_HELD: Final = headings(
    "task",
    "table",
    "because",
    "#files",
    "#bytes",
    "purged from",
    "approved by",
    drop=("approved by", "purged from"),
    below=("because", "table"),
)


@app.command("list")
@api_command
def list_quarantine(invocation: Invocation, *, limit: Limit = 50, cursor: Cursor = None) -> None:
    """List the tasks whose removed files are in quarantine, newest first."""
    from icewright.actions.remove_files.views import QuarantineView  # noqa: PLC0415 - `--help` stays quick

    none = "nothing is in quarantine"
    found = invocation.print_page(
        invocation.client.quarantine(limit=limit, cursor=cursor), QuarantineView, _HELD, _cells, none=none
    )
    if invocation.as_json or not found:
        return
    for one in found:
        _tell_unknown(invocation.terminal, one)
        _tell_overdue(invocation.terminal, one)
        _tell_gone(invocation.terminal, one)
    invocation.terminal.say()
    invocation.terminal.say("To have files back: icewright undo TASK_ID")


@app.command()
@api_command
def purge(
    invocation: Invocation,
    task_id: Annotated[str, typer.Argument(metavar="TASK_ID", help="As `icewright quarantine list` shows it.")],
) -> None:
    """Permanently delete what a task removed once its window in quarantine has ended.

    The server does so automatically, once a day. Files that the table needs by now are restored first. It works in
    batches of a thousand files: interrupted, it continues when it is repeated.
    """
    from icewright.actions.remove_files.views import QuarantineView  # noqa: PLC0415 - see above

    client = invocation.client
    answer = client.purge(task_id)
    said = answer["waits"]
    while answer["next_cursor"] is not None:
        invocation.terminal.note(_so_far(from_json(QuarantineView, answer["quarantine"])))
        answer = client.purge(task_id, cursor=answer["next_cursor"])
        said = said or answer["waits"]
    if invocation.as_json:
        invocation.terminal.document({**answer, "waits": said})
        return
    one = from_json(QuarantineView, answer["quarantine"])
    waits = None if said is None else from_json(Reason, said)
    _print_purged(invocation.terminal, one, waits)


@app.command("purge-gone")
@api_command
def purge_gone(
    invocation: Invocation,
    task_id: Annotated[str, typer.Argument(metavar="TASK_ID", help="As `icewright quarantine list` shows it.")],
    *,
    yes: Yes = False,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so; else who is logged in.")] = None,
) -> None:
    """Permanently delete files of a dropped table whose window has ended. Only shown without --yes.

    No such file is purged automatically: what the table needs can no longer be read. Nor does this command purge any
    while a table of any catalog has its uuid, or a place or files where its files were, or while not all tables are
    known. Exit status 1 when it was only shown, or something kept it from that.
    """
    from icewright.actions.remove_files.views import QuarantineView  # noqa: PLC0415 - see above

    client = invocation.client
    before = from_json(QuarantineView, client.held(task_id))
    if not yes:
        _show_gone(invocation.terminal, before, client.held_files(task_id, limit=_FILES_SHOWN))
        raise typer.Exit(FOUND)
    purged_by = by or logged_in()
    while True:
        answer = client.purge_of_gone_table(task_id, purged_by)
        now = from_json(QuarantineView, answer["quarantine"])
        if answer["waits"] is not None or not now.held_files or now.purged_files == before.purged_files:
            break
        before = now
    waits = None if answer["waits"] is None else from_json(Reason, answer["waits"])
    if invocation.as_json:
        invocation.terminal.document(answer)
    else:
        _print_purged(invocation.terminal, now, waits)
    raise typer.Exit(FINE if waits is None else FOUND)


def _show_gone(terminal: Terminal, one: QuarantineView, files: Page) -> None:
    """What would go, and that nobody can have it back then."""
    from icewright.actions.remove_files.views import HeldFileView  # noqa: PLC0415 - `--help` stays quick

    held = [from_json(HeldFileView, item) for item in files.items]
    if terminal.as_json:
        terminal.document({"quarantine": one, "files": held, "next_cursor": files.next_cursor})
        return
    gone = "not known to be gone" if one.dropped_at is None else f"gone since {text.instant(one.dropped_at)}"
    terminal.say(f"{one.table}, {gone}: {text.count(one.held_files, 'file')} ({text.size(one.held_bytes)})")
    terminal.table(
        headings("file", "#bytes", "from", below=("from",)),
        [(file.path, text.size(file.size_bytes), text.instant(file.purged_from)) for file in held],
    )
    if files.next_cursor is not None:
        terminal.aside(f"the first {len(held):,} only; --json has the cursor of the next page")
    terminal.say()
    terminal.say(
        "They are needed if the table is registered again. With --yes, those past their window are deleted permanently."
    )


def _print_purged(terminal: Terminal, one: QuarantineView, waits: Reason | None) -> None:
    left = f"{text.count(one.held_files, 'file')} ({text.size(one.held_bytes)})"
    when = "" if one.purged_from is None else f", to be purged from {text.instant(one.purged_from)} on"
    terminal.pairs(
        [
            ("purged", f"{one.purged_files:,} so far"),
            ("put back", f"{one.restored_files:,} so far"),
            ("in quarantine", left + when),
            ("but", "" if waits is None else waits.text),
        ]
    )
    _tell_unknown(terminal, one)


def _so_far(one: QuarantineView) -> str:
    held = text.count(one.held_files, "file")
    return f"{one.purged_files:,} purged and {one.restored_files:,} put back so far, {held} in quarantine"


def _tell_unknown(terminal: Terminal, one: QuarantineView) -> None:
    if one.unknown_files:
        why = "" if one.why is None else f": {one.why.text}"
        terminal.note(f"{one.task_id}: of {text.count(one.unknown_files, 'file')} it is not known where it is{why}")


def _tell_overdue(terminal: Terminal, one: QuarantineView) -> None:
    if not one.unknown_files and one.why is not None:
        terminal.note(f"{one.task_id}: {one.why.text}")


def _when(one: QuarantineView) -> str:
    if one.dropped_at is not None:
        return "not automatically"
    return "" if one.purged_from is None else text.instant(one.purged_from)


def _tell_gone(terminal: Terminal, one: QuarantineView) -> None:
    if one.dropped_at is not None:
        terminal.note(
            f"{one.task_id}: {one.table} is gone since {text.instant(one.dropped_at)}, so its files wait for approval:"
            f" icewright quarantine purge-gone {one.task_id}"
        )


def _cells(one: QuarantineView) -> tuple[str, ...]:
    return (
        one.task_id,
        one.table,
        one.cause.value,
        text.number(one.held_files),
        text.size(one.held_bytes),
        _when(one),
        one.approved_by or "",
    )
