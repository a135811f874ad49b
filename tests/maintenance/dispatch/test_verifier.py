"""Whether a task took effect is told by the table, not by a report; and what a commit did, by its manifests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from icewright.core.errors import Conflict, NotAllowed, NotFound, Unavailable, Unreadable
from icewright.maintenance.dispatch.verifier import MISSING_TABLE_TIMEOUT_MS, VERIFY_TIMEOUT_MS
from icewright.model.actions.actions import Executor, RewriteDataFiles
from icewright.model.iceberg.files import UNPARTITIONED, FileContent, FileFormat, Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import GROUPS_KEY, LAYOUT_KEY, LEVEL_KEY, PROOF_KEY, TASK_ID_KEY
from icewright.model.work.breaker import FAILURES_MAX
from icewright.model.work.jobs import Committed, CommitUnknown, Result, TaskSpec
from icewright.model.work.tasks import AttemptState, Task, TaskState
from icewright.plans.evidence.service import Changes, _fewest_files, changes_between, committed_part, problem_of
from tests.builders.lakehouse import BONN, HOUR_MS, KYOTO, LEASE_MS, NAME, Lakehouse
from tests.builders.worker import FINAL, STOPPED, Worker, at_work, succeeded
from tests.cases import each_case
from tests.doubles.lake import MemoryFile
from tests.narrowing import not_none


@pytest.fixture
def house() -> Lakehouse:
    house = Lakehouse().with_ready_table()
    house.control.maintainer.look(NAME)
    return house


NOTHING = RewriteDataFiles(0, 0, (), 1)


def in_doubt(_house: Lakehouse, worker: Worker) -> tuple[TaskSpec, Task]:
    """A task whose optimizer cannot tell whether it committed."""
    spec = worker.claimed()
    return spec, worker.commit_unknown(spec)


def lost(house: Lakehouse, worker: Worker) -> tuple[TaskSpec, Task]:
    """A task whose optimizer is not heard of any more."""
    spec = worker.claimed()
    house.pass_time(LEASE_MS)
    (task,) = house.tasks.expired(10)
    return spec, house.control.dispatcher.lease_expired(task)


def code(task: Task) -> str:
    return not_none(task.outcome).reason.code


# Doubts.


@pytest.mark.parametrize("doubt", [in_doubt, lost])
def test_a_commit_may_still_arrive_for_as_long_as_a_lease(house: Lakehouse, doubt: type) -> None:
    worker = Worker(house)
    spec, task = doubt(house, worker)
    house.pass_time(LEASE_MS - 1)
    assert house.control.verifier.settle(task) == task
    snapshot = worker.commit(spec)
    house.pass_time(1)
    settled = house.control.verifier.settle(task)
    assert settled.state is TaskState.COMMITTED
    assert not_none(settled.outcome).snapshot_id == snapshot.snapshot_id
    assert house.tasks.attempts(task.task_id)[-1].state is AttemptState.COMMITTED


def test_a_lost_attempt_without_a_commit_is_tried_again(house: Lakehouse) -> None:
    _, task = lost(house, Worker(house))
    house.pass_time(LEASE_MS)
    settled = house.control.verifier.settle(task)
    assert (settled.state, code(settled)) == (TaskState.QUEUED, "not-committed")
    assert settled.not_before_at > house.clock.now()
    assert house.tasks.attempts(task.task_id)[-1].state is AttemptState.LOST


def test_work_that_kills_its_optimizers_ends(house: Lakehouse) -> None:
    for _ in range(3):
        _, task = lost(house, Worker(house))
        house.pass_time(LEASE_MS)
        task = house.control.verifier.settle(task)
        house.pass_time(task.not_before_at - house.clock.now())
    assert task.state is TaskState.FAILED


def test_an_unknown_commit_that_is_not_there_is_planned_again(house: Lakehouse) -> None:
    _, task = in_doubt(house, Worker(house))
    house.pass_time(LEASE_MS)
    settled = house.control.verifier.settle(task)
    assert (settled.state, code(settled)) == (TaskState.SUPERSEDED, "not-committed")
    assert house.control.maintainer.look(NAME).enqueued is not None


@pytest.mark.parametrize("doubt", [in_doubt, lost])
def test_a_task_in_doubt_that_was_asked_to_stop_is_not_tried_again(house: Lakehouse, doubt: type) -> None:
    _, task = doubt(house, Worker(house))
    task = house.control.dispatcher.cancel(task.task_id)
    house.pass_time(LEASE_MS)
    assert house.control.verifier.settle(task).state is TaskState.CANCELLED


def test_a_commit_that_came_before_the_cancel_counts(house: Lakehouse) -> None:
    worker = Worker(house)
    spec, task = in_doubt(house, worker)
    worker.commit(spec)
    task = house.control.dispatcher.cancel(task.task_id)
    house.pass_time(LEASE_MS)
    assert house.control.verifier.settle(task).state is TaskState.COMMITTED


@pytest.mark.parametrize(
    ("result", "state", "reason"),
    [(FINAL, TaskState.FAILED, "proof-failed"), (STOPPED, TaskState.CANCELLED, "cancelled")],
)
def test_a_later_attempt_that_ended_so_has_ended_so_when_no_commit_is_found(
    house: Lakehouse, result: Result, state: TaskState, reason: str
) -> None:
    worker = Worker(house)
    _, task = lost(house, worker)
    house.pass_time(LEASE_MS)
    task = house.control.verifier.settle(task)
    house.pass_time(task.not_before_at - house.clock.now())
    spec = worker.claimed()
    if result is STOPPED:
        house.control.dispatcher.cancel(spec.task_id)
    task = worker.report(spec, result)
    assert task.state is TaskState.IN_DOUBT
    house.pass_time(LEASE_MS)
    settled = house.control.verifier.settle(task)
    assert (settled.state, code(settled)) == (state, reason)


@pytest.mark.parametrize("recreated", [False, True])
def test_a_doubt_about_a_table_that_is_gone_is_over(house: Lakehouse, *, recreated: bool) -> None:
    _, task = in_doubt(house, Worker(house))
    house.catalog.drop(NAME)
    if recreated:
        house.create()
    house.pass_time(LEASE_MS)
    settled = house.control.verifier.settle(task)
    assert (settled.state, code(settled)) == (TaskState.SUPERSEDED, "table-gone")


def test_a_table_that_cannot_be_asked_leaves_the_doubt(house: Lakehouse) -> None:
    _, task = in_doubt(house, Worker(house))
    house.pass_time(LEASE_MS)
    house.catalog.available = False
    with pytest.raises(Unavailable):
        house.control.verifier.settle(task)
    house.restart(without=frozenset({"lake"}))
    with pytest.raises(NotFound):
        house.control.verifier.settle(task)
    with pytest.raises(NotFound):
        house.control.verifier.verify(task)
    assert house.tasks.get(task.task_id) == task


def test_a_task_that_changed_meanwhile_is_left_alone(house: Lakehouse) -> None:
    _, task = in_doubt(house, Worker(house))
    house.control.dispatcher.cancel(task.task_id)
    house.pass_time(2 * LEASE_MS)
    with pytest.raises(Conflict):
        house.control.verifier.settle(task)


# Commits.


def test_a_verified_commit_says_what_it_brought(house: Lakehouse) -> None:
    task = house.control.verifier.verify(Worker(house).carry_out())
    assert (task.state, code(task)) == (TaskState.SUCCEEDED, "verified")
    assert task.outcome is not None
    assert task.outcome.snapshot_id == house.metadata().current_snapshot_id
    assert task.outcome.reason.figures == {
        "groups": 1,
        "groups_committed": 1,
        "data_files_removed": 8,
        "data_files_added": 1,
        "data_files_fewer": 7,
        "data_files_fewer_predicted": 7,
        "records": 80,
        "deleted_records": 0,
        "input_bytes": 8 * 1024 * 1024,
        "output_bytes": 8 * 1024 * 1024,
        "level": "level-0",
        "executors": "merge",
    }


def test_appends_around_the_commit_are_not_counted(house: Lakehouse) -> None:
    house.append(3)
    reported = Worker(house).carry_out()
    house.append(2, KYOTO)
    assert house.control.verifier.verify(reported).state is TaskState.SUCCEEDED


def test_w1_a_lost_row_is_an_alarm(house: Lakehouse) -> None:
    task = house.control.verifier.verify(Worker(house, lost_rows=1).carry_out())
    assert (task.state, code(task)) == (TaskState.FAILED, "verification-failed")
    assert task.outcome is not None
    assert "-1 rows" in task.outcome.reason.text
    assert task.outcome.snapshot_id is not None


def test_w7_a_report_of_a_commit_that_is_not_there_is_not_believed(house: Lakehouse) -> None:
    worker = Worker(house)
    task = worker.report(worker.claimed(), Committed(house.metadata().current_snapshot_id or 0))
    assert (house.control.verifier.verify(task).state, code(house.only_task())) == (
        TaskState.FAILED,
        "commit-not-found",
    )


def test_the_snapshot_that_counts_carries_the_task_whatever_the_report_says(house: Lakehouse) -> None:
    worker, spec = at_work(house)
    snapshot = worker.commit(spec)
    task = house.control.verifier.verify(worker.report(spec, Committed(1)))
    assert succeeded(task).snapshot_id == snapshot.snapshot_id


@pytest.mark.parametrize("recreated", [False, True])
def test_a_table_that_is_gone_cannot_be_verified(house: Lakehouse, *, recreated: bool) -> None:
    task = Worker(house).carry_out()
    house.catalog.drop(NAME)
    if recreated:
        house.create()
    assert house.control.verifier.verify(task) is task  # it may have been renamed, and be found under its new name
    house.pass_time(MISSING_TABLE_TIMEOUT_MS)
    assert (house.control.verifier.verify(task).state, code(house.only_task())) == (TaskState.FAILED, "unverified")


def test_a_snapshot_without_its_parent_is_there_and_cannot_be_compared(house: Lakehouse) -> None:
    task = Worker(house).carry_out()
    metadata = house.metadata()
    house.catalog.expire(NAME, [s.snapshot_id for s in metadata.snapshots if s != metadata.current_snapshot])
    verified = house.control.verifier.verify(task)
    assert (verified.state, code(verified)) == (TaskState.SUCCEEDED, "unverified")
    assert not_none(verified.outcome).snapshot_id == metadata.current_snapshot_id


@pytest.mark.parametrize("replaced", [False, True])
def test_a_renamed_table_is_verified_under_its_new_name(house: Lakehouse, *, replaced: bool) -> None:
    task = Worker(house).carry_out()
    renamed = TableName("lake", ("db",), "renamed")
    house.catalog.rename(NAME, renamed)
    house.control.maintainer.look(renamed)
    if replaced:
        house.create()
    verified = house.control.verifier.verify(task)
    assert (verified.state, code(verified)) == (TaskState.SUCCEEDED, "verified")


def test_commits_that_nobody_can_verify_do_not_park_the_table(house: Lakehouse) -> None:
    renamed = TableName("lake", ("db",), "renamed")
    for _ in range(FAILURES_MAX):
        task = Worker(house).carry_out()
        house.catalog.rename(NAME, renamed)
        house.pass_time(MISSING_TABLE_TIMEOUT_MS)
        assert house.control.verifier.verify(task).state is TaskState.FAILED
        house.catalog.rename(renamed, NAME)
        house.append(8)
        house.pass_time(HOUR_MS)
        assert house.control.maintainer.look(NAME).enqueued is not None


def test_an_expired_snapshot_cannot_be_verified(house: Lakehouse) -> None:
    task = Worker(house).carry_out()
    rewrite = house.metadata().current_snapshot_id or 0
    house.append(1)
    house.catalog.expire(NAME, [rewrite])
    assert (house.control.verifier.verify(task).state, code(house.only_task())) == (
        TaskState.FAILED,
        "commit-not-found",
    )


def test_an_unreadable_table_is_waited_for_but_not_for_ever(house: Lakehouse) -> None:
    task = Worker(house).carry_out()
    snapshot = not_none(house.metadata().current_snapshot)
    house.catalog.damage(snapshot.manifest_list)
    house.pass_time(VERIFY_TIMEOUT_MS - 1)
    with pytest.raises(Unreadable):
        house.control.verifier.verify(task)
    house.pass_time(1)
    verified = house.control.verifier.verify(task)
    assert (verified.state, code(verified)) == (TaskState.FAILED, "unverified")


def test_a_catalog_that_is_away_is_waited_for(house: Lakehouse) -> None:
    task = Worker(house).carry_out()
    house.catalog.available = False
    house.pass_time(2 * VERIFY_TIMEOUT_MS)
    with pytest.raises(Unavailable):
        house.control.verifier.verify(task)
    assert house.only_task() == task


def test_what_a_commit_did_to_other_partitions_is_noticed(house: Lakehouse) -> None:
    """Rows moved from one partition to another: the sum is right, the table is not."""
    worker, spec = at_work(house)
    house.append(1, KYOTO)
    paths = [file.path for group in spec.rewrite.groups for file in group.files]
    moved = [MemoryFile("bonn", BONN, 1, 79), MemoryFile("kyoto", KYOTO, 1, 1)]
    house.catalog.commit_rewrite(
        NAME,
        base_snapshot_id=spec.rewrite.base_snapshot_id,
        remove=paths,
        add=moved,
        summary={TASK_ID_KEY: spec.task_id},
    )
    task = house.control.verifier.verify(worker.report(spec, Committed(1)))
    assert (task.state, code(task)) == (TaskState.FAILED, "verification-failed")


def test_what_changed_is_compared_with_the_action_in_files_rows_and_deletes(house: Lakehouse) -> None:
    action: RewriteDataFiles = house.only_task().rewrite
    before = house.metadata()
    Worker(house).carry_out()
    metadata = house.metadata()
    parent, snapshot = before.current_snapshot, metadata.current_snapshot
    assert parent is not None
    assert snapshot is not None
    changes = changes_between(house.catalog, metadata, parent, snapshot, action)
    assert problem_of(action, snapshot, changes) is None
    delta = changes.deltas[BONN]
    wrong = [
        {},
        {BONN: delta, KYOTO: replace(delta, data_files=0, records=-1)},
        {BONN: delta, KYOTO: delta},
        {BONN: replace(delta, records=1)},
        {BONN: replace(delta, records=-1)},
        {BONN: replace(delta, data_files=-6)},
    ]
    for deltas in wrong:
        assert problem_of(action, snapshot, replace(changes, deltas=deltas)) is not None
    (group,) = action.groups
    few = replace(group, output_files=3, files=tuple(replace(f, record_count=n < 2) for n, f in enumerate(group.files)))
    assert [_fewest_files(each) for each in (few, replace(few, executor=Executor.SHUFFLE))] == [2, 1]
    for executor, fewest in ((Executor.SHUFFLE, 1), (Executor.STAGED, 3)):
        several = replace(action, groups=(replace(group, executor=executor, output_files=3),))
        for files in range(5):
            deltas = {BONN: replace(delta, data_files=files - len(group.files))}
            problem = problem_of(several, snapshot, replace(changes, deltas=deltas))
            assert (problem is None) is (fewest <= files <= 3), problem


def test_delete_files_that_a_commit_drops_are_noticed(house: Lakehouse) -> None:
    deletes = MemoryFile("d", KYOTO, 100, 3, content=FileContent.POSITION_DELETES)
    parent = house.catalog.overwrite(NAME, add=[deletes, *house.files(1, KYOTO)], remove=[])
    snapshot = house.catalog.delete(NAME, ["d"])
    changes = changes_between(house.catalog, house.metadata(), parent, snapshot, NOTHING)
    assert changes.deltas[KYOTO].delete_files == -1
    assert (
        [delete.path for delete in changes.removed_deletes] == [delete.path for delete in changes.lost_deletes] == ["d"]
    )


# Commits of some groups.


def two_groups() -> tuple[Lakehouse, Worker, TaskSpec]:
    """A task of two groups, of eight files each in Bonn and in Kyoto, one row of Kyoto's deleted since."""
    house = Lakehouse()
    house.create()
    house.append(8)
    files = house.files(8, KYOTO)
    house.catalog.append(NAME, files)
    house.pass_time(HOUR_MS)
    assert house.control.maintainer.look(NAME).enqueued is not None
    worker, spec = at_work(house)
    assert [group.partition for group in spec.rewrite.groups] == [BONN, KYOTO]
    delete = MemoryFile("d", KYOTO, 100, 1, content=FileContent.POSITION_DELETES, referenced_data_file=files[0].path)
    house.catalog.overwrite(NAME, add=[delete], remove=[])
    return house, worker, spec


