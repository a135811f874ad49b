"""What is gathered for the answer to "why does nothing happen to my table?"."""

from __future__ import annotations

from icewright.core.errors import TableReplaced
from icewright.maintenance.upkeep import LOOKED_LATELY
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.policy.policy import PolicyRule
from icewright.model.work.breaker import TASKS_LOOKED_AT
from icewright.model.work.tasks import Task
from icewright.model.work.why import Stance, Why
from tests.builders.lakehouse import AUTO, BONN, HOUR_MS, LEASE_MS, MIB, MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import Worker
from tests.explain.test_why_plan import EXPIRE, of
from tests.narrowing import not_none

KEPT_UP = {**AUTO, "icewright.expire-snapshots.enabled": "true", "icewright.rewrite-manifests.enabled": "true"}


def ask(house: Lakehouse) -> Why:
    return house.control.explainer.why(house.record())


def kept_up() -> Lakehouse:
    house = Lakehouse(rules=(PolicyRule("lake", (), KEPT_UP),))
    house.create()
    house.catalog.append(NAME, house.files(1, BONN, 60 * MIB))
    house.rounds(1)
    return house


def test_asking_changes_nothing() -> None:
    house = Lakehouse().with_ready_table()
    house.rounds(1)
    record, tasks, plans = house.record(), house.all_tasks(), house.tables.plans(house.record().table_id, limit=9)
    ask(house)
    assert (house.record(), house.record().revision) == (record, record.revision)
    assert (house.all_tasks(), house.tables.plans(record.table_id, limit=9)) == (tasks, plans)


def test_what_was_said_of_upkeep_is_kept_with_its_figures_while_it_is_passed_over() -> None:
    house = kept_up()
    said = not_none(of(ask(house), EXPIRE).considered)
    assert said.reason.code == "nothing-expires"
    house.pass_time(20 * MINUTE_MS)
    house.catalog.append(NAME, house.files(1, BONN, 60 * MIB))
    looked = house.control.maintainer.look(NAME)
    assert LOOKED_LATELY in {reason.code for reason in looked.upkeep.reasons}
    assert of(ask(house), EXPIRE).considered == said
    house.pass_time(2 * HOUR_MS)
    house.control.maintainer.look(NAME)
    assert not_none(of(ask(house), EXPIRE).considered).at > said.at


def test_what_was_said_outlives_the_server_and_goes_with_the_wish() -> None:
    house = kept_up()
    house.restart()
    assert of(ask(house), EXPIRE).considered is not None
    house.catalog.set_properties(NAME, {"icewright.expire-snapshots.enabled": "false"})
    house.control.maintainer.look(NAME)
    assert [one.kind for one in house.record().considered] == [ActionKind.REWRITE_MANIFESTS]
    assert of(ask(house), EXPIRE).stance is Stance.OFF


def asked_expiry(house: Lakehouse) -> Task:
    plan = house.control.maintainer.plan_asked(NAME, ExpireSnapshotsRequest("PT0S", 1))
    return house.control.dispatcher.apply(plan.plan_id)


def test_another_task_of_the_table_keeps_a_task_waiting() -> None:
    house = Lakehouse().with_ready_table()
    house.rounds(1)
    worker = Worker(house)
    worker.introduce()
    running = worker.claimed()
    expiry = asked_expiry(house)
    told = of(ask(house), EXPIRE)
    assert (told.stance, told.task_id) == (Stance.QUEUED, expiry.task_id)
    assert [(wait.reason.code, wait.until) for wait in told.waits] == [("table-busy", None)]
    assert told.waits[0].reason.figures == {"task_id": running.task_id}
    assert of(ask(house)).stance is Stance.UNDER_WAY


def test_a_queued_task_says_about_when_it_starts() -> None:
    house = Lakehouse().with_ready_table()
    house.rounds(1)
    Worker(house).introduce()
    start = not_none(of(ask(house)).expected.start)
    assert (start.at, start.reason.code) == (house.clock.now(), "estimated")
    house.catalog.available = False
    away = not_none(of(ask(house)).expected.start)
    assert (away.at, away.reason) == (None, of(ask(house)).waits[0].reason)


def test_a_task_that_its_owner_does_not_want_any_more_is_taken_back() -> None:
    house = Lakehouse().with_ready_table()
    house.rounds(1)
    Worker(house).introduce()
    house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    told = of(ask(house))
    assert [wait.reason.code for wait in told.waits] == ["mode-observe"]
    assert "the next look withdraws it" in told.waits[0].reason.text


def test_an_optimizer_that_fell_silent_or_reaches_another_catalog_takes_nothing() -> None:
    house = Lakehouse().with_ready_table()
    house.rounds(1)
    Worker(house).introduce("elsewhere")
    assert [wait.reason.code for wait in of(ask(house)).waits] == ["no-optimizer"]
    Worker(house, "optimizer-b").introduce("lake")
    assert of(ask(house)).waits == ()
    house.pass_time(6 * MINUTE_MS)
    assert [wait.reason.code for wait in of(ask(house)).waits] == ["no-optimizer"]


def test_a_task_that_waits_since_long_before_the_latest_ones_is_told() -> None:
    house = Lakehouse().with_ready_table()
    house.rounds(1)
    (waiting,) = house.all_tasks()
    for _ in range(TASKS_LOOKED_AT):
        house.control.dispatcher.cancel(asked_expiry(house).task_id)
    told = of(ask(house))
    assert (told.stance, told.task_id) == (Stance.QUEUED, waiting.task_id)


def test_a_name_that_leads_to_another_table_is_said_and_not_raised() -> None:
    house = Lakehouse().with_ready_table()
    house.rounds(1)
    record = house.record()
    house.catalog.drop(NAME)
    house.create()
    found = house.control.explainer.why(record)
    assert "is another table now" in found.answer
    assert of(found).waits[0].reason.code == TableReplaced.code


def test_the_answer_is_as_of_the_stores_clock() -> None:
    house = Lakehouse().with_ready_table()
    house.rounds(1)
    house.store_clock.ahead_ms = LEASE_MS
    assert ask(house).asked_at == house.clock.now() + LEASE_MS
