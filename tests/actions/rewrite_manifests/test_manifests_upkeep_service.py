"""Automatic rewrite of manifests where the owner lets that happen, behind work on files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from icewright.actions.rewrite_manifests import due as manifests_upkeep
from icewright.actions.rewrite_manifests import service as manifests_planner
from icewright.maintenance import upkeep
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.rewrite_manifests import RewriteManifests, RewriteManifestsRequest
from icewright.model.iceberg.tables import ATTEMPT_KEY, PROOF_KEY, TASK_ID_KEY
from icewright.model.work.jobs import PROTOCOL_VERSION, Committed, Conflicted, Result, TaskReport, TaskSpec
from icewright.model.work.tasks import Task, TaskState
from icewright.plans.upkeep_due import DANGER_PRIORITY, UPKEEP_PRIORITY
from tests.builders.lakehouse import BONN, HOUR_MS, MIB, MINUTE_MS, NAME, Lakehouse
from tests.builders.worker import Worker, at_work
from tests.cases import each_case

KEPT_UP = {"icewright.rewrite-manifests.enabled": "true", "commit.manifest.min-count-to-merge": "6"}


def lakehouse(properties: Mapping[str, str] | None = None) -> Lakehouse:
    house = Lakehouse()
    house.create()
    house.catalog.set_properties(NAME, KEPT_UP if properties is None else properties)
    return house


def write(house: Lakehouse, commits: int, size_bytes: int = 600 * MIB) -> None:
    """Commits of one file each, too large to be merged if nothing else is said."""
    for _ in range(commits):
        house.catalog.append(NAME, house.files(1, BONN, size_bytes))
        house.pass_time(10 * MINUTE_MS)


def rewrites(house: Lakehouse) -> list[Task]:
    return [task for task in house.all_tasks() if task.kind is ActionKind.REWRITE_MANIFESTS]


def said(house: Lakehouse) -> str:
    looked = house.control.maintainer.look(NAME, plan_anew=True)
    (reason,) = looked.upkeep.reasons
    assert reason.text.startswith("Automatic rewrite of manifests: ")
    assert reason.figures["kind"] == "rewrite_manifests"
    return reason.code


def report(house: Lakehouse, spec: TaskSpec, result: Result) -> Task:
    told = TaskReport(PROTOCOL_VERSION, spec.task_id, spec.attempt, spec.fencing_token, result, (), (), 1, 1)
    return house.control.dispatcher.report(told)


def carry_out(house: Lakehouse) -> Task:
    spec = Worker(house).claimed()
    assert isinstance(spec.action, RewriteManifests)
    signed = {TASK_ID_KEY: spec.task_id, ATTEMPT_KEY: str(spec.attempt), PROOF_KEY: "memory"}
    snapshot = house.catalog.rewrite_manifests(NAME, signed)
    report(house, spec, Committed(snapshot.snapshot_id))
    house.control.loop.round()
    return house.tasks.get(spec.task_id)


def test_they_are_rewritten_when_there_is_a_cause_and_left_alone_afterwards() -> None:
    house = lakehouse()
    write(house, 5)
    house.control.loop.round()
    assert rewrites(house) == []
    assert said(house) == "manifests-in-order"
    write(house, 6)
    house.pass_time(HOUR_MS)
    house.control.loop.round()
    (task,) = rewrites(house)
    assert (task.state, task.priority, task.was_asked_for) == (TaskState.QUEUED, UPKEEP_PRIORITY, False)
    assert carry_out(house).state is TaskState.SUCCEEDED
    assert said(house) == "upkeep-lately"
    house.pass_time(2 * HOUR_MS)
    house.rounds(2)
    assert len(rewrites(house)) == 1
    assert said(house) == "few-manifests"


@each_case(
    "changed",
    [
        {"icewright.rewrite-manifests.enabled": "false"},
        {"icewright.mode": "approve"},
        {"icewright.mode": "observe"},
        {"self-optimizing.enabled": "true"},
        {"icewright.rewrite-manifests.enabled": "perhaps"},
    ],
)
def test_nothing_is_rewritten_by_itself_where_the_owner_does_not_let_it(changed: dict[str, str]) -> None:
    house = lakehouse({**KEPT_UP, **changed})
    write(house, 12)
    house.pass_time(HOUR_MS)
    house.rounds(2)
    assert rewrites(house) == []


def test_it_is_off_until_somebody_wants_it() -> None:
    house = lakehouse({"commit.manifest.min-count-to-merge": "6"})
    write(house, 12)
    house.rounds(2)
    assert rewrites(house) == []


def test_what_waits_is_withdrawn_when_the_owner_turns_it_off_and_not_when_a_person_asked_for_it() -> None:
    for asked in (False, True):
        house = lakehouse()
        write(house, 12)
        house.control.loop.round()
        if asked:
            house.control.dispatcher.cancel(rewrites(house)[0].task_id)
            plan = house.control.maintainer.plan_asked(NAME, RewriteManifestsRequest())
            house.control.dispatcher.apply(plan.plan_id)
        house.catalog.set_properties(NAME, {"icewright.rewrite-manifests.enabled": "false"})
        house.pass_time(HOUR_MS)
        house.control.loop.round()
        task = rewrites(house)[-1]
        assert task.state is (TaskState.QUEUED if asked else TaskState.SUPERSEDED)
        if not asked:
            assert task.outcome is not None
            assert task.outcome.reason.code == "upkeep-off"


def test_work_on_data_files_comes_first() -> None:
    house = lakehouse()
    write(house, 12, MIB)
    house.rounds(2)
    (task,) = house.all_tasks()
    assert task.kind is ActionKind.REWRITE_DATA_FILES
    looked = house.control.maintainer.look(NAME)
    assert [reason.code for reason in looked.upkeep.reasons] == ["after-data-files"]
    assert said(house) == "after-data-files"


def test_they_have_their_turn_when_the_work_on_data_files_came_to_nothing_and_nothing_has_changed() -> None:
    house = lakehouse()
    write(house, 12, MIB)
    house.rounds(2)
    assert said(house) == "after-data-files"  # looked into, since a person asked
    house.control.dispatcher.cancel(house.all_tasks()[0].task_id)
    house.catalog.set_properties(NAME, {"icewright.rewrite-data-files.min-input-files": "100"})
    metadata = house.metadata().metadata_location
    assert said(house) == "rewrite-manifests"
    house.control.dispatcher.cancel(rewrites(house)[0].task_id)
    house.pass_time(HOUR_MS + 1)
    house.control.maintainer.look(NAME)
    assert house.metadata().metadata_location == metadata
    assert len(rewrites(house)) == 2


def test_unless_planning_is_in_danger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests_upkeep, "DANGER_OPENED", 10)
    house = lakehouse()
    write(house, 12, MIB)
    house.rounds(2)
    (task,) = rewrites(house)
    assert task.priority == DANGER_PRIORITY
    assert carry_out(house).state is TaskState.SUCCEEDED
    worker, spec = at_work(house)
    assert spec.rewrite.input_files == 12
    assert worker.commit(spec) is not None


def test_one_that_waits_is_planned_anew_so_that_it_fits_when_its_turn_comes() -> None:
    house = lakehouse()
    write(house, 12)
    house.control.loop.round()
    (before,) = rewrites(house)
    house.pass_time(3 * HOUR_MS)
    house.control.loop.round()
    assert rewrites(house) == [before]  # nothing has changed, so that there is nothing to plan
    assert said(house) == "upkeep-lately"
    write(house, 6)
    house.pass_time(HOUR_MS)
    house.control.loop.round()
    (after,) = rewrites(house)
    assert (after.task_id, after.created_at) == (before.task_id, before.created_at)
    assert isinstance(before.action, RewriteManifests)
    assert isinstance(after.action, RewriteManifests)
    assert len(after.action.manifests) == len(before.action.manifests) + 6


def test_w9_what_keeps_losing_against_writers_is_parked_and_expiries_are_not() -> None:
    house = lakehouse({**KEPT_UP, "icewright.expire-snapshots.enabled": "true"})
    write(house, 12)
    tried = 0
    for _ in range(24):
        house.control.loop.round()
        spec = Worker(house).claim_if_any()
        if spec is not None:
            tried += 1
            report(house, spec, Conflicted("one of the planned manifests is gone"))
        house.pass_time(HOUR_MS + 1)
    assert tried == 5
    looked = house.control.maintainer.look(NAME, plan_anew=True)
    assert [reason.code for reason in looked.upkeep.reasons] == ["nothing-expires", "parked"]


def test_tables_where_nothing_is_due_cost_no_read_of_their_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    house = lakehouse()
    read: list[int] = []
    right = manifests_planner._decide

    def counted(*args: Any) -> Any:
        read.append(house.clock.now())
        return right(*args)

    monkeypatch.setattr(manifests_planner, "_decide", counted)
    write(house, 3)
    for _ in range(5):
        house.control.maintainer.look(NAME)
        house.pass_time(HOUR_MS)
    assert read == []
    write(house, 2)
    for _ in range(90):
        house.control.maintainer.look(NAME)
        house.pass_time(MINUTE_MS)
    assert len(read) == 1  # it is as it was
    house.catalog.set_properties(NAME, {"owner": "somebody else"})
    house.control.maintainer.look(NAME)
    assert len(read) == 2
    monkeypatch.setattr(upkeep, "_REMEMBERED_MAX", 1)  # what is remembered is bounded, and losing it costs a read
    house.control.maintainer.look(NAME, plan_anew=True)
    assert len(read) == 3
