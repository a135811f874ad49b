"""``icewright approve``, ``refuse`` and ``approvals``: plans that wait for a person, and what people decided."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.api_client.paging import pages
from icewright.approvals.views import ApprovalView
from icewright.core import wording
from icewright.core.codec import from_json
from icewright.core.errors import Conflict, NotAllowed, NotFound, Rejected
from icewright.maintenance.cli import print_waiting_plan
from icewright.maintenance.tasks_cli import Waiting, print_and_follow, print_queued, read_task
from icewright.model.iceberg.names import split_parts
from icewright.plans.views import PlannedFileView, PlanView, RefusalView, WaitingView
from icewright.terminal import figures as text
from icewright.terminal.cli import FINE, FOUND, Terminal
from icewright.terminal.invocation import (
    Cursor,
    Invocation,
    Limit,
    api_command,
    logged_in,
    table_name,
)
from icewright.terminal.tables import headings

if TYPE_CHECKING:
    from icewright.api_client.client import Client

app = typer.Typer(help="What people approved: list.", no_args_is_help=True)

_WAITING: Final = headings("plan", "table", "action", "since", "because", drop=("since",), below=("because", "table"))
_FILES: Final = headings(
    "file", "#bytes", "written", "of no need since", "in doubt", drop=("written",), below=("in doubt",)
)
_GIVEN: Final = headings(
    "plan", "table", "action", "approved", "by", "because", drop=("approved", "by"), below=("because", "table")
)
_PAGE: Final = 100
_FILES_SHOWN: Final = 20
_ONE_BY_ONE: Final = frozenset({"beyond-budget", "taken-back", "doubtful-files"})
"""Why plans wait that nobody approves together with others: each is a reason to look at that very plan."""


class Kind(StrEnum):
    """What may wait for a person, as ``icewright plan --action`` says it."""

    EXPIRE_SNAPSHOTS = "expire-snapshots"
    EXPIRE_DATA = "expire-data"
    REMOVE_ORPHAN_FILES = "remove-orphan-files"
    REMOVE_EXPIRED_FILES = "remove-expired-files"
    REWRITE_DATA_FILES = "rewrite-data-files"


@api_command
def approve(
    invocation: Invocation,
    plan_id: Annotated[
        str | None, typer.Argument(metavar="[PLAN_ID]", help="The plan; else those of --namespace.")
    ] = None,
    *,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", metavar="NS", help="All plans that wait for tables of catalog.namespace."),
    ] = None,
    action: Annotated[Kind | None, typer.Option("--action", help="Only plans of this kind.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Show the plan and its files, and approve nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Approve those of --namespace; else they are listed.")] = False,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who approves; else who is logged in.")] = None,
    wait: Waiting = False,
) -> None:
    """Approve plans that wait for a person: exactly these are queued. Alone, list what waits.

    In mode approve each plan of a table waits so; in mode auto, what is beyond a budget or happens for the first time.
    `icewright apply` runs a plan that waits for no approval. Look at each first, with --show. A plan by its id is
    approved at once, those of a namespace with --yes: all that wait by then, but for those beyond a budget, those with
    files in doubt, and those of what was taken back, which are approved by their ids alone. Exit status 1 when
    something waits and nothing was approved.
    """
    if plan_id is not None and (namespace is not None or action is not None):
        said = "a namespace" if action is None else "a kind"
        raise Rejected(f"approve one plan by its id, or those of {said}", hint="leave one of the two out")
    if wait and (plan_id is None or show):
        raise Rejected("--wait is for one plan that is approved by its id", hint="icewright approve PLAN_ID --wait")
    terminal = invocation.terminal
    client = invocation.client
    if plan_id is not None and show:
        _show(terminal, client, plan_id)
        return
    if plan_id is not None and wait:
        print_and_follow(terminal, client, read_task(client.approve(plan_id, by or logged_in())))
    if plan_id is not None:
        _approve(terminal, client, [plan_id], by or logged_in())
        return
    waiting = [one for one in _waiting(client) if _is_meant(one, namespace, action)]
    if namespace is not None and yes and waiting:
        _approve_together(terminal, client, waiting, by)
        return
    if invocation.as_json:
        terminal.documents(waiting)
    elif waiting:
        terminal.table(_WAITING, [_cells(one) for one in waiting])
        terminal.say()
        terminal.say("Next: icewright approve PLAN_ID, or --namespace NS --action KIND --yes")
    else:
        terminal.say("no plan waits for approval")
    raise typer.Exit(FOUND if waiting else FINE)


@api_command
def refuse(
    invocation: Invocation,
    plan_id: Annotated[str, typer.Argument(metavar="PLAN_ID", help="The plan; `icewright approve` lists what waits.")],
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for those who read it later.")],
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who refuses; else who is logged in.")] = None,
) -> None:
    """Refuse a plan that waits for a person: exactly this one is never run.

    No plan of that kind waits again until the table's policy changes, for a plan for data files until the table does,
    and for a week at most. `icewright why` says who refused it and why.
    """
    terminal = invocation.terminal
    refusal = from_json(RefusalView, invocation.client.refuse(plan_id, reason, by or logged_in()))
    if terminal.as_json:
        terminal.document(refusal)
        return
    terminal.say(f"{refusal.table}: {refusal.refused_by} refused plan {refusal.plan_id}: {refusal.why}")
    terminal.say(
        f"Next: a plan of {refusal.kind.value} waits again at {text.instant(refusal.asked_again_at)} at the latest"
    )


@app.command("list")
@api_command
def list_approvals(
    invocation: Invocation,
    *,
    table: Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only those for this table.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List approvals, the latest first: who approved which plan, when, and why it had to wait."""
    client = invocation.client
    of_table = None if table is None else client.table(table_name(invocation.config, table))
    none = "no approvals yet"
    invocation.print_page(
        client.approvals(table=of_table, limit=limit, cursor=cursor), ApprovalView, _GIVEN, approval_cells, none=none
    )


