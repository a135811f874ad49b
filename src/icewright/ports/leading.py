"""Asking the server that leads what only it can answer, on behalf of whoever asked another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icewright.model.access.permissions import Principal


@dataclass(frozen=True, slots=True)
class Question:
    """A request that was let in, as it is passed on: ``target`` is path and query as they came.

    ``headers`` are those that mean something to a route, by their names in lower case.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    asked_by: Principal
    patience_s: float = 30.0
    """How long the answer may take."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the leading server answered; ``headers`` as those of a :class:`Question`."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
