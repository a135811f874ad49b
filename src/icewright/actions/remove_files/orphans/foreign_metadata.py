"""Other tables' metadata below a table's place, told from a listing as it goes by.

It is the one witness of tables that no configured catalog has. A process reads each file once: what it says is
remembered by its path and by what tells it from another one there, for the files that were asked for latest.

A copy of the table itself, registered elsewhere, has its uuid. Once it is committed to, it gives itself away by a
metadata file that is none of the table's own history: neither in the metadata log nor in that of a file there, and with
a snapshot that the table never had. A failed commit leaves such a file, too; the file alone does not tell which, unless
a task of ours signed its snapshot: optimizers commit to tables of configured catalogs alone.

A table that was dropped and made anew at its old location leaves its metadata there. It can be told from one that is in
a catalog that is not configured by a person alone, who declares its uuid gone; and only while nothing commits to it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Final

from icewright.actions.remove_files.orphans.metadata_files import History, history_of, is_metadata_file, uuid_of
from icewright.catalogs.objects import Objects
from icewright.core import wording
from icewright.core.errors import InvalidLocation, StorageUnavailable, Unreadable, Unsupported
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.remove_files import AGE_MIN_MS
from icewright.model.iceberg.locations import Aliases, CanonicalPath, parent, topmost
from icewright.model.iceberg.objects import Listed, ListedObject, OddEntry
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.model import GoneUuid, Place

READ_BYTES_MAX: Final = 128 << 20
"""The largest metadata file that is read, as packed; a larger one counts as one that cannot be read."""
REMEMBERED_MAX: Final = 200_000
"""Metadata files whose uuid is remembered, over all tables: some 60 MB."""
HISTORIES_MAX: Final = 2_000
"""Metadata files read in full to tell whether others are of a table's history; what is left then counts as none."""
_NAMED_MAX: Final = 3
GONE_AGE_MS: Final = AGE_MIN_MS
"""For how long nothing may have been committed to a table that is declared gone, by then."""


@dataclass(slots=True)
class _Theirs:
    """Metadata files of another table: its latest time, None where a file has none."""

    files: list[CanonicalPath]
    written_at: Instant | None = 0

    def add(self, listed: ListedObject) -> None:
        self.files.append(listed.path)
        known = self.written_at is not None and listed.modified_at is not None
        self.written_at = max(self.written_at or 0, listed.modified_at or 0) if known else None

    def is_gone(self, one: GoneUuid, watched: tuple[str, ...]) -> bool:
        """Whether nothing was committed to it for long when it was declared gone, nor since, and it is all there.

        All of it must be where it is looked for again before files go: a commit elsewhere would not be seen.
        """
        is_old = self.written_at is not None and 0 < self.written_at <= one.declared_at - GONE_AGE_MS
        return is_old and all(path.startswith(one.roots) and path.startswith(watched) for path in self.files)


@dataclass(frozen=True, slots=True)
class Said:
    """What was found out of one file: the uuid in it, or None where there is none to be read."""

    uuid: str | None
    why: str = ""


class MetadataUuids:
    """The uuids in metadata files, as far as they were read. Safe for use by several threads at once.

    ``is_task`` tells whether a task of that id was one of the table of that uuid.
    """

    def __init__(
        self, is_task: Callable[[str, str], bool] = lambda *_: False, *, remembered_max: int = REMEMBERED_MAX
    ) -> None:
        self.is_task, self._remembered_max = is_task, remembered_max
        self._known: OrderedDict[tuple[object, ...], Said] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, objects: Objects, listed: ListedObject) -> Said:
        """What is in a file. Raises ``StorageUnavailable``, and then remembers nothing."""
        key = (listed.path, listed.size_bytes, listed.modified_at, listed.etag, listed.version_id)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        said = _read(objects, listed)
        if said.uuid is not None and (listed.etag is not None or listed.modified_at is not None):
            with self._lock:
                self._known[key] = said
                while len(self._known) > self._remembered_max:
                    self._known.popitem(last=False)
        return said


def watched_folders(place: Place, table: TableMetadata, aliases: Aliases) -> tuple[str, ...]:
    """Where tables have their metadata: what is listed again, right before files go, for a table declared gone."""
    own = aliases.folder(table.metadata_location.rpartition("/")[0])
    return topmost((own, *(f"{root}metadata/" for root in place.roots)))


