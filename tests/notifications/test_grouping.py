"""Which messages facts become."""

from __future__ import annotations

import random

from icewright.model.actions.actions import ActionKind
from icewright.model.events.feed import Fact, FactKind, FeedEntry
from icewright.model.events.notifications import MENTIONS_MAX, GroupBy, Receiver, ReceiverKind
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Reason
from icewright.notifications.grouping import GRAVITY, MESSAGES_MAX, Owned, messages
from icewright.notifications.notifier import BACK_OFF_MS, GIVE_UP_MS, REFUSALS_MAX, next_try

ALL = tuple(FactKind)
OWNERS = Receiver("team", ReceiverKind.WEBHOOK, ALL)
TABLES = Receiver("team", ReceiverKind.WEBHOOK, ALL, group_by=GroupBy.TABLE)
AWAY = Owned(FeedEntry(50, 50, Fact(FactKind.CATALOG_AWAY, "lake", Reason("unavailable", "no answer"))), None)


def of_task(sequence: int, kind: FactKind, task: str, *, table: str = "t", owner: str | None = "me") -> Owned:
    name, action = TableName("lake", ("db",), table), ActionKind.REWRITE_DATA_FILES
    fact = Fact(kind, "lake", Reason("because", kind.value), TableId("lake", table), name, task, "plan", action, 1)
    return Owned(FeedEntry(sequence, 1_000 + sequence, fact), owner)


def parked(sequence: int, table: str = "t", owner: str | None = "me", code: str = "parked") -> Owned:
    fact = Fact(FactKind.PARKED, "lake", Reason(code, "so"), TableId("lake", table), TableName("lake", ("db",), table))
    return Owned(FeedEntry(sequence, 1_000 + sequence, fact), owner)


def test_all_of_an_owner_is_one_message_and_all_of_a_table_where_that_is_wanted() -> None:
    facts = [
        of_task(1, FactKind.SUCCEEDED, "a", table="x"),
        of_task(2, FactKind.FAILED, "b", table="y"),
        of_task(3, FactKind.FAILED, "c", table="z", owner="you"),
        of_task(4, FactKind.STARTED, "d", table="x", owner=None),
        AWAY,
    ]
    by_owner = {one.group: one for one in messages(OWNERS, facts, 60, 9)}
    assert set(by_owner) == {"me", "you", None}
    assert by_owner["me"].counts == {"failed": 1, "succeeded": 1}
    assert (by_owner["me"].tables, by_owner["me"].first_at, by_owner["me"].through) == (2, 1_001, 60)
    assert by_owner[None].counts == {"catalog-away": 1, "started": 1}
    assert {one.group for one in messages(TABLES, facts, 60, 9)} == {"lake.db.x", "lake.db.y", "lake.db.z", None}


def test_what_becomes_of_a_task_is_told_once_as_it_ended() -> None:
    def told(*kinds: FactKind) -> list[FactKind]:
        facts = [of_task(number, kind, "task") for number, kind in enumerate(kinds)]
        (message,) = messages(OWNERS, facts, 60, 9)
        return [mention.told.fact.fact for mention in message.mentions]

    assert told(FactKind.QUEUED, FactKind.STARTED, FactKind.SUCCEEDED) == [FactKind.SUCCEEDED]
    assert told(FactKind.STARTED, FactKind.QUEUED) == [FactKind.STARTED]
    assert told(FactKind.FAILED, FactKind.QUEUED, FactKind.SUCCEEDED) == [FactKind.SUCCEEDED]
    assert told(FactKind.DATA_AT_RISK, FactKind.QUEUED, FactKind.SUCCEEDED) == [FactKind.DATA_AT_RISK]


def test_the_same_again_is_counted() -> None:
    (message,) = messages(OWNERS, [parked(1), parked(2), parked(3, code="other"), parked(4)], 60, 9)
    assert [(one.told.sequence, one.times) for one in message.mentions] == [(4, 3), (3, 1)]
    assert message.counts == {"parked": 2}


