"""Many lakehouses that misbehave, each by its seed; and a proof that the simulation would notice a missing guard.

``ICEWRIGHT_CAMPAIGN=1`` runs 20,000 seeds. A seed that fails is named; ``ICEWRIGHT_SIMULATION_SEED=N`` runs it alone.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from icewright.core.clock import Clock
from icewright.core.errors import NotAllowed
from icewright.core.fault_points import Fault, arm
from icewright.model.iceberg.layouts import Level
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Operation, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.work.halts import Halt, HaltState
from icewright.model.work.jobs import Heartbeat, HeartbeatReply
from icewright.model.work.tasks import Outcome, Task, TaskState
from icewright.ports.store import Change, TableStore, TaskStore
from icewright.work.tasks.retry import End
from tests.contracts.stores import sql_stores
from tests.doubles.lake import MemoryFile
from tests.simulation.invariants import check, check_end
from tests.simulation.world import OF_THE_SERVICES, Mutation, OpenStores, World
from tests.simulation.writers import Broken

SEED = os.environ.get("ICEWRIGHT_SIMULATION_SEED")
CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))
SEEDS = range(20_000 if CAMPAIGN else 500) if SEED is None else range(int(SEED), int(SEED) + 1)
SPARE_SEEDS = range(SEEDS.stop, 2 * SEEDS.stop)
"""Run as long as something rare of ``MUST_HAPPEN`` has not come up: any change of the services moves all chance.
Of the places at which servers may die, those are chosen then at which none has died so far."""
SERVER = Path(__file__).parents[2] / "src" / "icewright"

MUST_HAPPEN = (
    "tasks at their cap",
    "cores at their cap",
    "applications at their cap",
    "catalog away",
    "catalog lied",
    "catalog slow",
    "clock set",
    "committed",
    "committed after the end",
    "committed in part",
    "committed late",
    "conflict",
    "deletes folded",
    "expired",
    "expiry refused",
    *(f"halted: {state}" for state in HaltState),
    "lied",
    "meanwhile",
    "optimizer killed",
    "report too late",
    "resumed",
    "server killed",
    "statement outrun",
    "store answer lost",
    "stopped an attempt",
    "store away",
    "task cancelled",
    "task failed",
    "task succeeded",
    "task superseded",
    "unknown",
    *Level,
    "write begin",
    "write recreate",
    "write rename",
    "write rollback",
    "zombie",
    *(f"killed at {point}" for point in OF_THE_SERVICES),
)
"""A simulation in which these do not come up shows nothing."""


def simulate(
    seed: int, mutate: Mutation | None = None, stores: OpenStores | None = None, kind: type[World] = World
) -> Counter[str]:
    """One run; what happened in it. Raises :class:`Broken`."""
    with capture_logs() as logs:
        world = kind(seed, mutate, stores)
        arm(world.trouble.come_by)
        try:
            for _ in range(world.steps):
                world.step()
                check(world)
            world.drain()
            check_end(world)
        finally:
            arm(None)
    defects = [entry for entry in logs if entry["log_level"] == "error"]
    if defects:
        raise Broken(f"the loop swallowed {defects[0]}")
    world.counted["deletes folded"] += world.writers.folded
    world.counted["statement outrun"] += world.writers.outrun
    world.counted.update({level.value: groups for level, groups in world.writers.levels.items()})
    return world.counted


def test_the_server_may_die_at_every_place_of_its_services() -> None:
    """The Deleter's are come by where files may go: ``test_files.py``."""
    others = ("deleter.py", "launch")  # and the optimizers'
    modules = [path for path in SERVER.rglob("*.py") if not {path.name, path.parent.name} & {*others}]
    placed = [Fault[name] for path in modules for name in re.findall(r"\bfault\(Fault\.(\w+)\)", path.read_text())]
    assert sorted(set(placed)) == sorted(OF_THE_SERVICES)


def dying_at_others(happened: Counter[str]) -> Mutation | None:
    """A server that dies at places at which none has died so far; None where one has at each."""
    left = tuple(point for point in OF_THE_SERVICES if not happened[f"killed at {point}"])

    def dies(world: World) -> None:
        world.traps = left

    return dies if left else None


