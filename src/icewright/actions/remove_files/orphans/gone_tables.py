"""Stands in for a table that is gone, so that a person can have its files purged by the same Deleter, step by step.

What a table needs is read from its metadata right before each file goes. Of one that is gone nothing can be read, so
nothing of it ever goes by itself. A person may say that nobody will want it back. Even then it is asked right before
each batch whether it is there after all, and whether any table of any catalog has its uuid, or a place or files where
its files were; as long as not all tables are known, nothing goes. What nobody here can see is a catalog that is not
configured: for that stands the person's word.

A table that was dropped and made anew at the same location has its old files in its place. There, too, a person says
that the one of before is gone for good, by its uuid, and that no catalog has it; what can be asked is asked as often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from icewright.actions.remove_files.orphans.foreign_metadata import ForeignMetadata, MetadataUuids, metadata_beside
from icewright.catalogs.objects import Objects
from icewright.catalogs.table_files_port import TableFiles
from icewright.core import wording
from icewright.core.completeness import Complete, Gap, Gaps, Known, Partial
from icewright.core.errors import (
    InvalidLocation,
    InvalidMessage,
    NotAllowed,
    NotFound,
    Unavailable,
    Unreadable,
    Unsupported,
)
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.deletion import DeletionRun, Needs
from icewright.model.iceberg.locations import CanonicalPath, topmost
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.model import GoneUuid, Place
from icewright.ownership.needed_files import NeedsOf, UsersNow
from icewright.ownership.ownership import Ownership
from icewright.ownership.registry import Registry

LOOKS_MAX: Final = 3
"""How often the folders of a table's metadata are listed before metadata in them counts as another table's."""


class GoneTables:
    """What a Deleter asks, answered for the table of one run at a time. For one thread."""

    def __init__(
        self, needs: NeedsOf, users_now: UsersNow, withdrawn: Callable[[str], Sequence[GoneUuid]] = lambda _: ()
    ) -> None:
        """``withdrawn`` are the tables that were declared gone from the place of one, and are there after all."""
        self._needs, self._users_now, self._withdrawn = needs, users_now, withdrawn
        self._run: DeletionRun | None = None
        self._folders: tuple[str, ...] = ()

    def turn_to(self, run: DeletionRun, paths: Iterable[CanonicalPath]) -> None:
        """From now on it is about the table of this run, and files at these paths."""
        self._run = run
        self._folders = topmost({f"{path.rpartition('/')[0]}/" for path in paths})

    def place(self, name: TableName) -> Known[Place]:
        """The folders that the files were in; who else may be there is asked with :meth:`needs`."""
        uuid = self._present().table_id.uuid.strip().lower()
        return Gaps().judge(Place(name, uuid, self._folders, ()))

    def needs(self, name: TableName, paths: Iterable[CanonicalPath]) -> Known[Needs]:
        """That nothing is needed; partial as long as anybody may need it.

        Raises :class:`NotAllowed` where the table is there, and ``Unavailable`` where that cannot be told.
        """
        run = self._present()
        asked = frozenset(paths)
        for each in {name, run.table_name}:
            self._require_gone(each, run, asked)
        known, gaps = self._users_now(run.table_id.uuid, self._folders), Gaps()
        if isinstance(known, Partial):
            for gap in known.gaps:
                gaps.add(gap)
        for one in self._withdrawn(run.table_id.uuid.strip().lower()):
            gaps.add(Gap(one.uuid, _withdrawn(one)))
        for user in sorted(known.found if isinstance(known, Partial) else known.value):
            gaps.add(
                Gap(str(user), Reason("in-use", "it has the table's uuid, or a place or files where its files were"))
            )
        return gaps.judge(Needs(run.table_id, run.metadata_location, True, 0, asked, frozenset()))

    def _require_gone(self, name: TableName, run: DeletionRun, asked: frozenset[CanonicalPath]) -> None:
        try:
            known = self._needs(name, asked)
        except NotFound:
            return
        there = (known.found if isinstance(known, Partial) else known.value).table_id
        if there == run.table_id:
            raise NotAllowed(
                f"{name} is there: what it needs is read before anything of it is purged",
                hint=f"icewright quarantine purge {run.run_id}",
            )

    def _present(self) -> DeletionRun:
        if self._run is None:
            raise NotAllowed("no table is declared gone")
        return self._run


class GoneUuids:
    """Tables that lay in the place of a table before it, and were declared gone. Safe for use by several threads."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def declare(self, name: TableName, uuid: str, declared_by: str, now: Instant) -> GoneUuid:
        """Let files of a table that lay in the place of this one go, as its orphans do, by approval.

        Raises ``InvalidMessage`` for what is no uuid, ``NotFound`` where there is no such table, ``NotAllowed`` where a
        table that is known has the uuid, and ``Unavailable`` while not all tables are known.
        """
        uuid = _uuid(uuid)
        self._registry.place_of(name)
        found = self._registry.claim(name)
        if found is None or found.is_gone:
            raise NotFound(f"there is no table {name}")
        users = self._registry.users_now(uuid, ())
        if there := sorted(users.found if isinstance(users, Partial) else users.value):
            raise NotAllowed(f"{uuid} is table {there[0]}: it still exists")
        if isinstance(users, Partial):
            gap = users.gaps[0]
            raise Unavailable(f"{wording.cut(gap.what)} is not known, and may be table {uuid}: {gap.reason.text}")
        self._registry.forget_gone(uuid)  # what it claimed when a catalog showed it last
        return self._put(name, GoneUuid(uuid, now, declared_by, found.roots))

    def withdraw(self, name: TableName, uuid: str) -> GoneUuid:
        """Nothing in that place goes any more, and nothing that went is purged. Raises ``NotFound``."""
        uuid = _uuid(uuid)
        found = next((one for at, one in self.declared() if at == name and one.uuid == uuid), None)
        if found is None:
            raise NotFound(f"{uuid} was not declared gone from the place of {name}")
        return self._put(name, replace(found, declared_at=0))

    def declared(self) -> Iterator[tuple[TableName, GoneUuid]]:
        """What is declared, by the tables in whose places it is. Raises ``Unavailable``."""
        for seen in self._registry.book():
            if seen.gone_at is None:
                yield from ((seen.claim.name, one) for one in seen.gone if one.declared_at)

    def place_now(self, metadata: TableMetadata) -> Known[Place]:
        """What a table alone owns, and what was declared gone there: see :meth:`Registry.place_now`."""
        self._registry.saw(metadata)
        owned = self._registry.ownership_now()
        return self._beside(owned.place(metadata.name), owned)

    def place_of(self, name: TableName, files: TableFiles, objects: Objects, uuids: MetadataUuids) -> Known[Place]:
        """As :meth:`Registry.place_of`; nothing where the folders of its metadata have that of another table or a copy.

        A copy in a catalog that is not configured, or a table that was declared gone, may be committed to after files
        were planned. Metadata that a writer of the table itself has not committed yet looks the same, so the folders
        are looked at up to :data:`LOOKS_MAX` times. Raises ``NotFound`` where the table is gone, and
        ``StorageUnavailable``.
        """
        known = self._registry.place_of(name)
        seen = self._registry.book().get(name)
        if seen is not None and seen.gone and isinstance(known, Complete):
            known = self._beside(known, self._registry.ownership_now())
        if isinstance(known, Partial) or not known.value.roots:
            return known
        findings: tuple[Reason, ...] = ()
        for _ in range(LOOKS_MAX):
            try:
                findings = self._found_beside(name, known.value, files, objects, uuids)
            except (Unreadable, Unsupported, InvalidLocation) as error:
                gap = Gap(f"the folders of the metadata of {name}", Reason(error.code, error.message))
                return Partial(known.value, (gap,), 1)
            if not findings:
                break
        return Gaps().judge(known.value.refused(findings))

    def _found_beside(
        self, name: TableName, place: Place, files: TableFiles, objects: Objects, uuids: MetadataUuids
    ) -> tuple[Reason, ...]:
        """What the folders tell. The table is read again after them, so that it has all commits that they show."""
        aliases = self._registry.aliases_of(name.catalog)
        listed = [*metadata_beside(objects, place, files.roots(name).metadata, aliases)]
        foreign = ForeignMetadata(objects, place, uuids, files.roots(name).metadata, aliases)
        for entry in listed:
            foreign.look(entry)
        return foreign.findings()

    def _beside(self, known: Known[Place], owned: Ownership) -> Known[Place]:
        """The place with those of the declared tables that no table that is known has become."""
        if isinstance(known, Partial):
            return known
        seen = self._registry.book().get(known.value.name)
        declared = () if seen is None else seen.gone
        found = ((one, owned.users(one.uuid, ())) for one in declared)
        gone = tuple(one for one, users in found if isinstance(users, Complete) and not users.value)
        place = replace(known.value, gone=gone)
        return Gaps().judge(place.refused(tuple(_withdrawn(one) for one in declared if not one.declared_at)))

    def _put(self, name: TableName, declared: GoneUuid) -> GoneUuid:
        book = self._registry.book()
        with book.lock:
            seen = book.get(name)
            if seen is None:
                raise NotFound(f"there is no table {name}")
            others = (one for one in seen.gone if one.uuid != declared.uuid)
            book.put(replace(seen, gone=(*others, declared)))
        self._registry.keep(name)
        return declared


def _withdrawn(one: GoneUuid) -> Reason:
    text = (
        f"table {one.uuid} was declared gone from its place, which was withdrawn: `icewright undo` restores the "
        "files; if it no longer exists, declare it gone again"
    )
    return Reason("gone-withdrawn", text)


def _uuid(text: str) -> str:
    try:
        return str(UUID(text.strip()))
    except ValueError as error:
        raise InvalidMessage(f"{wording.quoted(text)} is no uuid") from error
