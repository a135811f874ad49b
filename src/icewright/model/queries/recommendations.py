"""What the queries of a table recommend: a layout, table properties, or to leave it as it is; each with its evidence.

A person and a policy decide by the same: what later queries would read, with an interval, what it costs,
what else was tried, and what would make the figures wrong. Figures are of one query on average unless they say a day.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import NormalDist
from typing import Annotated, ClassVar, Final

from icewright.core.codec import OneOf
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.iceberg.layouts import LayoutExpression
from icewright.model.iceberg.names import TableName


@dataclass(frozen=True, slots=True)
class LeaveAsIs:
    """The files stay as they are."""

    kind: ClassVar[str] = "leave"

    def __str__(self) -> str:
        return "leave it as it is"


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """The rows of each partition are spread over its files by a layout, as its owner would write it."""

    layout: LayoutExpression

    kind: ClassVar[str] = "layout"

    def __str__(self) -> str:
        return str(self.layout)


@dataclass(frozen=True, slots=True)
class PropertiesChange:
    """Properties of the table that writers heed; files that are there already are rewritten to have them."""

    properties: Mapping[str, str]

    kind: ClassVar[str] = "properties"

    def __str__(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in sorted(self.properties.items()))


@dataclass(frozen=True, slots=True)
class Revert:
    """Properties go back to what they were before a recommendation was accepted; None where there were none."""

    recommendation_id: str
    properties: Mapping[str, str | None]

    kind: ClassVar[str] = "revert"

    def __str__(self) -> str:
        parts = [
            f"unset {key}" if value is None else f"{key}={value}" for key, value in sorted(self.properties.items())
        ]
        return f"go back: {', '.join(parts)}"


Candidate = Annotated[
    LeaveAsIs | LayoutChange | PropertiesChange | Revert,
    OneOf((LeaveAsIs, LayoutChange, PropertiesChange, Revert)),
]
"""What may be done about a table."""


class Verdict(StrEnum):
    """What is recommended."""

    CHANGE = "change"
    """Do what the candidate says."""
    LEAVE = "leave"
    """Leave the table as it is."""
    REVERT = "revert"
    """Take back what an accepted recommendation has set, since it did not pay."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the ends of its 95 % interval."""

    low: float
    mean: float
    high: float


_T_OF_FEW: Final = (12.706, 4.303, 3.182, 2.776)
"""Of 1 to 4 degrees of freedom, for which the expansion is too short."""


def t_quantile(degrees: float) -> float:
    """Of Student's t at 97.5 %, as intervals of 95 % take it; of ``degrees`` of freedom, one at least.

    By Fisher and Cornish's expansion, to 0.2 % from five degrees on. Fractions below that count as the whole number
    below them, which makes intervals wider.
    """
    if degrees < len(_T_OF_FEW) + 1:
        return _T_OF_FEW[max(1, int(degrees)) - 1]
    z = NormalDist().inv_cdf(0.975)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / degrees ** (power + 1) for power, term in enumerate(terms))


@dataclass(frozen=True, slots=True)
class Rates:
    """What work costs. All figures are CPU seconds, or bytes a CPU second.

    ``open_s`` and ``plan_s`` are of each file that a query opens, ``read_bytes_per_s`` of what it reads: the defaults
    are those of the policy (``open_ms``, ``plan_ms``, ``read_bytes_per_s``). ``rewrite_bytes_per_s`` is of input that a
    Spark rewrite sorts: 421 MB took 31.3 CPU seconds, on Spark 3.5.9 and two cores. ``conflict_probability`` is the
    share of rewrites that are lost to a writer that commits first, and done twice: an assumption, not a measurement.
    """

    open_s: float = 0.001
    plan_s: float = 0.00005
    read_bytes_per_s: float = 200e6
    rewrite_bytes_per_s: float = 13.5e6
    conflict_probability: float = 0.1
    horizon_days: float = 7.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What the change costs once. ``cpu_s`` includes what conflicts cost on average."""

    rewrite_bytes: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the queries of one window read, now and with a candidate, of one query on average.

    ``files`` is how many data files the table has, on both sides. ``saved_s_per_day`` is CPU seconds of all queries of
    a day, at the rates that are stated.
    """

    queries: int
    files: int
    files_opened_now: float
    files_opened: Interval
    bytes_read_now: float
    bytes_read: Interval
    saved_s_per_day: Interval

    @property
    def bytes_share(self) -> float:
        """What is read, of what is read now. 1 where nothing is read now."""
        return self.bytes_read.mean / self.bytes_read_now if self.bytes_read_now else 1.0


@dataclass(frozen=True, slots=True)
class ColumnBytes:
    """What a column of the sample takes as present settings write it, and as others do."""

    column: str
    bytes_now: int
    bytes: int


