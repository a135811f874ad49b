"""``icewright undo``: what a task did is taken back, as a plan that is shown first and applied when asked."""

from __future__ import annotations

from typing import Annotated

import typer

from icewright.core.codec import from_json
from icewright.terminal.invocation import AsJson, ShowApi, Yes, begin


def undo(
    context: typer.Context,
    task_id: Annotated[str, typer.Argument(metavar="TASK_ID", help="As `icewright tasks list` shows it.")],
    *,
    yes: Yes = False,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Take back what a task did, never over anything that came since. Only shown without --yes.

    Expiries of snapshots and of data can be undone for 7 days, and removals of files until these are purged. Exit
    status 1 when there is something to do and it was only shown.
    """
    from icewright.maintenance.cli import Planned, print_applied, show_only  # noqa: PLC0415 - see above
    from icewright.maintenance.tasks_cli import read_task  # noqa: PLC0415 - see above
    from icewright.plans.views import PlanView  # noqa: PLC0415 - see above
    from icewright.terminal.connection import server  # noqa: PLC0415 - `--help` stays quick

    terminal = (invocation := begin(context, as_json=as_json)).terminal
    with server(invocation, show_api=show_api) as client:
        view = from_json(PlanView, client.undo(task_id))
        if not yes or not view.can_apply:
            show_only(terminal, Planned(view, from_server=True))
        print_applied(terminal, view, read_task(client.apply(view.plan_id)))
