"""The shortlist: which partitions are worth reading the files of, from statistics alone.

Each partition gets a verdict with its reason. What comes out as ``rewrite`` here is a candidate; Level 0 looks at its
files and may still find that it should wait or be left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from icewright.actions.rewrite_data_files.candidates import DELETES
from icewright.actions.rewrite_data_files.executors import table_executors, table_obstacle
from icewright.actions.rewrite_data_files.formats import OTHER_FORMAT, other_formats, said_of
from icewright.actions.rewrite_data_files.layouts.ordering import Due, Levels
from icewright.actions.rewrite_data_files.triggers.triggers import Judge
from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory.placement import column_types, placement_obstacle
from icewright.inventory.row_removals import STATEMENTS_PER_FAILURE, Spacing, last_removal_at, removal_wait_ms
from icewright.inventory.specs import OTHER_SPEC, Moves
from icewright.model.iceberg.files import FileFormat, Partition
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation, Removals, WorkerAccess
from icewright.model.plans.plans import PartitionVerdict, Reason, Verdict
from icewright.model.policy.policy import Policy
from icewright.plans.branches import MainHold, main_hold

DELETE_FILES_MAX = 200_000
"""The most delete files that are held in memory for one plan, about 100 MB."""

ACCESS_WAIT_MS = 60_000
"""When to look again at a table whose storage no optimizer has tried yet: one that starts does so within a minute."""


def shortlist(
    observation: Observation, policy: Policy, now: Instant, levels: Levels | None = None
) -> tuple[PartitionVerdict, ...]:
    """A verdict for every partition of the table, in the inventory's order; none where the whole table has an obstacle.

    Verdicts: ``leave`` where merging gains nothing; ``refuse`` where it would, but cannot be done yet; ``wait``
    where rows were removed lately or a branch is ahead of main; else ``rewrite``. ``levels`` are those of a table with
    a layout.
    """
    if table_obstacle(observation.metadata, policy, observation.worker_access) is not None:
        return ()
    table = _Table(
        metadata=observation.metadata,
        policy=policy,
        equality_deletes_everywhere=equality_deletes_everywhere(observation),
        access=observation.worker_access,
        removals=observation.removals,
        wait_ms=removal_wait_ms(observation, policy),
        spacing=Spacing.of(observation, policy, now),
        types=column_types(observation.metadata),
        judge=Judge.of(observation, policy, now),
        due={} if levels is None else levels.due,
        other_formats=other_formats(observation.metadata, policy),
        moves=Moves.of(
            observation, policy, table_executors(observation.metadata, observation.worker_access).not_staged
        ),
        hold=main_hold(observation.metadata, policy, now),
    )
    verdicts = tuple(_verdict(table, statistics, now) for statistics in observation.inventory.partitions)
    return _within_memory(verdicts, observation, table.equality_deletes_everywhere)


def _within_memory(
    verdicts: tuple[PartitionVerdict, ...], observation: Observation, everywhere: int
) -> tuple[PartitionVerdict, ...]:
    """The verdicts, of which no more candidates are left than delete files can be held for; the others follow.

    With each commit another partition is the first, so that none is left out for ever.
    """
    deletes = {one.partition: one.counts.delete_files for one in observation.inventory.partitions}
    if sum(deletes.values()) <= DELETE_FILES_MAX:
        return verdicts
    current = observation.metadata.current_snapshot
    first = current.sequence_number % len(verdicts) if current is not None else 0
    held, kept = everywhere, dict[Partition, PartitionVerdict]()
    for verdict in (*verdicts[first:], *verdicts[:first]):
        its = deletes[verdict.partition] if verdict.verdict is Verdict.REWRITE else 0
        held += its
        if not its or held <= DELETE_FILES_MAX:
            kept[verdict.partition] = verdict
            continue
        held -= its
        kind = Verdict.REFUSE if its + everywhere > DELETE_FILES_MAX else Verdict.WAIT
        text = f"its {wording.count(its, 'delete file')} are too many to be looked at"
        text += " together with other partitions; a later commit includes them" if kind is Verdict.WAIT else ""
        reason = Reason("many-delete-files", text, {"delete_files": its})
        kept[verdict.partition] = replace(verdict, verdict=kind, reason=reason, files_after=verdict.files_before)
    return tuple(kept[verdict.partition] for verdict in verdicts)


def equality_deletes_everywhere(observation: Observation) -> int:
    """How many equality deletes lie in an unpartitioned spec: they apply to all partitions (spec, "Scan Planning")."""
    unpartitioned = {spec.spec_id for spec in observation.metadata.specs if spec.is_unpartitioned}
    return sum(
        statistics.counts.equality_delete_files
        for statistics in observation.inventory.partitions
        if statistics.partition.spec_id in unpartitioned
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """What is the same for all partitions."""

    metadata: TableMetadata
    policy: Policy
    equality_deletes_everywhere: int
    access: WorkerAccess
    removals: Removals
    wait_ms: int
    spacing: Spacing
    types: Mapping[int, Any]
    judge: Judge
    due: Mapping[Partition, tuple[Due, ...]]
    other_formats: frozenset[FileFormat]
    moves: Moves
    hold: MainHold | None


def _verdict(table: _Table, statistics: PartitionStatistics, now: Instant) -> PartitionVerdict:
    files, opinion = statistics.counts.data_files, table.judge.opinion(statistics)
    due = table.due.get(statistics.partition, ())

    def verdict(kind: Verdict, reason: Reason, after: int = files, until: Instant | None = None) -> PartitionVerdict:
        return PartitionVerdict(statistics.partition, statistics.path, kind, reason, files, after, until)

    deletes = statistics.counts.delete_files or table.equality_deletes_everywhere
    fires, foreign = opinion.rule is not None, said_of(statistics.counts.formats, table.other_formats)
    moved = files > 0 and table.moves.is_asked(statistics.partition)
    if not fires and not due and not foreign and not moved and (files == 0 or not deletes):
        return verdict(Verdict.LEAVE if opinion.until is None else Verdict.WAIT, opinion.reason, until=opinion.until)
    refusal = _refusal(table, statistics)
    if refusal is not None:
        return verdict(Verdict.REFUSE, refusal)
    waits = _waits(table, statistics.partition, now)
    if waits is not None:
        return verdict(Verdict.WAIT, waits[0], until=waits[1])
    if due or fires or moved:
        reason = due[0].reason if due else opinion.reason
        if moved:
            reason = Reason(
                OTHER_SPEC, f"{wording.count(files, 'file')} to be moved {table.moves.said(statistics.partition)}"
            )
        return verdict(Verdict.REWRITE, reason, files if due or moved else opinion.files_after)
    text = f"{foreign or wording.count(deletes, 'delete file')}; {opinion.reason.text}"
    return verdict(Verdict.REWRITE, Reason(OTHER_FORMAT if foreign else DELETES, text, {"delete_files": deletes}))


def _waits(table: _Table, partition: Partition, now: Instant) -> tuple[Reason, Instant] | None:
    """Why a partition is not rewritten yet, and until when."""
    if table.hold is not None:
        return table.hold.reason, table.hold.until
    removed_at = last_removal_at(table.removals, partition, now)
    until = None if removed_at is None else removed_at + table.wait_ms
    if removed_at is not None and until is not None and now < until:
        text = (
            f"rows were removed at {wording.instant(removed_at)}; left alone for {wording.duration(table.wait_ms)}, "
            f"until {wording.instant(until)}, so that no DELETE or MERGE of its owner fails"
        )
        return Reason("recent-removals", text, {"wait_ms": table.wait_ms}), until
    until = table.spacing.until(partition)
    if until is not None:
        figures = {"spacing_ms": table.spacing.spacing_ms, "statement_ms": table.spacing.statement_ms}
        runs, apart = (wording.duration(figures[key]) for key in ("statement_ms", "spacing_ms"))
        text = (
            f"statements that remove rows may run for {runs}; rewrites that one could meet are {apart} apart, so that "
            f"one in {STATEMENTS_PER_FAILURE} fails at most: the next rewrite is from {wording.instant(until)} on"
        )
        return Reason("spaced-rewrites", text, figures), until
    if table.access is WorkerAccess.UNKNOWN:
        text = "no optimizer has shown yet whether its workers can read and write where the table keeps its files"
        return Reason("worker-access", text), now + ACCESS_WAIT_MS
    return None


def _refusal(table: _Table, statistics: PartitionStatistics) -> Reason | None:
    if all(spec.spec_id != statistics.partition.spec_id for spec in table.metadata.specs):
        return Reason("unknown-spec", f"the metadata has no partition spec {statistics.partition.spec_id}")
    return placement_obstacle(table.metadata, table.types, statistics.partition)
