"""How long the database takes, told to whoever wants to know: what is slow is more often the store than the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Engine, event

_BEGUN = "icewright_statement_begun_s"


def report_statement_times(engine: Engine, tell: Callable[[float], None]) -> None:
    """Have ``tell`` called with the seconds that each statement took that did not fail."""

    @event.listens_for(engine, "before_cursor_execute")
    def on_begin(connection: Connection, *_: Any) -> None:
        connection.info[_BEGUN] = time.perf_counter()

    @event.listens_for(engine, "after_cursor_execute")
    def on_end(connection: Connection, *_: Any) -> None:
        tell(time.perf_counter() - connection.info[_BEGUN])
