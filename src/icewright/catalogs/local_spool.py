"""A spool on disk: files go by a hash of their path into temporary files that have no name and vanish when closed.

A part is kept in memory until it is large, so that small tables never touch the disk. Mentions are written some at a
time, as the interpreter writes its own values: to take each of them apart in Python costs more than all else that a
search for orphan files does. Nobody but this process can open these files, and no other reads them.
"""

from __future__ import annotations

import marshal
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, TypeAlias

from icewright.core.errors import Unavailable
from icewright.model.actions.orphans import FoundFile, Mention, Sighting
from icewright.model.iceberg.locations import CanonicalPath, checksummed
from icewright.model.iceberg.objects import ListedObject
from icewright.model.iceberg.path_aliasing import comparison_key
from icewright.model.iceberg.reachable_files import FileClass, ReachableFile

PER_PART: Final = 200_000
"""Mentions in a part, which is what is held in memory at a time: some 100 MB."""
PARTS_MAX: Final = 256
_IN_MEMORY_BYTES: Final = 64 << 20
"""Of all parts together, before they go to disk."""
_AT_A_TIME: Final = 64
"""Mentions that are written together; of each part fewer wait for that: 16,000 in all, some 10 MB."""
_LENGTH: Final = struct.Struct("<I")
_CLASSES: Final = tuple(FileClass)
_NUMBERS: Final = {file_class: number for number, file_class in enumerate(_CLASSES)}
_FOUND: Final = -1
_SIGHTING: Final = -2


@dataclass(slots=True)
class _Part:
    """One file, and what is still to be written to it."""

    file: IO[bytes]
    waiting: list[tuple[Any, ...]] = field(default_factory=list)

    def write(self) -> None:
        """Write what waits."""
        if self.waiting:
            content = marshal.dumps(self.waiting)
            self.file.write(_LENGTH.pack(len(content)) + content)
            self.waiting.clear()


class DiskSpool:
    """Files in, and out again in parts: all mentions of one path, and of all paths like it, are in the same part.

    Paths are alike as :func:`icewright.model.iceberg.path_aliasing.comparison_key` says. The checksum of a file
    (:func:`icewright.model.iceberg.locations.checksummed`) is in the part of the file.
    """

    def __init__(self, files: list[IO[bytes]]) -> None:
        self._parts = [_Part(file) for file in files]
        # Whoever names files must not be able to choose the part that they are in.
        self._key = os.urandom(16)

    def add(self, mention: Mention) -> None:
        """One more mention of a file. Raises :class:`Unavailable` when the disk is full."""
        part = self._parts[0] if len(self._parts) == 1 else self._part_of(mention.path)
        part.waiting.append(_plain(mention))
        if len(part.waiting) == _AT_A_TIME:
            with _temporary_folder():
                part.write()

    def parts(self) -> Iterator[Iterable[Mention]]:
        """All that was added, part by part. Raises :class:`Unavailable` as :meth:`add` does."""
        for part in self._parts:
            with _temporary_folder():
                part.write()
                part.file.seek(0)  # writes what is still to be written
            yield _read(part.file)

    def _part_of(self, path: CanonicalPath) -> _Part:
        alike = comparison_key(checksummed(path) or path).encode("utf-8", "surrogatepass")
        digest = blake2b(alike, digest_size=8, key=self._key).digest()
        return self._parts[int.from_bytes(digest, "little") % len(self._parts)]


OpenSpool: TypeAlias = Callable[[int], AbstractContextManager[DiskSpool]]
"""As :func:`open_disk_spool`."""


@contextmanager
def open_disk_spool(expected: int) -> Iterator[DiskSpool]:
    """An empty spool for about so many mentions, which decides how many parts there are: one where 0 are expected.

    That one holds whatever is added all the same. Temporary files are where the system has them (``TMPDIR``), and are
    gone when the spool is closed.
    """
    count = max(1, min(PARTS_MAX, -(-expected // PER_PART)))
    with ExitStack() as stack:
        yield DiskSpool([stack.enter_context(_open(count)) for _ in range(count)])


def _open(count: int) -> IO[bytes]:
    return SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES // count)


@contextmanager
def _temporary_folder() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"the temporary folder takes no more: {error}", hint="TMPDIR names another one") from error


def _plain(mention: Mention) -> tuple[Any, ...]:
    """What it is, and all of its fields, as numbers and texts."""
    match mention:
        case ReachableFile(path, file_class, size_bytes, kept_by, added_at):
            return _NUMBERS[file_class], path, size_bytes, kept_by, added_at
        case FoundFile(path, listed):
            own = None if listed.path == path else listed.path
            return _FOUND, path, own, listed.size_bytes, listed.modified_at, listed.etag, listed.version_id
        case Sighting():
            seen = (mention.first_seen_at, mention.last_seen_at, mention.passes)
            same = (mention.size_bytes, mention.modified_at, mention.etag, mention.version_id)
            return _SIGHTING, mention.path, *same, *seen


def _read(part: IO[bytes]) -> Iterator[Mention]:
    while head := part.read(_LENGTH.size):
        for number, path, *fields in marshal.loads(part.read(*_LENGTH.unpack(head))):  # noqa: S302 - of this process
            if number == _FOUND:
                own, *facts = fields
                yield FoundFile(path, ListedObject(path if own is None else own, *facts))
            elif number == _SIGHTING:
                yield Sighting(path, *fields)
            else:
                yield ReachableFile(path, _CLASSES[number], *fields)
    part.seek(0, os.SEEK_END)
