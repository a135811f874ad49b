import itertools
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from icewright.core.clock import Clock, Ids
from icewright.core.system_clock import SystemClock, SystemIds
from tests.cases import each_case
from tests.doubles.clock import ManualClock
from tests.doubles.ids import SequentialIds


def test_the_clock_is_in_milliseconds_of_the_epoch() -> None:
    before = time.time_ns() // 1_000_000
    clock: Clock = SystemClock()
    assert before <= clock.now() <= time.time_ns() // 1_000_000


@pytest.mark.parametrize("ids", [SystemIds(), SequentialIds()])
def test_ids_sort_by_the_time_they_were_made(ids: Ids) -> None:
    made = [ids.new("task") for _ in range(10_000)]
    assert made == sorted(set(made))
    assert all(re.fullmatch(r"task-[0-9a-z-]+", each) for each in made)


def test_ids_are_unique_among_threads() -> None:
    ids, barrier = SystemIds(), threading.Barrier(4)

    def make(_worker: int) -> list[str]:
        barrier.wait()
        return [ids.new("task") for _ in range(2_000)]

    with ThreadPoolExecutor(4) as pool:
        made = list(itertools.chain.from_iterable(pool.map(make, range(4))))
    assert len(set(made)) == len(made)


def test_ids_tell_their_time_and_end_in_a_uuid_of_version_7() -> None:
    clock = ManualClock(1_700_000_000_123)
    value = UUID(SystemIds(clock).new("plan").removeprefix("plan-"))
    assert (value.version, value.variant) == (7, "specified in RFC 4122")
    assert value.int >> 80 == 1_700_000_000_123


def test_ids_keep_their_order_when_the_clock_is_set_back() -> None:
    clock = ManualClock()
    ids = SystemIds(clock)
    first = ids.new("task")
    clock.advance(-60_000)
    assert ids.new("task") > first


@each_case("prefix", ["", "-task", "Task", "ta sk", "task\n", "tä"])
def test_ids_take_no_other_characters(prefix: str) -> None:
    with pytest.raises(ValueError, match="not a prefix"):
        SystemIds().new(prefix)
