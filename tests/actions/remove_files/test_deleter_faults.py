"""The Deleter dies at every named place, as often as it comes by: nothing is done twice, nothing live is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from icewright.core import fault_points as faults
from icewright.core.errors import OutcomeUnknown
from icewright.core.fault_points import Fault
from icewright.model.actions.deletion import WINDOW_FLOOR_MS, Step
from icewright.model.iceberg.locations import CanonicalPath
from tests.builders.deletions import HELD, Died, World, dying_at, tended, undone
from tests.cases import each_case
from tests.doubles.quarantine import AFTER, MemoryQuarantine

POINTS = [point for point in Fault if point.value.startswith("deleter.")]
OCCURRENCES = 8


class Story:
    """A run over garbage, of which one file is needed again, one answer is lost, and which is undone or purged."""

    def __init__(self, *, undo: bool) -> None:
        self.world, self.undo = World(), undo
        live = self.world.garbage(2, "live")
        self.world.commit(*live)
        self.paths = self.world.garbage(4)
        self.plan = self.world.plan(self.paths)
        self.before = dict(self.world.storage.objects)
        self.done: Counter[tuple[Step, CanonicalPath]] = Counter()
        self.lost = False
        quarantine = self.world.quarantine
        assert isinstance(quarantine, MemoryQuarantine)
        quarantine.trouble = self.trouble

    def trouble(self, step: Step, when: str, path: CanonicalPath) -> None:
        if when == AFTER:
            self.done[step, path] += 1
            if (step, path) == (Step.QUARANTINE, self.paths[1]) and not self.lost:
                self.lost = True
                raise OutcomeUnknown("the answer was lost")

    def tell(self) -> None:
        """All of it, by a process that may have died on the way before."""
        world = self.world
        world.deleter().begin(self.plan, "run-1")
        if world.store.run("run-1").is_open:
            if self.paths[3] not in world.refs:
                world.commit(self.paths[3])
            world.run_to_its_end()
        if self.undo:
            undone(world)
            return
        if self.paths[2] not in world.refs:  # somebody took a month to commit
            world.refs[self.paths[2]] = self.before[self.paths[2]].content
            world.clock.advance(2 * WINDOW_FLOOR_MS)
        tended(world)
        tended(world)

    def check(self) -> None:
        """What must be true in the end, however it went."""
        world = self.world
        assert self.lost
        assert max(self.done.values()) == 1, self.done
        assert world.missing() == set()
        assert [path for path in world.storage.objects if path.startswith(HELD)] == []
        found = {path: stored.content for path, stored in world.storage.objects.items()}
        gone = set() if self.undo else set(self.paths[:2])
        assert found == {path: stored.content for path, stored in self.before.items() if path not in gone}
        states = world.states()
        assert states.pop(self.paths[3]) == "skipped: needed"
        if self.undo:
            assert set(states.values()) == {"restored"}
        else:
            assert [states[path] for path in self.paths[:3]] == ["purged", "purged", "restored"]


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    faults.arm(None)


@pytest.mark.parametrize("undo", [True, False], ids=["undone", "purged"])
def test_the_story_without_any_death(*, undo: bool) -> None:
    story = Story(undo=undo)
    seen: Counter[Fault] = Counter()
    faults.arm(lambda point: seen.update([point]))
    story.tell()
    story.check()
    assert max(seen.values()) < OCCURRENCES
    assert set(POINTS) - set(seen) <= {Fault.DELETION_LEFT}


@each_case("undo", [True, False], ids=["undone", "purged"])
@each_case("point", POINTS)
def test_it_dies_at_every_place_and_goes_on(point: Fault, *, undo: bool) -> None:
    for occurrence in range(1, OCCURRENCES):
        story = Story(undo=undo)
        faults.arm(dying_at(point, occurrence))
        died = 0
        for _ in range(5):
            try:
                story.tell()
            except Died:
                died += 1
                assert story.world.missing() <= {story.paths[2]}  # committed late, and not looked after yet
                continue
            break
        assert died <= 1
        story.check()


@each_case("point", POINTS)
def test_it_dies_at_every_place_again_and_again_and_comes_to_an_end(point: Fault) -> None:
    story = Story(undo=True)
    for occurrence in (1, 1, 2, 3, 1):
        faults.arm(dying_at(point, occurrence))
        try:
            story.tell()
        except Died:
            continue
    faults.arm(None)
    story.tell()
    story.check()


def test_a_run_that_is_taken_back_halfway_dies_and_goes_on() -> None:
    story = Story(undo=True)
    world = story.world
    world.deleter().begin(story.plan, "run-1")
    faults.arm(dying_at(Fault.DELETION_LEFT))
    with pytest.raises(Died):
        undone(world)
    undone(world)
    assert set(world.states().values()) == {"skipped: undone"}
    assert not story.done
