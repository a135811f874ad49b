"""Many lakehouses that misbehave, each by its seed; and a proof that the simulation would notice a missing guard.

``ICEWRIGHT_CAMPAIGN=1`` runs 5,000 seeds. A seed that fails is named; ``ICEWRIGHT_SIMULATION_SEED=N`` runs it alone.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from icewright.adapters.memory.clock import ManualClock
from icewright.domain.plans import Reason
from icewright.domain.tables import TableMetadata
from icewright.domain.tasks import Outcome, Task, TaskState
from icewright.ports.store import Change, TableStore, TaskStore
from icewright.scheduling.retry import End
from icewright.services.control import ControlPlane
from tests.contracts.stores import SqliteStores
from tests.simulation.world import Mutation, OpenStores, World
from tests.simulation.writers import Broken

SEED = os.environ.get("ICEWRIGHT_SIMULATION_SEED")
CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))
SEEDS = range(5_000 if CAMPAIGN else 100) if SEED is None else range(int(SEED), int(SEED) + 1)
STEPS = 250

MUST_HAPPEN = (
    "catalog away",
    "committed",
    "conflict",
    "lied",
    "optimizer killed",
    "report too late",
    "server killed",
    "task cancelled",
    "task failed",
    "task succeeded",
    "task superseded",
    "unknown",
    "zombie",
)
"""A simulation in which these do not come up shows nothing."""


def simulate(seed: int, mutate: Mutation | None = None, stores: OpenStores | None = None) -> Counter[str]:
    """One run; what happened in it. Raises :class:`Broken`."""
    with capture_logs() as logs:
        world = World(seed, mutate, stores)
        for _ in range(STEPS):
            world.step()
        world.drain()
    defects = [entry for entry in logs if entry["log_level"] == "error"]
    if defects:
        raise Broken(f"the loop swallowed {defects[0]}")
    return world.counted


@pytest.mark.timeout(3600 if CAMPAIGN else 300)
def test_nothing_is_lost_repeated_or_forgotten() -> None:
    happened: Counter[str] = Counter()
    for seed in SEEDS:
        try:
            happened += simulate(seed)
        except Exception as error:
            error.add_note(f"seed {seed}; ICEWRIGHT_SIMULATION_SEED={seed} runs it alone")
            raise
    if SEED is None:
        assert [what for what in MUST_HAPPEN if not happened[what]] == []


def settles_without_looking(control: ControlPlane) -> None:
    """A server that believes a lost attempt to be dead and tries again."""

    def settle(task: Task) -> Task:
        if control.tasks.now() - task.updated_at < control.dispatcher.lease_ms:
            return task
        return control.tasks.change(control.dispatcher.follow_up(task, End.LOST, Reason("lost", "it must be dead")))

    control.verifier.settle = settle  # type: ignore[method-assign]  # the guard is removed


def believes_reports(control: ControlPlane) -> None:
    """A server that takes a report of a commit for the commit."""

    def verify(task: Task) -> Task:
        reason = Reason("verified", "its optimizer said so")
        return control.tasks.change(Change(task.task_id, task.version, TaskState.SUCCEEDED, Outcome(reason)))

    control.verifier.verify = verify  # type: ignore[method-assign]  # the guard is removed


def never_looks_again(control: ControlPlane) -> None:
    """A server for which a plan, once made, stands for ever."""

    def standing(observation: object, *_: object) -> object:
        metadata: TableMetadata = observation.metadata  # type: ignore[attr-defined]  # an Observation
        record = control.tables.record(metadata.table_id)
        return None if record is None or record.plan_id is None else control.tables.plan(record.plan_id)

    control.keeper._standing_plan = standing  # type: ignore[method-assign,assignment]  # the guard is removed


def ends_by_report_alone(control: ControlPlane) -> None:
    """A server for which the report of a later attempt ends a task, whatever became of the earlier ones."""
    control.dispatcher._change = control.dispatcher._said  # type: ignore[method-assign]  # the guard is removed


@pytest.mark.parametrize(
    "mutation", [settles_without_looking, believes_reports, never_looks_again, ends_by_report_alone]
)
def test_a_missing_guard_is_noticed(mutation: Mutation) -> None:
    with pytest.raises(Broken):
        _simulate_many(mutation)


def _simulate_many(mutation: Mutation) -> None:
    for seed in range(300):
        simulate(seed, mutation)


def test_a_seed_replays() -> None:
    assert simulate(7) == simulate(7)


@pytest.mark.parametrize("seed", range(20 if CAMPAIGN else 1))
def test_over_a_database_the_same_happens(seed: int, tmp_path: Path) -> None:
    opened: list[SqliteStores] = []

    def sqlite(clock: ManualClock) -> tuple[TableStore, TaskStore]:
        opened.append(SqliteStores(tmp_path, clock))
        return opened[0].tables(), opened[0].tasks()

    try:
        assert simulate(seed, stores=sqlite) == simulate(seed)
    finally:
        opened[0].close()
