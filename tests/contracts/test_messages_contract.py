"""What every store of messages must do, sentence by sentence of the port."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from icewright.core.errors import Conflict, NotAllowed, NotFound
from icewright.model.actions.actions import ActionKind
from icewright.model.events.feed import Fact, FactKind, FeedEntry
from icewright.model.events.notifications import (
    RATE_MS,
    Mention,
    Message,
    MessageState,
    ReceiverFigures,
    ReceiverState,
    StoredMessage,
)
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from icewright.notifications.message_store import SqlMessages
from tests.contracts.samples import HOSTILE_PARTS, table_id
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none


@pytest.fixture
def store(stores: Stores) -> SqlMessages:
    return stores.messages()


def message(number: int, receiver: str = "team", *, first_at: int = 5, name: str = "t", owner: str = "me") -> Message:
    reason = Reason("verified", "12 files became 1", {"data_files_fewer": 11, "share": 0.5, "executors": "merge"})
    fact = Fact(
        FactKind.SUCCEEDED,
        "lake",
        reason,
        table_id(1),
        TableName("lake", ("db",), name),
        "task-1",
        "plan-1",
        ActionKind.REWRITE_DATA_FILES,
        1,
    )
    mentions = (Mention(FeedEntry(number, first_at, fact), owner, 2),)
    return Message(f"msg_{number}", receiver, owner, mentions, {"succeeded": 4}, 3, number, first_at, is_behind=True)


def waiting(store: SqlMessages, receiver: str = "team") -> StoredMessage:
    return not_none(store.state(receiver).first)


def ids(found: Sequence[StoredMessage]) -> list[str]:
    return [one.message.message_id for one in found]


class TestCursor:
    def test_a_receiver_is_nowhere_before_the_first_look(self, store: SqlMessages, clock: ManualClock) -> None:
        assert store.state("team") == ReceiverState(clock.now())
        assert store.figures() == {}

    def test_it_moves_together_with_the_messages_and_only_from_where_it_was(self, stores: Stores) -> None:
        store, other = stores.messages(), stores.messages()
        store.compose("team", None, 7, ())
        assert other.state("team").position == 7
        other.compose("team", 7, 2**40, [message(1)])
        for expected in (None, 6, 7):
            with pytest.raises(Conflict):
                store.compose("team", expected, 9, [message(2)])
        assert (store.state("team").position, waiting(store).message) == (2**40, message(1))
        store.compose("team", 2**40, 2**40 + 1, ())

    def test_each_receiver_has_its_own(self, store: SqlMessages) -> None:
        store.compose("team", None, 7, [message(1)])
        store.compose("other", None, 3, [message(2, "other")])
        assert (store.state("team").position, store.state("other").position) == (7, 3)
        assert ids([waiting(store, "other")]) == ["msg_2"]
        store.sent("msg_1")
        assert store.state("team").first is None
        assert ids([waiting(store, "other")]) == ["msg_2"]

    def test_what_cannot_be_kept_moves_nothing(self, store: SqlMessages) -> None:
        store.compose("team", None, 1, [message(1)])
        with pytest.raises(Exception):  # noqa: B017, PT011 - what an implementation makes of a mistake of ours
            store.compose("team", 1, 2, [message(2), message(1)])
        assert store.state("team").position == 1
        store.sent("msg_1")
        assert store.state("team").first is None


class TestMessages:
    def test_they_wait_in_their_order_until_they_are_sent(self, stores: Stores, clock: ManualClock) -> None:
        store = stores.messages()
        composed_at = clock.now()
        store.compose("team", None, 2, [message(1), message(2)])
        first = waiting(stores.messages())
        assert (first.message, first.state) == (message(1), MessageState.WAITING)
        assert (first.composed_at, first.next_at, first.attempts, first.problem) == (composed_at, composed_at, 0, "")
        clock.advance(10)
        store.sent("msg_1")
        store.sent("msg_1")
        assert ids([waiting(store)]) == ["msg_2"]
        assert waiting(store).number > first.number
        store.sent("msg_2")
        assert store.state("team").first is None
        figures = store.figures()["team"]
        assert (figures.sent, figures.failed, figures.waiting) == (2, 0, 0)

    def test_one_that_fails_waits_and_stays_the_first(self, store: SqlMessages, clock: ManualClock) -> None:
        store.compose("team", None, 2, [message(1), message(2)])
        store.failed("msg_1", "status 503", clock.now() + 70)
        store.failed("msg_1", "status \x00\ud800 504", clock.now() + 90)
        first = waiting(store)
        assert (first.message.message_id, first.attempts, first.next_at) == ("msg_1", 2, clock.now() + 90)
        assert (first.problem, first.state) == ("status \x00\ud800 504", MessageState.WAITING)
        assert store.dead_letters(limit=9) == []

    def test_one_that_is_given_up_is_a_dead_letter(self, store: SqlMessages, clock: ManualClock) -> None:
        store.compose("team", None, 3, [message(n) for n in (1, 2, 3)])
        for number in (1, 2):
            store.failed(f"msg_{number}", "status 400", clock.now() + 5)
            clock.advance(10)
            store.failed(f"msg_{number}", "status 410", None)
        assert ids([waiting(store)]) == ["msg_3"]
        dead = store.dead_letters(limit=9)
        assert ids(dead) == ["msg_2", "msg_1"]
        assert (dead[0].state, dead[0].attempts, dead[0].problem) == (MessageState.DEAD, 2, "status 410")
        assert dead[0].ended_at == clock.now()
        assert ids(store.dead_letters(limit=1)) == ["msg_2"]
        assert ids(store.dead_letters(limit=9, before=dead[0].number)) == ["msg_1"]
        store.sent("msg_1")  # by a server that was thought dead
        store.failed("msg_1", "again", clock.now())
        assert ids(store.dead_letters(limit=9)) == ["msg_2", "msg_1"]
        figures = store.figures()["team"]
        assert (figures.sent, figures.failed, figures.given_up, figures.dead_letters) == (0, 4, 2, 2)

    def test_a_dead_letter_is_sent_again_behind_what_waits(self, store: SqlMessages, clock: ManualClock) -> None:
        store.compose("team", None, 2, [message(1), message(2)])
        store.failed("msg_1", "status 400", None)
        with pytest.raises(NotAllowed):
            store.retry("msg_2")
        with pytest.raises(NotFound):
            store.retry("msg_9")
        clock.advance(10)
        again = store.retry("msg_1")
        assert (again.message, again.state, again.attempts) == (message(1), MessageState.WAITING, 0)
        assert (again.composed_at, again.next_at) == (clock.now(), clock.now())
        assert ids([waiting(store)]) == ["msg_2"]
        store.sent("msg_2")
        assert waiting(store) == again
        assert store.dead_letters(limit=9) == []

    def test_t3_names_of_strangers_come_back_as_they_are(self, store: SqlMessages) -> None:
        for number, part in enumerate(HOSTILE_PARTS):
            store.compose("team", None if number == 0 else number - 1, number, [message(number, name=part, owner=part)])
            assert waiting(store).message == message(number, name=part, owner=part)
            store.sent(f"msg_{number}")


class TestFigures:
    def test_what_was_composed_lately_is_counted(self, store: SqlMessages, clock: ManualClock) -> None:
        store.compose("team", None, 2, [message(1), message(2)])
        store.sent("msg_1")
        clock.advance(RATE_MS - 1)
        store.compose("team", 2, 3, [message(3)])
        store.compose("other", None, 3, [message(4, "other")])
        assert store.state("team").composed == 3
        clock.advance(1)
        assert store.state("team").composed == 1

    def test_how_long_facts_wait_and_when_somebody_looked(self, store: SqlMessages, clock: ManualClock) -> None:
        store.compose("team", None, 2, [message(1, first_at=70), message(2, first_at=60)])
        looked_at = clock.now()
        clock.advance(5)
        figures = ReceiverFigures(position=2, looked_at=looked_at, waiting=2, waiting_since=60)
        assert store.figures() == {"team": figures}
        store.sent("msg_2")
        assert store.figures()["team"].waiting_since == 70

    def test_old_messages_are_forgotten_and_counts_stay(self, store: SqlMessages, clock: ManualClock) -> None:
        store.compose("team", None, 4, [message(n) for n in (1, 2, 3, 4)])
        for number in (1, 2):
            store.sent(f"msg_{number}")
        store.failed("msg_3", "status 400", None)
        clock.advance(10)
        now = clock.now()
        assert store.prune(now, now - 10, 1) == 1
        assert store.prune(now, now - 10, 9) == 1
        assert store.prune(now, now - 10, 9) == 0
        assert ids(store.dead_letters(limit=9)) == ["msg_3"]
        assert store.prune(now, now, 9) == 1
        assert store.dead_letters(limit=9) == []
        figures = store.figures()["team"]
        assert (figures.sent, figures.given_up, figures.waiting) == (2, 1, 1)
