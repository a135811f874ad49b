"""Several at once, as many as asked for: none is begun twice, none behind a failure, and no failure is lost."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from icewright.observation import parallel_looks
from icewright.observation.parallel_looks import ParallelLooks

TIMEOUT_S = 30


class Threads:
    """Counts the threads that take part beside the one that calls."""

    def __init__(self) -> None:
        self.begun = self.ended = 0
        self._lock = threading.Lock()

    @contextmanager
    def working(self) -> Iterator[None]:
        with self._lock:
            self.begun += 1
        yield
        with self._lock:
            self.ended += 1


@given(st.integers(1, 5), st.integers(0, 30))
def test_each_is_done_once_and_all_is_over_at_the_end(at_once: int, count: int) -> None:
    done, threads = Counter[int](), Threads()
    ParallelLooks(at_once, threads.working).each(range(count), lambda one: done.update([one]))
    assert done == Counter(range(count))
    assert threads.begun == threads.ended == (at_once - 1 if count > 1 else 0)


def test_so_many_are_at_work_at_the_same_time() -> None:
    meet = threading.Barrier(4)
    ParallelLooks(4, Threads().working).each(range(8), lambda _: meet.wait(TIMEOUT_S))


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_nothing_is_begun_behind_what_failed(at_once: int) -> None:
    begun = list[int]()

    def look(one: int) -> None:
        begun.append(one)
        raise LookupError(one)

    with pytest.raises(LookupError), capture_logs() as logs:
        ParallelLooks(at_once, Threads().working).each(range(100), look)
    assert len(begun) == len(logs) + 1 <= at_once  # one is raised, the others are said


def test_nothing_is_begun_by_others_behind_what_failed() -> None:
    meet, done, helpers = threading.Barrier(2), list[int](), list[threading.Thread]()
    caller = threading.current_thread()

    def look(one: int) -> None:
        if threading.current_thread() is not caller:
            helpers.append(threading.current_thread())
            meet.wait(TIMEOUT_S)
            raise LookupError(one)
        if not done:
            meet.wait(TIMEOUT_S)
            helpers[0].join(TIMEOUT_S)
        done.append(one)

    with pytest.raises(LookupError):
        ParallelLooks(2, Threads().working).each(range(100), look)
    assert len(done) == 1, "what was begun is done"


def test_what_failed_keeps_nothing_in_memory() -> None:
    """A look at a large table has hundreds of megabytes, and as long as the store is away each round fails."""

    class Table:
        pass

    tables = list[weakref.ref[Table]]()

    def look(_: int) -> None:
        table = Table()
        tables.append(weakref.ref(table))
        raise LookupError

    gc.disable()  # which would find it some time
    try:
        with pytest.raises(LookupError), capture_logs():
            ParallelLooks(2, Threads().working).each(range(2), look)
        assert [table() for table in tables] == [None] * len(tables) != []
    finally:
        gc.enable()


def test_what_the_source_raises_is_raised() -> None:
    def source() -> Iterator[int]:
        yield 1
        yield 2
        raise LookupError("no more")

    done = list[int]()
    with pytest.raises(LookupError, match="no more"):
        ParallelLooks(3, Threads().working).each(source(), done.append)
    assert sorted(done) == [1, 2]


def test_a_machine_without_room_for_threads_does_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_room)
    done = list[int]()
    with capture_logs() as logs:
        ParallelLooks(3, Threads().working).each(range(5), done.append)
    assert done == [0, 1, 2, 3, 4]
    assert [entry["event"] for entry in logs] == ["thread not started"]


def test_whatever_keeps_a_thread_from_starting_those_that_were_started_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, started = threading.Thread.start, list[threading.Thread]()
    join, joined = threading.Thread.join, list[threading.Thread]()

    def start_one(thread: threading.Thread) -> None:
        if started:
            raise MemoryError
        started.append(thread)
        start(thread)

    def note_join(thread: threading.Thread) -> None:
        joined.append(thread)
        join(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    monkeypatch.setattr(threading.Thread, "join", note_join)
    done, threads = list[int](), Threads()
    with pytest.raises(MemoryError):
        ParallelLooks(3, threads.working).each(range(100), done.append)
    assert (joined, threads.ended, done) == (started, 1, list(range(100)))


def test_one_thread_at_a_time_takes_what_is_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is a generator: one that is asked while it answers another thread fails."""
    batches = list[Any]()

    class Kept(parallel_looks._Batch[int]):
        def __init__(self, *of: Any) -> None:
            super().__init__(*of)
            batches.append(self)

    def source() -> Iterator[int]:
        yield from (0, 1)  # they are taken before any thread is there
        for number in range(2, 9):
            assert batches[0]._turns.locked()
            yield number

    monkeypatch.setattr(parallel_looks, "_Batch", Kept)
    done = list[int]()
    ParallelLooks(3, Threads().working).each(source(), done.append)
    assert sorted(done) == list(range(9))
