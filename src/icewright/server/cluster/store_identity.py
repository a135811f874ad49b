"""Which store it is: what ZooKeeper is told, so that two stores never share a root."""

from __future__ import annotations

import secrets
from typing import Final

from sqlalchemy import Engine, insert, select

from icewright.store.locks import Lock, LockKind
from icewright.store.schema import counters
from icewright.store.transactions import writing

STORE_IDENTITY: Final = "store_identity"
"""The counter that has it."""
_ALONE: Final = (Lock(LockKind.SERVERS),)


def store_identity(engine: Engine) -> str:
    """A store's own number, in 16 hexadecimal digits: drawn when it is first asked for, and the same from then on.

    A copy or a restored backup of a store has that of the original. Raises
    :class:`~icewright.core.errors.StoreUnavailable`.
    """
    with writing(engine, _ALONE) as connection:
        found = connection.scalar(select(counters.c.value).where(counters.c.name == STORE_IDENTITY))
        if found is None:
            found = secrets.randbits(63)
            connection.execute(insert(counters).values(name=STORE_IDENTITY, value=found))
    return f"{found:016x}"
