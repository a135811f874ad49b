"""Removing dangling deletes, from what a person asks for to the verified commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.actions.rewrite_delete_files import service as delete_planner
from icewright.core.errors import NotAllowed, Unreadable
from icewright.maintenance.registry.planning import still_applies
from icewright.model.actions.rewrite_delete_files import RemoveDanglingDeletes, RemoveDanglingDeletesRequest
from icewright.model.iceberg.files import FileContent
from icewright.model.iceberg.tables import ATTEMPT_KEY, PROOF_KEY, TASK_ID_KEY, Snapshot
from icewright.model.work.jobs import CommitUnknown, TaskSpec
from icewright.model.work.tasks import TaskState
from tests.builders.lakehouse import BONN, HOUR_MS, KYOTO, NAME, Lakehouse
from tests.builders.worker import claim, report, succeeded, verified
from tests.narrowing import not_none

ASKED = RemoveDanglingDeletesRequest()


@pytest.fixture
def house() -> Lakehouse:
    """A table whose files in Bonn came after equality deletes there, and one in Kyoto before them."""
    house = Lakehouse()
    house.create()
    house.catalog.append(NAME, house.files(1, KYOTO))
    for number, partition in enumerate((BONN, BONN, KYOTO)):
        delete = replace(
            house.files(1, partition)[0],
            path=f"d{number}.parquet",
            content=FileContent.EQUALITY_DELETES,
            equality_ids=(1,),
        )
        house.catalog.overwrite(NAME, add=[delete], remove=[])
    house.catalog.append(NAME, house.files(2, BONN))
    house.pass_time(2 * HOUR_MS)
    return house


def commit(house: Lakehouse, spec: TaskSpec, *remove: str, **other: str) -> Snapshot:
    said = {TASK_ID_KEY: spec.task_id, ATTEMPT_KEY: str(spec.attempt)}
    said[PROOF_KEY] = "delete-application;removed=2;applying=0;data-manifests=2"
    base = not_none(house.metadata().current_snapshot_id)
    return house.catalog.commit_rewrite(NAME, base_snapshot_id=base, remove=remove, add=[], summary={**said, **other})


def test_it_is_planned_applied_and_verified(house: Lakehouse) -> None:
    spec = claim(house, ASKED)
    assert isinstance(spec.action, RemoveDanglingDeletes)
    assert [delete.path for delete in spec.action.deletes] == ["d0.parquet", "d1.parquet"]
    task = verified(house, spec, commit(house, spec, "d0.parquet", "d1.parquet"))
    assert succeeded(task).reason.text.startswith("2 delete files that applied to no data file were removed")
    again = house.control.maintainer.plan_asked(NAME, ASKED)
    assert again.reason.code == "none-dangling"
    with pytest.raises(NotAllowed):
        house.control.dispatcher.apply(again.plan_id)


def test_what_a_stranger_counts_is_left_out_where_it_is_no_number(house: Lakehouse) -> None:
    spec = claim(house, ASKED)
    task = verified(house, spec, commit(house, spec, "d0.parquet", "d1.parquet", **{"total-delete-files": "9" * 5_000}))
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert "listed_after" not in not_none(task.outcome).reason.figures


def test_c1_a_commit_that_nobody_heard_of_is_found_by_its_task(house: Lakehouse) -> None:
    spec = claim(house, ASKED)
    snapshot = commit(house, spec, "d0.parquet", "d1.parquet")
    report(house, spec, CommitUnknown("the catalog closed the connection"))
    house.pass_time(HOUR_MS)
    house.rounds(2)
    (task,) = house.all_tasks()
    assert succeeded(task).snapshot_id == snapshot.snapshot_id


@pytest.mark.parametrize(
    ("remove", "summary", "said"),
    [
        (("d0.parquet", "d1.parquet", "d2.parquet"), {}, "that still apply"),
        (("d0.parquet",), {}, "d1.parquet is still listed"),
        (("d0.parquet", "d1.parquet", "f00000.parquet"), {}, "1 data files were removed"),
        (("d0.parquet", "d1.parquet"), {PROOF_KEY: "memory"}, "its proof says"),
        (("d0.parquet", "d1.parquet"), {PROOF_KEY: "delete-application;removed=2;applying=1"}, "its proof says"),
    ],
)
def test_w5_a_commit_of_anything_else_is_an_alarm(
    house: Lakehouse, remove: tuple[str, ...], summary: dict[str, str], said: str
) -> None:
    spec = claim(house, ASKED)
    task = verified(house, spec, commit(house, spec, *remove, **summary))
    assert task.state is TaskState.FAILED
    assert task.outcome is not None
    assert task.outcome.reason.code == "verification-failed"
    assert said in task.outcome.reason.text


def test_w5_a_delete_file_that_came_with_it_is_an_alarm(house: Lakehouse) -> None:
    spec = claim(house, ASKED)
    old = next(file for file in house.catalog.live_files(NAME) if file.path == "d2.parquet")
    new = replace(old, path="new.parquet")
    base = not_none(house.metadata().current_snapshot_id)
    snapshot = house.catalog.commit_rewrite(
        NAME,
        base_snapshot_id=base,
        remove=["d0.parquet", "d1.parquet"],
        add=[new],
        summary={TASK_ID_KEY: spec.task_id, ATTEMPT_KEY: "1", PROOF_KEY: "delete-application;removed=2;applying=0"},
    )
    task = verified(house, spec, snapshot)
    assert "1 delete files were added, first new.parquet" in not_none(task.outcome).reason.text


def test_w5_o13_a_data_file_that_was_not_read_is_no_smaller_table(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read is counted: without the file in Kyoto its deletes would look as if nobody needed them."""
    read = type(house.catalog).data_files
    monkeypatch.setattr(
        type(house.catalog),
        "data_files",
        lambda *of, **more: (file for file in read(*of, **more) if file.partition != KYOTO),
    )
    with pytest.raises(Unreadable, match="2 data files were read from its manifests, and its inventory has 3"):
        house.control.maintainer.plan_asked(NAME, ASKED)
    monkeypatch.setattr(delete_planner, "_counted", lambda files, *_: files)
    (action,) = house.control.maintainer.plan_asked(NAME, ASKED).actions
    assert isinstance(action, RemoveDanglingDeletes)
    assert len(action.deletes) == 3


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
    other = replace(metadata, specs=tuple(replace(spec, spec_id=7) for spec in metadata.specs))
    assert not_none(still_applies(action, metadata.table_id, other)).code == "spec-removed"
