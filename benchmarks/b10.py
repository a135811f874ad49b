"""B10: 10,000 small tasks while servers, optimizers and their database are killed, and replies are lost.

It is the campaign's form of ``tests/acceptance/test_service.py`` (``make campaign``, two hours), which hands its
figures to :func:`result` when all holds that it asserts: no row is lost or repeated, and no task takes effect twice,
read from the tables' own bytes and commits. There is no peer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks import machine
from benchmarks.results import AT_MOST, Case, Figure, Result, Target, amount
from icewright.model.work.tasks import TaskState

NAME: Final = "B10"
TITLE: Final = "tasks that end well while everything is killed: 10,000 tables, half an hour of kills"

FAILED_TARGET: Final = Target(AT_MOST, 10)

_PACKAGES: Final = ("icewright", "pyiceberg", "pyspark", "sqlalchemy", "fastapi")
_SEED: Final = 7


def result(tasks: Mapping[str, int], killed: int, calm_s: float) -> Result:
    """The figures of one run: ``tasks`` by the state that they ended in, and how many processes were ``killed``.

    ``calm_s`` went by between the last kill and the time when all was in order.
    """
    ended = sum(tasks.values())
    cases = (
        _case("tasks that failed, of 10,000", 10_000 * (1 - tasks[TaskState.SUCCEEDED.value] / ended), FAILED_TARGET),
        _case("tasks", ended),
        _case("processes killed", killed),
        _case("until all is in order after the last kill, s", calm_s),
    )
    versions = machine.versions(_PACKAGES)
    return Result(NAME, TITLE, machine.today(), versions, machine.cores(), machine.description(), _SEED, cases)


def _case(metric: str, value: float, target: Target | None = None) -> Case:
    return amount("service", metric, (Figure("icewright", 1, 1, value),), target)
