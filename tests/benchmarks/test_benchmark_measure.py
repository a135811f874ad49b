"""CPU of processes that ended is easily lost; here are trees that lose it, and must not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from benchmarks.measure import ACTIVE_CPU_S, Member, Meter, ProcessTree, peak_bytes, peak_jvm_bytes

BURN_S = 0.4
# The parent says when its child has ended, and waits to be told to end itself.
PARENT = f"""
import os, signal, sys, time
if sys.argv[1] == "ignores":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
child = os.fork()
if child == 0:
    while time.process_time() < {BURN_S}:
        pass
    time.sleep(0.3)
    os._exit(0)
try:
    os.waitpid(child, 0)
except ChildProcessError:
    pass
print("ended", flush=True)
sys.stdin.read()
"""


@contextmanager
def parent(kind: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(  # noqa: S603 - this interpreter and the text above
        [sys.executable, "-c", PARENT, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.communicate()


@pytest.mark.parametrize("kind", ["ignores", "waits"])
def test_the_cpu_of_a_process_that_ended_counts_once(kind: str) -> None:
    with parent(kind) as process:
        tree = ProcessTree(psutil.Process(process.pid))
        with Meter(tree) as meter:
            assert process.stdout is not None
            assert process.stdout.readline() == "ended\n"
        assert len(tree.look()) == 1
        assert BURN_S * 0.8 <= meter.cost.cpu_s < BURN_S * 1.75  # the kernel counts ticks; interpreters start besides


def test_the_kernel_indeed_forgets_children_that_are_ignored() -> None:
    with parent("ignores") as process:
        assert process.stdout is not None
        process.stdout.readline()
        times = psutil.Process(process.pid).cpu_times()
        assert times.children_user + times.children_system == 0


def test_looking_is_not_counted() -> None:
    tree = ProcessTree()
    before_s, started_s = tree.cpu_s(), time.process_time()
    while time.process_time() < started_s + BURN_S:
        tree.look()
    assert tree.cpu_s() - before_s < BURN_S / 2


def test_looking_at_another_process_takes_nothing_from_what_it_used() -> None:
    with parent("waits") as process:
        tree = ProcessTree(psutil.Process(process.pid))
        assert process.stdout is not None
        process.stdout.readline()
        before_s, started_s = tree.cpu_s(), time.process_time()
        while time.process_time() < started_s + BURN_S:
            tree.look()
        assert tree.cpu_s() >= before_s


class ThisThread(ProcessTree):
    """Without the processes that earlier tests have left below this one, which may end at any time."""

    def cpu_s(self) -> float:
        return time.thread_time()


def test_phases_share_the_whole() -> None:
    with Meter(ThisThread()) as meter:
        burn(0.2)
        meter.mark("one")
        burn(0.1)
        meter.mark("two")
        meter.move("one", "three", 0.05)
    phases = meter.cost.phases
    assert list(phases) == ["one", "two", "three"]
    assert phases["one"] + phases["three"] >= 0.15
    assert sum(phases.values()) <= meter.cost.cpu_s + 0.03, "each phase may be a tick of 10 ms too long"
    assert phases["three"] == 0.05


def test_there_is_no_cost_before_the_end() -> None:
    with pytest.raises(RuntimeError, match="not ended"):
        _ = Meter(ProcessTree()).cost


def test_memory_of_processes_that_only_wait_is_nobodys() -> None:
    waiting, working = psutil.Process(), psutil.Process(1)
    samples = [
        {waiting: member(5.0, 700), working: member(1.0, 10)},
        {waiting: member(5.0, 700), working: member(1.0 + ACTIVE_CPU_S, 40)},
        {waiting: member(5.0, 700), working: member(1.5, 30)},
    ]
    assert peak_bytes(samples) == 40
    assert peak_bytes([{}, *samples[1:]]) == 740  # as if both had begun meanwhile


def test_work_that_is_too_little_to_tell_who_did_it_takes_memory_too() -> None:
    working = psutil.Process()
    assert peak_bytes([{working: member(1.0, 10)}, {working: member(1.0 + ACTIVE_CPU_S / 2, 40)}]) == 40


def test_the_memory_of_the_jvm_is_told_apart() -> None:
    java, python = psutil.Process(), psutil.Process(1)
    jvm = Member(1, 5.0, 700, ignores_children=False, is_jvm=True)
    assert peak_jvm_bytes([{java: jvm, python: member(1.0, 10)}, {python: member(1.0, 900)}]) == 700


def member(cpu_s: float, memory_bytes: int) -> Member:
    return Member(1, cpu_s, memory_bytes, ignores_children=False)


def burn(cpu_s: float) -> None:
    end_s = time.thread_time() + cpu_s  # the CPU of whoever measures is not among it
    while time.thread_time() < end_s:
        pass
