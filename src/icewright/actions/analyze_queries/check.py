"""The second opinion on a plan to analyze queries, and on what is found; it shares nothing with what made either."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from icewright.actions.analyze_queries.check_properties import (
    can_be,
    impossible_properties,
    may_be_set,
    trial_problems,
)
from icewright.core import codec, wording
from icewright.core.times import Instant
from icewright.model.actions.analyze_queries import AnalyzeQueries, AnalyzeQueriesPrediction
from icewright.model.iceberg.layouts import Curve, LayoutExpression
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.predicates.cuts import CutsError, check_cuts, fits_type
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policy import Policy
from icewright.model.queries.measurements import MEASURED_QUERIES_MAX, FileSums, Measured, MeasuredQuery
from icewright.model.queries.recommendations import (
    AGGREGATIONS_MAX,
    FREQUENT_MAX,
    RECORDED_NAME_LENGTH_MAX,
    AggregationCandidate,
    Candidate,
    Evidence,
    JudgedQuery,
    LayoutChange,
    LeaveAsIs,
    PropertiesChange,
    Rates,
    Recommendation,
    Revert,
    Verdict,
)
from icewright.model.queries.templates import WEEK_MS
from icewright.plans.check_table import Wrong


def analysis_violations(
    action: AnalyzeQueries,
    said: AnalyzeQueriesPrediction,
    metadata: TableMetadata,
    policy: Policy,
    queries_table: TableName,
    now: Instant,
) -> Iterator[Wrong]:
    """What is wrong with a plan. ``queries_table`` is the one that the configuration names: no other may be read."""
    if action.queries_table != queries_table:
        yield "queries-table-other", f"it would read {action.queries_table}, which is not the query log"
    if action.base_snapshot_id != metadata.current_snapshot_id:
        yield "snapshot-not-current", f"snapshot {action.base_snapshot_id} is not the current one"
    if action.since >= now:
        yield "since-in-future", "it would analyze queries that have not run"
    if not 0 < action.sample_rows <= action.records:
        yield "sample-impossible", f"{action.sample_rows:,} of {action.records:,} rows"
    if action.current != policy.layout:
        yield "layout-other", "the table is to have another layout than the plan says"
    if (said.queries, said.sample_rows) != (action.queries, action.sample_rows):
        yield "figures-wrong", "the prediction is of another plan"


ANSWER_LENGTH_MAX: Final = 512 * 1024
"""Of an answer as JSON: each is kept for years."""
TRIALS_MAX: Final = 100
COLUMNS_MAX: Final = 50
REVERTIBLE: Final = frozenset({"icewright.layout", "icewright.layout.cuts", "icewright.level-1.size-bytes"})
"""The other properties that accepting a recommendation sets, and that going back therefore sets."""
_BYTES_TOLERANCE: Final = 0.05
_INSTANT_MAX: Final = 2**63 - 1
"""What a database can have: clocks of whoever writes to the query log may say anything below."""


def recommendation_problem(
    found: Recommendation,
    table: TableName,
    action: AnalyzeQueries,
    said: AnalyzeQueriesPrediction,
    metadata: TableMetadata,
) -> str | None:
    """Why a recommendation must not be shown to anybody; None where it holds.

    It is of the ``table`` of its task and of the size that was planned; what it would set is possible and harmless; and
    a change clears its own cost by the figures that it states, at the rates of this release: of later queries, by the
    lower end of their interval.
    """
    problems = (_of_another_task(found, table, action, said), _samples(found), _does_not_hold(found, action, metadata))
    return next(chain.from_iterable(problems), None)


def _of_another_task(
    found: Recommendation, table: TableName, action: AnalyzeQueries, said: AnalyzeQueriesPrediction
) -> Iterator[str]:
    if found.table != table:
        yield f"it is of {found.table}, not of {table}"
    if found.rates != Rates():
        yield "its rates are not those of this release"
    if not _is_finite(codec.to_json(found)):
        yield "it has a figure that is not a finite number"
    if len(found.trials) > TRIALS_MAX:
        yield f"it has {len(found.trials):,} trials"
    if len(found.judged) > MEASURED_QUERIES_MAX or any(min(q.weight - 1, q.files, q.bytes) < 0 for q in found.judged):
        yield "what it keeps of the queries that judged it cannot be"
    evidence = found.evidence
    if abs(evidence.bytes - said.read_bytes) > _BYTES_TOLERANCE * said.read_bytes:
        yield f"it is of a table of {evidence.bytes:,} bytes, and this one has {said.read_bytes:,}"
    frequent = found.frequent
    if frequent is not None and not (
        0 < frequent.queries <= FREQUENT_MAX and 0 <= frequent.files_opened <= FREQUENT_MAX * said.data_files
    ):
        yield f"its {frequent.queries} most frequent queries open {frequent.files_opened:.3g} files"
    if len(found.aggregations) > AGGREGATIONS_MAX or not all(map(_can_be, found.aggregations)):
        yield "what it records of queries that sum the table up cannot be"
    yield from _of_another_time(evidence, action)
    if not 0 <= evidence.partitions <= max(1, said.data_files):
        yield f"it has seen {evidence.partitions:,} partitions in {said.data_files:,} files"


def _samples(found: Recommendation) -> Iterator[str]:
    trials = found.trials if found.chosen is None else (*found.trials, found.chosen)
    if not all(can_be(trial.written) for trial in trials):
        yield "what it says of a sample of rows cannot be"


def _can_be(recorded: AggregationCandidate) -> bool:
    names = (*recorded.dimensions, *recorded.aggregates)
    are_few = len(recorded.dimensions) > 0 and len(names) <= COLUMNS_MAX
    is_short = all(len(name) <= RECORDED_NAME_LENGTH_MAX for name in names)
    return (
        are_few
        and is_short
        and recorded.queries > 0
        and recorded.bytes_read >= 0
        and 0 < recorded.cells <= recorded.rows
    )


def _of_another_time(evidence: Evidence, action: AnalyzeQueries) -> Iterator[str]:
    """The windows are asked for again where it is measured; one without queries has no time."""
    for window in (evidence.train, evidence.test):
        if window is None or not window.queries:
            continue
        if not action.since - WEEK_MS <= window.since <= window.until <= _INSTANT_MAX:
            yield f"it is by queries from {wording.instant(window.since)} to {wording.instant(window.until)}"


def _does_not_hold(found: Recommendation, action: AnalyzeQueries, metadata: TableMetadata) -> Iterator[str]:
    candidate, chosen = found.candidate, found.chosen
    if found.verdict is Verdict.LEAVE:
        if not isinstance(candidate, LeaveAsIs):
            yield f"it recommends to leave the table, and {candidate}"
        return
    if isinstance(candidate, Revert):
        yield "no analysis recommends to go back"
    yield from impossible(candidate, metadata)
    if isinstance(candidate, LayoutChange) and candidate.layout == action.current:
        yield f"the table is to have {candidate.layout} already"
    if chosen is None or chosen.candidate != candidate or chosen.test is None:
        yield "it was not tried on later queries"
        return
    if isinstance(candidate, PropertiesChange):
        yield from trial_problems(candidate.properties, chosen, metadata, found.evidence.bytes)
    gained_s, cost_s = chosen.test.saved_s_per_day.low * found.rates.horizon_days, chosen.cost.cpu_s
    if not (math.isfinite(gained_s) and gained_s > cost_s > 0):
        yield f"it gains {gained_s:.3g} CPU seconds at least and costs {cost_s:.3g}"


def measurement_problem(
    found: Measured,
    action: AnalyzeQueries,
    said: AnalyzeQueriesPrediction,
    judged: Mapping[str, JudgedQuery],
) -> str | None:
    """Why a measurement must not be kept; None where it holds.

    It is of the recommendation and the snapshot that the task names, and of a table of the size that was planned; no
    query opens more than the table has, before or after; and where it says of ``judged`` queries what they opened
    before, it says what the analysis said that recommended the change.
    """
    return next(_not_measured(found, action, said, judged), None)


def _not_measured(
    found: Measured, action: AnalyzeQueries, said: AnalyzeQueriesPrediction, judged: Mapping[str, JudgedQuery]
) -> Iterator[str]:
    asked = action.measure
    if asked is None or found.recommendation_id != asked.recommendation_id:
        yield f"it is of {found.recommendation_id[:100]}, which was not asked for"
    if found.snapshot_id != action.base_snapshot_id:
        yield f"it is of snapshot {found.snapshot_id}, not of {action.base_snapshot_id}"
    if not 0 <= found.table.files <= said.data_files:
        yield f"it has seen {found.table.files:,} of {said.data_files:,} files"
    if abs(found.table.bytes - said.read_bytes) > _BYTES_TOLERANCE * said.read_bytes:
        yield f"it is of a table of {found.table.bytes:,} bytes, and this one has {said.read_bytes:,}"
    if len(found.unusable) > COLUMNS_MAX or any(number < 0 for number in found.unusable.values()):
        yield "it counts queries that say nothing in a way that cannot be"
    for rows in (found.later, found.judged):
        if len(rows) > MEASURED_QUERIES_MAX or len({row.key for row in rows}) < len(rows):
            yield f"it has {len(rows):,} queries, or one of them twice"
        yield from (f"query {row.key[:24]} {wrong}" for row in rows for wrong in _cannot_be(row, found))
    for row in found.judged:
        kept = judged.get(row.key)
        if row.files_before is not None and kept is not None and kept.files != row.files_before:
            yield f"query {row.key[:24]} opened {kept.files:,} files when it was judged, not {row.files_before:,}"


def _cannot_be(row: MeasuredQuery, found: Measured) -> Iterator[str]:
    if row.weight < 1 or not _is_within(row.files, row.bytes, found.table):
        yield f"opens {row.files:,} files and {row.bytes:,} bytes, {row.weight:,} times"
    if row.files_before is None and row.bytes_before is None:
        return
    if found.table_before is None or not _is_within(row.files_before, row.bytes_before, found.table_before):
        yield f"cannot have opened {row.files_before} files before"


def _is_within(files: int | None, size: int | None, table: FileSums) -> bool:
    if files is None or size is None:
        return False
    return 0 <= files <= table.files and 0 <= size <= table.bytes and (files == 0) == (size == 0)


def impossible(candidate: Candidate, metadata: TableMetadata) -> Iterator[str]:
    """Why a change cannot be made to a table as it is, or must not be: nothing where it can."""
    match candidate:
        case LayoutChange(layout):
            if not layout.columns:
                yield "it recommends a layout without columns"
            missing = (column for column in layout.columns if not _has(metadata, column.path))
            yield from (f"the table has no column {column}" for column in missing)
            yield from _impossible_cuts(layout, metadata)
        case PropertiesChange(properties):
            yield from impossible_properties(properties, metadata, lambda path: _has(metadata, path))
        case Revert(properties=back):
            others = (key for key in back if key not in REVERTIBLE and not may_be_set(key))
            yield from (f"it would set {key[:100]!r}" for key in others)
        case _:
            yield f"no action carries out {candidate}"


def _impossible_cuts(layout: LayoutExpression, metadata: TableMetadata) -> Iterator[str]:
    """The tree comes from a Spark job: it is what a property could say, of the columns and types of the table."""
    if layout.curve is not Curve.CUTS and layout.cuts is None:
        return
    tree = layout.cuts
    if layout.curve is not Curve.CUTS or tree is None or layout != LayoutExpression.by_cuts(tree):
        yield "its cuts are not those of their tree"
        return
    try:
        check_cuts(tree)
    except CutsError as error:
        yield f"its cuts cannot be set: {error}"
        return
    for cut in tree.cuts:
        if cut is not None and not fits_type(cut.literal, _type(metadata, tree.columns[cut.column])):
            yield f"it cuts {'.'.join(tree.columns[cut.column])[:100]} by values of another type"
            return


def _is_finite(value: Any) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(map(_is_finite, value.values()))
        case list():
            return all(map(_is_finite, value))
        case _:
            return True


def _has(metadata: TableMetadata, path: Sequence[str]) -> bool:
    return _type(metadata, path) is not None


def _type(metadata: TableMetadata, path: Sequence[str]) -> Any:
    """The type of a column, None where there is none."""
    fields: Any = metadata.schema.fields
    inner: Any = None
    for number, part in enumerate(path, start=1):
        found = next((field for field in fields if field["name"] == part), None)
        if found is None:
            return None
        inner = found["type"]
        is_struct = isinstance(inner, dict) and inner.get("type") == "struct"
        if number < len(path) and not is_struct:
            return None
        fields = inner["fields"] if is_struct else ()
    return inner
