"""The door to what the storages of a catalog have, whatever its tables say. Read-only."""

from collections.abc import Iterator
from typing import Protocol

from icewright.core.times import Instant
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import Listed, ListedObject


class Objects(Protocol):
    """The objects of all storages that one catalog's tables are on, by canonical paths.

    All methods raise :class:`~icewright.core.errors.StorageUnavailable` when the storage does not answer,
    :class:`~icewright.core.errors.Unreadable` when it does not let us in,
    :class:`~icewright.core.errors.Unsupported` for a storage that cannot be looked at, and
    :class:`~icewright.core.errors.InvalidLocation` for a path that is none.
    """

    def now(self, path: CanonicalPath) -> Instant:
        """The clock of the storage that a path is on: an object store's own, by its answer to a question.

        Local file systems and HDFS do not tell theirs: it is this machine's.
        """

    def list(self, root: CanonicalPath) -> Iterator[Listed]:
        """Everything below a root, at any depth, in no particular order, one after the other.

        The paths begin with :func:`~.objects.prefix_of` the root, as it was given. An error may come
        after some of them; a listing that ended was not cut short. Symbolic links are told of and never followed.
        A root that is not there has nothing. A local root must not be reached through a link: ``Unsupported``.
        """

    def list_folder(self, folder: CanonicalPath) -> Iterator[Listed]:
        """As :meth:`list`, but only what lies in the folder itself, and not in folders below it.

        What is below these is not asked for, however much it is.
        """

    def stat(self, path: CanonicalPath) -> ListedObject | None:
        """What is at a path now; None when there is no object."""

    def read(self, path: CanonicalPath, bytes_max: int) -> bytes:
        """All bytes of an object. Raises ``Unreadable`` when there is none, and beyond ``bytes_max``."""
