"""Candidates: from the files of the shortlisted partitions to groups worth merging, or to why there are none.

Appends never put a partition off, since they do not conflict with a rewrite; only the youngest files are left out,
whose writer may be about to replace them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from icewright.actions.rewrite_data_files.executors import (
    MERGED_BY_KEY,
    SORTED,
    Choice,
    TableExecutors,
    choose_executor,
    choose_for_order,
    table_executors,
)
from icewright.actions.rewrite_data_files.formats import OTHER_FORMAT, other_formats, said_of
from icewright.actions.rewrite_data_files.groups import Candidate, Group, without
from icewright.actions.rewrite_data_files.layouts.level1 import TOO_LITTLE, level_1_piece
from icewright.actions.rewrite_data_files.layouts.level2 import level_2_piece
from icewright.actions.rewrite_data_files.layouts.ordering import Due, Levels
from icewright.actions.rewrite_data_files.layouts.pieces import NoPiece, PieceBounds, hurried, output_files
from icewright.actions.rewrite_data_files.level_rotation import KEEPING, MERGING, Work
from icewright.actions.rewrite_data_files.moving import MovingBounds, moving_groups
from icewright.actions.rewrite_data_files.packing import Bounds, Run, age, in_order, pack
from icewright.actions.rewrite_data_files.triggers.trigger_result import DELETES_ONLY, Rule, TriggerResult
from icewright.actions.rewrite_data_files.triggers.triggers import Judge
from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory import histogram
from icewright.inventory.applied_deletes import DeleteIndex, too_many_deletes
from icewright.inventory.row_removals import task_ms_max
from icewright.inventory.specs import OTHER_SPEC, Moves, in_use, span_field
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.files import DataFile, FileFormat, Partition
from icewright.model.iceberg.inventory import PartitionCounts, PartitionStatistics, SizeHistogram
from icewright.model.iceberg.layouts import Level
from icewright.model.iceberg.tables import ROW_LINEAGE_SINCE, SortField
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Migration, PartitionVerdict, Reason, Verdict
from icewright.model.policy.policy import TASK_FILES_MAX, Policy, Trigger

YOUNG_MAX_MS = 60_000
"""Files are left out for one commit interval, but no longer than this: a minute is enough for a streaming writer to
show what follows, and the files of a daily job need not wait for a day."""

SETTLED_AFTER_MS = 86_400_000
"""A partition without new data for a day has settled: it gets one last merge however its bytes are spread."""

COLLECTED_FILES_MAX = TASK_FILES_MAX
"""At most twice as many files are held in memory, about 100 MB, and as many are planned for."""

REFERENCES_MAX = 500_000
"""The most pairs of a data file and a delete file that applies to it in one task: its description lists each of them,
in 2 MB."""

YOUNG_FILES = "young-files"

DELETES = "deletes"
"""The reason of a candidate whose files may be worth it for their deletes alone."""

WITHOUT_SIZE = (DELETES, OTHER_FORMAT, OTHER_SPEC)
"""Reasons of candidates whose files are rewritten whatever their size."""


def find(
    observation: Observation,
    policy: Policy,
    verdicts: Sequence[PartitionVerdict],
    files: Iterable[DataFile],
    deletes: DeleteIndex,
    now: Instant,
    levels: Levels | None = None,
    migration: Migration | None = None,
) -> list[Candidate]:
    """The groups of each partition whose verdict is ``rewrite``, in the order of the verdicts.

    With a ``migration``, there may be others among them.
    """
    seen = observation
    executors = table_executors(
        seen.metadata, seen.worker_access, seen.access_detail, seen.not_stitched, seen.not_sorted, seen.not_merged
    )
    judge, others = Judge.of(observation, policy, now), other_formats(observation.metadata, policy)
    moves = Moves.of(observation, policy, executors.not_staged, asked_fields(observation, policy, levels))
    finder = _Finder(observation, policy, deletes, executors, now, judge, levels, others, moves, migration)
    return finder.find(verdicts, files)


def asked_fields(observation: Observation, policy: Policy, levels: Levels | None) -> tuple[SortField, ...]:
    """What the spans of files are asked for: the fields of the layout where a level is due, then one of the spec."""
    current = observation.metadata.default_spec_id
    old = any(each.partition.spec_id != current for each in observation.inventory.partitions)
    field = span_field(observation.metadata, policy) if old else None
    return (*(() if levels is None else levels.fields), *(() if field is None else (field,)))


@dataclass(frozen=True, slots=True)
class _Finder:
    observation: Observation
    policy: Policy
    deletes: DeleteIndex
    executors: TableExecutors
    now: Instant
    judge: Judge
    levels: Levels | None
    other_formats: frozenset[FileFormat]
    moves: Moves
    migration: Migration | None

    def find(self, verdicts: Sequence[PartitionVerdict], files: Iterable[DataFile]) -> list[Candidate]:
        candidates = {verdict.partition: verdict for verdict in verdicts if verdict.verdict is Verdict.REWRITE}
        put_off: dict[Partition, list[Instant]] = {}
        wanted = (file for file in files if file.partition in candidates and self._is_wanted(file))
        columns = 0 if self.levels is None else len(self.levels.fields)
        collected = collect((file for file in wanted if not self._is_put_off(file, put_off)), columns)
        by_partition: dict[Partition, list[DataFile]] = {partition: [] for partition in candidates}
        for file in collected:
            by_partition[file.partition].append(file)
        damaged = _partitions_with_doubled_files(collected)
        added_at = {s.snapshot_id: s.committed_at for s in self.observation.metadata.snapshots}
        statistics = {s.partition: s for s in self.observation.inventory.partitions}
        found = [
            self._refused(verdict, by_partition[partition], damaged=partition in damaged)
            or self._candidate(verdict, by_partition[partition], added_at, statistics[partition])
            for partition, verdict in candidates.items()
        ]
        return [_waiting(item, put_off.get(item.verdict.partition, ())) for item in found]

    def _is_put_off(self, file: DataFile, put_off: dict[Partition, list[Instant]]) -> bool:
        """Whether a file is left alone since its group failed; then its time is added to those of its partition."""
        until = self.observation.put_off.get(file.path, self.now)
        if until > self.now:
            put_off.setdefault(file.partition, []).append(until)
        return until > self.now

    def _is_wanted(self, file: DataFile) -> bool:
        """Whether a level may do something with a file, or it is to be moved."""
        if self.moves.is_asked(file.partition):
            return True
        due = {} if self.levels is None else {one.level for one in self.levels.due.get(file.partition, ())}
        of_level_1 = Level.LEVEL_1 in due and not self._in_order(file)
        return Level.LEVEL_2 in due or of_level_1 or self._is_wanted_by_level_0(file)

    def _is_wanted_by_level_0(self, file: DataFile) -> bool:
        """Small files in order are none of Level 0: beside others they would lose it, and Level 2 takes them."""
        small = file.size_bytes < self.policy.small_file_size_bytes and not self._in_order(file)
        return small or self._is_burdened(file)

    def _in_order(self, file: DataFile) -> bool:
        return self.levels is not None and self.levels.ordering.has(file)

    def _is_burdened(self, file: DataFile) -> bool:
        """Whether a file is rewritten whatever its size: for its deletes, or for its format."""
        foreign = file.file_format in self.other_formats
        return foreign or too_many_deletes(file, self.deletes.burden(file), self.policy)

    def _refused(self, verdict: PartitionVerdict, files: Sequence[DataFile], *, damaged: bool) -> Candidate | None:
        """Why nothing may be done to a partition, told by its files."""
        if damaged:
            text = "a file is listed twice; merging it would change what readers see, so its owner has to check first"
            return without(verdict, Verdict.REFUSE, Reason("file-listed-twice", text))
        if any(file.path in self.deletes.doubled for file in files):
            text = "a file has two deletion vectors, which Iceberg forbids, so its owner has to check first"
            return without(verdict, Verdict.REFUSE, Reason("vectors-listed-twice", text))
        if self.observation.metadata.format_version >= ROW_LINEAGE_SINCE and any(f.first_row_id is None for f in files):
            text = "the table has no row ids yet; the next commit gives them"
            return without(verdict, Verdict.REFUSE, Reason("no-row-ids", text))
        return None

    def _candidate(
        self,
        verdict: PartitionVerdict,
        files: list[DataFile],
        added_at: Mapping[int, Instant],
        statistics: PartitionStatistics,
    ) -> Candidate:
        """What the highest level that is due can do; else what Level 0 can, or why there is nothing to do."""
        reasons: list[Candidate] = []
        if self.moves.is_asked(statistics.partition):
            found = self._moved(verdict, files, added_at)
            if found.groups or found.verdict.reason.code == YOUNG_FILES or self.migration is Migration.SPEC:
                return found
            reasons.append(found)
        if self.levels is not None:
            for one in self.levels.due.get(statistics.partition, ()):
                asked = replace(verdict, reason=one.reason)
                found = self._put_in_order(asked, one, self.levels, files, added_at, statistics.counts)
                if found.groups:
                    return found
                reasons.append(found)
        if not reasons:
            return self._found(verdict, files, added_at, statistics)
        opinion, deletes = self.judge.judge_partition(statistics), statistics.counts.delete_files
        reason = opinion.reason
        if opinion.rule is None:
            foreign = said_of(statistics.counts.formats, self.other_formats)
            said = foreign or wording.count(deletes, "delete file")
            reason = Reason(OTHER_FORMAT if foreign else DELETES, f"{said}; {reason.text}")
        after = opinion.files_after if opinion.rule is not None else verdict.files_before
        of_level_0 = [file for file in files if self._is_wanted_by_level_0(file)]
        found = self._found(replace(verdict, reason=reason, files_after=after), of_level_0, added_at, statistics)
        if found.verdict.verdict is not Verdict.LEAVE:
            return found
        return next((one for one in reasons if one.verdict.verdict is not Verdict.LEAVE), reasons[0])

    def _moved(
        self, verdict: PartitionVerdict, files: Sequence[DataFile], added_at: Mapping[int, Instant]
    ) -> Candidate:
        """All files of a partition of an older spec, to be moved to the current one; or why they are not.

        Those that no row is left of stay.
        """
        moves, until = self.moves, self.moves.waits_until(verdict.partition, self.now)
        if moves.obstacle is not None:
            return without(verdict, Verdict.REFUSE, moves.obstacle)
        if until is not None:
            return without(verdict, Verdict.WAIT, in_use(until), until)
        old_at = {file.path: self._old_at(added_at.get(file.snapshot_id)) for file in files}
        old = [file for file in files if old_at[file.path] <= self.now]
        filled = [file for file in old if not self._is_emptied((file,))]
        bounds = MovingBounds.of(self.policy, REFERENCES_MAX)
        found, refused = moving_groups(
            in_order(filled, added_at), moves, bounds, lambda f: self.deletes.burden(f).files
        )
        groups = [self._moving(each.files, each.output_files) for each in found]
        if groups:
            return Candidate(verdict, tuple(groups))
        if refused:
            return without(verdict, Verdict.REFUSE, refused[0])
        if len(old) < len(files):
            at = min(at for at in old_at.values() if at > self.now)
            text = f"{wording.count(len(files) - len(old), 'file')} too new to be moved; looked at again at "
            return without(verdict, Verdict.WAIT, Reason(YOUNG_FILES, text + wording.instant(at)), at)
        return without(verdict, Verdict.LEAVE, self._all_deleted(len(old)))

    def _moving(self, run: Run, output_files: int) -> Group:
        references = sum(len(self.deletes.of(file)) for file in run)
        choice = Choice(Executor.STAGED, Reason(OTHER_SPEC, f"rows move {self.moves.said(run[0].partition)}"))
        return Group(run, choice, references, MERGING, output_files, self.moves.spec_id)

    def _put_in_order(
        self,
        verdict: PartitionVerdict,
        due: Due,
        levels: Levels,
        files: Sequence[DataFile],
        added_at: Mapping[int, Instant],
        counts: PartitionCounts,
    ) -> Candidate:
        """The one group of Level 1 or 2 of a partition, or why there is none.

        Files in order are never too young: they are ours, and nobody is about to replace them.
        """
        policy, ordering = self.policy, levels.ordering
        old_at = {f.path: self._old_at(added_at.get(f.snapshot_id)) for f in files if not ordering.has(f)}
        young_until = [at for at in old_at.values() if at > self.now]
        old = [file for file in files if old_at.get(file.path, self.now) <= self.now]
        bounds = PieceBounds(
            policy.max_task_files, policy.max_task_size_bytes, REFERENCES_MAX, lambda f: self.deletes.burden(f).files
        )
        if due.level is Level.LEVEL_2:
            fits = counts.data_files <= policy.max_task_files and counts.data_bytes <= policy.max_task_size_bytes
            piece = level_2_piece(old, ordering, policy, bounds, fits=fits)
        else:
            most_ms = task_ms_max(self.observation, policy, verdict.partition, self.now)
            tight = hurried(bounds, old, most_ms, self.observation.experience.pace, policy)
            piece = level_1_piece(old, ordering, policy, tight, lambda file: age(file, added_at))
        if isinstance(piece, NoPiece):
            if piece.reason.code == TOO_LITTLE and young_until:
                until = min(young_until)
                text = f"{due.reason.text}; {piece.reason.text}, the others at {wording.instant(until)}"
                return without(verdict, Verdict.WAIT, Reason(YOUNG_FILES, text), until)
            return without(verdict, piece.verdict, piece.reason)
        if self._is_emptied(piece.files):
            return without(verdict, Verdict.LEAVE, self._all_deleted(len(piece.files)))
        deletes = [delete for file in piece.files for delete in self.deletes.of(file)]
        made = output_files(piece.files, policy)
        keyed, merges = ordering.by_columns, ordering.merges(piece.files)
        choice = choose_for_order(self.executors, piece.files, deletes, policy, by_columns=keyed, in_order=merges)
        if isinstance(choice, Reason):
            return without(verdict, Verdict.REFUSE, replace(choice, text=f"{due.reason.text}, and {choice.text}"))
        if choice in (MERGED_BY_KEY, SORTED):
            made = min(made, max(1, self._left(piece.files)))
        group = Group(piece.files, choice, len(deletes), (due.level, True), made)
        return Candidate(verdict, (group,), piece.following)

    def _found(
        self,
        verdict: PartitionVerdict,
        files: list[DataFile],
        added_at: Mapping[int, Instant],
        statistics: PartitionStatistics,
    ) -> Candidate:
        old_at = {file.path: self._old_at(added_at.get(file.snapshot_id)) for file in files}
        old = [file for file in files if old_at[file.path] <= self.now]
        opinion, written_at = self._judged_alone(statistics, old), statistics.written_at
        rule = opinion.rule or self._without_trigger(opinion)
        settled_at = None if written_at is None else written_at + SETTLED_AFTER_MS
        settled = settled_at is None or settled_at <= self.now
        ordered = in_order(old, added_at)
        groups = self._groups(ordered, rule, settled=settled) + self._kept(old)
        possible = [group for group in groups if isinstance(group, Group)]
        if possible:
            return Candidate(verdict, tuple(possible))
        if groups:
            return without(verdict, Verdict.REFUSE, next(group for group in groups if isinstance(group, Reason)))
        by_size = verdict.reason.code not in WITHOUT_SIZE
        if len(old) < len(files) and (by_size or self._groups(in_order(files, added_at), rule, settled=settled)):
            until = min(at for at in old_at.values() if at > self.now)
            young = wording.count(len(files) - len(old), "small file")
            text = f"{young} too new to be merged; looked at again at {wording.instant(until)}"
            return without(verdict, Verdict.WAIT, Reason(YOUNG_FILES, text), until)
        if settled_at is not None and not settled and self._groups(ordered, rule, settled=True):
            text = (
                "one of its small files holds most of their bytes, and is not written again for a few small ones "
                f"before the partition has settled, at {wording.instant(settled_at)}"
            )
            return without(verdict, Verdict.WAIT, Reason("not-settled", text), settled_at)
        later = replace(rule, leaves_newest=False)
        if opinion.until is not None and (opinion.rule is None or self._groups(ordered, later, settled=settled)):
            return without(verdict, Verdict.WAIT, opinion.waiting, opinion.until)
        return without(verdict, Verdict.LEAVE, self._nothing_to_gain(verdict, files, rule))

    def _judged_alone(self, statistics: PartitionStatistics, old: Sequence[DataFile]) -> TriggerResult:
        """What the trigger says of a partition when its small files are those that may be merged now, and no others."""
        small, edge = self.policy.small_file_size_bytes, histogram.bucket(self.policy.small_file_size_bytes)
        large = {key: entry for key, entry in statistics.counts.sizes.buckets.items() if key >= edge}
        mergeable = histogram.count_sizes(f.size_bytes for f in old if f.size_bytes < small and not self._in_order(f))
        below = {key: entry for key, entry in mergeable.buckets.items() if key < edge}
        sizes = SizeHistogram({**large, **below})
        counts = replace(statistics.counts, sizes=sizes, data_files=sum(number for number, _ in sizes.buckets.values()))
        return self.judge.judge_partition(replace(statistics, counts=counts))

    def _without_trigger(self, opinion: TriggerResult) -> Rule:
        """What is packed of a partition whose trigger does not fire, where it is looked at for its deletes."""
        waits = self.policy.trigger is not Trigger.LEVELS or opinion.until is not None
        return DELETES_ONLY if waits else Rule(self.policy.min_input_files)

    def _nothing_to_gain(self, verdict: PartitionVerdict, files: Sequence[DataFile], rule: Rule) -> Reason:
        small = sum(file.size_bytes < self.policy.small_file_size_bytes for file in files)
        text = f"no {rule.min_input_files:,} neighbours among its {wording.count(small, 'small file')} fit"
        if verdict.reason.code not in WITHOUT_SIZE:
            return Reason("no-group", f"{text} into one file")
        if emptied := [file for file in files if self._is_burdened(file)]:
            return self._all_deleted(len(emptied))
        few = f"none has {self.policy.delete_file_threshold:,} of them or {self.policy.delete_ratio_threshold:.0%}"
        return Reason("few-deletes", f"{verdict.reason.text}; {few} of its rows deleted")

    def _all_deleted(self, files: int) -> Reason:
        gone = f"all rows of {wording.count(files, 'file')} are deleted"
        return Reason("all-deleted", f"{gone}; a rewrite would only put empty files in their place")

    def _kept(self, files: Sequence[DataFile]) -> list[Group | Reason]:
        """Files in the order of the layout with too many deletes: each by itself, so that it stays in order."""
        runs = [(file,) for file in files if self._in_order(file) and self._is_burdened(file)]
        return [self._group(run, KEEPING) for run in runs if not self._is_emptied(run)]

    def _groups(self, ordered: Sequence[DataFile], rule: Rule, *, settled: bool) -> list[Group | Reason]:
        """The groups among files by the order they came in, each with its executor, or why nothing can carry one out.

        Files that are in the order of a layout are left out: they would lose it.
        """
        ordered = [file for file in ordered if not self._in_order(file)]
        burdened = frozenset(file.path for file in ordered if self._is_burdened(file))
        bounds = replace(Bounds.of(self.policy), min_input_files=rule.min_input_files)
        most = max((self.deletes.burden(file).files for file in ordered), default=0)
        if most:
            bounds = replace(bounds, files_max=min(bounds.files_max, max(2, REFERENCES_MAX // most)))
        pack_part = partial(pack, allow_dominated=settled or rule.allow_dominated, burdened=burdened)
        pack_part = partial(pack_part, leaves_newest=rule.leaves_newest, growth_most=rule.growth_most)
        packed = (pack_part(part, bounds) for part in rule.parts(ordered, burdened))
        return [self._group(run) for runs in packed for run in runs if not self._is_emptied(run)]

    def _left(self, files: Sequence[DataFile]) -> int:
        """The rows that files have at least when their deletes are folded in."""
        return sum(max(0, file.record_count - self.deletes.burden(file).records) for file in files)

    def _is_emptied(self, run: Run) -> bool:
        """Whether no row is left of some files, which are to become one file."""
        burdens = [(file, self.deletes.burden(file)) for file in run]
        left = any(file.record_count > burden.records for file, burden in burdens)
        return not left and any(burden.files for _, burden in burdens)

    def _group(self, run: Run, work: Work = MERGING) -> Group | Reason:
        size_bytes = sum(file.size_bytes for file in run)
        if size_bytes > self.policy.max_task_size_bytes:
            limit = wording.size(self.policy.max_task_size_bytes)
            return Reason("file-too-large", f"its {wording.size(size_bytes)} are more than a task may read ({limit})")
        made = self.moves.when_touched(run, self.now) if work == MERGING else None
        if made is not None:
            return self._moving(run, made)
        deletes = [delete for file in run for delete in self.deletes.of(file)]
        choice = choose_executor(self.executors, run, deletes, self.policy)
        return Group(run, choice, len(deletes), work) if isinstance(choice, Choice) else choice

    def _old_at(self, added_at: Instant | None) -> Instant:
        """When a file that was added then is old enough.

        At once when the snapshot has expired, or when its clock is so far ahead that it says nothing.
        """
        interval_ms = self.observation.commit_interval_ms
        young_ms = YOUNG_MAX_MS if interval_ms is None else min(interval_ms, YOUNG_MAX_MS)
        if added_at is None or added_at > self.now + YOUNG_MAX_MS:
            return self.now
        return added_at + young_ms


def _waiting(item: Candidate, put_off: Sequence[Instant]) -> Candidate:
    """A candidate of which nothing is left, since files were put off, waits for them."""
    if not put_off or item.groups or item.verdict.verdict is not Verdict.LEAVE:
        return item
    said = wording.count(len(put_off), "file")
    text = f"{said} could not be rewritten by an earlier task; tried again at {wording.instant(min(put_off))}"
    return without(item.verdict, Verdict.WAIT, Reason("put-off", text, {"files": len(put_off)}), min(put_off))


def collect(files: Iterable[DataFile], columns: int = 0) -> list[DataFile]:
    """The files by path; of very many, those whose paths sort first.

    Memory is bounded by :data:`COLLECTED_FILES_MAX`, or fewer for files with spans of many ``columns``, which take as
    much as all else of a file. The outcome does not depend on the order of ``files``.
    By path, since the files of a partition mostly share a directory and so are kept or put off together; and
    entries of one path stay together, so that a file that is listed twice is noticed.
    """
    most, kept = max(1, COLLECTED_FILES_MAX // max(1, columns)), list[DataFile]()
    for file in files:
        kept.append(file)
        if len(kept) >= 2 * most:
            kept = _first_by_path(kept, most)
    return _first_by_path(kept, most)


def _first_by_path(files: list[DataFile], most: int) -> list[DataFile]:
    files.sort(key=lambda file: (file.path, file.partition))
    end = min(most, len(files))
    while 0 < end < len(files) and files[end].path == files[end - 1].path:
        end += 1
    return files[:end]


def _partitions_with_doubled_files(by_path: Sequence[DataFile]) -> frozenset[Partition]:
    pairs = [(one, other) for one, other in pairwise(by_path) if one.path == other.path]
    return frozenset(file.partition for pair in pairs for file in pair)
