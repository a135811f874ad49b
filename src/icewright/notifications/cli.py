"""``icewright notifications ...``: who is told by messages, whether that works, and what did not arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.terminal import figures as text
from icewright.terminal.cli import FOUND, Column
from icewright.terminal.invocation import AsJson, Cursor, Limit, ShowApi, begin
from icewright.terminal.lists import print_page

if TYPE_CHECKING:
    from icewright.api_client.client import Client
    from icewright.api_client.connection import Page
    from icewright.notifications.service import DeadLetter, ReceiverView

app = typer.Typer(help="Receivers of messages: list them, test one, see what did not arrive.", no_args_is_help=True)

_RECEIVERS: Final = (
    Column("receiver"),
    Column("kind"),
    Column("facts"),
    Column("under"),
    Column("owners"),
    Column("sent", is_number=True),
    Column("failed", is_number=True),
    Column("waiting", is_number=True),
    Column("dead", is_number=True),
    Column("trouble"),
)
_LETTERS: Final = (
    Column("message"),
    Column("receiver"),
    Column("composed"),
    Column("tried", is_number=True),
    Column("says"),
    Column("did not arrive because"),
)


@app.command("list")
def list_receivers(context: typer.Context, *, as_json: AsJson = False, show_api: ShowApi = False) -> None:
    """List the receivers of messages, what they receive, and the state of delivery."""
    from icewright.notifications.service import ReceiverView  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=as_json)
    none = "no receivers: see [receivers.NAME] of the configuration"

    def ask(client: Client) -> Page:
        return client.receivers()

    print_page(invocation, ask, ReceiverView, _RECEIVERS, _cells, none=none, show_api=show_api)


@app.command("test")
def try_out(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `icewright notifications list` shows it.")],
    *,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Send a message to a receiver that says nothing. Exit status 1 where it does not arrive."""
    from icewright.notifications.service import Trial  # noqa: PLC0415 - see above
    from icewright.terminal.connection import server  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=as_json)
    with server(invocation, show_api=show_api) as client:
        trial = from_json(Trial, client.test_receiver(name))
    if as_json:
        invocation.terminal.document(trial)
    elif trial.has_arrived:
        invocation.terminal.say(f"{name} took message {trial.message_id}")
    else:
        invocation.terminal.say(f"{name} did not take the message: {trial.problem}")
    if not trial.has_arrived:
        raise typer.Exit(FOUND)


@app.command()
def deadletters(
    context: typer.Context,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """List messages that were given up, the latest first, and why."""
    from icewright.notifications.service import DeadLetter  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=as_json)
    none = "every message arrived so far"

    def ask(client: Client) -> Page:
        return client.dead_letters(limit=limit, cursor=cursor)

    print_page(invocation, ask, DeadLetter, _LETTERS, _letter_cells, none=none, show_api=show_api)


@app.command()
def retry(
    context: typer.Context,
    message_id: Annotated[str, typer.Argument(metavar="MESSAGE_ID", help="Of a dead letter.")],
    *,
    as_json: AsJson = False,
    show_api: ShowApi = False,
) -> None:
    """Send a message again that was given up."""
    from icewright.terminal.connection import server  # noqa: PLC0415 - `--help` stays quick

    invocation = begin(context, as_json=as_json)
    with server(invocation, show_api=show_api) as client:
        resent = client.retry_dead_letter(message_id)
    if as_json:
        invocation.terminal.document(resent)
    else:
        invocation.terminal.say(f"{message_id} is sent again to {resent['receiver']}, after what waits")


def _cells(one: ReceiverView) -> tuple[str, ...]:
    kinds = ", ".join(kind.value for kind in one.facts)
    counts = (text.number(one.sent), text.number(one.failed), text.number(one.waiting), text.number(one.dead_letters))
    under, owners = ", ".join(one.under) or "everything", ", ".join(one.owners) or "all"
    return one.name, one.kind.value, kinds, under, owners, *counts, one.trouble or "-"


def _letter_cells(one: DeadLetter) -> tuple[str, ...]:
    composed = text.instant(one.composed_at)
    return one.message_id, one.receiver, composed, text.number(one.attempts), one.title, one.problem
