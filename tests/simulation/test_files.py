"""Lakehouses in which files may go, each by its seed; and a proof that the simulation would notice a missing guard.

In CI 12 seeds run, and spare ones until each kind of event has come up; ``ICEWRIGHT_CAMPAIGN=1`` runs 2,000. A seed
that fails is named; ``ICEWRIGHT_SIMULATION_SEED=N`` runs it alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from icewright.actions.remove_files.deleter import Deleter
from icewright.actions.remove_files.may_delete import Facts
from icewright.core.completeness import Complete, Gaps, Known
from icewright.core.errors import Unreadable
from icewright.model.actions.deletion import IntentState
from icewright.model.actions.orphans import Sighting
from icewright.model.iceberg.names import TableId
from tests.simulation.files import DAY_MS
from tests.simulation.files_world import OF_THE_DELETER, FilesWorld
from tests.simulation.test_simulation import is_noticed, simulate
from tests.simulation.world import World
from tests.simulation.writers import Broken

SEED = os.environ.get("ICEWRIGHT_SIMULATION_SEED")
CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))
SEEDS = range(2_000 if CAMPAIGN else 12) if SEED is None else range(int(SEED), int(SEED) + 1)
SPARE_SEEDS = range(1_000_000, 1_000_200)
"""Run as long as something rare of ``MUST_HAPPEN`` has not come up: any change of the services moves all chance. Of
these worlds people take back much, which is what is rarest."""
MUST_HAPPEN = (
    "approved",
    "committed after days",
    "file came back",
    "file moved: expired",
    "file moved: orphan",
    "file purged",
    "file raced for",
    "imported elsewhere",
    "imported, and kept by a tag alone",
    "removal beyond the budget",
    "undo of expire_snapshots",
    "undo of remove_orphan_files",
    "undo of rollback_to_snapshot",
)
IN_MANY_SEEDS = (
    *(f"killed at {point}" for point in OF_THE_DELETER),
    "killed before quarantine",
    "killed after quarantine",
    "late writer outrun",
    "undo of remove_expired_files",
    "undo of rollback_to_snapshot",
)
"""What comes up in the campaign alone."""


class TakenBack(FilesWorld):
    """A world whose people take back much."""

    def _actions(self) -> dict[Callable[[], None], float]:
        return {**super()._actions(), self._undo: 10, self._roll_back: 10}


def simulated(seeds: Iterable[int], mutation: Any = None) -> Counter[str]:
    happened: Counter[str] = Counter()
    for seed in seeds:
        try:
            happened += simulate(seed, mutation, kind=TakenBack if seed in SPARE_SEEDS else FilesWorld)
        except Exception as error:
            error.add_note(f"seed {seed}; ICEWRIGHT_SIMULATION_SEED={seed} runs it alone")
            raise
    return happened


@pytest.mark.timeout(2 * 3600 if CAMPAIGN else 300)
def test_g1_g18_no_needed_file_goes_and_garbage_does() -> None:
    happened = simulated(SEEDS)
    if SEED is not None:
        return
    wanted = (*MUST_HAPPEN, *(IN_MANY_SEEDS if CAMPAIGN else ()))
    for seed in SPARE_SEEDS:
        if all(happened[what] for what in wanted):
            break
        happened += simulated([seed])
    assert [what for what in wanted if not happened[what]] == []
    assert happened["garbage gone"] >= 0.95 * (happened["garbage gone"] + happened["garbage left"]), happened


def deleter_of(world: World) -> Deleter:
    return world.house.control.removal_rounds._remover.of("lake").deleter


def takes_what_is_needed(world: World) -> None:
    """A removal that looks again neither when it begins nor right before a batch what the table needs by then."""
    remover: Any = world.house.control.removal_rounds._remover
    deleter, needs = remover.of("lake").deleter, remover.of("lake").needs

    def of_nobody(*what: Any) -> Any:
        found = needs(*what)
        return Gaps().judge(replace(found.value, needed=frozenset())) if isinstance(found, Complete) else found

    remover._hands["lake"] = replace(remover.of("lake"), needs=of_nobody)
    known = deleter._facts.now

    def facts(*what: Any) -> Any:
        found = known(*what)
        return replace(found, needs=replace(found.needs, needed=frozenset())) if isinstance(found, Facts) else found

    deleter._facts.now = facts


def believes_the_first_sight(world: World) -> None:
    """A store for which every orphan was first seen days ago, again and again; and no second opinion of that."""
    finder: Any = world.house.control.removal_rounds._plans.orphans._finders["lake"]
    finder._check = lambda *_: None
    sightings: Any = world.house.removals.sightings
    stored = sightings._store
    add = type(stored).add

    def added(table_id: TableId, number: int, seen: Sequence[Sighting]) -> None:
        add(
            stored,
            table_id,
            number,
            [replace(one, first_seen_at=one.first_seen_at - 4 * DAY_MS, passes=9) for one in seen],
        )

    stored.add = added


def writes_nothing_down(world: World) -> None:
    """A Deleter that begins a step before anybody has written it down."""
    deleter: Any = deleter_of(world)
    store = deleter._store

    class Forgetful:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def change(self, epoch: int, changes: Any) -> Any:
            if any(one.state is IntentState.UNKNOWN for one in changes):
                return [replace(one, version=one.version + 1) for one in changes]
            return store.change(epoch, changes)

    deleter._store = Forgetful()


def purges_at_once(world: World) -> None:
    """A Deleter that keeps nothing in quarantine."""
    deleter_of(world)._may_be_purged = lambda *_: True  # type: ignore[method-assign]  # the guard is removed


def puts_nothing_back(world: World) -> None:
    """A Deleter that leaves in quarantine what a table has come to need."""
    deleter: Any = deleter_of(world)
    needs = deleter._needs

    def of_nobody(*what: Any) -> Known[Any]:
        known = needs(*what)
        return Gaps().judge(replace(known.value, needed=frozenset())) if isinstance(known, Complete) else known

    facts = deleter._facts
    known_now = facts.now

    def looked(run: Any, intents: Any, name: Any) -> Any:
        facts._needs = needs if intents[0].state is IntentState.PLANNED else of_nobody
        return known_now(run, intents, name)

    facts.now = looked
    deleter._needs = of_nobody


def knows_no_files_elsewhere(world: World) -> None:
    """A registry for which tables have files in their own places alone (F1)."""
    registry: Any = world.house.control.registry
    read = registry.read

    def forgotten(catalog: Any, metadata: Any, *what: Any) -> None:
        read(catalog, metadata, *what)
        with registry._lock:
            registry._note(metadata, replace(registry._book.get(metadata.name), places=()))

    registry.read = forgotten


def asks_nobody_first(world: World) -> None:
    """A server for which no removal needs a person's word."""
    rounds: Any = world.house.control.removal_rounds
    rounds._approvals.missing = lambda _plan: None
    rounds._person_wanted = lambda _table_id: None


