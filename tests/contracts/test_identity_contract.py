"""What every store of tokens, codes and sessions must do, sentence by sentence of the port."""

from __future__ import annotations

from functools import partial

import pytest

from icewright.audit.acting import acting_as
from icewright.core.errors import InvalidMessage, InvalidName, NotAllowed, NotFound
from icewright.identity.sql import SqlIdentities
from icewright.model.access.identity import IDLE_MS, SEEN_EVERY_MS, SESSION_MS, Ended, NewCode, NewToken, Session
from icewright.model.access.permissions import OWNER, Grant, Principal, Role, Scope
from tests.cases import each_case
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none
from tests.waiting import at_once

CI = NewToken("ci", (Role.OPERATOR, Role.VIEWER), ("lake.db", "other"))
ADA = Principal("oidc:Ada \ud800", (Grant(Role.APPROVER, Scope("lake")),))


@pytest.fixture
def store(stores: Stores) -> SqlIdentities:
    return stores.identities()


def whose(store: SqlIdentities, digest: str, *, attended: bool = True) -> Principal | None:
    """Whose session it is, if it lasts."""
    found = store.session(digest, attended=attended)
    return None if found is None else found.principal


def test_a_token_is_known_by_its_digest_to_every_server(stores: Stores, clock: ManualClock) -> None:
    with acting_as("owner"):
        added = stores.identities().add_token(CI, "d1", "icw_abcd", "owner")
    assert added.grants == (
        Grant(Role.OPERATOR, Scope("lake", ("db",))),
        Grant(Role.OPERATOR, Scope("other")),
        Grant(Role.VIEWER, Scope("lake", ("db",))),
        Grant(Role.VIEWER, Scope("other")),
    )
    found = not_none(stores.identities().token("d1"))
    assert (found.principal, found.last_used_at) == (Principal("token:ci", added.grants), clock.now())
    assert stores.identities().token("d2") is None
    (entry,) = stores.audit().entries(limit=9, after=0)
    assert (entry.principal, entry.action, entry.resource) == ("owner", "token.created", "token ci")
    assert entry.detail["grants"] == "operator on lake.db, operator on other, viewer on lake.db, viewer on other"


