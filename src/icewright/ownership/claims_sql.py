"""Claims of tables, in an SQL database: by name, since one uuid may have several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sqlalchemy import Connection, Engine, bindparam, delete, insert, select, update

from icewright.model.iceberg.names import TableName
from icewright.ownership.model import SeenClaim, as_declared
from icewright.store.documents import digest, dump, load
from icewright.store.locks import ASSIGNED
from icewright.store.schema import CLAIMS_CHANGED, claims, counters
from icewright.store.table_rows import is_one_of
from icewright.store.transactions import Held, asking, lost_leases, reading, writing

FETCH_ROWS = 1_000
"""Rows read at a time; each is some 500 bytes."""
_NAMES_AT_ONCE: Final = 400
"""Names that one query asks for: every database allows two parameters for each."""

_NO_LEASES: Final[Mapping[TableName, Held | None]] = MappingProxyType({})
_NEXT_CHANGE: Final = (
    update(counters)
    .where(counters.c.name == CLAIMS_CHANGED)
    .values(value=counters.c.value + 1)
    .returning(counters.c.value)
)
_FORGET: Final = delete(claims).where(
    claims.c.catalog == bindparam("key_catalog"), claims.c.name_digest == bindparam("key_name_digest")
)
_CHANGED_SINCE: Final = (
    select(claims.c.claim, claims.c.changed).where(claims.c.changed > bindparam("since")).order_by(claims.c.changed)
)


class SqlClaims:
    """Claims by the names of tables, durable. One uuid may have several: that is what they are kept to tell.

    Raises :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def __init__(self, engine: Engine, *, is_shared: bool = False, declares: bool = True) -> None:
        """``is_shared``: other servers keep claims here as well.

        ``declares``: people tell this server which tables are lost or gone; what another one keeps changes none of it.
        """
        self._engine, self.is_shared, self.declares = engine, is_shared, declares

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

    def changed_since(self, number: int) -> tuple[Sequence[SeenClaim], int]:
        """The claims that were kept after the change of that number, by any server, and the number of the last one."""
        with asking(self._engine, beside=True) as connection:
            rows = connection.execute(_CHANGED_SINCE, {"since": number}).all()
        return [load(SeenClaim, row[0]) for row in rows], rows[-1][1] if rows else number

    def keep(
        self,
        seen: Sequence[SeenClaim],
        forget: Iterable[TableName] = (),
        leases: Mapping[TableName, Held | None] = _NO_LEASES,
    ) -> Mapping[TableName, SeenClaim]:
        """Insert or replace claims, and forget those of further names, in one transaction.

        Forgetting what is not there is harmless. Where the lease of a table's bucket has ended by which its claim was
        noted, one that is in the store stays: another server may have kept it since. These are returned.
        """
        by_name = {one.claim.name: one for one in seen}
        told = {*forget, *by_name}
        if not told:
            return {}
        held = {one for one in leases.values() if one is not None}
        with writing(self._engine, (ASSIGNED,) if held else ()) as connection:
            lost = lost_leases(connection, held)
            # The counter's row has those who keep claims take turns, in their numbers' order.
            changed = connection.execute(_NEXT_CHANGE).scalar_one()
            late = {name for name, lease in leases.items() if lease in lost}
            before = _kept(connection, late if self.declares else late.union(by_name))
            others = {name: before[name] for name in late if name in before}
            rows = [
                {**_key(name), "claim": dump(one if self.declares else as_declared(one, before.get(name)))}
                for name, one in by_name.items()
                if name not in others
            ]
            gone = [{f"key_{name}": value for name, value in _key(one).items()} for one in told - others.keys()]
            if gone:
                connection.execute(_FORGET, gone)
            if rows:
                connection.execute(insert(claims), [{**row, "changed": changed} for row in rows])
        return others


def _kept(connection: Connection, names: Iterable[TableName]) -> Mapping[TableName, SeenClaim]:
    """The claims of these names as they are kept."""
    columns, found = (claims.c.catalog, claims.c.name_digest), dict[TableName, SeenClaim]()
    keys = [tuple(_key(name).values()) for name in names]
    for start in range(0, len(keys), _NAMES_AT_ONCE):
        some = keys[start : start + _NAMES_AT_ONCE]
        for text in connection.scalars(select(claims.c.claim).where(is_one_of(columns, some))):
            one = load(SeenClaim, text)
            found[one.claim.name] = one
    return found


def _key(name: TableName) -> dict[str, str]:
    return {"catalog": name.catalog, "name_digest": digest(name)}
