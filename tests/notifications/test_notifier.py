"""One receiver, told from the feed: when, of what, once at least, and never in anybody's way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from icewright.core.errors import Rejected, StoreUnavailable, Unavailable
from icewright.feed.sql import SqlFeed
from icewright.model.events.feed import Fact, FactKind
from icewright.model.events.notifications import Message, Receiver, ReceiverKind
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Reason
from icewright.model.policy.policies import NamedRule, NewRevision, Policies, RuleMatch
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.notifier import BACK_OFF_MS, FACTS_AT_ONCE, GIVE_UP_MS, NOTED_MS, REFUSALS_MAX, Notifier
from icewright.notifications.owners import KNOWN_FOR_MS, Owners
from icewright.notifications.port import TryLater
from icewright.notifications.service import LATE_MS, SILENT_MS, MessageDelivery, Notifications
from icewright.policy.rules.sql import SqlPolicies
from icewright.policy.source import PolicySource
from icewright.ports.store import TableRecord
from icewright.work.store.table_store import SqlTableStore
from tests.builders.mailbox import Mailbox
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store
from tests.narrowing import not_none

MINUTE_MS = 60_000
INTERVAL_MS = 5 * MINUTE_MS
HOUR_MS = 60 * MINUTE_MS


class Notified:
    """A feed, receivers and the parts between."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        store = new_store()
        self.feed = SqlFeed(store, self.clock)
        self.tables = SqlTableStore(store, self.clock)
        self.policies = SqlPolicies(store, self.clock)
        self.store = SqlMessages(store, self.clock)
        self.mailbox = Mailbox()
        self._said = 0

    def notifier(self, *, facts: tuple[FactKind, ...] = tuple(FactKind), **settings: object) -> Notifier:
        """A notifier of the one receiver: a process of its own each time."""
        receiver = Receiver("team", ReceiverKind.WEBHOOK, facts, **settings)  # type: ignore[arg-type]  # as tests say
        return Notifier(receiver, self.mailbox, self.store, self.feed, self.owners)

    @property
    def owners(self) -> Owners:
        return Owners(self.tables, PolicySource((), self.policies), self.clock)

    def tell(self, kind: FactKind = FactKind.PARKED, table: str = "orders", catalog: str = "lake") -> None:
        self._said += 1
        name = TableName(catalog, ("sales",), table)
        reason = Reason(f"reason-{self._said}", "so it is")
        self.feed.tell(Fact(kind, catalog, reason, TableId(catalog, table), name), f"key-{self._said}")

    def owned(self, table: str, owner: str | None, **properties: str) -> None:
        name, said = TableName("lake", ("sales",), table), {} if owner is None else {"owner": owner}
        record = TableRecord(
            TableId("lake", table),
            name,
            "file:///m",
            None,
            2,
            0,
            0,
            None,
            0,
            None,
            None,
            properties={**said, **properties},
        )
        self.tables.save_record(record)


@pytest.fixture
def told() -> Notified:
    return Notified()


def begun(told: Notified, **settings: object) -> Notifier:
    """A notifier that has looked once, so that all that happens from now on is told."""
    notifier = told.notifier(**settings)  # type: ignore[arg-type]  # as the test says
    assert not notifier.step()
    return notifier


def run(notifier: Notifier) -> None:
    while notifier.step():
        pass


