"""Brings a database up to the newest schema with the migrations that lie in the package."""

from __future__ import annotations

import threading
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from sqlalchemy import Connection, column, delete, insert, inspect, select, table

from icewright.core.errors import InvalidConfiguration
from icewright.store.schema import counters

VERSION_TABLE = "icewright_schema"
"""Where Alembic keeps the schema's version: under a name of its own, so that no stranger's is taken for ours."""

SERVES = "schema_serves"
"""The counter that has the oldest schema whose servers may go on, where there is one; see :func:`served_from`."""

_ALEMBIC = threading.Lock()
"""Alembic keeps the running migration in globals: two at once in one process would mix up their connections."""

_SERVED = select(counters.c.value).where(counters.c.name == SERVES)

_MIGRATIONS = Path(__file__).with_name("migrations")


@cache
def known_revisions() -> list[str]:
    """The schemas that this icewright knows, by the names of its migrations: those are read where some are missing.

    The first one is what a new store begins with. There were others before it, which nobody upgrades any more.
    """
    return sorted(path.name[1:].partition("_")[0] for path in (_MIGRATIONS / "versions").glob("v*.py"))


def newest_revision() -> str:
    """The schema that this icewright has."""
    return known_revisions()[-1]


def served_from() -> str:
    """The oldest schema whose servers go on beside the newest one.

    A migration says so by ``serves``, where all that the older release reads and writes is still right: columns and
    tables are added (expand), and taken away by a later release alone (contract). Without it, no other is served.
    """
    newest = newest_revision()
    (path,) = (_MIGRATIONS / "versions").glob(f"v{newest}_*.py")
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InvalidConfiguration(f"the migration {path} cannot be read", hint="install icewright again")
    migration = module_from_spec(spec)
    spec.loader.exec_module(migration)
    found: str = getattr(migration, "serves", newest)
    return found


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the missing migrations up to one in the transaction that ``connection`` is in: all or none.

    That of a store is the lock of all writers, so that two servers that start at once do not both migrate.

    Raises :class:`~icewright.core.errors.InvalidConfiguration` for a database of a newer icewright, for one that is
    older than all migrations, and for one that belongs to something else.
    """
    if not is_behind(connection):
        return
    from alembic import command  # noqa: PLC0415 - Alembic takes half a second of CPU, and few starts need it
    from alembic.config import Config  # noqa: PLC0415 - the same

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _ALEMBIC:
        command.upgrade(config, revision)
    if revision == "head":
        _note_served(connection, served_from())


def is_behind(connection: Connection) -> bool:
    """Whether migrations are missing; not of a store of a newer icewright that serves this one. Raises as upgrade."""
    found = stored_revisions(connection)
    if found == {newest_revision()}:
        return False
    unknown = found.difference(known_revisions())
    if unknown:
        serves = connection.scalar(_SERVED) if inspect(connection).has_table(counters.name) else None
        if serves is not None and serves <= int(newest_revision()) < min(map(int, found)):
            return False
        raise _cannot_be_upgraded(min(unknown), oldest=known_revisions()[0])
    return True


def _note_served(connection: Connection, oldest: str) -> None:
    connection.execute(delete(counters).where(counters.c.name == SERVES))
    if oldest != newest_revision():
        connection.execute(insert(counters).values(name=SERVES, value=int(oldest)))


def stored_revisions(connection: Connection) -> set[str]:
    """Which schema the database has, as Alembic notes it; none for a new one. Refuses those of strangers."""
    looking = inspect(connection)
    names = looking.get_table_names()
    if names and VERSION_TABLE not in names:
        raise InvalidConfiguration(
            f"the store's database has tables that are not icewright's, such as {min(names)!r}",
            hint="give icewright a database of its own",
        )
    if not names and not looking.has_table(VERSION_TABLE):
        return set()
    return set(connection.scalars(select(column("version_num")).select_from(table(VERSION_TABLE))))


def _cannot_be_upgraded(revision: str, *, oldest: str) -> InvalidConfiguration:
    if revision < oldest:
        return InvalidConfiguration(
            f"the store's database has schema {revision}, and this version of icewright upgrades none before {oldest}",
            hint=f"upgrade it by an earlier version first, whose newest schema is {oldest}; then start this one",
        )
    return InvalidConfiguration(
        f"the store's database has schema {revision}, which this version of icewright does not know",
        hint="it was written by a newer icewright; start that one",
    )