FORMAT_COLUMNS_MAX: Final = 10
"""Columns of which :class:`FormatTrial` says what they take: those that change most."""


@dataclass(frozen=True, slots=True)
class FormatTrial:
    """Rows of the table that were written with present settings of the file format and with others, by turns.

    Figures are of the sample: its files in bytes, the CPU seconds to write it, and those to decode the columns that
    queries read, of all rows. ``rounds`` is how often each was measured.
    """

    sample_rows: int
    sample_files: int
    rounds: int
    bytes_now: int
    bytes: int
    row_groups_now: int
    row_groups: int
    write_s_now: float
    write_s: Interval
    read_s_now: float
    read_s: Interval
    columns: tuple[ColumnBytes, ...] = ()


@dataclass(frozen=True, slots=True)
class CandidateTrial:
    """A candidate that was tried, on the older queries, by which one is chosen; ``test`` only of the one chosen.

    ``written`` is of settings of the file format: what queries read is then the bytes of their columns in the row
    groups that they read, of layouts and Bloom filters that of files.
    """

    candidate: Candidate
    train: Prediction
    cost: Cost
    test: Prediction | None = None
    written: FormatTrial | None = None


@dataclass(frozen=True, slots=True)
class QueryWindow:
    """The queries of a time. ``evaluated`` had a filter that could be evaluated, or none at all."""

    since: Instant
    until: Instant
    queries: int
    evaluated: int


@dataclass(frozen=True, slots=True)
class ColumnScore:
    """A column by which queries filter. ``score`` is the sum over queries of the share of rows that it excludes.

    ``left_out`` says why no layout has it, and is empty where layouts may.
    """

    column: str
    queries: int
    score: float
    distinct_share: float
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the recommendation rests on.

    ``unusable`` counts queries, by the reason why they count for nothing; ``columns_only`` those that count for the
    choice of columns alone, since their literals are hashed or dropped. ``simulated_bytes`` are in partitions that
    have sample rows enough; the others stay as they are on both sides.
    """

    train: QueryWindow | None
    test: QueryWindow | None
    unusable: Mapping[str, int]
    columns_only: int
    files: int
    bytes: int
    partitions: int
    sample_rows: int
    simulated_bytes: int
    columns: tuple[ColumnScore, ...] = ()


FREQUENT_MAX: Final = 10
"""How many of the most frequent queries :class:`FrequentQueries` is about at most."""


@dataclass(frozen=True, slots=True)
class FrequentQueries:
    """The data files that the most frequent queries of the newer window open, each query once.

    ``queries`` differ in their filters or literals. ``files_opened`` is with the change that is recommended, as
    simulated; the same as now where none is.
    """

    queries: int
    files_opened_now: float
    files_opened: float


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """Queries of the newer window with the same filters, and what one of them opens now: kept to be compared with.

    ``key`` is a digest of the filters, the same as long as they are.
    """

    key: str
    weight: int
    files: int
    bytes: int


AGGREGATIONS_MAX: Final = 10
RECORDED_NAME_LENGTH_MAX: Final = 1_000
"""Of a column, or of a sum, in what is recorded."""


@dataclass(frozen=True, slots=True)
class AggregationCandidate:
    """Columns by which queries group or filter what they sum up. It is recorded; icewright does not build it yet.

    ``queries`` of both windows could be answered from a table with a row for each of ``cells``, distinct combinations
    of the dimensions' values, as estimated from the sample; the table has ``rows``. ``bytes_read`` is what engines say
    that these queries read, 0 where they do not.
    """

    dimensions: tuple[str, ...]
    aggregates: tuple[str, ...]
    queries: int
    bytes_read: int
    rows: int
    cells: int

    @property
    def spared_rows(self) -> int:
        """Rows that the queries would not read."""
        return self.queries * (self.rows - self.cells)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to do about a table, and why. ``chosen`` is the trial that the verdict is about, None where none was made.

    ``frequent`` is None where too few queries are known, and of recommendations of earlier releases. ``trials`` are all
    candidates with their figures, the best on the older queries first. ``caveats`` say what would make the figures
    wrong. ``judged`` comes with the answer of an analysis, and is kept
    apart from what is shown. ``aggregations`` are recorded, and no part of the verdict.
    """

    table: TableName
    verdict: Verdict
    reason: Reason
    candidate: Candidate
    evidence: Evidence
    rates: Rates
    chosen: CandidateTrial | None = None
    trials: tuple[CandidateTrial, ...] = ()
    caveats: tuple[Reason, ...] = field(default=())
    frequent: FrequentQueries | None = None
    judged: tuple[JudgedQuery, ...] = field(default=())
    aggregations: tuple[AggregationCandidate, ...] = field(default=())


LEAVE: Final = LeaveAsIs()
