"""Errors as RFC 9457 ``application/problem+json``, from the one tree of errors.

``code`` is what programs look at: it is stable, and the same that the command line and the logs use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from icewright.core.errors import (
    Conflict,
    Forbidden,
    IcewrightError,
    InvalidMessage,
    InvalidName,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    Rejected,
    TooManyRequests,
    Unavailable,
    VersionMismatch,
)

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 5
_DETAIL_LENGTH_MAX: Final = 2_000

_STATUSES: Final[tuple[tuple[type[IcewrightError], HTTPStatus], ...]] = (
    (NotFound, HTTPStatus.NOT_FOUND),
    (InvalidMessage, HTTPStatus.BAD_REQUEST),
    (InvalidName, HTTPStatus.BAD_REQUEST),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (NotAllowed, HTTPStatus.CONFLICT),
    (VersionMismatch, HTTPStatus.CONFLICT),
    (Rejected, HTTPStatus.UNPROCESSABLE_ENTITY),
    (Conflict, HTTPStatus.CONFLICT),
    (TooManyRequests, HTTPStatus.TOO_MANY_REQUESTS),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (OutcomeUnknown, HTTPStatus.SERVICE_UNAVAILABLE),
)

_CODES: Final[Mapping[int, str]] = {
    HTTPStatus.NOT_FOUND: "not-found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method-not-allowed",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong with one request. ``hint`` says what the reader can do, and may be empty."""

    status: int
    code: str
    detail: str
    hint: str = ""


class BadRequest(Exception):
    """A request that is wrong as HTTP, before any of the domain's rules."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class ProblemDocument:
    """The body of every answer that is not a success: RFC 9457, with ``code`` and ``hint`` added."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str
    instance: str


def problem_of(error: IcewrightError) -> Problem:
    """The problem that an error is. Errors outside the branches of the tree are our own fault: status 500."""
    status = next((s for kind, s in _STATUSES if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)
    return Problem(status, error.code, error.message, error.hint)


def problem_response(problem: Problem, instance: str, headers: Mapping[str, str] | None = None) -> Response:
    """The answer that a problem makes. Text from strangers in it is cut to a length and escaped to ASCII."""
    document = {
        "type": f"urn:icewright:problem:{problem.code}",
        "title": HTTPStatus(problem.status).phrase,
        "status": int(problem.status),
        "detail": problem.detail[:_DETAIL_LENGTH_MAX],
        "code": problem.code,
        "hint": problem.hint[:_DETAIL_LENGTH_MAX],
        "instance": instance[:_DETAIL_LENGTH_MAX],
    }
    all_headers = dict(headers or {})
    if problem.status in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}:
        all_headers.setdefault("Retry-After", str(RETRY_AFTER_S))
    return Response(json.dumps(document), problem.status, all_headers, MEDIA_TYPE)


def add_handlers(app: FastAPI) -> None:
    """Make every error that FastAPI, Starlette or a service raises end as a problem."""
    app.add_exception_handler(IcewrightError, _on_icewright_error)
    app.add_exception_handler(BadRequest, _on_bad_request)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_error)


def _on_icewright_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, IcewrightError)  # noqa: S101 - Starlette calls the handler for this class alone
    return problem_response(problem_of(error), request.url.path)


def _on_bad_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, BadRequest)  # noqa: S101 - see above
    return problem_response(error.problem, request.url.path)


def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - see above
    said = "; ".join(f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors())
    return problem_response(Problem(HTTPStatus.BAD_REQUEST, "invalid-request", said), request.url.path)


def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - see above
    code = _CODES.get(error.status_code, "invalid-request")
    detail = f"{request.method} {request.url.path}: {error.detail}"
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_methods_of(request))
    return problem_response(Problem(error.status_code, code, detail), request.url.path, headers)


def _methods_of(request: Request) -> list[str]:
    """All methods of an address: the framework names those of the first route at it alone."""
    found: set[str] = set()
    for route in iter_route_contexts(request.app.routes):
        if compile_path(str(route.path))[0].match(request.url.path):
            found |= set(getattr(route, "methods", None) or ())
    return sorted(found)
