"""Writing position delete files anew, from what a person asks for to the verified commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.maintenance.registry.planning import still_applies
from icewright.model.actions.rewrite_delete_files import RewritePositionDeletes, RewritePositionDeletesRequest
from icewright.model.iceberg.files import FileContent, FileFormat, Partition
from icewright.model.iceberg.tables import ATTEMPT_KEY, PROOF_KEY, TASK_ID_KEY, Snapshot
from icewright.model.work.jobs import TaskSpec
from icewright.model.work.tasks import TaskState
from tests.builders.lakehouse import BONN, HOUR_MS, KYOTO, NAME, Lakehouse
from tests.builders.worker import claim, succeeded, verified
from tests.doubles.lake import MemoryFile
from tests.narrowing import not_none

ASKED = RewritePositionDeletesRequest()


def deletes(path: str, partition: Partition, records: int, of: str | None = None) -> MemoryFile:
    return MemoryFile(path, partition, 100, records, content=FileContent.POSITION_DELETES, path_lower=of, path_upper=of)


@pytest.fixture
def house() -> Lakehouse:
    """A file in Kyoto has two delete files of its own, and those in Bonn have two of the partition."""
    house = Lakehouse()
    house.create()
    house.catalog.append(NAME, [*house.files(2, BONN), *house.files(1, KYOTO)])
    for number in range(2):
        house.catalog.overwrite(NAME, add=[deletes(f"around{number}", BONN, 3)], remove=[])
        house.catalog.overwrite(NAME, add=[deletes(f"own{number}", KYOTO, 1, "f00002.parquet")], remove=[])
    house.pass_time(2 * HOUR_MS)
    return house


GONE = ("around0", "around1", "own0", "own1")
CAME = (deletes("new0", BONN, 4), deletes("new1", KYOTO, 2, "f00002.parquet"))


def commit(
    house: Lakehouse,
    spec: TaskSpec,
    *,
    remove: tuple[str, ...] = GONE,
    add: tuple[MemoryFile, ...] = CAME,
    proof: str = "deleted-positions-sha256;groups=2;files=2;positions=6;digest=0",
    keeps_numbers: bool = True,
) -> Snapshot:
    """A commit whose new files have the sequence numbers of those that they take the place of."""
    said = {TASK_ID_KEY: spec.task_id, ATTEMPT_KEY: str(spec.attempt), PROOF_KEY: proof}
    base = not_none(house.metadata().current_snapshot_id)
    numbers = {BONN: 4, KYOTO: 5} if keeps_numbers else {}
    new = [replace(file, data_sequence_number=numbers.get(file.partition)) for file in add]
    return house.catalog.commit_rewrite(NAME, base_snapshot_id=base, remove=remove, add=new, summary=said)


def test_it_is_planned_applied_and_verified(house: Lakehouse) -> None:
    spec = claim(house, ASKED)
    assert isinstance(spec.action, RewritePositionDeletes)
    assert [(group.data_file, group.sequence_number) for group in spec.action.groups] == [
        (None, 4),
        ("f00002.parquet", 5),
    ]
    task = verified(house, spec, commit(house, spec))
    assert succeeded(task).reason.text == (
        "4 position delete files became 2, and delete the same rows; a scan of their partitions opens 3 delete files "
        "instead of 6"
    )
    assert house.control.maintainer.plan_asked(NAME, ASKED).reason.code == "position-deletes-in-order"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"remove": GONE[1:]}, "around0 is still listed"),
        ({"remove": (*GONE, "f00000.parquet")}, "1 data files were removed"),
        ({"add": CAME[:1]}, "no new delete file came for f00002.parquet"),
        ({"add": (*CAME, deletes("more", BONN, 1))}, "more is of no group"),
        ({"add": (CAME[0], deletes("new1", KYOTO, 3, "f00002.parquet"))}, "new1 has 3 positions, those replaced 2"),
        ({"add": (CAME[0], deletes("new1", KYOTO, 2))}, "new1 is of no group"),
        ({"add": (CAME[0], replace(CAME[1], content=FileContent.EQUALITY_DELETES))}, "new1 holds equality-deletes"),
        ({"add": (CAME[0], replace(CAME[1], file_format=FileFormat.AVRO))}, "new1 holds position-deletes in avro"),
        ({"keeps_numbers": False}, "is of no group"),
        ({"proof": "deleted-positions-sha256;groups=2;files=2;positions=5;digest=0"}, "its proof says"),
        ({"proof": "memory"}, "its proof says"),
    ],
)
def test_w5_a_commit_of_anything_else_is_an_alarm(house: Lakehouse, wrong: dict[str, object], said: str) -> None:
    spec = claim(house, ASKED)
    task = verified(house, spec, commit(house, spec, **wrong))  # type: ignore[arg-type]  # its own arguments
    assert task.state is TaskState.FAILED
    assert task.outcome is not None
    assert task.outcome.reason.code == "verification-failed"
    assert said in task.outcome.reason.text


def test_w5_another_delete_file_that_went_and_applies_is_an_alarm(house: Lakehouse) -> None:
    house.catalog.overwrite(
        NAME, add=[replace(deletes("e", KYOTO, 1), content=FileContent.EQUALITY_DELETES)], remove=[]
    )
    spec = claim(house, ASKED)
    task = verified(house, spec, commit(house, spec, remove=(*GONE, "e")))
    assert "1 delete files are lost that still apply: e" in not_none(task.outcome).reason.text


def test_an_upgrade_is_not_to_be_overlooked(house: Lakehouse) -> None:
    action = house.control.maintainer.plan_asked(NAME, ASKED).actions[0]
    metadata = house.metadata()
    house.append(1)
    assert still_applies(action, metadata.table_id, house.metadata()) is None
    house.catalog.upgrade(NAME, 3)
    reason = not_none(still_applies(action, metadata.table_id, house.metadata()))
    assert reason.code == "format-changed"
