"""What every store of tokens, codes and sessions must do, sentence by sentence of the port."""

from __future__ import annotations

import threading

import pytest

from icewright.adapters.memory.clock import ManualClock
from icewright.domain.access import OWNER, Grant, Principal, Role, Scope
from icewright.domain.errors import InvalidMessage, InvalidName, NotAllowed, NotFound
from icewright.domain.identity import IDLE_MS, SEEN_EVERY_MS, SESSION_MS, NewToken
from icewright.ports.audit import acting_as
from icewright.ports.identity import IdentityStore
from tests.contracts.stores import Stores

CI = NewToken("ci", (Role.OPERATOR, Role.VIEWER), ("lake.db", "other"))
ADA = Principal("oidc:Ada \ud800", (Grant(Role.APPROVER, Scope("lake")),))


@pytest.fixture
def store(stores: Stores) -> IdentityStore:
    return stores.identities()


def test_a_token_is_known_by_its_digest_to_every_server(stores: Stores, clock: ManualClock) -> None:
    with acting_as("owner"):
        added = stores.identities().add_token(CI, "d1", "icw_abcd", "owner")
    assert added.grants == (
        Grant(Role.OPERATOR, Scope("lake", ("db",))),
        Grant(Role.OPERATOR, Scope("other")),
        Grant(Role.VIEWER, Scope("lake", ("db",))),
        Grant(Role.VIEWER, Scope("other")),
    )
    found = stores.identities().token("d1")
    assert found is not None
    assert (found.principal, found.last_used_at) == (Principal("token:ci", added.grants), clock.now())
    assert stores.identities().token("d2") is None
    (entry,) = stores.audit().entries(limit=9, after=0)
    assert (entry.principal, entry.action, entry.resource) == ("owner", "token.created", "token ci")
    assert entry.detail["grants"] == "operator on lake.db, operator on other, viewer on lake.db, viewer on other"


