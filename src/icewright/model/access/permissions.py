"""Who may do what, and where: principals, roles, scopes, and the one table that says what a role permits.

Deny by default: what no role of a principal permits in a scope that covers the resource is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from icewright.core.errors import Forbidden, InvalidName
from icewright.model.iceberg.names import TableName, quote_part, require_text, split_parts


class Permission(StrEnum):
    """What a route may need. One is in :data:`PERMISSIONS` for each role that has it."""

    READ = "read"
    """See tables, plans, tasks and how the server is."""
    REPORT = "report"
    """Say that somebody committed: a hint."""
    OPERATE = "operate"
    """Have tables looked at, plan whatever it is, queue what takes nothing away, cancel, retry, pause."""
    REMOVE = "remove"
    """Queue what takes something away within its floors and budgets, or sets ``main`` back."""
    UNDO = "undo"
    """Take back what a task did."""
    APPROVE = "approve"
    """Let go beyond a budget, or for the first time, what somebody else asked for or came by itself; purge by word."""
    GOVERN = "govern"
    """Change policies and resource groups."""
    AUDIT = "audit"
    """Read the audit."""
    ADMINISTER = "administer"
    """Give and take tokens; end sessions; say where messages go."""
    WORK = "work"
    """Claim tasks, and report of them."""


class Role(StrEnum):
    """What principals are given, each in a scope."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    POLICY_ADMIN = "policy-admin"
    APPROVER = "approver"
    PLATFORM_ADMIN = "platform-admin"
    OPTIMIZER = "optimizer"
    """Of the process that carries out tasks."""
    REPORTER = "reporter"
    """Of a writer's job that says what it committed."""


_OPERATOR: Final = frozenset({Permission.READ, Permission.REPORT, Permission.OPERATE, Permission.UNDO})

PERMISSIONS: Final[Mapping[Role, frozenset[Permission]]] = MappingProxyType(
    {
        Role.VIEWER: frozenset({Permission.READ}),
        Role.OPERATOR: _OPERATOR,
        Role.POLICY_ADMIN: _OPERATOR | {Permission.REMOVE, Permission.GOVERN, Permission.AUDIT},
        Role.APPROVER: frozenset({Permission.READ, Permission.UNDO, Permission.APPROVE, Permission.AUDIT}),
        Role.PLATFORM_ADMIN: frozenset({Permission.READ, Permission.UNDO, Permission.ADMINISTER, Permission.AUDIT}),
        Role.OPTIMIZER: frozenset({Permission.WORK}),
        Role.REPORTER: frozenset({Permission.REPORT}),
    }
)
"""What each role permits in its scope."""


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Everything, a catalog, or a namespace with all below it. Of a table as a resource: its namespace."""

    catalog: str = ""
    """Empty: all of them."""
    namespace: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(self.namespace) or (self.namespace and not self.catalog):
            raise InvalidName(f"not a scope: {self.namespace!r} of {self.catalog!r}")
        require_text(self.catalog, *self.namespace)

    def __str__(self) -> str:
        return ".".join(quote_part(part) for part in (self.catalog, *self.namespace)) if self.catalog else "*"

    @classmethod
    def parse(cls, text: str) -> Scope:
        """``*``, ``catalog`` or ``catalog.namespace``, quoted as names of tables. Raises :class:`InvalidName`."""
        parts = [] if text == "*" else split_parts(text)
        return cls(parts[0], tuple(parts[1:])) if parts else cls()

    @classmethod
    def of(cls, name: TableName) -> Scope:
        """Where a table is."""
        return cls(name.catalog, name.namespace)

    def covers(self, resource: Scope) -> bool:
        """Whether all of ``resource`` lies in this scope."""
        if not self.catalog:
            return True
        return self.catalog == resource.catalog and resource.namespace[: len(self.namespace)] == self.namespace


EVERYTHING: Final = Scope()
Scopes: TypeAlias = tuple[Scope, ...]
EVERYWHERE: Final[Scopes] = (EVERYTHING,)
"""What a list is of that is not restricted."""


def covers(scopes: Scopes, resource: Scope) -> bool:
    """Whether one of the scopes covers all of ``resource``; none does where there are none."""
    return any(scope.covers(resource) for scope in scopes)


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """A role in a scope."""

    role: Role
    scope: Scope = EVERYTHING


Grants: TypeAlias = tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who asks for something: ``name`` is unique among all, and what the audit calls them.

    ``shown`` is what people call them, where that is something else: nothing is decided by it.
    """

    name: str
    grants: Grants
    shown: str = field(default="", compare=False)

    def may(self, permission: Permission, resource: Scope) -> bool:
        """Whether some role of this principal permits it there."""
        return covers(self.scopes(permission), resource)

    def scopes(self, permission: Permission) -> Scopes:
        """Where this principal has the permission: nowhere if empty, everywhere if :data:`EVERYTHING` is among them."""
        found = {grant.scope for grant in self.grants if permission in PERMISSIONS[grant.role]}
        return EVERYWHERE if EVERYTHING in found else tuple(sorted(found))


OWNER: Final = Principal("owner", tuple(Grant(role) for role in Role))
"""Whoever can read the server's own files on its machine: all roles, everywhere."""


def authorize(principal: Principal, permission: Permission, resource: Scope) -> None:
    """Let pass, or raise :class:`Forbidden`: the one decision on what anybody may do."""
    if not principal.may(permission, resource):
        raise forbidden(principal, permission, str(resource))


def forbidden(principal: Principal, permission: Permission, where: str) -> Forbidden:
    """The refusal that says which permission is missing, and who has it."""
    roles = ", ".join(role for role, permitted in PERMISSIONS.items() if permission in permitted)
    everywhere = "everything" if where == "*" else where
    return Forbidden(
        f"{principal.name} lacks the permission `{permission}` on {everywhere}",
        hint=f"roles that have it: {roles}; an administrator of the platform gives roles",
    )


Detail: TypeAlias = Mapping[str, int | str]


@dataclass(frozen=True, slots=True)
class Act:
    """What is done, of which an entry is made: ``resource`` is what it is done to."""

    action: str
    resource: str
    detail: Detail = field(default_factory=dict)
