"""What each route declares: the permission that it needs, and on what. The application refuses to start without.

The declaration is a dependency that runs before anything of the route does. It finds out where the resource in the
address is (the namespace of a table, of a plan's or a task's table) and asks :func:`.permissions.authorize`.
What somebody may not even see is answered as if it were not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, cast

from fastapi import Depends, FastAPI, Request
from fastapi.routing import iter_route_contexts

from icewright.core.errors import InvalidMessage, NotFound
from icewright.identity.authentication import Gate
from icewright.identity.gate import SAFE_METHODS
from icewright.model.access.identity import OF_TOKEN
from icewright.model.access.people import OF_PERSON
from icewright.model.access.permissions import (
    EVERYTHING,
    OWNER,
    Act,
    Permission,
    Principal,
    Scope,
    Scopes,
    authorize,
    forbidden,
)
from icewright.model.actions.actions import ActionKind, traits_of
from icewright.web.deps import Caller
from icewright.web.idempotency import begin_keyed


class On(StrEnum):
    """What a permission is needed on."""

    EVERYTHING = "everything"
    """The whole installation."""
    ANYWHERE = "anywhere"
    """Some place at least: the route itself shows nothing of others, or asks again when it has read the body."""
    TABLE = "table"
    """The table whose ``uuid`` is in the path, and ``catalog`` perhaps in the query."""
    PLAN = "plan"
    """The table of the plan whose ``plan_id`` is in the path."""
    TASK = "task"
    """The table of the task whose ``task_id`` is in the path."""
    RECOMMENDATION = "recommendation"
    """The table of the recommendation whose ``recommendation_id`` is in the path."""
    RUN = "run"
    """The table from which the task of ``task_id`` in the path removed files."""


@dataclass(frozen=True, slots=True)
class Found:
    """A resource: where it is, and the kinds of the actions that it would carry out."""

    place: Scope
    kinds: tuple[ActionKind, ...] = ()


IdsLike = Callable[[str, Scopes, int], Sequence[str]]
"""Ids that begin or end so, in scopes, and so many of them at most."""
_CANDIDATES_MAX: Final = 5
_SHORT = re.compile(r"(?:(?:plan|task)-)?(?P<part>[0-9a-f][0-9a-f-]{6,33}[0-9a-f-])")
"""A part of a UUID; a whole one is longer."""


def unseen(what: str) -> NotFound:
    """The same for what is not there and what is not theirs to see."""
    return NotFound(f"no {what} of that id, or none that you may see")


class AmbiguousId(NotFound):
    """An id that is not whole, and of several that the caller may see."""

    def __init__(self, short: str, ids: Sequence[str]) -> None:
        more = ", and more" if len(ids) > _CANDIDATES_MAX else ""
        named = ", ".join(ids[:_CANDIDATES_MAX])
        super().__init__(f"{short} stands for several ids: {named}{more}", hint="give more of the id, or all of it")


def complete_id(request: Request, caller: Principal, name: str, ids_like: IdsLike) -> str:
    """The id in the path, whole: its first or last characters, 8 at least, stand for it among what the caller may read.

    From here on the path has the whole one, also for the route and in the audit. Raises :class:`AmbiguousId`.
    """
    given = str(request.path_params[name])
    short = _SHORT.fullmatch(given)
    if short is None:
        return given
    found = ids_like(short["part"], caller.scopes(Permission.READ), _CANDIDATES_MAX + 1)
    if len(found) > 1:
        raise AmbiguousId(given, found)
    if found:
        request.path_params[name] = found[0]
    return str(request.path_params[name])


@dataclass(frozen=True)
class Declared:
    """A declaration. ``permission`` None: what carrying out the actions of the plan or task needs."""

    permission: Permission | None
    on: On

    def __call__(self, request: Request, caller: Caller, access: Gate) -> None:
        """Let the request pass, or raise ``Forbidden`` or ``NotFound``; a change is in the audit first."""
        self._authorize(request, caller)
        if request.method not in SAFE_METHODS and self.changes:
            begin_keyed(request, access.answers)
            access.audit.append(_asked(request))

    @property
    def changes(self) -> bool:
        """Whether what is asked for by POST is in the audit, and carried out once by its key."""
        return self.permission not in _UNAUDITED

    def _authorize(self, request: Request, caller: Principal) -> None:
        if self.on is On.ANYWHERE:
            permission = self.permission or Permission.OPERATE
            if not caller.scopes(permission):
                raise forbidden(caller, permission, "anything")
            return
        if self.on is On.EVERYTHING:
            authorize(caller, self.permission or Permission.OPERATE, EVERYTHING)
            return
        found = self._found(request, caller)
        for permission in self._needed(found):
            authorize(caller, permission, found.place)

    def _needed(self, found: Found) -> frozenset[Permission]:
        if self.permission is not None:
            return frozenset({self.permission})
        return frozenset(traits_of(kind).permission for kind in found.kinds) or frozenset({Permission.OPERATE})

    def _found(self, request: Request, caller: Principal) -> Found:
        try:
            found = finders(request)[self.on](request, caller)
        except AmbiguousId:
            raise
        except NotFound:
            if caller.may(Permission.READ, EVERYTHING):
                raise
            raise unseen(self.on) from None
        if not caller.may(Permission.READ, found.place):
            raise unseen(self.on)
        return found


@dataclass(frozen=True)
class Public:
    """The declaration of what strangers may ask."""

    def __call__(self) -> None:
        """Let everybody pass."""


def needs(permission: Permission, on: On) -> Any:
    """The dependency for a route's ``dependencies``."""
    return Depends(Declared(permission, on))


