"""Claims of tables, in an SQL database: by name, since one uuid may have several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import Engine, bindparam, delete, insert, select

from icewright.model.iceberg.names import TableName
from icewright.ownership.model import SeenClaim
from icewright.store.documents import digest, dump, load
from icewright.store.schema import claims
from icewright.store.transactions import reading, writing

FETCH_ROWS = 1_000
"""Rows read at a time; each is some 500 bytes."""


class SqlClaims:
    """Claims by the names of tables, durable. One uuid may have several: that is what they are kept to tell.

    Raises :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def claims(self) -> Iterator[SeenClaim]:
        """All claims, one after the other, in no particular order.

        Page by page, so that no transaction is open between two claims.
        """
        key, last = (claims.c.catalog, claims.c.name_digest), ("", "")
        while True:
            later = (key[0] > last[0]) | ((key[0] == last[0]) & (key[1] > last[1]))
            with reading(self._engine) as connection:
                page = connection.execute(
                    select(*key, claims.c.claim).where(later).order_by(*key).limit(FETCH_ROWS)
                ).all()
            yield from (load(SeenClaim, row[2]) for row in page)
            if len(page) < FETCH_ROWS:
                return
            last = page[-1][0], page[-1][1]

    def keep(self, seen: Sequence[SeenClaim], forget: Iterable[TableName] = ()) -> None:
        """Insert or replace claims, and forget those of further names, in one transaction.

        Forgetting what is not there is harmless.
        """
        rows = [{**_key(one.claim.name), "claim": dump(one)} for one in {one.claim.name: one for one in seen}.values()]
        gone = [_key(name) for name in forget] + [_key(one.claim.name) for one in seen]
        if not gone:
            return
        same = (claims.c.catalog == bindparam("key_catalog"), claims.c.name_digest == bindparam("key_name_digest"))
        with writing(self._engine) as connection:
            connection.execute(
                delete(claims).where(*same), [{f"key_{name}": value for name, value in key.items()} for key in gone]
            )
            if rows:
                connection.execute(insert(claims), rows)


def _key(name: TableName) -> dict[str, str]:
    return {"catalog": name.catalog, "name_digest": digest(name)}
