"""``icewright config ...``: what is in effect and why, and a file to start from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from icewright.catalogs.pyiceberg_settings import discover
from icewright.configuration.show import shown, starting_file
from icewright.core.errors import NotAllowed, Unavailable
from icewright.terminal.cli import FINE, FOUND
from icewright.terminal.invocation import Invocation, command
from icewright.terminal.tables import Column, headings

app = typer.Typer(help="The configuration: show, init, path.", no_args_is_help=True)


@app.command()
@command
def show(
    invocation: Invocation,
    *,
    origin: Annotated[bool, typer.Option("--origin", help="Also say where each value comes from.")] = False,
) -> None:
    """Show all settings in effect, secrets masked.

    Exit status 1 where `icewright serve` refuses a receiver, or a quarantine cannot take the files of local tables.
    """
    from icewright.notifications.wiring import unusable_receivers  # noqa: PLC0415 - `--help` stays quick
    from icewright.server.control_wiring import quarantine_problems  # noqa: PLC0415 - see below

    settings = shown(invocation.config)
    refused = unusable_receivers(invocation.config, os.environ)
    quarantines = quarantine_problems(invocation.config.catalogs)
    if invocation.as_json:
        config = invocation.config
        found = {"settings": settings, "notes": config.notes, "unusable": config.unusable, "receivers": refused}
        invocation.terminal.document({**found, "quarantines": quarantines})
        raise typer.Exit(FOUND if refused or quarantines else FINE)
    columns = (Column("setting"), Column("value"), *(headings("from") if origin else ()))
    invocation.terminal.table(
        columns, [(row.key, row.value or "-", *((row.origin,) if origin else ())) for row in settings]
    )
    for other in invocation.config.unusable:
        invocation.terminal.note(f"not usable: {other.name} of {other.origin}: {other.reason}")
    for name, reason in refused.items():
        invocation.terminal.note(f"`icewright serve` refuses the receiver {name}: {reason}")
    for name, problem in quarantines.items():
        invocation.terminal.note(f"the quarantine of catalog {name} cannot be used: {problem}")
    raise typer.Exit(FOUND if refused or quarantines else FINE)


@app.command()
@command
def init(
    invocation: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")] = Path("icewright.toml"),
) -> None:
    """Write a commented configuration with the catalogs of PyIceberg's own, in mode observe. Never overwrites."""
    terminal = invocation.terminal
    found = discover(os.environ, Path.cwd())
    try:
        # Only its owner may read it: it may come to hold more than it should.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            written.write(starting_file(found))
    except FileExistsError as error:
        raise NotAllowed(f"{file} exists already and is not overwritten", hint="name another file") from error
    except OSError as error:
        raise Unavailable(f"{file} cannot be written: {error.strerror}") from error
    if invocation.as_json:
        terminal.document({"path": str(file.absolute()), "catalogs": [e.name for e in found.entries]})
        return
    names = ", ".join(entry.name for entry in found.entries)
    terminal.say(f"wrote {file}" + (f" with the catalogs {names}, in mode observe" if names else ""))
    terminal.say("Next: icewright scan" if names else "Next: name your catalog in it, then icewright scan")


@app.command()
@command
def path(invocation: Invocation) -> None:
    """Say which file is read."""
    found = invocation.config.path
    invocation.print_answer(
        {"path": None if found is None else str(found)}, "no configuration file" if found is None else str(found)
    )
