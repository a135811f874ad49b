"""Tables that an administrator has declared lost, or gone from the place of another: they keep no file any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from icewright.actions.remove_files.orphans.gone_tables import GoneUuids
from icewright.core.codec import from_json
from icewright.core.errors import NotAllowed
from icewright.identity.authorization import On, named, needs
from icewright.model.access.permissions import Permission
from icewright.model.iceberg.names import TableName
from icewright.ownership.model import GoneUuid
from icewright.ownership.registry import Registry
from icewright.ports.store import TaskStore
from icewright.web.deps import BY_LEADER, Caller, Led
from icewright.web.messages import Cursor, Limit, decode_cursor, json_body, page, render
from icewright.web.schema import operation, page_of, schema_of

router = APIRouter(prefix="/lost-tables", tags=["quarantine"])
gone_router = APIRouter(prefix="/gone-tables", tags=["quarantine"])

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
def list_lost_tables(registry: Led[Registry], limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Tables that are declared lost, by name."""
    after = decode_cursor(str, cursor)
    lost = [LostTable(str(one.claim.name), one.lost_at or "", one.lost_by) for one in registry.book().lost()]
    found = sorted((one for one in lost if after is None or one.name > after), key=lambda one: one.name)
    return page(found[:limit], found[limit - 1].name if len(found) > limit else None)


@router.post(
    "/{name}",
    dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING), BY_LEADER],
    **operation(
        LostTable, accepts=schema_of(DeclareLost), problems={**_NOT_FOUND, 403: "Not permitted, or it can be read."}
    ),
)
def declare_table_lost(
    registry: Led[Registry], caller: Caller, name: str, body: Annotated[Any, Depends(json_body())]
) -> Response:
    """Declare a table lost that cannot be read, so that it keeps nothing from being removed in other places.

    What it last claimed still counts. It holds as long as the catalog's pointer to it stays where it is.
    """
    table, declared_by = TableName.parse(name), named(caller, from_json(DeclareLost, body).declared_by)
    return render(LostTable(str(table), registry.declare_lost(table, declared_by), declared_by))


@router.post(
    "/{name}/withdraw",
    dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING), BY_LEADER],
    **operation(LostTable, problems=_NOT_FOUND),
)
def withdraw_lost_table(registry: Led[Registry], name: str) -> Response:
    """Take the declaration back: until the table is read, nothing is removed anywhere."""
    table = TableName.parse(name)
    return render(LostTable(str(table), registry.withdraw_lost(table), None))


@dataclass(frozen=True, slots=True)
class DeclareGone:
    """That no catalog has a table any more, ``in_no_catalog``, whether icewright knows the catalog or not.

    ``declared_by`` says who says so: needed of the owner alone, since others are known by name.
    """

    in_no_catalog: bool
    declared_by: str = ""


@dataclass(frozen=True, slots=True)
class GoneTable:
    """A table with ``uuid`` that lay in the place of the table ``name`` before it, declared gone at ``declared_at``.

    Both are null once the declaration is withdrawn.
    """

    name: str
    uuid: str
    declared_at: int | None
    declared_by: str | None

    @classmethod
    def of(cls, name: TableName, one: GoneUuid) -> GoneTable:
        """As it is shown."""
        return cls(str(name), one.uuid, one.declared_at or None, one.declared_by if one.declared_at else None)


@gone_router.get("", dependencies=[needs(Permission.READ, On.EVERYTHING), BY_LEADER], **operation(page_of(GoneTable)))
def list_gone_tables(gone_uuids: Led[GoneUuids], limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Tables declared gone, by the name of the table that lies in their place now."""
    after = decode_cursor(str, cursor)
    found = sorted((GoneTable.of(name, one) for name, one in gone_uuids.declared()), key=_gone_key)
    found = [one for one in found if after is None or _gone_key(one) > after]
    return page(found[:limit], _gone_key(found[limit - 1]) if len(found) > limit else None)


@gone_router.post(
    "/{name}/{uuid}",
    dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING), BY_LEADER],
    **operation(
        GoneTable,
        accepts=schema_of(DeclareGone),
        problems={404: "No such table or catalog.", 403: "Not permitted, or a table that is known has the uuid."},
    ),
)
def declare_table_gone(
    gone_uuids: Led[GoneUuids],
    task_store: Led[TaskStore],
    caller: Caller,
    name: str,
    uuid: str,
    body: Annotated[Any, Depends(json_body())],
) -> Response:
    """Declare a former table in the place of this one gone, such as one that was dropped and created again there.

    Its files are orphans of this table from then on: each goes by approval, and nothing for seven days. It counts as
    long as no table of any catalog has the uuid, and only if nothing was committed to it in the seven days before.
    """
    said, table = from_json(DeclareGone, body), TableName.parse(name)
    if not said.in_no_catalog:
        raise NotAllowed(
            f"a table in a catalog that is not configured may need the files of {uuid}",
            hint="say in_no_catalog where no catalog has that table any more",
        )
    declared = gone_uuids.declare(table, uuid, named(caller, said.declared_by), task_store.now())
    return render(GoneTable.of(table, declared))


@gone_router.post(
    "/{name}/{uuid}/withdraw",
    dependencies=[needs(Permission.ADMINISTER, On.EVERYTHING), BY_LEADER],
    **operation(GoneTable, problems={404: "No such table or catalog, or not declared gone."}),
)
def withdraw_gone_table(gone_uuids: Led[GoneUuids], name: str, uuid: str) -> Response:
    """Withdraw the declaration: nothing more in that place is removed, and nothing that was removed is purged."""
    table = TableName.parse(name)
    return render(GoneTable.of(table, gone_uuids.withdraw(table, uuid)))


def _gone_key(one: GoneTable) -> str:
    return f"{one.name} {one.uuid}"
