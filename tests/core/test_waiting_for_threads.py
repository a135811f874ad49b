"""Threads that hang are waited for once, not each for as long."""

from __future__ import annotations

from dataclasses import dataclass

from icewright.core.system_clock import join_all


@dataclass
class Time:
    now_s: float = 1_000.0


@dataclass
class Thread:
    """A thread that ends in so many seconds."""

    time: Time
    ends_in_s: float
    has_ended: bool = False

    def join(self, timeout: float | None = None) -> None:
        assert timeout is not None
        self.has_ended = self.ends_in_s <= timeout
        self.time.now_s += min(self.ends_in_s, timeout)


def test_all_have_the_same_time_together() -> None:
    time = Time()
    threads = [Thread(time, seconds) for seconds in (4, 60, 60, 0)]
    join_all(threads, 10, monotonic_s=lambda: time.now_s)
    assert time.now_s == 1_010
    assert [one.has_ended for one in threads] == [True, False, False, True]
