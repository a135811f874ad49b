"""Data that expires, from what a person asks for to the verified commit; whose clock is wrong, and who comes first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from icewright.core.errors import Conflict, InvalidMessage, NotAllowed
from icewright.model.actions.expire_data import TAG_AGE_MS, ExpireData, ExpireDataRequest, tag_of
from icewright.model.iceberg.files import FileContent, FileFormat, Partition
from icewright.model.iceberg.tables import ATTEMPT_KEY, PROOF_KEY, TASK_ID_KEY, PartitionField, RefKind, Snapshot
from icewright.model.plans.plans import Plan
from icewright.model.work.jobs import CommitUnknown, Conflicted, TaskSpec
from icewright.model.work.tasks import Task, TaskState
from tests.actions.expire_snapshots.test_expiry_service import ended
from tests.builders.lakehouse import HOUR_MS, MIB, NAME, Lakehouse
from tests.builders.worker import Worker, report, succeeded, verified
from tests.cases import each_case
from tests.doubles.lake import MemoryFile
from tests.narrowing import not_none

ASKED = ExpireDataRequest()
DAY_MS = 24 * HOUR_MS
FIELDS = ({"id": 1, "name": "at", "type": "timestamptz", "required": False},)
OWNER = {
    "icewright.expire-data.field": "at",
    "icewright.expire-data.older-than": "P30D",
    "icewright.expire-data.time-zone": "Europe/Berlin",
}


def day(house: Lakehouse, back: int) -> Partition:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=house.clock.now()) - timedelta(days=back)
    return Partition(0, f'["{at:%Y-%m-%d}"]')


@pytest.fixture
def house() -> Lakehouse:
    """A table by day with twenty files of the last days, one that is old, and one that is older."""
    house = Lakehouse()
    house.pass_time(4 * HOUR_MS)  # past midnight
    house.catalog.create(
        NAME, fields=FIELDS, partition_fields=[PartitionField(1, 1000, "at_day", "day")], properties=OWNER
    )
    for back in (*range(20), 40, 50):
        house.catalog.append(NAME, house.files(1, day(house, back), 600 * MIB))
    house.pass_time(2 * HOUR_MS)
    return house


def plan(house: Lakehouse, asked: ExpireDataRequest = ASKED) -> Plan:
    return house.control.maintainer.plan_asked(NAME, asked)


def claim(house: Lakehouse) -> TaskSpec:
    house.control.dispatcher.apply(plan(house).plan_id)
    return Worker(house).claimed()


def action_of(spec: TaskSpec) -> ExpireData:
    assert isinstance(spec.action, ExpireData)
    return spec.action


def tag(house: Lakehouse, spec: TaskSpec, *, snapshot_id: int | None = None, age_ms: int = TAG_AGE_MS) -> None:
    at = snapshot_id or action_of(spec).base_snapshot_id
    house.catalog.set_ref(NAME, tag_of(spec.task_id), at, kind=RefKind.TAG, max_ref_age_ms=age_ms)


def tagged(house: Lakehouse) -> TaskSpec:
    """A task that was claimed, and has set its tag."""
    spec = claim(house)
    tag(house, spec)
    return spec


def delete(
    house: Lakehouse, spec: TaskSpec, paths: Sequence[str] | None = None, *, proof: str = "memory", **other: str
) -> Snapshot:
    """The commit of an attempt, of these paths instead of those that are planned."""
    signed = {TASK_ID_KEY: spec.task_id, ATTEMPT_KEY: str(spec.attempt), PROOF_KEY: proof, **other}
    return house.catalog.delete(NAME, paths or [file.path for file in action_of(spec).files], summary=signed)


def said_of(task: Task) -> str:
    return not_none(task.outcome).reason.text


def test_it_is_planned_applied_and_verified(house: Lakehouse) -> None:
    live = set(house.catalog.live_files(NAME))
    spec = claim(house)
    assert [each.partition for each in action_of(spec).partitions] == [day(house, 50), day(house, 40)]
    tag(house, spec)
    task = verified(house, spec, delete(house, spec))
    assert task.state is TaskState.SUCCEEDED, task.outcome
    kept = f"for 7 d the tag {tag_of(task.task_id)} keeps them"
    assert said_of(task) == f"2 partitions with 2 files and 20 rows expired; {kept}"
    assert len(live - set(house.catalog.live_files(NAME))) == 2
    again = plan(house)
    assert again.reason.code == "nothing-expires"
    with pytest.raises(NotAllowed):
        house.control.dispatcher.apply(again.plan_id)


def test_nothing_expires_before_its_owner_says_by_what(house: Lakehouse) -> None:
    house.catalog.replace_properties(NAME, {})
    found = plan(house, ExpireDataRequest("P30D"))
    assert found.reason.code == "expire-data-off"
    assert found.is_empty


def test_nothing_expires_by_itself(house: Lakehouse) -> None:
    house.rounds(20, every_ms=HOUR_MS)
    assert house.all_tasks() == []


@each_case("age", ["", "PT23H", "P0D", "30", "P1M", "-P30D", "P30D; DROP TABLE x"])
def test_x1_an_age_that_cannot_be_meant_is_refused(house: Lakehouse, age: str) -> None:
    with pytest.raises(InvalidMessage, match="is no age that data may expire at"):
        plan(house, ExpireDataRequest(age))


class TestApproval:
    def test_x1_more_than_a_tenth_of_the_rows_is_not_queued(self, house: Lakehouse) -> None:
        found = plan(house, ExpireDataRequest("P10D"))
        assert not found.is_empty
        with pytest.raises(NotAllowed, match=r"of 220 rows would expire, and without approval it is 10 % at most"):
            house.control.dispatcher.apply(found.plan_id)
        assert house.all_tasks() == []

    def test_x1_i11_what_a_person_approves_is_that_plan_and_no_other(self, house: Lakehouse) -> None:
        found, other = plan(house, ExpireDataRequest("P10D")), plan(house, ExpireDataRequest("P9D"))
        task = house.control.dispatcher.approve(found.plan_id, "ada")
        assert task.action == found.actions[0]
        assert task.reason.figures["approved_by"] == "ada"
        with pytest.raises(NotAllowed, match="has to be approved first"):
            house.control.dispatcher.apply(other.plan_id)

    def test_x4_exactly_the_plan_that_was_looked_at_is_applied(self, house: Lakehouse) -> None:
        narrow, wide = plan(house, ExpireDataRequest("P45D")), plan(house)
        house.control.dispatcher.apply(narrow.plan_id)
        assert Worker(house).claimed().action == narrow.actions[0] != wide.actions[0]


class TestClocks:
    def test_x1_a_commit_of_its_own_moves_nothing(self, house: Lakehouse) -> None:
        """As often as it is done on one day: what is there on the next is all that there was."""
        before = set(house.catalog.live_files(NAME))
        for _ in range(3):
            found = plan(house)
            if not found.is_empty:
                spec = tagged(house)
                verified(house, spec, delete(house, spec))
        assert len(before - set(house.catalog.live_files(NAME))) == 2

    def test_x1_a_server_that_is_ahead_of_its_store_queues_nothing(self, house: Lakehouse) -> None:
        house.server_clock.ahead_ms = 5 * DAY_MS
        found = plan(house)
        with pytest.raises(Conflict, match="the clock was ahead"):
            house.control.dispatcher.apply(found.plan_id)

    def test_x1_a_plan_of_a_clock_that_was_put_back_since_is_not_queued(self, house: Lakehouse) -> None:
        house.server_clock.ahead_ms = house.store_clock.ahead_ms = 5 * DAY_MS
        found = plan(house)
        house.server_clock.ahead_ms = house.store_clock.ahead_ms = 0
        with pytest.raises(Conflict, match="the clock was ahead"):
            house.control.dispatcher.apply(found.plan_id)

    def test_x1_a_server_that_is_behind_the_writers_plans_nothing(self, house: Lakehouse) -> None:
        house.writers_clock.ahead_ms = HOUR_MS
        house.catalog.append(NAME, house.files(1, day(house, 0)))
        assert plan(house).reason.code == "clock-behind"


class TestConcurrency:
    def test_i5_what_comes_into_an_expiring_partition_meanwhile_stays(self, house: Lakehouse) -> None:
        spec = claim(house)
        (late,) = house.files(1, day(house, 50))
        house.catalog.append(NAME, [late])
        tag(house, spec)
        task = verified(house, spec, delete(house, spec))
        assert task.state is TaskState.SUCCEEDED, task.outcome
        assert late in house.catalog.live_files(NAME)

    def test_c1_a_commit_that_nobody_heard_of_is_found_by_its_task(self, house: Lakehouse) -> None:
        spec = tagged(house)
        snapshot = delete(house, spec)
        report(house, spec, CommitUnknown("the catalog closed the connection"))
        house.pass_time(HOUR_MS)
        house.rounds(2)
        (task,) = house.all_tasks()
        assert succeeded(task).snapshot_id == snapshot.snapshot_id

    def test_a_conflict_is_planned_again_by_a_person(self, house: Lakehouse) -> None:
        spec = claim(house)
        task = report(house, spec, Conflicted("another commit removed f00020.parquet"))
        assert task.state is TaskState.SUPERSEDED

    def test_a_plan_whose_snapshot_was_rolled_back_is_refused(self, house: Lakehouse) -> None:
        first = house.metadata().snapshots[-2].snapshot_id
        found = plan(house)
        house.catalog.set_ref(NAME, "main", first)
        with pytest.raises(Conflict, match="no longer in the table's history"):
            house.control.dispatcher.apply(found.plan_id)

    def test_x3_an_owner_who_changes_the_zone_is_heard_before_the_task_starts(self, house: Lakehouse) -> None:
        house.control.dispatcher.apply(plan(house).plan_id)
        house.catalog.set_properties(NAME, {"icewright.expire-data.time-zone": "Asia/Tokyo"})
        assert Worker(house).claim_if_any() is None
        (task,) = house.all_tasks()
        assert task.state is TaskState.SUPERSEDED


class TestVerification:
    """Each thing that a commit must not be is found in the table, whatever was reported."""

    def wrong(self, house: Lakehouse, spec: TaskSpec, snapshot: Snapshot) -> str:
        task = verified(house, spec, snapshot)
        assert task.outcome is not None
        assert task.outcome.reason.code == "verification-failed", task.outcome
        assert task.state is TaskState.FAILED
        return task.outcome.reason.text

    def test_x4_a_file_more_than_planned(self, house: Lakehouse) -> None:
        spec = tagged(house)
        planned = [file.path for file in action_of(spec).files]
        other = next(file.path for file in house.catalog.live_files(NAME) if file.path not in planned)
        snapshot = delete(house, spec, [other, *planned])
        assert "were live in them" in self.wrong(house, spec, snapshot)

    def test_x4_a_file_less_than_planned(self, house: Lakehouse) -> None:
        spec = tagged(house)
        snapshot = delete(house, spec, [action_of(spec).files[0].path])
        assert "not removed as planned" in self.wrong(house, spec, snapshot)

    def test_another_file_of_the_same_path(self, house: Lakehouse) -> None:
        """It was removed and written anew by somebody else: not what was planned."""
        spec = claim(house)
        file = action_of(spec).files[0]
        partition = action_of(spec).partitions[0].partition
        house.catalog.delete(NAME, [file.path])
        house.catalog.append(NAME, [MemoryFile(file.path, partition, file.size_bytes, file.record_count)])
        tag(house, spec)
        assert "not removed as planned" in self.wrong(house, spec, delete(house, spec))

    def test_no_tag(self, house: Lakehouse) -> None:
        spec = claim(house)
        assert "is not there" in self.wrong(house, spec, delete(house, spec))

    def test_a_tag_at_another_snapshot(self, house: Lakehouse) -> None:
        spec = claim(house)
        tag(house, spec, snapshot_id=house.metadata().snapshots[0].snapshot_id)
        assert "is at snapshot" in self.wrong(house, spec, delete(house, spec))

    def test_a_tag_that_goes_too_soon(self, house: Lakehouse) -> None:
        spec = claim(house)
        tag(house, spec, age_ms=DAY_MS)
        assert self.wrong(house, spec, delete(house, spec)).endswith("after the commit")

    def test_i12_a_tag_goes_too_soon_by_how_old_its_snapshot_is(self, house: Lakehouse) -> None:
        """Or, what is the same, one that was made by an attempt a week before."""
        house.pass_time(7 * DAY_MS)
        spec = tagged(house)
        assert self.wrong(house, spec, delete(house, spec)).endswith("after the commit")

    def test_no_proof(self, house: Lakehouse) -> None:
        spec = tagged(house)
        assert self.wrong(house, spec, delete(house, spec, proof="")) == "its summary has no proof"

    def test_rows_that_its_summary_counts_otherwise(self, house: Lakehouse) -> None:
        spec = tagged(house)
        assert "fewer were planned" in self.wrong(house, spec, delete(house, spec, **{"total-records": "0"}))

    def test_what_a_summary_counts_beyond_any_number_says_nothing(self, house: Lakehouse) -> None:
        spec = tagged(house)
        task = verified(house, spec, delete(house, spec, **{"total-records": "9" * 5_000}))
        assert task.state is TaskState.SUCCEEDED, task.outcome

    def test_a_commit_that_added_something(self, house: Lakehouse) -> None:
        spec = tagged(house)
        signed = {TASK_ID_KEY: spec.task_id, ATTEMPT_KEY: "1", PROOF_KEY: "memory"}
        house.catalog.delete(NAME, [file.path for file in action_of(spec).files])
        snapshot = house.catalog.append(NAME, house.files(1, day(house, 0)), summary=signed)
        assert "not removed as planned" in self.wrong(house, spec, snapshot)

    def test_w2_delete_files_stay_and_are_no_matter(self, house: Lakehouse) -> None:
        """Those of an expired file apply to nothing any more."""
        old = next(file for file in house.catalog.live_files(NAME) if file.partition == day(house, 50))
        gone = MemoryFile(
            "d.parquet",
            old.partition,
            100,
            1,
            FileFormat.PARQUET,
            FileContent.POSITION_DELETES,
            referenced_data_file=old.path,
        )
        house.catalog.overwrite(NAME, add=[gone], remove=[])
        spec = tagged(house)
        task = verified(house, spec, delete(house, spec))
        assert task.state is TaskState.SUCCEEDED, task.outcome


class TestUndo:
    def expired(self, house: Lakehouse) -> Task:
        spec = tagged(house)
        return verified(house, spec, delete(house, spec))

    def test_i12_it_is_set_back_file_by_file_where_nothing_came_since(self, house: Lakehouse) -> None:
        files, at = house.catalog.live_files(NAME), house.metadata().current_snapshot_id
        task = self.expired(house)
        undo = house.control.undoer.plan(task.task_id)
        assert undo.reason.code == "rollback"
        done = ended(house, house.control.dispatcher.apply(undo.plan_id))
        assert done.state is TaskState.SUCCEEDED, done.outcome
        assert house.metadata().current_snapshot_id == at
        assert house.catalog.live_files(NAME) == files
        with pytest.raises(NotAllowed, match="they may be there again") as refused:
            house.control.undoer.plan(task.task_id)
        assert tag_of(task.task_id) in refused.value.hint

    def test_i4_i12_what_came_since_is_never_lost(self, house: Lakehouse) -> None:
        task = self.expired(house)
        undo = house.control.undoer.plan(task.task_id)
        (late,) = house.files(1, day(house, 0))
        house.catalog.append(NAME, [late])
        assert house.control.undoer.plan(task.task_id).reason.code == "insert-again"
        with pytest.raises(Conflict):
            house.control.dispatcher.apply(undo.plan_id)
        assert late in house.catalog.live_files(NAME)

    def test_i12_after_the_window_it_is_not_promised(self, house: Lakehouse) -> None:
        task = self.expired(house)
        house.pass_time(8 * DAY_MS)
        with pytest.raises(NotAllowed, match="could be undone until"):
            house.control.undoer.plan(task.task_id)
