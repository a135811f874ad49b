"""``icewright autotune``: decisions about optimizers, their memory, and servers: list, show, hold, release."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.terminal import figures as text
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import Cursor, Invocation, Limit, api_command
from icewright.terminal.tables import headings
from icewright.work.autotune.model import About, Move
from icewright.work.autotune.views import DecisionView

app = typer.Typer(
    help="Decisions about optimizers, their memory, and servers: list, show, hold, release.", no_args_is_help=True
)

_LIST: Final = headings(
    "decision", "group", "queue", "what", "state", "made", "because", drop=("made", "queue"), below=("because",)
)
_MOVES: Final = {
    Move.START: "start an optimizer",
    Move.END: "end an optimizer",
    Move.MORE_MEMORY: "more memory",
    Move.LESS_MEMORY: "less memory",
    Move.ADD_SERVER: "add a server",
    Move.REMOVE_SERVER: "remove a server",
}

DecisionArgument = Annotated[str, typer.Argument(metavar="ID", help="As `icewright autotune list` shows it.")]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason. It is kept in the audit.")]


@app.command("list")
@api_command
def list_decisions(
    invocation: Invocation,
    *,
    only_standing: Annotated[bool, typer.Option("--standing", help="Only those that stand, or are held.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List decisions, the newest first."""
    page = invocation.client.decisions(only_standing=only_standing, limit=limit, cursor=cursor)
    invocation.print_page(page, DecisionView, _LIST, _cells, none="no decisions")


@app.command()
@api_command
def show(invocation: Invocation, decision_id: DecisionArgument) -> None:
    """Show a decision: what changes, why, how to do it by hand, and what became of it."""
    found = from_json(DecisionView, invocation.client.decision(decision_id))
    invocation.print_answer(found, print_decision)


@app.command()
@api_command
def hold(invocation: Invocation, decision_id: DecisionArgument, *, why: Why = "") -> None:
    """Keep a decision, and later ones about the same, from being carried out."""
    _changed(invocation, "hold", decision_id, why)


@app.command()
@api_command
def release(invocation: Invocation, decision_id: DecisionArgument, *, why: Why = "") -> None:
    """End a hold. A decision that still stands is carried out if its reason has not gone."""
    _changed(invocation, "release", decision_id, why)


def print_decision(terminal: Terminal, found: DecisionView) -> None:
    """Print a decision in full."""
    rows = [
        ("decision", found.decision_id),
        *([] if found.group is None else [("group", found.group)]),
        *([] if found.queue is None else [("queue", found.queue.value)]),
        ("what", _what(found)),
        ("state", _state(found)),
        ("made", f"{text.instant(found.made_at)}, in mode {found.mode}"),
        *([] if found.optimizer_id is None else [("optimizer", found.optimizer_id)]),
        ("because", found.reason.text),
        *((key, str(value)) for key, value in sorted(found.reason.figures.items())),
        ("by hand", found.by_hand),
    ]
    if found.effect is not None and found.ended_at is not None:
        rows.append(("effect", f"{text.instant(found.ended_at)}: {found.effect.text}"))
    if found.hold is not None:
        why = f": {found.hold.why}" if found.hold.why else ""
        rows.append(("held", f"since {text.instant(found.hold.at)} by {found.hold.by}{why}"))
    terminal.pairs(rows)


def _changed(invocation: Invocation, verb: str, decision_id: str, why: str) -> None:
    found = from_json(DecisionView, invocation.client.change_decision(verb, decision_id, why))
    said = "held: nothing changes there until it is released" if verb == "hold" else f"released; it is {found.state}"
    of = "" if found.group is None else f", group {found.group}"
    invocation.print_answer(found, f"{found.decision_id} ({_what(found)}{of}) is {said}")


def _cells(found: DecisionView) -> tuple[str, ...]:
    return (
        found.decision_id,
        found.group or "",
        found.queue or "",
        _what(found),
        _state(found),
        text.instant(found.made_at),
        found.reason.text,
    )


def _state(found: DecisionView) -> str:
    return found.state.value if found.hold is None else f"{found.state}, held"


def _what(found: DecisionView) -> str:
    if found.about is About.MEMORY:
        return f"{_MOVES[found.move]}: {text.size(found.before)} to {text.size(found.after)}"
    return f"{_MOVES[found.move]}: {found.before:,} to {found.after:,}"