class TestWhen:
    def test_what_happened_before_the_first_look_is_not_told(self, told: Notified) -> None:
        told.tell()
        notifier = begun(told)
        told.clock.advance(INTERVAL_MS)
        run(notifier)
        assert told.mailbox.got == []

    def test_facts_wait_for_others_to_share_their_message(self, told: Notified) -> None:
        notifier = begun(told)
        told.tell(table="a")
        for _ in range(4):
            told.clock.advance(MINUTE_MS)
            told.tell(table="b")
            run(notifier)
        assert told.mailbox.got == []
        told.clock.advance(MINUTE_MS)
        run(notifier)
        assert told.mailbox.titles == ["5 parked"]
        run(notifier)
        assert len(told.mailbox.got) == 1

    def test_data_at_risk_waits_for_none(self, told: Notified) -> None:
        notifier = begun(told)
        told.tell(FactKind.PARKED)
        run(notifier)
        told.tell(FactKind.DATA_AT_RISK)
        run(notifier)
        assert told.mailbox.titles == ["1 DATA AT RISK, 1 parked"]

    def test_only_what_is_asked_for(self, told: Notified) -> None:
        notifier = begun(told, facts=(FactKind.FAILED,), under=(("lake", "sales", "a"),), interval_ms=0)
        for table in ("a", "b"):
            for kind in (FactKind.FAILED, FactKind.PARKED):
                told.tell(kind, table)
        run(notifier)
        assert told.mailbox.titles == ["1 failed permanently"]

    def test_no_more_messages_in_an_hour_than_wanted_and_then_all_in_one(self, told: Notified) -> None:
        notifier = begun(told, messages_per_hour=2, interval_ms=0)
        for _ in range(5):
            told.tell(FactKind.DATA_AT_RISK)
            told.clock.advance(MINUTE_MS)
            run(notifier)
        assert told.mailbox.titles == ["1 DATA AT RISK"] * 2
        told.clock.advance(HOUR_MS)
        run(notifier)
        assert told.mailbox.titles == ["1 DATA AT RISK"] * 2 + ["3 DATA AT RISK"]

    def test_a_flood_is_a_few_messages(self, told: Notified) -> None:
        notifier = begun(told)
        for number in range(FACTS_AT_ONCE + 500):
            told.tell(table=f"t{number}")
        run(notifier)  # a page is full: no use in waiting
        assert told.mailbox.titles == ["1,500 parked"]
        assert "and 1,480 more, of 1,500 tables in all" in told.mailbox.got[0].plain

    def test_facts_that_were_forgotten_unread_are_owned_up_to(self, told: Notified) -> None:
        notifier = begun(told)
        told.tell()
        told.clock.advance(HOUR_MS)
        told.feed.forget(told.clock.now(), 10)
        told.tell(table="later")
        told.clock.advance(INTERVAL_MS)
        run(notifier)
        assert told.mailbox.titles == ["1 parked"]
        assert "no longer kept" in told.mailbox.got[0].plain

    def test_what_is_for_others_is_not_read_again_for_ever(self, told: Notified) -> None:
        notifier = begun(told, facts=(FactKind.FAILED,))
        run(notifier)
        told.tell(FactKind.PARKED)
        run(notifier)
        assert told.store.state("team").position == 0
        told.clock.advance(NOTED_MS)
        run(notifier)
        assert told.store.state("team").position == 1
        assert told.store.figures()["team"].looked_at == told.clock.now()

    def test_somebody_looks_also_while_facts_wait(self, told: Notified) -> None:
        notifier = begun(told, interval_ms=24 * HOUR_MS)
        told.tell()
        for _ in range(3):
            run(notifier)
            told.clock.advance(NOTED_MS)
        assert told.clock.now() - not_none(told.store.figures()["team"].looked_at) <= NOTED_MS
        assert told.store.state("team").position == 0
        told.clock.advance(24 * HOUR_MS)
        run(notifier)
        assert told.mailbox.titles == ["1 parked"]


