"""Policies: what is applied, what was, what others would change, and applying them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Response

from icewright.core.codec import from_json
from icewright.core.errors import Conflict
from icewright.core.times import Instant
from icewright.identity.authorization import On, named, needs
from icewright.model.access.permissions import Permission
from icewright.model.policy.policies import NewRevision, Policies, PolicyRevision
from icewright.policy.apply import PolicyBook
from icewright.policy.rules.difference import PolicyDifference
from icewright.web.deps import Caller, Service
from icewright.web.messages import Cursor, Limit, decode_cursor, json_body, page, render
from icewright.web.problems import BadRequest, Problem
from icewright.web.schema import operation, page_of, schema_of

router = APIRouter(prefix="/policies", tags=["policies"])

POLICIES_BYTES_MAX: Final = 4 * 1024 * 1024
"""A thousand rules with their patterns and notes."""
_TAG_LENGTH_MAX: Final = 20

Body = Annotated[Any, Depends(json_body(POLICIES_BYTES_MAX))]


@dataclass(frozen=True, slots=True)
class RevisionSummary:
    """A revision without its rules."""

    number: int
    rules: int
    applied_at: Instant
    applied_by: str
    note: str


@router.get("", dependencies=[needs(Permission.READ, On.EVERYTHING)], **operation(PolicyRevision))
def show_policies(policies: Service[PolicyBook]) -> Response:
    """The policies that are applied: revision 0 is none. The `ETag` is what applying others takes in `If-Match`."""
    store = policies.store
    return _revision(store.revision(store.present()))


@router.get("/revisions", dependencies=[needs(Permission.READ, On.EVERYTHING)], **operation(page_of(RevisionSummary)))
def list_revisions(policies: Service[PolicyBook], limit: Limit = 20, cursor: Cursor = None) -> Response:
    """All that was ever applied, newest first."""
    found = policies.store.revisions(limit=limit + 1, before=decode_cursor(int, cursor))
    items = [
        RevisionSummary(one.number, len(one.policies.rules), one.applied_at, one.applied_by, one.note)
        for one in found[:limit]
    ]
    return page(items, items[-1].number if len(found) > limit else None)


@router.get(
    "/revisions/{number}",
    dependencies=[needs(Permission.READ, On.EVERYTHING)],
    **operation(PolicyRevision, problems={404: "No such revision."}),
)
def show_revision(policies: Service[PolicyBook], number: int) -> Response:
    """One revision in full."""
    return _revision(policies.store.revision(number))


@router.post(
    "/preview",
    dependencies=[needs(Permission.READ, On.EVERYTHING)],
    **operation(PolicyDifference, accepts=schema_of(Policies), problems={422: "They cannot be applied."}),
)
def preview_policies(policies: Service[PolicyBook], body: Body) -> Response:
    """What applying these policies in place of all that are would change, for which tables. Changes nothing."""
    return render(policies.preview(from_json(Policies, body)))


@router.post(
    "",
    dependencies=[needs(Permission.GOVERN, On.EVERYTHING)],
    **operation(
        PolicyRevision,
        status=201,
        accepts=schema_of(NewRevision),
        problems={
            412: "The policies are now at another revision.",
            422: "They cannot be applied.",
            428: "There is no `If-Match` with the revision that the difference was shown for.",
        },
    ),
)
def apply_policies(
    policies: Service[PolicyBook],
    caller: Caller,
    body: Body,
    if_match: Annotated[str | None, Header(description='The revision that is to be replaced: `"3"`.')] = None,
) -> Response:
    """Apply these policies in place of all that are, as the next revision, all at once."""
    expected, new = _expected(if_match), from_json(NewRevision, body)
    try:
        made = policies.apply(replace(new, applied_by=named(caller, new.applied_by)), expected)
    except Conflict as error:
        problem = Problem(HTTPStatus.PRECONDITION_FAILED, error.code, error.message, "look at the difference again")
        raise BadRequest(problem) from error
    return _revision(made, HTTPStatus.CREATED)


def _revision(found: PolicyRevision, status: int = HTTPStatus.OK) -> Response:
    response = render(found, status)
    response.headers["ETag"] = f'"{found.number}"'
    return response


def _expected(if_match: str | None) -> int:
    tag = (if_match or "").strip().removeprefix('"').removesuffix('"')
    if tag.isascii() and tag.isdigit() and len(tag) < _TAG_LENGTH_MAX:
        return int(tag)
    raise BadRequest(
        Problem(
            HTTPStatus.PRECONDITION_REQUIRED,
            "invalid-request",
            'If-Match has to name the revision that is replaced, as in If-Match: "3"',
            "it is the ETag of GET /api/v1/policies, and in each difference",
        )
    )
