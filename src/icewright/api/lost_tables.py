"""Tables that cannot be read, and that an administrator has declared lost: they keep no file of others any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from icewright.api.deps import Caller, Led
from icewright.api.messages import Cursor, Limit, decode_cursor, json_body, page, render
from icewright.api.needs import On, named, needs
from icewright.api.passing import BY_LEADER
from icewright.api.schema import operation, page_of, schema_of
from icewright.domain.access import Permission
from icewright.domain.codec import from_json
from icewright.domain.names import TableName

router = APIRouter(prefix="/lost-tables", tags=["quarantine"])

_NOT_FOUND = {404: "No such table or catalog, or not declared lost."}


@dataclass(frozen=True, slots=True)
class DeclareLost:
    """Who says so: needed of the owner alone, since others are known by name."""

    declared_by: str = ""


@dataclass(frozen=True, slots=True)
class LostTable:
    """A table that was declared lost while the catalog's pointer was ``pointer``, empty where the catalog cannot tell.

    At another pointer the declaration counts no more. ``declared_by`` is None once it is withdrawn.
    """

    name: str
    pointer: str
    declared_by: str | None


@router.get("", dependencies=[needs(Permission.READ, On.EVERYTHING), BY_LEADER], **operation(page_of(LostTable)))
def list_lost_tables(led: Led, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Tables that are declared lost, by name."""
    after = decode_cursor(str, cursor)
    lost = [LostTable(str(one.claim.name), one.lost_at or "", one.lost_by) for one in led.registry.lost()]
    found = sorted((one for one in lost if after is None or one.name > after), key=lambda one: one.name)
    return page(found[:limit], found[limit - 1].name if len(found) > limit else None)


@router.post(
    "/{name}",
    dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING), BY_LEADER],
    **operation(
        LostTable, accepts=schema_of(DeclareLost), problems={**_NOT_FOUND, 403: "Not permitted, or it can be read."}
    ),
)
def declare_table_lost(led: Led, caller: Caller, name: str, body: Annotated[Any, Depends(json_body())]) -> Response:
    """Declare a table lost that cannot be read, so that it keeps nothing from being removed in other places.

    What it last claimed still counts. It holds as long as the catalog's pointer to it stays where it is.
    """
    table, declared_by = TableName.parse(name), named(caller, from_json(DeclareLost, body).declared_by)
    return render(LostTable(str(table), led.registry.declare_lost(table, declared_by), declared_by))


@router.post(
    "/{name}/withdraw",
    dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING), BY_LEADER],
    **operation(LostTable, problems=_NOT_FOUND),
)
def withdraw_lost_table(led: Led, name: str) -> Response:
    """Take the declaration back: until the table is read, nothing is removed anywhere."""
    table = TableName.parse(name)
    return render(LostTable(str(table), led.registry.withdraw_lost(table), None))
