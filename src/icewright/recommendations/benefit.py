"""What our work has brought and cost, by week: from sums of queries, finished tasks and measurements, nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.queries.decisions import KeptRecommendation, RecommendationState
from icewright.model.queries.measurements import Effect, Measurement
from icewright.model.queries.recommendations import Candidate, Interval, PropertiesChange, Rates, Revert
from icewright.model.queries.templates import WEEK_MS, Sums, TemplateWeek, week_of
from icewright.model.work.tasks import TERMINAL_STATES, Attempt, ListedTask
from icewright.plans.evidence.measures import measured
from icewright.ports.store import TableStore, TaskFilter, TaskStore
from icewright.queries.service import QueryLog
from icewright.recommendations.causes import Cause, CauseBenefit, cause_of, summed, with_saved
from icewright.recommendations.effects import WEEKS_MAX, ComparedWeek, compared_weeks
from icewright.recommendations.ledger import predicted_change
from icewright.recommendations.sql import SqlRecommendations

TASKS_MAX: Final = 500
"""Finished tasks of a table, or of the fleet, whose cost is summed: the latest."""
FLEET_TABLES_MAX: Final = 50
"""Tables of the fleet that are summed: those read most, and those that were worked on."""
COUNTED: Final = (ActionKind.REWRITE_DATA_FILES, ActionKind.REWRITE_POSITION_DELETE_FILES, ActionKind.ANALYZE_QUERIES)
"""Work that is done so that queries read less."""
_SETTLED: Final = (RecommendationState.ACCEPTED, RecommendationState.REVERTED)
_BECAME: Final = {
    RecommendationState.REVERTED: ("was taken back", "were taken back"),
    RecommendationState.ACCEPTED: ("is accepted", "are accepted"),
}


@dataclass(frozen=True, slots=True)
class BenefitWeek:
    """One week. What is not known is null, and never zero.

    ``bytes_read`` is what engines say of ``queries_with_bytes`` queries. Of those whose templates ran before the change
    too, ``compared_bytes`` were read and ``expected_bytes`` would have been, had each template gone on as before;
    ``saved_bytes`` is the difference, negative where more was read, and ``predicted_bytes`` what was predicted to be
    saved of what was expected. The same of files. ``saved_cpu_ms`` is at the stated rates; ``cpu_ms``, ``rewritten``
    files and bytes are what finished ``tasks`` took, also those that failed, as they measured it.
    """

    week_at: Instant
    queries: int = 0
    queries_with_bytes: int = 0
    bytes_read: int = 0
    compared_bytes: int | None = None
    expected_bytes: float | None = None
    saved_bytes: float | None = None
    predicted_bytes: Interval | None = None
    compared_files: int | None = None
    expected_files: float | None = None
    saved_files: float | None = None
    saved_cpu_ms: float | None = None
    tasks: int = 0
    cpu_ms: int = 0
    rewritten_files: int = 0
    written_files: int = 0
    written_bytes: int = 0


@dataclass(frozen=True, slots=True)
class AcceptedView:
    """An accepted recommendation, with what was predicted and what was measured: changes as shares of before."""

    recommendation_id: str
    change: str
    state: RecommendationState
    accepted_at: Instant | None
    carried_out_at: Instant | None
    measured_at: Instant | None
    effect: Effect | None
    reason: str
    predicted: Interval | None
    planned: Interval | None
    planned_queries: int
    files_before: float | None
    files: float | None
    scanned: Interval | None
    compared_tables: int


@dataclass(frozen=True, slots=True)
class TableBenefit:
    """What work on a table has brought and cost. ``compared_from`` is since when weeks are compared with before.

    ``causes`` has the same total by cause.
    """

    table: str
    catalog: str
    uuid: str
    since: Instant
    compared_from: Instant | None
    total: BenefitWeek
    weeks: tuple[BenefitWeek, ...]
    accepted: tuple[AcceptedView, ...]
    notes: tuple[str, ...]
    rates: Rates
    causes: tuple[CauseBenefit, ...] = ()


@dataclass(frozen=True, slots=True)
class BenefitRow:
    """A table of the fleet in one line."""

    table: str
    catalog: str
    uuid: str
    effect: Effect | None
    total: BenefitWeek


@dataclass(frozen=True, slots=True)
class FleetBenefit:
    """The sums over tables, by week, and each table in a line; those of the most work and reading."""

    since: Instant
    total: BenefitWeek
    weeks: tuple[BenefitWeek, ...]
    tables: tuple[BenefitRow, ...]
    notes: tuple[str, ...]
    rates: Rates
    causes: tuple[CauseBenefit, ...] = ()


class Benefit:
    """Adds up the ledger. Safe for use by several threads; changes nothing."""

    def __init__(
        self,
        store: SqlRecommendations | None,
        tables: TableStore,
        tasks: TaskStore,
        queries: QueryLog,
        clock: Clock,
    ) -> None:
        self._store, self._tables, self._tasks, self._queries, self._clock = store, tables, tasks, queries, clock

    def of_table(self, table_id: TableId, name: TableName, weeks: int) -> TableBenefit:
        """The ledger of a table, this week and those before it."""
        since = self._since(weeks)
        only = TaskFilter(TERMINAL_STATES, table_id)
        return self._of_table(table_id, name, since, self._costs(only, since)[table_id])

    def of_fleet(self, weeks: int, within: Scopes = EVERYWHERE) -> FleetBenefit:
        """The ledger of all tables in scopes."""
        since = self._since(weeks)
        costs = self._costs(TaskFilter(TERMINAL_STATES, within=within), since)
        names: dict[TableId, TableName] = {}
        sums = self._queries.kept_sums
        for reads in sums.tables(since, FLEET_TABLES_MAX, within) if sums is not None else ():
            names[reads.table_id] = reads.name
        for table_id in costs:
            record = self._tables.record(table_id)
            if record is not None and record.dropped_at is None:
                names.setdefault(table_id, record.name)
        shown = list(names)[:FLEET_TABLES_MAX]
        found = [self._of_table(table_id, names[table_id], since, costs[table_id]) for table_id in shown]
        by_week: dict[Instant, BenefitWeek] = {}
        for week in (week for each in found for week in each.weeks):
            by_week[week.week_at] = _plus(by_week.get(week.week_at, BenefitWeek(week.week_at)), week)
        rows = [
            BenefitRow(one.table, one.catalog, one.uuid, one.accepted[0].effect if one.accepted else None, one.total)
            for one in sorted(found, key=lambda one: (-abs(one.total.saved_bytes or 0.0), -one.total.cpu_ms, one.table))
        ]
        notes = [*_ALWAYS]
        if len(names) > len(shown):
            notes.append(f"{len(names) - len(shown):,} more tables were read or worked on and are not summed.")
        ordered = tuple(by_week[at] for at in sorted(by_week))
        causes = summed(one for each in found for one in each.causes)
        return FleetBenefit(since, _total(ordered, since), ordered, tuple(rows), tuple(notes), Rates(), causes)

    def says(self, table_id: TableId) -> list[str]:
        """What was measured of the table's accepted recommendations, in sentences."""
        return [
            f"{_became(candidate, view)}; measured: {view.reason}"
            for candidate, view in self._settled(table_id)
            if view.effect is not None
        ]

    def _since(self, weeks: int) -> Instant:
        return week_of(self._clock.now() - (weeks - 1) * WEEK_MS)

    def _of_table(self, table_id: TableId, name: TableName, since: Instant, spent: Sequence[_Spent]) -> TableBenefit:
        settled, costs = self._settled(table_id), _by_week(spent)
        accepted = tuple(view for _, view in settled)
        changed = _changed_at(accepted, costs)
        sums = self._queries.kept_sums
        read: Sequence[TemplateWeek] = ()
        if sums is not None:
            read = sums.of_table(table_id, since - WEEKS_MAX * WEEK_MS)
        compared: Mapping[Instant, ComparedWeek] = {}
        if changed is not None:
            before_end, after_begin = (week_of(at) for at in changed)
            compared = compared_weeks(
                read,
                lambda at: before_end - WEEKS_MAX * WEEK_MS <= at < before_end,
                lambda at: at > after_begin,
            )
            compared = {at: week for at, week in compared.items() if at > after_begin}
        predicted = next((view.predicted for view in accepted if view.carried_out_at is not None), None)
        by_week: dict[Instant, Sums] = defaultdict(Sums)
        for each in read:
            if each.week_at >= since:
                by_week[each.week_at] = by_week[each.week_at] + each.sums
        weeks = tuple(
            _week(at, by_week[at], compared.get(at), predicted, costs.get(at))
            for at in sorted({*by_week, *(at for at in costs if at >= since)})
        )
        total = _total(weeks, since)
        by_cause = (one.by_cause for one in spent)
        causes = with_saved(by_cause, _change(settled), total.saved_cpu_ms, _predicted_cpu_ms(total))
        return TableBenefit(
            str(name),
            table_id.catalog,
            table_id.uuid,
            since,
            None if changed is None else changed[1],
            total,
            weeks,
            accepted,
            tuple(_notes(accepted, has_queries=bool(read), is_changed=changed is not None, is_compared=bool(compared))),
            Rates(),
            causes,
        )

    def _settled(self, table_id: TableId) -> tuple[tuple[Candidate, AcceptedView], ...]:
        """Recommendations that were carried out, the last accepted first."""
        if self._store is None:
            return ()
        newest = self._store.measurements.newest_of_table(table_id)
        kept = [one for state in _SETTLED for one in self._store.in_state(state, 20, table_id)]
        views = [
            (one.recommendation.candidate, _accepted_view(one, newest.get(one.recommendation_id)))
            for one in kept
            if not isinstance(one.recommendation.candidate, Revert)
        ]
        return tuple(sorted(views, key=lambda one: -(one[1].accepted_at or 0)))

    def _costs(self, only: TaskFilter, since: Instant) -> dict[TableId, list[_Spent]]:
        """What finished tasks took, by table."""
        found: dict[TableId, list[_Spent]] = defaultdict(list)
        ended = self._tasks.listed(only, limit=TASKS_MAX)
        counted = [task for task in ended if task.kind in COUNTED and task.updated_at >= since]
        attempts = self._tasks.attempts_of([task.task_id for task in counted])
        for task in counted:
            week = _cost(task, attempts.get(task.task_id, ()), week_of(task.updated_at))
            found[task.table_id].append(_Spent(week, cause_of(task)))
        return found


