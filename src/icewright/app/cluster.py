"""``icewright cluster``: which server looks at which tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icewright.core.servers import LinkState
from icewright.terminal import figures as text
from icewright.terminal.invocation import Invocation, api_command
from icewright.terminal.tables import headings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from icewright.model.iceberg.tables import Json
    from icewright.terminal.cli import Terminal

_SERVERS: Final = headings(
    "server", "part", "#buckets", "#tables", "#coming", "#cpu", "seen", "url", drop=("coming",), below=("url",)
)

_NOT_LISTED: Final = "icewright discovers no tables in a catalog that the leader lacks: configure it there"
"""Of catalogs: the leader alone lists them."""


@api_command
def cluster(invocation: Invocation) -> None:
    """Say which server looks at which tables. With --json also each bucket, its owner, and why it moved."""
    invocation.print_answer(invocation.client.cluster(), _print)


def _print(terminal: Terminal, answer: Json) -> None:
    if not answer["servers"]:
        terminal.say("one server looks at all tables")
        return
    terminal.table(_SERVERS, [_row(server) for server in answer["servers"]])
    for server in answer["servers"]:
        if server["differs"]:
            terminal.say(f"{server['server_id']}: {differs_said(server['differs'])}", style="yellow")
    coordinator = answer["coordinator"]
    if coordinator is not None and coordinator["since"] is not None:
        is_connected = coordinator["state"] == LinkState.CONNECTED
        since = text.instant(coordinator["since"])
        said = "" if is_connected else ": no bucket is assigned until it is connected"
        style = "" if is_connected else "yellow"
        terminal.say(f"{coordinator['coordinator']} {coordinator['state']} since {since}{said}", style=style)
    without = sum(bucket["server_id"] is None for bucket in answer["buckets"])
    if without:
        terminal.say(f"{text.count(without, 'bucket')} without a server, for a moment", style="yellow")


def differs_said(sections: Sequence[str]) -> str:
    """What is said of a server whose configuration differs from the leader's in these sections."""
    said = f"its configuration differs from the leader's in {', '.join(sections)}"
    return f"{said}; {_NOT_LISTED}" if "catalogs" in sections else said


def _row(server: Json) -> tuple[str, ...]:
    part = "leads" if server["leads"] else "follows"
    if server["session"] is None:
        part = f"{part}, looks at no tables"
    seen = "" if server["seen_at"] is None else text.instant(server["seen_at"])
    numbers = (f"{server[name]:,}" for name in ("buckets", "tables", "coming"))
    cpu = "" if server["cpu"] is None else f"{server['cpu']:.0%}"
    return server["server_id"], part, *numbers, cpu, seen, server["url"]
