"""Why a file stays that nothing was found to need: one file at a time, by what is known of the table.

Each rule stands for tables that were lost. What is odd stays; what is only young stays until it is old, by every
clock at hand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from icewright.actions.remove_files.orphans.file_names import is_staging, written_by
from icewright.actions.remove_files.orphans.metadata_anchors import MetadataAnchors
from icewright.actions.remove_files.orphans.metadata_files import is_metadata_file
from icewright.core.times import Instant
from icewright.model.actions.deletion import FUTURE_MAX_MS, METADATA_FLOOR_MS
from icewright.model.actions.orphans import FoundFile, Sighting
from icewright.model.actions.remove_files import AGE_FLOOR_MS, FLINK_AGE_MIN_MS, PASSES_MIN, Doubt
from icewright.model.iceberg.locations import CanonicalPath, checksummed
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.model import Place

SLOWEST_TIMES: Final = 3
"""A file is left alone for so many times the longest that a writer of the table was seen to take to its commit."""
COMMIT_MS_MAX: Final = 30 * 24 * 3_600_000
"""Files that were committed later than this after they were written were not written for it: they were imported."""
ICEBERG_SINCE: Final = 1_483_228_800_000
"""2017: no table is older. Earlier times are made up, or are seconds that were taken for milliseconds."""
_OTHER_FORMATS: Final[Mapping[str, str]] = {
    "/_delta_log/": "Delta Lake",
    "/.hoodie/": "Apache Hudi",
    "/schema/schema-0": "Apache Paimon",
    "/_spark_metadata/": "Spark's streaming file sink",
    "/_orc_acid_version": "Apache Hive (ACID)",
}
"""What the folders of their tables have in them."""
_JOB_ID_KEY: Final = "flink.job-id"
_VERSION_HINT: Final = "version-hint.text"


class Kept(StrEnum):
    """Why an unneeded file stays; the codes that people see."""

    NOT_OWNED = "not-owned"
    """It is not below a root that the table alone owns, or may be known by another path as well."""
    QUARANTINED = "quarantined"
    HIDDEN = "hidden"
    """A name that begins with a dot or an underscore, and is no partition's."""
    CHECKSUM = "checksum"
    """Hadoop's checksum of a file that stays."""
    NOTHING_KNOWN = "nothing-known-here"
    """The table needs nothing below this root: perhaps all of it is known by another name.

    Where all that it needs was found elsewhere that cannot be, and files of familiar names are in doubt alone.
    """
    ALIKE = "alike"
    """A needed file is called the same but for case, encoding, slashes or the storage."""
    CHANGED = "changed"
    """It was another object at the end of the listing than at its beginning."""
    NO_TIME = "no-modification-time"
    FUTURE = "modified-in-the-future"
    BEFORE_TABLE = "older-than-the-table"
    VERSION_HINT = "version-hint"
    FLINK = "flink-manifest"
    """What a Flink job has put aside for a checkpoint that is not committed yet."""
    METADATA = "metadata-anchor"
    """A metadata file to go back to."""
    YOUNG = "young"
    SEEN_LATELY = "seen-lately"
    """Too little time has passed since it was first seen to be of no need."""
    SEEN_ONCE = "seen-once"
    """Not seen in enough complete passes."""
    TOO_MANY = "too-many"
    """More than are remembered of one table; its turn comes when others are gone."""


WORDS: Final[Mapping[Kept, str]] = {
    Kept.NOT_OWNED: "not below a root that the table alone owns",
    Kept.QUARANTINED: "in quarantine already",
    Kept.HIDDEN: "the name begins with a dot or an underscore",
    Kept.CHECKSUM: "the checksum of a file that stays",
    Kept.NOTHING_KNOWN: "the table needs nothing below this root",
    Kept.ALIKE: "a needed file has a name that some programs take for the same",
    Kept.CHANGED: "it changed while it was listed",
    Kept.NO_TIME: "the storage does not say when it was written",
    Kept.FUTURE: "it was written in the future",
    Kept.BEFORE_TABLE: "it is older than anything that is known of the table, and of an unfamiliar name",
    Kept.VERSION_HINT: "catalogs without a server find the table by it",
    Kept.FLINK: "a Flink job may still commit it",
    Kept.METADATA: "a metadata file that the table could be repaired from",
    Kept.YOUNG: "written too lately",
    Kept.SEEN_LATELY: "first seen too lately",
    Kept.SEEN_ONCE: "not seen in enough passes",
    Kept.TOO_MANY: "more than are remembered of one table",
}
"""Each of them for people."""