def metadata_elsewhere(table: TableMetadata, aliases: Aliases, roots: tuple[str, ...]) -> tuple[str, ...]:
    """The folders outside of ``roots`` where the table has its metadata, or had it by its metadata log.

    A copy of the table may commit there: it has the settings that the table had when the copy was made.
    """
    found = set()
    for location in (table.metadata_location, *(entry.location for entry in table.metadata_log)):
        with suppress(InvalidLocation):  # it may be anywhere: then nothing is owned
            found.add(aliases.folder(location.rpartition("/")[0]))
    return tuple(sorted(folder for folder in found if not folder.startswith(roots)))


def metadata_beside(objects: Objects, place: Place, table: TableMetadata, aliases: Aliases) -> Iterator[Listed]:
    """Metadata files, by their names, in all folders where the table has, had or by default would have its metadata.

    Raises what the listings raise, and :class:`InvalidLocation` and ``Unsupported`` where a folder cannot be listed.
    """
    watched = watched_folders(place, table, aliases)
    elsewhere = metadata_elsewhere(table, aliases, watched)
    listings = chain(
        *(objects.list(CanonicalPath(folder)) for folder in watched),
        *(objects.list_folder(CanonicalPath(folder)) for folder in elsewhere),
    )
    return (listed for listed in listings if is_metadata_file(listed.path))


class ForeignMetadata:
    """Watches the listings of one table's place. ``table`` is the table as it was before the listing."""

    def __init__(
        self, objects: Objects, place: Place, uuids: MetadataUuids, table: TableMetadata, aliases: Aliases
    ) -> None:
        self._objects, self._place, self._uuids = objects, place, uuids
        self._table, self._aliases = table, aliases
        self._own: dict[CanonicalPath, ListedObject] = {}
        """Files with the table's uuid."""
        self._others: dict[str, _Theirs] = {}
        self._unreadable: list[str] = []
        self._unreadable_count = 0

    def watched(self, listing: Iterable[Listed]) -> Iterator[Listed]:
        """The listing as it was, looked at one by one. What it tells is known once it has ended.

        Raises what the listing raises, and ``StorageUnavailable``.
        """
        for listed in listing:
            self.look(listed)
            yield listed

    def look(self, listed: Listed) -> None:
        """Look at one entry; most are passed over by their names. Raises ``StorageUnavailable``."""
        if not is_metadata_file(listed.path):
            return
        match listed:
            case OddEntry(path, reason):
                self._not_read(path, reason.text)
            case ListedObject():
                said = self._uuids.of(self._objects, listed)
                if said.uuid is None:
                    self._not_read(listed.path, said.why)
                elif said.uuid == self._place.uuid:
                    self._own[listed.path] = listed
                else:
                    self._others.setdefault(said.uuid, _Theirs([])).add(listed)

    def gone(self) -> dict[CanonicalPath, str]:
        """The metadata files of tables that were declared gone, and their uuids, by what has been looked at."""
        watched = watched_folders(self._place, self._table, self._aliases)
        return {
            path: one.uuid
            for one in self._place.gone
            if (theirs := self._others.get(one.uuid)) is not None and theirs.is_gone(one, watched)
            for path in theirs.files
        }

    def findings(self) -> tuple[Reason, ...]:
        """What was found of other tables, by what has been looked at."""
        found = []
        gone = set(self.gone().values())
        if others := {uuid: theirs for uuid, theirs in self._others.items() if uuid not in gone}:
            found.append(self._foreign(others))
        if self._unreadable_count:
            text = (
                f"whose {wording.count(self._unreadable_count, 'metadata file')} in its place "
                f"{'is' if self._unreadable_count == 1 else 'are'} is unknown: {'; '.join(self._unreadable)}"
            )
            found.append(Reason("unreadable-metadata", text, {"files": self._unreadable_count}))
        if self._place.uuid == self._table.table_id.uuid.strip().lower() and (strays := self._strays()):
            text = (
                f"{wording.count(len(strays), 'metadata file')} in its place "
                f"{'has' if len(strays) == 1 else 'have'} its uuid and "
                f"{'is' if len(strays) == 1 else 'are'} no part of its history, such as "
                f"{', '.join(wording.quoted(path[-_SHOWN_MAX:]) for path in strays[:_NAMED_MAX])}: a copy of the table "
                "in another catalog may need files here; where none has one, a failed commit left this: move it away"
            )
            found.append(Reason("other-history", text, {"files": len(strays)}))
        return tuple(found)

    def _foreign(self, others: Mapping[str, _Theirs]) -> Reason:
        """Which tables have metadata here, until when each was written, and how a person says that one is gone."""
        files = [path for theirs in others.values() for path in theirs.files]
        named = [f"{wording.name(uuid)} {_written(others[uuid])}" for uuid in sorted(others)[:_NAMED_MAX]]
        declared = {one.uuid for one in self._place.gone if one.declared_at}
        said = hint = f"move that table's files elsewhere, or, if it no longer exists anywhere, {_HINT}"
        if late := sorted(declared & others.keys()):
            span = wording.duration(GONE_AGE_MS)
            said = f"{late[0]} was declared gone, and was committed to less than {span} before, or since; or it was "
            said += f"declared gone from another place: {hint}"
        text = (
            f"{wording.count(len(files), 'metadata file')} in its place {'is' if len(files) == 1 else 'are'} of "
            f"another table ({', '.join(named)}), such as "
            f"{', '.join(wording.quoted(path[-_SHOWN_MAX:]) for path in files[:_NAMED_MAX])}: {said}"
        )
        return Reason("foreign-metadata", text, {"files": len(files)})

    def _strays(self) -> list[CanonicalPath]:
        """Metadata files with the table's uuid that are not of its history. Raises ``StorageUnavailable``.

        None where the listing has the table's present one by another path: whoever compares paths refuses that.
        """
        current = self._aliases.canonical(self._table.metadata_location)
        if current not in self._own and any(_name(path) == _name(current) for path in self._own):
            return []
        lineage = _Lineage(self._table, self._aliases, self._history, self._uuids.is_task)
        unproven = lineage.without_ancestors(self._own)
        return sorted(path for path in unproven if not lineage.knows(path))

    def _history(self, path: CanonicalPath) -> History | None:
        """What a file says of its history; None where it is not there, or cannot be read."""
        if path not in self._own:
            return None
        try:
            return history_of(self._objects.read(path, READ_BYTES_MAX))
        except StorageUnavailable:
            raise
        except Unreadable:
            return None

    def place(self) -> Place:
        """The place, which owns nothing if there was anything to be found."""
        return self._place.refused(self.findings())

    def _not_read(self, path: CanonicalPath, why: str) -> None:
        self._unreadable_count += 1
        if len(self._unreadable) < _NAMED_MAX:
            self._unreadable.append(f"{wording.quoted(path[-_SHOWN_MAX:])} ({wording.cut(why)})")


