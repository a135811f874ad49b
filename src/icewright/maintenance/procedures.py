"""Shortcuts with Iceberg's names and options: a plan of one action, shown, and carried out where a person says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.core.errors import Rejected
from icewright.maintenance.cli import (
    Columns,
    OlderThan,
    RetainLast,
    SnapshotId,
    column_names,
    plan_of,
    print_applied,
    show_only,
)
from icewright.model.actions.compute_statistics import ComputeStatisticsRequest
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.remove_orphan_files import RemoveOrphanFilesRequest
from icewright.model.actions.rollback import RollbackRequest
from icewright.model.plans.requests import PlanRequest
from icewright.terminal import figures as text
from icewright.terminal.cli import FINE, FOUND, Column
from icewright.terminal.invocation import AsJson, Invocation, ShowApi, TableArgument, Yes, begin

if TYPE_CHECKING:
    from icewright.footprint.unneeded_views import SeenFileView


def expire_snapshots(
    context: typer.Context,
    table: TableArgument,
    *,
    older_than: OlderThan = None,
    retain_last: RetainLast = None,
    yes: Yes = False,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Expire snapshots, in the table's metadata alone: no file is deleted. Only shown without --yes.

    It is a task of the server's. Exit status 1 when there is something to do and it was only shown.
    """
    _shown_or_done(
        begin(context, as_json=as_json), table, ExpireSnapshotsRequest(older_than, retain_last), yes, show_api
    )


def remove_orphan_files(
    context: typer.Context,
    table: TableArgument,
    *,
    older_than: OlderThan = None,
    yes: Yes = False,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Move files that nothing needs into quarantine, those that were seen so for long enough. Only shown without --yes.

    The server looks for them now, which takes as long as listing all of the table's files. `icewright undo` brings
    them back. Exit status 1 when there is something to do and it was only shown.
    """
    _shown_or_done(begin(context, as_json=as_json), table, RemoveOrphanFilesRequest(older_than), yes, show_api)


_SEEN: Final = (
    Column("file"),
    Column("bytes", is_number=True),
    Column("of no need since"),
    Column("passes", is_number=True),
    Column("removable from"),
    Column("in doubt"),
)
_SEEN_SHOWN: Final = 50


def orphans(
    context: typer.Context,
    table: TableArgument,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many files to show.")] = _SEEN_SHOWN,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Look for orphan files of a table now, and show them with the time from which each may go. Nothing is removed.

    The first pass only remembers what it sees; a file is removed once it was seen for long enough. Exit status 1 when
    something may go by now, or when nothing can: the first line then says what is in the way.
    """
    from icewright.core.codec import from_json  # noqa: PLC0415 - see above
    from icewright.footprint.unneeded_views import UnneededView  # noqa: PLC0415 - see above
    from icewright.plans.views import PlanView  # noqa: PLC0415 - see above
    from icewright.terminal.connection import server  # noqa: PLC0415 - `--help` stays quick
    from icewright.terminal.invocation import table_name  # noqa: PLC0415 - see above

    invocation = begin(context, as_json=as_json)
    terminal = invocation.terminal
    with server(invocation, show_api=show_api) as client:
        found = client.table(table_name(invocation.config, table))
        of = found["uuid"], found["catalog"]
        plan = from_json(PlanView, client.plan_asked(*of, RemoveOrphanFilesRequest()))
        view = from_json(UnneededView, client.unneeded(*of, limit))
    if as_json:
        terminal.document({"plan": plan, "unneeded": view})
        raise typer.Exit(FOUND if plan.can_apply or plan.is_blocked else FINE)
    terminal.say(plan.reason.text)
    for rule in plan.rules:
        terminal.say(f"  {rule.text}")
    seen = () if view.orphans is None else view.orphans.first_files
    if seen:
        terminal.say()
        terminal.table(_SEEN, [_seen_cells(one) for one in seen])
    if plan.can_apply:
        verb = "apply" if plan.to_approve is None else "approve"
        terminal.say()
        terminal.say(f"Next: icewright approve {plan.plan_id} --show, then icewright {verb} {plan.plan_id}")
    elif times := [one.may_go_from for one in seen if one.may_go_from is not None]:
        terminal.say()
        terminal.say(f"Next: icewright orphans {table}, from {text.instant(min(times))} on")
    raise typer.Exit(FOUND if plan.can_apply or plan.is_blocked else FINE)


def _seen_cells(one: SeenFileView) -> tuple[str, ...]:
    since, until = text.instant(one.first_seen_at), text.instant(one.may_go_from)
    return one.path, text.size(one.size_bytes), since, str(one.passes), until, one.doubt.value if one.doubt else ""


def compute_statistics(
    context: typer.Context,
    table: TableArgument,
    *,
    columns: Columns = None,
    snapshot: SnapshotId = None,
    yes: Yes = False,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Compute statistics: distinct values of columns, and figures of partitions. Only shown without --yes.

    Exit status 1 when there is something to do and it was only shown.
    """
    asked = ComputeStatisticsRequest(column_names(columns), snapshot)
    _shown_or_done(begin(context, as_json=as_json), table, asked, yes, show_api)


def rollback(
    context: typer.Context,
    table: TableArgument,
    *,
    to_snapshot: Annotated[
        int | None,
        typer.Option("--to-snapshot", metavar="N", min=0, max=2**63 - 1, help="An ancestor of the current snapshot."),
    ] = None,
    to_time: Annotated[
        str | None,
        typer.Option(
            "--to-time", metavar="T", help="The latest commit before an instant with its zone (2026-11-22T10:00:00Z)."
        ),
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Set a table back to an earlier snapshot; says first what would be lost. Only shown without --yes.

    Nothing is deleted. Exit status 1 when there is something to do and it was only shown.
    """
    invocation = begin(context, as_json=as_json)
    if (to_snapshot is None) == (to_time is None):
        raise Rejected("either --to-snapshot or --to-time says where to", hint="icewright table snapshots lists them")
    _shown_or_done(invocation, table, RollbackRequest(to_snapshot, to_time), yes, show_api)


def _shown_or_done(invocation: Invocation, table: str, asked: PlanRequest, yes: bool, show_api: bool) -> None:  # noqa: FBT001 - both are the caller's own options
    """Plan what is asked for; carry it out where the person said so beforehand."""
    from icewright.maintenance.tasks_cli import read_task  # noqa: PLC0415 - see above
    from icewright.terminal.connection import server  # noqa: PLC0415 - `--help` stays quick

    planned = plan_of(invocation, table, asked, show_api=show_api)
    if not yes or not planned.view.can_apply:
        show_only(invocation.terminal, planned)
    with server(invocation, show_api=show_api) as client:
        print_applied(invocation.terminal, planned.view, read_task(client.apply(planned.view.plan_id)))
