"""What the OpenAPI document says of all operations alike: conditions, keys, credentials, and what the tags mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icewright.web.examples import EXAMPLES
from icewright.web.idempotency import REPEATED
from icewright.web.idempotent_answers import KEY_LENGTH_MAX

KEY_PATTERN: Final = r'^("[ !#-\[\]-~]+"|[!#-+\--\[\]-~]+)$'
"""What :mod:`icewright.web.idempotency` takes: a quoted string without escapes, or a bare word."""

PARAMETERS: Final[Mapping[str, Any]] = {
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "required": False,
        "description": "The `ETag` of an answer that the caller has: 304 while it is the present one.",
        "schema": {"type": "string"},
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "The same request under the same key is carried out once within 24 hours.",
        "schema": {"type": "string", "minLength": 1, "maxLength": KEY_LENGTH_MAX, "pattern": KEY_PATTERN},
        "example": '"8e03978e-40d5-43dd-bc93-6894a57f9324"',
    },
}
SECURITY_SCHEMES: Final[Mapping[str, Any]] = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "One of `icewright token create`, or the server's own.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "icewright-session-7077",
        "description": "The page's. The port of the server is part of its name.",
    },
}
TAGS: Final = [
    {"name": "server", "description": "Whether it is well, and what it does."},
    {"name": "access", "description": "Who has access, and who did what."},
    {"name": "tables", "description": "What is known of each table, and looks at it."},
    {"name": "plans", "description": "What should be done, and approving it."},
    {"name": "policies", "description": "What owners want, from files kept in git."},
    {"name": "tasks", "description": "What is being done, and was."},
    {"name": "queue", "description": "What of it is paused, draining or stopped."},
    {"name": "quarantine", "description": "Removed files that can be restored."},
    {"name": "feed", "description": "What happened, in its order."},
    {"name": "events", "description": "What others say that they committed."},
    {"name": "queries", "description": "Queries that engines ran, and what they recommend."},
    {"name": "optimizers", "description": "The side of those who carry tasks out."},
]


def describe(method: str, operation: dict[str, Any], *, is_keyed: bool) -> None:
    """Say of one operation what holds for all of its kind, and what it is in a few words."""
    operation["summary"] = operation["operationId"].replace("_", " ").capitalize()
    if method == "get" and "application/json" in operation["responses"].get("200", {}).get("content", {}):
        operation.setdefault("parameters", []).append({"$ref": "#/components/parameters/IfNoneMatch"})
        operation["responses"]["200"]["headers"] = {"ETag": {"schema": {"type": "string"}}}
        operation["responses"]["304"] = {"description": "It is what the caller has."}
    if is_keyed and method == "post":
        operation.setdefault("parameters", []).append({"$ref": "#/components/parameters/IdempotencyKey"})
        for status, answer in operation["responses"].items():
            if status.startswith("2"):
                answer.setdefault("headers", {})[REPEATED] = {"schema": {"const": "true"}}
    if operation["operationId"] in EXAMPLES:
        content = operation["requestBody"]["content"]["application/json"]
        content["examples"] = {name: {"value": value} for name, value in EXAMPLES[operation["operationId"]].items()}
