"""Whether all files are there that snapshots need which come back: asked right before they do.

Each file is asked for by its length, which must be what its manifest says: a file that somebody else wrote to the path
is not the one that is needed. Manifests that the table's current snapshot lists as well are passed over: those files
are the table's own today, whatever becomes of the snapshots.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

from icewright.catalogs.table_files_port import TableFiles
from icewright.core.errors import Unreadable, Unsupported
from icewright.model.iceberg.reachable_files import ListedManifest, Roots

FILES_MAX: Final = 1_000_000
"""Files that one undo asks for at most: some ten minutes of an object store that answers 2,000 questions a second."""
ASKED_AT_ONCE: Final = 32
_BATCH: Final = 32 * ASKED_AT_ONCE


def first_missing(files: TableFiles, table: Roots, back: Collection[int], files_max: int = FILES_MAX) -> str | None:
    """A file that a snapshot which comes back needs and that is not there as it was; None when all are.

    ``table`` is as it would be. Raises ``Unavailable`` where storage does not answer: then nobody knows; and
    :class:`Unsupported` for more than ``files_max``, and for a file with something in it that nobody here knows.
    """
    try:
        asked = _needed(files, table, frozenset(back), files_max)
        with ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="undo") as pool:
            while batch := list(islice(asked, _BATCH)):
                there = pool.map(lambda one: _is_there(files, table, *one), batch)
                missing = [path for (path, _), found in zip(batch, there, strict=True) if not found]
                if missing:
                    return missing[0]
    except _Missing as error:
        return error.path
    return None


class _Missing(Exception):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def _is_there(files: TableFiles, table: Roots, path: str, size_bytes: int | None) -> bool:
    try:
        found = files.size_bytes(table.metadata, path)
    except Unreadable:  # as good as missing: it refuses the undo
        return False
    return size_bytes in (None, found)


def _needed(files: TableFiles, table: Roots, back: frozenset[int], files_max: int) -> Iterator[tuple[str, int | None]]:
    """Paths and lengths of what snapshots need, each once. What is read on the way is there, or :class:`_Missing`."""
    seen: set[str] = set()
    for path, size_bytes in _mentioned(files, table, back):
        if path in seen:
            continue
        if len(seen) >= files_max:
            raise Unsupported(f"the restored snapshots need more than {files_max:,} files, which is the limit")
        seen.add(path)
        yield path, size_bytes


def _mentioned(files: TableFiles, table: Roots, back: frozenset[int]) -> Iterator[tuple[str, int | None]]:
    yield from ((named.path, named.size_bytes) for named in table.files if named.snapshot_id in back)
    current = table.metadata.current_snapshot_id
    passed = set(_paths(files, table, () if current is None or current in back else (current,)))
    for manifest in _manifests(files, table, back):
        if manifest.path in passed:
            continue
        passed.add(manifest.path)
        try:
            for file in files.live_files(table.metadata, manifest):
                yield file.path, file.size_bytes
        except Unreadable as error:
            raise _Missing(manifest.path) from error


def _paths(files: TableFiles, table: Roots, snapshot_ids: Collection[int]) -> Iterable[str]:
    return (manifest.path for manifest in _manifests(files, table, snapshot_ids))


def _manifests(files: TableFiles, table: Roots, snapshot_ids: Collection[int]) -> Iterator[ListedManifest]:
    for snapshot in table.metadata.snapshots:
        if snapshot.snapshot_id not in snapshot_ids:
            continue
        embedded = table.embedded.get(snapshot.snapshot_id)
        if embedded is not None:
            yield from (ListedManifest(path) for path in embedded)
            continue
        try:
            listing = files.manifests(table.metadata, snapshot.manifest_list)
        except Unreadable as error:
            raise _Missing(snapshot.manifest_list or f"manifest list of {snapshot.snapshot_id}") from error
        yield from listing.manifests
