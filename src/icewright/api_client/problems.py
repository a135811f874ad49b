"""What the server says is wrong, as the very errors that it raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from icewright.core.errors import IcewrightError, Rejected, Unavailable

_SERVER_ERRORS_FROM: Final = 500
_UNAUTHORIZED: Final = 401


def problem(status: int, found: Any) -> IcewrightError:
    """A problem document (RFC 9457) as the error of the same code, else as one that suits the HTTP status."""
    document = found if isinstance(found, dict) else {}
    message = str(document.get("detail") or document.get("title") or f"the server answered {status}")
    hint = str(document.get("hint") or "")
    error = next((error for error in _errors(IcewrightError) if error.code == document.get("code")), None)
    if error is not None:
        return error(message, hint=hint)
    if status == _UNAUTHORIZED:
        return Rejected(message, hint=hint or "the token is not this server's")
    return (Unavailable if status >= _SERVER_ERRORS_FROM else Rejected)(message, hint=hint)


def _errors(cls: type[IcewrightError]) -> Iterator[type[IcewrightError]]:
    """The tree, parents first: a code that a child inherits is its parent's."""
    yield cls
    for below in cls.__subclasses__():
        yield from _errors(below)
