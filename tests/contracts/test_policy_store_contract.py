"""What every store of applied policies must do, sentence by sentence of the port."""

from __future__ import annotations

from functools import partial

import pytest

from icewright.audit.acting import acting_as
from icewright.core.errors import Conflict, NotFound
from icewright.model.policy.policies import NO_REVISION, NamedRule, NewRevision, Policies, PolicyRevision, RuleMatch
from icewright.policy.rules.port import PolicyStore
from tests.cases import each_case
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock
from tests.waiting import at_once


@pytest.fixture
def store(stores: Stores) -> PolicyStore:
    return stores.policies()


def new(name: str = "a", by: str = "alice") -> NewRevision:
    match = RuleMatch(("lake.**",), "it's \ud800", {"k\x00": "v*"})
    return NewRevision(Policies((NamedRule(name, match, {"icewright.mode": "auto"}, -5, "why"),)), by, "ticket 7")


def test_before_anything_is_applied_there_is_nothing(store: PolicyStore) -> None:
    assert store.present() == 0
    assert store.revision(0) == NO_REVISION
    assert store.revisions(limit=9) == []


def test_the_next_server_reads_what_was_applied(stores: Stores, clock: ManualClock) -> None:
    made = stores.policies().apply(new(), 0)
    assert made == PolicyRevision(1, new().policies, clock.now(), "alice", "ticket 7")
    assert stores.policies().present() == 1
    assert stores.policies().revision(1) == made


def test_revisions_stay_newest_first(store: PolicyStore) -> None:
    for number in range(4):
        store.apply(new(f"r{number}"), number)
    assert [found.number for found in store.revisions(limit=9)] == [4, 3, 2, 1]
    assert [found.number for found in store.revisions(limit=2)] == [4, 3]
    assert [found.number for found in store.revisions(limit=9, before=3)] == [2, 1]
    assert store.revisions(limit=9, before=1) == []
    assert [rule.name for rule in store.revision(2).policies.rules] == ["r1"]


def test_t12_what_is_applied_is_in_the_audit_and_what_is_refused_is_not(stores: Stores) -> None:
    with acting_as("token:ci"):
        stores.policies().apply(new(), 0)
    with pytest.raises(Conflict):
        stores.policies().apply(new(), 0)
    (entry,) = stores.audit().latest(limit=9)
    assert (entry.principal, entry.action, entry.resource) == ("token:ci", "policies.applied", "revision 1")
    assert entry.detail == {"rules": 1, "applied_by": "alice", "note": "ticket 7"}


@each_case("number", [-1, 1, 2**40])
def test_what_was_never_applied_is_not_found(store: PolicyStore, number: int) -> None:
    with pytest.raises(NotFound, match="no revision"):
        store.revision(number)


@pytest.mark.parametrize("expected", [0, 2])
def test_x3_what_was_compared_with_another_revision_is_refused(store: PolicyStore, expected: int) -> None:
    store.apply(new(), 0)
    with pytest.raises(Conflict, match="revision 1 now"):
        store.apply(new("b"), expected)
    assert store.present() == 1


def test_x3_of_two_at_once_one_is_applied(stores: Stores) -> None:
    def is_applied(store: PolicyStore, name: str) -> bool:
        try:
            store.apply(new(name), 0)
        except Conflict:
            return False
        return True

    applied = at_once([partial(is_applied, stores.policies(), f"r{number}") for number in range(4)])
    assert (sorted(applied), stores.policies().present()) == ([False, False, False, True], 1)


def test_what_was_replaced_long_ago_goes_and_the_present_one_stays(stores: Stores, clock: ManualClock) -> None:
    store, begun = stores.policies(), clock.now()
    for number in range(5):
        store.apply(new(f"r{number}"), number)
        clock.advance(10)
    assert store.prune(begun + 10, 9) == 0  # the first was replaced then
    assert store.prune(begun + 31, 1) == 1
    assert [found.number for found in store.revisions(limit=9)] == [5, 4, 3, 2]
    assert store.prune(begun + 31, 9) == 2
    assert stores.policies().prune(clock.advance(10**12), 9) == 1
    assert [found.number for found in stores.policies().revisions(limit=9)] == [5]
    assert stores.policies().revision(0) == NO_REVISION
    with pytest.raises(NotFound):
        store.revision(4)
    assert store.apply(new("again"), 5).number == 6