def test_w7_the_groups_that_met_no_other_commit_are_verified_and_the_others_planned_again() -> None:
    house, worker, spec = two_groups()
    task = house.control.verifier.verify(worker.report(spec, worker.try_commit(spec)))
    assert (task.state, code(task)) == (TaskState.SUCCEEDED, "verified")
    assert task.outcome is not None
    said = "1 of 2 groups: 8 files became 1, the same 80 rows; 1 met another commit and is planned again"
    assert task.outcome.reason.text == said
    assert task.outcome.reason.figures["groups_committed"] == 1
    assert task.outcome.reason.figures["data_files_removed"] == 8
    house.pass_time(HOUR_MS)
    house.control.maintainer.look(NAME)
    (again,) = [t for t in house.all_tasks() if t.state is TaskState.QUEUED]
    assert [group.partition for group in again.rewrite.groups] == [KYOTO]
    house.control.verifier.verify(worker.carry_out())
    assert [t.state for t in house.all_tasks()] == [TaskState.SUCCEEDED] * 2


def test_a_commit_in_part_whose_attempt_never_reported_is_verified_by_the_table() -> None:
    house, worker, spec = two_groups()
    worker.try_commit(spec)
    house.pass_time(LEASE_MS)
    (task,) = house.tasks.expired(10)
    house.control.dispatcher.lease_expired(task)
    house.pass_time(LEASE_MS)
    house.rounds(2)
    assert house.only_task().state is TaskState.SUCCEEDED
    outcome = not_none(house.only_task().outcome)
    assert outcome.reason.text == "1 of 2 groups: 8 files became 1, the same 80 rows; 1 was left out"


