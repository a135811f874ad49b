"""Files of HDFS, looked at, moved out of the way by renaming, and back: without Hadoop on the machine.

A rename on HDFS is one step of the name node, and is told not to overwrite anything. Its clients say nothing of inodes,
so that a file is known by its size and by its time in milliseconds alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from hdfs_native import Client

from icewright.catalogs.storage.hdfs_files import SETTINGS, in_time
from icewright.core.clock import Clock
from icewright.core.errors import (
    Conflict,
    IcewrightError,
    InvalidLocation,
    NotAllowed,
    OutcomeUnknown,
    StorageUnavailable,
    Unreadable,
    Unsupported,
)
from icewright.core.system_clock import SystemClock
from icewright.core.times import Instant
from icewright.model.actions.deletion import Held, Whereabouts, same_object
from icewright.model.iceberg.locations import CanonicalPath, is_ambiguous, storage_and_key
from icewright.model.iceberg.objects import Listed, ListedObject, prefix_of

STORAGE: Final = "hdfs://"
_GONE: Final = (FileNotFoundError, NotADirectoryError)


class HdfsObjects:
    """See the port. ``clock`` is this machine's, since name nodes do not tell theirs."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._clusters = _Clusters()

    def now(self, _path: CanonicalPath) -> Instant:
        """This machine's clock."""
        return self._clock.now()

    def list(self, root: CanonicalPath) -> Iterator[Listed]:
        """Everything below a root, as the name node lists it."""
        return self._list(root, is_deep=True)

    def list_folder(self, folder: CanonicalPath) -> Iterator[Listed]:
        """What is in a folder itself."""
        return self._list(folder, is_deep=False)

    def _list(self, root: CanonicalPath, *, is_deep: bool) -> Iterator[Listed]:
        client, folder = self._clusters.of(CanonicalPath(prefix_of(root)[:-1]))
        storage, _ = storage_and_key(root)
        with _asking(root):
            try:
                entries = in_time(lambda: iter(client.list_status(folder, is_deep)))
                while (entry := in_time(lambda: next(entries, None))) is not None:
                    if not entry.isdir:
                        yield _listed(storage, entry)
            except _GONE:
                return

    def stat(self, path: CanonicalPath) -> ListedObject | None:
        """What is at a path now; a directory is no object."""
        return self._clusters.status(path)

    def read(self, path: CanonicalPath, bytes_max: int) -> bytes:
        """All bytes of a file."""
        client, file = self._clusters.of(path)
        with _asking(path):
            if self._clusters.status(path) is None:
                raise Unreadable(f"{path} is no file, or not there")
            content: bytes = in_time(lambda: client.read(file).read(bytes_max + 1))
        if len(content) > bytes_max:
            raise Unreadable(f"{path} is longer than {bytes_max} bytes, the most that is read of it")
        return content


