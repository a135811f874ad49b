"""``icewright token ...``, ``login`` and ``logout``: who may come in to a server, and by which token we do."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.core.errors import IcewrightError, InvalidMessage, NotFound, Unreadable
from icewright.model.access.identity import CODE_PREFIX, PROGRAM_PREFIX, GivenSession, GivenToken, NewToken, TokenRecord
from icewright.model.access.permissions import Role
from icewright.terminal import figures as text
from icewright.terminal.address import ServerAddress, read_address, remove_address, write_address
from icewright.terminal.cli import Terminal
from icewright.terminal.found_server import TOKEN_VARIABLE
from icewright.terminal.invocation import Cursor, Invocation, Limit, api_command, command
from icewright.terminal.tables import headings

app = typer.Typer(help="Tokens for programs and people: create, list, revoke.", no_args_is_help=True)

_LIFETIME: Final = re.compile(r"([1-9][0-9]{0,5})([hd])\Z", re.ASCII)
_UNITS_MS: Final = {"h": 3_600_000, "d": 24 * 3_600_000}
_TOKENS: Final = headings(
    "name",
    "begins",
    "may",
    "expires",
    "last used",
    "created by",
    drop=("created by", "last used", "begins"),
    below=("may",),
)


@app.command()
@api_command
def create(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called: a-z, 0-9 and . _ -.")],
    *,
    role: Annotated[
        list[Role] | None, typer.Option("--role", help="What it may do, viewer by default; several are possible.")
    ] = None,
    scope: Annotated[
        list[str],
        typer.Option("--scope", metavar="SCOPE", help="Where: catalog, catalog.namespace or '*' for all; repeatable."),
    ],
    expires: Annotated[
        str, typer.Option("--expires", help="After so many days or hours (90d, 12h), or never.")
    ] = "90d",
) -> None:
    """Create a token and print it: the only time that it is shown."""
    new = NewToken(name, tuple(role or (Role.VIEWER,)), tuple(scope), _lifetime(expires))
    given = from_json(GivenToken, invocation.client.create_token(new))
    if invocation.as_json:
        invocation.terminal.document(given)
        return
    invocation.terminal.say(given.token)
    invocation.terminal.note(f"{name}: {_may(given.record)}; expires {_expiry(given.record)}; it is not shown again")


@app.command("list")
@api_command
def list_tokens(invocation: Invocation, *, limit: Limit = 50, cursor: Cursor = None) -> None:
    """List tokens with what they permit, also those that are not valid any more."""
    none = "there are no tokens but the server's own"
    invocation.print_page(invocation.client.tokens(limit=limit, cursor=cursor), TokenRecord, _TOKENS, _cells, none=none)


@app.command()
@api_command
def revoke(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `icewright token list` shows it.")],
) -> None:
    """Revoke a token, effective at once, on all servers."""
    revoked = from_json(TokenRecord, invocation.client.revoke_token(name))
    invocation.print_answer(revoked, f"{name} opens nothing any more, since {text.instant(revoked.revoked_at)}")


@command
def login(
    invocation: Invocation,
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="The server, where it is not the one of this machine.")
    ] = None,
    *,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="Read the token from there instead of asking.")
    ] = None,
) -> None:
    """Log in: to the server at URL for later commands, or without one, by a one-time link, to its page.

    The token comes from --token-file, from the environment variable ICEWRIGHT_TOKEN, or is asked for. Where people log
    in by a provider, a browser on any machine shows a code to paste in its place, which opens a session of 12 hours.
    It is kept in the state directory, in a file for its owner alone, until `icewright logout`.
    """
    from icewright.api_client.client import Client  # noqa: PLC0415 - `--help` stays quick

    terminal = invocation.terminal
    if url is None:
        client = invocation.client
        code = client.login_code()
        link = code.get("link") or f"{client.url}{code['path']}"
        if invocation.as_json:
            terminal.document({"link": link})
        else:
            terminal.say(f"Open once in a browser, within 15 minutes: {link}")
        return
    token = _read(token_file) if token_file is not None else os.environ.get(TOKEN_VARIABLE)
    if not token:
        terminal.aside(f"A token, or, where people log in by a provider, the code of {url.rstrip('/')}/login/program")
        token = typer.prompt("Token or code", hide_input=True, err=True).strip()
    path = invocation.config.server.login_file
    former = _kept(path)
    is_new = token.startswith(CODE_PREFIX)
    if is_new:
        with Client(url, token) as client:
            token = from_json(GivenSession, client.open_session(token)).token
    address = ServerAddress(url.rstrip("/"), token, os.getpid())
    try:
        with Client(url, token) as client:
            me = client.me()
        write_address(path, address)
    except BaseException:
        if is_new:
            _end(address, terminal)  # nobody would have its secret
        raise
    if former is not None and former.token != token:
        _end(former, terminal)
    if invocation.as_json:
        terminal.document({"url": url, "name": me["name"], "permissions": me["permissions"]})
    else:
        shown = f"{me['shown']}, {me['name']}" if me["shown"] else me["name"]
        terminal.say(f"logged in to {url} as {shown}: {', '.join(me['permissions'])}")


@command
def logout(invocation: Invocation) -> None:
    """Forget the server and the token of `icewright login URL`, and end the session where it was one.

    A token stays valid: see `icewright token revoke`.
    """
    path = invocation.config.server.login_file
    was_in = path.exists()
    if was_in:
        address = read_address(path)
        _end(address, invocation.terminal)
        remove_address(path, address)
    invocation.print_answer({"logged_out": was_in}, "logged out" if was_in else "no session was open")


def _kept(path: Path) -> ServerAddress | None:
    """What an earlier log-in left, None where nothing did that can be trusted: it is replaced."""
    try:
        return read_address(path)
    except (NotFound, Unreadable):
        return None


def _end(address: ServerAddress, terminal: Terminal) -> None:
    """End the session of a program at its server; one that does not answer ends it after 12 hours by itself."""
    from icewright.api_client.client import Client  # noqa: PLC0415 - `--help` stays quick

    if not address.token.startswith(PROGRAM_PREFIX):
        return
    try:
        with Client(address.url, address.token) as client:
            client.log_out()
    except IcewrightError as error:
        terminal.aside(f"the session was not ended at {address.url}: {error.message}")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"no token in {path}: {error}") from error


def _lifetime(said: str) -> int | None:
    if said == "never":
        return None
    found = _LIFETIME.match(said)
    if found is None:
        raise InvalidMessage(f"--expires {said!r} is no time", hint="write 90d, 12h or never")
    return int(found[1]) * _UNITS_MS[found[2]]


def _may(token: TokenRecord) -> str:
    return ", ".join(f"{grant.role} on {grant.scope}" for grant in token.grants)


def _expiry(token: TokenRecord) -> str:
    if token.revoked_at is not None:
        return f"revoked {text.instant(token.revoked_at)}"
    return "never" if token.expires_at is None else text.instant(token.expires_at)


def _cells(token: TokenRecord) -> tuple[str, ...]:
    used = text.instant(token.last_used_at)
    return token.name, token.hint, _may(token), _expiry(token), used, token.created_by
