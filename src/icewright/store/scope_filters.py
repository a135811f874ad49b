"""Rows by the scopes or buckets of their tables, as conditions: lists are filtered in the query, then cut into pages.

A table is where its record says, whatever its name was when something happened to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Select, Table, Text, bindparam, exists, false, func, or_, select

from icewright.core.servers import BUCKETS, TableShare, beginnings, bucket_of_digest
from icewright.model.access.permissions import EVERYWHERE, Scope, Scopes
from icewright.model.iceberg.names import TableName
from icewright.store.documents import digest, dump
from icewright.store.schema import tables

_DIGITS: Final = 2
FIRST_DIGITS: Final = func.substr(tables.c.name_digest, 1, _DIGITS)
"""Of the digest of a table's name: they say its bucket."""


def records_in(scopes: Scopes) -> Iterator[ColumnElement[bool]]:
    """The condition that a row of ``tables`` is in one of these scopes; none where all are."""
    if scopes != EVERYWHERE:
        yield or_(false(), *(_begins(scope) for scope in scopes))


def of_tables_in(scopes: Scopes, of: Table) -> Iterator[ColumnElement[bool]]:
    """The condition that the table which a row is about has a record in one of these scopes; none where all are."""
    if scopes != EVERYWHERE:
        same = (tables.c.catalog == of.c.catalog, tables.c.table_uuid == of.c.table_uuid)
        yield exists().where(*same, *records_in(scopes)).correlate(of)


def ids_like(ids: Column[str], kind: str, part: str, within: Scopes, limit: int) -> Select[Any]:
    """The ids ``<kind>-<uuid>`` of rows that are about tables in scopes, whose UUID begins or ends with ``part``.

    It looks at all ids, in the index: 16 ms of CPU where there are 100,000, and a short one is what a person types, the
    end of an id as it is shown. ``part`` has hexadecimal digits and hyphens alone.
    """
    is_meant = or_(ids.startswith(f"{kind}-{part}"), ids.endswith(part))
    return select(ids).where(is_meant, *of_tables_in(within, ids.table)).order_by(ids.desc()).limit(limit)


def _begins(scope: Scope) -> ColumnElement[bool]:
    """Whether a name begins as all names of the scope do: its JSON up to the quote behind the scope's last part.

    By a comparison and no pattern, which would need escapes; the JSON is ASCII, so that lengths are the same for all.
    """
    # A name needs a namespace and a name of its own: what is made up for those is cut off again.
    made_up = dump(TableName(scope.catalog, scope.namespace or ("x",), "x"))
    head = made_up.removesuffix('],"name":"x"}').removesuffix("" if scope.namespace else '"x"')
    return func.substr(tables.c.name, 1, len(head)) == head


def bucket_of(name: TableName) -> int:
    """The bucket of the table that is looked after under this name."""
    return bucket_of_digest(digest(name))


def in_buckets(digests: ColumnElement[str]) -> ColumnElement[bool]:
    """The condition that digests of names are in the buckets of :func:`share_values`.

    One parameter for all buckets: of one for each, a driver and a database read the query anew each time.
    """
    return bindparam("beginnings", type_=Text).contains(func.substr(digests, 1, _DIGITS))


def share_values(share: TableShare | None) -> Mapping[str, str]:
    """The parameter of :func:`in_buckets`; none where there is nothing to ask for: all tables are in the share."""
    if share is None or len(share.buckets) == BUCKETS:
        return {}
    return {"beginnings": beginnings(share.buckets)}
