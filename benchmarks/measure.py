"""What a piece of work costs: CPU, wall time and memory of this process and of everything that it started.

Two things are easily lost. A process that ended is found in the children's times of its parent, but only if the
parent waited for it: PySpark's daemon ignores SIGCHLD, so that the kernel forgets what its workers used. And the
measuring itself costs CPU in this very process. Both are accounted for here. Linux only.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil

SAMPLE_INTERVAL_S: Final = 0.05
ACTIVE_CPU_S: Final = 0.05
"""A process that used less than this took no part in the work; PySpark's daemon, waiting, uses a hundredth of it."""
_LOOKS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Cost:
    """What something cost.

    ``cpu_s``: user and system time of the whole process tree. ``peak_memory_bytes``: the most memory at any sample of
    those processes of the tree that took part, as proportional set size (proc(5)): pages that processes share are
    divided among them.
    ``peak_jvm_bytes``: the most of that in the JVM alone, at whatever sample; a JVM keeps what a run before it needed.
    ``other_cpu_s``: what everything else on the machine used meanwhile. ``phases``: CPU seconds of the named parts,
    as far as the work marked them.
    """

    cpu_s: float
    wall_s: float
    peak_memory_bytes: int
    peak_jvm_bytes: int
    other_cpu_s: float
    phases: dict[str, float]


@dataclass(frozen=True, slots=True)
class Member:
    """One process as last seen. ``cpu_s`` has that of its children for which it waited."""

    parent_id: int
    cpu_s: float
    memory_bytes: int
    ignores_children: bool
    is_jvm: bool = False


class ProcessTree:
    """A process and all below it, watched: whoever looks often enough loses nothing. Threads may share it."""

    def __init__(self, root: psutil.Process | None = None) -> None:
        self._root = root or psutil.Process()
        self._is_own = self._root.pid == os.getpid()
        self._members: dict[psutil.Process, Member] = {}
        self._forgotten_cpu_s = 0.0
        self._own_cpu_s = 0.0
        self._lock = threading.Lock()

    def cpu_s(self) -> float:
        """CPU seconds of the tree so far, those of ended processes among them and without those of looking."""
        before = None
        for _ in range(_LOOKS_MAX):
            members = self.look()
            if members.keys() == before:
                break  # no process came or went between the two, so none was counted twice or not at all
            before = members.keys()
        with self._lock:
            seen = sum(member.cpu_s for member in self._members.values())
            return seen + self._forgotten_cpu_s - (self._own_cpu_s if self._is_own else 0.0)

    def look(self) -> dict[psutil.Process, Member]:
        """The processes that there are now."""
        started_s = time.thread_time()
        with self._lock:
            found: dict[psutil.Process, Member] = {}
            for process in (self._root, *self._root.children(recursive=True)):
                try:
                    found[process] = _member(process)
                except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                    continue  # it has just ended; what it used is dealt with below or found with its parent
            by_id = {process.pid: member for process, member in self._members.items()}
            for process in self._members.keys() - found.keys():
                gone = self._members[process]
                parent = by_id.get(gone.parent_id)
                if parent is not None and parent.ignores_children:
                    self._forgotten_cpu_s += gone.cpu_s
            self._members = found
            self._own_cpu_s += time.thread_time() - started_s
            return found


class Meter:
    """Measures what happens within its ``with``; :attr:`cost` is there afterwards.

    A thread samples the tree meanwhile, for the peak of its memory and for processes that come and go.
    """

    def __init__(self, tree: ProcessTree) -> None:
        self._tree = tree
        self._done = threading.Event()
        self._sampler = threading.Thread(target=self._sample_on, name="meter", daemon=True)
        self._samples: list[dict[psutil.Process, Member]] = []
        self._phases: dict[str, float] = {}
        self._cost: Cost | None = None
        self._machine_s = self._cpu_s = self._marked_s = self._started_s = 0.0

    @property
    def cost(self) -> Cost:
        """The cost. Raises ``RuntimeError`` before the end."""
        if self._cost is None:
            raise RuntimeError("the work has not ended")
        return self._cost

    def mark(self, phase: str) -> None:
        """What was used since the last mark, or since the beginning, belongs to ``phase``."""
        now_s = self._tree.cpu_s()
        self._phases[phase] = self._phases.get(phase, 0.0) + now_s - self._marked_s
        self._marked_s = now_s

    def move(self, source: str, target: str, cpu_s: float) -> None:
        """So much of the CPU of one phase belongs to another, as the work itself has measured."""
        self._phases[source] -= cpu_s
        self._phases[target] = self._phases.get(target, 0.0) + cpu_s

    def __enter__(self) -> Self:
        self._samples.append(self._tree.look())
        self._machine_s = _machine_cpu_s()
        self._cpu_s = self._marked_s = self._tree.cpu_s()
        self._started_s = time.monotonic()
        self._sampler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wall_s = time.monotonic() - self._started_s
        self._done.set()
        self._sampler.join()
        cpu_s = self._tree.cpu_s() - self._cpu_s
        others_s = max(0.0, _machine_cpu_s() - self._machine_s - cpu_s)
        self._samples.append(self._tree.look())
        self._cost = Cost(
            cpu_s, wall_s, peak_bytes(self._samples), peak_jvm_bytes(self._samples), others_s, self._phases
        )

    def _sample_on(self) -> None:
        while not self._done.wait(SAMPLE_INTERVAL_S):
            self._samples.append(self._tree.look())


def peak_bytes(samples: Sequence[Mapping[psutil.Process, Member]]) -> int:
    """The most memory at any sample of the processes that took part.

    Workers that only wait, left by others, would be charged to whoever runs now. Work that is too little to tell who
    did it is that of all: a process of its own that is asked for little is no less large for that.
    """
    first = {process: member.cpu_s for process, member in samples[0].items()}
    last = {process: member.cpu_s for sample in samples for process, member in sample.items()}
    active = {process for process, cpu_s in last.items() if cpu_s - first.get(process, 0.0) >= ACTIVE_CPU_S} or {*last}
    return max(
        sum(member.memory_bytes for process, member in sample.items() if process in active) for sample in samples
    )


def peak_jvm_bytes(samples: Sequence[Mapping[psutil.Process, Member]]) -> int:
    """The most memory at any sample of the JVMs, whether they took part or not."""
    return max(sum(member.memory_bytes for member in sample.values() if member.is_jvm) for sample in samples)


def measure(tree: ProcessTree, work: Callable[[Meter], None]) -> Cost:
    """What ``work`` costs; it may mark its phases."""
    with Meter(tree) as meter:
        work(meter)
    return meter.cost


def _member(process: psutil.Process) -> Member:
    with process.oneshot():
        times = process.cpu_times()
        return Member(
            parent_id=process.ppid(),
            cpu_s=times.user + times.system + times.children_user + times.children_system,
            memory_bytes=_proportional_set_size(process.pid),
            ignores_children=_ignores_children(process.pid),
            is_jvm=process.name() == "java",
        )


def _proportional_set_size(process_id: int) -> int:
    """Resident bytes, those that n processes share by their nth part; 0 of one that is about to end."""
    for line in Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _ignores_children(process_id: int) -> bool:
    """Whether the kernel reaps its children unseen, so that their times reach nobody: it ignores SIGCHLD (proc(5))."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("SigIgn:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)
    return False


def _machine_cpu_s() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)