@pytest.mark.timeout(3600 if CAMPAIGN else 900)
def test_nothing_is_lost_repeated_or_forgotten() -> None:
    happened: Counter[str] = Counter()
    for seed in SEEDS if SEED is not None else chain(SEEDS, SPARE_SEEDS):
        if seed in SPARE_SEEDS and all(happened[what] for what in MUST_HAPPEN):
            break
        try:
            happened += simulate(seed, dying_at_others(happened) if seed in SPARE_SEEDS else None)
        except Exception as error:
            error.add_note(f"seed {seed}; ICEWRIGHT_SIMULATION_SEED={seed} runs it alone")
            raise
    if SEED is None:
        assert [what for what in MUST_HAPPEN if not happened[what]] == []


LOST = Outcome(Reason("lost", "it must be dead"))


def settles_without_looking(world: World) -> None:
    """A server that believes a lost attempt to be dead and tries again; nor does it find out later."""
    control = world.house.control
    forgets_those_who_end(world)

    def settle(task: Task) -> Task:
        if control.tasks.now() - task.updated_at < control.dispatcher.lease_ms:
            return task
        return control.tasks.change(control.dispatcher.endings.follow_up(task, End.LOST, LOST))

    control.verifier.settle = settle  # type: ignore[method-assign]  # the guard is removed


def believes_reports(world: World) -> None:
    """A server that takes a report of a commit for the commit."""
    control = world.house.control

    def verify(task: Task) -> Task:
        reason = Reason("verified", "its optimizer said so")
        return control.tasks.change(Change(task.task_id, task.version, TaskState.SUCCEEDED, Outcome(reason)))

    control.verifier.verify = verify  # type: ignore[method-assign]  # the guard is removed


def never_looks_again(world: World) -> None:
    """A server for which a plan, once made, stands for ever."""
    control = world.house.control

    def standing(observation: object, *_: object) -> object:
        metadata: TableMetadata = observation.metadata  # type: ignore[attr-defined]  # an Observation
        record = control.tables.record(metadata.table_id)
        return None if record is None or record.plan_id is None else control.tables.plan(record.plan_id)

    control.keeper._standing_plan = standing  # type: ignore[method-assign,assignment]  # the guard is removed


def ends_by_report_alone(world: World) -> None:
    """A server for which a later attempt's report ends a task, and which does not find out later either."""
    control = world.house.control
    forgets_those_who_end(world)
    endings = control.dispatcher.endings
    endings.reported = endings._said  # type: ignore[method-assign]  # the guard is removed


def asks_nobody_before_giving_out(world: World) -> None:
    """A server that hands out a task as it was queued, whatever owner and table say by now."""
    world.house.control.dispatcher._stale = lambda _task: None  # type: ignore[method-assign,assignment]  # the guard is removed


def forgets_those_who_end(world: World) -> None:
    """A server that never looks at a task again once it has ended."""
    world.house.control.keeper._latecomers.take_up = lambda _metadata: []  # type: ignore[method-assign,assignment]  # as above


def forgets_the_caps(world: World) -> None:
    """A server that gives out tasks of a group whatever it may hold."""
    groups = world.house.control.dispatcher._groups
    terms_of = groups.terms_of
    groups.terms_of = lambda *said, **more: replace(terms_of(*said, **more), group=None)  # type: ignore[method-assign]  # the guard is removed


def waits_for_ever(world: World) -> None:
    """A server that never takes an optimizer for dead."""
    world.house.control.loop._expire_leases = lambda: None  # type: ignore[method-assign]  # the guard is removed


def says_yes_and_forgets(world: World) -> None:
    """A server that acknowledges a report before it is stored."""
    tasks = world.house.control.tasks
    world.house.control.dispatcher.report = lambda report: tasks.get(report.task_id)  # type: ignore[method-assign]  # as above


def queues_twice(world: World) -> None:
    """A store that takes a second task of a table that has one under way."""
    world.stores[1]._live = lambda _table_id, _kind: None  # type: ignore[attr-defined]  # of the store in memory


def lets_anybody_report(world: World) -> None:
    """A store for which any fencing token is the present one."""
    world.stores[1].check_lease = lambda task_id, _token: world.stores[1].get(task_id)  # type: ignore[method-assign,assignment]  # as above