class TestOwners:
    def test_by_the_tables_property_and_over_it_by_policy(self, told: Notified) -> None:
        told.owned("a", "sales-eu")
        told.owned("b", "spark")
        told.owned("c", "spark", **{"icewright.owner": "sales-us"})
        told.owned("d", None)
        rule = NamedRule("eu", RuleMatch(("lake.sales.b",)), {"icewright.owner": "sales-eu"})
        told.policies.apply(NewRevision(Policies((rule,)), "me"), 0)
        notifier = begun(told, owners=("sales-*",), interval_ms=0)
        for table in "abcde":
            told.tell(table=table)
        told.feed.tell(Fact(FactKind.CATALOG_AWAY, "lake", Reason("unavailable", "no answer")), "away")
        run(notifier)
        assert sorted(told.mailbox.titles) == ["1 parked (sales-us)", "2 parked (sales-eu)"]
        assert "lake / sales / a" in "".join(one.plain for one in told.mailbox.got)

    def test_a_new_owner_is_told_after_a_while(self, told: Notified) -> None:
        told.owned("a", "others")
        notifier = begun(told, owners=("me",), interval_ms=0)
        told.tell(table="a")
        run(notifier)
        record = not_none(told.tables.record(TableId("lake", "a")))
        told.tables.save_record(replace(record, properties={"owner": "me"}))
        told.tell(table="a")
        run(notifier)
        assert told.mailbox.got == []
        told.clock.advance(KNOWN_FOR_MS)
        told.tell(table="a")
        run(notifier)
        assert len(told.mailbox.got) == 1

    def test_without_owners_everybodys(self, told: Notified) -> None:
        told.owned("a", "x")
        notifier = begun(told, interval_ms=0)
        told.tell(table="a")
        told.tell(table="b")
        told.feed.tell(Fact(FactKind.CATALOG_AWAY, "lake", Reason("unavailable", "no answer")), "away")
        run(notifier)
        assert sorted(told.mailbox.titles) == ["1 parked (x)", "1 parked, 1 catalog away"]


class TestTrouble:
    def test_what_does_not_arrive_is_sent_again_and_the_rest_waits_for_it(self, told: Notified) -> None:
        notifier = begun(told, interval_ms=0)
        told.mailbox.trouble = lambda: Unavailable("the receiver does not answer: ConnectTimeout")
        told.tell()
        run(notifier)
        told.tell(table="later")
        run(notifier)
        (figures,) = told.store.figures().values()
        assert (figures.failed, figures.waiting, figures.given_up) == (1, 1, 0)
        told.mailbox.trouble = None
        told.clock.advance(BACK_OFF_MS[0] - 1)
        run(notifier)
        assert told.mailbox.got == []
        told.clock.advance(1)
        run(notifier)
        assert told.mailbox.titles == ["1 parked", "1 parked"]

    def test_a_receiver_that_is_away_for_a_day_has_dead_letters_and_is_told_of_the_next(self, told: Notified) -> None:
        notifier = begun(told, interval_ms=0)
        told.mailbox.trouble = lambda: Unavailable("away")
        told.tell()
        begun_at = told.clock.now()
        while not told.store.dead_letters(limit=1):
            run(notifier)
            told.clock.advance(MINUTE_MS)
        assert GIVE_UP_MS <= told.clock.now() - begun_at <= GIVE_UP_MS + 2 * BACK_OFF_MS[-1]
        told.tell(table="next")
        told.mailbox.trouble = None
        run(notifier)
        assert len(told.mailbox.got) == 1

    def test_a_message_that_is_refused_holds_up_the_others_for_no_more_than_minutes(self, told: Notified) -> None:
        notifier = begun(told, interval_ms=0)
        told.mailbox.trouble = lambda: Rejected("the receiver refuses the message with status 400")
        told.tell()
        for _ in range(REFUSALS_MAX):
            run(notifier)
            told.clock.advance(BACK_OFF_MS[1])
        (dead,) = told.store.dead_letters(limit=9)
        assert (dead.attempts, dead.problem) == (3, "the receiver refuses the message with status 400")

    def test_when_the_receiver_says(self, told: Notified) -> None:
        notifier = begun(told, interval_ms=0)
        told.mailbox.trouble = lambda: TryLater("status 429", wait_ms=10 * MINUTE_MS)
        told.tell()
        run(notifier)
        assert not_none(told.store.state("team").first).next_at == told.clock.now() + 10 * MINUTE_MS

    def test_death_between_sending_and_writing_that_down_sends_the_same_again(self, told: Notified) -> None:
        notifier = begun(told, interval_ms=0)
        told.tell()
        sent = told.store.sent

        def dies(message_id: str) -> None:
            raise StoreUnavailable(f"gone before {message_id} was noted")

        told.store.sent = dies  # type: ignore[method-assign]  # the death of a process
        with pytest.raises(StoreUnavailable):
            run(notifier)
        told.store.sent = sent  # type: ignore[method-assign]  # the next process
        told.tell(table="meanwhile")
        run(told.notifier(interval_ms=0))
        first, again, other = told.mailbox.got
        assert first == again
        assert other.message_id != first.message_id

    def test_death_before_anything_was_written_down_leaves_nothing_out(self, told: Notified) -> None:
        begun(told)
        told.tell()
        told.clock.advance(INTERVAL_MS)
        run(told.notifier())
        assert told.mailbox.titles == ["1 parked"]

    def test_two_servers_by_mistake_compose_once(self, told: Notified) -> None:
        one, other = begun(told, interval_ms=0), told.notifier(interval_ms=0)
        told.tell()
        compose = told.store.compose

        def late(receiver: str, expected: int | None, position: int, composed: Sequence[Message]) -> None:
            told.store.compose = compose  # type: ignore[method-assign]  # once
            run(other)
            compose(receiver, expected, position, composed)

        told.store.compose = late  # type: ignore[method-assign]  # another server comes first
        run(one)
        run(one)
        assert told.mailbox.titles == ["1 parked"]