@dataclass(frozen=True, slots=True)
class _Spent:
    """What a task took, in the week in which it ended, and why it was done."""

    week: BenefitWeek
    cause: Cause

    @property
    def by_cause(self) -> CauseBenefit:
        took = self.week
        return CauseBenefit(self.cause, tasks=took.tasks, cpu_ms=took.cpu_ms, written_bytes=took.written_bytes)


def _by_week(spent: Sequence[_Spent]) -> dict[Instant, BenefitWeek]:
    found: dict[Instant, BenefitWeek] = {}
    for one in spent:
        at = one.week.week_at
        found[at] = _plus(found.get(at, BenefitWeek(at)), one.week)
    return found


def _change(settled: Sequence[tuple[Candidate, AcceptedView]]) -> Cause | None:
    """What weeks are compared with the time before: as :func:`_changed_at`. An order that no file has saves nothing."""
    last = next((one for one in settled if one[1].accepted_at is not None), None)
    if last is None:
        return None
    candidate, view = last
    if view.carried_out_at is None:
        return Cause.SEVERAL
    return Cause.PROPERTIES if isinstance(candidate, PropertiesChange) else Cause.LAYOUT


def _predicted_cpu_ms(total: BenefitWeek) -> float | None:
    """Of the bytes that a change was predicted to save."""
    saved = total.predicted_bytes
    return None if saved is None else 1_000 * saved.mean / Rates().read_bytes_per_s


