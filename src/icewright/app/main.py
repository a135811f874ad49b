"""The ``icewright`` command: what it can do, and how errors leave it.

A command's module is imported when the command is named, so that ``icewright --help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup

from icewright import __version__
from icewright.core.errors import IcewrightError
from icewright.core.extras import without_collection
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import ConfigReader, Invocation
from icewright.terminal.parameters import read_quickly


class Entry(NamedTuple):
    """A command: ``module:attribute`` of its function or of its own commands, and what it is good for."""

    where: str
    help: str


COMMANDS: Final[Mapping[str, Mapping[str, Entry]]] = {
    "Look at tables": {
        "scan": Entry(
            "tables.scan:scan", "Look at all tables: files, bytes, share of small files, deletes, and what is wrong."
        ),
        "tables": Entry("tables.lists_cli:app", "List the tables that the server knows, in any order."),
        "table": Entry("tables.cli:app", "Show one table: what it is, and what it is made of."),
        "health": Entry(
            "tables.lists_cli:health",
            "Show how healthy a table is, from 0 to 100: each part, why it is so, and what would raise it.",
        ),
        "why": Entry(
            "explain.cli:why",
            "Say why something happens to a table, or nothing: what was considered, what waits for what, what is next.",
        ),
        "explain": Entry(
            "maintenance.cli:explain", "Say in sentences why something is, or is not, being done to a table."
        ),
        "queries": Entry(
            "queries.cli:queries",
            "Show which queries read a table: their templates, the columns that they filter by, and what they cost.",
        ),
        "policy": Entry(
            "tables.policy_cli:app", "What owners want of tables: their own properties, and policies as files in git."
        ),
    },
    "Decide and do": {
        "recommend": Entry(
            "maintenance.procedures:recommend",
            "Try layouts on the queries of a table, and recommend one, or to leave it as it is.",
        ),
        "benefit": Entry(
            "recommendations.benefit_cli:benefit",
            "Show by week what our work has brought, as measured and as predicted, and what it cost.",
        ),
        "recommendations": Entry("recommendations.cli:app", "Recommendations made from the queries of tables."),
        "plan": Entry("maintenance.cli:plan", "Say what would be done to a table, why, and what it would bring."),
        "apply": Entry("maintenance.cli:apply", "Run a plan now: queue exactly that one, because you say so."),
        "approve": Entry(
            "maintenance.approvals_cli:approve", "Approve plans that wait for a person: exactly these are queued."
        ),
        "refuse": Entry(
            "maintenance.approvals_cli:refuse", "Refuse a plan that waits for a person: exactly this one is never run."
        ),
        "approvals": Entry("maintenance.approvals_cli:app", "What people approved: list."),
        "expire-snapshots": Entry(
            "maintenance.procedures:expire_snapshots",
            "Expire snapshots, in the table's metadata alone: no file is deleted.",
        ),
        "orphans": Entry(
            "maintenance.procedures:orphans",
            "Look for orphan files of a table now, and show them with the time from which each may go.",
        ),
        "remove-orphan-files": Entry(
            "maintenance.procedures:remove_orphan_files",
            "Move files that nothing needs into quarantine, those that were seen so for long enough.",
        ),
        "quarantine": Entry(
            "actions.remove_files.cli:app",
            "Removed files that can be restored: list them, purge those past their window.",
        ),
        "compute-statistics": Entry(
            "maintenance.procedures:compute_statistics",
            "Compute statistics: distinct values of columns, and figures of partitions.",
        ),
        "rollback": Entry(
            "maintenance.procedures:rollback",
            "Set a table back to an earlier snapshot; says first what would be lost.",
        ),
        "undo": Entry("maintenance.cli:undo", "Take back what a task did, never over anything that came since."),
    },
    "Watch the work": {
        "status": Entry("app.status:status", "Say what the server sees and does at this moment."),
        "cluster": Entry("app.cluster:cluster", "Say which server looks at which tables."),
        "report": Entry(
            "app.report:report", "Write the state of a table, or of all, as one HTML file to keep or send."
        ),
        "top": Entry("app.top:top", "Watch what runs, what waits and the worst health, live, until Ctrl-C."),
        "tasks": Entry("maintenance.tasks_cli:app", "The server's tasks: list, show, cancel, retry, expedite."),
        "queue": Entry("work.halts.cli:app", "The queue as a whole, or a part of it: pause, drain, stop, resume."),
        "groups": Entry("work.groups.cli:app", "Resource groups: list, show."),
        "autotune": Entry(
            "work.autotune.cli:app", "Decisions about optimizers, their memory, and servers: list, show, hold, release."
        ),
        "feed": Entry(
            "feed.cli:feed",
            "Show what happened, oldest first: tasks queued, done and failed, tables parked, plans that wait.",
        ),
        "notify": Entry("events.cli:notify", "Report a commit to a table to the server, so that it looks now."),
        "events": Entry("events.cli:app", "Commits that other programs reported to the server."),
        "send-queries": Entry(
            "queries.cli:send_queries", "Send the server the queries of a Spark event log, or of a file of SQL."
        ),
        "notifications": Entry(
            "notifications.cli:app", "Receivers of messages: list them, test one, see what did not arrive."
        ),
    },
    "Run it": {
        "demo": Entry(
            "app.processes:demo", "Show the whole loop on a lake of its own: a writer, a server, an optimizer."
        ),
        "serve": Entry("app.processes:serve", "Run the server: it observes, plans, and hands out tasks."),
        "optimizer": Entry(
            "work.optimizers.cli:app", "Run optimizers: Spark sessions that take tasks from the server."
        ),
        "doctor": Entry(
            "app.doctor:doctor", "Check this machine: configuration, catalogs, server, optimizers, Java and extras."
        ),
        "config": Entry("configuration.cli:app", "The configuration: show, init, path."),
        "version": Entry("app.doctor:version", "Say which version this is."),
    },
    "Administer": {
        "login": Entry(
            "identity.cli:login",
            "Log in: to the server at URL for later commands, or without one, by a one-time link, to its page.",
        ),
        "logout": Entry(
            "identity.cli:logout",
            "Forget the server and the token of `icewright login URL`, and end the session where it was one.",
        ),
        "token": Entry("identity.cli:app", "Tokens for programs and people: create, list, revoke."),
        "session": Entry(
            "identity.sessions_cli:app", "Who is logged in, to the page or with a program: list them, end that."
        ),
        "audit": Entry("audit.cli:app", "What was done by whom: list, verify, export."),
        "store": Entry("store_admin.cli:app", "Copy the server's database, restore a copy, and check it."),
    },
}
"""All commands, by the sections of ``icewright --help``."""


class _Loaded(MutableMapping[str, Any]):
    """The commands by name; each is imported when it is asked for."""

    def __init__(self) -> None:
        self._entries = {name: entry for section in COMMANDS.values() for name, entry in section.items()}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(name, self._entries[name])
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._entries.setdefault(name, Entry("", ""))
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        self._loaded.pop(name, None)
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _load(name: str, entry: Entry) -> Any:
    module, _, attribute = entry.where.partition(":")
    name_of_module = f"icewright.{module}"
    with nullcontext() if name_of_module in sys.modules else without_collection():
        found = getattr(import_module(name_of_module), attribute)
    parent = typer.Typer(rich_markup_mode=None)
    parent.callback()(lambda: None)  # else the only command would stand for all
    if isinstance(found, typer.Typer):
        parent.add_typer(found, name=name)
    else:
        parent.command(name)(found)
    return typer.main.get_group(parent).commands[name]


class Commands(TyperGroup):
    """All commands; an error that icewright raises on purpose leaves as one clear line and an exit status."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Loaded()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Print the commands in sections, each with its sentence, without importing any."""
        del ctx
        for title, section in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.help) for name, entry in section.items()])

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except IcewrightError as error:
            raise typer.Exit(ctx.obj.terminal.problem(error)) from error


read_quickly()
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


def _config_reader() -> ConfigReader:
    from icewright.configuration import load  # noqa: PLC0415 - `--help` stays quick

    return load


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
    context.obj = Invocation(context, config, Terminal(as_json=False, verbose=verbose), _config_reader)


def main() -> None:
    """The entry point."""
    app(prog_name="icewright")
