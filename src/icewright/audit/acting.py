"""On whose behalf the present call is made."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from icewright.audit.model import SERVER

_ACTING: ContextVar[str] = ContextVar("icewright_acting", default=SERVER)
"""A context variable and no argument: between the door and the transaction that writes it lie services that have no
other use for it."""


def acting() -> str:
    """The name of the principal on whose behalf the present call is made; :data:`SERVER` where nobody asked."""
    return _ACTING.get()


@contextmanager
def acting_as(principal: str) -> Iterator[None]:
    """Let everything in the block be done on behalf of ``principal``."""
    reset = _ACTING.set(principal)
    try:
        yield
    finally:
        _ACTING.reset(reset)