def test_the_gravest_are_mentioned_and_the_others_counted() -> None:
    facts = [of_task(number, FactKind.STARTED, f"s{number}") for number in range(100)]
    facts += [of_task(200, FactKind.FAILED, "f"), of_task(300, FactKind.DATA_AT_RISK, "r")]
    (message,) = messages(OWNERS, facts, 400, 9)
    assert [one.told.fact.task_id for one in message.mentions[:4]] == ["r", "f", "s99", "s98"]
    assert (len(message.mentions), message.more) == (MENTIONS_MAX, 102 - MENTIONS_MAX)
    assert list(message.counts.items()) == [("data-at-risk", 1), ("failed", 1), ("started", 100)]
    assert set(GRAVITY) == set(FactKind)


def test_there_are_no_more_messages_than_slots_and_nothing_is_left_out() -> None:
    facts = [parked(number, f"t{number}", f"owner-{number}") for number in range(30)]
    facts.append(of_task(99, FactKind.FAILED, "f", owner="owner-7"))
    for slots, wanted in ((1, 1), (3, 3), (99, MESSAGES_MAX), (0, 1)):
        made = messages(OWNERS, facts, 100, slots)
        assert len(made) == wanted
        assert sum(sum(one.counts.values()) for one in made) == 31
        assert made[-1].group is None
    assert messages(OWNERS, facts, 100, 3)[0].group == "owner-7"


def test_ids_are_those_of_what_is_told_whoever_composes_it() -> None:
    facts = [parked(number, f"t{number}", f"owner-{number % 3}") for number in range(20)]
    made = messages(OWNERS, facts, 100, 9)
    assert messages(OWNERS, facts, 100, 9) == made
    others = [*messages(OWNERS, facts, 101, 9), *messages(Receiver("b", ReceiverKind.WEBHOOK, ALL), facts, 100, 9)]
    ids = [one.message_id for one in (*made, *others)]
    assert len(set(ids)) == len(ids)
    assert all(one.isascii() and len(one) < 64 and "." not in one for one in ids)


def test_facts_of_any_kind_in_any_order_are_all_told() -> None:
    chance = random.Random(7)  # noqa: S311 - a test
    for _ in range(200):
        facts = [
            of_task(number, chance.choice(ALL), f"task-{chance.randrange(5)}", owner=chance.choice(["a", "b", None]))
            for number in range(chance.randrange(1, 30))
        ]
        made = messages(OWNERS, facts, 100, 9)
        tasks = {(one.owner, one.told.fact.task_id) for one in facts}
        assert sum(sum(one.counts.values()) for one in made) == len(tasks)


class TestAttempts:
    def test_longer_and_longer_and_at_most_for_a_day(self) -> None:
        waits, now, attempts = [], 0, 1
        while (then := next_try(attempts, 0, now, is_refused=False)) is not None:
            waits.append(then - now)
            now, attempts = then, attempts + 1
        assert waits[: len(BACK_OFF_MS)] == list(BACK_OFF_MS)
        assert GIVE_UP_MS <= now < GIVE_UP_MS + BACK_OFF_MS[-1]

    def test_a_refusal_is_not_repeated_for_a_day(self) -> None:
        tries = [next_try(attempts, 0, 5, is_refused=True) for attempts in range(1, REFUSALS_MAX + 1)]
        assert tries == [5 + BACK_OFF_MS[0], 5 + BACK_OFF_MS[1], None]

    def test_what_the_receiver_asks_for_counts_within_bounds(self) -> None:
        assert next_try(1, 0, 0, is_refused=False, wait_ms=60_000) == 60_000
        assert next_try(1, 0, 0, is_refused=False, wait_ms=1) == BACK_OFF_MS[0]
        assert next_try(1, 0, 0, is_refused=False, wait_ms=10**12) == BACK_OFF_MS[-1]
