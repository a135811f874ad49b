"""Looking after what is in quarantine: in which order, and what one table's trouble is to the others."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from icewright.actions.remove_files import quarantine_scheduler as removal_rounds
from icewright.actions.remove_files.deleter import Batch
from icewright.actions.remove_files.quarantine_scheduler import (
    TEND_AGAIN_MS,
    TEND_INTERVAL_MS,
    LookedAfter,
    QuarantineScheduler,
)
from icewright.actions.remove_files.service import Remover, StorageClients
from icewright.core.completeness import Gaps, Known
from icewright.core.errors import NotAllowed, StorageUnavailable, StoreTaken
from icewright.core.reasons import Reason
from icewright.model.actions.deletion import DeletionRun, IntentState
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.policy.resource_groups import SERVER_FILES
from icewright.model.work.halts import EVERYTHING, HaltState, NewHalt, Part, PartKind
from icewright.ownership.model import Place
from tests.builders.deletions import DAY_MS, HOUR_MS, World, undone
from tests.doubles.sightings import MemorySightings
from tests.doubles.task_store import MemoryTaskStore

LAKE = frozenset({"lake"})
NOBODY: Any = None


class Looked(Remover):
    """Remembers what was looked after; ``trouble`` may keep it from that."""

    def __init__(self, world: World) -> None:
        hands = StorageClients(world.deleter(), world.needs, NOBODY)
        self.queue = MemoryTaskStore(world.clock)
        super().__init__(
            {"lake": hands},
            world.store,
            self.queue,
            lambda _ms: None,
            lambda _id: None,
            lambda _task, _seen: None,
            lambda _run, _reason: None,
        )
        self.runs: list[str] = []
        self.trouble: Callable[[str], None] = lambda _run_id: None

    def tend(self, run_id: str, after: int | None = None, *, wait_s: float = -1) -> Batch:
        if after is None:
            self.runs.append(run_id)
        self.trouble(run_id)
        return super().tend(run_id, after, wait_s=wait_s)


def rounds_of(world: World, remover: Remover) -> QuarantineScheduler:
    plans: Any = SimpleNamespace(watch=SimpleNamespace(graces_since=lambda: 0))
    return QuarantineScheduler(
        NOBODY, remover, plans, NOBODY, NOBODY, NOBODY, world.store, MemorySightings(world.clock)
    )


def tend(rounds: QuarantineScheduler) -> None:
    found = {step.__name__: step for step in rounds.steps(lambda: LAKE, lambda: None)}
    found["tend_quarantine"]()


def removed(world: World, run_id: str, table_id: TableId | None = None) -> CanonicalPath:
    """A file of always the same path, each time with other bytes, goes into quarantine."""
    (path,) = world.garbage(1)
    world.storage.write(path, run_id.encode(), modified_at=world.clock.now() - 30 * DAY_MS)
    before, world.table_id = world.table_id, table_id or world.table_id
    world.deleter().begin(world.plan([path], plan_id=f"plan-of-{run_id}"), run_id)
    world.run_to_its_end(run_id)
    world.table_id = before
    return path


class Tables(World):
    """Tables that own their place, whichever is there at the time."""

    def place(self, name: TableName) -> Known[Place]:
        return Gaps().judge(Place(name, self.table_id.uuid, self.roots, ()))


@pytest.fixture
def world() -> World:
    return Tables()


def test_of_two_files_that_had_one_path_the_later_one_comes_back(world: World) -> None:
    """Although it is the earlier one's turn first: a day counts from when each was looked after."""
    remover = Looked(world)
    rounds = rounds_of(world, remover)
    removed(world, "run-1")
    tend(rounds)
    world.clock.advance(12 * HOUR_MS)
    path = removed(world, "run-2")
    tend(rounds)
    world.clock.advance(11 * HOUR_MS)
    world.refs[path] = b"run-2"
    world.commits += 1
    tend(rounds)
    world.clock.advance(TEND_INTERVAL_MS)
    tend(rounds)
    assert world.storage.objects[path].content == b"run-2"
    assert world.intents("run-1")[path].state is IntentState.QUARANTINED


def test_a_person_who_asks_for_the_earlier_one_has_the_later_one_looked_after_first(world: World) -> None:
    rounds = rounds_of(world, Looked(world))
    removed(world, "run-1")
    path = removed(world, "run-2")
    world.refs[path] = b"run-2"
    world.commits += 1
    assert rounds.tend("run-1") == (None, None)
    assert world.storage.objects[path].content == b"run-2"
    undone(world, "run-1")
    assert world.storage.objects[path].content == b"run-2"


