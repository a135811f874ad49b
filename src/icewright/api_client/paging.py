"""Lists of the server that are asked for page by page, as the reader goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from icewright.core.codec import from_json

if TYPE_CHECKING:
    from icewright.api_client.connection import Page  # at run time this would load an HTTP client

_T = TypeVar("_T")


def pages(of: type[_T], ask: Callable[[str | None], Page]) -> Iterator[_T]:
    """All items of a list as the views that they are, page by page, as they are asked for."""
    cursor: str | None = None
    while True:
        found = ask(cursor)
        yield from (from_json(of, item) for item in found.items)
        cursor = found.next_cursor
        if cursor is None:
            return
