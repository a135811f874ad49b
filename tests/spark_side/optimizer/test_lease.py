"""The optimizer's own idea of its lease ends before the server's, and no commit happens on an old idea."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import IcewrightError, InvalidMessage, LeaseLost, Rejected, ServerUnavailable, Unavailable
from icewright.model.work.jobs import Heartbeat, HeartbeatReply
from icewright.model.work.tasks import Progress
from icewright_spark.optimizer.attempt_log import AttemptLog
from icewright_spark.optimizer.lease import LeaseRenewer
from tests.builders.specs import LEASE_S, log_lines, spec_of
from tests.spark_side.optimizer.test_optimizer_loop import Clock


class Answers:
    """Answers heartbeats as told; takes ``delay_s`` of the clock for each."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.delay_s = 0.0
        self.error: IcewrightError | None = None
        self.refuses_logs: IcewrightError | None = None
        self.cancel = False
        self.beats: list[Heartbeat] = []
        self.expires_at_s = 0.0
        self.away_until_s = 0.0

    def heartbeat(self, task_id: str, heartbeat: Heartbeat) -> HeartbeatReply:
        assert task_id == "task-1"
        self.beats.append(heartbeat)
        if self.refuses_logs is not None and heartbeat.log is not None:
            raise self.refuses_logs
        self.clock.wait(self.delay_s / 2)
        if self.clock.now_s < self.away_until_s:
            raise Unavailable("away")
        if self.error is not None:
            raise self.error
        self.expires_at_s = self.clock.now_s + LEASE_S
        self.clock.wait(self.delay_s / 2)
        return HeartbeatReply(int(LEASE_S * 1000), self.cancel)


