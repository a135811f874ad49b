"""Lists of the server that are asked for page by page, as the reader goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from icewright.model.iceberg.tables import Json

if TYPE_CHECKING:
    from icewright.api_client.connection import Page  # at run time this would load an HTTP client


def pages(ask: Callable[[str | None], Page]) -> Iterator[Json]:
    """All items of a list, page by page, as they are asked for."""
    cursor: str | None = None
    while True:
        found = ask(cursor)
        yield from found.items
        cursor = found.next_cursor
        if cursor is None:
            return