@each_case("said", [None, "0-1", "1", "0,1", "", "00", "0-0", "0,7", "7", "-1", "0-999999999", "x" * 9999])
def test_w7_a_commit_in_part_has_to_say_of_which_part_it_is(said: str | None) -> None:
    house, worker, spec = two_groups()
    worker.look(spec)
    parent = house.metadata().current_snapshot
    worker.commit(spec)
    metadata = house.metadata()
    assert parent is not None
    assert metadata.current_snapshot is not None
    summary = {**metadata.current_snapshot.summary, GROUPS_KEY: said or ""}
    if said is None:
        del summary[GROUPS_KEY]
    snapshot = replace(metadata.current_snapshot, summary=summary)
    part = committed_part(spec.rewrite, snapshot)
    if part is not None:
        assert problem_of(part, snapshot, changes_between(house.catalog, metadata, parent, snapshot, part)) is not None
    part = committed_part(spec.rewrite, metadata.current_snapshot)
    assert part == spec.rewrite.only([0])
    assert problem_of(part, snapshot, changes_between(house.catalog, metadata, parent, snapshot, part)) is None


def test_a_commit_with_groups_that_the_action_does_not_have_is_an_alarm() -> None:
    house, worker, spec = two_groups()
    worker.lost[spec.task_id, spec.attempt] = {1: "a delete"}
    worker.groups_said = "0,7"
    task = house.control.verifier.verify(worker.report(spec, worker.try_commit(spec)))
    assert (task.state, code(task)) == (TaskState.FAILED, "verification-failed")


