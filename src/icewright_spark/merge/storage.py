"""Where the merge reads and writes: local files, and object stores and HDFS through Arrow's file systems.

Local files keep a path of their own all the way down: the libraries read them by themselves, and what is written is
synced to the disk. Everything else is a file object of Arrow's.
"""

from __future__ import annotations

import io
import os
import stat
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from icewright_spark.merge.errors import (
    OutputExists,
    ProofFailed,
    UnsupportedFile,
    UnsupportedLocation,
    reading,
    unwritable,
    worker_trouble,
)
from icewright_spark.merge.file_systems import address, file_system

WHOLE_BYTES_MAX: Final = 8 << 20
"""A remote file up to this size is read at once when it is decoded: one request instead of several per column."""

_FILE_BUFFER_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 1 << 20
_BLOCKS_KEPT: Final = 64

Source: TypeAlias = Any
"""What both decoders read: the path of a local file, or Arrow's open file (``NativeFile``) of any other."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The files of one table as its own ``FileIO`` is set up. Travels to the workers inside their task.

    ``io_properties`` are those that :func:`icewright_spark.merge.file_systems.honoured` gave, secrets among them:
    they are in no text of this object. Local files need none.
    """

    io_properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def open_input(self, location: str) -> Any:
        """A readable, seekable binary file; close it. Raises :class:`FileUnreadable` and what storages raise.

        :class:`UnsupportedFile` is what no regular file raises.
        """
        if is_local(location):
            self.size(location)
            with reading(location):
                return local_path(location).open("rb")
        system, path = self._file_system(location)
        with reading(location):
            return system.open_input_file(path)

    def read(self, location: str, offset: int, size_bytes: int) -> bytes:
        """The bytes of a file from ``offset`` on, fewer where it ends before. Raises as :meth:`open_input` does."""
        with self.open_input(location) as file, reading(location):
            file.seek(offset)
            return bytes(file.read(size_bytes))

    def source(self, location: str) -> Source:
        """What the decoders take for a file. Raises as :meth:`open_input` does."""
        if is_local(location):
            self.size(location)
            return str(local_path(location))
        file = self.open_input(location)
        with reading(location):
            return pa.BufferReader(file.read_buffer()) if file.size() <= WHOLE_BYTES_MAX else file

    def size(self, location: str) -> int:
        """The bytes of a file, which must be a regular one.

        Opening a named pipe would wait for its writer, for ever perhaps, and a device may have no end.
        Raises as :meth:`open_input` does.
        """
        if is_local(location):
            with reading(location):
                status = local_path(location).stat()
            if not stat.S_ISREG(status.st_mode):
                raise UnsupportedFile(f"{location} is no regular file")
            return status.st_size
        info = self._info(location)
        with reading(location):
            if info.type == fs.FileType.NotFound:
                raise FileNotFoundError(2, "it does not exist")
        if info.type != fs.FileType.File:
            raise UnsupportedFile(f"{location} is no regular file")
        return int(info.size)

    def exists(self, location: str) -> bool:
        """Whether there is anything at a location. Raises :class:`StorageRefused` and :class:`StorageUnavailable`."""
        if is_local(location):
            return local_path(location).exists()
        return bool(self._info(location).type != fs.FileType.NotFound)

    @contextmanager
    def create(self, location: str, *, durable: bool = True) -> Iterator[Any]:
        """A new file to write to, durable and complete when the block has ended well.

        With ``durable=False`` only complete: then :meth:`settle` must follow. Raises :class:`OutputExists`,
        :class:`OutputUnwritable` and what storages raise. Local files are created exclusively. Arrow has no such way to
        an object store: it is asked whether the object is there, and names are never used twice. On an error the part
        of a local file that was written is deleted again, since nothing can know it yet; it stays where a proof failed,
        as the evidence, and on object stores.
        """
        if is_local(location):
            with _new_local_file(local_path(location), durable=durable) as file:
                yield file
            return
        if self.exists(location):
            raise OutputExists(f"{location} exists already")
        with self._written(location) as file:
            yield file

    def settle(self, locations: Sequence[str]) -> None:
        """Make files durable that were created without being so. Raises :class:`OutputUnwritable`.

        To wait for the disk once for all of them is quicker by far than for each. Objects are durable as they are.
        """
        paths = [local_path(location) for location in locations if is_local(location)]
        for path in (*paths, *dict.fromkeys(path.parent for path in paths)):
            try:
                _sync(path)
            except OSError as error:
                raise unwritable(str(path), error) from error

    def take_back(self, locations: Sequence[str]) -> None:
        """Delete local files that the caller has just created and told nobody of. What cannot be deleted stays."""
        for location in filter(is_local, locations):
            with suppress(OSError):
                local_path(location).unlink()

    def put(self, location: str, content: bytes) -> None:
        """Write a small object in one piece, in place of what is there. For probes alone, whose name nobody else has.

        Raises :class:`OutputUnwritable` and what storages raise.
        """
        with self._written(location) as file:
            try:
                file.write(content)
            except (OSError, pa.ArrowException) as error:
                raise unwritable(location, error) from error

    def without_secrets(self, text: str) -> str:
        """A text without the values of the properties that may be secret, whoever put them there."""
        for key, value in self.io_properties.items():
            if value and _is_secret(key):
                text = text.replace(value, "***")
        return text

    @contextmanager
    def _written(self, location: str) -> Iterator[Any]:
        system, path = self._file_system(location)
        try:
            file = system.open_output_stream(path)
        except Exception as error:
            raise unwritable(location, error) from error
        try:
            yield file
        except BaseException:
            # Arrow completes the object as far as it got, now or when its stream is collected. What fails meanwhile
            # adds nothing to what has failed already.
            with suppress(OSError, pa.ArrowException):
                file.close()
            raise
        try:
            file.close()
        except Exception as error:
            raise unwritable(location, error) from error

    def _info(self, location: str) -> Any:
        system, path = self._file_system(location)
        with reading(location):
            return system.get_file_info(path)

    def _file_system(self, location: str) -> tuple[Any, str]:
        try:
            return file_system(self.io_properties, location)
        except UnsupportedLocation:
            raise
        except (OSError, ValueError, pa.ArrowException) as error:  # libhdfs is not there, settings contradict
            trouble = worker_trouble(error) or UnsupportedLocation
            said = str(error).partition("\n")[0]  # Hadoop's goes on with every place where Java might have been
            raise trouble(f"Arrow cannot open the storage of {location}: {said}") from error


