"""Who somebody is, tokens, and the audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from icewright.audit.model import AuditEntry, Head
from icewright.catalogs.port import Catalog
from icewright.core.codec import from_json
from icewright.identity.authentication import Gate
from icewright.identity.authorization import On, needs
from icewright.identity.gate import bearer_token, has_token, own_origin, presented_session, session_cookie
from icewright.model.access.identity import GivenToken, NewToken, TokenRecord
from icewright.model.access.permissions import PERMISSIONS, Grant, Permission
from icewright.web.deps import Caller, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, first_page, json_body, page, render
from icewright.web.schema import operation, page_of, schema_of

router = APIRouter(tags=["access"])

_NOT_FOUND = {404: "No such token."}


@dataclass(frozen=True, slots=True)
class Me:
    """Who asks, with which roles where, and what these permit in some place at least."""

    name: str
    grants: tuple[Grant, ...]
    permissions: tuple[Permission, ...]
    shown: str
    """What people call them, where that is not the name that the audit has."""


@dataclass(frozen=True, slots=True)
class LoggedOut:
    """Nobody is logged in any more. `further` is where the browser goes to be logged out at the provider as well."""

    further: str | None


@dataclass(frozen=True, slots=True)
class AuditState:
    """Between which entries the audit is: ``start`` is what its first one follows. Keep ``head`` to compare later."""

    start: Head
    head: Head


@router.get("/me", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(Me))
def show_me(caller: Caller) -> Response:
    """Who asks, and what they may do."""
    permitted = {permission for grant in caller.grants for permission in PERMISSIONS[grant.role]}
    return render(Me(caller.name, caller.grants, tuple(sorted(permitted)), caller.shown))


@router.post("/logout", dependencies=[needs(Permission.READ, On.ANYWHERE)], **operation(LoggedOut))
def log_out(request: Request, access: Gate, caller: Caller) -> Response:
    """End the session of the page or of the program that asks. Tokens are revoked instead."""
    if has_token(request.headers):
        access.log_out_program(bearer_token(request.headers) or "")
    elif (session := presented_session(request.headers)) is not None:
        access.log_out(session)
    back = f"{access.public_url or own_origin(request.scope, request.headers)}/"
    further = None if access.logins is None else access.logins.logout_address(caller, back)
    response = render(LoggedOut(further))
    response.delete_cookie(session_cookie(request.headers))
    return response


@router.get("/tokens", dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING)], **operation(page_of(TokenRecord)))
def list_tokens(access: Gate, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Tokens by name, with what they permit and when they were last used; also those that are not valid any more."""
    found = access.identities.tokens(limit=limit + 1, after=decode_cursor(str, cursor))
    return first_page(found, limit, lambda one: one.name)


@router.post(
    "/tokens",
    dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING)],
    **operation(
        GivenToken, status=201, accepts=schema_of(NewToken), problems={409: "There is or was a token of that name."}
    ),
)
def create_token(
    catalogs: Service[Mapping[str, Catalog]], access: Gate, caller: Caller, body: Annotated[Any, Depends(json_body())]
) -> Response:
    """A new token. The answer is the only place where it is ever shown.

    Its scopes are `*`, catalogs that are configured, or namespaces of these.
    """
    new = from_json(NewToken, body)
    new.require_catalogs(catalogs.keys())
    return render(access.give_token(new, caller.name), 201)


@router.post(
    "/tokens/{name}/revoke",
    dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING)],
    **operation(TokenRecord, problems=_NOT_FOUND),
)
def revoke_token(access: Gate, name: str) -> Response:
    """Revoke a token and the sessions that were opened with it, effective at once, on all servers."""
    return render(access.identities.revoke(name))


@router.get("/audit", dependencies=[needs(Permission.AUDIT, On.EVERYTHING)], **operation(page_of(AuditEntry)))
def list_audit(
    access: Gate,
    limit: Limit = 100,
    cursor: Cursor = None,
    after: Annotated[
        int | None, Query(ge=0, le=2**63 - 1, description="From the oldest on: those behind that number.")
    ] = None,
) -> Response:
    """What was done by whom: the newest first, or with `after` in order, as it takes to verify the chain."""
    if after is not None:
        ordered = access.audit.entries(limit=limit, after=after)
        return page(ordered, None)
    found = access.audit.latest(limit=limit + 1, before=decode_cursor(int, cursor))
    return first_page(found, limit, lambda one: one.number)


@router.get("/audit/head", dependencies=[needs(Permission.AUDIT, On.EVERYTHING)], **operation(AuditState))
def show_audit_head(access: Gate) -> Response:
    """Where the audit begins and ends. A head that is kept elsewhere shows later whether anything was cut off."""
    return render(AuditState(access.audit.start(), access.audit.head()))