@pytest.mark.parametrize("lost_rows", [0, 1])
def test_every_part_that_attempts_at_a_task_committed_is_verified(lost_rows: int) -> None:
    """The job does what it can to prevent a second part; where that came too late, both have to be right."""
    house, worker, spec = two_groups()
    snapshot = worker.try_commit(spec)
    house.catalog.delete(NAME, ["d"])
    other = Worker(house, lost_rows=lost_rows)
    part = spec.rewrite.only([1])
    house.catalog.commit_rewrite(
        NAME,
        base_snapshot_id=spec.rewrite.base_snapshot_id,
        remove=[file.path for group in part.groups for file in group.files],
        add=other._outputs(spec, part.groups[0]),
        summary=other._summary(spec, part),
    )
    task = house.control.verifier.verify(worker.report(spec, snapshot))
    expected = (TaskState.FAILED, "verification-failed") if lost_rows else (TaskState.SUCCEEDED, "verified")
    assert (task.state, code(task)) == expected


@pytest.mark.parametrize("leaves_one_out", [True, False])
def test_other_files_than_those_of_the_action_are_an_alarm(house: Lakehouse, *, leaves_one_out: bool) -> None:
    """As many files and rows as planned, of the same partition, but one of them is another one."""
    worker, spec = at_work(house)
    house.append(1)
    stranger = next(f.path for f in house.catalog.live_files(NAME) if f.path not in _inputs(spec))
    paths = sorted(_inputs(spec))
    parent = house.metadata().current_snapshot
    removed = [*paths[1:], stranger] if leaves_one_out else paths
    summary = worker._summary(spec, spec.rewrite)
    output = MemoryFile("out", BONN, 1, 80)
    snapshot = house.catalog.commit_rewrite(
        NAME, base_snapshot_id=spec.rewrite.base_snapshot_id, remove=removed, add=[output], summary=summary
    )
    changes = changes_between(house.catalog, house.metadata(), not_none(parent), snapshot, spec.rewrite)
    assert problem_of(spec.rewrite, snapshot, changes) == (
        f"1 input files are still listed, first {paths[0]}" if leaves_one_out else None
    )
    assert "9 files of partition" in str(
        problem_of(spec.rewrite, snapshot, replace(changes, kept_files=frozenset(), removed_files={BONN: 9}))
    )