def test_that_a_token_was_used_is_written_down_once_a_minute(store: IdentityStore, clock: ManualClock) -> None:
    store.add_token(CI, "d1", "icw_", "owner")
    used = []
    for _ in range(3):
        found = store.token("d1")
        assert found is not None
        used.append(found.last_used_at)
        clock.advance(SEEN_EVERY_MS // 2)
    assert used == [used[0], used[0], (used[0] or 0) + SEEN_EVERY_MS]
    assert store.tokens(limit=9)[0].last_used_at == used[2]


def test_a_token_expires(store: IdentityStore, clock: ManualClock) -> None:
    assert not store.has_tokens()
    store.add_token(NewToken("short", (Role.VIEWER,), lifetime_ms=1_000), "d1", "icw_", "owner")
    assert store.has_tokens()
    clock.advance(999)
    assert store.token("d1") is not None
    clock.advance(1)
    assert store.token("d1") is None
    assert not store.has_tokens()
    assert [one.name for one in store.tokens(limit=9)] == ["short"]


def test_a_revoked_token_opens_nothing_from_now_on_nor_do_sessions_of_it(stores: Stores) -> None:
    store = stores.identities()
    principal = store.add_token(CI, "d1", "icw_", "owner").principal
    store.open_session("s1", principal)
    store.add_code("c1", principal, 1_000)
    assert stores.identities().session("s1", attended=True) == principal
    revoked = stores.identities().revoke("ci")
    assert revoked.revoked_at is not None
    assert store.revoke("ci") == revoked
    assert store.token("d1") is None
    assert store.session("s1", attended=True) is None
    assert store.log_in("c1", "s2") is None
    assert not store.has_tokens()
    with pytest.raises(NotFound):
        store.revoke("nobody")
    actions = [entry.action for entry in stores.audit().entries(limit=9, after=0)]
    assert actions == ["token.created", "session.opened", "token.revoked"]


def test_a_name_is_given_once_also_after_it_was_revoked(store: IdentityStore) -> None:
    store.add_token(CI, "d1", "icw_", "owner")
    store.revoke("ci")
    with pytest.raises(NotAllowed, match="ci"):
        store.add_token(CI, "d2", "icw_", "owner")
    assert store.token("d2") is None


@pytest.mark.parametrize(
    "wrong",
    [
        NewToken("", (Role.VIEWER,)),
        NewToken("Ada", (Role.VIEWER,)),
        NewToken("a" * 65, (Role.VIEWER,)),
        NewToken("a\n", (Role.VIEWER,)),
        NewToken("a", ()),
        NewToken("a", (Role.VIEWER,), ()),
        NewToken("a", (Role.VIEWER,), lifetime_ms=0),
        NewToken("a", (Role.VIEWER,), lifetime_ms=2**62),
        NewToken("a", (Role.OPTIMIZER,), ("lake",)),
        NewToken("a", (Role.PLATFORM_ADMIN,), ("lake",)),
    ],
)
def test_what_makes_no_token_is_refused(store: IdentityStore, wrong: NewToken) -> None:
    with pytest.raises(InvalidMessage):
        store.add_token(wrong, "d1", "icw_", "owner")
    with pytest.raises(InvalidName):
        store.add_token(NewToken("a", (Role.VIEWER,), ("lake..db",)), "d1", "icw_", "owner")
    assert store.tokens(limit=9) == []


def test_tokens_are_listed_by_name_in_pages(store: IdentityStore) -> None:
    for name in ("b", "a", "c"):
        store.add_token(NewToken(name, (Role.VIEWER,)), f"d{name}", "icw_", "owner")
    assert [one.name for one in store.tokens(limit=2)] == ["a", "b"]
    assert [one.name for one in store.tokens(limit=2, after="b")] == ["c"]


def test_a_code_opens_one_session_however_many_come_at_once(stores: Stores) -> None:
    stores.identities().add_code("c1", ADA, 1_000)
    found: list[Principal | None] = []

    def come(number: int) -> None:
        found.append(stores.identities().log_in("c1", f"s{number}"))

    comers = [threading.Thread(target=come, args=(number,)) for number in range(4)]
    for comer in comers:
        comer.start()
    for comer in comers:
        comer.join()
    assert sorted(found, key=str) == [None, None, None, ADA]
    assert [stores.identities().session(f"s{n}", attended=True) for n in range(4)].count(ADA) == 1


def test_a_code_that_is_too_old_or_was_never_given_opens_nothing(store: IdentityStore, clock: ManualClock) -> None:
    store.add_code("c1", OWNER, 1_000)
    assert store.log_in("c2", "s1") is None
    clock.advance(1_000)
    assert store.log_in("c1", "s1") is None
    assert store.session("s1", attended=True) is None


def test_t11_a_session_ends_when_nobody_does_anything(store: IdentityStore, clock: ManualClock) -> None:
    store.open_session("s1", ADA)
    clock.advance(IDLE_MS - 1)
    assert store.session("s1", attended=True) == ADA
    clock.advance(IDLE_MS - 1)
    assert store.session("s1", attended=False) == ADA
    clock.advance(1)
    assert store.session("s1", attended=True) is None


def test_t11_a_session_ends_however_much_is_done(store: IdentityStore, clock: ManualClock) -> None:
    store.open_session("s1", ADA)
    for _ in range(SESSION_MS // IDLE_MS * 2 - 1):
        clock.advance(IDLE_MS // 2)
        assert store.session("s1", attended=True) == ADA
    clock.advance(IDLE_MS // 2)
    assert store.session("s1", attended=True) is None


def test_a_clock_that_goes_back_makes_no_session_last_longer(store: IdentityStore, clock: ManualClock) -> None:
    store.open_session("s1", ADA)
    clock.advance(-1)
    assert store.session("s1", attended=True) is None


def test_somebody_who_logged_out_is_out(stores: Stores) -> None:
    stores.identities().open_session("s1", ADA)
    stores.identities().close_session("s1")
    stores.identities().close_session("s1")
    assert stores.identities().session("s1", attended=True) is None