LOCAL: Final = Storage()
"""Local files alone."""


def is_local(location: str) -> bool:
    """Whether a location is meant to be local; :func:`local_path` tells whether it is a good one."""
    scheme = urlsplit(location).scheme if ":" in location.partition("/")[0] else ""
    return scheme in ("", "file")


def local_path(location: str) -> Path:
    """The path of a location on a local file system; characters are taken as they are, as Hadoop does.

    Raises :class:`UnsupportedLocation` for every other scheme.
    """
    if location.startswith("/"):
        return Path(location)
    if is_local(location) and location.startswith("file:"):
        rest = location[len("file:") :]
        path = "/" + rest.lstrip("/") if rest.startswith("///") or not rest.startswith("//") else ""
        if rest.startswith("/") and path:
            return Path(path)
    raise UnsupportedLocation(f"{location!r} is not an absolute local path")


def same_file(location: str) -> tuple[str, str]:
    """What all spellings of one location have in common, and no other location has.

    Raises :class:`UnsupportedLocation`.
    """
    if is_local(location):
        return "", str(local_path(location))
    where = address(location)
    return where.authority, where.path


class BlockReader(io.RawIOBase):
    """A remote file as arrow-rs reads it: little by little, at several places in turn, which go by in blocks.

    Keeps the blocks that were used last. Not a copy of the file: :data:`_BLOCKS_KEPT` blocks at most are held.
    """

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file, self._size, self._position = file, int(file.size()), 0
        self._blocks: OrderedDict[int, bytes] = OrderedDict()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place; gives it."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """The present place."""
        return self._position

    def read(self, size: int = -1) -> bytes:
        """The next bytes, fewer only at the end."""
        end = self._size if size < 0 else min(self._size, self._position + size)
        parts = []
        while self._position < end:
            number, start = divmod(self._position, _BLOCK_BYTES)
            part = self._block(number)[start : start + end - self._position]
            if not part:
                break  # shorter than it was
            parts.append(part)
            self._position += len(part)
        return b"".join(parts)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            self._file.seek(number * _BLOCK_BYTES)
            self._blocks[number] = self._file.read(_BLOCK_BYTES)
            if len(self._blocks) > _BLOCKS_KEPT:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]


@contextmanager
def _new_local_file(path: Path, *, durable: bool) -> Iterator[Any]:
    try:
        created = _make_directories(path.parent)
        file = path.open("xb", buffering=_FILE_BUFFER_BYTES)
    except FileExistsError as error:
        raise OutputExists(f"{path} exists already") from error
    except OSError as error:
        raise unwritable(str(path), error) from error
    made = os.fstat(file.fileno())
    try:
        yield file
        try:
            file.flush()
            if durable:
                os.fsync(file.fileno())
                _sync(path.parent)
            for directory in created:
                _sync(directory)
            file.close()
        except OSError as error:
            raise unwritable(str(path), error) from error
    except BaseException as error:
        with suppress(OSError):  # what is left in the buffer finds no more room than what came before it
            file.close()
        if not isinstance(error, ProofFailed):
            _take_back(path, made)
        raise


def _take_back(path: Path, made: os.stat_result) -> None:
    """Delete the file that was begun here under this name, if it is still the one at it."""
    with suppress(OSError):
        found = path.lstat()
        if (found.st_dev, found.st_ino) == (made.st_dev, made.st_ino):
            path.unlink()


def _make_directories(directory: Path) -> list[Path]:
    """Creates what is missing; gives the directories that got a new entry."""
    missing = [parent for parent in (directory, *directory.parents) if not parent.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    return [path.parent for path in missing]


def _sync(path: Path) -> None:
    """Have a file, or the entries of a directory, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_secret(key: str) -> bool:
    return any(word in key for word in ("secret", "token", "key", "proxy"))
