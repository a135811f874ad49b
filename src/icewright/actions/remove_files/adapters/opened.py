"""The storages of one catalog, each by its own adapter: which one is told by the scheme of a path alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from icewright.actions.remove_files.adapters.local_quarantine import LocalQuarantine
from icewright.actions.remove_files.quarantine_port import Quarantine
from icewright.catalogs.objects import Objects
from icewright.catalogs.storage.local import LocalObjects
from icewright.core.clock import Clock
from icewright.core.errors import Unsupported
from icewright.core.extras import require_extra
from icewright.core.times import Instant
from icewright.model.actions.deletion import Held, Whereabouts
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import Listed, ListedObject

_Adapter = TypeVar("_Adapter")


class _ByScheme(Generic[_Adapter]):
    """One adapter for each scheme, made when a path asks for it: the libraries of most are extras."""

    def __init__(self, makers: Mapping[str, Callable[[], _Adapter]]) -> None:
        self._makers = makers
        self._made: dict[str, _Adapter] = {}
        self._lock = threading.Lock()

    def of(self, path: CanonicalPath) -> _Adapter | None:
        """None for a scheme that no adapter knows. Raises :class:`~icewright.core.errors.InvalidConfiguration`."""
        scheme = path.partition(":")[0]
        with self._lock:
            if scheme not in self._made and scheme in self._makers:
                self._made[scheme] = self._makers[scheme]()
            return self._made.get(scheme)


class CatalogObjects:
    """The port over all storages that a catalog's tables may be on. Nothing is asked before the first question."""

    def __init__(self, entry: CatalogEntry, clock: Clock | None = None) -> None:
        """Raises :class:`~icewright.core.errors.InvalidConfiguration` for an entry that cannot be used."""
        self._properties = entry.pyiceberg_properties()
        self._by_scheme = _ByScheme[Objects](
            {"file": lambda: LocalObjects(clock), "hdfs": lambda: self._hdfs(clock), "s3": self._s3}
        )

    def now(self, path: CanonicalPath) -> Instant:
        """See the port."""
        return self._of(path).now(path)

    def list(self, root: CanonicalPath) -> Iterator[Listed]:
        """See the port."""
        return self._of(root).list(root)

    def list_folder(self, folder: CanonicalPath) -> Iterator[Listed]:
        """See the port."""
        return self._of(folder).list_folder(folder)

    def stat(self, path: CanonicalPath) -> ListedObject | None:
        """See the port."""
        return self._of(path).stat(path)

    def read(self, path: CanonicalPath, bytes_max: int) -> bytes:
        """See the port."""
        return self._of(path).read(path, bytes_max)

    def _of(self, path: CanonicalPath) -> Objects:
        found = self._by_scheme.of(path)
        if found is None:
            raise Unsupported(f"storages as that of {path[:200]!r} cannot be listed yet")
        return found

    @staticmethod
    def _hdfs(clock: Clock | None) -> Objects:
        require_extra("hdfs", "tables on HDFS")
        from icewright.catalogs.storage.hdfs import HdfsObjects  # noqa: PLC0415 - its library is an extra

        return HdfsObjects(clock)

    def _s3(self) -> Objects:
        require_extra("s3", "searches for orphan files and removals on S3")
        from icewright.catalogs.storage.s3 import S3Client, S3Objects  # noqa: PLC0415 - its library is an extra

        return S3Objects(S3Client(self._properties))


class CatalogQuarantine:
    """The port over the same storages, with all their quarantines."""

    def __init__(
        self, entry: CatalogEntry, roots: Sequence[CanonicalPath], may_change: Callable[[], None] = lambda: None
    ) -> None:
        """``may_change`` is called between the steps of a move, right before one that takes away; it may raise.

        Raises :class:`~icewright.core.errors.InvalidConfiguration` for an entry that cannot be used.
        """
        self.roots: Sequence[CanonicalPath] = tuple(roots)
        of_scheme = {
            scheme: [root for root in roots if root.startswith(f"{scheme}:")] for scheme in ("file", "hdfs", "s3")
        }
        self._properties, self._may_change = entry.pyiceberg_properties(), may_change
        self._by_scheme = _ByScheme[Quarantine](
            {
                "file": lambda: LocalQuarantine(of_scheme["file"]),
                "hdfs": lambda: self._hdfs(of_scheme["hdfs"]),
                "s3": lambda: self._s3(of_scheme["s3"]),
            }
        )

    def check(self, path: CanonicalPath) -> None:
        """See the port."""
        self._of(path).check(path)

    def quarantine(self, run_id: str, expected: ListedObject) -> Held:
        """See the port."""
        return self._of(expected.path).quarantine(run_id, expected)

    def restore(self, run_id: str, expected: ListedObject, held: Held) -> None:
        """See the port."""
        self._of(expected.path).restore(run_id, expected, held)

    def purge(self, run_id: str, expected: ListedObject, held: Held) -> None:
        """See the port."""
        self._of(expected.path).purge(run_id, expected, held)

    def look(self, run_id: str, expected: ListedObject) -> Whereabouts:
        """See the port."""
        return self._of(expected.path).look(run_id, expected)

    def _of(self, path: CanonicalPath) -> Quarantine:
        found = self._by_scheme.of(path)
        if found is None:
            raise Unsupported(f"nothing is deleted yet on storages as that of {path[:200]!r}")
        return found

    @staticmethod
    def _hdfs(roots: Sequence[CanonicalPath]) -> Quarantine:
        require_extra("hdfs", "tables on HDFS")
        from icewright.catalogs.storage.hdfs import HdfsQuarantine  # noqa: PLC0415 - its library is an extra

        return HdfsQuarantine(roots)

    def _s3(self, roots: Sequence[CanonicalPath]) -> Quarantine:
        require_extra("s3", "searches for orphan files and removals on S3")
        from icewright.actions.remove_files.adapters.s3_quarantine import S3Quarantine  # noqa: PLC0415 - as above
        from icewright.catalogs.storage.s3 import S3Client  # noqa: PLC0415 - as above

        return S3Quarantine(S3Client(self._properties), roots, self._may_change)