def _inputs(spec: TaskSpec) -> set[str]:
    return {file.path for group in spec.rewrite.groups for file in group.files}


# Deletes.


@pytest.fixture
def deleted_from() -> Lakehouse:
    """Eight files of ten rows, three of the rows deleted by position deletes, which were planned."""
    return planned_with_deletes(2)


def planned_with_deletes(format_version: int) -> Lakehouse:
    house = Lakehouse()
    house.create(format_version=format_version)
    files = house.files(8)
    house.catalog.append(NAME, files)
    house.catalog.overwrite(NAME, add=[deletes_of(files[n], n + 1, format_version) for n in range(2)], remove=[])
    house.pass_time(2 * HOUR_MS)
    assert house.control.maintainer.look(NAME).enqueued is not None
    return house


def deletes_of(file: MemoryFile, records: int, format_version: int = 2) -> MemoryFile:
    form = FileFormat.PARQUET if format_version == 2 else FileFormat.PUFFIN
    position = FileContent.POSITION_DELETES
    return MemoryFile(f"{file.path}-deletes", BONN, 100, records, form, position, referenced_data_file=file.path)


@pytest.mark.parametrize("format_version", [2, 3])
def test_rows_that_deletes_remove_may_be_gone(format_version: int) -> None:
    house = planned_with_deletes(format_version)
    task = house.control.verifier.verify(Worker(house).carry_out())
    assert (task.state, code(task)) == (TaskState.SUCCEEDED, "verified"), task.outcome
    assert task.outcome is not None
    assert task.outcome.reason.text == "8 files became 1, 77 rows without the 3 deleted ones"
    assert (task.outcome.reason.figures["records"], task.outcome.reason.figures["deleted_records"]) == (77, 3)
    left = [file.path for file in house.catalog.live_files(NAME) if file.content is not FileContent.DATA]
    assert len(left) == (2 if format_version == 2 else 0)
    assert house.control.maintainer.look(NAME, plan_anew=True).plan.is_empty


