"""Lists of the server that are asked for page by page, as whoever reads them goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from icewright.api_client.connection import Page
from icewright.model.iceberg.tables import Json


def pages(ask: Callable[[str | None], Page]) -> Iterator[Json]:
    """All items of a list, page by page, as they are asked for."""
    cursor: str | None = None
    while True:
        found = ask(cursor)
        yield from found.items
        cursor = found.next_cursor
        if cursor is None:
            return