def brings_back_what_was_deleted(world: World) -> None:
    """A merge that does not apply the deletes of its group."""
    world.writers.resurrects = True


def leaves_vectors_behind(world: World) -> None:
    """A commit in format version 3 that forgets the deletion vectors of the files that it takes away."""
    catalog = world.house.catalog
    overwrite = catalog.commit_rewrite

    def commit(name: TableName, **what: Any) -> Any:
        vectors = [file for file in catalog.live_files(name) if file.is_deletion_vector]
        snapshot = overwrite(name, **what)
        kept = {file.path for file in catalog.live_files(name)}
        catalog.overwrite(name, add=[vector for vector in vectors if vector.path not in kept], remove=[])
        return snapshot

    catalog.commit_rewrite = commit  # type: ignore[method-assign]  # the guard is removed


def commits_unvalidated(world: World) -> None:
    """A commit that is not validated from the snapshot that was planned."""
    catalog = world.house.catalog

    def commit(name: TableName, *, remove: list[str], add: list[MemoryFile], summary: dict[str, str], **_: Any) -> Any:
        live = {file.path for file in catalog.live_files(name)}
        gone = frozenset(remove) & live
        return catalog._commit(name, Operation.REPLACE, add=tuple(add), remove=gone, summary=summary)

    catalog.commit_rewrite = commit  # type: ignore[method-assign,assignment]  # the guard is removed


def forgets_deletes(world: World) -> None:
    """A server that plans, and checks its plans, without the delete files of its tables."""
    world.house.control.planner._delete_files = lambda *_: iter(())  # type: ignore[method-assign]  # as above


def takes_a_part_for_the_whole(world: World) -> None:
    """A commit of some groups that does not say so."""
    for optimizer in world.optimizers:
        optimizer.worker.signs_groups = False


class NoHalts:
    """Halts that nobody has ever heard of."""

    def present(self) -> list[Halt]:
        return []


def claims_what_is_halted(world: World) -> None:
    """A store that reads no halts where it gives tasks out."""
    store: Any = world.stores[1]
    ready = store._ready

    def careless(*wanted: Any) -> Any:
        known, store._halts = store._halts, NoHalts()
        try:
            return ready(*wanted)
        finally:
            store._halts = known

    store._ready = careless


def lets_go_on_what_was_stopped(world: World) -> None:
    """A server that tells an attempt to stop only where its task is cancelled."""
    dispatcher, tasks = world.house.control.dispatcher, world.house.control.tasks
    answer = dispatcher.heartbeat

    def careless(task_id: str, heartbeat: Heartbeat) -> HeartbeatReply:
        return replace(answer(task_id, heartbeat), cancel=tasks.get(task_id).cancel_requested)

    dispatcher.heartbeat = careless  # type: ignore[method-assign]  # the guard is removed


@pytest.mark.parametrize(
    "mutation",
    [
        claims_what_is_halted,
        lets_go_on_what_was_stopped,
        settles_without_looking,
        believes_reports,
        never_looks_again,
        ends_by_report_alone,
        asks_nobody_before_giving_out,
        forgets_those_who_end,
        waits_for_ever,
        forgets_the_caps,
        says_yes_and_forgets,
        queues_twice,
        lets_anybody_report,
        brings_back_what_was_deleted,
        leaves_vectors_behind,
        commits_unvalidated,
        forgets_deletes,
        takes_a_part_for_the_whole,
    ],
)
def test_a_missing_guard_is_noticed(mutation: Mutation) -> None:
    with pytest.raises((Broken, NotAllowed)):  # or the life of tasks itself refuses what comes of it
        _simulate_many(mutation)


def _simulate_many(mutation: Mutation) -> None:
    for seed in range(300):
        simulate(seed, mutation)


def test_a_seed_replays() -> None:
    assert simulate(7) == simulate(7)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("seed", range(20 if CAMPAIGN else 1))
def test_over_a_database_the_same_happens(database: str, seed: int, request: pytest.FixtureRequest) -> None:
    def stores(clock: Clock) -> tuple[TableStore, TaskStore]:
        found = sql_stores(database, request, clock)
        return found.tables(), found.tasks()

    assert simulate(seed, stores=stores) == simulate(seed)
