"""Undoing an expiry in a catalog that takes no old snapshots: a second table beside the first, over memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from icewright.actions.remove_files.service import Remover
from icewright.actions.undo.second_tables_port import SecondTables
from icewright.core.completeness import Complete
from icewright.core.errors import Conflict, IcewrightError, NotAllowed, NotFound, OutcomeUnknown, Unavailable
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.model.actions.rewrite_manifests import RewriteManifestsRequest
from icewright.model.actions.undo import SIGNATURE_KEY, UNDO_WINDOW_MS, SecondTable, UndoExpiryPrediction
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import RefKind, TableMetadata
from icewright.model.plans.plans import Plan
from icewright.model.policy.policy import PolicyRule
from icewright.model.work.tasks import Task, TaskState
from tests.actions.expire_snapshots.test_expiry_service import ended, ids
from tests.actions.undo.test_undo_service import ALL_OLD, code, expired, table, undone
from tests.builders.lakehouse import ALL_AUTO, HOUR_MS, MINUTE_MS, NAME, Lakehouse
from tests.doubles.second_tables import MemorySecondTables
from tests.maintenance.test_upkeep import KEPT_UP, expiries, live_on
from tests.narrowing import not_none

GC = "gc.enabled"


class Died(BaseException):
    """The process is gone."""


class Dying:
    """Registers tables for a server that dies at one of its calls, before it or behind it."""

    def __init__(
        self, real: SecondTables, at: int = -1, *, behind: bool = False, error: BaseException | None = None
    ) -> None:
        self.real, self.at, self.behind, self.error = real, at, behind, error or Died()
        self.calls: list[str] = []
        self.registered: list[TableName] = []

    def _come_by(self, call: str, *, behind: bool) -> None:
        if not behind:
            self.calls.append(call)
        if len(self.calls) - 1 == self.at and behind is self.behind:
            self.at = -1
            raise self.error

    def read(self, now: TableMetadata, metadata_location: str) -> object:
        self._come_by("read", behind=False)
        found = self.real.read(now, metadata_location)
        self._come_by("read", behind=True)
        return found

    def register(self, name: TableName, metadata_location: str) -> None:
        self._come_by("register", behind=False)
        self.real.register(name, metadata_location)
        self.registered.append(name)
        self._come_by("register", behind=True)

    def say(self, name: TableName, table_id: TableId, properties: Mapping[str, str]) -> None:
        self._come_by("say", behind=False)
        self.real.say(name, table_id, properties)
        self._come_by("say", behind=True)


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Lakehouse:
    """A table with five snapshots, an hour apart, in a catalog that takes none back."""
    return lakehouse(monkeypatch, ALL_AUTO)


def lakehouse(monkeypatch: pytest.MonkeyPatch, rule: PolicyRule) -> Lakehouse:
    made = Lakehouse(rules=(rule,))
    monkeypatch.setattr(type(made.catalog), "takes_snapshots_back", property(lambda _: False))
    return made.with_five_snapshots()


def dying(house: Lakehouse, at: int = -1, *, behind: bool = False, error: BaseException | None = None) -> Dying:
    made = Dying(MemorySecondTables(house.catalog), at, behind=behind, error=error)
    house.seconds["lake"] = made  # type: ignore[assignment]  # it answers as the real one
    house.restart()
    return made


def planned(house: Lakehouse, expiry: Task) -> Plan:
    return house.control.undoer.plan(expiry.task_id)


def second_of(plan: Plan) -> TableName:
    assert isinstance(plan.prediction, UndoExpiryPrediction)
    assert isinstance(plan.prediction.second, SecondTable)
    return plan.prediction.second.name


def state(house: Lakehouse) -> dict[TableName, TableMetadata]:
    return {name: house.catalog.load(name) for name in house.catalog.tables()}


def said(task: Task) -> str:
    return not_none(task.outcome).reason.text


def guarded(house: Lakehouse, second: TableName) -> bool:
    return all(house.catalog.load(name).properties.get(GC) == "false" for name in (NAME, second))


def test_s_14_what_expired_is_there_as_a_second_table_and_the_plans_said_so(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought_back: list[str] = []
    monkeypatch.setattr(Remover, "bring_back", lambda _, expiry, _leave: brought_back.append(expiry.task_id))
    house.restart()
    house.catalog.set_ref(NAME, "v1", ids(house)[1], kind=RefKind.TAG, max_ref_age_ms=1)
    before = table(house)
    asked = house.control.maintainer.plan_asked(NAME, ALL_OLD)
    expiry = ended(house, house.control.dispatcher.apply(asked.plan_id))
    after = table(house)
    plan = planned(house, expiry)
    second = second_of(plan)
    assert str(second) in getattr(asked.prediction, "undo", "")
    assert getattr(asked.prediction, "second_table", None) == second
    assert str(second).startswith("lake.db.events_before_2023")
    assert plan.reason.text == f"4 snapshots of task {expiry.task_id} as a second table, {second}"
    assert [note.code for note in plan.rules] == ["beside", "gc-disabled", "shared-uuid", "no-purge"]
    assert isinstance(plan.prediction, UndoExpiryPrediction)
    assert (plan.prediction.snapshots_before, plan.prediction.snapshots_after) == (1, 5)
    assert plan.prediction.second == SecondTable(second, before.metadata_location)
    assert plan.prediction.until == expiry.updated_at + UNDO_WINDOW_MS
    assert list(state(house)) == [NAME]

    task = undone(house, plan)
    assert (task.state, code(task)) == (TaskState.SUCCEEDED, "verified")
    assert said(task) == f"what task {expiry.task_id} took can be read from {second}"
    assert brought_back == [expiry.task_id]
    there = house.catalog.load(second)
    assert (there.table_id, there.snapshots, there.refs) == (before.table_id, before.snapshots, before.refs)
    assert there.metadata_location != before.metadata_location  # one of its own, which no writer of the first deletes
    assert there.properties[SIGNATURE_KEY] == task.task_id
    assert there.properties["write.metadata.delete-after-commit.enabled"] == "false"
    now = table(house)
    assert (now.snapshots, now.refs, now.properties) == (after.snapshots, after.refs, {GC: "false"})
    assert guarded(house, second)
    assert house.control.planner.policy(there).problems == ()


def test_asked_for_twice_it_is_registered_once(house: Lakehouse) -> None:
    door, expiry = dying(house), expired(house)
    first, stale = planned(house, expiry), planned(house, expiry)
    assert undone(house, first).state is TaskState.SUCCEEDED
    seen = state(house)
    assert planned(house, expiry).reason.text == f"nothing to do: it is registered as {second_of(first)} already"
    task = undone(house, stale)
    assert (task.state, "another client registered" in said(task)) == (TaskState.SUPERSEDED, True)
    assert (state(house), len(door.registered)) == (seen, 1)


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("behind", [False, True])
def test_w11_a_server_that_dies_at_any_step_goes_on_and_registers_once(
    house: Lakehouse, at: int, *, behind: bool
) -> None:
    before, expiry = table(house), expired(house)
    plan = planned(house, expiry)
    door = dying(house, at, behind=behind)
    task = house.control.dispatcher.apply(plan.plan_id)
    with pytest.raises(Died):
        house.control.loop.round()
    house.restart()
    task = ended(house, task)
    assert (task.state, code(task), task.attempt) == (TaskState.SUCCEEDED, "verified", 2)
    assert door.calls[: at + 1] == ["read", "register", "say", "say"][: at + 1]
    assert door.registered == [second_of(plan)]
    assert house.catalog.load(second_of(plan)).snapshots == before.snapshots
    assert guarded(house, second_of(plan))


@pytest.mark.parametrize(
    ("at", "error", "attempts"),
    [
        (1, Unavailable("no answer"), 2),
        (1, Conflict("it was asked twice on the way"), 1),
        (2, Unavailable("no answer"), 2),
        (2, OutcomeUnknown("the answer was lost"), 2),
        (2, Conflict("committed to all the time"), 2),
        (2, NotFound("not shown yet"), 2),
        (2, NotAllowed("not allowed yet"), 2),
        (3, OutcomeUnknown("the answer was lost"), 2),
        (3, NotAllowed("not allowed yet"), 2),
    ],
)
def test_c1_an_answer_that_was_lost_is_looked_for(
    house: Lakehouse, at: int, error: IcewrightError, attempts: int
) -> None:
    plan = planned(house, expired(house))
    door = dying(house, at, behind=True, error=error)
    task = undone(house, plan)
    assert (task.state, code(task), task.attempt) == (TaskState.SUCCEEDED, "verified", attempts)
    assert (door.registered, guarded(house, second_of(plan))) == ([second_of(plan)], True)


def test_what_was_left_half_done_is_finished_by_undoing_once_more(house: Lakehouse) -> None:
    expiry = expired(house)
    plan = planned(house, expiry)
    house.catalog.register(second_of(plan), plan.prediction.second.metadata_location)  # type: ignore[union-attr]  # known
    again = planned(house, expiry)
    assert undone(house, again).state is TaskState.SUCCEEDED
    assert guarded(house, second_of(plan))


class TestRefusals:
    def test_a_name_that_is_taken_stays_with_who_has_it(self, house: Lakehouse) -> None:
        expiry = expired(house)
        plan = planned(house, expiry)
        house.create(second_of(plan))
        seen = state(house)
        refused = planned(house, expiry)
        assert (refused.is_empty, refused.reason.code) == (True, "name-taken")
        task = undone(house, plan)
        assert (task.state, "is not the table of before" in said(task)) == (TaskState.SUPERSEDED, True)
        assert state(house) == seen

    def test_the_name_may_be_taken_in_the_last_moment(self, house: Lakehouse) -> None:
        plan = planned(house, expired(house))
        door = dying(house)

        class Late(MemorySecondTables):
            def register(self, name: TableName, metadata_location: str) -> None:
                house.create(name)
                super().register(name, metadata_location)

        door.real = Late(house.catalog)
        assert undone(house, plan).state is TaskState.SUPERSEDED
        assert (door.registered, GC in table(house).properties) == ([], False)

    def test_i3_a_metadata_file_that_writers_deleted_is_said(self, house: Lakehouse) -> None:
        before, expiry = table(house).metadata_location, expired(house)
        plan, seen = planned(house, expiry), state(house)
        house.catalog.damage(before)
        with pytest.raises(NotAllowed, match="cannot be undone any more") as refused:
            planned(house, expiry)
        assert "delete-after-commit" in refused.value.hint
        task = undone(house, plan)
        assert (task.state, before in said(task)) == (TaskState.SUPERSEDED, True)
        assert state(house) == seen

    def test_i3_nothing_is_registered_when_a_file_is_missing(self, house: Lakehouse) -> None:
        live = [file.path for file in house.catalog.live_files(NAME)]
        house.catalog.overwrite(NAME, add=house.files(1), remove=live)
        lists, expiry = [one.manifest_list for one in table(house).snapshots], expired(house)
        plan, seen = planned(house, expiry), state(house)
        house.catalog.damage(lists[1])
        task = undone(house, plan)
        assert (task.state, lists[1] in said(task)) == (TaskState.SUPERSEDED, True)
        assert state(house) == seen

    def test_i3_what_another_expiry_took_since_is_asked_for_as_well(self, house: Lakehouse) -> None:
        """The second table shows it again, and its files may be gone."""
        plan = house.control.maintainer.plan_asked(NAME, ExpireSnapshotsRequest("PT3H", 1))
        first = ended(house, house.control.dispatcher.apply(plan.plan_id))
        last = table(house).snapshots[-2].manifest_list
        expired(house)
        undo = planned(house, first)
        house.catalog.damage(last)
        task = undone(house, undo)
        assert (task.state, last in said(task)) == (TaskState.SUPERSEDED, True)

    def test_l6_a_third_name_refuses_it(self, house: Lakehouse) -> None:
        plan = planned(house, expired(house))
        house.catalog.register(replace(NAME, name="other"), table(house).metadata_log[-1].location)
        house.control.registry.saw(house.catalog.load(replace(NAME, name="other")))
        task = undone(house, plan)
        assert (task.state, "also known as lake.db.other" in said(task)) == (TaskState.SUPERSEDED, True)

    def test_two_expiries_are_undone_as_two_tables(self, house: Lakehouse) -> None:
        """The file of before the first has what the second took as well, whose files must be back by then."""
        before = table(house)
        asked = house.control.maintainer.plan_asked(NAME, ExpireSnapshotsRequest("PT3H", 1))
        first = ended(house, house.control.dispatcher.apply(asked.plan_id))
        house.pass_time(HOUR_MS)
        plans = [planned(house, expiry) for expiry in (expired(house), first)]
        assert [undone(house, plan).state for plan in plans] == [TaskState.SUCCEEDED] * 2
        assert set(state(house)) == {NAME, *map(second_of, plans)}
        assert house.catalog.load(second_of(plans[1])).snapshots == before.snapshots

    def test_the_undo_itself_is_taken_back_by_dropping_the_second(self, house: Lakehouse) -> None:
        plan = planned(house, expired(house))
        task = undone(house, plan)
        with pytest.raises(NotAllowed, match="it was an undo") as refused:
            house.control.undoer.plan(task.task_id)
        assert refused.value.hint == f"drop {second_of(plan)}, without PURGE"

    def test_what_was_not_kept_is_said(self, house: Lakehouse) -> None:
        expiry = expired(house)
        house.kept.forget(house.clock.now() + 1, 10)
        with pytest.raises(NotAllowed, match="not kept"):
            planned(house, expiry)


class TestVerifying:
    @pytest.fixture
    def reported(self, house: Lakehouse) -> tuple[Lakehouse, Task, TableName]:
        """It is reported, and not verified yet."""
        plan = planned(house, expired(house))
        task = house.control.dispatcher.apply(plan.plan_id)
        house.control.loop._keep_house()
        assert house.tasks.get(task.task_id).state is TaskState.COMMITTED
        return house, task, second_of(plan)

    def test_a_second_table_that_is_not_there_is_no_success(self, reported: tuple[Lakehouse, Task, TableName]) -> None:
        house, task, second = reported
        house.catalog.drop(second)
        assert code(ended(house, task)) == "unverified"

    def test_one_that_does_not_read_is_an_alarm(self, reported: tuple[Lakehouse, Task, TableName]) -> None:
        house, task, second = reported
        current = not_none(house.catalog.load(second).current_snapshot)
        house.catalog.damage(current.manifest_list)
        assert house.control.verifier.verify(house.tasks.get(task.task_id)).state is TaskState.FAILED

    def test_one_without_what_expired_is_an_alarm(self, reported: tuple[Lakehouse, Task, TableName]) -> None:
        house, task, second = reported
        house.catalog.expire(second, [house.catalog.load(second).snapshots[0].snapshot_id])
        assert house.control.verifier.verify(house.tasks.get(task.task_id)).state is TaskState.FAILED

    def test_one_that_is_not_guarded_is_no_success(self, reported: tuple[Lakehouse, Task, TableName]) -> None:
        house, task, _ = reported
        house.catalog.set_properties(NAME, {GC: "true"})
        assert code(ended(house, task)) == "unverified"


@pytest.mark.parametrize("guard", ["both", "the registry alone"])
def test_l6_nothing_is_removed_and_nothing_expires_of_either_while_both_are_there(
    monkeypatch: pytest.MonkeyPatch, guard: str
) -> None:
    """Also where somebody takes ``gc.enabled`` away and lets everything be done by itself: the names alone tell."""
    upkeep = {
        **KEPT_UP,
        "icewright.remove-orphan-files.enabled": "true",
        "icewright.expire-snapshots.remove-files": "true",
    }
    house = lakehouse(monkeypatch, PolicyRule("lake", (), upkeep))
    expiry = expired(house)
    second = second_of(plan := planned(house, expiry))
    assert undone(house, plan).state is TaskState.SUCCEEDED
    if guard != "both":
        for name in (NAME, second):
            house.catalog.set_properties(name, {GC: "true", "icewright.mode": "auto"})
    for name in (NAME, second):
        place = house.control.registry.place_of(name)
        assert not isinstance(place, Complete) or "shared-uuid" in {one.code for one in place.value.findings}
        for asked in (ALL_OLD, RemoveOrphanFilesRequest()):
            with pytest.raises(IcewrightError):
                house.control.dispatcher.apply(house.control.maintainer.plan_asked(name, asked).plan_id)
    before, tasks = state(house), len(house.all_tasks())
    live_on(house, 12 * 24)
    after = state(house)
    kinds = {task.kind for task in house.all_tasks()[tasks:]}
    assert kinds <= {ActionKind.REWRITE_DATA_FILES}
    assert set(ids(house)) > {one.snapshot_id for one in before[NAME].snapshots}
    assert after[second] == before[second]
    house.catalog.drop(second)
    house.catalog.set_properties(NAME, {GC: "true"})
    live_on(house, 2 * 24)
    assert expiries(house) == []  # an undo came since: a person begins again
    (task,) = house.approve_all()
    live_on(house, 2 * 24)
    assert {one.state for one in expiries(house)} == {TaskState.SUCCEEDED}
    assert expiries(house)[0].task_id == task.task_id


def test_l6_the_first_name_is_looked_after_and_the_second_is_left_alone(house: Lakehouse) -> None:
    expiry = expired(house)
    second = second_of(plan := planned(house, expiry))
    undone(house, plan)
    house.catalog.set_properties(second, {"icewright.mode": "auto"})
    for _ in range(10):
        house.pass_time(HOUR_MS)
        house.control.loop.round()
    assert house.tables.record_by_name(second) is None
    assert house.record().name == NAME
    assert {task.table_name for task in house.all_tasks()} == {NAME}
    assert second in house.control.loop.unreadable
    for ask in (
        house.control.maintainer.look,
        lambda name: house.control.maintainer.plan_asked(name, RewriteManifestsRequest()),
    ):
        with pytest.raises(NotAllowed, match=r"has the uuid of lake\.db\.events"):
            ask(second)


def test_once_the_second_is_dropped_the_first_is_as_any_table(house: Lakehouse) -> None:
    expiry = expired(house)
    second = second_of(plan := planned(house, expiry))
    undone(house, plan)
    house.append(1)
    house.catalog.drop(second)
    house.catalog.set_properties(NAME, {GC: "true"})
    house.rounds(3, every_ms=10 * MINUTE_MS)
    with pytest.raises(NotFound):
        house.control.maintainer.look(second)
    assert house.control.registry.namesakes(NAME, table(house).table_id.uuid) == frozenset()
    assert expired(house).state is TaskState.SUCCEEDED


def test_a_second_whose_first_is_dropped_is_looked_after_in_its_place(house: Lakehouse) -> None:
    expiry = expired(house)
    second = second_of(plan := planned(house, expiry))
    undone(house, plan)
    house.catalog.drop(NAME)
    with pytest.raises((NotFound, Conflict)):
        house.control.maintainer.look(NAME)
    house.control.maintainer.look(second)
    assert house.record(second).name == second