def brings_no_file_back(world: World) -> None:
    """An undo of an expiry that asks for no file, neither to come back nor to be there."""
    expiry: Any = world.house.expiries["lake"]
    put_back = type(expiry).put_back
    undoer = world.house.control.undoer
    undoer._doors = replace(undoer._doors, bring_files_back=lambda _task, _may_go_on: None)
    expiry.put_back = lambda *what, **how: put_back(expiry, *what, **{**how, "first_missing": lambda _table: None})


def takes_files_at_once(world: World) -> None:
    """A server for which what an expiry took was of no need long before."""
    rounds: Any = world.house.control.removal_rounds
    due = rounds._due_expiries
    rounds._due_expiries = lambda *what: (due(*what)[0], [])
    rounds._remover._require_grace = lambda *_: None


def does_nothing(world: World) -> None:
    """A server that is safe because it removes nothing."""
    world.house.control.maintainer._want_pass = lambda *_: None


@pytest.mark.parametrize(
    ("mutation", "first"),
    [
        (takes_what_is_needed, 3),
        (believes_the_first_sight, 0),
        (writes_nothing_down, 0),
        (purges_at_once, 0),
        (asks_nobody_first, 0),
        (takes_files_at_once, 13),
        (knows_no_files_elsewhere, 15),
        *(((puts_nothing_back, 0), (brings_no_file_back, 0)) if CAMPAIGN else ()),
    ],
)
def test_g8_a_missing_guard_is_noticed(mutation: Any, first: int) -> None:
    """The catalog itself may miss its metadata."""
    is_noticed(mutation, first, (Broken, Unreadable), FilesWorld)


def test_g18_doing_nothing_is_noticed() -> None:
    happened = simulated(range(50, 56), does_nothing)
    assert happened["garbage left"] > happened["garbage gone"] == 0


def test_files_replay() -> None:
    assert simulate(7, kind=FilesWorld) == simulate(7, kind=FilesWorld)
