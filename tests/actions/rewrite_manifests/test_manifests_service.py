"""Rewriting manifests, from what a person asks for to the verified commit."""

from __future__ import annotations

import pytest

from icewright.core.errors import NotAllowed
from icewright.maintenance.registry.planning import still_applies
from icewright.model.actions.rewrite_manifests import RewriteManifests, RewriteManifestsRequest
from icewright.model.iceberg.tables import ATTEMPT_KEY, PROOF_KEY, TASK_ID_KEY
from icewright.model.work.jobs import Committed, CommitUnknown, TaskSpec
from icewright.model.work.tasks import TaskState
from tests.builders.lakehouse import BONN, HOUR_MS, MIB, NAME, Lakehouse
from tests.builders.worker import claim, report, succeeded
from tests.narrowing import not_none

ASKED = RewriteManifestsRequest()


@pytest.fixture
def house() -> Lakehouse:
    """A table of five large files in five manifests, of which three are as many as may pile up."""
    house = Lakehouse()
    house.create()
    house.catalog.set_properties(NAME, {"commit.manifest.min-count-to-merge": "3"})
    for _ in range(5):
        house.catalog.append(NAME, house.files(1, BONN, 600 * MIB))
    house.pass_time(2 * HOUR_MS)
    return house


def signed(spec: TaskSpec) -> dict[str, str]:
    return {TASK_ID_KEY: spec.task_id, ATTEMPT_KEY: str(spec.attempt), PROOF_KEY: "memory"}


def test_it_is_planned_applied_and_verified(house: Lakehouse) -> None:
    assert house.control.maintainer.look(NAME).plan.is_empty
    spec = claim(house, ASKED)
    assert isinstance(spec.action, RewriteManifests)
    assert len(spec.action.manifests) == 5
    snapshot = house.catalog.rewrite_manifests(NAME, signed(spec))
    task = house.control.verifier.verify(report(house, spec, Committed(snapshot.snapshot_id)))
    assert succeeded(task).reason.text == "5 manifests became 1, with the same 5 entries"
    again = house.control.maintainer.plan_asked(NAME, ASKED)
    assert again.reason.code == "manifests-in-order"
    with pytest.raises(NotAllowed):
        house.control.dispatcher.apply(again.plan_id)


def test_c1_a_commit_that_nobody_heard_of_is_found_by_its_task(house: Lakehouse) -> None:
    spec = claim(house, ASKED)
    snapshot = house.catalog.rewrite_manifests(NAME, signed(spec))
    report(house, spec, CommitUnknown("the catalog closed the connection"))
    house.pass_time(HOUR_MS)
    house.rounds(2)
    (task,) = house.all_tasks()
    assert succeeded(task).snapshot_id == snapshot.snapshot_id


def test_w8_a_commit_that_lost_an_entry_is_found_out(house: Lakehouse) -> None:
    spec = claim(house, ASKED)
    gone = house.catalog.live_files(NAME)[0].path
    house.catalog.delete(NAME, [gone])
    snapshot = house.catalog.rewrite_manifests(NAME, signed(spec))
    task = house.control.verifier.verify(report(house, spec, Committed(snapshot.snapshot_id)))
    assert task.state is TaskState.FAILED
    assert not_none(task.outcome).reason.code == "verification-failed"


def test_what_is_planned_by_itself_leaves_it_alone(house: Lakehouse) -> None:
    plan = house.control.maintainer.plan_asked(NAME, ASKED)
    task = house.control.dispatcher.apply(plan.plan_id)
    house.append(1)
    house.control.maintainer.look(NAME, plan_anew=True)
    assert house.control.tasks.get(task.task_id).state is TaskState.QUEUED


def test_it_still_applies_after_whatever_leaves_its_specs(house: Lakehouse) -> None:
    action = house.control.maintainer.plan_asked(NAME, ASKED).actions[0]
    metadata = house.metadata()
    house.append(1)
    assert still_applies(action, metadata.table_id, house.metadata()) is None