_ALWAYS: Final = (
    "Saved is what the same templates read before the change, less what they read since; other causes count too.",
    "CPU of queries is at the stated rates; that of our work is what finished tasks measured.",
)


def _cost(task: ListedTask, attempts: Sequence[Attempt], at: Instant) -> BenefitWeek:
    took = measured(attempts)
    if took is None:
        return BenefitWeek(at)
    is_rewrite = task.kind is not ActionKind.ANALYZE_QUERIES
    return BenefitWeek(
        at,
        tasks=1,
        cpu_ms=took.cpu_ms,
        rewritten_files=took.input_files if is_rewrite else 0,
        written_files=took.output_files,
        written_bytes=took.written_bytes,
    )


def _notes(
    accepted: Sequence[AcceptedView], *, has_queries: bool, is_changed: bool, is_compared: bool
) -> Iterable[str]:
    if not has_queries:
        yield "No queries of this table are known: only files and cost are shown. Nothing is said of what was saved."
        return
    if not is_changed:
        yield "Nothing was changed in these weeks: there is nothing to compare."
    elif not is_compared:
        yield "No templates ran in whole weeks both before and after the change: what was saved is not known."
    else:
        yield from _ALWAYS
    if any(view.effect is None for view in accepted):
        yield "A recommendation is accepted and not measured yet: it is, once half of the table is rewritten."


