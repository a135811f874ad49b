"""What a commit that moves rows to another partition spec may look like: every row of it, and no other place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.model.actions.actions import FileGroup, RewriteDataFiles
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.tables import PartitionField, Snapshot
from icewright.model.work.jobs import Committed
from icewright.model.work.tasks import Task, TaskState
from icewright.plans.evidence.service import Changes, Delta, changes_between, problem_of
from tests.builders import worker as worker_module
from tests.builders.lakehouse import BONN, HOUR_MS, KYOTO, NAME, Lakehouse
from tests.builders.worker import Worker, at_work
from tests.narrowing import not_none

MIGRATE = "icewright.rewrite-data-files.migrate-spec"
BY_BUCKET = (PartitionField(1, 1001, "id_bucket", "bucket[2]"),)
"""Three partitions at most, with that of the nulls."""


@pytest.fixture
def house() -> Lakehouse:
    """Eight files in Bonn and two in Kyoto of the older spec, and small ones of the current one."""
    house = Lakehouse().with_ready_table({MIGRATE: "all"})
    house.append(2, KYOTO)
    spec_id = house.catalog.set_spec(NAME, BY_BUCKET)
    house.append(8, Partition(spec_id, "[1]"))
    house.pass_time(2 * HOUR_MS)
    return house


def carried_out(house: Lakehouse) -> Task:
    house.control.maintainer.look(NAME)
    return house.control.verifier.verify(Worker(house).carry_out())


def test_rows_that_moved_are_verified_beside_files_that_were_merged(house: Lakehouse) -> None:
    task = carried_out(house)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert {group.output_spec_id for group in task.rewrite.groups} == {None, 1}
    assert not_none(task.outcome).reason.text == "18 files became 7, the same 180 rows"
    assert {file.partition.spec_id for file in house.catalog.live_files(NAME)} == {1}
    assert house.control.maintainer.look(NAME, plan_anew=True).plan.is_empty


@pytest.mark.parametrize("place", [KYOTO, Partition(0, '["Oslo"]'), BONN])
def test_rows_that_end_up_in_the_old_spec_are_an_alarm(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch, place: Partition
) -> None:
    honest = worker_module.partition_of

    def wrong(group: FileGroup, number: int) -> Partition:
        return place if group.output_spec_id is not None and number == 1 else honest(group, number)

    monkeypatch.setattr(worker_module, "partition_of", wrong)
    assert carried_out(house).state is TaskState.FAILED


def test_a_lost_row_is_an_alarm(house: Lakehouse) -> None:
    house.control.maintainer.look(NAME)
    worker, spec = at_work(house)
    worker.lost_rows = 1
    task = house.control.verifier.verify(worker.report(spec, Committed(worker.commit(spec).snapshot_id)))
    assert task.state is TaskState.FAILED


def moved(house: Lakehouse) -> tuple[RewriteDataFiles, Snapshot, Changes]:
    """What a right commit says and does."""
    house.control.maintainer.look(NAME)
    worker, spec = at_work(house)
    snapshot = worker.commit(spec)
    parent = not_none(house.metadata().snapshot(snapshot.parent_id))
    return spec.rewrite, snapshot, changes_between(house.catalog, house.metadata(), parent, snapshot, spec.rewrite)


def test_what_changed_is_compared_with_the_action_in_files_and_rows(house: Lakehouse) -> None:
    action, snapshot, right = moved(house)
    assert problem_of(action, snapshot, right) is None
    first, second, third = (Partition(1, f"[{number}]") for number in range(3))

    def problem(changes: dict[Partition, Delta]) -> str | None:
        return problem_of(action, snapshot, replace(right, deltas={**right.deltas, **changes}))

    def more(partition: Partition, files: int, records: int) -> dict[Partition, Delta]:
        return {partition: right.deltas[partition].plus(Delta(files, records))}

    # Where the rows of a group go within the spec is told by its proof; in all it must come out even.
    assert problem({**more(first, 0, 5), **more(third, 0, -5)}) is None
    assert (
        problem({first: Delta(), **more(third, right.deltas[first].data_files, right.deltas[first].records)})
        is not None
    )
    assert problem(more(first, 0, 1)) is not None
    assert problem(more(first, 0, -1)) is not None
    assert problem(more(first, 1, 0)) is not None
    assert problem(more(BONN, 1, 0)) is not None
    assert problem({**more(BONN, 0, 1), **more(first, 0, -1)}) is not None
    assert problem({**more(KYOTO, 0, -1), **more(first, 0, 1)}) is not None
    assert problem({KYOTO: Delta(), **more(first, 0, -20)}) is not None
    assert problem({Partition(2, "[1]"): Delta(1, 5), **more(first, -1, -5)}) is not None
    assert problem({**more(second, -200, 0), **more(first, 0, 0)}) is not None
    none_made = {p: Delta(0 if p.spec_id else d.data_files, d.records) for p, d in right.deltas.items()}
    assert problem(none_made) is not None
