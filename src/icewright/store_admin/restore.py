"""What a store that comes from a backup must forget, and what it must go beyond, before a server may use it.

What happened after the backup is not in it: claims that were given out, removals that were begun, what a person took
back since. So no token is given out twice, no lease of the backup holds, nothing that takes something away goes on by
an intent of the backup, and nobody's approval of then counts now. What running tasks did, their tables tell. Why so:
``docs/decisions``, 0043.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, text, update

from icewright.actions.remove_files.adapters.deletions_schema import deletion_approvals
from icewright.audit.sql import record
from icewright.core.clock import Clock
from icewright.feed.schema import FEED_FORGOTTEN
from icewright.feed.sql import last_entry
from icewright.model.access.permissions import Act
from icewright.model.actions.actions import ActionKind
from icewright.model.plans.plans import Reason
from icewright.model.work import lifecycle
from icewright.model.work.tasks import Outcome, TaskState
from icewright.store.schema import (
    FENCING_TOKEN,
    LISTED_CHANGED,
    RESTORED_AT,
    SERVER_EPOCH,
    attempts,
    counters,
    listed_tables,
    orphan_passes,
    orphan_sightings,
    state_is,
    tables,
    tasks,
    waiting_plans,
)
from icewright.store.schema_access import answers, login_codes, sessions, tokens
from icewright.store.servers_schema import ASSIGNMENT, SESSION_NUMBER, buckets, server_sessions, servers, submitters
from icewright.store.transactions import now
from icewright.work.store import task_queries as queries

TOKENS_AHEAD: Final = 2**40
"""By so many the fencing tokens move: more than any server gives out between a backup and its end."""
EPOCHS_AHEAD: Final = 2**20
"""By so many the epochs move: each is a server that began."""
FEED_AHEAD: Final = 2**40
"""By so many the numbers of what is told move."""
RESTORED: Final = "restored"
"""The code of why tasks of a backup do not go on."""
_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Restored:
    """What was found in a backup: tasks that waited and do not any more, and such as their tables are asked about."""

    superseded: int
    in_doubt: int
    to_verify: int
    fencing_token: int


def prepare_restored_store(connection: Connection, clock: Clock | None = None) -> Restored:
    """Make a store of a backup fit for a server, in the transaction of ``connection``. Doing so twice is harmless."""
    given_out = connection.scalar(select(func.max(attempts.c.fencing_token))) or 0
    connection.execute(
        update(counters)
        .where(counters.c.name == FENCING_TOKEN)
        .values(value=func.coalesce(counters.c.value, 0) + TOKENS_AHEAD + given_out)
    )
    connection.execute(
        update(counters)
        .where(counters.c.name.in_([SERVER_EPOCH, SESSION_NUMBER, ASSIGNMENT]))
        .values(value=counters.c.value + EPOCHS_AHEAD)
    )
    at = now(connection, clock)
    if connection.execute(update(counters).where(counters.c.name == RESTORED_AT).values(value=at)).rowcount == 0:
        connection.execute(insert(counters).values(name=RESTORED_AT, value=at))
    _move_feed_ahead(connection)
    _move_lists_ahead(connection)
    superseded = sum(1 for _ in _supersede_waiting(connection, at))
    leased = state_is(TaskState.RUNNING, TaskState.IN_DOUBT)
    in_doubt = connection.execute(update(tasks).where(leased).values(lease_expires_at=0)).rowcount
    goes_on = tasks.c.kind == ActionKind.REWRITE_DATA_FILES.value
    connection.execute(update(tasks).where(leased, ~goes_on).values(cancel_requested=True))
    # Approved of what was known then; seen while what has come back since was not needed.
    for forgotten in (waiting_plans, deletion_approvals, orphan_sightings, orphan_passes):
        connection.execute(delete(forgotten))
    connection.execute(update(tables).values(next_look_at=at))
    # Which of them were revoked since the backup, nobody knows any more.
    connection.execute(update(tokens).where(tokens.c.revoked_at.is_(None)).values(revoked_at=at))
    # What was done since the backup is undone by it.
    for forgotten in (sessions, login_codes, answers, servers, server_sessions, buckets, submitters):
        connection.execute(delete(forgotten))
    record(connection, at, Act("store.restored", "the store", {"tokens": "revoked"}))
    return Restored(
        superseded=superseded,
        in_doubt=in_doubt,
        to_verify=connection.scalar(select(func.count()).where(state_is(TaskState.COMMITTED))) or 0,
        fencing_token=connection.scalar(select(counters.c.value).where(counters.c.name == FENCING_TOKEN)) or 0,
    )


def _move_lists_ahead(connection: Connection) -> None:
    """Tell whoever follows the lists of all tables anew: what they heard since the backup may not be so any more."""
    counter = counters.c.name == LISTED_CHANGED
    connection.execute(update(counters).where(counter).values(value=counters.c.value + FEED_AHEAD))
    connection.execute(update(listed_tables).values(changed=listed_tables.c.changed + FEED_AHEAD))


def _move_feed_ahead(connection: Connection) -> None:
    """Begin to count the feed where no reader can have been: those of before are told that they missed something."""
    ahead = last_entry(connection) + FEED_AHEAD
    if connection.dialect.name == "sqlite":
        place = {"ahead": ahead}
        if connection.execute(text("UPDATE sqlite_sequence SET seq = :ahead WHERE name = 'feed'"), place).rowcount == 0:
            connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES ('feed', :ahead)"), place)
    else:
        connection.execute(select(func.setval(func.pg_get_serial_sequence("feed", "sequence"), ahead)))
    connection.execute(update(counters).where(counters.c.name == FEED_FORGOTTEN).values(value=ahead))


def _supersede_waiting(connection: Connection, at: int) -> Iterator[str]:
    """End the tasks that wait: what was done of them since, their tables tell; what is still due is planned anew."""
    reason = Reason(RESTORED, "the store was restored from a backup; the table is planned again")
    waiting = queries.WHOLE.where(state_is(TaskState.QUEUED)).order_by(tasks.c.task_id).limit(_PAGE)
    while page := queries.whole(connection, waiting):
        for task in page:
            step = lifecycle.change(
                task, None, state=TaskState.SUPERSEDED, outcome=Outcome(reason), end=None, delay_ms=0, now=at
            )
            queries.write(connection, task, step)
            yield task.task_id
