"""Whether a store is whole: what no constraint of the database says, and what a backup of another time may break."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, Engine, func, inspect, select, text

from icewright.core.errors import InvalidConfiguration
from icewright.store.migrate import VERSION_TABLE, is_behind, newest_revision
from icewright.store.schema import FENCING_TOKEN, attempts, counters, metadata, task_actions, tasks
from icewright.store.transactions import reading

_LISTED_MAX = 3


def problems(engine: Engine) -> list[str]:
    """What is wrong with a store, in sentences; nothing is changed, and a server may work with it meanwhile.

    Raises :class:`~icewright.core.errors.StoreUnavailable` when it does not answer.
    """
    with reading(engine) as connection:
        revision = _revision(connection)
        if revision is None:
            return ["the database is not a store of icewright's"]
        try:
            if is_behind(connection):
                brings = "the next server of this icewright brings it there"
                return [f"the store has schema {revision}, not {newest_revision()}: {brings}"]
        except InvalidConfiguration as error:
            return [f"{error.message}: {error.hint}"]
        return list(_problems(connection))


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608 - a constant of ours
    return None if found is None else str(found)


def _problems(connection: Connection) -> Iterator[str]:
    there = set(inspect(connection).get_table_names())
    missing = sorted(table.name for table in metadata.sorted_tables if table.name not in there)
    if missing:
        yield f"tables are missing: {', '.join(missing)}"
        return
    token = connection.scalar(select(counters.c.value).where(counters.c.name == FENCING_TOKEN)) or 0
    given_out = connection.scalar(select(func.max(attempts.c.fencing_token))) or 0
    if given_out > token:
        yield f"fencing token {given_out} was given out, and the counter is at {token}: run `icewright store restore`"
    for about, query in (
        (
            "it is not stored what they are to do",
            select(tasks.c.task_id).outerjoin(task_actions).where(task_actions.c.task_id.is_(None)),
        ),
        (
            "they hold a lease without an attempt",
            select(tasks.c.task_id)
            .outerjoin(attempts, attempts.c.fencing_token == tasks.c.lease_fencing_token)
            .where(tasks.c.lease_fencing_token.is_not(None), attempts.c.task_id.is_(None)),
        ),
    ):
        found = connection.scalars(query.limit(_LISTED_MAX + 1)).all()
        if found:
            yield f"tasks such as {', '.join(found[:_LISTED_MAX])}: {about}"
