"""Who people are by a provider's word, and which roles that gives them: none unless a rule says so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import InvalidName
from icewright.model.access.people import Person, RoleRule
from icewright.model.access.permissions import Grant, Role, Scope
from tests.cases import each_case

ISSUER = "https://login.example.com"
ENGINEERS = RoleRule.parse("groups=data-eng", "operator@lake.sales, viewer")
OF_EMAIL = RoleRule.parse("email=ada@example.com", "approver")
NESTED = RoleRule.parse("realm_access.roles=lake-admin", "platform-admin")
DOTTED = RoleRule.parse("https://example.com/groups=all", "viewer@lake")
RULES = (ENGINEERS, OF_EMAIL, NESTED, DOTTED)


def grants(claims: dict[str, Any]) -> set[str]:
    found = Person(ISSUER, "7", claims).principal(RULES).grants
    return {f"{grant.role}@{grant.scope}" for grant in found}


@each_case(
    ("claims", "given"),
    [
        ({}, set()),
        ({"groups": ["data-eng", "x"]}, {"operator@lake.sales", "viewer@*"}),
        ({"groups": "data-eng"}, {"operator@lake.sales", "viewer@*"}),
        ({"groups": ["DATA-ENG", "data-eng2", "data"]}, set()),
        ({"groups": "x data-eng"}, set()),
        ({"groups": {"data-eng": True}}, set()),
        ({"groups": [["data-eng"]]}, set()),
        ({"groups": None}, set()),
        ({"email": "ada@example.com"}, set()),
        ({"email": "ada@example.com", "email_verified": False}, set()),
        ({"email": "ada@example.com", "email_verified": "true"}, set()),
        ({"email": "ada@example.com", "email_verified": True}, {"approver@*"}),
        ({"realm_access": {"roles": ["lake-admin"]}}, {"platform-admin@*"}),
        ({"realm_access": ["lake-admin"], "roles": ["lake-admin"]}, set()),
        ({"https://example.com/groups": ["all"]}, {"viewer@lake"}),
        ({"role": "platform-admin", "roles": ["platform-admin"], "grants": ["platform-admin@*"]}, set()),
    ],
)
def test_t2_nobody_has_a_role_that_no_rule_gives(claims: dict[str, Any], given: set[str]) -> None:
    assert grants(claims) == given


@given(
    st.dictionaries(st.text(max_size=9), st.recursive(st.text() | st.none() | st.booleans(), st.lists, max_leaves=5))
)
def test_t2_whatever_else_is_claimed(claims: dict[str, Any]) -> None:
    known = {rule.claim.split(".")[0] for rule in RULES}
    assert grants({key: value for key, value in claims.items() if key not in known}) == set()


@each_case(
    ("condition", "roles"),
    [
        ("groups", "viewer"),
        ("=x", "viewer"),
        ("groups=", "viewer"),
        ("groups=x", ""),
        ("groups=x", "viewer,"),
        ("groups=x", "owner"),
        ("groups=x", "Viewer"),
        ("groups=x", "optimizer"),
        ("groups=x", "viewer@lake..db"),
        ("groups=x", "platform-admin@lake"),
    ],
)
def test_what_is_no_rule_is_refused(condition: str, roles: str) -> None:
    with pytest.raises(InvalidName):
        RoleRule.parse(condition, roles)


def test_a_value_may_have_anything_in_it() -> None:
    rule = RoleRule.parse("groups=CN=Data, Eng", "viewer@lake.`a.b`")
    assert (rule.claim, rule.value) == ("groups", "CN=Data, Eng")
    assert rule.grants == (Grant(Role.VIEWER, Scope("lake", ("a.b",))),)


def test_the_audit_has_issuer_and_subject_and_people_see_the_name() -> None:
    ada = Person(ISSUER, "7", {"name": "Ada\n\u202eL.", "email": "a@b", "email_verified": False})
    principal = ada.principal(RULES)
    assert (principal.name, principal.shown) == ("person:https://login.example.com#7", "Ada  L.")
    assert Person(ISSUER, "7", {"email": "a@b"}).shown == "7"
    assert Person(ISSUER, "7", {"email": "a@b", "email_verified": True, "name": " "}).shown == "a@b"
    assert Person(ISSUER, "7", {"name": 3, "preferred_username": "ada" * 99}).shown == ("ada" * 99)[:100]