def needs_as_its_actions(on: On) -> Any:
    """The dependency of a route that has the actions of a plan or a task carried out: it needs what they need."""
    return Depends(Declared(None, on))


_UNAUDITED: Final = frozenset({Permission.READ, Permission.WORK, Permission.REPORT})
"""What changes nothing by itself: whoever may only read cannot fill the audit, attempts and events are kept elsewhere.

That somebody logged in is said where the session is opened.
"""
_SAID_LENGTH_MAX: Final = 1_000
_NAME_SHOWN: Final = 100


def _asked(request: Request) -> Act:
    """A request that is about to be carried out, as the audit has it: what was asked for, and of what."""
    template = getattr(request.scope.get("route"), "path", request.url.path)
    named = " ".join(f"{name}={value}" for name, value in sorted(request.path_params.items()))
    return Act("api", f"{request.method} {template}", {"of": named[:_SAID_LENGTH_MAX]})


def named(caller: Principal, said: str) -> str:
    """By which name it is kept who did something: the owner may be several people, and says which; others are one.

    Raises ``InvalidMessage`` where the owner says no name, or one that others may have.
    """
    if caller != OWNER:
        return f"{caller.name} ({caller.shown})" if caller.shown else caller.name
    name = said.strip()
    if not name or name.startswith((OF_TOKEN, OF_PERSON)):
        raise InvalidMessage(f"{said[:_NAME_SHOWN]!r} is no name of a person", hint="say who you are")
    return f"{caller.name} ({name})"


PUBLIC: Final[Any] = Depends(Public())


def declarations(app: FastAPI) -> Iterator[tuple[str, str, Declared | Public | None]]:
    """Each method and path of the application, with what it declares."""
    for route in iter_route_contexts(app.routes):
        dependant = getattr(route, "dependant", None)  # a mount, or a route of Starlette's, has none
        found = [] if dependant is None else [dependency.call for dependency in dependant.dependencies]
        declared = [one for one in found if isinstance(one, Declared | Public)]
        for method in sorted(getattr(route, "methods", None) or {"*"}):
            yield method, str(route.path), declared[0] if len(declared) == 1 else None


def require_declarations(app: FastAPI) -> None:
    """Raise ``ValueError`` where a route does not declare what it needs, exactly once."""
    bare = [f"{method} {path}" for method, path, declared in declarations(app) if declared is None]
    if bare:
        raise ValueError(f"routes that declare no permission, or several: {', '.join(bare)}")


Finder = Callable[[Request, Principal], Found]
"""Finds the resource that a path names. Raises :class:`~icewright.core.errors.NotFound`."""


def finders(request: Request) -> Mapping[On, Finder]:
    """How the application finds each kind of resource."""
    return cast("Mapping[On, Finder]", request.app.state.finders)
