"""The history of tasks: each end once, in order, whatever dies when."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from icewright.core.errors import Conflict, OutcomeUnknown, Unavailable
from icewright.model.plans.plans import Reason
from icewright.model.work.history import EndedTask, Ending
from icewright.model.work.tasks import TaskState
from icewright.retention import history as module
from icewright.retention.history import SETTLED_MS, HistoryProgress, HistoryWriter
from tests.cases import each_case
from tests.contracts.samples import OUTCOME
from tests.contracts.test_task_store_contract import move, started
from tests.doubles.audit import MemoryAudit
from tests.doubles.clock import ManualClock
from tests.doubles.history import MemoryHistory
from tests.doubles.task_store import MemoryTaskStore


class Troubled(MemoryHistory):
    """A history whose next commit comes to an error, ``before`` it was made or ``behind`` it."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Exception | None = None
        self.behind: Exception | None = None
        self.done = threading.Event()

    def append(self, rows: Sequence[EndedTask], after: Ending | None) -> None:
        before, self.before = self.before, None
        if before is not None:
            raise before
        super().append(rows, after)
        self.done.set()
        behind, self.behind = self.behind, None
        if behind is not None:
            raise behind


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.tasks = MemoryTaskStore(self.clock, MemoryAudit(self.clock))
        self.history = Troubled()
        self.progress = HistoryProgress(hold_ms=1_000)
        self.writer = HistoryWriter(self.tasks, self.history, self.progress)
        self.count = 0

    def end(self, count: int = 1) -> None:
        for _ in range(count):
            self.count += 1
            move(self.tasks, started(self.tasks, f"task-{self.count:03}", table=self.count), TaskState.FAILED)
            self.clock.advance(1)

    def copied(self) -> list[str]:
        return [row.task_id for row in self.history.rows]


@pytest.fixture
def world() -> World:
    return World()


def test_what_ended_is_copied_once_and_in_order(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_MAX", 2)
    world.end(5)
    world.clock.advance(SETTLED_MS)
    assert [world.writer.copy() for _ in range(4)] == [2, 2, 1, 0]
    assert world.copied() == [f"task-{number:03}" for number in range(1, 6)]
    row, task = world.history.rows[0], world.tasks.get("task-001")
    assert (row.state, row.kind, row.attempts) == ("failed", "rewrite_data_files", 1)
    assert (row.reason_code, row.ended_at) == (OUTCOME.reason.code, task.updated_at)


def test_nothing_is_copied_before_everything_that_ended_earlier_can_be_seen(world: World) -> None:
    world.end()
    ended_at = world.tasks.get("task-001").updated_at
    world.clock.advance(ended_at + SETTLED_MS - world.clock.now())
    assert world.writer.copy() == 0
    world.clock.advance(1)
    assert world.writer.copy() == 1


def test_a_task_that_ends_once_more_is_there_once_more(world: World) -> None:
    world.end()
    world.clock.advance(SETTLED_MS)
    world.writer.copy()
    queued = move(world.tasks, world.tasks.get("task-001"), TaskState.QUEUED)
    world.tasks.request_cancel(queued.task_id, Reason("cancelled", "cancelled on request"))
    world.clock.advance(SETTLED_MS + 1)
    world.writer.copy()
    assert [(row.task_id, row.state) for row in world.history.rows] == [
        ("task-001", "failed"),
        ("task-001", "cancelled"),
    ]


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("before", Unavailable("the catalog is away")),
        ("before", Conflict("somebody else committed")),
        ("before", RuntimeError("a defect")),
        ("behind", OutcomeUnknown("the answer is lost")),
        ("behind", RuntimeError("killed behind the commit")),
    ],
)
def test_w11_whatever_happens_at_a_commit_nothing_is_lost_or_there_twice(
    world: World, where: str, error: Exception
) -> None:
    world.end(3)
    world.clock.advance(SETTLED_MS)
    setattr(world.history, where, error)
    with pytest.raises(type(error)):
        world.writer.copy()
    world.end(1)
    world.clock.advance(SETTLED_MS)
    while HistoryWriter(world.tasks, world.history).copy():  # of a server that was started since
        pass
    assert world.copied() == ["task-001", "task-002", "task-003", "task-004"]


def test_nothing_that_fails_ends_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.001)
    world.end(2)
    world.clock.advance(SETTLED_MS)
    world.history.before = RuntimeError("a defect")
    stop = threading.Event()
    with capture_logs() as logs:
        running = threading.Thread(target=world.writer.run, args=(stop,))
        running.start()
        assert world.history.done.wait(30)
        stop.set()
        running.join()
    assert world.copied() == ["task-001", "task-002"]
    assert "history failed" in [entry["event"] for entry in logs]


def test_how_far_it_is_is_known_from_the_first_copy_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_MAX", 2)
    assert (world.progress.through, world.progress.lag_ms(world.clock.now())) == (None, None)
    world.end(3)
    second = world.tasks.get("task-002").updated_at
    world.clock.advance(SETTLED_MS)
    world.writer.copy()
    assert world.progress.through == second  # another one may have ended in that very instant
    world.writer.copy()
    assert world.progress.through == world.clock.now() - SETTLED_MS
    assert world.progress.lag_ms(world.clock.now() + 5) == SETTLED_MS + 5


def test_while_it_hangs_it_falls_behind_also_from_the_start(world: World) -> None:
    world.end(1)
    world.clock.advance(SETTLED_MS)
    world.history.before = Unavailable("the catalog is away")
    with pytest.raises(Unavailable):
        world.writer.copy()
    assert (world.progress.through, world.progress.lag_ms(world.clock.now())) == (None, 0)
    world.clock.advance(7_000)
    assert world.progress.lag_ms(world.clock.now()) == 7_000
    world.writer.copy()
    assert world.progress.lag_ms(world.clock.now()) == SETTLED_MS


def test_a_table_that_was_dropped_is_behind_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_MAX", 1)
    world.end(3)
    world.clock.advance(SETTLED_MS)
    while world.writer.copy():
        pass
    first = world.tasks.get("task-001").updated_at
    other = HistoryWriter(world.tasks, MemoryHistory(), world.progress)
    other.copy()
    assert world.progress.through == first
    assert world.progress.may_go(first + 500) == first


@each_case(
    ("through", "old", "goes"),
    [(None, 5_000, 4_000), (4_500, 5_000, 4_500), (9_000, 5_000, 5_000), (1_000, 5_000, 4_000), (None, 500, 0)],
)
def test_tasks_wait_for_it_and_not_for_ever(through: int | None, old: int, goes: int) -> None:
    progress = HistoryProgress(hold_ms=1_000)
    if through is not None:
        progress.copied(through)
    assert progress.may_go(old) == goes
