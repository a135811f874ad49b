"""A spool on disk: files go by a hash of their path into temporary files that have no name and vanish when closed.

A part is kept in memory until it is large, so that small tables never touch the disk.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from icewright.domain.errors import Unavailable
from icewright.domain.likeness import likeness
from icewright.domain.locations import CanonicalPath
from icewright.domain.objects import ListedObject
from icewright.domain.orphans import FoundFile, Mention, Sighting
from icewright.domain.reachable import FileClass, ReachableFile

PER_PART: Final = 200_000
"""Mentions in a part, which is what is held in memory at a time: some 100 MB."""
PARTS_MAX: Final = 256
_IN_MEMORY_BYTES: Final = 64 << 20
"""Of all parts together, before they go to disk."""
_HEAD: Final = struct.Struct("<BqqII")
"""What it is, size, when it was added, and how much more there is."""
_UNSIZED: Final = -1
_LONG_MIN: Final = -(1 << 63)
_CLASSES: Final = tuple(FileClass)
_NUMBERS: Final = {file_class: number for number, file_class in enumerate(_CLASSES)}
_FOUND: Final = 254
_SIGHTING: Final = 255


class DiskSpool:
    """The port over temporary files, one per part."""

    def __init__(self, files: list[IO[bytes]]) -> None:
        self._files = files
        # Whoever names files must not be able to choose the part that they are in.
        self._key = os.urandom(16)

    def add(self, mention: Mention) -> None:
        """One more mention of a file. Raises :class:`Unavailable` when the disk is full."""
        alike = likeness(mention.path).encode("utf-8", "surrogatepass")
        digest = blake2b(alike, digest_size=8, key=self._key).digest()
        part = self._files[int.from_bytes(digest, "little") % len(self._files)]
        with _temporary_folder():
            part.write(_packed(mention))

    def parts(self) -> Iterator[Iterable[Mention]]:
        """All that was added, part by part. Raises :class:`Unavailable` as :meth:`add` does."""
        for part in self._files:
            with _temporary_folder():
                part.seek(0)  # writes what is still to be written
            yield _read(part)


@contextmanager
def open_disk_spool(expected: int) -> Iterator[DiskSpool]:
    """The port's opener; temporary files are where the system has them (``TMPDIR``)."""
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


def _packed(mention: Mention) -> bytes:
    """A head, what is beside the path, and the path."""
    path = mention.path.encode("utf-8", "surrogatepass")
    added_at = _LONG_MIN
    match mention:
        case ReachableFile():
            number, beside = _NUMBERS[mention.file_class], _keepers(mention.kept_by)
            size_bytes = _UNSIZED if mention.size_bytes is None else mention.size_bytes
            added_at = _LONG_MIN if mention.added_at is None else mention.added_at
        case FoundFile(listed=listed):
            own = None if listed.path == mention.path else listed.path
            beside = _facts(own, listed.modified_at, listed.etag, listed.version_id)
            number, size_bytes = _FOUND, listed.size_bytes
        case Sighting():
            seen = (mention.first_seen_at, mention.last_seen_at, mention.passes)
            beside = _facts(mention.modified_at, mention.etag, mention.version_id, *seen)
            number, size_bytes = _SIGHTING, mention.size_bytes
    return b"".join((_HEAD.pack(number, size_bytes, added_at, len(beside), len(path)), beside, path))


def _facts(*facts: str | int | None) -> bytes:
    return json.dumps(facts).encode("ascii")


def _keepers(kept_by: int) -> bytes:
    return kept_by.to_bytes((kept_by.bit_length() + 7) // 8, "little")


def _read(part: IO[bytes]) -> Iterator[Mention]:
    keepers: dict[bytes, int] = {}
    while head := part.read(_HEAD.size):
        number, size_bytes, added_at, beside_bytes, path_bytes = _HEAD.unpack(head)
        beside = part.read(beside_bytes)
        path = CanonicalPath(part.read(path_bytes).decode("utf-8", "surrogatepass"))
        if number == _FOUND:
            own, *facts = json.loads(beside.decode("ascii"))
            yield FoundFile(path, ListedObject(path if own is None else own, size_bytes, *facts))
        elif number == _SIGHTING:
            yield Sighting(path, size_bytes, *json.loads(beside.decode("ascii")))
        else:
            kept_by = keepers.setdefault(beside, int.from_bytes(beside, "little"))
            size = None if size_bytes == _UNSIZED else size_bytes
            yield ReachableFile(path, _CLASSES[number], size, kept_by, None if added_at == _LONG_MIN else added_at)
    part.seek(0, os.SEEK_END)
