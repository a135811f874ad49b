"""Opening the database, SQLite or PostgreSQL, and the way up to the newest schema."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.exc import ArgumentError, ProgrammingError

from icewright.core.errors import InvalidConfiguration
from icewright.core.extras import require_extra
from icewright.store.migrate import is_behind, stored_revisions, upgrade
from icewright.store.sqlite import sqlite_engine
from icewright.store.timeouts import Timeouts
from icewright.store.transactions import LONG, reading, writing

_HINT = "write sqlite:////absolute/path.db or postgresql://user@host/database"


def open_store(url: str, *, password: str | None = None, patience: Timeouts | None = None) -> Engine:
    """The engine of a database that is there, ours, and at the newest schema.

    ``url`` is SQLAlchemy's, such as ``sqlite:////var/lib/icewright/state.db`` or
    ``postgresql://icewright@host/icewright``; a missing SQLite file is created for its owner alone.
    Raises :class:`~icewright.core.errors.InvalidConfiguration` when the database cannot be used as it is, and
    :class:`~icewright.core.errors.Unavailable` when it does not answer.
    """
    engine = store_engine(url, password=password, patience=patience)
    try:
        upgrade_store(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def store_engine(url: str, *, password: str | None = None, patience: Timeouts | None = None) -> Engine:
    """The engine of a database of which nothing was asked yet; see :func:`open_store`.

    Raises :class:`~icewright.core.errors.InvalidConfiguration`.
    """
    return _engine(_parse(url), password, patience or Timeouts())


def upgrade_store(engine: Engine) -> None:
    """Make sure that the database is ours, and bring it to the newest schema; raises as :func:`open_store`.

    A server that holds the store could not go on behind that: whoever may not be alone holds it before.
    """
    with upgraded(engine):
        pass


def must_be_upgraded(engine: Engine) -> bool:
    """Whether the database is not at the newest schema; raises as :func:`open_store`."""
    with reading(engine) as connection:
        return is_behind(connection)


def present_schema(engine: Engine) -> int:
    """The number of the database's schema, 0 of an empty one; raises as :func:`open_store`."""
    with reading(engine) as connection:
        return max(map(int, stored_revisions(connection)), default=0)


@contextmanager
def upgraded(engine: Engine) -> Iterator[Connection]:
    """As :func:`upgrade_store`, with what else is written in the same transaction."""
    try:
        with writing(engine.execution_options(**{LONG: True})) as connection:
            upgrade(connection)
            yield connection
    except ProgrammingError as error:
        raise InvalidConfiguration(
            f"the store's database cannot be prepared: {error.orig}",
            hint="its role must own the database, or may create tables in its first schema",
        ) from error


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError:
        # Without its cause, and without the url: what cannot be parsed cannot be cleared of a password either.
        raise InvalidConfiguration("the store's url cannot be parsed", hint=_HINT) from None


def _engine(url: URL, password: str | None, patience: Timeouts) -> Engine:
    backend = url.get_backend_name()
    if backend == "sqlite":
        return sqlite_engine(url, patience)
    if backend == "postgresql":
        return _postgresql_engine(url if password is None else url.set(password=password), patience)
    raise InvalidConfiguration(f"the store cannot be {backend}", hint=_HINT)


def _postgresql_engine(url: URL, patience: Timeouts) -> Engine:
    require_extra("postgresql", "stores on PostgreSQL")
    from icewright.store.postgresql import postgresql_engine  # noqa: PLC0415 - its driver is an extra

    return postgresql_engine(url, patience)


_BEGUN = "icewright_statement_begun_s"


def report_statement_times(engine: Engine, tell: Callable[[float], None]) -> None:
    """Have ``tell`` called with the seconds that each statement took that did not fail."""

    @event.listens_for(engine, "before_cursor_execute")
    def on_begin(connection: Connection, *_: Any) -> None:
        connection.info[_BEGUN] = time.perf_counter()

    @event.listens_for(engine, "after_cursor_execute")
    def on_end(connection: Connection, *_: Any) -> None:
        tell(time.perf_counter() - connection.info[_BEGUN])
