"""``icewright feed``: what happened, and what happens, as the server tells it."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from icewright.core.codec import from_json
from icewright.model.events.feed import FactKind
from icewright.terminal import figures as text
from icewright.terminal.cli import Column, Terminal
from icewright.terminal.invocation import AsJson, Cursor, Limit, ShowApi, begin
from icewright.terminal.lists import print_page

if TYPE_CHECKING:
    from icewright.api_client.client import Client
    from icewright.api_client.connection import Page
    from icewright.feed.views import FactView

_FACTS = (Column("when"), Column("what"), Column("table"), Column("task"), Column("because"))


def feed(
    context: typer.Context,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens, until Ctrl-C.")] = False,
    kind: Annotated[list[FactKind] | None, typer.Option("--kind", help="Only facts of this kind; repeatable.")] = None,
    under: Annotated[
        list[str] | None,
        typer.Option("--under", metavar="NAME", help="Only of this catalog, namespace or table; repeatable."),
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Show what happened, oldest first: tasks queued, done and failed, tables parked, plans that wait.

    With --follow, what happens from now on; with --json besides, one document a line.
    """
    from icewright.feed.views import FactView  # noqa: PLC0415 - see above
    from icewright.terminal.connection import server  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=as_json)
    kinds, places = [one.value for one in kind or ()], under or []
    if follow:
        with server(invocation, show_api=show_api) as client, suppress(KeyboardInterrupt):
            _follow(invocation.terminal, client, kinds, places)
        return

    def ask(client: Client) -> Page:
        return client.feed(kinds=kinds, under=places, limit=limit, cursor=cursor)

    print_page(invocation, ask, FactView, _FACTS, _cells, none="no facts yet", show_api=show_api)


def _follow(terminal: Terminal, client: Client, kinds: list[str], under: list[str]) -> None:
    from icewright.feed.views import FactView  # noqa: PLC0415 - `--help` stays quick

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
