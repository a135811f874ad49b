"""``icewright session ...``: who is logged in, to the page or on the command line, and ending that at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.core.errors import InvalidMessage
from icewright.model.access.identity import EndedSessions, SessionView
from icewright.terminal import figures as text
from icewright.terminal.invocation import Cursor, Invocation, Limit, api_command
from icewright.terminal.tables import headings

if TYPE_CHECKING:
    pass

app = typer.Typer(help="Who is logged in, to the page or with a program: list them, end that.", no_args_is_help=True)

_SESSIONS: Final = headings(
    "session",
    "who",
    "logged in by",
    "since",
    "last used",
    "expires",
    "may",
    drop=("since", "logged in by", "expires", "last used"),
    below=("may",),
)
Own = Annotated[bool, typer.Option("--own", help="Only your own: for that you need not administer anything.")]
Person = Annotated[
    str | None,
    typer.Option("--person", metavar="SUBJECT", help="Of this one: the provider's name for them, or as listed."),
]


@app.command("list")
@api_command
def list_sessions(
    invocation: Invocation, *, person: Person = None, own: Own = False, limit: Limit = 50, cursor: Cursor = None
) -> None:
    """List who is logged in, the latest first, and what that permits by now."""
    if own and person is not None:
        raise InvalidMessage("list the sessions of a person, or your own", hint="leave one of the two out")
    invocation.print_page(
        invocation.client.sessions(own=own, name=person, limit=limit, cursor=cursor),
        SessionView,
        _SESSIONS,
        _cells,
        none="no session is open",
    )


@app.command()
@api_command
def end(
    invocation: Invocation,
    session_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="As `icewright session list` shows it.")
    ] = None,
    *,
    person: Person = None,
    own: Own = False,
) -> None:
    """Log out, effective at once, on all servers: one session, or all of a person's, or all your own.

    A person may log in again as long as the provider admits them: lock them out there first. Tokens are revoked by
    `icewright token revoke`.
    """
    if (session_id is not None) + (person is not None) + own != 1:
        raise InvalidMessage("say which sessions are to end", hint="one ID, or --person SUBJECT, or --own")
    client = invocation.client
    answer = client.end_sessions(person) if session_id is None else client.end_session(session_id)
    ended = from_json(EndedSessions, answer)
    if invocation.as_json:
        invocation.terminal.document(ended)
        return
    for one in ended.sessions:
        invocation.terminal.say(f"{one.session_id} ended: {_who(one)}, logged in since {text.instant(one.begun_at)}")
    if ended.codes:
        invocation.terminal.say(f"{text.count(ended.codes, 'one-time code')} that were unused: void now")
    elif not ended.sessions:
        invocation.terminal.say("you have no session")


def _who(session: SessionView) -> str:
    return f"{session.name} ({session.shown})" if session.shown else session.name


def _cells(session: SessionView) -> tuple[str, ...]:
    may = ", ".join(f"{grant.role} on {grant.scope}" for grant in session.grants) or "nothing any more"
    used, expires = text.instant(session.last_used_at), text.instant(session.expires_at)
    since = text.instant(session.begun_at)
    return session.session_id, _who(session), session.logged_in_by.value, since, used, expires, may