class HdfsQuarantine:
    """See the port. Each root is a directory that is there and serves its own cluster."""

    def __init__(self, roots: Sequence[CanonicalPath]) -> None:
        self.roots: Sequence[CanonicalPath] = tuple(roots)
        self._by_storage = {storage_and_key(root)[0]: prefix_of(root) for root in roots}
        self._clusters = _Clusters()

    def check(self, path: CanonicalPath) -> None:
        """Whether its cluster has a quarantine."""
        self._place("run", path)

    def quarantine(self, run_id: str, expected: ListedObject) -> Held:
        """Rename a file into the quarantine, and see that it was the one."""
        place = self._place(run_id, expected.path)
        found = self._clusters.status(expected.path)
        if found is None or not same_object(expected, found):
            raise Conflict(f"{expected.path} is missing, or another file")
        if self._clusters.status(place) is not None:
            raise OutcomeUnknown(f"{expected.path} has been quarantined before, and something is at its place again")
        self._rename(expected.path, place)
        moved = self._clusters.status(place)
        if moved is None or _identity(moved) != _identity(expected):
            self._put_back(place, expected.path)
            raise Conflict(f"{expected.path} became another file at the last moment; it is where it was")
        return Held(place)

    def restore(self, _run_id: str, expected: ListedObject, held: Held) -> None:
        """Rename a file back, which fails if one is there."""
        self._require_held(expected, held)
        self._rename(held.place, expected.path)

    def purge(self, _run_id: str, expected: ListedObject, held: Held) -> None:
        """Delete a file in the quarantine."""
        if self._clusters.status(held.place) is None:
            return
        self._require_held(expected, held)
        client, place = self._clusters.of(held.place)
        with _step(held.place):
            in_time(lambda: client.delete(place, False))

    def look(self, run_id: str, expected: ListedObject) -> Whereabouts:
        """Both places."""
        place = self._place(run_id, expected.path)
        held = None if self._clusters.status(place) is None else Held(place)
        return Whereabouts(self._clusters.status(expected.path), held)

    def _rename(self, source: CanonicalPath, target: CanonicalPath) -> None:
        """Never over anything: the name node refuses that."""
        client, from_file = self._clusters.of(source)
        _, to_file = self._clusters.of(target)
        if self._clusters.status(target) is not None:
            raise Conflict(f"there is something at {target} now")
        with _step(source):
            in_time(lambda: client.mkdirs(to_file.rpartition("/")[0], 0o755, True))
            in_time(lambda: client.rename(from_file, to_file, False))

    def _put_back(self, place: CanonicalPath, path: CanonicalPath) -> None:
        try:
            self._rename(place, path)
        except IcewrightError as error:
            raise OutcomeUnknown(f"the wrong file was moved, and could not be put back: it is at {place}") from error

    def _require_held(self, expected: ListedObject, held: Held) -> None:
        if not any(held.place.startswith(root) for root in self._by_storage.values()):
            raise NotAllowed(f"{held.place} is in no quarantine", hint="configure the one that it was put into again")
        found = self._clusters.status(held.place)
        if found is None or _identity(found) != _identity(expected):
            raise Conflict(f"the file of {expected.path} is not in quarantine")

    def _place(self, run_id: str, path: CanonicalPath) -> CanonicalPath:
        """The whole path lies below the run's folder, so that a person can take a file back by hand."""
        storage, key = storage_and_key(path)
        root = self._by_storage.get(storage)
        if root is None:
            raise NotAllowed(f"there is no quarantine on {storage}", hint="configure one")
        return CanonicalPath(f"{root}{run_id}{key}")


class _Clusters:
    """Clients by cluster; each question is answered in time or not at all."""

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}

    def of(self, path: CanonicalPath) -> tuple[Any, str]:
        """The client, and the path as the name node has it."""
        if not path.startswith(STORAGE):
            raise Unsupported(f"{path[:200]!r} is not on HDFS")
        storage, key = storage_and_key(path)
        if is_ambiguous(path) or key in ("", "/") or key.endswith("/"):
            raise InvalidLocation(f"{path[:200]!r} is no path of a file")
        if storage not in self._clients:
            with _asking(path):
                self._clients[storage] = Client(storage, SETTINGS)
        return self._clients[storage], key

    def status(self, path: CanonicalPath) -> ListedObject | None:
        """A file; None for everything else."""
        client, file = self.of(path)
        with _asking(path):
            try:
                found = in_time(lambda: client.get_file_info(file))
            except _GONE:
                return None
        return None if found.isdir else _listed(storage_and_key(path)[0], found, file)


def _listed(storage: str, found: Any, file: str | None = None) -> ListedObject:
    return ListedObject(CanonicalPath(f"{storage}{file or found.path}"), found.length, found.modification_time)


def _identity(found: ListedObject) -> tuple[int, int | None]:
    """What renaming does not change."""
    return found.size_bytes, found.modified_at


@contextmanager
def _asking(path: CanonicalPath) -> Iterator[None]:
    """Around a question. What the library raises for HDFS's own errors is a RuntimeError."""
    try:
        yield
    except (IcewrightError, *_GONE):
        raise
    except PermissionError as error:
        raise Unreadable(f"access denied to {path}") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise StorageUnavailable(f"HDFS does not answer for {path}: {type(error).__name__}") from error


@contextmanager
def _step(path: CanonicalPath) -> Iterator[None]:
    """Around one change: what moved meanwhile, what was refused, and what nobody knows."""
    try:
        yield
    except FileNotFoundError as error:
        raise Conflict(f"{path} does not exist") from error
    except FileExistsError as error:
        raise Conflict(f"another file exists at the target of {path}") from error
    except PermissionError as error:
        raise Unsupported(f"HDFS refuses to move {path}") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise OutcomeUnknown(f"it is unknown whether {path} was moved: {type(error).__name__}") from error