@each_case(("format_version", "lost"), [(2, 1), (2, -4), (3, 1), (3, -1)])
def test_a_row_more_or_less_than_deletes_can_remove_is_an_alarm(format_version: int, lost: int) -> None:
    house = planned_with_deletes(format_version)
    task = house.control.verifier.verify(Worker(house, lost_rows=lost).carry_out())
    assert (task.state, code(task)) == (TaskState.FAILED, "verification-failed")
    assert "its deletes remove" in not_none(task.outcome).reason.text


def test_position_deletes_may_say_less_than_they_list_but_the_proof_has_to_agree(deleted_from: Lakehouse) -> None:
    """A row that two delete files name is gone once: manifests allow that, and then the proof must have counted so."""
    task = deleted_from.control.verifier.verify(Worker(deleted_from, lost_rows=-1).carry_out())
    assert not_none(task.outcome).reason.text == "its proof says records=77, the manifests say 78"


def verdict_on(house: Lakehouse, changes: Callable[[Changes], Changes], **summary: str) -> str | None:
    """What is wrong with the commit of the only task when it did something else, or says so."""
    action: RewriteDataFiles = house.only_task().rewrite
    parent = not_none(house.metadata().current_snapshot)
    Worker(house).carry_out()
    metadata = house.metadata()
    assert metadata.current_snapshot is not None
    snapshot = replace(metadata.current_snapshot, summary={**metadata.current_snapshot.summary, **summary})
    return problem_of(action, snapshot, changes(changes_between(house.catalog, metadata, parent, snapshot, action)))


