"""``icewright plan``, ``explain`` and ``apply``: what would be done and why, and then exactly that."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, NoReturn

import typer

from icewright.core import wording
from icewright.core.codec import from_json
from icewright.core.errors import Forbidden, NotFound, Rejected, Unavailable
from icewright.maintenance.registry.cli import predicted
from icewright.maintenance.tasks_cli import Waiting, print_and_follow, print_queued, read_task
from icewright.model.actions.actions import ActionKind, traits_of
from icewright.model.actions.compute_statistics import ComputeStatisticsRequest
from icewright.model.actions.expire_data import ExpireDataRequest
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.model.actions.rewrite_data_files import RewriteDataFilesRequest
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Migration, Reason
from icewright.model.plans.requests import REQUESTS, PlanRequest
from icewright.model.policy.policy import Mode
from icewright.plans.views import PlanView, TaskView, VerdictView
from icewright.terminal import figures as text
from icewright.terminal.cli import FINE, FOUND, Terminal
from icewright.terminal.invocation import (
    Invocation,
    TableArgument,
    Yes,
    api_command,
    reads_here,
    table_name,
)
from icewright.terminal.tables import headings

_VERDICTS = headings(
    "partition",
    "verdict",
    "#files before",
    "#files after",
    "#files read",
    "#bytes read",
    "#deletes",
    "by",
    "because",
    drop=("files read", "deletes", "by", "bytes read", "verdict"),
    below=("because",),
)
_SINGLE_MAX = 10
"""So many partitions of a plan are shown one by one."""

_BY_OTHER_MEANS = (ActionKind.REWRITE_DATA_FILES, ActionKind.ROLLBACK_TO_SNAPSHOT)
"""What is asked for by ``--migrate``, and by a command of its own."""


class Action(StrEnum):
    """What may be planned on demand, by the names of Iceberg's procedures."""

    _ignore_ = "members request"
    members = vars()
    for request in REQUESTS:
        if request.kind not in _BY_OTHER_MEANS:
            members[request.kind.upper()] = request.kind.replace("_", "-")

    @property
    def kind(self) -> ActionKind:
        """The kind of the action."""
        return ActionKind(self.value.replace("-", "_"))


OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="DURATION", help="Only what is older (P5D, PT12H)."),
]
RetainLast = Annotated[
    int | None,
    typer.Option("--retain-last", min=1, metavar="N", help="Keep this many snapshots of each branch, of any age."),
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B", help="Count distinct values of these columns, not of those by policy."),
]
SnapshotId = Annotated[
    int | None,
    typer.Option("--snapshot", min=0, max=2**63 - 1, metavar="N", help="Compute statistics of this snapshot."),
]


@api_command
def plan(
    invocation: Invocation,
    table: TableArgument,
    *,
    migrate: Annotated[
        Migration | None,
        typer.Option(
            "--migrate",
            help="Plan nothing but this: files of other formats into the table's own, of older partition specs into "
            "the current one, or both; large ones too. It is done when it is applied, a task at a time.",
        ),
    ] = None,
    action: Annotated[
        Action | None, typer.Option("--action", help="Plan nothing but this. It is done when it is applied.")
    ] = None,
    older_than: OlderThan = None,
    retain_last: RetainLast = None,
    columns: Columns = None,
    snapshot: SnapshotId = None,
) -> None:
    """Say what would be done to a table, why, and what it would bring. Changes nothing.

    Where a server runs it makes the plan, which can then be applied by its id; else the plan is only shown.
    Exit status 1 when there is something to do.
    """
    asked = _asked(
        migrate,
        action,
        ExpireSnapshotsRequest(older_than, retain_last),
        ComputeStatisticsRequest(column_names(columns), snapshot),
    )
    show_only(invocation.terminal, plan_of(invocation, table, asked))


@api_command
def explain(invocation: Invocation, table: TableArgument) -> None:
    """Say in sentences why something is, or is not, being done to a table."""
    planned = plan_of(invocation, table, None)
    if invocation.as_json:
        invocation.terminal.document({**planned.document, "upkeep": planned.upkeep})
        return
    if planned.problem is not None:
        invocation.terminal.prose(f"Nothing is queued automatically: {planned.problem.text}.")
    for line in (*planned.view.explanation, *(f"{reason.text}." for reason in planned.upkeep)):
        invocation.terminal.prose(line)


