"""``icewright policy ...``: what an owner wants of a table, shown and changed. A table's own needs no server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from icewright.core.codec import from_json
from icewright.core.errors import Rejected
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policies import PolicyRevision
from icewright.policy.property_changes import differing, settings_to_set, settings_to_unset, with_changes
from icewright.policy.rules.cli import apply, history, print_rules, rollback, schema, which_wins
from icewright.policy.schema_views import LayoutView
from icewright.policy.views import SAID_OF_MODES, PolicyChangeView, PolicyView, policy_view, property_changes
from icewright.tables.api_views import TableDocument
from icewright.terminal.cli import FINE, FOUND, Terminal
from icewright.terminal.invocation import (
    Invocation,
    TableArgument,
    command,
    reads_here,
    table_name,
)
from icewright.terminal.tables import headings

app = typer.Typer(
    help="What owners want of tables: their own properties, and policies as files in git.", no_args_is_help=True
)

Yes = Annotated[bool, typer.Option("--yes", help="Do it; without it is only said what would be done.")]


@app.command()
@command
def show(
    invocation: Invocation,
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="The table; else the policies that are applied.")
    ] = None,
    *,
    revision: Annotated[
        int | None, typer.Option("--revision", metavar="N", min=0, help="Policies as they were applied then.")
    ] = None,
) -> None:
    """Show every setting in effect for a table and where it comes from; without a table, the applied policies.

    Exit status 1 when something cannot be used.
    """
    from icewright.ownership.offline import OfflineCatalogs  # noqa: PLC0415 - `--help` stays quick

    if table is None:
        _show_applied(invocation, revision)
        return
    if revision is not None:
        raise Rejected("a table has the policies that are applied now", hint="leave out --revision, or the table")
    name = table_name(invocation.config, table)
    if reads_here(invocation):
        view = policy_view(OfflineCatalogs(invocation.config).catalog(name.catalog).load(name), invocation.rules)
    else:
        shown = table_document(invocation, name).table
        says = SAID_OF_MODES[shown.mode]
        view = PolicyView(shown.name, shown.uuid, shown.mode, says, shown.policy, shown.policy_problems, shown.layout)
    invocation.print_answer(view, _print_policy)
    raise typer.Exit(FOUND if _is_wrong(view) else FINE)


app.command()(apply)
app.command("test")(which_wins)
app.command()(history)
app.command()(rollback)
app.command()(schema)


@app.command("set")
@command
def set_(
    invocation: Invocation,
    table: TableArgument,
    settings: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help="mode=auto layout='sort(ts)'; `icewright.` is optional.")
    ],
    *,
    yes: Yes = False,
) -> None:
    """Set properties of a table that are settings of its policy: one commit of metadata, and only with --yes.

    Values are checked first, and a layout against the table's columns. Exit status 1 when there is something to do.
    """
    _change(invocation, table, lambda _: settings_to_set(settings), yes=yes)


@app.command()
@command
def unset(
    invocation: Invocation,
    table: TableArgument,
    settings: Annotated[list[str], typer.Argument(metavar="KEY...", help="mode layout; `icewright.` is optional.")],
    *,
    yes: Yes = False,
) -> None:
    """Remove settings from a table's properties, so that the rules above it count again; only with --yes."""
    _change(invocation, table, lambda found: settings_to_unset(found, settings), yes=yes)


def table_document(invocation: Invocation, name: TableName) -> TableDocument:
    """All of one table, from the server. Raises ``NotFound`` where it does not know the table."""
    client = invocation.client
    known = client.table(name)
    return from_json(TableDocument, client.table_document(known["uuid"], known["catalog"]))


def layout_text(layout: LayoutView | None) -> str:
    """A layout and where it comes from, or why there is none."""
    if layout is None:
        return "none"
    if layout.reason is not None:
        return f"none, because {layout.reason.text}"
    return f"{layout.text} ({layout.origin})"


def _change(
    invocation: Invocation, table: str, asked: Callable[[TableMetadata], Mapping[str, str | None]], *, yes: bool
) -> None:
    from icewright.ownership.offline import OfflineCatalogs  # noqa: PLC0415 - `--help` stays quick

    name = table_name(invocation.config, table)
    offline = OfflineCatalogs(invocation.config)
    found = offline.catalog(name.catalog).load(name)
    changes = differing(found, asked(found))
    after = with_changes(found, changes)
    if yes and changes:
        offline.properties(name.catalog).change(found, changes)
    policy = policy_view(after, invocation.rules)
    view = PolicyChangeView(property_changes(found, changes), yes and bool(changes), policy)
    invocation.print_answer(view, _print_change)
    raise typer.Exit(FOUND if changes and not yes else FINE)


def _show_applied(invocation: Invocation, revision: int | None) -> None:
    found = from_json(PolicyRevision, invocation.client.policies(revision))
    invocation.print_answer(found, print_rules)


def _is_wrong(view: PolicyView) -> bool:
    return bool(view.problems) or (view.layout is not None and view.layout.reason is not None)


def _print_policy(terminal: Terminal, view: PolicyView) -> None:
    terminal.pairs([("table", view.table), ("mode", f"{view.mode}. {view.says}"), ("layout", layout_text(view.layout))])
    terminal.say()
    rows = [(setting.key, setting.value or "-", setting.origin) for setting in view.settings]
    terminal.table(headings("property", "value", "from", drop=("from",), below=("value",)), rows)
    _print_problems(terminal, view)


def _print_change(terminal: Terminal, view: PolicyChangeView) -> None:
    if not view.changes:
        terminal.say(f"Nothing to change: {view.policy.table} is so already.")
        return
    columns = headings("property", "before", "after", below=("before:", "after:"))
    terminal.table(columns, [(c.key, _shown(c.before), _shown(c.after)) for c in view.changes])
    terminal.say()
    terminal.pairs([("layout", layout_text(view.policy.layout))])
    terminal.say(view.policy.says)
    _print_problems(terminal, view.policy)
    terminal.say("Done." if view.done else "Nothing has been changed yet: add --yes to do it.", style="bold")


def _print_problems(terminal: Terminal, view: PolicyView) -> None:
    for problem in view.problems:
        terminal.say(f"cannot be used: {problem.origin}, {problem.key}: {problem.problem}", style="red")


def _shown(value: str | None) -> str:
    return "-" if value is None else value
