"""What comes in and goes out as JSON, read strictly and written so that nothing is lost.

Input is from strangers: bodies have a size limit, numbers must fit 64 bits, and nesting that would exhaust the
stack is a bad request like any other.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from math import isfinite
from typing import Annotated, Any, Final, TypeVar

from fastapi import Query, Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query as QueryParameter
from starlette.requests import ClientDisconnect

from icewright.core.codec import from_json, to_json
from icewright.core.errors import InvalidMessage
from icewright.web.problems import BadRequest, Problem

T = TypeVar("T")

BODY_BYTES_MAX: Final = 64 * 1024
"""For all bodies but reports."""
REPORT_BYTES_MAX: Final = 16 * 1024 * 1024
"""A report has a receipt and figures for each group of its task."""
LIMIT_MAX: Final = 1_000

Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="How many items at most.")]
Cursor = Annotated[
    str | None,
    Query(
        max_length=100_000,
        description="`next_cursor` of the page before; opaque. Leave out to begin.",
    ),
]


def parse_json(text: bytes | str) -> Any:
    """JSON as Python values.

    Raises :class:`InvalidMessage`, also for NaN, numbers beyond 64 bits, and a name that an object has twice: which of
    its values counts is told differently by whoever else reads it.
    """
    try:
        return json.loads(
            text, parse_int=_int64, parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_once_each
        )
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"not JSON that can be read: {error}") from error


def render(value: Any, status: int = HTTPStatus.OK) -> Response:
    """A domain value as an answer. Escaped to ASCII, because names may hold characters that UTF-8 cannot."""
    return Response(json.dumps(to_json(value), separators=(",", ":")), status, media_type="application/json")


def json_body(max_bytes: int = BODY_BYTES_MAX) -> Callable[[Request], Awaitable[Any]]:
    """A dependency that gives the JSON of the request's body.

    It raises :class:`InvalidMessage`, and :class:`BadRequest` with status 413 or 415.
    """

    async def read(request: Request) -> Any:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise BadRequest(
                Problem(
                    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                    "unsupported-media-type",
                    f"the body is {media_type or 'of no declared type'}, expected application/json",
                )
            )
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:
                    too_large = f"the body exceeds {max_bytes:,} bytes"
                    raise BadRequest(Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", too_large))
        except ClientDisconnect as error:  # nobody is there to be answered, and it is no defect of ours
            raise BadRequest(Problem(HTTPStatus.BAD_REQUEST, "invalid-request", "the body broke off")) from error
        return parse_json(bytes(body))

    return read


def page(items: Sequence[Any], cursor_after: Any) -> Response:
    """One page of a list; ``cursor_after`` is what the next page comes after, None on the last."""
    return render({"items": items, "next_cursor": None if cursor_after is None else encode_cursor(cursor_after)})


def first_page(
    found: Sequence[T], limit: int, place: Callable[[T], Any], view: Callable[[T], Any] = lambda one: one
) -> Response:
    """The first ``limit`` of what was asked for with one more, each as ``view`` shows it.

    The next page comes after the ``place`` of the last of them, if there is one more.
    """
    items = found[:limit]
    return page([view(one) for one in items], place(items[-1]) if len(found) > limit else None)


def encode_cursor(after: Any) -> str:
    """Where a page ended, as an opaque word that is safe in URLs."""
    return base64.urlsafe_b64encode(json.dumps(to_json(after), separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(cls: type[T], cursor: str | None) -> T | None:
    """What :func:`encode_cursor` was given. Raises :class:`InvalidMessage` for anything that it did not make."""
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return from_json(cls, parse_json(text))
    except (ValueError, InvalidMessage) as error:
        raise InvalidMessage(
            "the cursor is not one that this list gave out", hint="use next_cursor as it came, or leave it out"
        ) from error


def refuse_unknown_parameters(request: Request) -> None:
    """A dependency of all routes: a parameter that the route does not have is a mistake, not a filter to leave out.

    Raises :class:`BadRequest` that names those which it has.
    """
    dependant = getattr(request.scope.get("route"), "dependant", None)
    if dependant is None:
        return
    known = {field.alias for field in get_flat_params(dependant) if isinstance(field.field_info, QueryParameter)}
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        detail = f"unknown query parameter: {', '.join(unknown)}"
        hint = f"there are {', '.join(sorted(known))}" if known else "there are none here"
        raise BadRequest(Problem(HTTPStatus.BAD_REQUEST, "unknown-parameter", detail, hint))


def _int64(digits: str) -> int:
    number = int(digits)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"the number {digits[:40]} does not fit 64 bits")
    return number


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
