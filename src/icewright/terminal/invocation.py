"""What one call of the command line is about: its configuration, its terminal, and where tables are looked at."""

from __future__ import annotations

import getpass
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, wraps
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, Protocol, TypeVar

import typer

from icewright.core.codec import from_json
from icewright.core.errors import IcewrightError, InvalidConfiguration, NotFound, Rejected, Unavailable
from icewright.model.iceberg.names import TableName
from icewright.terminal.cli import Terminal
from icewright.terminal.found_server import found_server
from icewright.terminal.tables import Column

if TYPE_CHECKING:
    from icewright.api_client.client import Client
    from icewright.api_client.connection import Page
    from icewright.config.layers import Given, Key
    from icewright.config.model import Config
    from icewright.model.iceberg.tables import Json
    from icewright.model.policy.policies import PolicyRevision, Rule

P = ParamSpec("P")
T = TypeVar("T")

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

_CONTEXT = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
_AS_JSON = Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)
_SHOW_API = Parameter("show_api", Parameter.KEYWORD_ONLY, default=False, annotation=ShowApi)


class ConfigReader(Protocol):
    """Reads configurations: :mod:`icewright.configuration.load`, which knows all rooms and so stands above this one."""

    def load_config(
        self, path: Path | None, environ: Mapping[str, str], cwd: Path, flags: Mapping[Key, Given] | None = None
    ) -> Config:
        """The configuration of this process."""

    def with_one_catalog(
        self, config: Config, name: str, uri: str, warehouse: str | None, environ: Mapping[str, str]
    ) -> Config:
        """The configuration with this catalog alone."""


@dataclass
class Invocation:
    """The options before the command, and what follows from them."""

    context: typer.Context
    config_path: Path | None
    terminal: Terminal
    reader: Callable[[], ConfigReader]
    """Gives what reads the configuration, on first use: to import it takes time that `--help` does not need."""
    show_api: bool = False
    flags: dict[tuple[str, ...], Given] = field(default_factory=dict)
    """Settings that options of the command give, above all others; set before the configuration is read."""

    @property
    def as_json(self) -> bool:
        """Whether a program reads what is printed."""
        return self.terminal.as_json

    @cached_property
    def config(self) -> Config:
        """The configuration, read on first use; says where catalogs come from if not from icewright.toml."""
        config = self.reader().load_config(self.config_path, os.environ, Path.cwd(), self.flags)
        for note in config.notes:
            self.terminal.note(note)
        return config

    def with_one_catalog(self, name: str, uri: str, warehouse: str | None) -> Config:
        """The configuration with a catalog of a command's options alone; raises ``InvalidConfiguration``."""
        config = self.reader().load_config(self.config_path, os.environ, Path.cwd())
        return self.reader().with_one_catalog(config, name, uri, warehouse, os.environ)

    @cached_property
    def client(self) -> Client:
        """A client of the server until the command has ended. Raises as :func:`found_server`."""
        return self.context.with_resource(_connection(self, show_api=self.show_api))

    def print_answer(self, answer: T, shown: str | Callable[[Terminal, T], None]) -> None:
        """Print an answer as JSON, or as it is shown to people."""
        if self.as_json:
            self.terminal.document(answer)
        elif isinstance(shown, str):
            self.terminal.say(shown)
        else:
            shown(self.terminal, answer)

    def print_page(
        self,
        page: Page,
        read: type[T] | Callable[[Json], T],
        columns: Sequence[Column],
        cells: Callable[[T], Sequence[str]],
        *,
        none: str,
    ) -> list[T]:
        """Print what the server has as :meth:`~icewright.terminal.cli.Terminal.page` does, and return its items.

        ``read`` is the type of an item, or a function that makes one of it.
        """
        found = [from_json(read, item) if isinstance(read, type) else read(item) for item in page.items]
        self.terminal.page(found, page.next_cursor, columns, cells, none=none)
        return found

    @cached_property
    def applied(self) -> PolicyRevision | None:
        """The policies that are applied, as the server says; None where none runs here and none is configured."""
        from icewright.model.policy.policies import PolicyRevision  # noqa: PLC0415 - `--help` stays quick

        try:
            with _connection(self, show_api=False) as client:
                return from_json(PolicyRevision, client.policies())
        except IcewrightError as error:
            if not isinstance(error.__cause__, NotFound):  # there is one, and it does not say
                self.terminal.note(f"by the configuration alone, without what may be applied: {error.message}")
            return None

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that are in effect: those that are applied, above those of the configuration."""
        return (*(() if self.applied is None else self.applied.policies.rules), *self.config.rules)


def command(function: Callable[Concatenate[Invocation, P], None]) -> Callable[..., None]:
    """A command that gets its invocation in place of typer's context, and ``--json``."""
    return _with_options(function, _AS_JSON)


