"""Log-ins of people: each is begun and ended by one browser, once, and gives a session to who has a role."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from icewright.audit.sql import SqlAudit
from icewright.core.errors import LoginRefused, Unavailable
from icewright.identity import logins as module
from icewright.identity.logins import AT_ONCE_MAX, ATTEMPT_MS, TOKENS_AT_ONCE_MAX, Begun, Came, Logins
from icewright.identity.people_port import Attempt
from icewright.identity.sql import SqlIdentities
from icewright.model.access.identity import IDLE_MS, SESSION_MS, Session, digest
from icewright.model.access.people import Person, RoleRule
from icewright.model.access.permissions import Grant, Role, Scope
from tests.doubles.clock import ManualClock
from tests.doubles.people import MemoryProvider
from tests.lakes.stores import new_store
from tests.narrowing import not_none

BACK = "https://icewright.example.com/login/callback"
RULES = [RoleRule.parse("groups=data-eng", "operator@lake.db")]
SECRET = "the-owners-token"  # noqa: S105 - not a secret


@dataclass
class World:
    clock: ManualClock
    provider: MemoryProvider
    identities: SqlIdentities
    audit: SqlAudit
    logins: Logins

    @classmethod
    def new(cls) -> World:
        store, clock, provider = new_store(), ManualClock(), MemoryProvider()
        identities, audit = SqlIdentities(store, clock), SqlAudit(store, clock)
        return cls(clock, provider, identities, audit, Logins(provider, RULES, identities, audit, clock, SECRET))

    def came(self, begun: Begun, groups: Any = ("data-eng",)) -> Came:
        """The browser, after Ada has logged in at the provider."""
        ada = Person(self.provider.issuer, "7", {"name": "Ada", "groups": list(groups)})
        query = self.provider.visit(begun.address, ada).partition("?")[2].split("&")
        said = dict(one.split("=", 1) for one in query)
        return Came(begun.cookie, said["state"], said["code"], self.provider.issuer)

    def actions(self) -> list[tuple[str, str, dict[str, Any]]]:
        return [(one.action, one.resource, dict(one.detail)) for one in self.audit.entries(limit=99, after=0)]


@pytest.fixture
def world() -> World:
    return World.new()


def test_whoever_has_a_role_gets_a_session_and_the_audit_says_who(world: World) -> None:
    came = world.logins.finish(world.came(world.logins.begin(BACK)), BACK)
    session, principal = came.secret, came.principal
    assert (principal.name, principal.shown) == ("person:https://provider.invalid#7", "Ada")
    found = not_none(world.identities.session(digest(session), attended=True))
    assert (found.principal, found.conditions) == (principal, ("groups=data-eng",))
    said = {"shown": "Ada", "session": digest(session)[:16]}
    assert world.actions() == [("session.opened", principal.name, said)]
    world.clock.advance(IDLE_MS)
    assert world.identities.session(digest(session), attended=True) is None


def test_t11_it_ends_after_twelve_hours_whatever_is_done(world: World) -> None:
    session = world.logins.finish(world.came(world.logins.begin(BACK)), BACK).secret
    for _ in range(SESSION_MS // (IDLE_MS // 2) - 1):
        world.clock.advance(IDLE_MS // 2)
        assert world.identities.session(digest(session), attended=True) is not None
    world.clock.advance(IDLE_MS // 2)
    assert world.identities.session(digest(session), attended=True) is None


def test_t2_whoever_has_none_gets_none_and_the_audit_says_who_tried(world: World) -> None:
    with pytest.raises(LoginRefused, match="Ada is known, and has no role here"):
        world.logins.finish(world.came(world.logins.begin(BACK), groups=["another"]), BACK)
    name = "person:https://provider.invalid#7"
    assert world.actions() == [("session.refused", name, {"shown": "Ada", "because": "no-role"})]


class TestPresent:
    """What a session permits is what the rules give by now: those of the server that is asked."""

    def session(self, world: World, *groups: str) -> Session:
        session = world.logins.finish(world.came(world.logins.begin(BACK), groups=groups), BACK).secret
        return not_none(world.identities.session(digest(session), attended=True))

    def another(self, world: World, *rules: tuple[str, str], issuer: str | None = None) -> Logins:
        """A server that was started with other rules."""
        provider = world.provider if issuer is None else MemoryProvider(issuer)
        given = [RoleRule.parse(*rule) for rule in rules]
        return Logins(provider, given, world.identities, world.audit, world.clock, SECRET)

    def test_t2_a_role_that_was_taken_away_is_gone_and_the_others_stay(self, world: World) -> None:
        both = [RoleRule.parse("groups=data-eng", "operator@lake.db"), RoleRule.parse("groups=boss", "approver")]
        world.logins = Logins(world.provider, both, world.identities, world.audit, world.clock, SECRET)
        session = self.session(world, "data-eng", "boss", "others")
        assert session.conditions == ("groups=boss", "groups=data-eng")
        fewer = self.another(world, ("groups=data-eng", "viewer@lake.db"), ("groups=others", "platform-admin"))
        principal = not_none(fewer.present(session))
        assert (principal.name, principal.shown) == (session.principal.name, "Ada")
        assert principal.grants == (Grant(Role.VIEWER, Scope("lake", ("db",))),), "others: nothing was known of it then"

    def test_t2_where_no_rule_is_left_nobody_is_there(self, world: World) -> None:
        session = self.session(world, "data-eng")
        assert world.logins.present(session) == session.principal
        assert self.another(world).present(session) is None
        assert self.another(world, ("groups=data-en", "viewer")).present(session) is None
        assert self.another(world, ("groups=data-engs", "viewer")).present(session) is None

    def test_t11_nor_where_another_provider_vouches(self, world: World) -> None:
        session = self.session(world, "data-eng")
        for issuer in ("https://provider.invali", "https://other.invalid"):
            assert self.another(world, ("groups=data-eng", "viewer"), issuer=issuer).present(session) is None


class TestAccessTokens:
    def test_t2_a_program_has_what_the_rules_give_and_nothing_without_one(self, world: World) -> None:
        world.provider.tokens = {
            "a.b.c": Person(world.provider.issuer, "etl", {"groups": ["data-eng"]}),
            "d.e.f": Person(world.provider.issuer, "other", {"groups": ["others"]}),
        }
        assert world.logins.of_token("a.b.c") is None, "none is taken unless that is configured"
        world.provider.takes_tokens = True
        found = not_none(world.logins.of_token("a.b.c"))
        assert (found.name, found.grants) == (
            "person:https://provider.invalid#etl",
            (Grant(Role.OPERATOR, Scope("lake", ("db",))),),
        )
        assert world.logins.of_token("d.e.f") is None
        assert world.logins.of_token("g.h.i") is None
        assert world.actions() == [], "strangers write nothing"

    def test_t13_few_are_looked_at_at_a_time(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        world.provider.takes_tokens = True
        monkeypatch.setattr(module, "TOKENS_WAIT_S", 0)
        entered: list[str] = []

        def within(token: str) -> Person:
            entered.append(token)
            if len(entered) == TOKENS_AT_ONCE_MAX:
                with pytest.raises(Unavailable, match="too many access tokens"):
                    world.logins.of_token("a.b.c")
            else:
                world.logins.of_token("a.b.c")
            raise LoginRefused("of nobody's")

        monkeypatch.setattr(world.provider, "bearer", within)
        assert world.logins.of_token("a.b.c") is None
        assert len(entered) == TOKENS_AT_ONCE_MAX
        monkeypatch.undo()
        assert world.logins.of_token("a.b.c") is None, "all turns were given back"


def test_t11_a_log_in_is_brought_to_an_end_once(world: World) -> None:
    came = world.came(world.logins.begin(BACK))
    world.logins.finish(came, BACK)
    with pytest.raises(LoginRefused, match="brought to an end already"):
        world.logins.finish(came, BACK)
    again = replace(came, code=world.came(Begun(came.cookie, world.provider.address(_attempt(came), BACK))).code)
    with pytest.raises(LoginRefused, match="brought to an end already"):
        world.logins.finish(again, BACK)


def _attempt(came: Came) -> Attempt:
    return Attempt(came.state, "x", "y")


def test_t11_and_by_the_browser_that_began_it(world: World) -> None:
    mine, theirs = world.logins.begin(BACK), world.logins.begin(BACK)
    came = world.came(theirs)
    for changed in (
        replace(came, cookie=mine.cookie),
        replace(came, state=world.came(mine).state),
        replace(came, state=""),
        replace(came, state="é\udc80"),
        replace(came, cookie=""),
        replace(came, cookie="."),
        replace(came, cookie="zz.zz"),
        replace(came, cookie=came.cookie[:-2] + ("00" if came.cookie[-2:] != "00" else "11")),
        replace(came, cookie="0" + came.cookie),
    ):
        with pytest.raises(LoginRefused, match="not begun by this browser"):
            world.logins.finish(changed, BACK)
    world.logins.finish(came, BACK)


def test_t11_a_cookie_that_somebody_else_has_signed_is_none(world: World) -> None:
    other = Logins(world.provider, RULES, world.identities, world.audit, world.clock, "another-token")
    with pytest.raises(LoginRefused, match="not begun by this browser"):
        world.logins.finish(world.came(other.begin(BACK)), BACK)


def test_another_server_of_the_same_owner_brings_it_to_an_end(world: World) -> None:
    other = Logins(world.provider, RULES, world.identities, world.audit, world.clock, SECRET)
    session = world.logins.finish(world.came(other.begin(BACK)), BACK).secret
    assert world.identities.session(digest(session), attended=True) is not None


def test_t11_it_lasts_ten_minutes(world: World) -> None:
    first, second = world.came(world.logins.begin(BACK)), world.came(world.logins.begin(BACK))
    world.clock.advance(ATTEMPT_MS - 1)
    world.logins.finish(first, BACK)
    world.clock.advance(1)
    with pytest.raises(LoginRefused, match="too long ago"):
        world.logins.finish(second, BACK)


def test_t11_another_provider_does_not_answer_in_its_place(world: World) -> None:
    came = world.came(world.logins.begin(BACK))
    with pytest.raises(LoginRefused, match="not from the provider"):
        world.logins.finish(replace(came, issuer="https://elsewhere.example.com"), BACK)


def test_t13_strangers_write_nothing_and_take_all_turns_of_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        begun = world.logins.begin(BACK)
        with pytest.raises(LoginRefused):
            world.logins.finish(replace(world.came(begun), code="x"), BACK)
    assert world.actions() == []
    monkeypatch.setattr(module, "USED_MAX", 5)
    with pytest.raises(Unavailable, match="too many have logged in"):
        world.logins.finish(world.came(world.logins.begin(BACK)), BACK)
    world.clock.advance(ATTEMPT_MS)
    came, entered = world.came(world.logins.begin(BACK)), []

    def within(code: str, attempt: Attempt, redirect_uri: str) -> Person:
        """The provider takes its time, and others come meanwhile."""
        entered.append(code)
        if len(entered) == AT_ONCE_MAX:
            with pytest.raises(Unavailable, match="too many log in at this moment"):
                world.logins.finish(world.came(world.logins.begin(BACK)), BACK)
        else:
            world.logins.finish(world.came(world.logins.begin(BACK)), BACK)
        return MemoryProvider.person(world.provider, code, attempt, redirect_uri)

    monkeypatch.setattr(module, "USED_MAX", 99)
    monkeypatch.setattr(world.provider, "person", within)
    world.logins.finish(came, BACK)
    assert len(entered) == AT_ONCE_MAX