def test_that_a_token_was_used_is_written_down_once_a_minute(store: SqlIdentities, clock: ManualClock) -> None:
    store.add_token(CI, "d1", "icw_", "owner")
    used = []
    for _ in range(3):
        found = not_none(store.token("d1"))
        used.append(found.last_used_at)
        clock.advance(SEEN_EVERY_MS // 2)
    assert used == [used[0], used[0], (used[0] or 0) + SEEN_EVERY_MS]
    assert store.tokens(limit=9)[0].last_used_at == used[2]


def test_a_token_expires(store: SqlIdentities, clock: ManualClock) -> None:
    assert not store.has_tokens()
    store.add_token(NewToken("short", (Role.VIEWER,), ("*",), lifetime_ms=1_000), "d1", "icw_", "owner")
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
    store.add_code("c1", NewCode(principal, 1_000))
    assert whose(stores.identities(), "s1") == principal
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


def test_a_name_is_given_once_also_after_it_was_revoked(store: SqlIdentities) -> None:
    store.add_token(CI, "d1", "icw_", "owner")
    store.revoke("ci")
    with pytest.raises(NotAllowed, match="ci"):
        store.add_token(CI, "d2", "icw_", "owner")
    assert store.token("d2") is None


@each_case(
    "wrong",
    [
        NewToken("", (Role.VIEWER,), ("*",)),
        NewToken("Ada", (Role.VIEWER,), ("*",)),
        NewToken("a" * 65, (Role.VIEWER,), ("*",)),
        NewToken("a\n", (Role.VIEWER,), ("*",)),
        NewToken("a", (), ("*",)),
        NewToken("a", (Role.VIEWER,), ()),
        NewToken("a", (Role.VIEWER,), ("*",), lifetime_ms=0),
        NewToken("a", (Role.VIEWER,), ("*",), lifetime_ms=2**62),
        NewToken("a", (Role.OPTIMIZER,), ("lake",)),
        NewToken("a", (Role.PLATFORM_ADMIN,), ("lake",)),
    ],
)
def test_what_makes_no_token_is_refused(store: SqlIdentities, wrong: NewToken) -> None:
    with pytest.raises(InvalidMessage):
        store.add_token(wrong, "d1", "icw_", "owner")
    with pytest.raises(InvalidName):
        store.add_token(NewToken("a", (Role.VIEWER,), ("lake..db",)), "d1", "icw_", "owner")
    assert store.tokens(limit=9) == []


def test_tokens_are_listed_by_name_in_pages(store: SqlIdentities) -> None:
    for name in ("b", "a", "c"):
        store.add_token(NewToken(name, (Role.VIEWER,), ("*",)), f"d{name}", "icw_", "owner")
    assert [one.name for one in store.tokens(limit=2)] == ["a", "b"]
    assert [one.name for one in store.tokens(limit=2, after="b")] == ["c"]


def test_a_code_opens_one_session_however_many_come_at_once(stores: Stores) -> None:
    stores.identities().add_code("c1", NewCode(ADA, 1_000))

    def come(number: int) -> Principal | None:
        opened = stores.identities().log_in("c1", f"s{number}")
        return None if opened is None else opened.principal

    found = at_once([partial(come, number) for number in range(4)])
    assert sorted(found, key=str) == [None, None, None, ADA]
    assert [whose(stores.identities(), f"s{n}") for n in range(4)].count(ADA) == 1


def test_a_code_that_is_too_old_or_was_never_given_opens_nothing(store: SqlIdentities, clock: ManualClock) -> None:
    store.add_code("c1", NewCode(OWNER, 1_000))
    assert store.log_in("c2", "s1") is None
    clock.advance(1_000)
    assert store.log_in("c1", "s1") is None
    assert store.session("s1", attended=True) is None


@pytest.mark.parametrize("is_program", [False, True])
def test_t11_a_code_of_one_kind_opens_no_session_of_the_other_and_stays(stores: Stores, *, is_program: bool) -> None:
    stores.identities().add_code("c1", NewCode(ADA, 1_000, ("groups=data-eng",), is_program))
    assert stores.identities().log_in("c1", "s1", is_program=not is_program) is None
    assert stores.identities().session("s1", attended=True) is None
    opened = stores.identities().log_in("c1", "s2", is_program=is_program)
    assert opened == stores.identities().session("s2", attended=True)
    assert opened is not None
    assert (opened.principal, opened.conditions, opened.is_program) == (ADA, ("groups=data-eng",), is_program)
    (entry,) = stores.audit().entries(limit=9, after=0)
    assert (entry.action, entry.detail.get("of")) == ("session.opened", "a program" if is_program else None)


def test_t11_codes_of_one_name_open_nothing_once_its_sessions_were_ended(stores: Stores, clock: ManualClock) -> None:
    store = stores.identities()
    store.add_code("old", NewCode(ADA, 1_000))
    clock.advance(1_000)
    for number, principal in enumerate((ADA, ADA, OWNER)):
        store.add_code(f"c{number}", NewCode(principal, 60_000, is_program=number == 0))
    assert store.end_sessions(ADA.name) == Ended((), 2)
    assert store.log_in("c0", "s0", is_program=True) is None
    assert store.log_in("c1", "s1") is None
    assert store.log_in("c2", "s2") is not None


def test_t11_that_of_a_program_ends_after_its_time_alone(stores: Stores, clock: ManualClock) -> None:
    store = stores.identities()
    store.add_code("c1", NewCode(ADA, 1_000, is_program=True))
    assert store.log_in("c1", "s1", is_program=True) is not None
    clock.advance(2 * IDLE_MS)
    stores.identities().open_session("s2", ADA)  # clears away what is over
    assert {one.is_program for one in store.sessions(limit=9)} == {False, True}
    clock.advance(SESSION_MS - 2 * IDLE_MS - 1)
    assert whose(store, "s1", attended=False) == ADA
    clock.advance(1)
    assert store.session("s1", attended=False) is None
    assert store.sessions(limit=9) == []


def test_t11_a_session_ends_when_nobody_does_anything(store: SqlIdentities, clock: ManualClock) -> None:
    store.open_session("s1", ADA)
    clock.advance(IDLE_MS - 1)
    assert whose(store, "s1", attended=True) == ADA
    clock.advance(IDLE_MS - 1)
    assert whose(store, "s1", attended=False) == ADA
    clock.advance(1)
    assert store.session("s1", attended=True) is None


def test_t11_a_session_ends_however_much_is_done(store: SqlIdentities, clock: ManualClock) -> None:
    store.open_session("s1", ADA)
    for _ in range(SESSION_MS // IDLE_MS * 2 - 1):
        clock.advance(IDLE_MS // 2)
        assert whose(store, "s1", attended=True) == ADA
    clock.advance(IDLE_MS // 2)
    assert store.session("s1", attended=True) is None


def test_a_clock_that_goes_back_makes_no_session_last_longer(store: SqlIdentities, clock: ManualClock) -> None:
    store.open_session("s1", ADA)
    clock.advance(-1)
    assert store.session("s1", attended=True) is None


def test_somebody_who_logged_out_is_out(stores: Stores) -> None:
    stores.identities().open_session("s1", ADA)
    stores.identities().close_session("s1")
    stores.identities().close_session("s1")
    assert stores.identities().session("s1", attended=True) is None


class TestSessions:
    def test_they_are_listed_by_all_servers_the_newest_first(self, stores: Stores, clock: ManualClock) -> None:
        began = clock.now()
        for number in range(4):
            stores.identities().open_session(f"{number}" * 64, ADA if number % 2 else OWNER, ("groups=a", "é=\ud800"))
            clock.advance(1_000 * (number % 2))
        found = stores.identities().sessions(limit=9)
        assert [one.session_id for one in found] == ["3" * 16, "2" * 16, "1" * 16, "0" * 16]
        assert found[0] == Session("3" * 16, ADA, began + 1_000, began + 1_000, ("groups=a", "é=\ud800"))
        assert [one.session_id[0] for one in stores.identities().sessions(limit=9, name=ADA.name)] == ["3", "1"]
        paged: list[Session] = []
        after: tuple[int, str] | None = None
        while page := stores.identities().sessions(limit=1, after=after):
            paged += page
            after = page[-1].begun_at, page[-1].session_id
        assert paged == list(found)
        assert stores.identities().sessions(limit=9, name="oidc:ada \ud800") == []

    def test_those_that_are_over_are_in_no_list_and_are_not_ended(self, stores: Stores, clock: ManualClock) -> None:
        store = stores.identities()
        token = store.add_token(CI, "d1", "icw_", "owner").principal
        short = store.add_token(
            NewToken("short", (Role.VIEWER,), ("*",), lifetime_ms=IDLE_MS // 2), "d2", "icw_", "owner"
        )
        for digest, principal in (("s1", token), ("s2", short.principal), ("s3", ADA), ("s4", OWNER)):
            store.open_session(digest, principal)
        store.revoke("ci")
        clock.advance(IDLE_MS // 2)
        store.session("s4", attended=True)
        assert sorted(one.session_id for one in store.sessions(limit=9)) == ["s3", "s4"]
        with pytest.raises(NotFound):
            store.end_session("s1")
        assert store.end_sessions("token:short") == Ended((), 0)
        clock.advance(IDLE_MS // 2)
        assert [(one.session_id, one.seen_at) for one in store.sessions(limit=9)] == [
            ("s4", clock.now() - IDLE_MS // 2)
        ]
        assert store.end_sessions(ADA.name) == Ended((), 0)
        clock.advance(-2 * IDLE_MS)
        assert store.sessions(limit=9) == []

    def test_t11_one_is_ended_on_all_servers_at_once_and_the_audit_says_by_whom(self, stores: Stores) -> None:
        for number in range(3):
            stores.identities().open_session(f"{number}" * 64, ADA)
        with acting_as("owner"):
            ended = stores.identities().end_session("1" * 16)
        assert (ended.session_id, ended.principal) == ("1" * 16, ADA)
        assert [whose(stores.identities(), f"{number}" * 64) for number in range(3)] == [ADA, None, ADA]
        with pytest.raises(NotFound, match="1111"):
            stores.identities().end_session("1" * 16)
        last = stores.audit().entries(limit=9, after=0)[-1]
        assert (last.principal, last.action, last.resource) == ("owner", "session.ended", ADA.name)
        assert last.detail == {"session": "1" * 16}

    @pytest.mark.parametrize("wrong", ["", "1" * 15, "1" * 17, "1" * 64, "%", "_" * 16, "' OR 1=1 --"])
    def test_no_other_id_is_that_of_a_session(self, stores: Stores, wrong: str) -> None:
        stores.identities().open_session("1" * 64, ADA)
        with pytest.raises(NotFound):
            stores.identities().end_session(wrong)
        assert whose(stores.identities(), "1" * 64) == ADA

    def test_t11_all_of_one_name_are_ended_and_no_others(self, stores: Stores) -> None:
        bob = Principal("oidc:Bob", ADA.grants, "Ada")
        for number, principal in enumerate((ADA, bob, ADA, OWNER)):
            stores.identities().open_session(f"s{number}", principal)
        assert sorted(one.session_id for one in stores.identities().end_sessions(ADA.name).sessions) == ["s0", "s2"]
        assert [whose(stores.identities(), f"s{number}") for number in range(4)] == [None, bob, None, OWNER]
        assert stores.identities().end_sessions(ADA.name) == Ended((), 0)
        ended = [one for one in stores.audit().entries(limit=99, after=0) if one.action == "session.ended"]
        assert sorted(str(one.detail["session"]) for one in ended) == ["s0", "s2"]

    def test_t12_whoever_logs_out_is_in_the_audit_once(self, stores: Stores) -> None:
        bob = Principal("oidc:Bob", ADA.grants, "Bob")
        stores.identities().open_session("s1", bob)
        for _ in range(2):
            stores.identities().close_session("s1")
        actions = [(one.action, one.detail) for one in stores.audit().entries(limit=9, after=0)]
        said = {"session": "s1", "shown": "Bob"}
        assert actions == [("session.opened", said), ("session.ended", said)]
