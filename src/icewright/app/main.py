"""The ``icewright`` command: what it can do, and how errors leave it.

Commands import what they need when they run, so that ``icewright --help`` answers at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from icewright import __version__
from icewright.actions.remove_files import cli as quarantine
from icewright.app import doctor, processes, status
from icewright.audit import cli as audit
from icewright.configuration import cli as configuration
from icewright.core.errors import IcewrightError
from icewright.events import cli as events
from icewright.explain import cli as why
from icewright.feed import cli as feed
from icewright.identity import cli as access
from icewright.identity import sessions_cli as sessions
from icewright.maintenance import approvals_cli as approvals
from icewright.maintenance import cli as plans
from icewright.maintenance import procedures
from icewright.maintenance import tasks_cli as tasks
from icewright.notifications import cli as notifications
from icewright.store_admin import cli as store
from icewright.tables import cli as tables
from icewright.tables import lists_cli as table_lists
from icewright.tables import policy_cli as policies
from icewright.tables import scan
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import AsJson, Invocation, begin
from icewright.work.groups import cli as groups
from icewright.work.halts import cli as queue
from icewright.work.optimizers import cli as optimizers


class Commands(TyperGroup):
    """All commands; an error that icewright raises on purpose leaves as one clear line and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except IcewrightError as error:
            raise typer.Exit(ctx.obj.terminal.problem(error)) from error


app = typer.Typer(
    name="icewright",
    cls=Commands,
    help="Looks after Apache Iceberg tables: says what is wrong with them and why, and mends what it is allowed to.",
    epilog="Exit status: 0 all is well, 1 something was found or refused, 2 wrong use.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks show local variables, and those may hold secrets
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:  # noqa: FBT001 - as typer calls it
    if value:
        sys.stdout.write(f"icewright {__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    *,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="The configuration file (icewright.toml).")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show where errors come from.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Read the options that stand before the command."""
    context.obj = Invocation(config, verbose, Terminal(as_json=False, verbose=verbose))


@app.command()
def version(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Say which version this is."""
    from icewright.model.work.jobs import PROTOCOL_VERSION  # noqa: PLC0415 - `--help` stays quick

    terminal = begin(context, as_json=as_json).terminal
    if as_json:
        terminal.document({"version": __version__, "protocol_version": PROTOCOL_VERSION})
    else:
        terminal.say(f"icewright {__version__}")


app.command("scan")(scan.scan)
app.add_typer(tables.app, name="table")
app.add_typer(table_lists.app, name="tables")
app.command("health")(table_lists.health)
app.command("plan")(plans.plan)
app.command("explain")(plans.explain)
app.command("why")(why.why)
app.command("apply")(plans.apply)
app.command("approve")(approvals.approve)
app.add_typer(approvals.app, name="approvals")
app.command("expire-snapshots")(procedures.expire_snapshots)
app.command("orphans")(procedures.orphans)
app.command("remove-orphan-files")(procedures.remove_orphan_files)
app.command("undo")(plans.undo)
app.command("compute-statistics")(procedures.compute_statistics)
app.command("rollback")(procedures.rollback)
app.add_typer(policies.app, name="policy")
app.add_typer(tasks.app, name="tasks")
app.add_typer(queue.app, name="queue")
app.add_typer(groups.app, name="groups")
app.add_typer(quarantine.app, name="quarantine")
app.command("feed")(feed.feed)
app.add_typer(notifications.app, name="notifications")
app.add_typer(events.app, name="events")
app.command("notify")(events.notify)
app.command("status")(status.status)
app.command("doctor")(doctor.doctor)
app.add_typer(configuration.app, name="config")
app.add_typer(store.app, name="store")
app.add_typer(access.app, name="token")
app.add_typer(sessions.app, name="session")
app.command("login")(access.login)
app.command("logout")(access.logout)
app.add_typer(audit.app, name="audit")
app.command("serve")(processes.serve)
app.add_typer(optimizers.app, name="optimizer")
app.command("demo")(processes.demo)


def main() -> None:
    """The entry point."""
    app(prog_name="icewright")
