"""``icewright notifications ...``: who is told by messages, whether that works, and what did not arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from icewright.core.codec import from_json
from icewright.terminal import figures as text
from icewright.terminal.cli import FOUND
from icewright.terminal.invocation import Cursor, Invocation, Limit, api_command
from icewright.terminal.tables import headings

if TYPE_CHECKING:
    from icewright.notifications.service import DeadLetter, ReceiverView

app = typer.Typer(help="Receivers of messages: list them, test one, see what did not arrive.", no_args_is_help=True)

_RECEIVERS: Final = headings(
    "receiver",
    "kind",
    "facts",
    "under",
    "owners",
    "#sent",
    "#failed",
    "#waiting",
    "#dead",
    "trouble",
    drop=("owners", "sent", "under", "facts", "kind"),
    below=("trouble",),
)
_LETTERS: Final = headings(
    "message",
    "receiver",
    "composed",
    "#tried",
    "says",
    "did not arrive because",
    drop=("composed",),
    below=("did not arrive because", "says"),
)


@app.command("list")
@api_command
def list_receivers(invocation: Invocation) -> None:
    """List the receivers of messages, what they receive, and the state of delivery."""
    from icewright.notifications.service import ReceiverView  # noqa: PLC0415 - `--help` stays quick

    none = "no receivers: see [receivers.NAME] of the configuration"
    invocation.print_page(invocation.client.receivers(), ReceiverView, _RECEIVERS, _cells, none=none)


@app.command("test")
@api_command
def try_out(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `icewright notifications list` shows it.")],
) -> None:
    """Send a message to a receiver that says nothing. Exit status 1 where it does not arrive."""
    from icewright.notifications.service import Trial  # noqa: PLC0415 - see above

    trial = from_json(Trial, invocation.client.test_receiver(name))
    if invocation.as_json:
        invocation.terminal.document(trial)
    elif trial.has_arrived:
        invocation.terminal.say(f"{name} took message {trial.message_id}")
    else:
        invocation.terminal.say(f"{name} did not take the message: {trial.problem}")
    if not trial.has_arrived:
        raise typer.Exit(FOUND)


@app.command()
@api_command
def deadletters(invocation: Invocation, *, limit: Limit = 50, cursor: Cursor = None) -> None:
    """List messages that were given up, the latest first, and why."""
    from icewright.notifications.service import DeadLetter  # noqa: PLC0415 - `--help` stays quick

    none = "every message arrived so far"
    invocation.print_page(
        invocation.client.dead_letters(limit=limit, cursor=cursor), DeadLetter, _LETTERS, _letter_cells, none=none
    )


@app.command()
@api_command
def retry(
    invocation: Invocation, message_id: Annotated[str, typer.Argument(metavar="MESSAGE_ID", help="Of a dead letter.")]
) -> None:
    """Send a message again that was given up."""
    resent = invocation.client.retry_dead_letter(message_id)
    invocation.print_answer(resent, f"{message_id} is sent again to {resent['receiver']}, after what waits")


def _cells(one: ReceiverView) -> tuple[str, ...]:
    kinds = ", ".join(kind.value for kind in one.facts)
    counts = (text.number(one.sent), text.number(one.failed), text.number(one.waiting), text.number(one.dead_letters))
    under, owners = ", ".join(one.under) or "everything", ", ".join(one.owners) or "all"
    return one.name, one.kind.value, kinds, under, owners, *counts, one.trouble or "-"


def _letter_cells(one: DeadLetter) -> tuple[str, ...]:
    composed = text.instant(one.composed_at)
    return one.message_id, one.receiver, composed, text.number(one.attempts), one.title, one.problem
