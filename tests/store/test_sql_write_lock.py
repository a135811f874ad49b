"""Writers of one process on SQLite: one after the other, in the order in which they came."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from icewright.core.errors import StoreUnavailable
from icewright.store.engine import store_engine
from icewright.store.locks import WriteLock
from icewright.store.transactions import EPOCH, TURNS, reading, writing
from tests.waiting import until


def test_those_who_wait_come_in_the_order_in_which_they_came() -> None:
    turns, came = WriteLock(60_000), list[int]()

    def wait(number: int) -> None:
        with turns.turn():
            came.append(number)

    with ThreadPoolExecutor(8) as pool:
        with turns.turn():
            for number in range(8):
                pool.submit(wait, number)
                until(lambda: turns.waiting == number + 1)  # noqa: B023 - asked before the next number
        pool.shutdown()
    assert came == list(range(8))
    with turns.turn():
        assert turns.waiting == 0


def test_one_at_a_time_has_its_turn_and_passes_it_on_when_it_fails() -> None:
    turns, inside, most = WriteLock(60_000), [0], [0]

    def work() -> None:
        with turns.turn():
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            inside[0] -= 1
            raise ValueError("failed")

    with ThreadPoolExecutor(8) as pool:
        failed = [pool.submit(work).exception() for _ in range(200)]
    assert all(isinstance(error, ValueError) for error in failed)
    assert most == [1]


def test_who_waits_too_long_is_told_and_leaves_the_line() -> None:
    turns = WriteLock(1)
    with turns.turn():
        with ThreadPoolExecutor(1) as pool:
            waited = pool.submit(turns.turn().__enter__)
            assert isinstance(waited.exception(), StoreUnavailable)
        assert turns.waiting == 0
    with turns.turn():
        pass


def test_writers_of_a_file_take_turns_and_readers_wait_for_nobody(tmp_path: Path) -> None:
    engine = store_engine(f"sqlite:///{tmp_path}/store.db")
    turns: WriteLock = engine.get_execution_options()[TURNS]
    fenced = engine.execution_options(**{EPOCH: None})  # as a server has it
    done = threading.Event()

    def write() -> None:
        with writing(fenced):
            done.set()

    with ThreadPoolExecutor(1) as pool, writing(engine):
        pool.submit(write)
        until(lambda: turns.waiting == 1)
        with reading(engine):
            assert not done.is_set()
    assert done.is_set()
    engine.dispose()


@pytest.mark.parametrize("failing", [True, False])
def test_a_transaction_gives_its_turn_back_however_it_ends(tmp_path: Path, *, failing: bool) -> None:
    engine = store_engine(f"sqlite:///{tmp_path}/store.db")
    for _ in range(3):
        with suppress(ZeroDivisionError), writing(engine):
            assert 1 // (0 if failing else 1)
    engine.dispose()
