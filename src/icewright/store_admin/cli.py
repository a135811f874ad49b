"""``icewright store``: the server's database by itself, copied, put back and looked through, without a server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.core.codec import to_json
from icewright.core.system_clock import SystemClock
from icewright.terminal import figures as text
from icewright.terminal.invocation import Invocation, Yes, command
from icewright.terminal.tables import headings

if TYPE_CHECKING:
    from icewright.store_admin.service import KindKept

_RETENTION: Final = headings(
    "kind",
    "kept",
    "setting",
    "#rows",
    "oldest",
    "last pruned",
    "#removed",
    drop=("last pruned", "removed", "setting", "oldest"),
)

app = typer.Typer(name="store", help="Copy the server's database, restore a copy, and check it.")


@app.command()
@command
def backup(
    invocation: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the copy; the path must not exist.")],
) -> None:
    """Copy a store on SQLite, also while a server works with it. PostgreSQL has means of its own."""
    from icewright.store_admin.service import back_up  # noqa: PLC0415 - `--help` stays quick

    size_bytes = back_up(invocation.config, file)
    invocation.print_answer(
        {"file": str(file.absolute()), "size_bytes": size_bytes},
        f"the store is copied to {file} ({text.size(size_bytes)})",
    )


@app.command()
@command
def restore(
    invocation: Invocation,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The copy; none where PostgreSQL has put it back already.")
    ] = None,
    *,
    yes: Yes = False,
) -> None:
    """Replace the store by a copy, or complete a restore that PostgreSQL has made. No server may be running.

    Waiting tasks are planned again; tasks that ran are looked up in their tables; what a person had approved, or had
    undone since, has to be approved again before anything is removed.
    """
    from icewright.store_admin.service import restore as put_back  # noqa: PLC0415 - `--help` stays quick

    if not yes:
        invocation.terminal.say("the store would be replaced, and the old one kept; nothing is done without --yes")
        raise typer.Exit(1)
    done = put_back(invocation.config, os.environ, file, SystemClock().now())
    if invocation.as_json:
        kept = None if done.kept is None else str(done.kept)
        invocation.terminal.document({**to_json(done.found), "kept": kept})
        return
    found = done.found
    invocation.terminal.say(f"{text.number(found.superseded)} waiting tasks are planned again")
    invocation.terminal.say(f"{text.number(found.in_doubt)} that ran are looked up in their tables by the next server")
    invocation.terminal.say(f"{text.number(found.to_verify)} that had committed are verified by it")
    if done.kept is not None:
        invocation.terminal.say(f"the store of before is {done.kept}")


@app.command()
@command
def check(invocation: Invocation) -> None:
    """Check the integrity of the database. Nothing is changed; a server may run meanwhile."""
    from icewright.store_admin.service import check as look  # noqa: PLC0415 - `--help` stays quick

    found = look(invocation.config, os.environ)
    if invocation.as_json:
        invocation.terminal.document({"problems": found})
    else:
        for problem in found:
            invocation.terminal.say(problem)
        if not found:
            invocation.terminal.say("the store is whole")
    if found:
        raise typer.Exit(1)


@app.command()
@command
def retention(invocation: Invocation) -> None:
    """Show how much of the past the store keeps, for how long, and what was removed; a server may be at work."""
    from icewright.store_admin.service import retention as look  # noqa: PLC0415 - `--help` stays quick

    found = look(invocation.config, os.environ)
    if invocation.as_json:
        invocation.terminal.document({"items": found})
        return
    invocation.terminal.table(_RETENTION, [_retention_row(one) for one in found])


def _retention_row(one: KindKept) -> list[str]:
    if one.kept_count is not None:
        kept = f"{one.kept_count} of each table"
    else:
        kept = "forever" if one.kept_days is None else text.count(one.kept_days, "day")
    instants = [text.instant(at) for at in (one.oldest_at, one.pruned_at)]
    setting = one.setting or "none: as long as it can be undone"
    return [one.kind.value, kept, setting, text.number(one.rows), *instants, text.number(one.removed)]
