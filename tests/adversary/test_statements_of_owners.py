"""Statements of owners that remove rows, beside rewrites: how many of them fail because of us (R5), in virtual time.

A statement reads the table, runs for a while, and commits; it fails where a rewrite of ours of a partition that it
changes was committed in between. What is real here are the rules for when a partition is left alone. All else is at its
worst: each partition that may be rewritten is, every time that the optimizer comes by, and a statement wants all files
of its partitions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from heapq import heappop, heappush
from statistics import median

import pytest

from icewright.inventory.row_removals import (
    STATEMENTS_APART,
    UNKNOWN_STATEMENT_MS,
    Spacing,
    last_removal_at,
    removal_wait_ms,
)
from icewright.model.iceberg.files import Partition
from icewright.model.plans.observation import Observation, Removal, Removals
from icewright.model.plans.plans import Verdict
from icewright.model.policy.policy import Policy
from icewright.observation.observer import REMOVALS_LOOKED_AT
from tests.builders.lakehouse import BONN, KYOTO, MINUTE_MS, NAME, SECOND_MS, Lakehouse
from tests.builders.observations import NOW, month, observe, policy
from tests.builders.worker import Worker
from tests.conftest import CAMPAIGN

PARTITIONS = [month(number) for number in range(1, 13)]
APPEND_EVERY_S, POLL_EVERY_S, MIN_FILES = 15, 30, 5
TASK_S = (3, 10)
MORE = 20 if CAMPAIGN else 1
Where = tuple[Partition, ...]
Begins = Callable[[random.Random, int], Iterator[tuple[float, Where]]]
"""When statements begin within so many seconds, and what they change."""


@dataclass(frozen=True)
class Load:
    """What the owner does: statements that run for ``runs_s``, of which the files show the last ``shows``."""

    begins: Begins
    runs_s: tuple[float, float]
    shows: float = 0.1
    window_s: int | None = None
    hours: int = 10


@dataclass
class Beside:
    """A table to whose partitions an owner appends, from which they remove rows, and which an optimizer rewrites."""

    load: Load
    seed: int = 1
    spaced: bool = True
    statements: int = 0
    failed: int = 0
    rewrites: int = 0
    lost: int = 0
    """Rewrites of a partition that a statement was faster than."""
    waited_s: list[float] = field(default_factory=list)
    """How old the oldest files were that a rewrite merged."""
    now_s: float = 0
    run_ms_max: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311 - replayed by its seed
        self.removals: list[Removal] = []
        self.commits: list[float] = []
        self.files_since: dict[Partition, list[float]] = {partition: [] for partition in PARTITIONS}
        self.rewritten_at: dict[Partition, int] = {}
        window_ms = None if self.load.window_s is None else self.load.window_s * 1000
        self.policy: Policy = policy(write_window_ms=window_ms)
        self.empty: Observation = observe([])

    def run(self) -> Beside:
        """Let the hours pass. What is due at the same time goes in the order of its making."""
        until_s = self.load.hours * MORE * 3600
        due: list[tuple[float, int, Callable[[], None]]] = []
        self.order = 0

        def at(when_s: float, act: Callable[[], None]) -> None:
            self.order += 1
            heappush(due, (when_s, self.order, act))

        for when_s, where in self.load.begins(self.chance, until_s):
            runs_s = self.chance.uniform(*self.load.runs_s)
            at(when_s + runs_s, lambda s=when_s, w=where: self._end(s, w))  # type: ignore[misc]  # mypy knows no default there
        for when_s in range(0, until_s, APPEND_EVERY_S):
            at(when_s, self._append)
        for when_s in range(7, until_s, POLL_EVERY_S):
            at(when_s, lambda: self._poll(at))
        while due:
            self.now_s, _, act = heappop(due)
            act()
        return self

    @property
    def share(self) -> float:
        """Of the owner's statements, those that failed because of us."""
        return self.failed / self.statements

    def _ms(self, at_s: float) -> int:
        return NOW + round(at_s * 1000)

    def _append(self) -> None:
        self.commits.append(self.now_s)
        for files in self.files_since.values():
            files.append(self.now_s)

    def _end(self, began_s: float, where: Where) -> None:
        self.statements += 1
        if any(self._ms(began_s) < self.rewritten_at.get(partition, 0) for partition in where):
            self.failed += 1
            self._succeed(self.now_s, where)  # it runs again, sooner or later, and is not counted then
        else:
            self._succeed(began_s, where)

    def _succeed(self, began_s: float, where: Where) -> None:
        self.removals.append(Removal(self._ms(self.now_s), frozenset(where)))
        self.commits.append(self.now_s)
        self.run_ms_max = max(self.run_ms_max, round(1000 * self.load.shows * (self.now_s - began_s)))

    def _observed(self) -> Observation:
        """As the observer sees it: the latest commits one by one, and one more for all before."""
        newest = self.removals[: -REMOVALS_LOOKED_AT - 1 : -1]
        before = self.removals[-REMOVALS_LOOKED_AT - 1].at if len(self.removals) > REMOVALS_LOOKED_AT else None
        removed_at = {one: removal.at for removal in reversed(newest) for one in removal.partitions}
        gaps = [b - a for a, b in zip(self.commits[-20:], self.commits[-19:], strict=False)]
        return replace(
            self.empty,
            removals=Removals(
                removed_at=removed_at,
                everywhere_at=before,
                writer_run_ms_max=self.run_ms_max,
                latest=tuple(newest),
                rewritten_at=dict(self.rewritten_at) if self.removals else {},
            ),
            commit_interval_ms=round(1000 * median(gaps)) if gaps else None,
        )

    def _poll(self, at: Callable[[float, Callable[[], None]], None]) -> None:
        if all(len(files) < MIN_FILES for files in self.files_since.values()):
            return
        observation, now = self._observed(), self._ms(self.now_s)
        spacing, wait_ms = Spacing.of(observation, self.policy, now), removal_wait_ms(observation, self.policy)
        taken = []
        for partition in PARTITIONS:
            removed_at = last_removal_at(observation.removals, partition, now)
            waits = removed_at is not None and now < removed_at + wait_ms
            apart = not self.spaced or spacing.until(partition) is None
            if len(self.files_since[partition]) >= MIN_FILES and not waits and apart:
                taken.append(partition)
        began_s = self.now_s
        if taken:
            at(self.now_s + self.chance.uniform(*TASK_S), lambda: self._commit(began_s, taken))

    def _commit(self, began_s: float, taken: Sequence[Partition]) -> None:
        hit = {one for removal in self.removals if removal.at > self._ms(began_s) for one in removal.partitions}
        for partition in taken:
            if partition in hit:
                self.lost += 1
                continue
            self.rewrites += 1
            self.rewritten_at[partition] = self._ms(self.now_s)
            self.waited_s.append(self.now_s - self.files_since[partition][0])
            self.files_since[partition].clear()


