"""Which metadata files stay though nothing names them: they are what a table is repaired from.

The metadata log is cut short, so that nearly all metadata files of a table look like garbage. Each of them is a whole
table as of one commit, for whoever has to go back: the latest ones, all of a month, and one of each day before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from icewright.actions.remove_files.orphans.metadata_files import is_metadata_file
from icewright.core.times import Instant
from icewright.model.actions.deletion import METADATA_FLOOR_MS
from icewright.model.actions.orphans import FoundFile
from icewright.model.iceberg.locations import CanonicalPath

DAY_MS: Final = 24 * 3_600_000
VERSIONS_KEPT: Final = 100
"""The latest versions stay, whatever their age."""
DAYS_KEPT: Final = 90
"""Of each of so many days the last one stays."""
_VERSION: Final = re.compile(r"v?(\d{1,18})(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?")


def version_of(path: str) -> int | None:
    """The number of a metadata file: ``00012-uuid.metadata.json``, ``v12.metadata.json``; None for other names."""
    match = _VERSION.fullmatch(path.rpartition("/")[2])
    return int(match[1]) if match else None


@dataclass(slots=True)
class MetadataAnchors:
    """Gathers the metadata files of a listing, needed or not, and tells which of them stay."""

    as_of: Instant
    current: str
    """The location of today's."""
    _versions: set[int] = field(default_factory=set)
    """The latest ones."""
    _of_days: dict[int, tuple[Instant, CanonicalPath]] = field(default_factory=dict)

    def see(self, found: FoundFile) -> None:
        """One more file of the listing; those that are no metadata files are passed over."""
        if not is_metadata_file(found.path):
            return
        version, modified_at = version_of(found.path), found.listed.modified_at
        if version is not None:
            self._versions.add(version)
            if len(self._versions) > VERSIONS_KEPT:
                self._versions.remove(min(self._versions))
        if modified_at is not None and self._is_of_a_kept_day(modified_at):
            day, known = modified_at // DAY_MS, (modified_at, found.path)
            self._of_days[day] = max(self._of_days.get(day, known), known)

    def keeps(self, found: FoundFile) -> bool:
        """Whether a metadata file stays, once all have been seen."""
        version, modified_at = version_of(found.path), found.listed.modified_at
        if version is None or modified_at is None or self.as_of - modified_at < METADATA_FLOOR_MS:
            return True
        if self._is_of_a_kept_day(modified_at) and self._of_days[modified_at // DAY_MS][1] == found.path:
            return True
        current = version_of(self.current)
        return version in self._versions or (current is not None and version > current - VERSIONS_KEPT)

    def _is_of_a_kept_day(self, modified_at: Instant) -> bool:
        return self.as_of - DAYS_KEPT * DAY_MS <= modified_at <= self.as_of