@dataclass(frozen=True, slots=True)
class OrphanRules:
    """What the rules go by. ``as_of`` is the earliest of the clocks at hand.

    ``existed_at`` is since when the table is known to have had files, None where nothing tells. ``known_roots`` are
    those below which a file was found that the table needs; ``quarantine`` are folders with one slash at their ends.
    ``jobs`` are what names of Flink's files begin with, ``fields`` those of partitions. ``all_found``: everything that
    the table needs was found below its roots. ``gone`` are the metadata files of tables that were declared gone.
    """

    place: Place
    as_of: Instant
    age_min_ms: int
    existed_at: Instant | None
    known_roots: tuple[str, ...]
    anchors: MetadataAnchors
    quarantine: tuple[str, ...]
    jobs: tuple[str, ...]
    fields: tuple[str, ...]
    all_found: bool = False
    gone: Collection[CanonicalPath] = ()

    def stays(self, found: FoundFile) -> Kept | None:
        """Why a file stays that no time will change; None for others."""
        return self._for_its_place(found.path) or self._odd_time(found) or self._for_its_name(found)

    def doubt(self, found: FoundFile) -> Doubt | None:
        """Why a file that may go waits for a person all the same."""
        if written_by(found.path) is None:
            return Doubt.UNFAMILIAR
        if self.gone or any((found.listed.modified_at or 0) <= one.declared_at for one in self.place.gone):
            return Doubt.GONE_TABLE
        if not found.path.startswith(self.known_roots):
            return Doubt.NOTHING_KNOWN
        return Doubt.BEFORE_TABLE if self._is_before_table(found) else None

    def _for_its_place(self, path: CanonicalPath) -> Kept | None:
        if path.startswith(self.quarantine):
            return Kept.QUARANTINED
        if not self.place.owns(path):
            return Kept.NOT_OWNED
        if not path.startswith(self.known_roots) and not (self.all_found and written_by(path) is not None):
            return Kept.NOTHING_KNOWN
        return Kept.HIDDEN if self._is_hidden(path) else None

    def _for_its_name(self, found: FoundFile) -> Kept | None:
        name = (checksummed(found.path) or found.path).rpartition("/")[2]
        if name == _VERSION_HINT:
            return Kept.VERSION_HINT
        if name.startswith(self.jobs):
            return Kept.FLINK
        if found.path in self.gone:  # nothing goes back to it but what would take its files, too
            modified_at = found.listed.modified_at
            is_old = modified_at is not None and self.as_of - modified_at >= METADATA_FLOOR_MS
            return None if is_old else Kept.METADATA
        return Kept.METADATA if is_metadata_file(found.path) and self.anchors.keeps(found) else None

    def waits(self, found: FoundFile, sighting: Sighting) -> Kept | None:
        """Why a file stays until it is older, None when it may go. ``sighting`` is as of this pass."""
        modified_at = found.listed.modified_at
        if modified_at is None or self.as_of - modified_at < self.age_min_ms:
            return Kept.YOUNG
        if self.as_of - sighting.first_seen_at < self.age_min_ms:
            return Kept.SEEN_LATELY
        return Kept.SEEN_ONCE if sighting.passes < PASSES_MIN else None

    def _odd_time(self, found: FoundFile) -> Kept | None:
        modified_at = found.listed.modified_at
        if modified_at is None or modified_at <= 0:
            return Kept.NO_TIME
        if modified_at > self.as_of + FUTURE_MAX_MS:
            return Kept.FUTURE
        is_of_none = self._is_before_table(found) and written_by(found.path) is None
        return Kept.BEFORE_TABLE if self.existed_at is None or modified_at < ICEBERG_SINCE or is_of_none else None

    def _is_before_table(self, found: FoundFile) -> bool:
        modified_at = found.listed.modified_at
        return self.existed_at is None or modified_at is None or modified_at < self.existed_at

    def _is_hidden(self, path: CanonicalPath) -> bool:
        root = next(root for root in self.place.roots if path.startswith(root))
        below = (checksummed(path) or path)[len(root) :]
        *folders, name = below.split("/")
        hidden = [part for part in (*folders, name) if part.startswith((".", "_")) and not part.startswith(self.fields)]
        return any(not is_staging(part) and not (part == name and written_by(path)) for part in hidden)


def flink_prefixes(table: TableMetadata) -> tuple[str, ...]:
    """What Flink's files of the jobs that retained snapshots name begin with."""
    return tuple(sorted({f"{job_id}-" for one in table.snapshots if (job_id := one.summary.get(_JOB_ID_KEY))}))


def partition_prefixes(table: TableMetadata) -> tuple[str, ...]:
    """What the folders of its partitions begin with, under any of its specs."""
    return tuple(sorted({f"{field.name}=" for spec in table.specs for field in spec.fields}))


def age_min_ms(asked_ms: int, table: TableMetadata, slowest_commit_ms: int) -> int:
    """How long files are left alone: what was asked for, unless something says that it is too short."""
    flink_ms = FLINK_AGE_MIN_MS if flink_prefixes(table) else 0
    return max(asked_ms, AGE_FLOOR_MS, flink_ms, SLOWEST_TIMES * slowest_commit_ms)


def other_format(path: CanonicalPath, root: str) -> str | None:
    """The other table format that a file below a root is a mark of, None for most: it needs files of its own.

    Delta Lake can keep Iceberg's metadata beside its own, and converters keep one folder up in several formats.
    """
    below = f"/{path[len(root) :]}"
    return next((name for mark, name in _OTHER_FORMATS.items() if mark in below), None)


def is_evidence(modified_at: Instant, as_of: Instant) -> bool:
    """Whether the time of a file that is the table's tells that the table was there by then."""
    return ICEBERG_SINCE <= modified_at <= as_of