def at_random(an_hour: float, choose: Callable[[random.Random], Where]) -> Begins:
    """So many an hour, independent of each other."""

    def begins(chance: random.Random, until_s: int) -> Iterator[tuple[float, Where]]:
        at_s = chance.expovariate(an_hour / 3600)
        while at_s < until_s:
            yield at_s, choose(chance)
            at_s += chance.expovariate(an_hour / 3600)

    return begins


def one_of(partitions: Sequence[Partition]) -> Callable[[random.Random], Where]:
    return lambda chance: (chance.choice(partitions),)


def rhythmic(partitions: Sequence[Partition], every_s: float, late_s: float) -> Begins:
    """Each of these partitions every so often, up to so much later."""

    def begins(chance: random.Random, until_s: int) -> Iterator[tuple[float, Where]]:
        for number in range(int(until_s / every_s)):
            for place, partition in enumerate(partitions):
                yield (number + place / len(partitions)) * every_s + chance.uniform(0, late_s), (partition,)

    return begins


def bursts(every_s: float, count: int, apart_s: float) -> Begins:
    """So many statements after each other from one partition, then a while none."""

    def begins(chance: random.Random, until_s: int) -> Iterator[tuple[float, Where]]:
        for at_s, where in at_random(3600 / every_s, one_of(PARTITIONS))(chance, until_s):
            yield from ((at_s + number * apart_s, where) for number in range(count))

    return begins


SHORT, MINUTE = (3.0, 13.0), (50.0, 70.0)
SHORT_LOADS = {
    "300 an hour from six partitions": Load(at_random(300, one_of(PARTITIONS[:6])), SHORT),
    "three partitions every 70 s": Load(rhythmic(PARTITIONS[:3], 70, 5), SHORT),
    "at random from all, one at a time": Load(at_random(120, one_of(PARTITIONS)), SHORT),
    "each from all partitions": Load(at_random(60, lambda _: tuple(PARTITIONS)), SHORT),
    "bursts of eight": Load(bursts(600, 8, 15), SHORT),
}
LONG_LOADS = {
    "a minute each, three partitions": Load(rhythmic(PARTITIONS[:3], 600, 60), MINUTE, 0.5, hours=24),
    "a minute each, at random": Load(at_random(60, one_of(PARTITIONS)), MINUTE, 0.5, hours=24),
    "a minute each, declared": Load(at_random(60, one_of(PARTITIONS)), MINUTE, 0.0, 70, hours=24),
}
HIDDEN = Load(at_random(60, one_of(PARTITIONS)), MINUTE, 0.0, hours=24)
"""Statements of a minute that show nothing of it, which nobody has declared."""
LOADS = {**SHORT_LOADS, **LONG_LOADS}


@cache
def beside(name: str) -> Beside:
    return Beside(LOADS[name]).run()


