"""Files of this machine moved out of the way within their own file system, and back.

Each step is one rename, one link or one unlink, on disk before it is told of. Nothing is ever copied, so nothing can be
copied wrongly: what comes back is the very file that went.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from icewright.catalogs.storage.local import STORAGE, local_path, refuse_links, status, translated
from icewright.core.errors import Conflict, IcewrightError, NotAllowed, OutcomeUnknown, Unsupported
from icewright.model.actions.deletion import Held, Whereabouts, same_object
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import ListedObject, prefix_of

_REFUSED: Final = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.EXDEV,
        errno.ENAMETOOLONG,
        errno.EMLINK,
        errno.EBUSY,
        errno.EISDIR,
        errno.ENOTDIR,
    }
)
"""What a file system answers when it has done nothing; everything else may have happened."""


class LocalQuarantine:
    """See the port. Each root is a directory that is there; it serves the file system that it is on."""

    def __init__(self, roots: Sequence[CanonicalPath]) -> None:
        self.roots: Sequence[CanonicalPath] = tuple(roots)

    def check(self, path: CanonicalPath) -> None:
        """Whether there is a quarantine on the file system of a path."""
        self._root(local_path(path))

    def quarantine(self, run_id: str, expected: ListedObject) -> Held:
        """Rename a file into the quarantine, and see that it was the one."""
        with translated(expected.path):
            file = local_path(expected.path)
            place = self._place(run_id, file)
            _require_expected(file, expected)
            with _step(expected.path):
                _make_folders(os.path.dirname(place))  # noqa: PTH120 - pathlib would tidy the name up
            if os.path.lexists(place):
                raise OutcomeUnknown(
                    f"{expected.path} has been quarantined before, and something is at its place again"
                )
            with _step(expected.path):
                os.rename(file, place)  # noqa: PTH104 - the same
            moved = status(place)
            if moved is None or _identity(moved) != _identity(expected):
                _put_back(place, file)
                raise Conflict(f"{expected.path} became another file at the last moment; it is where it was")
            _sync(file, place)
            return Held(moved.path, moved.etag)

    def restore(self, _run_id: str, expected: ListedObject, held: Held) -> None:
        """Link a file back to its place, which fails if there is one, and take it out of the quarantine."""
        with translated(expected.path):
            file, place = local_path(expected.path), self._held(held)
            found = status(place)
            if found is None:
                raise Conflict(f"{expected.path} is not in quarantine")
            if _identity(found) != _identity(expected):
                raise Conflict(f"what is in quarantine for {expected.path} is not the file that was moved there")
            if not _is_linked(place, file):  # it is when an earlier try died in between
                with _step(expected.path):
                    _make_folders(os.path.dirname(file))  # noqa: PTH120 - pathlib would tidy the name up
                    refuse_links(os.path.dirname(file))  # noqa: PTH120 - the same
                    os.link(place, file, follow_symlinks=False)
            _sync(file)
            with _step(expected.path):
                os.unlink(place)  # noqa: PTH108 - the same
            _sync(place)

    def purge(self, _run_id: str, expected: ListedObject, held: Held) -> None:
        """Unlink a file in the quarantine."""
        with translated(expected.path):
            place = self._held(held)
            found = status(place)
            if found is None:
                return
            if _identity(found) != _identity(expected):
                raise Conflict(f"what is in quarantine for {expected.path} is not the file that was moved there")
            with _step(expected.path):
                os.unlink(place)  # noqa: PTH108 - pathlib would tidy the name up
            _sync(place)

    def look(self, run_id: str, expected: ListedObject) -> Whereabouts:
        """Both places."""
        with translated(expected.path):
            file = local_path(expected.path)
            held = status(self._place(run_id, file))
            return Whereabouts(status(file), None if held is None else Held(held.path, held.etag))

    def _place(self, run_id: str, file: str) -> str:
        """The whole path lies below the run's folder, so that a person can take a file back by hand."""
        return f"{self._root(file)}/{run_id}{file}"

    def _held(self, held: Held) -> str:
        if not any(held.place.startswith(prefix_of(root)) for root in self.roots):
            raise NotAllowed(f"{held.place} is in no quarantine", hint="configure the one that it was put into again")
        place = local_path(held.place)
        refuse_links(os.path.dirname(place))  # noqa: PTH120 - pathlib would tidy the name up
        return place

    def _root(self, file: str) -> str:
        device = _device(file)
        for root in self.roots:
            folder = local_path(CanonicalPath(prefix_of(root)[:-1]))
            if not os.path.isdir(folder):  # noqa: PTH112 - the same
                raise NotAllowed(f"the quarantine {root} is no directory", hint="make it, on the tables' file system")
            refuse_links(folder)
            if _device(folder) == device:
                return folder
        raise NotAllowed(f"there is no quarantine on the file system of {STORAGE}{file}", hint="configure one")