_SHOWN_MAX: Final = 100
_HINT: Final = "say so by `icewright table declare-gone`"


def _written(theirs: _Theirs) -> str:
    return "at a time that is not known" if theirs.written_at is None else f"until {wording.instant(theirs.written_at)}"


def _name(path: CanonicalPath) -> str:
    return path.rpartition("/")[2]


_AROUND_FOLDERS: Final[Mapping[str, str]] = {
    "_delta_log": "Delta Lake",
    ".hoodie": "Apache Hudi",
    "_spark_metadata": "Spark's streaming file sink",
}
_PAIMON: Final = "schema/schema-0"


class TablesAround:
    """Looks for a table in a folder above a table's place, or at it, whose files the place then has."""

    def __init__(self, objects: Objects, uuids: MetadataUuids, aliases: Aliases, limits: Sequence[str] = ()) -> None:
        """``limits`` are where the tables of the catalog may lie; above these nobody looks, as of places elsewhere."""
        self._objects, self._uuids, self._aliases, self._limits = objects, uuids, aliases, tuple(limits)

    def refusal(self, place: Place) -> Reason | None:
        """Why files of a place may be another table's, which lies around it; None where no other one is seen there.

        That is refused as well where one of these folders cannot be looked into. Raises ``StorageUnavailable``.
        """
        for root in place.roots:
            for folder in self._from(root):
                try:
                    format_name = self._at(folder, place)
                except StorageUnavailable:
                    raise
                except (Unreadable, Unsupported) as error:
                    return _not_seen(folder, root, error)
                if format_name is not None:
                    said = f"{wording.quoted(folder)} is a table of {format_name}, which needs files of its own"
                    return Reason("other-table-format", said)
        return None

    def _from(self, root: str) -> Iterator[str]:
        """The place itself and the folders above it, as far as tables of the catalog may lie."""
        folder = root
        while True:
            yield folder
            above = parent(folder)
            if above == folder or (self._limits and not above.startswith(self._limits)):
                return
            folder = above

    def _at(self, folder: str, place: Place) -> str | None:
        for name, format_name in _AROUND_FOLDERS.items():
            inside = f"{folder}{name}/"  # a long log: the first entry is enough
            if any(one.path.startswith(inside) for one in self._objects.list(CanonicalPath(inside))):
                return format_name
        if self._objects.stat(CanonicalPath(f"{folder}{_PAIMON}")) is not None:
            return "Apache Paimon"
        metadata = f"{folder}metadata/"
        if metadata.startswith(place.roots):  # what is there is looked at with the place
            return None
        # It may be a namespace of that name, with tables of any size below it.
        found = (one for one in self._objects.list_folder(CanonicalPath(metadata)) if _is_of(one.path, metadata))
        return "Apache Iceberg" if any(self._is_foreign(one, place) for one in found) else None

    def _is_foreign(self, listed: Listed, place: Place) -> bool:
        return isinstance(listed, OddEntry) or self._uuids.of(self._objects, listed).uuid != place.uuid


