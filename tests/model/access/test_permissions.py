"""Who may do what: the table of hazards 3.2, and scopes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import Forbidden, IcewrightError, InvalidName
from icewright.model.access.permissions import (
    EVERYTHING,
    OWNER,
    PERMISSIONS,
    Grant,
    Permission,
    Principal,
    Role,
    Scope,
    authorize,
)
from icewright.model.actions.actions import ActionKind, traits_of
from icewright.model.iceberg.names import TableName
from tests.cases import each_case

PARTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
SCOPES = st.one_of(st.just(EVERYTHING), st.builds(Scope, PARTS, st.lists(PARTS, max_size=3).map(tuple)))

# hazards 3.2, a line per capability: who has it. "Propose" of a policy admin is `operate` (plans are theirs to make).
CAPABILITIES = {
    Permission.READ: {"viewer", "operator", "policy-admin", "approver", "platform-admin"},
    Permission.OPERATE: {"operator", "policy-admin"},
    Permission.REMOVE: {"policy-admin"},
    Permission.APPROVE: {"approver"},
    Permission.GOVERN: {"policy-admin"},
    Permission.ADMINISTER: {"platform-admin"},
    Permission.UNDO: {"operator", "policy-admin", "approver", "platform-admin"},
    Permission.REPORT: {"operator", "policy-admin", "reporter"},
    Permission.WORK: {"optimizer"},
    Permission.AUDIT: {"policy-admin", "approver", "platform-admin"},
}


@each_case("role", Role)
@each_case("permission", Permission)
def test_t2_each_role_has_the_permissions_of_the_table_and_no_other(role: Role, permission: Permission) -> None:
    assert (permission in PERMISSIONS[role]) == (role.value in CAPABILITIES[permission])


def test_t2_nobody_who_asks_for_removals_approves_them_by_the_same_role() -> None:
    for permitted in PERMISSIONS.values():
        assert not {Permission.REMOVE, Permission.APPROVE} <= permitted


@given(SCOPES)
def test_a_scope_is_read_as_it_is_written(scope: Scope) -> None:
    assert Scope.parse(str(scope)) == scope


@given(SCOPES, SCOPES, SCOPES)
def test_t2_what_is_covered_by_the_covered_is_covered(one: Scope, two: Scope, three: Scope) -> None:
    assert one.covers(one)
    assert EVERYTHING.covers(one)
    assert not (one.covers(two) and two.covers(three)) or one.covers(three)
    assert not (one.covers(two) and two.covers(one)) or one == two


@each_case(
    ("scope", "table", "covers"),
    [
        ("*", "lake.db.t", True),
        ("lake", "lake.db.t", True),
        ("lake.db", "lake.db.t", True),
        ("lake.db", "lake.db.sub.t", True),
        ("lake.db.sub", "lake.db.t", False),
        ("lake.d", "lake.db.t", False),
        ("lake.db.t", "lake.db.t", False),
        ("other", "lake.db.t", False),
        ("lak", "lake.db.t", False),
        ("`lake.db`", "lake.db.t", False),
        ("lake.DB", "lake.db.t", False),
    ],
)
def test_t2_a_scope_covers_whole_parts_of_names_alone(scope: str, table: str, *, covers: bool) -> None:
    assert Scope.parse(scope).covers(Scope.of(TableName.parse(table))) == covers


@each_case("text", ["", ".", "lake.", ".db", "lake..db", "`", "*.db`"])
def test_what_is_no_scope_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        Scope.parse(text)


def test_an_empty_namespace_or_one_of_no_catalog_is_no_scope() -> None:
    for catalog, namespace in (("", ("db",)), ("lake", ("",))):
        with pytest.raises(IcewrightError):
            Scope(catalog, namespace)


def test_t2_a_grant_counts_in_its_scope_alone_and_not_with_the_role_of_another() -> None:
    db, other = Scope("lake", ("db",)), Scope("lake", ("other",))
    ada = Principal("ada", (Grant(Role.VIEWER, Scope("lake")), Grant(Role.OPERATOR, db)))
    authorize(ada, Permission.OPERATE, db)
    authorize(ada, Permission.READ, other)
    with pytest.raises(Forbidden, match=r"ada lacks the permission `operate` on lake\.other") as refused:
        authorize(ada, Permission.OPERATE, other)
    assert "operator, policy-admin" in refused.value.hint
    with pytest.raises(Forbidden, match="on everything"):
        authorize(ada, Permission.READ, EVERYTHING)
    assert ada.scopes(Permission.READ) == (Scope("lake"), db)
    assert ada.scopes(Permission.WORK) == ()


def test_the_owner_may_do_everything_and_nobody_nothing() -> None:
    for permission in Permission:
        authorize(OWNER, permission, EVERYTHING)
        assert OWNER.scopes(permission) == (EVERYTHING,)
        with pytest.raises(Forbidden):
            authorize(Principal("nobody", ()), permission, Scope("lake"))


def test_what_takes_away_needs_more_than_to_operate() -> None:
    assert {kind for kind in ActionKind if traits_of(kind).permission is Permission.REMOVE} == {
        "expire_snapshots",
        "expire_data",
        "remove_orphan_files",
        "remove_expired_files",
        "rollback_to_snapshot",
    }
    assert {kind for kind in ActionKind if traits_of(kind).permission is Permission.UNDO} == {
        "undo_expire_snapshots",
        "undo_expire_data",
        "restore_files",
    }
