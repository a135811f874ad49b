"""Statistics files of a table, as its metadata lists them (spec, "Table Statistics" and "Partition Statistics").

Each is of one snapshot, and says what readers may plan by and need not. No commit but one that sets or removes them
touches them, and when their snapshot expires they leave the metadata with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

THETA_SKETCH: Final = "apache-datasketches-theta-v1"
"""The type of a blob that estimates how many distinct values its one field has (Puffin spec)."""
NDV_KEY: Final = "ndv"
"""The property of such a blob that has the estimate, in decimal digits."""


@dataclass(frozen=True, slots=True)
class StatisticsBlob:
    """A blob of a Puffin file, as the metadata describes it."""

    type: str
    snapshot_id: int
    sequence_number: int
    field_ids: tuple[int, ...]
    properties: Mapping[str, str]

    @property
    def ndv(self) -> int | None:
        """How many distinct values its field has, about; None where it does not say a number."""
        said = self.properties.get(NDV_KEY, "")
        return int(said) if said.isdecimal() and said.isascii() and len(said) < 20 else None  # noqa: PLR2004 - a long

    @property
    def sketched_field(self) -> int | None:
        """The field whose distinct values it estimates; None for a blob of any other kind."""
        return self.field_ids[0] if self.type == THETA_SKETCH and len(self.field_ids) == 1 else None


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """The Puffin file with the statistics of one snapshot; there is at most one of each."""

    snapshot_id: int
    path: str
    size_bytes: int
    footer_size_bytes: int
    blobs: tuple[StatisticsBlob, ...]

    @property
    def sketched_fields(self) -> frozenset[int]:
        """The fields whose distinct values it estimates."""
        return frozenset(blob.sketched_field for blob in self.blobs if blob.sketched_field is not None)


@dataclass(frozen=True, slots=True)
class PartitionStatisticsFile:
    """The file with one row per partition of one snapshot; there is at most one of each."""

    snapshot_id: int
    path: str
    size_bytes: int
