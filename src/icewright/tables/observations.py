"""``icewright table observation``: what the server saw of a table when it looked at it last."""

from __future__ import annotations

from typing import Final

from icewright.core.codec import from_json
from icewright.tables.api_views import ObservationView
from icewright.terminal import figures as text
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import (
    Invocation,
    TableArgument,
    api_command,
    table_name,
)
from icewright.terminal.tables import headings

_CONSIDERED: Final = headings("action", "looked into", "because", below=("because",))
_SEEN: Final = headings("by", "#snapshots up to sequence number")
_MARKS_SHOWN: Final = 10


@api_command
def observation(invocation: Invocation, table: TableArgument) -> None:
    """Show what the server saw of a table at its last look; of looks before it, only when it first saw snapshots."""
    client = invocation.client
    known = client.table(table_name(invocation.config, table))
    (found,) = client.observations(known["uuid"], known["catalog"]).items
    view = from_json(ObservationView, found)
    invocation.print_answer(view, print_observation)


def print_observation(terminal: Terminal, view: ObservationView) -> None:
    """Print what is known as of that look; of the marks the latest ones."""
    figures, interval = view.figures, view.commit_interval_ms
    terminal.pairs(
        [
            ("table", view.table),
            ("observed", text.instant(view.observed_at)),
            ("changed", text.instant(view.changed_at)),
            ("next look", text.instant(view.next_look_at)),
            ("snapshot", str(view.snapshot_id or "none yet")),
            ("metadata", view.metadata_location),
            ("format version", str(view.format_version)),
            ("manifests", text.number(view.manifests)),
            (
                "files",
                "" if figures is None else f"{text.number(figures.data_files)} ({text.size(figures.size_bytes)})",
            ),
            ("rows", "" if figures is None else text.number(figures.records)),
            ("commits every", "" if interval is None else text.about(interval)),
            ("storage", view.storage_root or ""),
            ("workers reach it", view.worker_access.value),
            ("problem", "" if view.problem is None else view.problem.text),
        ]
    )
    for reason in view.exclusions:
        terminal.say(f"{reason.code}: {reason.text}")
    if view.considered:
        terminal.say()
        terminal.say("Considered", style="bold")
        rows = [(one.kind.value, text.instant(one.at), one.reason.text) for one in view.considered]
        terminal.table(_CONSIDERED, rows)
    if view.first_seen:
        terminal.say()
        terminal.say("Seen first", style="bold")
        latest = view.first_seen[-_MARKS_SHOWN:]
        terminal.table(_SEEN, [(text.instant(mark.at), str(mark.sequence_number)) for mark in latest])
