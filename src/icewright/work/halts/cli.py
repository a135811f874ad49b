"""``icewright queue ...``: pausing, draining, stopping and resuming what the server does, or a part of it."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from icewright.core.codec import from_json
from icewright.core.errors import Rejected
from icewright.model.work.halts import PartKind
from icewright.terminal import figures as text
from icewright.terminal.cli import FINE, FOUND
from icewright.terminal.invocation import Invocation, Yes, api_command, table_name
from icewright.terminal.tables import headings
from icewright.work.halts.service import HaltView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from icewright.api_client.client import Client
    from icewright.model.iceberg.tables import Json
    from icewright.terminal.cli import Terminal

app = typer.Typer(help="The queue as a whole, or a part of it: pause, drain, stop, resume.")

ASK_AGAIN_S: Final = 1.0
"""How often it is asked how much still runs."""
_EVERYTHING: Final = "all"
_WHAT_RUNS: Final = {
    "pause": "they run to their end, and nothing more starts",
    "drain": "they run to their end, and nothing more starts",
    "stop": "they end before they commit and wait again, and nothing more starts",
}
_HALTS: Final = headings(
    "part", "state", "#running", "since", "by", "because", drop=("by", "since"), below=("because",)
)

All = Annotated[str | None, typer.Argument(metavar="[all]", help="Everything.", show_default=False)]
Group = Annotated[str | None, typer.Option("--group", metavar="GROUP", help="Only tasks of this resource group.")]
Catalog = Annotated[str | None, typer.Option("--catalog", metavar="NAME", help="Only tables of this catalog.")]
Table = Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only this table.")]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why: it is kept, and shown wherever this waits.")]
Timeout = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0, help="How long to wait until nothing runs any more there."),
]


@app.callback(invoke_without_command=True)
@api_command
def show(invocation: Invocation) -> None:
    """Show what of the queue is paused, draining or stopped, and what still runs there."""
    if invocation.context.invoked_subcommand is not None:
        return
    found = invocation.client.queue()
    if invocation.as_json:
        invocation.terminal.document(found)
    else:
        print_halts(invocation.terminal, _views(found), none="nothing is paused")


@app.command()
@api_command
def pause(
    invocation: Invocation,
    everything: All = None,
    *,
    group: Group = None,
    catalog: Catalog = None,
    table: Table = None,
    reason: Why = "",
    yes: Yes = False,
) -> None:
    """Start nothing more. What runs continues to its end; removals and restores stop after the current batch.

    Only shown without --yes; exit status 1 then.
    """
    part = _part_asked(invocation, everything, group, catalog, table, reason)
    _halt(invocation, "pause", part, None, yes=yes)


@app.command()
@api_command
def drain(
    invocation: Invocation,
    everything: All = None,
    *,
    group: Group = None,
    catalog: Catalog = None,
    table: Table = None,
    reason: Why = "",
    yes: Yes = False,
    timeout: Timeout = 600,
) -> None:
    """Pause, and wait until what runs has ended. Exit status 1 when it has not in time; it stays paused then.

    Only shown without --yes; exit status 1 then.
    """
    part = _part_asked(invocation, everything, group, catalog, table, reason)
    _halt(invocation, "drain", part, timeout, yes=yes)


@app.command()
@api_command
def stop(
    invocation: Invocation,
    everything: All = None,
    *,
    group: Group = None,
    catalog: Catalog = None,
    table: Table = None,
    reason: Why = "",
    yes: Yes = False,
    timeout: Timeout = 60,
) -> None:
    """Pause, and end what runs before it commits; it waits again. Exit status 1 when something still runs in the end.

    Only shown without --yes; exit status 1 then.

    Attempts hear of it at their next heartbeat, within 10 seconds. One that does not end is ended with its
    process after its lease and the grace.
    """
    part = _part_asked(invocation, everything, group, catalog, table, reason)
    _halt(invocation, "stop", part, timeout, yes=yes)


@app.command()
@api_command
def resume(
    invocation: Invocation,
    everything: All = None,
    *,
    group: Group = None,
    catalog: Catalog = None,
    table: Table = None,
    reason: Why = "",
) -> None:
    """Resume exactly what was paused, drained or stopped. Other halts stay, and are shown."""
    part = _part_asked(invocation, everything, group, catalog, table, reason)
    terminal = invocation.terminal
    answer = invocation.client.change_queue("resume", part)
    if invocation.as_json:
        terminal.document(answer)
        return
    terminal.say("resumed" if answer["resumed"] else "no halt of its own")
    left = _views(answer)
    if left:
        terminal.say("Still halted:")
        print_halts(terminal, left, none="")


def print_halts(terminal: Terminal, halts: Sequence[HaltView], *, none: str) -> None:
    """Print halts as a table; ``none`` where there are none."""
    terminal.page(halts, None, _HALTS, _cells, none=none)


def say_halts(terminal: Terminal, answer: Json) -> None:
    """Print what of the queue is halted, a line each, as an answer of the server has it."""
    for halt in _views(answer):
        terminal.say(said_of(halt), style="yellow")


def said_of(halt: HaltView) -> str:
    """A halt in one line."""
    why = f": {halt.why}" if halt.why else ""
    running = f", {halt.running:,} still running" if halt.running else ", nothing runs"
    return f"{_part(halt)} is {halt.state} since {text.instant(halt.since)} by {halt.by}{why}{running}"


def _part_asked(
    invocation: Invocation,
    everything: str | None,
    group: str | None,
    catalog: str | None,
    table: str | None,
    reason: str,
) -> Json:
    """The part that is meant, as the API takes it. Raises :class:`Rejected` unless it is exactly one."""
    if everything not in (None, _EVERYTHING):
        raise Rejected(f"{everything!r} is no part of the queue", hint="write all, or --group, --catalog or --table")
    parts = {PartKind.EVERYTHING: everything, PartKind.GROUP: group, PartKind.CATALOG: catalog, PartKind.TABLE: table}
    named = [(kind, name) for kind, name in parts.items() if name is not None]
    if len(named) != 1:
        raise Rejected("say exactly one part of the queue", hint="all, or one of --group, --catalog and --table")
    ((kind, name),) = named
    if kind is PartKind.TABLE:
        name = str(table_name(invocation.config, name))
    return {"part": kind.value, "name": "" if kind is PartKind.EVERYTHING else name, "reason": reason}


def _halt(invocation: Invocation, verb: str, part: Json, timeout_s: float | None, *, yes: bool) -> None:
    terminal = invocation.terminal
    client = invocation.client
    halt = from_json(HaltView, client.change_queue(verb, part if yes else {**part, "preview": True}))
    if timeout_s and yes:
        halt = _waited_for(terminal, client, halt, timeout_s)
    if not yes:
        _show_preview(terminal, verb, halt)
    if terminal.as_json:
        terminal.document(halt)
    else:
        terminal.say(said_of(halt))
        name = _EVERYTHING if halt.name is None else f"--{halt.kind} {shlex.quote(halt.name)}"
        terminal.say(f"Resume it: icewright queue resume {name}")
    raise typer.Exit(FOUND if timeout_s is not None and halt.running else FINE)


def _show_preview(terminal: Terminal, verb: str, halt: HaltView) -> NoReturn:
    """Say what would be halted, and leave with exit status 1."""
    if terminal.as_json:
        terminal.document({"preview": halt})
    else:
        running = text.count(halt.running, "task") + " at work there"
        terminal.say(f"{verb} {_part(halt)}: {running}; {_WHAT_RUNS[verb]}")
        terminal.say("Nothing has been changed yet: add --yes to do this.")
    raise typer.Exit(FOUND)


def _waited_for(terminal: Terminal, client: Client, halt: HaltView, timeout_s: float) -> HaltView:
    """The halt once nothing runs there any more, or somebody ended it, or the time is over."""
    until, said = time.monotonic() + timeout_s, None
    while halt.running and time.monotonic() < until:
        if halt.running != said:
            terminal.note(f"{halt.running:,} still running")
            said = halt.running
        time.sleep(ASK_AGAIN_S)
        found = [one for one in _views(client.queue()) if (one.kind, one.name) == (halt.kind, halt.name)]
        if not found:
            raise Rejected("it was resumed meanwhile", hint="`icewright feed --kind resumed` says who")
        halt = found[0]
    return halt


def _views(answer: Json) -> list[HaltView]:
    return [from_json(HaltView, item) for item in answer.get("halts", ())]


def _part(halt: HaltView) -> str:
    return "everything" if halt.name is None else f"{halt.kind} {halt.name}"


def _cells(halt: HaltView) -> tuple[str, ...]:
    return (_part(halt), halt.state.value, text.number(halt.running), text.instant(halt.since), halt.by, halt.why)
