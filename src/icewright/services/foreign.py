"""Other tables' metadata below a table's place, told from a listing as it goes by.

It is the one witness of tables that no configured catalog has. A process reads each file once: what it says is
remembered by its path and by what tells it from another one there, for the files that were asked for latest.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from icewright.domain.errors import StorageAway, Unreadable
from icewright.domain.locations import CanonicalPath
from icewright.domain.objects import Listed, ListedObject, OddEntry
from icewright.domain.ownership import Place
from icewright.domain.reasons import Reason
from icewright.planning import wording
from icewright.planning.metadata_files import is_metadata_file, uuid_of
from icewright.ports.objects import Objects

READ_BYTES_MAX: Final = 128 << 20
"""The largest metadata file that is read, as packed; a larger one counts as one that cannot be read."""
REMEMBERED_MAX: Final = 200_000
"""Metadata files whose uuid is remembered, over all tables: some 60 MB."""
_NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Said:
    """What was found out of one file: the uuid in it, or None where there is none to be read."""

    uuid: str | None
    why: str = ""


class MetadataUuids:
    """The uuids in metadata files, as far as they were read. Safe for use by several threads at once."""

    def __init__(self, remembered_max: int = REMEMBERED_MAX) -> None:
        self._remembered_max = remembered_max
        self._known: OrderedDict[tuple[object, ...], Said] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, objects: Objects, listed: ListedObject) -> Said:
        """What is in a file. Raises ``StorageAway``, and then remembers nothing."""
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


class ForeignMetadata:
    """Watches the listings of one table's place."""

    def __init__(self, objects: Objects, place: Place, uuids: MetadataUuids) -> None:
        self._objects, self._place, self._uuids = objects, place, uuids
        self._foreign: list[str] = []
        self._others: set[str] = set()
        self._unreadable: list[str] = []
        self._foreign_count = self._unreadable_count = 0

    def watched(self, listing: Iterable[Listed]) -> Iterator[Listed]:
        """The listing as it was, looked at one by one. What it tells is known once it has ended.

        Raises what the listing raises, and ``StorageAway``.
        """
        for listed in listing:
            self.look(listed)
            yield listed

    def look(self, listed: Listed) -> None:
        """Look at one entry; most are passed over by their names. Raises ``StorageAway``."""
        if not is_metadata_file(listed.path):
            return
        match listed:
            case OddEntry(path, reason):
                self._not_read(path, reason.text)
            case ListedObject():
                said = self._uuids.of(self._objects, listed)
                if said.uuid is None:
                    self._not_read(listed.path, said.why)
                elif said.uuid != self._place.uuid:
                    self._foreign_count += 1
                    self._note(self._foreign, listed.path)
                    if len(self._others) < _NAMED_MAX:
                        self._others.add(said.uuid)

    def findings(self) -> tuple[Reason, ...]:
        """What was found of other tables, by what has been looked at."""
        found = []
        if self._foreign_count:
            text = (
                f"{wording.count(self._foreign_count, 'metadata file')} in its place "
                f"{'is' if self._foreign_count == 1 else 'are'} of another table "
                f"({', '.join(wording.name(uuid) for uuid in sorted(self._others))}), such as "
                f"{', '.join(self._foreign)}: move that table's files elsewhere, or, if it is gone for good, them away"
            )
            found.append(Reason("foreign-metadata", text, {"files": self._foreign_count}))
        if self._unreadable_count:
            text = (
                f"whose {wording.count(self._unreadable_count, 'metadata file')} in its place "
                f"{'is' if self._unreadable_count == 1 else 'are'} cannot be told: {'; '.join(self._unreadable)}"
            )
            found.append(Reason("unreadable-metadata", text, {"files": self._unreadable_count}))
        return tuple(found)

    def place(self) -> Place:
        """The place, which owns nothing if there was anything to be found."""
        return self._place.refused(self.findings())

    def _not_read(self, path: CanonicalPath, why: str) -> None:
        self._unreadable_count += 1
        self._note(self._unreadable, path, f" ({wording.cut(why)})")

    def _note(self, notes: list[str], path: CanonicalPath, more: str = "") -> None:
        if len(notes) < _NAMED_MAX:
            notes.append(wording.quoted(path[-_SHOWN_MAX:]) + more)


_SHOWN_MAX: Final = 100


def _read(objects: Objects, listed: ListedObject) -> Said:
    try:
        return Said(uuid_of(objects.read(listed.path, READ_BYTES_MAX)))
    except StorageAway:
        raise
    except Unreadable as error:
        return Said(None, error.message)