def many(world: World, run_id: str, count: int) -> None:
    """So many files move into quarantine, and have been there for long enough."""
    paths = world.garbage(count, run_id)
    world.deleter().begin(world.plan(paths, plan_id=f"plan-of-{run_id}"), run_id)
    world.run_to_its_end(run_id)
    world.clock.advance(8 * DAY_MS)


def held(world: World, run_id: str) -> int:
    return world.store.tally(run_id)[IntentState.QUARANTINED].files


@pytest.fixture
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal_rounds, "PAGE_BATCHES", 1)


@pytest.mark.usefixtures("short_pages")
def test_a_person_has_a_page_of_files_looked_after_at_a_time_and_goes_on_wherever_it_was_broken_off(
    world: World,
) -> None:
    rounds = rounds_of(world, Looked(world))
    many(world, "run-1", 250)
    waits, since = rounds.tend("run-1")
    assert (waits, since, held(world, "run-1")) == (None, LookedAfter("run-1", "run-1", 99, False), 150)
    waits, since = rounds.tend("run-1")  # whoever asked has forgotten where the page ended
    assert held(world, "run-1") == 50
    rounds = rounds_of(world, Looked(world))  # and the server has died
    assert rounds.tend("run-1", since) == (None, LookedAfter("run-1", "run-1", 249, False))
    assert held(world, "run-1") == 0
    assert rounds.tend("run-1", LookedAfter("run-1", "run-1", 249, False)) == (None, None)


def test_a_page_that_takes_long_is_a_short_one(world: World) -> None:
    remover = Looked(world)
    rounds = rounds_of(world, remover)
    many(world, "run-1", 250)

    def slow(_run_id: str) -> None:
        world.clock.advance(removal_rounds.PAGE_MS)

    remover.trouble = slow
    assert rounds.tend("run-1") == (None, LookedAfter("run-1", "run-1", 99, False))


def test_a_person_hears_why_files_stay_beyond_their_time_and_earlier_runs_are_looked_after_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = rounds_of(world, Looked(world))
    path = removed(world, "run-1")
    many(world, "run-2", 3)
    world.refs[path] = b"run-1"
    world.commits += 1
    around = Reason("quarantine-in-table", "the quarantine lies in the place of lake.db.around")

    def taken(name: TableName) -> Known[Place]:
        return Gaps().judge(Place(name, world.table_id.uuid, (), (around,)))

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(world, "place", taken)
        rounds = rounds_of(world, Looked(world))
        with capture_logs() as logs:
            tend(rounds)
        kept, since = rounds.tend("run-1")
    assert [(one["event"], one["run"], one["code"]) for one in logs] == [
        ("files stay in quarantine", "run-2", "not-owned")
    ]
    assert kept is not None
    assert (kept.code, kept.figures, since) == ("not-owned", {"files": 3}, None)
    assert kept.text.endswith(f": {around.text}")
    assert (held(world, "run-1"), held(world, "run-2"), world.missing()) == (0, 3, set())
    assert (rounds_of(world, Looked(world)).tend("run-2"), held(world, "run-2")) == ((None, None), 0)


