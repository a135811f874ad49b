"""People whom a provider of OpenID Connect vouches for: who they are, and which roles its word about them gives here.

Deny by default: whoever has logged in and is given a role by no rule has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from icewright.core.errors import InvalidName
from icewright.model.access.permissions import EVERYTHING, Act, Grant, Grants, Principal, Role, Scope

OF_PERSON: Final = "person:"
"""What names of people begin with who came by a provider. Behind it: its issuer, ``#``, and its name for them."""
SUBJECT_LENGTH_MAX: Final = 255
"""OpenID Connect Core 1.0, section 2, ``sub``."""
_SHOWN_LENGTH_MAX: Final = 100
_OF_EMAIL: Final = "email"
_IS_VERIFIED: Final = "email_verified"
_EVERYWHERE_ONLY: Final = frozenset({Role.OPTIMIZER, Role.PLATFORM_ADMIN})
_NOT_FOR_PEOPLE: Final = frozenset({Role.OPTIMIZER})


@dataclass(frozen=True, slots=True)
class RoleRule:
    """Whoever has ``value`` in the claim ``claim`` gets these grants."""

    claim: str
    value: str
    grants: Grants

    @classmethod
    def parse(cls, condition: str, given: str) -> RoleRule:
        """``groups=data-eng`` and ``operator@lake.sales, viewer``, as the configuration has them.

        Raises :class:`InvalidName` that says what is wrong with it.
        """
        claim, equals, value = condition.partition("=")
        if not equals or not claim or not value:
            raise InvalidName(f"{condition!r} is no claim and its value", hint='write "groups=data-eng"')
        return cls(claim, value, tuple(sorted({_grant(one.strip()) for one in given.split(",")})))

    @property
    def condition(self) -> str:
        """``groups=data-eng``: what a session remembers of the rules by which somebody was let in."""
        return f"{self.claim}={self.value}"


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a provider vouches for: ``subject`` is its own name for them, ``claims`` all that it says of them."""

    issuer: str
    subject: str
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """What the audit calls them. No two are called so."""
        return name_of(self.issuer, self.subject)

    @property
    def shown(self) -> str:
        """What people call them: not unique, and perhaps chosen by themselves, so that nothing is decided by it."""
        names = [self.claims.get(claim) for claim in ("name", "preferred_username")]
        email = self.claims.get(_OF_EMAIL) if self.claims.get(_IS_VERIFIED) is True else None
        said = next((one for one in (*names, email) if isinstance(one, str) and one.strip()), self.subject)
        return "".join(letter if letter.isprintable() else " " for letter in said).strip()[:_SHOWN_LENGTH_MAX]

    def conditions(self, rules: Iterable[RoleRule]) -> tuple[str, ...]:
        """Those of the rules that are about them."""
        return tuple(sorted({rule.condition for rule in rules if rule.value in self._values(rule.claim)}))

    def principal(self, rules: Sequence[RoleRule]) -> Principal:
        """Who they are here, with what the rules give them: perhaps nothing."""
        return Principal(self.name, granted(rules, self.conditions(rules)), self.shown)

    def _values(self, claim: str) -> Sequence[str]:
        """What a claim has: one text or several. An address of e-mail counts when the provider has verified it."""
        if claim == _OF_EMAIL and self.claims.get(_IS_VERIFIED) is not True:
            return ()
        found = _at(self.claims, claim)
        if isinstance(found, str):
            return (found,)
        return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list | tuple) else ()


def name_of(issuer: str, subject: str) -> str:
    """What the audit calls whom an issuer calls ``subject``. No issuer has a ``#`` (OpenID Connect Discovery, 3)."""
    return f"{OF_PERSON}{issuer}#{subject}"


def granted(rules: Iterable[RoleRule], conditions: Iterable[str]) -> Grants:
    """What the rules give to whoever meets these conditions."""
    met = frozenset(conditions)
    return tuple(sorted({grant for rule in rules if rule.condition in met for grant in rule.grants}))


def refused(person: Person, because: str) -> Act:
    """That somebody whom the provider vouched for was not let in."""
    return Act("session.refused", person.name, {"shown": person.shown, "because": because})


def _at(claims: Mapping[str, Any], path: str) -> Any:
    """A claim by its name, or by a path of names with dots, as ``realm_access.roles``."""
    if path in claims:
        return claims[path]
    head, dot, rest = path.partition(".")
    below = claims.get(head)
    return _at(below, rest) if dot and isinstance(below, Mapping) else None


def _grant(said: str) -> Grant:
    role_name, _, scope_name = said.partition("@")
    try:
        role = Role(role_name)
    except ValueError:
        known = ", ".join(role for role in Role if role not in _NOT_FOR_PEOPLE)
        hint = f"one of {known}, perhaps with @catalog.namespace"
        raise InvalidName(f"{role_name!r} is no role", hint=hint) from None
    if role in _NOT_FOR_PEOPLE:
        raise InvalidName(f"the role {role} is for programs", hint="make a token for it")
    scope = Scope.parse(scope_name or "*")
    if role in _EVERYWHERE_ONLY and scope != EVERYTHING:
        raise InvalidName(f"the role {role} is for everything alone", hint="leave @... out")
    return Grant(role, scope)
