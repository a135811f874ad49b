"""``icewright audit ...``: what was done by whom, and whether anybody has changed that since."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.audit.model import AuditEntry, Head
from icewright.audit.model import verify as verify_chain
from icewright.core.codec import from_json, to_json
from icewright.core.errors import InvalidMessage, Unreadable
from icewright.terminal import figures as text
from icewright.terminal.cli import FOUND
from icewright.terminal.invocation import Cursor, Invocation, Limit, api_command, command
from icewright.terminal.tables import headings

if TYPE_CHECKING:
    from icewright.api_client.client import Client

app = typer.Typer(help="What was done by whom: list, verify, export.", no_args_is_help=True)

_PAGE: Final = 1_000
_HEAD: Final = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})\Z", re.ASCII)
_ENTRIES: Final = headings("#no.", "at", "who", "what", "of", "detail", below=("detail", "of"))


@app.command("list")
@api_command
def list_entries(invocation: Invocation, *, limit: Limit = 50, cursor: Cursor = None) -> None:
    """List what was done, the newest first."""
    invocation.print_page(
        invocation.client.audit(limit=limit, cursor=cursor), AuditEntry, _ENTRIES, _cells, none="nothing was done yet"
    )


@app.command()
@command
def verify(
    invocation: Invocation,
    *,
    head: Annotated[
        list[str] | None,
        typer.Option("--head", metavar="NUMBER:HASH", help="A head that was noted before; several are possible."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Verify an export instead of the server's audit.")
    ] = None,
    before: Annotated[
        Path | None,
        typer.Option("--before", metavar="FILE", help="An export with the entries that the store no longer has."),
    ] = None,
) -> None:
    """Follow the chain of the audit, here and not on the server, and name the first entry that is wrong.

    What was cut off at the end, or rewritten, shows by a head that was noted before: this command prints one. A head
    of an entry that no longer exists proves nothing, unless --before has the entries from there on. Exit status 1 when
    something is wrong, or a head proves nothing.
    """
    taken = [_head(one) for one in head or ()]
    older = None if before is None else _exported(before)
    if file is not None:
        found = verify_chain(*_together(older, *_exported(file)), taken)
    else:
        client = invocation.client
        state = client.audit_head()
        # The head of now must be there as well: entries that come meanwhile lie behind it.
        now = [from_json(Head, state["head"])] if state["head"]["number"] else []
        found = verify_chain(*_together(older, _all(client), from_json(Head, state["start"])), [*taken, *now])
    if invocation.as_json:
        invocation.terminal.document(found)
    elif found.broken_at is not None:
        invocation.terminal.say(f"entry {found.broken_at}: {found.why}")
    else:
        invocation.terminal.say(
            f"{text.count(found.entries, 'entry').replace('entrys', 'entries')}, all in their chain"
        )
        invocation.terminal.say(f"note this head elsewhere: {found.head.number}:{found.head.hash}")
        for gone in found.unproven:
            invocation.terminal.say(f"entry {gone.number} no longer exists: this head proves nothing now")
        if found.unproven:
            invocation.terminal.aside(
                "an export that has those entries shows whether this is that chain: --before FILE"
            )
    if not found.is_whole:
        raise typer.Exit(FOUND)


@app.command()
@command
def export(invocation: Invocation) -> None:
    """Print the whole audit as JSON, a line each: first what the chain begins behind, then the entries in order."""
    client = invocation.client
    sys.stdout.write(json.dumps({"start": client.audit_head()["start"]}) + "\n")
    for entry in _all(client):
        sys.stdout.write(json.dumps(to_json(entry)) + "\n")


def _all(client: Client) -> Iterator[AuditEntry]:
    after = 0
    while True:
        items = client.audit(limit=_PAGE, after=after).items
        for item in items:
            entry = from_json(AuditEntry, item)
            after = max(after + 1, entry.number)
            yield entry
        if len(items) < _PAGE:
            return


def _together(
    older: tuple[Iterator[AuditEntry], Head] | None, entries: Iterator[AuditEntry], start: Head
) -> tuple[Iterator[AuditEntry], Head]:
    """Entries and what they begin behind: with those of an older export that are not among them, where it has any."""
    if older is None or older[1].number >= start.number:
        return entries, start
    return chain((entry for entry in older[0] if entry.number <= start.number), entries), older[1]


def _exported(path: Path) -> tuple[Iterator[AuditEntry], Head]:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
        start = from_json(Head, json.loads(lines[0])["start"])
        return iter([from_json(AuditEntry, json.loads(line)) for line in lines[1:]]), start
    except (OSError, ValueError, LookupError, TypeError, InvalidMessage) as error:
        raise Unreadable(f"{path} is no export of an audit: {error}") from error


def _head(said: str) -> Head:
    found = _HEAD.match(said)
    if found is None:
        raise InvalidMessage(f"--head {said!r} is no head", hint="as `icewright audit verify` prints it: NUMBER:HASH")
    return Head(int(found[1]), found[2])


def _cells(entry: AuditEntry) -> tuple[str, ...]:
    detail = ", ".join(f"{name}={value}" for name, value in entry.detail.items())
    return str(entry.number), text.instant(entry.at), entry.principal, entry.action, entry.resource, detail
