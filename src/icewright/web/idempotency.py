"""Requests with an ``Idempotency-Key``: carried out once, and answered the same whenever they come again.

Two halves. The middleware reads key and body, and keeps the answer before anybody gets it. In between, what a route
declares of permissions (``needs.py``) asks whether the request is the first of its key, when it knows that the caller
may make it at all: nobody is told of an answer that they may not have.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icewright.core.errors import IcewrightError, OutcomeUnknown
from icewright.web.deps import PRINCIPAL, STRANGER
from icewright.web.idempotent_answers import (
    BODY_LENGTH_MAX,
    KEPT_MS,
    KEY_LENGTH_MAX,
    AnotherRequest,
    Answer,
    Answered,
    First,
    KeyedRequest,
    UnderWay,
)
from icewright.web.idempotent_answers_sql import SqlAnswers
from icewright.web.problems import BadRequest, Problem, problem_of, problem_response

HEADER: Final = "idempotency-key"
REPEATED: Final = "Idempotency-Replayed"
"""The header that an answer has which was given before."""
BYTES_MAX: Final = 16 * 1024 * 1024
"""As many as the longest body that can be sent with a key has: policies."""

_KEY: Final = re.compile(r'"(?P<quoted>[ !#-\[\]-~]+)"|(?P<bare>[!#-+\--\[\]-~]+)')
"""A string of RFC 9651 without escapes, as the draft wants it, or a bare word, as many clients send it."""
_KEPT_HEADERS: Final = ("content-type", "etag", "retry-after")
_SCOPE: Final = "icewright.once"
_SECRETS: Final = frozenset({"/api/v1/tokens"})
"""What is answered there is shown once and kept nowhere."""
_NO_KEY: Final = Problem(
    HTTPStatus.BAD_REQUEST,
    "invalid-request",
    f"Idempotency-Key is one string of at most {KEY_LENGTH_MAX} printable ASCII characters",
    "a UUID is a good one",
)
_TOO_LARGE: Final = Problem(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", f"the body exceeds {BYTES_MAX:,} bytes", "send it without a key"
)


@dataclass(slots=True)
class _Keyed:
    """A request with a key on its way: ``begun`` once it is carried out under it."""

    request: KeyedRequest
    begun: bool = False


class _Repeated(Exception):
    """The answer is there already."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("answered before")
        self.answer = answer


