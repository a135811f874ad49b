"""A contest: contestants do the same work in rounds, in shuffled order, each run measured by itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.measure import Cost, Meter, ProcessTree, measure


@dataclass(frozen=True, slots=True)
class Contestant:
    """``prepare`` brings the world to the starting line, ``work`` is measured, ``check`` raises if it was not done.

    ``tree`` is whose costs count, if they are not those of the contest's own.
    """

    name: str
    prepare: Callable[[], None]
    work: Callable[[Meter], None]
    check: Callable[[], None]
    tree: ProcessTree | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run. ``position`` is its place in the order of its round; both count from 1."""

    contestant: str
    round: int
    position: int
    cost: Cost


def hold(
    contestants: Sequence[Contestant],
    *,
    rounds: int,
    chance: random.Random,
    tree: ProcessTree,
    say: Callable[[str], None],
) -> list[Run]:
    """Every contestant once per round, in an order that ``chance`` decides anew for each round."""
    runs: list[Run] = []
    for number in range(1, rounds + 1):
        order = list(contestants)
        chance.shuffle(order)
        for position, contestant in enumerate(order, start=1):
            contestant.prepare()
            cost = measure(contestant.tree or tree, contestant.work)
            contestant.check()
            runs.append(Run(contestant.name, number, position, cost))
            say(
                f"  round {number}.{position} {contestant.name}: {cost.cpu_s:.2f} CPU s, {cost.wall_s:.2f} s, "
                f"peak {cost.peak_memory_bytes / 2**20:.0f} MiB; others used {cost.other_cpu_s:.2f} CPU s"
            )
    return runs


def of(runs: Sequence[Run], contestant: str) -> list[Run]:
    """The runs of one contestant."""
    return [run for run in runs if run.contestant == contestant]
