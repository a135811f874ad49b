"""How many data files lookups open: of all files of a snapshot, and of those that certain commits added.

A writer that goes on adds files while Level 2 is at work, as many as the machine is slow. So what a level brought is
told by the files that its commits added, and not by the files that happen to lie beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file, and the snapshot that added it."""

    added_by: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Lookups:
    """The data files of a snapshot by path, and of each lookup the paths that it opens."""

    files: Mapping[str, LiveFile]
    opened: Sequence[frozenset[str]]

    def added_by(self, snapshots: Collection[int]) -> Lookups:
        """The same of those files alone that these snapshots added."""
        files = {path: file for path, file in self.files.items() if file.added_by in snapshots}
        return Lookups(files, [paths & files.keys() for paths in self.opened])

    @property
    def mean(self) -> float:
        """Files that a lookup opens, on the mean."""
        return sum(map(len, self.opened)) / len(self.opened)

    @property
    def worst(self) -> int:
        """The most files that one of the lookups opens."""
        return max(map(len, self.opened))

    @property
    def share(self) -> float:
        """The share of the files that a lookup opens, on the mean: what tables of other file counts compare by."""
        return self.mean / len(self.files)

    @property
    def size_bytes(self) -> int:
        """Of all the files."""
        return sum(file.size_bytes for file in self.files.values())

    def __str__(self) -> str:
        return f"{self.mean:g} of {len(self.files)}"


def look_up(table: Table, column: str, values: Sequence[int], snapshot_id: int | None = None) -> Lookups:
    """What lookups of these values open of a snapshot, the current one by default, by PyIceberg's own planning."""
    snapshot = table.current_snapshot() if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    manifests = (one for one in snapshot.manifests(table.io) if one.content == ManifestContent.DATA)
    entries = [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io)]
    files = {e.data_file.file_path: LiveFile(e.snapshot_id or 0, e.data_file.file_size_in_bytes) for e in entries}
    scans = [table.scan(row_filter=f"{column} == {value}", snapshot_id=snapshot.snapshot_id) for value in values]
    return Lookups(files, [frozenset(task.file.file_path for task in scan.plan_files()) for scan in scans])


def check_level_2(found: Lookups, level_2: int, before: Collection[int], alone: Lookups) -> None:
    """What holds of the snapshot ``level_2`` that a Level 2 of a whole table made, whatever else is in it by then.

    ``before`` are the snapshots whose files it had to take, ``alone`` is a table where only Level 0 is at work. No
    lookup opens more than two of its files: where one ends and the next one begins with the same value.
    """
    its = found.added_by({level_2})
    assert its.worst <= 2, its
    assert its.share <= alone.share / 10, (str(its), str(alone))
    left = found.added_by(before)
    assert not left.files, f"Level 2 left {len(left.files)} files that it knew"


def check_at_rest(
    found: Lookups, in_order: Collection[int], level_1_size_bytes: int, level_2_runs: int, alone: Lookups
) -> None:
    """What holds of a table that nothing is left to do for; ``in_order`` are the snapshots that added files in order.

    Too little for a Level 1 is not in order, and fewer runs of Level 1 than a Level 2 asks for lie beside that of the
    last Level 2. A lookup opens one file of each, and a second one of hardly any.
    """
    ordered = found.added_by(in_order)
    fresh = found.size_bytes - ordered.size_bytes
    assert fresh < level_1_size_bytes, fresh
    assert ordered.mean <= 1.1 * level_2_runs, (str(ordered), level_2_runs)
    assert ordered.share <= alone.share / 5, (str(ordered), str(alone))