def plain_command(function: Callable[Concatenate[Invocation, P], None]) -> Callable[..., None]:
    """As :func:`command`, without ``--json``: for what prints nothing that a program reads."""
    return _with_options(function)


def api_command(function: Callable[Concatenate[Invocation, P], None]) -> Callable[..., None]:
    """As :func:`command`, with ``--show-api``: for what asks the server."""
    return _with_options(function, _AS_JSON, _SHOW_API)


def _with_options(function: Callable[..., None], *options: Parameter) -> Callable[..., None]:
    signature = inspect.signature(function, eval_str=True)

    @wraps(function)
    def run(context: typer.Context, *, as_json: bool = False, show_api: bool = False, **values: Any) -> None:
        invocation: Invocation = context.obj
        invocation.context, invocation.terminal.as_json, invocation.show_api = context, as_json, show_api
        function(invocation, **values)

    own = list(signature.parameters.values())[1:]
    run.__annotations__ = {}
    signature = signature.replace(parameters=[_CONTEXT, *own, *options])
    run.__signature__ = signature  # type: ignore[attr-defined] # typer reads it in place of the annotations
    return run


@contextmanager
def _connection(invocation: Invocation, *, show_api: bool) -> Iterator[Client]:
    """A client of the server; with ``show_api`` the calls that were made are printed behind the result."""
    from icewright.api_client.client import Client  # noqa: PLC0415 - `--help` stays quick

    found = found_server(invocation.config, os.environ)
    with Client(found.url, found.token) as client:
        try:
            yield client
        finally:
            for call in client.calls if show_api else ():
                invocation.terminal.aside(str(call))


def table_name(config: Config, text: str) -> TableName:
    """The table that a person means; the only catalog that is configured here need not be named."""
    only = config.catalogs[0].name if len(config.catalogs) == 1 else None
    return TableName.parse(text, default_catalog=only)


def reads_here(invocation: Invocation) -> bool:
    """Whether a command reads tables through the catalogs of the configuration; with none, it asks the server.

    One rule for all commands that can do both. Raises ``InvalidConfiguration`` where no server is known either.
    """
    if invocation.config.catalogs:
        return True
    try:
        found_server(invocation.config, os.environ)
    except Unavailable as error:
        raise no_catalogs(invocation.config) from error
    return False


def no_catalogs(config: Config) -> InvalidConfiguration:
    """The error for a configuration without any catalog, with what was found and cannot be used."""
    others = "".join(f"; {other.name} of {other.origin} cannot be used: {other.reason}" for other in config.unusable)
    return InvalidConfiguration(
        f"no catalogs are configured{others}",
        hint="`icewright config init` writes a configuration to start from, `icewright login` names a server to ask, "
        "and `icewright demo` shows one at work",
    )


def logged_in() -> str:
    """Who is logged in. Raises ``Rejected`` where that has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:  # a container runs as a number that has no name
        raise Rejected("the approver is unknown", hint="say so: --by NAME") from error
