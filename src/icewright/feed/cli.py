"""``icewright feed``: what happened, and what happens, as the server tells it."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from icewright.core.codec import from_json
from icewright.feed.views import FactView
from icewright.model.events.feed import FactKind
from icewright.terminal import figures as text
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import Cursor, Invocation, Limit, api_command
from icewright.terminal.tables import headings

if TYPE_CHECKING:
    from icewright.api_client.client import Client

_FACTS = headings("when", "what", "table", "task", "because", drop=("task",), below=("because", "table"))


@api_command
def feed(
    invocation: Invocation,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens, until Ctrl-C.")] = False,
    kind: Annotated[list[FactKind] | None, typer.Option("--kind", help="Only facts of this kind; repeatable.")] = None,
    under: Annotated[
        list[str] | None,
        typer.Option("--under", metavar="NAME", help="Only of this catalog, namespace or table; repeatable."),
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> None:
    """Show what happened, oldest first: tasks queued, done and failed, tables parked, plans that wait.

    With --follow, what happens from now on; with --json besides, one document a line.
    """
    kinds, places = [one.value for one in kind or ()], under or []
    if follow:
        with suppress(KeyboardInterrupt):
            _follow(invocation.terminal, invocation.client, kinds, places)
        return
    page = invocation.client.feed(kinds=kinds, under=places, limit=limit, cursor=cursor)
    invocation.print_page(page, FactView, _FACTS, _cells, none="no facts yet")


def _follow(terminal: Terminal, client: Client, kinds: list[str], under: list[str]) -> None:
    for found in client.follow(kinds=kinds, under=under):
        if terminal.as_json:
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()
        elif "begins_after" in found:
            terminal.note("facts in between are not kept any more")
        else:
            terminal.say("  ".join(cell for cell in _cells(from_json(FactView, found)) if cell))
            terminal.out.file.flush()


def _cells(fact: FactView) -> tuple[str, ...]:
    because = fact.reason.text
    return text.instant(fact.at), fact.kind.value, fact.table or fact.catalog, fact.task_id or "", because
