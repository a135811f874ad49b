"""Many lakehouses that misbehave, each by its seed; and a proof that the simulation would notice a missing guard.

In CI 60 seeds run, and spare ones until each kind of event has come up; ``ICEWRIGHT_CAMPAIGN=1`` runs 20,000. A seed
that fails is named; ``ICEWRIGHT_SIMULATION_SEED=N`` runs it alone.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
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
from icewright.model.work.jobs import Heartbeat, HeartbeatReply, TaskReport
from icewright.model.work.tasks import LogLines, Outcome, Task, TaskState
from icewright.ports.store import Change, TableStore, TaskStore
from icewright.work.tasks.retry import End
from tests.contracts.stores import stores_on
from tests.doubles.lake import MemoryFile
from tests.simulation.invariants import check, check_end
from tests.simulation.world import OF_THE_SERVICES, Mutation, OpenStores, World
from tests.simulation.writers import Broken

SEED = os.environ.get("ICEWRIGHT_SIMULATION_SEED")
CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))
SEEDS = range(20_000 if CAMPAIGN else 60) if SEED is None else range(int(SEED), int(SEED) + 1)
SPARE_SEED, SPARE_SEEDS_MAX = 1_000_000, 500
"""Spare seeds run as long as something rare of ``MUST_HAPPEN`` has not come up: any change of the services moves all
chance. From this one on the last two digits of a seed say at which place servers die, of those of the services."""
GUARD_SEEDS = range(300)
"""Of these, one at least must notice that a guard is missing."""
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
    assert len(OF_THE_SERVICES) <= 100, "a spare seed has two digits for the place"


def spare_seeds(happened: Counter[str]) -> Iterator[int]:
    """Until all has happened; places at which no server has died so far come first."""
    for number in range(SPARE_SEEDS_MAX):
        if all(happened[what] for what in MUST_HAPPEN):
            return
        places = range(len(OF_THE_SERVICES))
        left = [place for place in places if not happened[f"killed at {OF_THE_SERVICES[place]}"]] or places
        yield SPARE_SEED + 100 * number + left[number % len(left)]


def dying_where_it_says(seed: int) -> Mutation | None:
    """A server that dies at one place only, if it is a spare seed, and the first time that it comes by there."""
    if seed < SPARE_SEED:
        return None
    place = OF_THE_SERVICES[seed % 100]

    def dies(world: World) -> None:
        world.traps = (place,)
        if not world.counted[f"killed at {place}"]:
            world.trouble.trap = place

    return dies


@pytest.mark.timeout(8 * 3600 if CAMPAIGN else 900)
def test_nothing_is_lost_repeated_or_forgotten() -> None:
    happened: Counter[str] = Counter()
    for seed in SEEDS if SEED is not None else chain(SEEDS, spare_seeds(happened)):
        try:
            happened.update(simulate(seed, dying_where_it_says(seed)))
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

    control.maintainer._standing_plan = standing  # type: ignore[method-assign,assignment]  # the guard is removed


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
    world.house.control.maintainer._latecomers.take_up = lambda _metadata: []  # type: ignore[method-assign,assignment]  # as above


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

    def report(report: TaskReport, log: LogLines | None = None) -> Task:  # noqa: ARG001 - the log is forgotten as well
        return tasks.get(report.task_id)

    world.house.control.dispatcher.report = report  # type: ignore[method-assign]  # as above


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
    ("mutation", "first"),
    [
        (claims_what_is_halted, 1),
        (lets_go_on_what_was_stopped, 78),
        (settles_without_looking, 7),
        (believes_reports, 52),
        (never_looks_again, 0),
        (ends_by_report_alone, 58),
        (asks_nobody_before_giving_out, 22),
        (forgets_those_who_end, 58),
        (waits_for_ever, 0),
        (forgets_the_caps, 7),
        (says_yes_and_forgets, 0),
        (queues_twice, 2),
        (lets_anybody_report, 7),
        (brings_back_what_was_deleted, 8),
        (leaves_vectors_behind, 33),
        (commits_unvalidated, 17),
        (forgets_deletes, 8),
        (takes_a_part_for_the_whole, 95),
    ],
)
def test_a_missing_guard_is_noticed(mutation: Mutation, first: int) -> None:
    """The life of tasks itself may refuse what comes of it."""
    is_noticed(mutation, first, (Broken, NotAllowed))


def is_noticed(mutation: Mutation, first: int, by: tuple[type[Exception], ...], kind: type[World] = World) -> None:
    """``first`` is a seed that notices, so that others need not run; where it does not any more, they do."""
    for seed in chain(GUARD_SEEDS[first:], GUARD_SEEDS[:first]):
        try:
            simulate(seed, mutation, kind=kind)
        except by:
            if seed != first:
                wanted = f"begin with seed {seed}, as {first} does not notice any more"
                warnings.warn(f"{getattr(mutation, '__name__', mutation)}: {wanted}", stacklevel=1)
            return
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    pytest.fail("nothing notices")


def test_a_seed_replays() -> None:
    assert simulate(7) == simulate(7)


class Briefly(World):
    """A database takes as long for a step as memory for many: in CI there are fewer of them."""

    steps = World.steps if CAMPAIGN else 80


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("seed", range(20 if CAMPAIGN else 1))
def test_over_a_database_the_same_happens(database: str, seed: int, request: pytest.FixtureRequest) -> None:
    def stores(clock: Clock) -> tuple[TableStore, TaskStore]:
        found = stores_on(database, request, clock)
        return found.tables(), found.tasks()

    assert simulate(seed, stores=stores, kind=Briefly) == simulate(seed, kind=Briefly)