def _require_expected(file: str, expected: ListedObject) -> None:
    refuse_links(os.path.dirname(file))  # noqa: PTH120 - pathlib would tidy the name up
    found = status(file)
    if found is None:
        raise Conflict(f"{expected.path} does not exist")
    if not same_object(expected, found):
        raise Conflict(f"{expected.path} is not what it was")


def _identity(found: ListedObject) -> tuple[int, str]:
    """What moving a file does not change: size, inode and time in ns; the last part of the etag is its ctime."""
    return found.size_bytes, (found.etag or "").rpartition("-")[0]


def _device(file: str) -> int:
    """The file system of a path, or of the nearest directory above it that is there."""
    while True:
        try:
            return os.lstat(file).st_dev
        except (FileNotFoundError, NotADirectoryError):
            file = os.path.dirname(file)  # noqa: PTH120 - pathlib would tidy the name up


def _is_linked(place: str, file: str) -> bool:
    """Whether the file is back already under its own name. Raises :class:`Conflict` when another one is there."""
    if not os.path.lexists(file):
        return False
    if not os.path.samestat(os.lstat(place), os.lstat(file)):
        raise Conflict(f"there is something at {STORAGE}{file} now")
    return True


def _put_back(place: str, file: str) -> None:
    try:
        os.link(place, file, follow_symlinks=False)
    except OSError as error:
        raise OutcomeUnknown(f"the wrong file was moved, and could not be put back: it is at {place}") from error
    os.unlink(place)  # noqa: PTH108 - a name of our own for what has its own again


def _make_folders(folder: str) -> None:
    """Make directories, each on disk before the next."""
    if folder == "/" or os.path.isdir(folder):  # noqa: PTH112 - pathlib would tidy the name up
        return
    parent = os.path.dirname(folder)  # noqa: PTH120 - the same
    _make_folders(parent)
    os.makedirs(folder, mode=0o755, exist_ok=True)  # noqa: PTH103 - the same
    _sync_folder(parent)


def _sync(*files: str) -> None:
    for file in files:
        _sync_folder(os.path.dirname(file))  # noqa: PTH120 - pathlib would tidy the name up


def _sync_folder(folder: str) -> None:
    """Have the names in a directory on disk. Raises :class:`OutcomeUnknown` when that cannot be told."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
    except OSError as error:
        raise OutcomeUnknown(f"the directory {folder} may not be on disk: {error.strerror}") from error


@contextmanager
def _step(path: CanonicalPath) -> Iterator[None]:
    """Around one change: what the system refused, what moved meanwhile, and what nobody knows."""
    try:
        yield
    except IcewrightError:
        raise
    except FileNotFoundError as error:
        raise Conflict(f"{path} does not exist") from error
    except FileExistsError as error:
        raise Conflict(f"there is something at {path} now") from error
    except OSError as error:
        if error.errno in _REFUSED:
            raise Unsupported(f"the file system refuses to move {path}: {error.strerror}") from error
        raise OutcomeUnknown(f"it is unknown whether {path} was moved: {error.strerror}") from error
