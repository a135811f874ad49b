"""What must not go on ends, though the JVM hangs and the server is gone, and nothing else does (Q4, Q5, I18)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from icewright.core.errors import LeaseLost, Unavailable
from icewright.model.work.jobs import Heartbeat, HeartbeatReply
from icewright.model.work.tasks import Progress
from icewright_spark.optimizer.lease import LeaseRenewer
from icewright_spark.optimizer.watchdog import GRACE_S_MAX, JVM_SILENT_S_MAX, Watchdog
from tests.builders.specs import LEASE_S, spec_of
from tests.cases import each_case
from tests.spark_side.optimizer.test_optimizer_loop import Clock


class Server:
    """Answers beats, refuses them, or does not answer."""

    error: Exception | None = None

    def heartbeat(self, _task_id: str, _heartbeat: Heartbeat) -> HeartbeatReply:
        if self.error is not None:
            raise self.error
        return HeartbeatReply(int(LEASE_S * 1000), cancel=False)


class Watched:
    """A watchdog and one attempt, whose wish to stop is not heard by anybody."""

    def __init__(self, lease_s: float = LEASE_S) -> None:
        self.clock, self.server = Clock(), Server()
        spec = replace(spec_of(), lease_ms=int(lease_s * 1000))
        progress = Progress("merging", 0, 1)
        self.lease = LeaseRenewer(self.server, spec, lambda: progress, lambda: None, self.clock)
        self.watchdog = Watchdog(lambda _why: None, clock=self.clock)

    def trouble_after(self, seconds: float) -> str | None:
        self.clock.now_s += seconds
        return self.watchdog.trouble()


def test_an_attempt_that_keeps_its_lease_may_take_as_long_as_it_likes() -> None:
    watched = Watched()
    with watched.watchdog.watching("task 1", watched.lease):
        for _ in range(100):
            assert watched.trouble_after(10) is None
            watched.lease.beat()


def test_q4_i18_an_attempt_that_was_fenced_is_gone_within_thirty_seconds() -> None:
    watched = Watched()
    with watched.watchdog.watching("task 1", watched.lease):
        watched.clock.now_s += 10  # the longest that the fence goes unnoticed: one beat
        watched.server.error = LeaseLost("another attempt has it")
        watched.lease.beat()
        assert watched.trouble_after(GRACE_S_MAX - 0.1) is None
        assert watched.trouble_after(0.1) == "task 1 continued after the lease was lost"
    assert watched.clock.now_s <= 1000 + 30
    assert watched.watchdog.trouble() is None


def test_q4_i18_an_attempt_whose_server_does_not_answer_is_gone_soon_after_its_lease() -> None:
    """By the clock alone: the thread that beats may hang, too."""
    watched = Watched()
    with watched.watchdog.watching("task 1", watched.lease):
        assert watched.trouble_after(LEASE_S + GRACE_S_MAX - 0.1) is None
        assert watched.trouble_after(0.1) is not None


def test_a_server_that_answers_again_after_the_lease_was_lost_changes_nothing() -> None:
    watched = Watched()
    with watched.watchdog.watching("task 1", watched.lease):
        watched.clock.now_s += LEASE_S
        watched.server.error = Unavailable("away")
        with pytest.raises(Unavailable):
            watched.lease.beat()
        watched.server.error = None
        watched.lease.beat()
        assert watched.trouble_after(GRACE_S_MAX) is not None


@each_case("lease_s", [3.0, 30.0, 600.0])
def test_short_leases_have_short_graces(lease_s: float) -> None:
    watched = Watched(lease_s)
    with watched.watchdog.watching("task 1", watched.lease):
        assert watched.trouble_after(lease_s + min(GRACE_S_MAX, lease_s / 2)) is not None


def test_q4_a_jvm_that_owes_an_answer_for_long_hangs() -> None:
    watched = Watched()
    with watched.watchdog.asking_jvm():
        assert watched.trouble_after(JVM_SILENT_S_MAX) is None
        assert watched.trouble_after(1) is not None
    assert watched.watchdog.trouble() is None


HUNG = """
import os, subprocess, sys, threading, time
from types import SimpleNamespace
from icewright_spark.optimizer.watchdog import Watchdog, end_application, end_this_process
jvm = subprocess.Popen(["/bin/sleep", "600"])
as_application = sys.argv[2] == "application"
dog = Watchdog((lambda why: end_application(os.getppid(), why)) if as_application else end_this_process)
lease = SimpleNamespace(must_have_ended_at_s=float("inf"))
dog.start()
with open(sys.argv[1] + ".new", "w") as file:
    file.write(f"{os.getpid()} {jvm.pid}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
threading.Thread(target=time.sleep, args=(600,)).start()
with dog.watching("task 1", lease):
    sys.stdin.readline()
    lease.must_have_ended_at_s = time.monotonic() + float(sys.argv[3])
    jvm.wait()
    time.sleep(600)
    print("committed", flush=True)
"""


@contextmanager
def hung(folder: Path, kind: str, after_s: float) -> Iterator[tuple[subprocess.Popen[str], psutil.Process, int]]:
    """A driver that waits for a JVM that never answers; the driver itself and the id of its JVM."""
    said = folder / "said"
    script = [sys.executable, "-c", HUNG, str(said), kind, str(after_s)]
    parent = ["/bin/sh", "-c", 'exec 3<&0; "$@" <&3 & wait', "sh"] if kind == "application" else []
    process = subprocess.Popen([*parent, *script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own
    try:
        while not said.exists():
            assert process.poll() is None
            time.sleep(0.01)
        driver, jvm = map(int, said.read_text().split())
        yield process, psutil.Process(driver), jvm
    finally:
        process.kill()
        process.wait()


def is_gone(pid: int) -> bool:
    """Killed, though perhaps not buried yet by whoever has to."""
    for _ in range(1_000):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("kind", ["resident", "application"])
def test_q4_i18_a_driver_whose_jvm_is_stopped_ends_itself_and_it(tmp_path: Path, kind: str) -> None:
    with hung(tmp_path, kind, 0) as (process, _, jvm):
        os.kill(jvm, signal.SIGSTOP)
        out, _ = process.communicate("go\n", timeout=60)
        assert process.returncode == (1 if kind == "resident" else -signal.SIGKILL)
        assert "committed" not in out
        assert is_gone(jvm)


def test_q4_i18_a_driver_that_was_stopped_past_its_lease_ends_when_it_goes_on(tmp_path: Path) -> None:
    with hung(tmp_path, "resident", 0.3) as (process, driver, jvm):
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        driver.suspend()
        time.sleep(0.6)
        driver.resume()
        assert process.wait(60) == 1
        assert is_gone(jvm)
