"""Who is told by messages, how that goes, and messages that did not arrive."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Response

from icewright.identity.authorization import On, needs
from icewright.model.access.permissions import Permission
from icewright.notifications.service import DeadLetter, Notifications, ReceiverView, Trial, dead_letter
from icewright.web.deps import Service
from icewright.web.messages import Cursor, Limit, decode_cursor, first_page, render
from icewright.web.schema import operation, page_of

router = APIRouter(prefix="/notifications", tags=["feed"])


@dataclass(frozen=True, slots=True)
class Receivers:
    """All receivers of this server's configuration, without their addresses and secrets."""

    items: tuple[ReceiverView, ...]


@dataclass(frozen=True, slots=True)
class Resent:
    """A message that waits to be sent again."""

    message_id: str
    receiver: str


@router.get("", dependencies=[needs(Permission.READ, On.EVERYTHING)], **operation(Receivers))
def list_receivers(notifications: Service[Notifications]) -> Response:
    """The receivers of messages, what they receive, and the state of delivery."""
    return render(Receivers(tuple(notifications.views())))


@router.get("/dead-letters", dependencies=[needs(Permission.READ, On.EVERYTHING)], **operation(page_of(DeadLetter)))
def list_dead_letters(notifications: Service[Notifications], limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Messages that were given up, the latest first, for as long as they are kept."""
    found = notifications.store.dead_letters(limit=limit + 1, before=decode_cursor(int, cursor))
    return first_page(found, limit, lambda one: one.number, dead_letter)


@router.post(
    "/dead-letters/{message_id}/retry",
    dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING)],
    **operation(Resent, status=202, problems={404: "No such message.", 409: "It is no dead letter."}),
)
def retry_dead_letter(notifications: Service[Notifications], message_id: str) -> Response:
    """Send a message again that was given up, after those that wait."""
    stored = notifications.store.retry(message_id)
    return render(Resent(stored.message.message_id, stored.message.receiver), 202)


@router.post(
    "/receivers/{name}/test",
    dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING)],
    **operation(Trial, problems={404: "No such receiver."}),
)
def test_receiver(notifications: Service[Notifications], name: str) -> Response:
    """Send a message to a receiver that says nothing, from this server, and say whether it arrived."""
    return render(notifications.test(name))
