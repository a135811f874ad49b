"""Receivers over HTTP: how they are, a trial, and messages that did not arrive."""

from __future__ import annotations

import pytest

from icewright.api_client.client import Client
from icewright.core.errors import NotAllowed, NotFound, Rejected, Unavailable
from icewright.core.times import Instant
from icewright.model.events.feed import Fact, FactKind
from icewright.model.plans.plans import Reason
from icewright.notifications.service import LATE_MS, SILENT_MS, Notifications
from tests.builders.mailbox import Mailbox, told
from tests.builders.served import TOKEN, V1, Served, at_a_port, problem
from tests.doubles.clock import ManualClock

MINUTE_MS = 60_000


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def served(mailbox: Mailbox) -> Served:
    clock = ManualClock()
    return Served(clock, delivery=told(mailbox, clock))


def turn(notifications: Notifications) -> None:
    for notifier in notifications._notifiers:
        while notifier.step():
            pass


def away(served: Served) -> Instant:
    """Something happened that the receiver will be told."""
    feed = served.control.tasks.feed
    feed.tell(Fact(FactKind.CATALOG_AWAY, "lake", Reason("unavailable", "no answer")), f"away-{feed.last()}")
    return served.clock.now()


def dead_letter(served: Served, mailbox: Mailbox) -> str:
    turn(served.control.notifications)
    mailbox.trouble = lambda: Rejected("the receiver refuses the message with status 400")
    away(served)
    for _ in range(5):
        turn(served.control.notifications)
        served.clock.advance(MINUTE_MS)
    (item,) = served.get("/notifications/dead-letters")["items"]
    return str(item["message_id"])


def test_receivers_and_how_they_are(served: Served, mailbox: Mailbox) -> None:
    turn(served.control.notifications)
    (one,) = served.get("/notifications")["items"]
    assert (one["name"], one["kind"], one["under"], one["sent"], one["trouble"]) == ("team", "webhook", ["lake"], 0, "")
    assert served.get("/status")["receivers"] == [{"name": "team", "trouble": ""}]
    mailbox.trouble = lambda: Unavailable("away")
    away(served)
    turn(served.control.notifications)
    served.clock.advance(LATE_MS + 1)
    (one,) = served.get("/notifications")["items"]
    assert (one["failed"], one["waiting"], one["trouble"]) == (1, 1, "messages do not arrive")
    assert served.get("/status")["receivers"] == [{"name": "team", "trouble": "messages do not arrive"}]
    parts = {part["name"]: part for part in _ready(served)}
    assert (parts["receiver team"]["is_well"], parts["receiver team"]["is_required"]) == (False, False)


def _ready(served: Served) -> list[dict[str, object]]:
    served.control.loop._round_ended_at = served.clock.now()
    return list(served.get("/readyz")["parts"])


def test_figures(served: Served, mailbox: Mailbox) -> None:
    turn(served.control.notifications)
    away(served)
    turn(served.control.notifications)
    mailbox.trouble = lambda: Unavailable("away")
    away(served)
    turn(served.control.notifications)
    served.clock.advance(MINUTE_MS)
    said = served.http.get(f"{V1}/metrics").text
    for line in (
        'icewright_notifications_total{receiver="team",result="sent"} 1.0',
        'icewright_notifications_total{receiver="team",result="failed"} 1.0',
        'icewright_notifications_total{receiver="team",result="given-up"} 0.0',
        'icewright_notifications_lag_seconds{receiver="team"} 60.0',
    ):
        assert line in said
    mailbox.trouble = None
    turn(served.control.notifications)
    assert 'icewright_notifications_lag_seconds{receiver="team"} 0.0' in served.http.get(f"{V1}/metrics").text
    served.clock.advance(2 * SILENT_MS)  # and nobody looks
    assert 'icewright_notifications_lag_seconds{receiver="team"} 6' in served.http.get(f"{V1}/metrics").text


def test_a_trial_says_whether_it_arrived(served: Served, mailbox: Mailbox) -> None:
    assert served.post("/notifications/receivers/team/test")["has_arrived"]
    assert [one.document["type"] for one in mailbox.got] == ["icewright.test"]
    mailbox.trouble = lambda: Unavailable("the receiver does not answer: ConnectTimeout")
    said = served.post("/notifications/receivers/team/test")
    assert (said["has_arrived"], said["problem"]) == (False, "the receiver does not answer: ConnectTimeout")
    problem(served.http.post(f"{V1}/notifications/receivers/nobody/test"), 404, "not-found")


def test_dead_letters_are_listed_and_sent_again(served: Served, mailbox: Mailbox) -> None:
    message_id = dead_letter(served, mailbox)
    (item,) = served.get("/notifications/dead-letters")["items"]
    assert (item["attempts"], item["title"]) == (3, "icewright: 1 catalog away")
    assert item["problem"] == "the receiver refuses the message with status 400"
    assert "no answer" in item["text"]
    mailbox.trouble = None
    path = f"{V1}/notifications/dead-letters/{message_id}/retry"
    assert served.http.post(path).json() == {"message_id": message_id, "receiver": "team"}
    problem(served.http.post(path), 409, "not-allowed")
    problem(served.http.post(f"{V1}/notifications/dead-letters/x/retry"), 404, "not-found")
    turn(served.control.notifications)
    assert [one.message_id for one in mailbox.got] == [message_id]
    assert served.get("/notifications/dead-letters")["items"] == []


def test_t12_sending_again_and_trials_are_in_the_audit(served: Served, mailbox: Mailbox) -> None:
    message_id = dead_letter(served, mailbox)
    served.http.post(f"{V1}/notifications/dead-letters/{message_id}/retry")
    served.post("/notifications/receivers/team/test")
    said = [str(entry) for entry in served.audit.latest(limit=2)]
    assert "/notifications/receivers/{name}/test" in said[0]
    assert message_id in said[1]


def test_where_nobody_is_told() -> None:
    served = Served()
    assert served.get("/notifications")["items"] == []
    assert served.get("/notifications/dead-letters")["items"] == []
    assert "receiver=" not in served.http.get(f"{V1}/metrics").text


def test_the_client_speaks_all_of_it(served: Served, mailbox: Mailbox) -> None:
    message_id = dead_letter(served, mailbox)
    with at_a_port(served.control) as url, Client(url, TOKEN) as client:
        assert [one["name"] for one in client.receivers().items] == ["team"]
        assert client.test_receiver("team")["problem"].endswith("status 400")
        with pytest.raises(NotFound):
            client.test_receiver("a/b")
        assert [one["message_id"] for one in client.dead_letters(limit=1).items] == [message_id]
        client.retry_dead_letter(message_id)
        with pytest.raises(NotAllowed):
            client.retry_dead_letter(message_id)
