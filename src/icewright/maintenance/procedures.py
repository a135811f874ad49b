"""Shortcuts with Iceberg's names and options: a plan of one action, shown, and carried out where a person says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.core.codec import from_json
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
from icewright.maintenance.tasks_cli import followed, read_task
from icewright.model.actions.analyze_queries import WEEKS_MAX, AnalyzeQueriesRequest
from icewright.model.actions.compute_statistics import ComputeStatisticsRequest
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.model.actions.rollback import RollbackRequest
from icewright.model.plans.requests import PlanRequest
from icewright.model.queries.decisions import recommendation_of
from icewright.model.queries.recommendations import Verdict
from icewright.model.work.tasks import TaskState
from icewright.plans.views import PlanView
from icewright.terminal import figures as text
from icewright.terminal.cli import FINE, FOUND
from icewright.terminal.invocation import (
    Invocation,
    TableArgument,
    Yes,
    api_command,
    table_name,
)
from icewright.terminal.tables import headings

if TYPE_CHECKING:
    from icewright.footprint.unneeded_views import SeenFileView


@api_command
def expire_snapshots(
    invocation: Invocation,
    table: TableArgument,
    *,
    older_than: OlderThan = None,
    retain_last: RetainLast = None,
    yes: Yes = False,
) -> None:
    """Expire snapshots, in the table's metadata alone: no file is deleted. Only shown without --yes.

    It is a task of the server's. Exit status 1 when there is something to do and it was only shown.
    """
    _shown_or_done(invocation, table, ExpireSnapshotsRequest(older_than, retain_last), yes=yes)


@api_command
def remove_orphan_files(
    invocation: Invocation, table: TableArgument, *, older_than: OlderThan = None, yes: Yes = False
) -> None:
    """Move files that nothing needs into quarantine, those that were seen so for long enough. Only shown without --yes.

    The server looks for them now, which takes as long as listing all of the table's files. `icewright undo` brings
    them back. Exit status 1 when there is something to do and it was only shown.
    """
    _shown_or_done(invocation, table, RemoveOrphanFilesRequest(older_than), yes=yes)


_SEEN: Final = headings(
    "file",
    "#bytes",
    "of no need since",
    "#passes",
    "removable from",
    "in doubt",
    drop=("passes", "of no need since"),
    below=("in doubt",),
)
_SEEN_SHOWN: Final = 50


@api_command
def orphans(
    invocation: Invocation,
    table: TableArgument,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many files to show.")] = _SEEN_SHOWN,
) -> None:
    """Look for orphan files of a table now, and show them with the time from which each may go. Nothing is removed.

    The first pass only remembers what it sees; a file is removed once it was seen for long enough. Exit status 1 when
    something may go by now, or when nothing can: the first line then says what is in the way.
    """
    from icewright.footprint.unneeded_views import UnneededView  # noqa: PLC0415 - see above

    terminal = invocation.terminal
    client = invocation.client
    found = client.table(table_name(invocation.config, table))
    of = found["uuid"], found["catalog"]
    plan = from_json(PlanView, client.plan_asked(*of, RemoveOrphanFilesRequest()))
    view = from_json(UnneededView, client.unneeded(*of, limit))
    if invocation.as_json:
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


@api_command
def compute_statistics(
    invocation: Invocation,
    table: TableArgument,
    *,
    columns: Columns = None,
    snapshot: SnapshotId = None,
    yes: Yes = False,
) -> None:
    """Compute statistics: distinct values of columns, and figures of partitions. Only shown without --yes.

    Exit status 1 when there is something to do and it was only shown.
    """
    asked = ComputeStatisticsRequest(column_names(columns), snapshot)
    _shown_or_done(invocation, table, asked, yes=yes)


@api_command
def recommend(
    invocation: Invocation,
    table: TableArgument,
    *,
    weeks: Annotated[int, typer.Option("--weeks", min=1, max=WEEKS_MAX, help="Of how many weeks the queries are.")] = 8,
) -> None:
    """Try layouts on the queries of a table, and recommend one, or to leave it as it is. Nothing is changed.

    An optimizer reads a sample of its rows; the recommendation is shown when it is there. Exit status 1 when a change
    is recommended.
    """
    from icewright.recommendations.cli import print_recommendation  # noqa: PLC0415 - loaded where it is shown
    from icewright.recommendations.views import RecommendationView  # noqa: PLC0415 - as above

    client, terminal = invocation.client, invocation.terminal
    planned = plan_of(invocation, table, AnalyzeQueriesRequest(weeks))
    if not planned.view.can_apply:
        show_only(terminal, planned)
    task = read_task(client.apply(planned.view.plan_id))
    ended = followed(terminal, client, task.task_id)
    if ended.task.state is not TaskState.SUCCEEDED:
        raise typer.Exit(FOUND)
    found = from_json(RecommendationView, client.recommendation(recommendation_of(task.task_id)))
    invocation.print_answer(found, print_recommendation)
    raise typer.Exit(FOUND if found.recommendation.verdict is Verdict.CHANGE else FINE)


@api_command
def rollback(
    invocation: Invocation,
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
) -> None:
    """Set a table back to an earlier snapshot; says first what would be lost. Only shown without --yes.

    Nothing is deleted. Exit status 1 when there is something to do and it was only shown.
    """
    if (to_snapshot is None) == (to_time is None):
        raise Rejected("either --to-snapshot or --to-time says where to", hint="icewright table snapshots lists them")
    _shown_or_done(invocation, table, RollbackRequest(to_snapshot, to_time), yes=yes)


def _shown_or_done(invocation: Invocation, table: str, asked: PlanRequest, *, yes: bool) -> None:
    """Plan what is asked for; carry it out where the person said so beforehand."""
    planned = plan_of(invocation, table, asked)
    if not yes or not planned.view.can_apply:
        show_only(invocation.terminal, planned)
    print_applied(invocation.terminal, planned.view, read_task(invocation.client.apply(planned.view.plan_id)))
