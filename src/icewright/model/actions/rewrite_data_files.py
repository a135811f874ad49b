"""Rewriting data files: what it would bring, and how a person asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal

from icewright.core.reasons import Reason


class Migration(StrEnum):
    """What a person asks to be migrated, beyond what the policy says."""

    FORMATS = "formats"
    """Files of another format than the table's own."""
    SPEC = "spec"
    """Files of older partition specs."""
    ALL = "all"


class Risk(StrEnum):
    """How likely somebody else's statement takes rows away from under a rewrite, so that it comes to nothing."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Lookup:
    """How many planned files of one partition a lookup of one value of ``column``, of the layout, opens.

    ``files_before`` and ``files_after`` are where that is worst, the others the mean over the column's values. Before
    is told by the bounds of the files, of which ``unknown_files`` have none; after by how the layout places rows that
    are spread evenly over all combinations of values. The column has ``values_at_most``, where the bounds tell.
    """

    column: str
    partition: str
    files_before: int
    files_after: int
    mean_before: float
    mean_after: float
    unknown_files: int = 0
    values_at_most: int | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What carrying out a plan takes, by rules of thumb and not by what is known.

    ``output_bytes`` are ``modelled_bytes`` as the latest commits of the table have it, and ``output_reason`` has the
    numbers behind them; ``cpu_ms`` is by the rates of the policy. ``risk_reason`` has the numbers behind the risk.
    ``lookups`` has each column of the layout where files are put in order.
    """

    output_bytes: int
    cpu_ms: int
    risk: Risk
    risk_reason: Reason
    modelled_bytes: int
    output_reason: Reason
    lookups: tuple[Lookup, ...] = ()


@dataclass(frozen=True, slots=True)
class RewritePrediction:
    """What rewriting data files would bring, over the whole table; exact but for the ``estimate``.

    ``layout`` is that of the new files by the names of its columns, ``call`` the Spark statement that comes nearest.
    """

    kind: ClassVar[Literal["rewrite_data_files"]] = "rewrite_data_files"
    data_files_before: int
    data_files_after: int
    input_files: int
    output_files: int
    input_bytes: int
    records: int
    layout: str | None = None
    call: str = ""
    estimate: Estimate | None = None


@dataclass(frozen=True, slots=True)
class RewriteDataFilesRequest:
    """Migrate the files of a table, all of those that there are, and do nothing else."""

    kind: ClassVar[Literal["rewrite_data_files"]] = "rewrite_data_files"
    migrate: Migration