def test_a_page_asks_for_nothing_of_other_tables(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be tens of thousands of their runs, and each page would go through all of them."""
    rounds = rounds_of(world, Looked(world))
    many(world, "run-1", 1)
    removed(world, "run-2", TableId("lake", "uuid-2"))
    asked, run = set(), world.store.run

    def heard(run_id: str) -> DeletionRun:
        asked.add(run_id)
        return run(run_id)

    monkeypatch.setattr(world.store, "run", heard)
    assert rounds.tend("run-1") == (None, None)
    assert (asked, held(world, "run-1")) == ({"run-1"}, 0)


@pytest.mark.usefixtures("short_pages")
def test_what_a_later_run_has_put_into_quarantine_between_two_pages_is_looked_after_first(world: World) -> None:
    rounds = rounds_of(world, Looked(world))
    many(world, "run-1", 150)
    _, since = rounds.tend("run-1")
    path = removed(world, "run-2")
    world.refs[path] = b"run-2"
    world.commits += 1
    waits, since = rounds.tend("run-1", since)
    assert (waits, since and since.newest_run_id, held(world, "run-1")) == (None, "run-2", 50)
    assert world.storage.objects[path].content == b"run-2"


@pytest.mark.usefixtures("short_pages")
def test_what_holds_up_the_later_run_on_one_page_holds_up_the_earlier_one_on_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    remover = Looked(world)
    rounds = rounds_of(world, remover)
    many(world, "run-1", 1)
    many(world, "run-2", 150)
    real, away = Remover.tend, Reason("storage-away", "no answer")

    def away_at_first(self: Remover, run_id: str, after: int | None = None, *, wait_s: float = -1) -> Batch:
        if (run_id, after) == ("run-2", None):
            return Batch((), away, 99)
        return real(self, run_id, after, wait_s=wait_s)

    monkeypatch.setattr(Remover, "tend", away_at_first)
    waits, since = rounds.tend("run-1")
    assert (waits, since) == (away, LookedAfter("run-2", "run-2", 99, True))
    waits, since = rounds.tend("run-1", since)
    while since is not None:
        waits, since = rounds.tend("run-1", since)
    assert (waits, held(world, "run-1"), held(world, "run-2")) == (None, 1, 100)


@pytest.mark.parametrize("state", HaltState)
def test_files_stay_in_quarantine_while_that_is_halted_whoever_asks(world: World, state: HaltState) -> None:
    remover = Looked(world)
    rounds = rounds_of(world, remover)
    many(world, "run-1", 150)
    for part in (EVERYTHING, Part(PartKind.GROUP, SERVER_FILES), Part(PartKind.CATALOG, "lake"), of_table(world)):
        remover.queue.halts.halt(NewHalt(part, state, "a fire"))
        tend(rounds)
        with pytest.raises(NotAllowed, match="a fire"):
            rounds.tend("run-1")
        with pytest.raises(NotAllowed, match="a fire"):
            remover.tend("run-1")
        remover.queue.halts.resume(part, "")
        world.clock.advance(TEND_INTERVAL_MS)
    assert held(world, "run-1") == 150
    remover.queue.halts.halt(NewHalt(Part(PartKind.GROUP, "default"), state))
    tend(rounds)
    assert held(world, "run-1") == 0


def test_a_halt_that_comes_in_between_holds_from_the_next_batch_on(world: World) -> None:
    remover = Looked(world)
    rounds = rounds_of(world, remover)
    many(world, "run-1", 150)

    batch = remover.tend("run-1")
    remover.queue.halts.halt(NewHalt(EVERYTHING, HaltState.PAUSED))
    with pytest.raises(NotAllowed):
        remover.tend("run-1", batch.after)
    assert held(world, "run-1") == 50
    tend(rounds)
    assert held(world, "run-1") == 50


def of_table(world: World) -> Part:
    return Part(PartKind.TABLE, "lake.db.events", world.table_id)


def test_one_tables_trouble_is_no_others_and_is_tried_again_within_the_hour(world: World) -> None:
    remover = Looked(world)
    rounds = rounds_of(world, remover)
    other = TableId("lake", "uuid-2")
    removed(world, "run-1")
    removed(world, "run-2", other)
    removed(world, "run-3", other)

    def away(run_id: str) -> None:
        if run_id == "run-3":
            raise StorageUnavailable("no answer")

    remover.trouble = away
    tend(rounds)
    assert remover.runs == ["run-3", "run-1"]  # and not the other table's earlier one
    tend(rounds)
    assert len(remover.runs) == 2
    world.clock.advance(TEND_AGAIN_MS)
    tend(rounds)
    assert remover.runs[2:] == ["run-3"]
    remover.trouble = lambda _run_id: None
    world.clock.advance(TEND_AGAIN_MS)
    tend(rounds)
    assert remover.runs[3] == "run-3"


def test_a_run_that_cannot_end_is_not_looked_into_in_every_round(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    remover = Looked(world)
    rounds = rounds_of(world, remover)
    monkeypatch.setattr(rounds, "_has_ended", lambda _task_id: True)
    removed(world, "run-1")
    (path,) = world.garbage(1, "other")
    world.deleter().begin(world.plan([path], plan_id="plan-of-run-2"), "run-2")
    left: list[str] = []
    real = remover.leave

    def leave(run_id: str, reason: Reason) -> Batch:
        left.append(run_id)
        if left.count(run_id) == 1:
            raise StorageUnavailable("no answer")
        return real(run_id, reason)

    monkeypatch.setattr(remover, "leave", leave)
    step = next(one for one in rounds.steps(lambda: LAKE, lambda: None) if one.__name__ == "_leave_ended")
    step()
    step()
    assert (left, world.store.run("run-2").is_open) == (["run-2"], True)
    world.clock.advance(TEND_AGAIN_MS)
    step()
    assert (set(left), world.store.run("run-2").is_open) == ({"run-2"}, False)
    assert path in world.storage.objects


def test_a_server_that_was_replaced_looks_after_nothing_more(world: World) -> None:
    remover = Looked(world)
    rounds = rounds_of(world, remover)
    removed(world, "run-1")

    def taken(_run_id: str) -> None:
        raise StoreTaken("another server")

    remover.trouble = taken
    with pytest.raises(StoreTaken):
        tend(rounds)
