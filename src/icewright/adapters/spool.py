"""A spool on disk: files go by a hash of their path into temporary files that have no name and vanish when closed.

A part is kept in memory until it is large, so that small tables never touch the disk.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from icewright.domain.errors import Unavailable
from icewright.domain.locations import CanonicalPath
from icewright.domain.reachable import FileClass, ReachableFile

PER_PART: Final = 200_000
"""Mentions in a part, which is what is held in memory at a time: some 100 MB."""
PARTS_MAX: Final = 256
_IN_MEMORY_BYTES: Final = 64 << 20
"""Of all parts together, before they go to disk."""
_HEAD: Final = struct.Struct("<BqII")
_UNSIZED: Final = -1
_CLASSES: Final = tuple(FileClass)
_NUMBERS: Final = {file_class: number for number, file_class in enumerate(_CLASSES)}


class DiskSpool:
    """The port over temporary files, one per part."""

    def __init__(self, files: list[IO[bytes]]) -> None:
        self._files = files
        # Whoever names files must not be able to choose the part that they are in.
        self._key = os.urandom(16)

    def add(self, file: ReachableFile) -> None:
        """One more mention of a file. Raises :class:`Unavailable` when the disk is full."""
        path = file.path.encode("utf-8", "surrogatepass")
        digest = blake2b(path, digest_size=8, key=self._key).digest()
        kept_by = file.kept_by.to_bytes((file.kept_by.bit_length() + 7) // 8, "little")
        size_bytes = _UNSIZED if file.size_bytes is None else file.size_bytes
        head = _HEAD.pack(_NUMBERS[file.file_class], size_bytes, len(kept_by), len(path))
        part = self._files[int.from_bytes(digest, "little") % len(self._files)]
        with _temporary_folder():
            part.write(b"".join((head, kept_by, path)))

    def parts(self) -> Iterator[Iterable[ReachableFile]]:
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


def _read(part: IO[bytes]) -> Iterator[ReachableFile]:
    keepers: dict[bytes, int] = {}
    while head := part.read(_HEAD.size):
        number, size_bytes, keepers_bytes, path_bytes = _HEAD.unpack(head)
        raw = part.read(keepers_bytes)
        kept_by = keepers.setdefault(raw, int.from_bytes(raw, "little"))
        path = part.read(path_bytes).decode("utf-8", "surrogatepass")
        size = None if size_bytes == _UNSIZED else size_bytes
        yield ReachableFile(CanonicalPath(path), _CLASSES[number], size, kept_by)
    part.seek(0, os.SEEK_END)