def _changed_at(
    accepted: Sequence[AcceptedView], costs: Mapping[Instant, BenefitWeek]
) -> tuple[Instant, Instant] | None:
    """Up to when the table was as before, and from when it was as it is: by the last layout, or the first rewrite."""
    for view in accepted:
        if view.accepted_at is not None:
            return view.accepted_at, view.carried_out_at or view.accepted_at
    rewritten = [at for at, week in costs.items() if week.rewritten_files]
    return (min(rewritten), min(rewritten)) if rewritten else None


def _became(candidate: Candidate, view: AcceptedView) -> str:
    one, several = _BECAME[view.state]
    what, became = ("Table properties", several) if isinstance(candidate, PropertiesChange) else ("Layout", one)
    return f"{what} {view.change} ({view.recommendation_id}) {became}"


def _accepted_view(kept: KeptRecommendation, found: Measurement | None) -> AcceptedView:
    decision = kept.decision
    is_accepted = kept.state is RecommendationState.ACCEPTED and decision is not None
    accepted_at = decision.at if is_accepted and decision is not None else None
    if found is None:
        return AcceptedView(
            kept.recommendation_id,
            str(kept.recommendation.candidate),
            kept.state,
            accepted_at,
            None,
            None,
            None,
            "not measured yet",
            predicted_change(kept.recommendation),
            None,
            0,
            None,
            None,
            None,
            0,
        )
    planned = found.planned
    return AcceptedView(
        kept.recommendation_id,
        str(kept.recommendation.candidate),
        kept.state,
        found.accepted_at,
        found.carried_out_at,
        found.made_at,
        found.effect,
        found.reason.text,
        found.predicted,
        planned.change,
        planned.queries,
        planned.files_before,
        planned.files,
        found.scanned.change,
        found.scanned.others,
    )


def _week(
    at: Instant, sums: Sums, compared: ComparedWeek | None, predicted: Interval | None, cost: BenefitWeek | None
) -> BenefitWeek:
    week = replace(
        cost or BenefitWeek(at), queries=sums.queries, queries_with_bytes=sums.with_bytes, bytes_read=sums.bytes_read
    )
    if compared is None or not (compared.expected or compared.files_expected):
        return week
    rates, saved_s = Rates(), 0.0
    if compared.expected:
        saved = compared.expected - compared.bytes_read
        saved_s += saved / rates.read_bytes_per_s
        week = replace(week, compared_bytes=compared.bytes_read, expected_bytes=compared.expected, saved_bytes=saved)
        if predicted is not None:
            shares = (-predicted.high, -predicted.mean, -predicted.low)
            week = replace(week, predicted_bytes=Interval(*(compared.expected * share for share in shares)))
    if compared.files_expected:
        files = compared.files_expected - compared.files_read
        saved_s += files * (rates.open_s + rates.plan_s)
        week = replace(
            week, compared_files=compared.files_read, expected_files=compared.files_expected, saved_files=files
        )
    return replace(week, saved_cpu_ms=1_000 * saved_s)


def _total(weeks: Sequence[BenefitWeek], since: Instant) -> BenefitWeek:
    total = BenefitWeek(since)
    for week in weeks:
        total = _plus(total, week)
    return total


def _plus(one: BenefitWeek, other: BenefitWeek) -> BenefitWeek:
    """Both together; what only one of them knows is what it knows."""
    sums = {}
    for each in fields(BenefitWeek):
        ours, theirs = getattr(one, each.name), getattr(other, each.name)
        if each.name == "week_at":
            sums[each.name] = ours
        elif ours is None or theirs is None:
            sums[each.name] = theirs if ours is None else ours
        elif isinstance(ours, Interval):
            ends = ((ours.low, theirs.low), (ours.mean, theirs.mean), (ours.high, theirs.high))
            sums[each.name] = Interval(*(first + second for first, second in ends))
        else:
            sums[each.name] = ours + theirs
    return BenefitWeek(**sums)