def _not_seen(folder: str, root: str, error: Unreadable | Unsupported) -> Reason:
    """That a folder at a place or above it cannot be looked into, and what a person does about it."""
    remedy = "allow icewright to list that folder"
    if folder != root:
        remedy += ", or name the `roots` of the catalog in the configuration: nothing above them is read"
    said = f"it is unknown whether {wording.quoted(folder)} is another table, which needs files of its own"
    return Reason("place-not-owned", f"{said}: {wording.cut(error.message)}; {remedy}")


def _is_of(path: CanonicalPath, metadata: str) -> bool:
    """Whether it is a table's metadata in this very folder."""
    return path.startswith(metadata) and is_metadata_file(path) and "/" not in path[len(metadata) :]


class _Lineage:
    """The history of one table: its metadata files by their logs, and the snapshots that it had."""

    def __init__(
        self,
        table: TableMetadata,
        aliases: Aliases,
        read: Callable[[CanonicalPath], History | None],
        is_task: Callable[[str, str], bool],
    ) -> None:
        self._aliases, self._read, self._reads, self._is_task = aliases, read, 0, is_task
        self._uuid, self._written_at = table.table_id.uuid, table.updated_at
        self._files = self._paths([*((one.at, one.location) for one in table.metadata_log)])
        self._files[aliases.canonical(table.metadata_location)] = table.updated_at
        self._oldest_at = min(self._files.values())
        self._snapshots = {one.snapshot_id for one in table.snapshots} | {one.snapshot_id for one in table.snapshot_log}

    def without_ancestors(self, own: Mapping[CanonicalPath, ListedObject]) -> list[CanonicalPath]:
        """The files that no log names, the newest first: logs reach as far back as a file is there that has one."""
        left = set(own) - self._files.keys()
        read: set[CanonicalPath] = set()
        while left and (asked := self._files.keys() - read):
            path = min(asked, key=lambda one: self._files[one])
            read.add(path)
            history = self._history(path)
            if history is None:
                continue
            found = self._paths(history.log)
            if found.keys() <= self._files.keys():
                break
            self._files = {**found, **self._files}
            self._snapshots |= history.snapshots.keys()
            self._oldest_at = min(self._oldest_at, *found.values())
            left -= found.keys()
        return sorted(left, key=lambda path: own[path].modified_at or 0, reverse=True)

    def knows(self, path: CanonicalPath) -> bool:
        """Whether a file that no log names is a state of the table all the same, or one of a commit that came again.

        Its snapshots must be the table's, and none may be newer. Java commits a snapshot again under its id where the
        first try met another commit; a task of ours does so under another id, and signs it. A file older than all logs
        is told by its current snapshot.
        """
        history = self._history(path)
        if history is None or history.written_at > self._written_at:
            return False
        current, is_older = history.current_snapshot_id, history.written_at < self._oldest_at
        if is_older and not history.snapshots:
            return True
        if is_older and current in self._snapshots:
            self._snapshots |= history.snapshots.keys()
            return True
        base = self._paths(history.log[-1:])
        if is_older or not (history.adds_a_snapshot and base.keys() <= self._files.keys()):
            return False
        return current in self._snapshots or (
            history.task_id is not None and self._is_task(history.task_id, self._uuid)
        )

    def _history(self, path: CanonicalPath) -> History | None:
        self._reads += 1
        return None if self._reads > HISTORIES_MAX else self._read(path)

    def _paths(self, log: Iterable[tuple[int, str]]) -> dict[CanonicalPath, int]:
        found = {}
        for written_at, location in log:
            with suppress(InvalidLocation):
                found[self._aliases.canonical(location)] = written_at
        return found


def _read(objects: Objects, listed: ListedObject) -> Said:
    try:
        return Said(uuid_of(objects.read(listed.path, READ_BYTES_MAX)))
    except StorageUnavailable:
        raise
    except Unreadable as error:
        return Said(None, error.message)