PROOFS = [
    (None, "m;groups=1;records=77;deleted=3;digest=0"),
    (None, "m;digest=0;deleted=3;records=77;groups=1;more=x"),
    ("its proof says groups=2, the manifests say 1", "m;groups=2;records=77;deleted=3;digest=0"),
    ("its proof says records=80, the manifests say 77", "m;groups=1;records=80;deleted=3;digest=0"),
    ("its proof says deleted=2, the manifests say 3", "m;groups=1;records=77;deleted=2;digest=0"),
    ("its proof says deleted=None, the manifests say 3", "m;groups=1;records=77;digest=0"),
    ("its proof says groups=None, the manifests say 1", ""),
    ("its proof says groups=None, the manifests say 1", "nonsense;;=;"),
]


@pytest.mark.parametrize(("expected", "proof"), PROOFS)
def test_the_proof_in_the_summary_has_to_be_what_the_manifests_say(
    deleted_from: Lakehouse, expected: str | None, proof: str
) -> None:
    assert verdict_on(deleted_from, lambda changes: changes, **{PROOF_KEY: proof}) == expected


@pytest.mark.parametrize("said", [{LEVEL_KEY: "level-1"}, {LAYOUT_KEY: "sort(1)"}, {LEVEL_KEY: ""}])
def test_the_summary_has_to_say_the_order_that_was_planned(house: Lakehouse, said: dict[str, str]) -> None:
    assert "its summary says" in not_none(verdict_on(house, lambda changes: changes, **said))


def test_v3_vectors_of_replaced_files_have_to_go() -> None:
    house = planned_with_deletes(3)
    said = not_none(verdict_on(house, lambda changes: replace(changes, removed_deletes=changes.removed_deletes[1:])))
    assert said.endswith("is still listed, and its file is not")


def test_no_delete_file_may_come_with_a_rewrite() -> None:
    house = planned_with_deletes(3)
    said = verdict_on(house, lambda changes: replace(changes, added_deletes=changes.removed_deletes))
    assert said == "2 delete files were added, first f00000.parquet-deletes"


def test_w5_delete_files_may_go_that_apply_to_nothing_and_no_others(deleted_from: Lakehouse) -> None:
    """Iceberg's own rewrite drops delete files that are older than all data, of any partition."""
    house = deleted_from
    dangling = MemoryFile("old", KYOTO, 100, 3, content=FileContent.POSITION_DELETES)
    house.catalog.overwrite(NAME, add=[dangling], remove=[])
    house.catalog.append(NAME, house.files(1, KYOTO))
    parent = house.catalog.overwrite(
        NAME, add=[MemoryFile("new", KYOTO, 100, 3, content=FileContent.POSITION_DELETES)], remove=[]
    )
    snapshot = house.catalog.delete(NAME, ["old", "new"])
    changes = changes_between(house.catalog, house.metadata(), parent, snapshot, NOTHING)
    assert {delete.path for delete in changes.removed_deletes} == {"old", "new"}
    assert [delete.path for delete in changes.lost_deletes] == ["new"]
    action: RewriteDataFiles = house.only_task().rewrite
    empty = replace(action, groups=())
    proof = replace(snapshot, summary={PROOF_KEY: "m;groups=0;records=0"})
    assert problem_of(empty, proof, changes) == "1 delete files are lost that still apply: new"
    assert problem_of(empty, proof, replace(changes, lost_deletes=())) is None


