"""``icewright why``: what keeps work from being done to a table, from the server that would do it."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.core.errors import Unreadable
from icewright.model.iceberg.names import TableName
from icewright.model.work.why import Stance, Why
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import (
    Invocation,
    TableArgument,
    api_command,
    table_name,
)

_STYLES: Final = {
    Stance.UNDER_WAY: "bold cyan",
    Stance.QUEUED: "bold cyan",
    Stance.FOR_A_PERSON: "bold yellow",
    Stance.KEPT_BACK: "bold yellow",
    Stance.NOTHING_TO_DO: "bold green",
    Stance.OFF: "dim",
    Stance.NOT_KNOWN: "bold",
}


@api_command
def why(
    invocation: Invocation,
    table: TableArgument,
    *,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also every rule, and what the plan says of each partition.")
    ] = False,
) -> None:
    """Say why something happens to a table, or nothing: what was considered, what waits for what, what is next.

    Asks the server and changes nothing. Exit status 0 for any answer.
    """
    name = table_name(invocation.config, table)
    client = invocation.client
    try:
        summary = client.table(name)
    except Unreadable as error:
        _print_unreadable(invocation.terminal, name, error)
        return
    found = from_json(Why, client.why(summary["uuid"], summary["catalog"]))
    if invocation.as_json:
        invocation.terminal.document(found)
    else:
        print_why(invocation.terminal, found, verbose=verbose or invocation.terminal.verbose)


def _print_unreadable(terminal: Terminal, name: TableName, error: Unreadable) -> None:
    """The answer of a table of which nothing else is known."""
    if terminal.as_json:
        terminal.document({"table": str(name), "answer": error.message, "hint": error.hint})
    else:
        terminal.prose(error.message, style="bold")
        terminal.prose(f"Next: {error.hint}.")


def print_why(terminal: Terminal, found: Why, *, verbose: bool = False) -> None:
    """The answer first, then what holds for all of the table, then each kind of action."""
    terminal.prose(f"{found.table}: {found.answer}", style="bold")
    for line in found.says:
        terminal.prose(line)
    shown = [each for each in found.kinds if each.stance is not Stance.OFF]
    for (stance, says), alike in groupby(shown, key=lambda each: (each.stance, each.says)):
        kinds = list(alike)
        terminal.say()
        names = ", ".join(each.kind.value for each in kinds)
        terminal.say(f"{names}: {stance.value.replace('-', ' ')}", style=_STYLES[stance])
        for line in says:
            terminal.prose(line, indent=2)
        for detail in (detail for each in kinds for detail in each.details if verbose):
            terminal.prose(f"- {detail.text}", indent=2, style="dim")
    off = [each.kind.value for each in found.kinds if each.stance is Stance.OFF]
    if off:
        terminal.say()
        terminal.prose(f"Disabled by policy: {', '.join(off)}.", style=_STYLES[Stance.OFF])
