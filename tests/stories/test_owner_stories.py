"""What the owner of a table reads on one day: stored text, read with each change of it.

``ICEWRIGHT_WRITE_STORIES=1`` writes it anew; look at the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

from icewright.core import wording
from icewright.model.events.feed import Fact, FactKind
from icewright.model.events.notifications import Receiver, ReceiverKind
from icewright.model.plans.plans import Reason
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.notifier import Notifier
from icewright.notifications.owners import Owners
from icewright.policy.source import PolicySource
from tests.builders.lakehouse import HOUR_MS, MINUTE_MS, NAME, Lakehouse
from tests.builders.mailbox import Mailbox
from tests.builders.worker import Worker
from tests.lakes.stores import new_store

STORED = Path(__file__).parent / "notifications"
TOLD_OF = (
    FactKind.STARTED,
    FactKind.SUCCEEDED,
    FactKind.FAILED,
    FactKind.PARKED,
    FactKind.DATA_AT_RISK,
    FactKind.WAITS_FOR_APPROVAL,
    FactKind.CATALOG_AWAY,
    FactKind.CATALOG_BACK,
)


class Day:
    """A lakehouse, and somebody who is told of it."""

    def __init__(self) -> None:
        self.house = Lakehouse()
        self.worker = Worker(self.house)
        self.mailbox = Mailbox()
        self.lines: list[str] = []
        self.began_at = self.house.clock.now()
        receiver = Receiver("events-team", ReceiverKind.WEBHOOK, TOLD_OF, messages_per_hour=2)
        owners = Owners(self.house.tables, PolicySource(), self.house.clock)
        store = SqlMessages(new_store(), self.house.store_clock)
        self.notifier = Notifier(receiver, self.mailbox, store, self.house.tasks.feed, owners)
        self.notifier.step()

    def happens(self, text: str) -> None:
        self.lines.append(f"{self.time()}  {text}")

    def time(self) -> str:
        return wording.instant(self.house.clock.now())[11:16]

    def passes(self, minutes: int) -> None:
        """Time in which messages go out."""
        for _ in range(minutes):
            self.house.pass_time(MINUTE_MS)
            while self.notifier.step():
                pass
            for sent in self.mailbox.got:
                self.lines += ["", f"{self.time()}  a message: {sent.title}"]
                self.lines += [f"       {line}" for line in sent.plain.splitlines()]
                self.lines.append("")
            self.mailbox.got.clear()

    def tells(self, kind: FactKind, text: str, key: str) -> None:
        """Something that is no task's."""
        record = self.house.tables.record_by_name(NAME)
        assert record is not None
        of_table = kind is not FactKind.CATALOG_AWAY
        table_id, name = (record.table_id, record.name) if of_table else (None, None)
        plan_id = "plan-000042" if kind is FactKind.WAITS_FOR_APPROVAL else None
        self.house.tasks.feed.tell(Fact(kind, "lake", Reason(kind.value, text), table_id, name, plan_id=plan_id), key)


def test_a_day_of_an_owner() -> None:
    day = Day()
    day.house.ready_table()
    day.house.control.loop.round()
    day.happens("eight small files are to be merged; an optimizer takes the task")
    day.house.pass_time(HOUR_MS)
    day.house.control.loop.round()
    spec = day.worker.claimed()
    day.worker.report(spec, day.worker.try_commit(spec))
    day.happens("it is done within the interval: the start is not told besides")
    day.house.control.loop.round()
    day.passes(10)
    for number in range(3):
        day.tells(FactKind.PARKED, "five failures in a row; left alone for a day", f"parked-{number}")
    day.tells(FactKind.WAITS_FOR_APPROVAL, "12,000 files are beyond the budget of 10,000", "waits")
    day.happens("the breaker opens three times, and a plan waits")
    day.passes(10)
    day.tells(FactKind.DATA_AT_RISK, "see https://example.org/@everyone <!channel> [x](y)", "risk")
    day.happens("somebody's text tries to be a link, and the limit of two messages in an hour is reached")
    day.passes(10)
    day.tells(FactKind.CATALOG_AWAY, "the catalog does not answer", "away")
    day.happens("the catalog is away")
    day.passes(60)
    told = "\n".join(line.rstrip() for line in day.lines) + "\n"
    path = STORED / "a_day_of_an_owner.txt"
    if os.environ.get("ICEWRIGHT_WRITE_STORIES"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(told, encoding="utf-8")
    assert told == path.read_text(encoding="utf-8")