@api_command
def apply(
    invocation: Invocation,
    plan_id: Annotated[str, typer.Argument(metavar="PLAN_ID", help="As `icewright plan` shows it.")],
    *,
    wait: Waiting = False,
) -> None:
    """Run a plan now: queue exactly that one, because you say so. What waits for a person, `icewright approve` lets go.

    It is refused when the table has moved on so that it does not hold any more, and when it has to be approved first.
    """
    task = read_task(invocation.client.apply(plan_id))
    if wait:
        print_and_follow(invocation.terminal, invocation.client, task)
    print_queued(invocation.terminal, task)


def show_only(terminal: Terminal, planned: Planned) -> NoReturn:
    """Show a plan that is not applied, and leave: with exit status 1 when there is something to do, or in the way."""
    if terminal.as_json:
        terminal.document(planned.document)
    else:
        print_plan(terminal, planned)
    raise typer.Exit(FOUND if planned.view.can_apply or planned.view.is_blocked else FINE)


def print_applied(terminal: Terminal, view: PlanView, task: TaskView) -> None:
    """Say what a plan was and which task carries it out."""
    if not terminal.as_json:
        terminal.say(view.reason.text)
    print_queued(terminal, task)


def column_names(columns: str | None) -> tuple[str, ...] | None:
    """Names of columns, with commas between them; None where none are said."""
    return None if columns is None else tuple(name.strip() for name in columns.split(","))


def _asked(
    migrate: Migration | None,
    action: Action | None,
    expiry: ExpireSnapshotsRequest,
    statistics: ComputeStatisticsRequest,
) -> PlanRequest | None:
    """What is asked for beyond what is planned by itself. Raises ``Rejected`` for options that do not go together."""
    kind = None if action is None else action.kind
    expiring, computing = expiry != ExpireSnapshotsRequest(), statistics != ComputeStatisticsRequest()
    aged: dict[ActionKind | None, PlanRequest] = {
        ActionKind.REMOVE_ORPHAN_FILES: RemoveOrphanFilesRequest(expiry.older_than),
        ActionKind.EXPIRE_DATA: ExpireDataRequest(expiry.older_than),
    }
    if migrate is None and kind in aged and expiry.retain_last is None and not computing:
        return aged[kind]
    if migrate is None and kind is ActionKind.EXPIRE_SNAPSHOTS and not computing:
        return expiry
    if migrate is None and kind is ActionKind.COMPUTE_STATISTICS and not expiring:
        return statistics
    alone: dict[ActionKind | None, PlanRequest] = {
        ActionKind(request.kind): request() for request in REQUESTS if not fields(request)
    }
    if migrate is None and kind in alone and not (expiring or computing):
        return alone[kind]
    if expiring or computing or action is not None:
        raise Rejected(
            "these options cannot be combined",
            hint="--older-than needs --action expire-snapshots, expire-data or remove-orphan-files, --retain-last "
            "with the first, --columns and --snapshot with compute-statistics, and --migrate alone",
        )
    return None if migrate is None else RewriteDataFilesRequest(migrate)


