"""What one call of the command line is about: its configuration, its terminal, and where tables are looked at."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from icewright.terminal.cli import Terminal

if TYPE_CHECKING:
    from icewright.config.layers import Given
    from icewright.config.model import Config
    from icewright.core.errors import InvalidConfiguration
    from icewright.model.iceberg.names import TableName
    from icewright.model.policy.policies import PolicyRevision, Rule

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
ShowApi = Annotated[bool, typer.Option("--show-api", help="Also print the calls of the HTTP API that this equals.")]
LogFormat = Annotated[
    str, typer.Option("--log-format", envvar="ICEWRIGHT_LOG_FORMAT", help="console, or json: a line each.")
]
LogLevel = Annotated[
    str, typer.Option("--log-level", envvar="ICEWRIGHT_LOG_LEVEL", help="debug, info, warning or error, and above.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it; without this it is only shown.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
Cursor = Annotated[str | None, typer.Option("--cursor", help="Where the last list ended.")]
TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="catalog.namespace.table; other characters in backticks. With one catalog, its name may be left out.",
    ),
]


@dataclass
class Invocation:
    """The options before the command, and what follows from them."""

    config_path: Path | None
    verbose: bool
    terminal: Terminal
    flags: dict[tuple[str, ...], Given] = field(default_factory=dict)
    """Settings that options of the command give, above all others; set before the configuration is read."""

    @cached_property
    def config(self) -> Config:
        """The configuration, read on first use; says where catalogs come from if not from icewright.toml."""
        from icewright.configuration.load import load_config  # noqa: PLC0415 - `--help` stays quick

        config = load_config(self.config_path, os.environ, Path.cwd(), self.flags)
        for note in config.notes:
            self.terminal.note(note)
        return config

    @cached_property
    def applied(self) -> PolicyRevision | None:
        """The policies that are applied, as the server says; None where none runs here and none is configured."""
        from icewright.core.codec import from_json  # noqa: PLC0415 - see above
        from icewright.core.errors import IcewrightError, NotFound  # noqa: PLC0415 - see above
        from icewright.model.policy.policies import PolicyRevision  # noqa: PLC0415 - see above
        from icewright.terminal.connection import server  # noqa: PLC0415 - `--help` stays quick

        try:
            with server(self) as client:
                return from_json(PolicyRevision, client.policies())
        except IcewrightError as error:
            if not isinstance(error.__cause__, NotFound):  # there is one, and it does not say
                self.terminal.note(f"by the configuration alone, without what may be applied: {error.message}")
            return None

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that are in effect: those that are applied, above those of the configuration."""
        return (*(() if self.applied is None else self.applied.policies.rules), *self.config.rules)


def begin(context: typer.Context, *, as_json: bool) -> Invocation:
    """What a command begins with."""
    invocation: Invocation = context.obj
    invocation.terminal.as_json = as_json
    return invocation


def table_name(config: Config, text: str) -> TableName:
    """The table that a person means; the only catalog that is configured here need not be named."""
    from icewright.model.iceberg.names import TableName  # noqa: PLC0415 - `--help` stays quick

    only = config.catalogs[0].name if len(config.catalogs) == 1 else None
    return TableName.parse(text, default_catalog=only)


def reads_here(invocation: Invocation) -> bool:
    """Whether a command reads tables through the catalogs of the configuration; with none, it asks the server.

    One rule for all commands that can do both. Raises ``InvalidConfiguration`` where no server is known either.
    """
    from icewright.core.errors import Unavailable  # noqa: PLC0415 - `--help` stays quick
    from icewright.terminal.found_server import found_server  # noqa: PLC0415 - see above

    if invocation.config.catalogs:
        return True
    try:
        found_server(invocation.config, os.environ)
    except Unavailable as error:
        raise no_catalogs(invocation.config) from error
    return False


def no_catalogs(config: Config) -> InvalidConfiguration:
    """The error for a configuration without any catalog, with what was found and cannot be used."""
    from icewright.core.errors import InvalidConfiguration  # noqa: PLC0415 - `--help` stays quick

    others = "".join(f"; {other.name} of {other.origin} cannot be used: {other.reason}" for other in config.unusable)
    return InvalidConfiguration(
        f"no catalogs are configured{others}",
        hint="`icewright config init` writes a configuration to start from, `icewright login` names a server to ask, "
        "and `icewright demo` shows one at work",
    )


def logged_in() -> str:
    """Who is logged in. Raises ``Rejected`` where that has no name."""
    from icewright.core.errors import Rejected  # noqa: PLC0415 - `--help` stays quick

    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:  # a container runs as a number that has no name
        raise Rejected("the approver is unknown", hint="say so: --by NAME") from error
