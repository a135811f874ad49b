"""Requests that are carried out once however often they come: those with an ``Idempotency-Key``.

After the IETF's draft "The Idempotency-Key HTTP Header Field" (draft-ietf-httpapi-idempotency-key-header-07): the same
key with the same request gets the same answer, with another one it is refused, and while the first one is under way it
is a conflict. A request of which nobody knows how it ended is never carried out again under its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

KEPT_MS: Final = 24 * 3_600_000
"""How long a key means the request that it came with first."""
KEY_LENGTH_MAX: Final = 255
BODY_LENGTH_MAX: Final = 1_048_576
"""Longer answers are not kept, only that they were given."""


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request to be carried out once. ``fingerprint`` says what it asks for; ``key`` is the principal's own."""

    principal: str
    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered. ``body`` is None where it is not kept: it was too long, or had a secret."""

    status: int
    headers: Mapping[str, str]
    body: str | None


@dataclass(frozen=True, slots=True)
class First:
    """The request is to be carried out now, by whoever is told so, and by nobody else."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """It is being carried out, or whoever did so died over it: how it ended is not known (yet)."""


@dataclass(frozen=True, slots=True)
class AnotherRequest:
    """Under that key another request came first."""


@dataclass(frozen=True, slots=True)
class Answered:
    """It was carried out before, with this answer."""

    answer: Answer


Begun: TypeAlias = First | UnderWay | AnotherRequest | Answered
