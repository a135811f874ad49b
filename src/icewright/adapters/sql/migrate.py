"""Brings a database up to the newest schema with the migrations that lie in the package."""

from __future__ import annotations

import threading
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, column, inspect, select, table

from icewright.domain.errors import InvalidConfiguration

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

VERSION_TABLE = "icewright_schema"
"""Where Alembic keeps the schema's version: under a name of its own, so that no stranger's is taken for ours."""

_ALEMBIC = threading.Lock()
"""Alembic keeps the running migration in globals: two at once in one process would mix up their connections."""

_MIGRATIONS = Path(__file__).with_name("migrations")


@cache
def newest_revision() -> str:
    """The schema that this icewright has, by the names of its migrations: they are read only where some are missing."""
    return max(path.name[1:].partition("_")[0] for path in (_MIGRATIONS / "versions").glob("v*.py"))


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the missing migrations up to ``revision`` in the transaction that ``connection`` is in: all or none.

    That of a store is the lock of all writers, so that two servers that start at once do not both migrate.

    Raises :class:`~icewright.domain.errors.InvalidConfiguration` for a database of a newer icewright, and for one
    that belongs to something else.
    """
    if not is_behind(connection) and revision == "head":
        return
    from alembic import command  # noqa: PLC0415 - Alembic and the migrations take a second of CPU, and few starts need them

    config = _config()
    config.attributes["connection"] = connection
    with _ALEMBIC:
        command.upgrade(config, revision)


def is_behind(connection: Connection) -> bool:
    """Whether migrations are missing. Raises as :func:`upgrade`."""
    _refuse_strangers(connection)
    heads = _heads(connection)
    if heads == {newest_revision()}:
        return False
    _refuse_newer(heads)
    return True


def _heads(connection: Connection) -> set[str]:
    """Which migrations the database has behind it, as Alembic notes it; none for a new one."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return set()
    return set(connection.scalars(select(column("version_num")).select_from(table(VERSION_TABLE))))


def _config() -> Config:
    from alembic.config import Config  # noqa: PLC0415 - see upgrade()

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config


@cache
def _scripts() -> ScriptDirectory:
    """The migrations, read once a process: the package does not change while it runs."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - see upgrade()

    scripts = ScriptDirectory.from_config(_config())
    scripts.get_heads()  # it reads them when first asked, which several threads may not do at once
    return scripts


def _refuse_strangers(connection: Connection) -> None:
    names = inspect(connection).get_table_names()
    if names and VERSION_TABLE not in names:
        raise InvalidConfiguration(
            f"the store's database has tables that are not icewright's, such as {min(names)!r}",
            hint="give icewright a database of its own",
        )


def _refuse_newer(heads: AbstractSet[str]) -> None:
    unknown = heads - {script.revision for script in _scripts().walk_revisions()}
    if unknown:
        raise InvalidConfiguration(
            f"the store's database has schema {min(unknown)}, which this version of icewright does not know",
            hint="it was written by a newer icewright; start that one",
        )
