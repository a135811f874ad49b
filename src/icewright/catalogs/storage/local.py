"""Files of this machine, looked at: names as they are, and no link ever followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from icewright.core.clock import Clock
from icewright.core.errors import IcewrightError, InvalidLocation, StorageUnavailable, Unreadable, Unsupported
from icewright.core.system_clock import SystemClock
from icewright.core.times import Instant
from icewright.model.iceberg.locations import CanonicalPath, is_ambiguous
from icewright.model.iceberg.objects import Listed, ListedObject, OddEntry, prefix_of
from icewright.model.plans.plans import Reason

STORAGE: Final = "file://"
_NS_PER_MS: Final = 1_000_000
_GONE: Final = (FileNotFoundError, NotADirectoryError)


def real_folder(place: str) -> str:
    """The folder of this machine that a place leads to, links followed; a place of another storage is what it is.

    So is one with a NUL, as a damaged manifest may have it: no folder of a machine is called that.
    """
    if not place.startswith(f"{STORAGE}/") or "\0" in place:
        return place
    real = os.path.realpath(place.removeprefix(STORAGE))
    return place if real == place.removeprefix(STORAGE).rstrip("/") else f"{STORAGE}{real.rstrip('/')}/"


def real_file(path: str) -> str | None:
    """The file of this machine that a path leads to, where it is a link itself; None for all others."""
    if not path.startswith(("/", "file:")):
        return None
    file = "/" + path.removeprefix("file:").lstrip("/")
    is_link = "\0" not in file and os.path.islink(file)  # noqa: PTH114 - pathlib would tidy the name up
    return f"{STORAGE}{os.path.realpath(file)}" if is_link else None


class LocalObjects:
    """See the port. ``clock`` is this machine's."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def now(self, _path: CanonicalPath) -> Instant:
        """This machine's clock, by which its file systems date files."""
        return self._clock.now()

    def list(self, root: CanonicalPath) -> Iterator[Listed]:
        """Everything below a root, directory by directory. What comes or goes meanwhile may be there or not."""
        folders = [local_path(CanonicalPath(prefix_of(root)[:-1]))]
        with translated(root):
            refuse_links(folders[0])
            while folders:
                yield from _entries(folders.pop(), folders)

    def list_folder(self, folder: CanonicalPath) -> Iterator[Listed]:
        """What is in one directory; its directories are passed over."""
        path = local_path(CanonicalPath(prefix_of(folder)[:-1]))
        with translated(folder):
            refuse_links(path)
            yield from _entries(path, [])

    def stat(self, path: CanonicalPath) -> ListedObject | None:
        """What is at a path now. A link, a directory or a pipe is no object."""
        file = local_path(path)
        with translated(path):
            refuse_links(os.path.dirname(file))  # noqa: PTH120 - pathlib would tidy the name up
            return status(file)

    def read(self, path: CanonicalPath, bytes_max: int) -> bytes:
        """All bytes of a regular file."""
        file = local_path(path)
        with translated(path):
            refuse_links(os.path.dirname(file))  # noqa: PTH120 - pathlib would tidy the name up
            found = status(file)
            if found is None:
                raise Unreadable(f"{path} is no file, or not there")
            with open(file, "rb", opener=_open_it_alone) as stream:
                content = stream.read(bytes_max + 1)
        if len(content) > bytes_max:
            raise Unreadable(f"{path} is longer than {bytes_max} bytes, the most that is read of it")
        return content


def local_path(path: CanonicalPath) -> str:
    """The path as the system has it. Raises :class:`InvalidLocation`, :class:`Unsupported` for another storage."""
    if not path.startswith(STORAGE + "/"):
        raise Unsupported(f"{path[:200]!r} is not on this machine")
    found = path[len(STORAGE) :]
    if is_ambiguous(path) or found.endswith("/") or "\0" in found:
        raise InvalidLocation(f"{path[:200]!r} is no path of a file")
    return found


def status(file: str) -> ListedObject | None:
    """A regular file; None for everything else."""
    try:
        found = os.lstat(file)
    except _GONE:
        return None
    return _listed(file, found) if stat.S_ISREG(found.st_mode) else None


def refuse_links(folder: str) -> None:
    """Raise :class:`Unsupported` for a directory that has another name as well, by a link somewhere in its path."""
    if os.path.realpath(folder) != folder:
        raise Unsupported(f"{folder} is reached through a symbolic link", hint="name it by its own path")


@contextmanager
def translated(what: str) -> Iterator[None]:
    """The door: errors of the system in icewright's words."""
    try:
        yield
    except IcewrightError:
        raise
    except PermissionError as error:
        raise Unreadable(f"access denied to {what}: {error.strerror}") from error
    except OSError as error:
        raise StorageUnavailable(f"the file system does not answer for {what}: {error.strerror}") from error


def _entries(folder: str, folders: list[str]) -> Iterator[Listed]:
    """What is in one directory; its directories are added to those to come."""
    try:
        scan = os.scandir(folder)
    except _GONE:  # gone since, or never there
        return
    with scan:
        for entry in scan:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except _GONE:
                continue
            yield _listed(entry.path, found) if stat.S_ISREG(found.st_mode) else _odd(entry.path, found)


def _listed(file: str, found: os.stat_result) -> ListedObject:
    # Writing changes the first two, replacing the inode, and ctime cannot be set by anybody.
    etag = f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_ctime_ns:x}"
    return ListedObject(CanonicalPath(STORAGE + file), found.st_size, found.st_mtime_ns // _NS_PER_MS, etag)


def _odd(file: str, found: os.stat_result) -> OddEntry:
    if stat.S_ISLNK(found.st_mode):
        return OddEntry(
            CanonicalPath(STORAGE + file), Reason("symbolic-link", "a symbolic link, which is not followed")
        )
    return OddEntry(CanonicalPath(STORAGE + file), Reason("not-a-file", "neither a regular file nor a directory"))


def _open_it_alone(file: str, flags: int) -> int:
    """No link, and no waiting for the other end of a pipe: it may have become something else since."""
    return os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