class TestAll:
    @pytest.fixture
    def notifications(self, told: Notified) -> Notifications:
        receiver = Receiver("team", ReceiverKind.WEBHOOK, tuple(FactKind), (("lake", "a.b"),), interval_ms=0)
        delivery = MessageDelivery(told.store, (receiver,), {"team": told.mailbox})
        return Notifications(delivery, told.feed, told.owners, told.clock)

    def test_a_receiver_and_how_it_is(self, told: Notified, notifications: Notifications) -> None:
        (view,) = notifications.views()
        assert (view.name, view.under, view.sent, view.looked_at, view.trouble) == (
            "team",
            ("lake.`a.b`",),
            0,
            None,
            "",
        )
        told.store.compose("team", None, 0, ())
        told.clock.advance(SILENT_MS + 1)
        assert notifications.views()[0].trouble == "no server reads the feed for it"

    def test_messages_that_do_not_arrive_and_dead_letters_are_trouble(
        self, told: Notified, notifications: Notifications
    ) -> None:
        notifier = begun(told, interval_ms=0)
        told.mailbox.trouble = lambda: Rejected("no")
        told.tell()
        run(notifier)
        assert notifications.views()[0].trouble == ""
        told.clock.advance(LATE_MS + 1)
        assert notifications.views()[0].trouble == "messages do not arrive"
        while not told.store.dead_letters(limit=1):
            run(notifier)
            told.clock.advance(BACK_OFF_MS[1])
        run(notifier)
        assert notifications.views()[0].trouble == "there are dead letters"
        (dead,) = notifications.store.dead_letters(limit=9)
        told.mailbox.trouble = None
        notifications.store.retry(dead.message.message_id)
        run(notifier)
        assert told.mailbox.got[0].message_id == dead.message.message_id
        assert notifications.views()[0].trouble == ""

    def test_a_trial(self, told: Notified, notifications: Notifications) -> None:
        assert notifications.test("team").has_arrived
        assert told.mailbox.got[0].document["type"] == "icewright.test"
        told.mailbox.trouble = lambda: Unavailable("away")
        trial = notifications.test("team")
        assert (trial.has_arrived, trial.problem) == (False, "away")
        with pytest.raises(Rejected, match="no receiver"):
            notifications.test("nobody")