class Once:
    """The ASGI middleware, within the door: it has to know who asks."""

    def __init__(self, app: ASGIApp, answers: SqlAnswers | None) -> None:
        self._app, self._answers = app, answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; with a key, keep what it is answered."""
        keys = Headers(scope=scope).getlist(HEADER) if scope["type"] == "http" and scope["method"] == "POST" else []
        # Of strangers nothing is kept, so that a key would only have us read whatever they send.
        if not keys or self._answers is None or scope[PRINCIPAL] == STRANGER:
            await self._app(scope, receive, send)
            return
        key, body = _parsed(keys), await _whole(receive)
        if key is None or body is None:
            problem = _NO_KEY if key is None else _TOO_LARGE
            await problem_response(problem, scope["path"])(scope, receive, send)
            return
        keyed = _Keyed(KeyedRequest(scope[PRINCIPAL].name, key, _fingerprint(scope, body)))
        scope[_SCOPE] = keyed
        await self._carried_out(keyed, self._answers, (scope, _again(body, receive), send))

    async def _carried_out(self, keyed: _Keyed, answers: SqlAnswers, call: tuple[Scope, Receive, Send]) -> None:
        scope, receive, send = call
        held: list[Message] = []

        async def hold(message: Message) -> None:
            if not keyed.begun:
                await send(message)
                return
            held.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                try:
                    await run_in_threadpool(_end, answers, keyed.request, _answer(held, scope["path"]))
                except IcewrightError as error:  # it happened, and nobody can be told so again
                    held[:] = [*_unkept(error, scope["path"])]
                for one in held:
                    await send(one)

        try:
            await self._app(scope, receive, hold)
        except Exception:
            if keyed.begun:
                await run_in_threadpool(answers.keep, keyed.request, Answer(HTTPStatus.INTERNAL_SERVER_ERROR, {}, None))
            raise


def begin_keyed(request: Request, answers: SqlAnswers | None) -> None:
    """Begin what a request asks for, if it has a key; called once, when the caller may ask for it.

    Raises what ends as the answer of before, or as a problem, where it is not to be carried out now.
    """
    keyed: _Keyed | None = request.scope.get(_SCOPE)
    if keyed is None or answers is None:
        return
    match answers.begin(keyed.request, KEPT_MS):
        case First():
            keyed.begun = True
        case Answered(answer):
            raise _Repeated(answer)
        case AnotherRequest():
            hint = "take a new key for each request; the same one is for trying the same again"
            problem = Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "key-reused", "the key came with another request", hint)
            raise BadRequest(problem)
        case UnderWay():
            detail = "a request with that key is being carried out, or a server died over it"
            hint = "ask again in a moment; if this persists, check the outcome, and use a new key"
            raise BadRequest(Problem(HTTPStatus.CONFLICT, "in-progress", detail, hint))


def add_handler(app: FastAPI) -> None:
    """Have answers of before end as answers."""
    app.add_exception_handler(_Repeated, _on_repeated)


def _on_repeated(request: Request, error: Exception) -> Response:
    assert isinstance(error, _Repeated)  # noqa: S101 - Starlette calls the handler for this class alone
    answer = error.answer
    if answer.body is None:
        detail = f"that was carried out before, with the status {answer.status}, and its answer is not kept"
        problem = Problem(HTTPStatus.CONFLICT, "not-kept", detail, "check the outcome")
        return problem_response(problem, request.url.path)
    return Response(answer.body, answer.status, {**answer.headers, REPEATED: "true"})


def _parsed(keys: list[str]) -> str | None:
    found = _KEY.fullmatch(keys[0].strip()) if len(keys) == 1 else None
    key = None if found is None else found["quoted"] or found["bare"]
    return key if key is not None and len(key) <= KEY_LENGTH_MAX else None


async def _whole(receive: Receive) -> bytes | None:
    """The body, None where it is too long."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None  # it broke off, and nobody waits for an answer any more
        body += message.get("body", b"")
        if len(body) > BYTES_MAX:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """What the application receives in place of what was read here."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Message:
        return waiting.pop() if waiting else await receive()

    return give


def _fingerprint(scope: Scope, body: bytes) -> str:
    """What a request asks for: where, under which condition, and with which body."""
    condition = Headers(scope=scope).get("if-match", "")
    asked = [scope["method"], scope["path"], scope["query_string"].decode("latin-1"), condition]
    return hashlib.sha256(json.dumps(asked).encode("ascii") + body).hexdigest()


def _answer(held: list[Message], path: str) -> Answer:
    headers = Headers(raw=held[0]["headers"])
    body = b"".join(message.get("body", b"") for message in held[1:])
    kept = None if path in _SECRETS or len(body) > BODY_LENGTH_MAX else body.decode("utf-8")
    return Answer(held[0]["status"], {name: headers[name] for name in _KEPT_HEADERS if name in headers}, kept)


def _end(answers: SqlAnswers, request: KeyedRequest, answer: Answer) -> None:
    """Keep an answer, or forget a request that changed nothing, since something that it needs did not answer."""
    if (
        answer.status == HTTPStatus.SERVICE_UNAVAILABLE
        and json.loads(answer.body or "{}").get("code") != OutcomeUnknown.code
    ):
        answers.forget(request)
    else:
        answers.keep(request, answer)


def _unkept(error: IcewrightError, path: str) -> Iterator[Message]:
    """The answer where the store went away between the change and the note of it: nobody can be sure of either."""
    unknown = OutcomeUnknown(
        f"it was carried out, and that could not be noted: {error.message}", hint="check the outcome"
    )
    response = problem_response(problem_of(unknown), path)
    yield {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
    yield {"type": "http.response.body", "body": bytes(response.body)}
