"""What every audit must do, sentence by sentence of the port; and what other stores write into it."""

from __future__ import annotations

import pytest

from icewright.audit.acting import acting_as
from icewright.audit.model import GENESIS, PRUNED, SERVER, verify
from icewright.audit.sql import SqlAudit
from icewright.model.access.permissions import Act
from icewright.model.plans.approvals import Approval
from icewright.model.plans.plans import Reason
from tests.contracts.samples import HOSTILE_PARTS, new_task
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock
from tests.waiting import at_once

DETAIL: dict[str, int | str] = {"files": 2**62, "said": "\x00 \ud800 é", "": -1}


@pytest.fixture
def log(stores: Stores) -> SqlAudit:
    return stores.audit()


def test_t12_an_entry_says_who_did_what_when_and_follows_the_one_before(log: SqlAudit, clock: ManualClock) -> None:
    assert (log.head(), log.start()) == (GENESIS, GENESIS)
    log.append(Act("a", HOSTILE_PARTS[1], DETAIL))
    clock.advance(5)
    with acting_as("token:\ud800ci"):
        log.append(Act("b", "x"))
    first, second = log.entries(limit=10, after=0)
    assert (first.number, first.principal, first.at, first.previous) == (1, SERVER, clock.now() - 5, GENESIS.hash)
    assert (second.number, second.principal, second.previous) == (2, "token:\ud800ci", first.hash)
    assert (first.resource, first.detail) == (HOSTILE_PARTS[1], DETAIL)
    assert log.entries(limit=10, after=1) == [second]
    assert log.entries(limit=1, after=0) == [first]
    assert log.latest(limit=1) == [second]
    assert log.latest(limit=5, before=2) == [first]
    assert log.head() == second.head
    assert verify(log.entries(limit=10, after=0)).broken_at is None


def test_t12_writers_at_once_make_one_chain(stores: Stores) -> None:
    def write() -> None:
        log = stores.audit()
        for _ in range(5):
            log.append(Act("a", "x"))

    at_once([write] * 4)
    found = verify(stores.audit().entries(limit=100, after=0))
    assert (found.entries, found.broken_at) == (20, None)


def test_t12_old_entries_go_and_the_chain_still_verifies(log: SqlAudit, clock: ManualClock) -> None:
    for _ in range(6):
        log.append(Act("a", "x"))
        clock.advance(10)
    taken = log.head()
    begun = clock.now() - 60
    assert log.prune(begun + 30, 2) == 2
    assert log.prune(begun + 30, 10) == 1
    assert log.prune(begun + 30, 10) == 0
    entries = log.entries(limit=100, after=0)
    assert [entry.number for entry in entries] == [4, 5, 6, 7, 8]
    assert [entry.action for entry in entries][-2:] == [PRUNED, PRUNED]
    assert log.start().number == 3
    assert verify(entries, log.start(), [taken]).broken_at is None
    assert verify(entries).broken_at == 4


def test_t12_the_latest_entry_stays_and_numbers_go_on(log: SqlAudit, clock: ManualClock) -> None:
    assert log.prune(clock.now() + 1, 10) == 0
    log.append(Act("a", "x"))
    log.append(Act("a", "x"))
    (last,) = log.latest(limit=1)
    assert log.prune(clock.now() + 1, 10) == 1
    assert [entry.number for entry in log.entries(limit=9, after=0)] == [2, 3]
    assert log.entries(limit=9, after=0)[0] == last


def test_t12_tasks_write_what_is_decided_of_them_with_who_decided(stores: Stores) -> None:
    tasks, log = stores.tasks(), stores.audit()
    task = tasks.enqueue(new_task("task-1")).task
    assert tasks.enqueue(new_task("task-2")).coalesced
    with acting_as("token:ada"):
        tasks.request_cancel(task.task_id, Reason("cancelled", "x"))
    found = [(entry.principal, entry.action, entry.resource) for entry in log.entries(limit=10, after=0)]
    assert found == [
        (SERVER, "task.queued", "task task-1"),
        (SERVER, "task.replanned", "task task-1"),
        ("token:ada", "task.cancelled", "task task-1"),
    ]
    assert verify(log.entries(limit=10, after=0)).broken_at is None


def test_t12_approvals_are_written_once(stores: Stores) -> None:
    deletions, log = stores.deletions(), stores.audit()
    for _ in range(2):
        deletions.approve(Approval("abc", "Ada", 1))
    (entry,) = log.entries(limit=10, after=0)
    assert (entry.action, entry.detail) == ("plan.approved", {"approved_by": "Ada"})