@pytest.mark.parametrize("name", LOADS)
def test_r5_one_in_a_hundred_statements_fails_because_of_us_at_most(name: str) -> None:
    its = beside(name)
    assert its.statements > 300
    assert its.share <= 0.01, (its.failed, its.statements)


@pytest.mark.parametrize("name", LOADS)
def test_r5_it_is_for_the_time_between_rewrites_that_no_more_fail(name: str) -> None:
    without = Beside(replace(LOADS[name], hours=5), spaced=False).run()
    assert without.share > 0.01, (without.failed, without.statements)
    assert beside(name).share < without.share / 2, (beside(name).failed, without.failed)


@pytest.mark.parametrize("name", SHORT_LOADS)
def test_r5_all_files_are_merged_after_that_time_and_some_minutes(name: str) -> None:
    its, most_s = beside(name), STATEMENTS_APART * UNKNOWN_STATEMENT_MS / 1000 + 900
    assert max(its.waited_s) <= most_s
    assert its.now_s - min(files[0] for files in its.files_since.values() if files) <= most_s
    assert its.lost <= its.rewrites / 4


def test_r5_what_shows_nothing_of_its_length_is_to_be_declared() -> None:
    hidden = Beside(HIDDEN).run()
    assert hidden.share > 0.01  # the goal is missed
    assert beside("a minute each, declared").share < hidden.share / 2


class TestThroughTheServer:
    """The rules above, as the server's plans have them."""

    def merged_once(self) -> Lakehouse:
        """A table that lost rows, and was rewritten after that."""
        house = Lakehouse()
        house.ready_table()
        house.append(1)
        self.remove(house)
        house.pass_time(MINUTE_MS * 60)
        self.grow(house)
        assert self.verdict(house) == (Verdict.REWRITE, "small-files")
        Worker(house).carry_out()
        house.rounds(2)
        return house

    def remove(self, house: Lakehouse) -> None:
        """Rows go with a file that is replaced, within seconds."""
        old = next(one for one in house.catalog.live_files(NAME) if one.partition == BONN)
        house.catalog.overwrite(NAME, add=house.files(1, BONN, old.size_bytes), remove=[old.path])

    def grow(self, house: Lakehouse, count: int = 6) -> None:
        """Small files come, and are old enough."""
        for _ in range(count):
            house.append(1)
            house.pass_time(MINUTE_MS)
        house.rounds(1)

    def verdict(self, house: Lakehouse, partition: Partition = BONN) -> tuple[Verdict, str]:
        plan = house.control.maintainer.look(NAME, plan_anew=True).plan
        (found,) = (one for one in plan.verdicts if one.partition == partition)
        return found.verdict, found.reason.code

    def test_r5_a_partition_that_loses_rows_is_not_rewritten_again_at_once(self) -> None:
        house = self.merged_once()
        self.grow(house)
        assert self.verdict(house) == (Verdict.WAIT, "spaced-rewrites")
        house.pass_time(STATEMENTS_APART * UNKNOWN_STATEMENT_MS)
        assert self.verdict(house) == (Verdict.REWRITE, "small-files")

    def test_r5_a_rewrite_counts_also_when_statements_have_written_its_manifests_anew(self) -> None:
        house = self.merged_once()
        self.remove(house)
        self.grow(house)
        assert self.verdict(house) == (Verdict.WAIT, "spaced-rewrites")

    def test_r5_other_partitions_wait_too_until_it_is_clear_where_rows_are_removed(self) -> None:
        house = self.merged_once()
        house.catalog.append(NAME, house.files(6, KYOTO))
        self.grow(house)
        assert self.verdict(house, KYOTO) == (Verdict.REWRITE, "small-files"), "it was never rewritten"
        Worker(house).carry_out()
        house.catalog.append(NAME, house.files(6, KYOTO))
        house.pass_time(10 * MINUTE_MS)
        assert self.verdict(house, KYOTO) == (Verdict.WAIT, "spaced-rewrites")
        for _ in range(2):
            self.remove(house)
            house.pass_time(10 * MINUTE_MS)
        assert self.verdict(house, KYOTO) == (Verdict.REWRITE, "small-files")

    def test_r5_the_owner_says_how_long_statements_run(self) -> None:
        house = self.merged_once()
        house.catalog.set_properties(NAME, {"icewright.write-window": "PT5S"})
        self.grow(house)
        assert self.verdict(house) == (Verdict.WAIT, "spaced-rewrites")
        house.pass_time(STATEMENTS_APART * 5 * SECOND_MS)
        assert self.verdict(house) == (Verdict.REWRITE, "small-files")

    def test_r5_a_table_that_loses_no_rows_is_merged_as_ever(self) -> None:
        house = Lakehouse()
        house.ready_table()
        house.rounds(1)
        Worker(house).carry_out()
        house.rounds(2)
        self.grow(house)
        assert self.verdict(house) == (Verdict.REWRITE, "small-files")
