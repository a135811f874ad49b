"""Shortcuts with Iceberg's names and options: a plan of one action, shown, and carried out where a person says so."""

from __future__ import annotations

from typing import Annotated

import typer

from icewright.cli.invocation import AsJson, Invocation, ShowApi, TableArgument, Yes, begin
from icewright.cli.plans import (
    Columns,
    OlderThan,
    RetainLast,
    SnapshotId,
    column_names,
    plan_of,
    print_applied,
    show_only,
)
from icewright.domain.asked import (
    Asked,
    AskedComputeStatistics,
    AskedExpireSnapshots,
    AskedRemoveOrphanFiles,
    AskedRollback,
)
from icewright.domain.errors import Rejected


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
    _shown_or_done(begin(context, as_json=as_json), table, AskedExpireSnapshots(older_than, retain_last), yes, show_api)


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
    _shown_or_done(begin(context, as_json=as_json), table, AskedRemoveOrphanFiles(older_than), yes, show_api)


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
    asked = AskedComputeStatistics(column_names(columns), snapshot)
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
    _shown_or_done(invocation, table, AskedRollback(to_snapshot, to_time), yes, show_api)


def _shown_or_done(invocation: Invocation, table: str, asked: Asked, yes: bool, show_api: bool) -> None:  # noqa: FBT001 - both are the caller's own options
    """Plan what is asked for; carry it out where the person said so beforehand."""
    from icewright.cli.connection import server  # noqa: PLC0415 - `--help` stays quick
    from icewright.cli.tasks import read_task  # noqa: PLC0415 - see above

    planned = plan_of(invocation, table, asked, show_api=show_api)
    if not yes or not planned.view.can_apply:
        show_only(invocation.terminal, planned)
    with server(invocation, show_api=show_api) as client:
        print_applied(invocation.terminal, planned.view, read_task(client.apply(planned.view.plan_id)))
