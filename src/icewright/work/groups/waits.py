"""What a queued task waits for, and about when it starts, as the command line says it of one task."""

from __future__ import annotations

from collections.abc import Sequence

from icewright.model.work.why import StartEstimate, Wait
from icewright.terminal import figures as text
from icewright.terminal.cli import Terminal


def say_waits(terminal: Terminal, waits: Sequence[Wait], start: StartEstimate | None) -> None:
    """A line for each wait, and one for the start; nothing of a task that is not queued."""
    for wait in waits:
        until = "" if wait.until is None else f", until {text.instant(wait.until)}"
        terminal.say(f"Waits: {wait.reason.text}{until}.")
    if start is not None:
        is_said = any(wait.reason == start.reason for wait in waits)
        terminal.say(f"Starts: {_when(start)}" + ("." if is_said else f": {start.reason.text}."))


def _when(start: StartEstimate) -> str:
    if start.at is not None:
        return f"about {text.instant(start.at)}, by an estimate"
    soonest = "" if start.soonest_at is None else f", not before {text.instant(start.soonest_at)}"
    return f"it is not known when{soonest}"
