"""``icewright notifications``: who is told, a trial, and what did not arrive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icewright.core.errors import Rejected
from icewright.model.events.feed import Fact, FactKind
from icewright.model.plans.plans import Reason
from tests.builders.command_line import icewright, within
from tests.builders.mailbox import Mailbox, told
from tests.lakes.house import House

MINUTE_MS = 60_000


class HouseWithReceiver(House):
    """A house with a receiver."""

    def __init__(self, folder: Path) -> None:
        self.mailbox = Mailbox()
        super().__init__(folder)
        self.delivery = told(self.mailbox, self.clock)
        self.restart()

    def turn(self) -> None:
        """What the server's threads do."""
        for notifier in self.control.notifications._notifiers:
            while notifier.step():
                pass


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HouseWithReceiver]:
    with within(HouseWithReceiver(tmp_path), monkeypatch) as made:
        yield made


def test_receivers_trials_and_dead_letters(house: HouseWithReceiver) -> None:
    listed = icewright("notifications", "list", "--json").json["items"]
    assert [(one["name"], one["under"]) for one in listed] == [("team", ["lake"])]
    assert "every message arrived" in icewright("notifications", "deadletters").out
    assert icewright("notifications", "test", "team").out.startswith("team took message msg_test_")
    house.turn()
    house.mailbox.trouble = lambda: Rejected("the receiver refuses the message with status 404")
    failed = icewright("notifications", "test", "team")
    assert (failed.status, "status 404" in failed.out) == (1, True)
    assert icewright("notifications", "test", "nobody").status == 2
    house.control.tasks.feed.tell(Fact(FactKind.CATALOG_AWAY, "lake", Reason("unavailable", "no answer")), "1")
    for _ in range(5):
        house.turn()
        house.clock.advance(MINUTE_MS)
    assert "there are dead letters" in icewright("notifications", "list").out
    assert "receiver team: there are dead letters" in icewright("status").out
    (letter,) = icewright("notifications", "deadletters", "--json").json["items"]
    assert "status 404" in icewright("notifications", "deadletters").out
    house.mailbox.trouble = None
    assert "sent again" in icewright("notifications", "retry", letter["message_id"]).out
    house.turn()
    assert house.mailbox.titles[-1] == "1 catalog away"
    assert "no dead letter" in icewright("notifications", "retry", letter["message_id"]).err
    assert "receiver team" not in icewright("status").out
