"""What all commands do that list a page of what the server has: ask for it, read it, print it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from icewright.core.codec import from_json

if TYPE_CHECKING:
    from icewright.api_client.client import Client
    from icewright.api_client.connection import Page
    from icewright.model.iceberg.tables import Json
    from icewright.terminal.cli import Column
    from icewright.terminal.invocation import Invocation

T = TypeVar("T")


def print_page(
    invocation: Invocation,
    ask: Callable[[Client], Page],
    read: type[T] | Callable[[Json], T],
    columns: Sequence[Column],
    cells: Callable[[T], Sequence[str]],
    *,
    none: str,
    show_api: bool,
) -> list[T]:
    """Print what ``ask`` gives as :meth:`~icewright.terminal.cli.Terminal.page` does, and return its items.

    ``read`` is the type of an item, or a function that makes one of it.
    """
    from icewright.terminal.connection import server  # noqa: PLC0415 - `--help` stays quick

    with server(invocation, show_api=show_api) as client:
        page = ask(client)
    found = [from_json(read, item) if isinstance(read, type) else read(item) for item in page.items]
    invocation.terminal.page(found, page.next_cursor, columns, cells, none=none)
    return found
