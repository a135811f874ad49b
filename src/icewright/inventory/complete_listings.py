"""Whether the manifests of a snapshot are all that it has.

Nothing says how long a manifest list is. One that was cut off between two blocks is a valid Avro file with fewer
manifests; the totals in the snapshot's summary are the one thing that tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from icewright.model.iceberg.reachable_files import FileClass, ListedManifest
from icewright.model.iceberg.tables import Snapshot
from icewright.model.plans.plans import Reason


@dataclass(slots=True)
class LiveCounts:
    """Live entries, as a listing says or as they were counted."""

    data_files: int = 0
    delete_files: int = 0

    def count(self, file_class: FileClass) -> None:
        """One more entry."""
        if file_class is FileClass.DATA:
            self.data_files += 1
        else:
            self.delete_files += 1

    def __add__(self, other: LiveCounts) -> LiveCounts:
        return LiveCounts(self.data_files + other.data_files, self.delete_files + other.delete_files)


def listed_counts(manifest: ListedManifest) -> LiveCounts | None:
    """What a listing says of one manifest; None where it does not."""
    if manifest.live_files is None or manifest.is_data is None:
        return None
    return LiveCounts(manifest.live_files, 0) if manifest.is_data else LiveCounts(0, manifest.live_files)


def missing_files(snapshot: Snapshot, counts: Iterable[LiveCounts]) -> Reason | None:
    """Why the manifests that these counts are of may not be all of a snapshot; None when they are."""
    found = sum(counts, LiveCounts())
    for words, key, files in (
        ("data files", "total-data-files", found.data_files),
        ("delete files", "total-delete-files", found.delete_files),
    ):
        expected = snapshot.number(key)
        if expected is None:
            return Reason("unverified-listing", f"snapshot {snapshot.snapshot_id} does not say how many {words} it has")
        if files < expected:
            return Reason(
                "too-few-files",
                f"snapshot {snapshot.snapshot_id} has {expected} {words}, and its manifests {files}",
                {"files": files, "files_expected": expected},
            )
    return None
