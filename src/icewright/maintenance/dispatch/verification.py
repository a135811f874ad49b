"""What a table says of a committed task, for each kind of action: told by its snapshots, manifests and properties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from icewright.actions.analyze_queries.check import ANSWER_LENGTH_MAX, recommendation_problem
from icewright.actions.compute_statistics.commit import STATISTICS_UNSEEN, computed
from icewright.actions.compute_statistics.evidence import problem_of_commit, verified_statistics
from icewright.actions.expire_data.evidence import data_changed, problem_of_data, verified_data
from icewright.actions.expire_snapshots.commit import EXPIRY_UNSEEN, left_of
from icewright.actions.rewrite_data_files.measured_lookups import measured_lookups
from icewright.actions.rewrite_delete_files.evidence import problem_of_dangling, verified_dangling
from icewright.actions.rewrite_delete_files.position_delete_evidence import (
    measured_costs,
    problem_of_position_deletes,
    verified_position_deletes,
)
from icewright.actions.rewrite_manifests.evidence import manifests_changed, problem_of_manifests, verified_manifests
from icewright.actions.rollback.plan import is_signed
from icewright.actions.undo.data_undo_evidence import (
    inserted_between,
    problem_of_insert,
    unseen_of_insert,
    verified_insert,
)
from icewright.actions.undo.expiry_undo import missing_of
from icewright.catalogs.port import Catalog
from icewright.core import wording
from icewright.core.codec import loads
from icewright.core.errors import InvalidMessage
from icewright.maintenance.registry.effects import reported_snapshot, snapshot_made_by
from icewright.model.actions.actions import Action, RewriteDataFiles, UndoExpireData
from icewright.model.actions.analyze_queries import AnalyzeQueries, AnalyzeQueriesPrediction
from icewright.model.actions.compute_statistics import ComputeStatistics
from icewright.model.actions.expire_data import ExpireData
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.actions.rewrite_delete_files import RemoveDanglingDeletes, RewritePositionDeletes
from icewright.model.actions.rewrite_manifests import RewriteManifests
from icewright.model.actions.rollback import Rollback
from icewright.model.actions.undo import SIGNATURE_KEY, UndoExpiry
from icewright.model.iceberg.tables import GROUPS_KEY, Snapshot, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.queries.measurements import Measured
from icewright.model.queries.recommendations import Recommendation
from icewright.model.work.breaker import UNVERIFIED, VERIFICATION_FAILED
from icewright.model.work.jobs import GROUP_CONFLICT, GroupLeft, report_of
from icewright.model.work.tasks import Outcome, Task
from icewright.observation.observer import Observer
from icewright.plans.evidence.service import Changes, changes_between, committed_part, problem_of
from icewright.ports.store import TaskStore
from icewright.ports.telemetry import note_optimized
from icewright.recommendations.ledger import Measuring, unless_reverted
from icewright.recommendations.sql import SqlRecommendations

COMMIT_NOT_FOUND = "commit-not-found"
"""The code of an outcome that says: reported as committed, and the table knows nothing of it."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a table says of a committed task, one method for each way to tell.

    ``expiry_problem`` and ``undo_problem`` say what is otherwise than an expiry, or its undo, should leave it;
    ``files_outcome`` what became of files that were moved. ``recommendations`` is where those that hold are kept, and
    ``measuring`` judges what accepted ones have brought.
    """

    tasks: TaskStore
    observer: Observer
    expiry_problem: Callable[[Task, TableMetadata], Reason | None]
    undo_problem: Callable[[Task, TableMetadata], Reason | None]
    files_outcome: Callable[[Task], Reason]
    recommendations: SqlRecommendations | None = None
    measuring: Measuring | None = None

    def rewrite(self, task: Task, action: RewriteDataFiles, metadata: TableMetadata) -> Outcome:
        """What the table says of a rewrite, in all parts that were committed."""
        snapshot = snapshot_made_by(task, metadata)
        if snapshot is None:
            return Outcome(_not_found(), reported_snapshot(task))
        catalog = self.observer.catalog(task.table_name.catalog)
        outcome = self._verdict(catalog, metadata, snapshot, task, action)
        for other in metadata.ancestors():  # two attempts may have committed two parts (decision 0016)
            if other.task_id == task.task_id and other != snapshot and outcome.reason.code != VERIFICATION_FAILED:
                verdict = self._verdict(catalog, metadata, other, task, action)
                outcome = verdict if verdict.reason.code == VERIFICATION_FAILED else outcome
        if outcome.reason.code != VERIFICATION_FAILED:
            note_optimized(metadata, snapshot, self.tasks.now())
        return outcome

    def manifests(self, task: Task, action: RewriteManifests, metadata: TableMetadata) -> Outcome:
        """What the table says of a rewrite of manifests."""
        return self._of_commit(task, metadata, partial(_manifests_rewritten, action))

    def deletes(
        self, task: Task, action: RemoveDanglingDeletes | RewritePositionDeletes, metadata: TableMetadata
    ) -> Outcome:
        """What the table says of work on delete files."""
        return self._of_commit(task, metadata, partial(_deletes_changed, action))

    def data(self, task: Task, action: ExpireData, metadata: TableMetadata) -> Outcome:
        """What the table says of an expiry of data."""
        return self._of_commit(task, metadata, partial(_data_expired, task.task_id, action))

    def data_undo(self, task: Task, action: UndoExpireData, metadata: TableMetadata) -> Outcome:
        """What the table says of rows that were inserted again."""
        return self._of_commit(task, metadata, partial(_data_inserted, action))

    def expiry(self, task: Task, action: ExpireSnapshots, metadata: TableMetadata) -> Outcome:
        """What the table says of an expiry of snapshots."""
        return Outcome(expired(action, metadata, self.expiry_problem(task, metadata)))

    def expiry_undo(self, task: Task, action: UndoExpiry, metadata: TableMetadata) -> Outcome:
        """What the table says of snapshots that were put back."""
        return Outcome(undone(action, task.task_id, metadata, self.undo_problem(task, metadata)))

    def rollback(self, task: Task, action: Rollback, metadata: TableMetadata) -> Outcome:
        """What the table says of a rollback."""
        return Outcome(rolled_back(action, task.task_id, metadata))

    def files(self, task: Task, _action: Action, _metadata: TableMetadata) -> Outcome:
        """What is written down of files that were moved, which no table knows of."""
        return Outcome(self.files_outcome(task))

    def statistics(self, task: Task, action: ComputeStatistics, metadata: TableMetadata) -> Outcome:
        """What the table says of statistics. That they have gone with their snapshot since is no alarm."""
        if computed(action, metadata) is None and metadata.snapshot(action.base_snapshot_id) is None:
            return Outcome(
                Reason(UNVERIFIED, "the commit was reported; its snapshot has expired since, with all statistics")
            )
        if computed(action, metadata) is None:
            return Outcome(Reason(COMMIT_NOT_FOUND, "the commit was reported, and the snapshot has no such statistics"))
        problem = problem_of_commit(self.observer.catalog(task.table_name.catalog), metadata, action)
        if problem is None:
            return Outcome(verified_statistics(action, metadata))
        seen = problem.code != STATISTICS_UNSEEN
        text = problem.text if seen else f"the statistics are there; {problem.text}"
        return Outcome(Reason(VERIFICATION_FAILED if seen else UNVERIFIED, text, problem.figures))

    def analysis(self, task: Task, action: AnalyzeQueries, metadata: TableMetadata) -> Outcome:
        """What an analysis found: no table knows of it, so that it is checked by itself, and kept where it holds."""
        attempt = next((a for a in self.tasks.attempts(task.task_id) if a.attempt == task.attempt), None)
        report = None if attempt is None else report_of(attempt)
        if report is None or not report.answer:
            return Outcome(Reason(UNVERIFIED, "the analysis ended, and its report has no answer"))
        if len(report.answer) > ANSWER_LENGTH_MAX:
            return Outcome(_failed(f"the answer has {len(report.answer):,} characters"))
        try:
            if action.measure is not None:
                return Outcome(self._measured(task, action, loads(Measured, report.answer), metadata))
            found = loads(Recommendation, report.answer)
        except (InvalidMessage, OverflowError, RecursionError) as error:
            return Outcome(_failed(f"the answer is no recommendation: {str(error)[:500]}"))
        said = task.prediction
        if not isinstance(said, AnalyzeQueriesPrediction):
            raise TypeError(f"task {task.task_id} analyzes no queries")
        problem = recommendation_problem(found, task.table_name, action, said, metadata)
        if problem is not None:
            return Outcome(_failed(problem))
        if self.recommendations is not None:
            found = unless_reverted(found, task.table_id, self.recommendations)
            self.recommendations.keep(task.table_id, task.task_id, self.tasks.now(), found)
        return Outcome(Reason("verified", f"{found.candidate}: {found.reason.text}", {"trials": len(found.trials)}))

    def _measured(self, task: Task, action: AnalyzeQueries, found: Measured, metadata: TableMetadata) -> Reason:
        if self.measuring is None:
            return Reason(UNVERIFIED, "this server keeps no measurements")
        kept = self.measuring.keep(task, action, found, metadata)
        return _failed(kept) if isinstance(kept, str) else kept

    def _of_commit(self, task: Task, metadata: TableMetadata, said: _Said) -> Outcome:
        """What the table says of a task that is committed as a whole, compared with the snapshot before it."""
        snapshot = snapshot_made_by(task, metadata)
        if snapshot is None:
            return Outcome(_not_found(), reported_snapshot(task))
        parent = metadata.snapshot(snapshot.parent_id)
        if parent is None:
            return Outcome(_nothing_to_compare(snapshot), snapshot.snapshot_id)
        catalog = self.observer.catalog(task.table_name.catalog)
        return Outcome(said(catalog, metadata, parent, snapshot), snapshot.snapshot_id)

    def _verdict(
        self, catalog: Catalog, metadata: TableMetadata, snapshot: Snapshot, task: Task, action: RewriteDataFiles
    ) -> Outcome:
        parent = metadata.snapshot(snapshot.parent_id)
        if parent is None:
            return Outcome(_nothing_to_compare(snapshot), snapshot.snapshot_id)
        part = committed_part(action, snapshot)
        if part is None:
            said = snapshot.summary.get(GROUPS_KEY, "")
            text = f"its summary says {GROUPS_KEY}={said[:100]!r}, which are no groups of the action"
            return Outcome(_failed(text), snapshot.snapshot_id)
        changes = changes_between(catalog, metadata, parent, snapshot, part)
        problem = problem_of(part, snapshot, changes)
        if problem is not None:
            return Outcome(_failed(problem), snapshot.snapshot_id)
        left = self._left(task, action, snapshot, part)
        reason = verified(action, part, changes, left)
        prediction = task.rewrite_prediction
        looked_up = {} if prediction is None else measured_lookups(catalog, metadata, snapshot, part, prediction)
        return Outcome(replace(reason, figures={**reason.figures, **looked_up}), snapshot.snapshot_id)

    def _left(
        self, task: Task, action: RewriteDataFiles, snapshot: Snapshot, part: RewriteDataFiles
    ) -> list[GroupLeft]:
        """Why groups are not in the commit, as the attempt reported it: for people, and without any consequence."""
        committed = {group.group_id for group in part.groups}
        reports = [report_of(a) for a in self.tasks.attempts(task.task_id) if a.attempt == snapshot.attempt]
        said = {left.group_id: left for report in reports if report is not None for left in report.left}
        missing = [group.group_id for group in action.groups if group.group_id not in committed]
        return [said.get(number) or GroupLeft(number, "", "", retryable=True) for number in missing]


_Said: TypeAlias = Callable[[Catalog, TableMetadata, Snapshot, Snapshot], Reason]
"""What is found between the snapshot before a commit and the one that it made, in this order."""


def _manifests_rewritten(
    action: RewriteManifests, catalog: Catalog, metadata: TableMetadata, parent: Snapshot, snapshot: Snapshot
) -> Reason:
    changed = manifests_changed(catalog, metadata, parent, snapshot, action)
    problem = problem_of_manifests(action, parent, snapshot, changed)
    return verified_manifests(action, changed) if problem is None else _failed(problem)


def _deletes_changed(
    action: RemoveDanglingDeletes | RewritePositionDeletes,
    catalog: Catalog,
    metadata: TableMetadata,
    parent: Snapshot,
    snapshot: Snapshot,
) -> Reason:
    changes = changes_between(catalog, metadata, parent, snapshot)
    if isinstance(action, RemoveDanglingDeletes):
        problem = problem_of_dangling(action, snapshot, changes)
        return verified_dangling(action, parent, snapshot) if problem is None else _failed(problem)
    problem = problem_of_position_deletes(action, snapshot, changes)
    if problem is not None:
        return _failed(problem)
    measured = measured_costs(catalog, metadata, parent, snapshot, action)
    return verified_position_deletes(action, parent, snapshot, changes, measured)


def _data_expired(
    task_id: str,
    action: ExpireData,
    catalog: Catalog,
    metadata: TableMetadata,
    parent: Snapshot,
    snapshot: Snapshot,
) -> Reason:
    changed = data_changed(catalog, metadata, parent, snapshot, action)
    problem = problem_of_data(task_id, action, metadata, parent, snapshot, changed)
    return verified_data(task_id, action, changed) if problem is None else _failed(problem)


def _data_inserted(
    action: UndoExpireData, catalog: Catalog, metadata: TableMetadata, parent: Snapshot, snapshot: Snapshot
) -> Reason:
    changed = inserted_between(catalog, metadata, parent, snapshot)
    problem = problem_of_insert(action, metadata, snapshot, changed)
    figures = {"sequence_number": snapshot.sequence_number}
    if problem is not None:
        return replace(_failed(problem), figures=figures)
    unseen = unseen_of_insert(action, metadata, snapshot)
    if unseen is not None:
        return Reason(UNVERIFIED, f"committed as snapshot {snapshot.snapshot_id}; {unseen}", figures)
    return verified_insert(action, snapshot, changed)


def _failed(problem: str) -> Reason:
    return Reason(VERIFICATION_FAILED, problem)


def _not_found() -> Reason:
    return Reason(COMMIT_NOT_FOUND, "the commit was reported, and no snapshot of the table carries this task")


def _nothing_to_compare(snapshot: Snapshot) -> Reason:
    text = f"committed as snapshot {snapshot.snapshot_id}; the one before has expired: nothing to compare with"
    return Reason(UNVERIFIED, text)


def expired(action: ExpireSnapshots, metadata: TableMetadata, problem: Reason | None) -> Reason:
    """What the table says of an expiry: all that was to go is gone, and nothing else went with it.

    ``problem`` is what the state of before the commit has and the one of after has not, by the table's own log. A log
    that writers have trimmed since, or that a catalog does not keep, is no alarm: there is nothing to compare with.
    """
    left = left_of(action, metadata)
    if left:
        return Reason(COMMIT_NOT_FOUND, f"the commit was reported, and the table still has {left[0]}")
    if problem is not None and problem.code == EXPIRY_UNSEEN:
        return Reason(UNVERIFIED, f"everything that was to expire is removed; {problem.text}")
    if problem is not None:
        return Reason(VERIFICATION_FAILED, problem.text, problem.figures)
    figures = {
        "snapshots_removed": len(action.snapshot_ids),
        "refs_removed": len(action.refs_removed),
        "snapshots_left": len(metadata.snapshots),
    }
    text = f"{wording.count(len(action.snapshot_ids), 'snapshot')} expired, {len(metadata.snapshots):,} left"
    return Reason("verified", text, figures)


def undone(action: UndoExpiry, task_id: str, metadata: TableMetadata, problem: Reason | None) -> Reason:
    """What the table says of an undo: all is back, or was and has gone again; ``problem`` is what came otherwise."""
    if action.second is not None:
        text = f"what task {action.undone_task_id} took can be read from {wording.cut(str(action.second.name))}"
        return problem or Reason(
            "verified", text, {"snapshots_back": len(action.snapshot_ids), "refs_back": len(action.refs)}
        )
    missing, signed = missing_of(action, metadata), metadata.properties.get(SIGNATURE_KEY) == task_id
    if missing and not signed:
        return Reason(COMMIT_NOT_FOUND, f"the commit was reported, and the table does not have {missing[0]}")
    if problem is not None:
        return problem
    figures = {
        "snapshots_back": len(action.snapshot_ids),
        "refs_back": len(action.refs),
        "snapshots": len(metadata.snapshots),
    }
    text = f"{wording.count(len(action.snapshot_ids), 'snapshot')} of task {action.undone_task_id} put back"
    if action.refs:
        text += f", {wording.count(len(action.refs), 'ref')} too"
    if missing:
        text += f"; missing again since: {wording.cut(missing[0])}"
    return Reason("verified", text, figures)


def rolled_back(action: Rollback, task_id: str, metadata: TableMetadata) -> Reason:
    """What the table says of a rollback: the commit is there, and all that came since came after that snapshot."""
    if not is_signed(task_id, metadata):
        return Reason(COMMIT_NOT_FOUND, "the commit was reported, and the table is not signed by this task")
    line = [one.snapshot_id for one in metadata.ancestors()]
    lost = action.base_snapshot_id if action.undone_task_id is None else None
    text = f"main was set from snapshot {action.base_snapshot_id} to {action.snapshot_id}"
    if lost in line:
        return Reason("verified", f"{text}; it was set forward again since")
    if action.snapshot_id not in line:
        return Reason("verified", f"{text}; it was set elsewhere since")
    return Reason("verified", text, {"commits_since": line.index(action.snapshot_id)})


def verified(action: RewriteDataFiles, part: RewriteDataFiles, changes: Changes, left: Sequence[GroupLeft]) -> Reason:
    """What a commit brought that is as it should be; ``part`` of the action was committed."""
    deleted, fewer = changes.deleted_records, -sum(delta.data_files for delta in changes.deltas.values())
    added = part.input_files - fewer
    figures: dict[str, int | float | str] = {
        "groups": len(action.groups),
        "groups_committed": len(part.groups),
        "data_files_removed": part.input_files,
        "data_files_added": added,
        "data_files_fewer": fewer,
        "data_files_fewer_predicted": action.input_files - action.output_files,
        "records": part.record_count - deleted,
        "deleted_records": deleted,
        "input_bytes": part.input_bytes,
        "output_bytes": part.input_bytes + sum(delta.data_bytes for delta in changes.deltas.values()),
        "level": action.level.value,
        "executors": "+".join(sorted({group.executor for group in part.groups})),
    }
    text = f"{wording.count(part.input_files, 'file')} became {added:,}, "
    text += (
        f"the same {part.record_count:,} rows"
        if not deleted
        else f"{part.record_count - deleted:,} rows without the {deleted:,} deleted ones"
    )
    if left:
        text = f"{len(part.groups):,} of {wording.count(len(action.groups), 'group')}: {text}; {_said_of_left(left)}"
    return Reason("verified", text, figures)


def _said_of_left(left: Sequence[GroupLeft]) -> str:
    met = sum(group.code == GROUP_CONFLICT for group in left)
    failed = [group for group in left if group.code not in ("", GROUP_CONFLICT)]
    unknown = len(left) - met - len(failed)
    said = []
    if met:
        said.append(f"{met:,} met another commit and {'is' if met == 1 else 'are'} planned again")
    if failed:
        said.append(f"{len(failed):,} failed ({failed[0].code}: {failed[0].detail})")
    if unknown:
        said.append(f"{unknown:,} {'was' if unknown == 1 else 'were'} left out")
    return "; ".join(said)