def approval_cells(one: ApprovalView) -> tuple[str, ...]:
    """An approval as a row; of one of before its plan was kept with it, what it was given for is its hash."""
    return (
        one.plan_id or f"hash {one.plan_hash}",
        one.table or "-",
        "-" if one.kind is None else one.kind.value,
        text.instant(one.approved_at),
        one.approved_by,
        "" if one.because is None else one.because.text,
    )


def _show(terminal: Terminal, client: Client, plan_id: str) -> None:
    """The plan, and the first of its files."""
    view, page = from_json(PlanView, client.plan(plan_id)), client.plan_files(plan_id, limit=_FILES_SHOWN)
    files = [from_json(PlannedFileView, item) for item in page.items]
    if terminal.as_json:
        terminal.document({"plan": view, "files": files, "next_cursor": page.next_cursor})
        return
    print_waiting_plan(terminal, view)
    if files:
        terminal.say()
        terminal.table(_FILES, [_file_cells(file) for file in files])
    if page.next_cursor is not None:
        terminal.aside(f"and more: GET /api/v1/plans/{plan_id}/files has them all")


def _approve_together(terminal: Terminal, client: Client, waiting: list[WaitingView], by: str | None) -> None:
    """Approve plans of a namespace, and tell which are to be approved by their ids."""
    plan_ids = [one.plan_id for one in waiting if one.reason.code not in _ONE_BY_ONE]
    left = len(waiting) - len(plan_ids)
    if left:
        terminal.aside(
            f"left out: {wording.count(left, 'plan')} beyond a budget, with files in doubt, or of what was taken "
            "back (`icewright approve` lists them; then each by its id: `icewright approve PLAN_ID`)"
        )
    if not plan_ids:
        raise typer.Exit(FOUND)
    _approve(terminal, client, plan_ids, by or logged_in())


def _approve(terminal: Terminal, client: Client, plan_ids: list[str], name: str) -> None:
    """Approve plans one by one. What cannot be queued any more is told, and keeps nothing else from it."""
    refused = False
    for plan_id in plan_ids:
        try:
            task = read_task(client.approve(plan_id, name))
        except (Conflict, NotAllowed, NotFound) as error:
            if len(plan_ids) == 1:
                raise
            refused = True
            terminal.note(error.message)
            continue
        if terminal.as_json or len(plan_ids) == 1:
            print_queued(terminal, task)
        else:
            terminal.say(f"{task.table}: task {task.task_id}")
    if refused:
        raise typer.Exit(FOUND)


def _waiting(client: Client) -> list[WaitingView]:
    return [*pages(WaitingView, lambda cursor: client.waiting(limit=_PAGE, cursor=cursor))]


def _is_meant(waiting: WaitingView, namespace: str | None, action: Kind | None) -> bool:
    """Whether a plan is of that kind, and of a table of that catalog and namespace, or of one below it."""
    if action is not None and waiting.kind.value != action.value.replace("-", "_"):
        return False
    if namespace is None:
        return True
    wanted = tuple(split_parts(namespace))
    return (waiting.table_name.catalog, *waiting.table_name.namespace)[: len(wanted)] == wanted


def _cells(one: WaitingView) -> tuple[str, ...]:
    return one.plan_id, one.table, one.kind.value, text.instant(one.since), one.reason.text


def _file_cells(file: PlannedFileView) -> tuple[str, ...]:
    written, seen = text.instant(file.modified_at), text.instant(file.first_seen_at)
    return file.path, text.size(file.size_bytes), written, seen, "" if file.doubt is None else file.doubt.value
