"""``icewright table observation``: what the server saw of a table when it looked at it last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from icewright.core.codec import from_json
from icewright.terminal import figures as text
from icewright.terminal.cli import Column, Terminal
from icewright.terminal.invocation import AsJson, ShowApi, TableArgument, begin

if TYPE_CHECKING:
    from icewright.tables.api_views import ObservationView

_CONSIDERED: Final = (Column("action"), Column("looked into"), Column("because"))
_SEEN: Final = (Column("by"), Column("snapshots up to sequence number", is_number=True))
_MARKS_SHOWN: Final = 10


def observation(
    context: typer.Context, table: TableArgument, *, as_json: AsJson = False, show_api: ShowApi = False
) -> None:
    """Show what the server saw of a table at its last look; of looks before it, only when it first saw snapshots."""
    from icewright.tables.api_views import ObservationView  # noqa: PLC0415 - `--help` stays quick
    from icewright.terminal.connection import server  # noqa: PLC0415 - see above
    from icewright.terminal.invocation import table_name  # noqa: PLC0415 - see above

    invocation = begin(context, as_json=as_json)
    with server(invocation, show_api=show_api) as client:
        known = client.table(table_name(invocation.config, table))
        (found,) = client.observations(known["uuid"], known["catalog"]).items
    view = from_json(ObservationView, found)
    if as_json:
        invocation.terminal.document(view)
    else:
        print_observation(invocation.terminal, view)


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
    for reason in view.unfit:
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
