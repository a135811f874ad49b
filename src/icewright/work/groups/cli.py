"""``icewright groups ...``: resource groups as they stand: caps, what is held of them, what waits, what keeps it."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.model.work.optimizers import SeenSubmitter
from icewright.policy.groups.precedence import optimizers_said
from icewright.terminal import figures as text
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import Cursor, Invocation, Limit, api_command
from icewright.terminal.tables import headings
from icewright.work.groups.views import GroupDocument, GroupView
from icewright.work.halts.cli import said_of

app = typer.Typer(help="Resource groups: list, show.", no_args_is_help=True)

_GROUPS: Final = headings(
    "group",
    "from",
    "#running",
    "#cores",
    "#memory",
    "#applications",
    "#waiting",
    "#optimizers",
    "#submitters",
    "takes no task because",
    drop=("submitters", "from", "applications", "memory", "cores"),
    below=("takes no task because",),
)
_LANES: Final = headings("queue", "urgency", "owner", "#waiting", "#aged")
_USES: Final = headings("application", "queue", "owner", "#tasks", "#cores", "#memory")
_NO_CAP: Final = "no cap"


@app.command("list")
@api_command
def list_groups(invocation: Invocation, *, limit: Limit = 100, cursor: Cursor = None) -> None:
    """List resource groups: what is held of each, of how much, how many tasks wait, and why none starts."""
    page = invocation.client.groups(limit=limit, cursor=cursor)
    invocation.print_page(page, GroupView, _GROUPS, group_cells, none="no groups")


@app.command()
@api_command
def show(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(metavar="GROUP", help="As `icewright groups list` shows it.")],
) -> None:
    """Show one resource group: its caps and windows, who holds what of it, and what waits in each lane."""
    found = from_json(GroupDocument, invocation.client.group(name))
    invocation.print_answer(found, print_group)


def print_group(terminal: Terminal, found: GroupDocument) -> None:
    """Print what a group is and holds, then what keeps it, who holds what, and what waits."""
    group, held, defined = found.group, found.group.held, found.group.definition
    windows = () if defined is None else defined.windows
    rows = [
        ("group", group.name),
        ("from", _origin(group)),
        ("running tasks", _of(held.tasks, None if defined is None else defined.tasks_max)),
        ("cores", _of(held.cores, None if defined is None else defined.cores)),
        ("memory", _memory(group)),
        ("applications", _of(held.applications, None if defined is None else defined.applications_max)),
        ("optimizers at work", _of(held.optimizers, None if defined is None else defined.optimizers_max)),
        ("optimizers heard of", text.number(group.optimizers)),
        *(("submitter", submitter_said(one)) for one in group.submitters),
        ("large queue", "" if defined is None else f"{defined.large_share:.0%} of each cap"),
        ("autotuned to", "" if defined is None else optimizers_said(defined)),
        *(("window", f"{one.cron} {one.time_zone} for {text.about(one.duration_ms)}") for one in windows),
        ("waiting", text.number(group.waiting)),
    ]
    terminal.pairs(rows)
    if group.refused is not None:
        until = "" if group.refused_until is None else f", until {text.instant(group.refused_until)}"
        terminal.say(f"It takes no task: {group.refused.text}{until}.", style="yellow")
    for halt in group.halts:
        terminal.say(said_of(halt), style="yellow")
    for caps in () if defined is None else defined.tenants:
        cores, memory = caps.cores, caps.memory_bytes
        said = [f"{caps.tasks_max:,} tasks"] if caps.tasks_max is not None else []
        said += [f"{cores:,} cores"] if cores is not None else []
        said += [text.size(memory)] if memory is not None else []
        terminal.say(f"owner {caps.tenant}: at most {', '.join(said) or 'what the group has'}")
    if found.uses:
        terminal.say()
        terminal.say("Held", style="bold")
        terminal.table(
            _USES,
            [
                (
                    use.optimizer_id,
                    use.queue.value,
                    use.tenant or "-",
                    text.number(use.tasks),
                    text.number(use.cores),
                    text.size(use.memory_bytes),
                )
                for use in found.uses
            ],
        )
    if found.lanes:
        terminal.say()
        terminal.say("Waiting", style="bold")
        terminal.table(
            _LANES,
            [
                (
                    one.lane.queue.value,
                    one.lane.urgency.value,
                    one.lane.tenant or "-",
                    text.number(one.waiting),
                    text.number(one.aged),
                )
                for one in found.lanes
            ],
        )
    if found.lanes_left_out:
        terminal.aside(f"and {found.lanes_left_out:,} lanes more, with fewer tasks each")


def group_cells(group: GroupView) -> tuple[str, ...]:
    """A group as a row."""
    held, defined = group.held, group.definition
    halted = [f"{one.state.value} since {text.instant(one.since)}" for one in group.halts]
    refused = [] if group.refused is None else [group.refused.text]
    return (
        group.name,
        _origin(group),
        _of(held.tasks, None if defined is None else defined.tasks_max),
        _of(held.cores, None if defined is None else defined.cores),
        _memory(group),
        _of(held.applications, None if defined is None else defined.applications_max),
        text.number(group.waiting),
        text.number(group.optimizers),
        text.number(len(group.submitters)),
        "; ".join([*halted, *refused]),
    )


def submitter_said(seen: SeenSubmitter) -> str:
    """Who it is, where it runs, how many applications it has, and when it asked last."""
    one = seen.submitter.submitting
    running = f"{one.applications:,} of at most {one.applications_max:,} applications"
    return f"{one.submitter_id} on {one.host}: {running}, asked {text.instant(seen.asked_at)}"


def _origin(group: GroupView) -> str:
    return group.origin.value + ("" if group.revision is None else f", revision {group.revision}")


def _of(held: int, cap: int | None) -> str:
    return f"{held:,} of {_NO_CAP if cap is None else f'{cap:,}'}"


def _memory(group: GroupView) -> str:
    cap = None if group.definition is None else group.definition.memory_bytes
    return f"{text.size(group.held.memory_bytes)} of {_NO_CAP if cap is None else text.size(cap)}"
