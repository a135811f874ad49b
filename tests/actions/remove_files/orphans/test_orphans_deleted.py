"""From the first sighting to quarantine and back: what passes find, the Deleter takes, and it comes back as it was."""

from __future__ import annotations

import pytest

from icewright.actions.remove_files.deleter import Deleter
from icewright.core.completeness import Complete
from icewright.model.actions.deletion import Candidate, Cause, DeletePlan, DeleteSettings, plan_deletes
from icewright.model.actions.remove_files import RemoveOrphanFiles
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.objects import ListedObject
from icewright.model.plans.approvals import Approval
from icewright.ownership.needed_files import TableNeeds
from tests.builders.deletions import no_other
from tests.builders.orphan_lake import ALL, DAY_MS, PLAIN, LakeTable, OrphanLake, complete, owns
from tests.doubles.deletion_store import MemoryDeletionStore
from tests.doubles.quarantine import MemoryQuarantine

HELD = CanonicalPath("s3://b/held")


class World:
    """A table with garbage, a finder and a deleter over one storage; each has its own clock or store."""

    def __init__(self) -> None:
        self.lake = OrphanLake()
        self.table: LakeTable = self.lake.table()
        self.table.commit(*(f"data/{number}.parquet" for number in range(20)))
        self.lake.pass_time(DAY_MS)
        for number in range(5):
            self.lake.write(f"s3://b/t/data/left {number}%2F.parquet", size_bytes=number)
        self.needs = TableNeeds(self.table, self.lake.open_spool, PLAIN)
        self.store = MemoryDeletionStore(self.lake.store_clock)
        self.quarantine = MemoryQuarantine(self.lake.storage, HELD)

    def action(self) -> RemoveOrphanFiles:
        self.lake.look(self.table)
        self.lake.pass_time(10 * DAY_MS)
        found = self.lake.found(self.table, policy=ALL)
        assert found.action is not None
        return found.action

    def plan(self, action: RemoveOrphanFiles) -> DeletePlan:
        """What the deleter is given, with the evidence of each file as the action has it."""
        candidates = [
            Candidate(
                ListedObject(CanonicalPath(file.path), file.size_bytes, file.modified_at, file.etag, file.version_id),
                file.first_seen_at,
            )
            for file in action.files
        ]
        known = self.needs(self.table.name, [one.object.path for one in candidates])
        assert isinstance(known, Complete)
        now = self.lake.clock.now()
        return plan_deletes(
            known, Cause.ORPHAN, candidates, plan_id="plan-1", table_name=self.table.name, planned_at=now
        )

    def deleter(self) -> Deleter:
        def place(_name: TableName) -> object:
            return complete(owns(self.table.root))

        return Deleter(
            self.store,
            self.lake.objects,
            self.quarantine,
            self.needs,
            place,  # type: ignore[arg-type]  # known by its value
            no_other,
            aliases=PLAIN,
            settings=DeleteSettings(),
        )

    def carry_out(self, plan: DeletePlan) -> None:
        deleter = self.deleter()
        self.store.approve(Approval(plan.plan_hash, "somebody", 0))
        deleter.begin(plan, "run-1")
        for _ in range(20):
            if deleter.advance("run-1").is_done:
                return
            self.lake.pass_time(60_000)
        raise AssertionError("it does not end")

    def below_the_root(self) -> dict[str, bytes]:
        found = self.lake.storage.objects.items()
        return {path: stored.content for path, stored in found if path.startswith(self.table.root)}


@pytest.fixture
def world() -> World:
    return World()


def test_g15_what_passes_find_goes_and_comes_back_byte_for_byte(world: World) -> None:
    before = world.below_the_root()
    action = world.action()
    world.carry_out(world.plan(action))
    gone = {file.path for file in action.files}
    assert len(gone) == 5
    assert world.below_the_root() == {path: content for path, content in before.items() if path not in gone}
    assert world.table.needed() <= world.below_the_root().keys()
    world.deleter().undo("run-1")
    assert world.below_the_root() == before


def test_o8_what_is_committed_after_the_plan_is_left(world: World) -> None:
    plan = world.plan(world.action())
    late = sorted(candidate.object.path for candidate in plan.candidates)[:2]
    world.table.commit(*(path.removeprefix("s3://b/t/") for path in late))
    world.carry_out(plan)
    assert world.table.needed() <= world.below_the_root().keys()
    assert len(world.below_the_root().keys() & {candidate.object.path for candidate in plan.candidates}) == 2


def test_o14_what_is_in_quarantine_is_found_by_no_later_pass(world: World) -> None:
    world.carry_out(world.plan(world.action()))
    for _ in range(3):
        world.lake.pass_time(10 * DAY_MS)
        found = world.lake.found(world.table, quarantine=(f"{HELD}/",))
        assert (found.action, found.finished.files) == (None, 0)


def test_i10_what_came_back_begins_anew(world: World) -> None:
    """It is another object to its storage; somebody wanted it back."""
    action = world.action()
    world.carry_out(world.plan(action))
    world.deleter().undo("run-1")
    found = world.lake.found(world.table)
    assert found.action is None
    assert sum(found.kept.values()) == len(action.files)