class Kept:
    """A renewer that beats only when a test says so."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.server = Answers(self.clock)
        self.stops = 0
        self.log = AttemptLog()
        self.renewer = self.keep()

    def keep(self, claimed_s: float | None = None) -> LeaseRenewer:
        return LeaseRenewer(
            self.server,
            spec_of(),
            lambda: Progress("merging", 1, 2),
            self._stop,
            self.clock,
            claimed_s=claimed_s,
            pause=self.clock.wait,
            log=self.log,
        )

    def _stop(self) -> None:
        self.stops += 1

    def beat_unheard(self) -> None:
        with pytest.raises(Unavailable):
            self.renewer.beat()


@pytest.fixture
def kept() -> Kept:
    return Kept()


def test_a_beat_carries_the_fencing_token_and_the_progress(kept: Kept) -> None:
    kept.renewer.beat()
    assert kept.server.beats == [Heartbeat(7, Progress("merging", 1, 2))]


def test_a_beat_tells_the_log_but_not_where_a_commit_waits_for_it(kept: Kept) -> None:
    log = kept.log
    log.add(log_lines("a", "b").lines)
    kept.renewer.beat(kept.renewer._news())
    log.add(log_lines("c").lines)
    kept.renewer.may_commit()
    kept.renewer.beat(kept.renewer._news())
    kept.renewer.beat(kept.renewer._news())
    told = [log_lines("a", "b"), None, log_lines("c", first=3), None]
    assert [beat.log for beat in kept.server.beats] == told
    assert log.unsent() is None


@pytest.mark.parametrize("error", [InvalidMessage("unknown field 'log'"), Rejected("too large")])
def test_a_server_that_refuses_the_log_keeps_the_lease_and_is_told_no_more(kept: Kept, error: IcewrightError) -> None:
    kept.server.refuses_logs = error
    kept.log.add(log_lines("a").lines)
    for _ in range(3):
        kept.renewer.beat(kept.renewer._news())
    assert kept.renewer.lost is None
    assert [beat.log is None for beat in kept.server.beats] == [False, True, True, True]
    assert kept.log.unsent() == log_lines("a")


def test_where_something_between_lets_no_log_through_the_lease_is_kept_and_the_log_given_up(kept: Kept) -> None:
    kept.server.refuses_logs = ServerUnavailable("the server answered 403 without JSON")
    kept.log.add(log_lines("a").lines)
    for _ in range(5):
        kept.renewer.beat(kept.renewer._news())
    assert kept.renewer.lost is None
    assert [beat.log is None for beat in kept.server.beats] == [False, True] * 3 + [True] * 2


@pytest.mark.parametrize(
    ("error", "third"), [(Unavailable("the server answered 500"), True), (ServerUnavailable("away"), False)]
)
def test_one_that_fails_at_a_beat_is_told_no_more_and_behind_an_outage_the_first_beat_is_the_lease_s_alone(
    kept: Kept, error: IcewrightError, *, third: bool
) -> None:
    kept.log.add(log_lines("a").lines)
    kept.server.error = error
    with pytest.raises(Unavailable):
        kept.renewer.beat(kept.renewer._news())
    kept.server.error = None
    for _ in range(3):
        kept.renewer.beat(kept.renewer._news())
    assert [beat.log is None for beat in kept.server.beats] == [False, True, True, third, True]


def test_a_server_that_is_away_while_the_lease_runs_stops_nothing(kept: Kept) -> None:
    kept.server.error = Unavailable("away")
    kept.clock.wait(LEASE_S - 0.001)
    kept.beat_unheard()
    assert (kept.stops, kept.renewer.lost) == (0, None)


def test_a_server_that_is_away_for_as_long_as_the_lease_ran_ends_the_attempt_once(kept: Kept) -> None:
    kept.server.error = Unavailable("away")
    kept.clock.wait(LEASE_S)
    kept.beat_unheard()
    kept.beat_unheard()
    assert kept.stops == 1
    assert kept.renewer.lost is not None


def test_a_lease_once_lost_stays_lost_though_the_server_would_grant_it_again(kept: Kept) -> None:
    kept.server.error = Unavailable("away")
    kept.clock.wait(LEASE_S)
    kept.beat_unheard()
    kept.server.error = None
    with pytest.raises(LeaseLost):
        kept.renewer.may_commit()


def test_the_lease_counts_from_when_the_task_was_asked_for_not_from_the_answer(kept: Kept) -> None:
    claimed_s = kept.clock()
    kept.clock.wait(9.0)  # the claim's answer was slow
    kept.renewer = kept.keep(claimed_s)
    kept.server.error = Unavailable("away")
    kept.clock.wait(LEASE_S - 9.0)
    kept.beat_unheard()
    assert kept.stops == 1


@given(delays_s=st.lists(st.floats(0, 9), max_size=8), silence_s=st.floats(0, 60))
def test_our_lease_never_outlasts_the_servers(delays_s: list[float], silence_s: float) -> None:
    kept = Kept()
    kept.server.expires_at_s = kept.clock() + LEASE_S
    for delay_s in delays_s:
        kept.server.delay_s = delay_s
        kept.clock.wait(1.0)
        kept.renewer.beat()
    kept.server.error, kept.server.delay_s = Unavailable("away"), 0.0
    kept.clock.wait(silence_s)
    kept.beat_unheard()
    if kept.clock() >= kept.server.expires_at_s:
        assert kept.renewer.lost is not None


@pytest.mark.parametrize("error", [LeaseLost("another attempt has it"), Rejected("no such task")])
def test_a_refused_beat_ends_the_attempt(kept: Kept, error: IcewrightError) -> None:
    kept.server.error = error
    kept.renewer.beat()
    kept.renewer.beat()
    assert (kept.stops, kept.renewer.lost) == (1, error.message)
    with pytest.raises(LeaseLost, match=error.message):
        kept.renewer.may_commit()


def test_a_wish_to_cancel_ends_the_attempt_but_keeps_the_lease(kept: Kept) -> None:
    kept.server.cancel = True
    kept.renewer.beat()
    kept.renewer.beat()
    assert (kept.stops, kept.renewer.cancelled, kept.renewer.lost) == (1, True, None)
    with pytest.raises(LeaseLost, match="cancelled"):
        kept.renewer.may_commit()


def test_one_that_was_told_to_stop_must_have_ended_by_the_lease_that_it_had_then(kept: Kept) -> None:
    kept.server.cancel = True
    kept.renewer.beat()
    ends_at_s = kept.renewer.must_have_ended_at_s
    for _ in range(5):
        kept.clock.wait(LEASE_S / 3)
        kept.renewer.beat()
    assert kept.renewer.must_have_ended_at_s == ends_at_s < kept.clock()
    assert kept.renewer.lost is None


def test_a_commit_is_asked_for_each_time(kept: Kept) -> None:
    kept.renewer.may_commit()
    kept.renewer.may_commit()
    assert len(kept.server.beats) == 2
    kept.server.error = LeaseLost("gone meanwhile")
    with pytest.raises(LeaseLost):
        kept.renewer.may_commit()


def test_a_server_that_restarts_at_the_moment_of_the_commit_is_asked_again(kept: Kept) -> None:
    kept.server.away_until_s = kept.clock() + LEASE_S / 2
    kept.renewer.may_commit()
    assert len(kept.server.beats) > 1
    assert kept.clock() < 1000.0 + LEASE_S


def test_it_is_asked_no_longer_than_the_lease_runs(kept: Kept) -> None:
    kept.server.away_until_s = float("inf")
    with pytest.raises(LeaseLost, match="did not answer"):
        kept.renewer.may_commit()
    assert kept.clock() >= 1000.0 + LEASE_S
    assert kept.stops == 1


def test_an_answer_that_took_longer_than_the_lease_allows_no_commit(kept: Kept) -> None:
    """The process was suspended, say: what the server said is no longer true."""
    kept.server.delay_s = 2 * LEASE_S
    with pytest.raises(LeaseLost, match="longer"):
        kept.renewer.may_commit()


def _real_renewer(server: Answers, stop: Callable[[], None]) -> LeaseRenewer:
    return LeaseRenewer(server, replace(spec_of(), lease_ms=30), lambda: Progress("merging", 0, 2), stop)


def test_the_thread_beats_until_it_is_closed() -> None:
    server = Answers(Clock())
    renewer = _real_renewer(server, lambda: None)
    renewer.start()
    while len(server.beats) < 3:
        threading.Event().wait(0.002)
    renewer.close()
    beats = len(server.beats)
    threading.Event().wait(0.05)
    assert len(server.beats) == beats


def test_the_thread_stops_the_attempt_of_a_server_that_stays_away() -> None:
    server = Answers(Clock())
    server.error = Unavailable("away")
    stopped = threading.Event()
    renewer = _real_renewer(server, stopped.set)
    renewer.start()
    assert stopped.wait(20)
    renewer.close()


def test_closing_from_the_thread_itself_does_not_wait_for_itself() -> None:
    server = Answers(Clock())
    server.cancel = True
    closed = threading.Event()

    def stop() -> None:
        renewer.close()
        closed.set()

    renewer = _real_renewer(server, stop)
    renewer.start()
    assert closed.wait(20)