def test_w5_equality_deletes_of_all_partitions_must_not_go_while_they_apply() -> None:
    house = Lakehouse()
    house.create()
    house.append(2)
    house.catalog.set_spec(NAME, ())
    whole = Partition(1, UNPARTITIONED)
    parent = house.catalog.overwrite(
        NAME, add=[MemoryFile("e", whole, 100, 3, content=FileContent.EQUALITY_DELETES)], remove=[]
    )
    snapshot = house.catalog.delete(NAME, ["e"])
    changes = changes_between(house.catalog, house.metadata(), parent, snapshot, NOTHING)
    assert [delete.path for delete in changes.lost_deletes] == ["e"]


def test_an_optimizer_that_cannot_tell_is_not_asked_twice(house: Lakehouse) -> None:
    worker, spec = at_work(house)
    worker.commit(spec)
    task = worker.report(spec, CommitUnknown("timeout"))
    house.pass_time(LEASE_MS)
    settled = house.control.verifier.settle(task)
    assert house.control.verifier.verify(settled).state is TaskState.SUCCEEDED


# Several snapshots of one task.


def rolled_back(house: Lakehouse, base_snapshot_id: int) -> None:
    house.catalog.set_ref(NAME, "main", base_snapshot_id)


def tried_again(house: Lakehouse, task: Task) -> Task:
    """The lost attempt is given up, and the time of the next one comes."""
    house.pass_time(LEASE_MS)
    task = house.control.verifier.settle(task)
    assert task.state is TaskState.QUEUED
    house.pass_time(task.not_before_at - house.clock.now())
    return task


@pytest.mark.parametrize("told", [True, False])
def test_the_commit_of_the_attempt_counts_not_an_older_one_that_was_rolled_back(
    house: Lakehouse, *, told: bool
) -> None:
    zombie, worker = Worker(house), Worker(house, "optimizer-b", lost_rows=3)
    slow, task = lost(house, zombie)
    tried_again(house, task)
    spec = worker.claimed()
    zombie.commit(slow)
    rolled_back(house, spec.rewrite.base_snapshot_id)
    snapshot = worker.commit(spec)
    task = worker.report(spec, Committed(snapshot.snapshot_id) if told else CommitUnknown("no answer"))
    house.pass_time(LEASE_MS)
    task = task if told else house.control.verifier.settle(task)
    verified = house.control.verifier.verify(task)
    assert (verified.state, code(verified)) == (TaskState.FAILED, "verification-failed")
    assert not_none(verified.outcome).snapshot_id == snapshot.snapshot_id


@pytest.mark.parametrize("rolls_back", [True, False])
def test_what_an_earlier_attempt_committed_is_not_given_out_again(house: Lakehouse, *, rolls_back: bool) -> None:
    zombie = Worker(house)
    slow, task = lost(house, zombie)
    tried_again(house, task)
    snapshot = zombie.commit(slow)
    if rolls_back:
        rolled_back(house, slow.rewrite.base_snapshot_id)
    house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    assert Worker(house, "optimizer-b").claim_if_any() is None
    assert house.only_task().state is TaskState.IN_DOUBT
    house.pass_time(LEASE_MS)
    house.control.loop.round()
    assert house.only_task().state is TaskState.SUCCEEDED
    assert house.only_task().outcome is not None
    assert house.only_task().outcome.snapshot_id == snapshot.snapshot_id  # type: ignore[union-attr]  # it is there


def test_w11_a_task_that_did_commit_is_never_tried_again(house: Lakehouse) -> None:
    """Its owner rolled the damage back and stopped us: no retry brings it again."""
    worker = Worker(house, lost_rows=1)
    base = house.metadata().current_snapshot_id or 0
    task = house.control.verifier.verify(worker.carry_out())
    rolled_back(house, base)
    house.catalog.set_properties(NAME, {"icewright.mode": "observe"})
    with pytest.raises(NotAllowed, match="has been committed"):
        house.control.dispatcher.retry(task.task_id)
    assert worker.claim_if_any() is None