class Planned(NamedTuple):
    """A plan, whether a server made it, and what keeps that server from looking after the table.

    ``upkeep`` is what it says of what happens by itself beside.
    """

    view: PlanView
    from_server: bool
    problem: Reason | None = None
    upkeep: tuple[Reason, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {"plan": self.view, "from_server": self.from_server, "problem": self.problem}


def plan_of(invocation: Invocation, table: str, asked: PlanRequest | None) -> Planned:
    """The plan. Without a server that knows the table it is made here, by the catalogs that are configured."""
    from icewright.maintenance.explain import plan_view  # noqa: PLC0415 - see above
    from icewright.maintenance.offline import Offline  # noqa: PLC0415 - `--help` stays quick

    here, name = reads_here(invocation), table_name(invocation.config, table)
    try:
        return _plan_by_server(invocation, name, asked)
    except (NotFound, Unavailable) as error:
        if not here:
            raise
        invocation.terminal.note(f"planned here: {error.message}")
        planned = Offline(invocation.config, invocation.rules).plan(name, asked)
        if planned.observation.access_detail:
            invocation.terminal.note(f"access to its files is {planned.observation.access_detail}")
        return Planned(plan_view(planned.plan), from_server=False)


def _plan_by_server(invocation: Invocation, name: TableName, asked: PlanRequest | None) -> Planned:
    client = invocation.client
    found = client.table(name)
    of = found["uuid"], found["catalog"]
    try:
        looked = client.look_at_table(*of) if asked is None else {"plan": client.plan_asked(*of, asked)}
    except Forbidden as error:
        if asked is not None or found["plan"] is None:
            raise
        planned_at = text.instant(found["plan"]["planned_at"])
        invocation.terminal.note(f"the server's plan of {planned_at}: {error.message}, so it is not planned again")
        looked = {"plan": client.plan(found["plan"]["plan_id"])}
    view = from_json(PlanView, looked.get("plan"))
    problem = client.table(name).get("problem")
    upkeep = tuple(from_json(Reason, said) for said in looked.get("upkeep", ()))
    return Planned(view, True, None if problem is None else from_json(Reason, problem), upkeep)


def print_plan(terminal: Terminal, planned: Planned, *, waits: bool = False) -> None:
    """Print a plan, with what can be done next; ``waits`` says that it is known to wait for a person."""
    view, from_server, problem, _ = planned
    terminal.pairs(
        [
            ("plan", view.plan_id if from_server else ""),
            ("table", view.table),
            ("snapshot", str(view.snapshot_id or "none yet")),
            ("mode", view.mode.value),
            ("migrates", "" if view.migration is None else view.migration.value),
            ("because", view.reason.text),
            ("approval", "" if view.to_approve is None else f"by a person: {view.to_approve.text}"),
            ("refused", "" if view.refused is None else f"by {view.refused.refused_by}: {view.refused.why}"),
            ("but", "" if problem is None else problem.text),
            *predicted(view),
            ("look again", "" if view.look_again_at is None else text.instant(view.look_again_at)),
        ]
    )
    if view.verdicts:
        terminal.say()
        terminal.table(_VERDICTS, _verdict_rows(view.verdicts, one_by_one=not terminal.out.is_terminal))
        more = sum(view.verdict_counts.values()) - len(view.verdicts)
        if more > 0:
            terminal.say(f"and {more:,} more partitions")
    if view.prediction is not None and view.prediction.call:
        terminal.say()
        terminal.say("The Spark statement that comes nearest (it chooses itself what it does, and proves nothing):")
        terminal.say(f"  {view.prediction.call}")
    if view.can_apply:
        terminal.say()
        terminal.say(_next_step(view, from_server=from_server, waits=waits))


def _next_step(view: PlanView, *, from_server: bool, waits: bool) -> str:
    """What carries a plan out: nothing does in mode observe, but for removed files that come back."""
    if not from_server:
        return "To carry it out: start `icewright serve` and `icewright optimizer`, then plan again."
    runs_anyway = view.prediction is not None and traits_of(view.prediction.kind).in_mode_observe
    if view.mode is Mode.OBSERVE and not runs_anyway:
        return f"Next: icewright policy set {shlex.quote(view.table)} mode=approve --yes"
    verb = "approve" if waits or view.to_approve is not None else "apply"
    return f"Next: icewright {verb} {view.plan_id}"


def print_waiting_plan(terminal: Terminal, view: PlanView) -> None:
    """Print a plan that waits for a person."""
    print_plan(terminal, Planned(view, from_server=True), waits=True)


def _verdict_rows(verdicts: Sequence[VerdictView], *, one_by_one: bool) -> list[tuple[str, ...]]:
    """A row for each partition; of many, one for all of which the same is said: the figures of each, and mean bytes."""
    if one_by_one or len(verdicts) <= _SINGLE_MAX:
        return [_verdict_cells([verdict]) for verdict in verdicts]
    alike = wording.grouped(verdicts, lambda one: _verdict_cells([replace(one, path="", input_bytes=0)]))
    return [_verdict_cells(group) for group in alike]


def _verdict_cells(alike: Sequence[VerdictView]) -> tuple[str, ...]:
    item = alike[0]
    return (
        wording.example(len(alike), item.path),
        item.verdict.value,
        text.number(item.files_before),
        text.number(item.files_after),
        text.number(item.input_files),
        text.size(sum(one.input_bytes for one in alike) // len(alike)),
        text.number(item.delete_files),
        "+".join(item.executors),
        item.reason.text,
    )


@api_command
def undo(
    invocation: Invocation,
    task_id: Annotated[str, typer.Argument(metavar="TASK_ID", help="As `icewright tasks list` shows it.")],
    *,
    yes: Yes = False,
) -> None:
    """Take back what a task did, never over anything that came since. Only shown without --yes.

    Expiries of snapshots and of data can be undone for 7 days, and removals of files until these are purged. Exit
    status 1 when there is something to do and it was only shown.
    """
    terminal = invocation.terminal
    client = invocation.client
    view = from_json(PlanView, client.undo(task_id))
    if not yes or not view.can_apply:
        show_only(terminal, Planned(view, from_server=True))
    print_applied(terminal, view, read_task(client.apply(view.plan_id)))
