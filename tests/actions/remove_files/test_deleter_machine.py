"""Any order of commits, deletes, deaths and undoing: no file that a table needs is ever taken, and all can come back.

Writers commit files that they wrote just now or long ago, refer again to what was garbage, roll back, and write
over it; the Deleter runs plans of any age, dies anywhere, goes on, undoes and purges. Variants of it without one of
its guards must be noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    get_state_machine_test,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from icewright.actions.remove_files import may_delete
from icewright.actions.remove_files.deleter import Deleter
from icewright.actions.remove_files.may_delete import Facts
from icewright.core import fault_points as faults
from icewright.core.completeness import Complete, Gaps, Known
from icewright.core.errors import Conflict
from icewright.core.fault_points import Fault, fault
from icewright.model.actions.deletion import WINDOW_FLOOR_MS, DeletePlan, Intent, IntentState, Needs, Step
from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from tests.builders.deletions import DAY_MS, HELD, HOUR_MS, Died, World, at, dying_at
from tests.conftest import CAMPAIGN
from tests.doubles import quarantine as memory_quarantine

PATHS = [at(f"f{number}") for number in range(3)]
POINTS = [point for point in Fault if point.value.startswith("deleter.")]
indexes = st.integers(0, len(PATHS) - 1)
deaths = st.one_of(
    st.none(), st.just((Fault.DELETION_FILE_DONE, 1)), st.tuples(st.sampled_from(POINTS), st.integers(1, 3))
)
WRITER_MS_MAX = 72 * HOUR_MS
"""How long a writer takes at most from its first file to its commit."""
QUARANTINED = frozenset({IntentState.QUARANTINED})


class Machine(RuleBasedStateMachine):
    """One table. ``late`` are paths that a writer came to need only after they had been taken out of its sight."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.history: list[dict[CanonicalPath, bytes]] = [{}]
        self.late: set[CanonicalPath] = set()
        self.in_flight: dict[CanonicalPath, tuple[bytes, int]] = {}
        self.plans: list[DeletePlan] = []
        self.writes = self.runs = 0

    # Writers.

    @rule(index=indexes, age_days=st.sampled_from([0, 1, 30]))
    def write(self, index: int, age_days: int) -> None:
        """Write a file, also over garbage; a writer does not write over what its table needs."""
        path, now = PATHS[index], self.world.clock.now()
        if path not in self.world.refs:
            self.writes += 1
            content = f"{self.writes}".encode()
            self.world.storage.write(path, content, modified_at=now - age_days * DAY_MS)
            self.in_flight.pop(path, None)
            if age_days == 0:
                self.in_flight[path] = content, now

    @rule(chosen=st.sets(indexes, max_size=2))
    def commit(self, chosen: set[int]) -> None:
        """Come to need files that are there: new ones, or such as were garbage."""
        for path in (PATHS[index] for index in chosen):
            content, written_at = self.in_flight.pop(path, (b"", 0))
            if self.world.clock.now() - written_at < WRITER_MS_MAX:
                self.world.refs[path] = content  # it wrote the file, and does not look whether it is still there
            elif path in self.world.storage.objects:
                self.world.commit(path)
        self.world.commits += 1
        self.history.append(dict(self.world.refs))

    @rule(index=indexes)
    def write_over_what_is_to_go(self, index: int) -> None:
        """Write, and not yet commit, at the path of something that is about to be quarantined."""
        planned = {one.object.path for one in self.of(frozenset({IntentState.PLANNED}))}
        if PATHS[index] in planned:
            self.write(index, 0)

    @rule()
    def commit_all(self) -> None:
        """Commit all that was written and is not committed yet."""
        self.commit({index for index, path in enumerate(PATHS) if path in self.in_flight})

    @rule(chosen=st.sets(indexes, min_size=1, max_size=3))
    def expire(self, chosen: set[int]) -> None:
        """Need files no more."""
        for index in chosen:
            self.world.refs.pop(PATHS[index], None)
            self.late.discard(PATHS[index])
        self.world.commits += 1

    @rule(back=st.integers(1, 3))
    def roll_back(self, back: int) -> None:
        """Need what was needed before, as far as it is there as it was."""
        then = self.history[-min(back, len(self.history))]
        there = self.world.storage.objects
        self.world.refs |= {
            path: content for path, content in then.items() if path in there and there[path].content == content
        }
        self.world.commits += 1

    @rule(index=indexes)
    def commit_late(self, index: int) -> None:
        """Come to need, by a commit that took longer than any floor, what has been quarantined meanwhile.

        That is what was last at its path; what was written over is gone by its writers' own doing.
        """
        path = PATHS[index]
        overwritten = any(one.object.path == path for one in self.unknown())  # by what a death has left on its way
        held = [one for one in self.held() if one.object.path == path and not overwritten]
        if held and path not in self.world.refs and path not in self.world.storage.objects and held[-1].held:
            self.world.refs[path] = self.world.storage.objects[held[-1].held.place].content
            self.late.add(path)
            self.world.commits += 1

    # The Deleter, each time as another process.

    @rule()
    def plan(self) -> None:
        """Plan to remove all that nobody needs now. It may be carried out much later."""
        garbage = [path for path in PATHS if path in self.world.storage.objects and path not in self.world.refs]
        if garbage:
            self.world.table_bytes = 10**9
            self.plans.append(self.world.plan(garbage, plan_id=f"plan-{len(self.plans)}"))

    @rule(index=indexes, age_days=st.sampled_from([0, 30]), death=deaths)
    def plan_and_start(self, index: int, age_days: int, death: tuple[Fault, int] | None) -> None:
        """Garbage comes to be, and is to go."""
        self.write(index, age_days)
        self.plan()
        if self.plans:
            self.begin_run(self.plans[-1], death)

    @precondition(lambda self: self.plans)
    @rule(data=st.data(), death=deaths)
    def start(self, data: st.DataObject, death: tuple[Fault, int] | None) -> None:
        self.begin_run(data.draw(st.sampled_from(self.plans)), death)

    def begin_run(self, plan: DeletePlan, death: tuple[Fault, int] | None) -> None:
        self.runs += 1

        def begin() -> None:
            with suppress(Conflict):  # another run is open
                self.deleter().begin(plan, f"run-{self.runs:03}")

        self.maybe_dying(begin, death)

    @precondition(lambda self: self.runs)
    @rule(death=deaths)
    def advance(self, death: tuple[Fault, int] | None) -> None:
        self.world.clock.advance(60_000)
        for run in self.world.store.runs(limit=99):
            self.maybe_dying(partial(self.deleter().advance, run.run_id), death)

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), death=deaths)
    def undo(self, data: st.DataObject, death: tuple[Fault, int] | None) -> None:
        runs = self.world.store.runs(limit=99)
        if runs:
            run_id = data.draw(st.sampled_from([run.run_id for run in runs]))
            self.maybe_dying(lambda: self.take_back(run_id), death)

    @precondition(lambda self: self.runs)
    @rule(death=deaths)
    def tend(self, death: tuple[Fault, int] | None) -> None:
        """Goes by every held file; so what came to be needed late is back afterwards."""
        if not self.maybe_dying(self.tend_all, death):
            assert self.late & self.gone() == set()

    @rule(hours=st.sampled_from([1, 24, 80, 8 * 24]))
    def wait(self, hours: int) -> None:
        """Nothing is purged while time goes by; :meth:`tend` comes before anybody looks."""
        self.world.clock.advance(hours * HOUR_MS)

    # What holds.

    @invariant()
    def nothing_that_is_needed_is_missing(self) -> None:
        assert self.world.missing() - self.late == set()

    @invariant()
    def what_lies_in_quarantine_is_known(self) -> None:
        """Every file there belongs to an intent that can bring it back."""
        places = {path for path in self.world.storage.objects if path.startswith(HELD)}
        known = {f"{HELD}/{one.run_id}/{one.object.path[5:]}" for one in (*self.held(), *self.unknown())}
        assert places <= known

    @invariant()
    def nothing_is_purged_before_its_time(self) -> None:
        for one in self.of(frozenset({IntentState.PURGED})):
            assert one.changed_at - (one.held_at or 0) >= WINDOW_FLOOR_MS

    def teardown(self) -> None:
        """Undo all: whatever was needed at any time within the window is there again."""
        for run in self.world.store.runs(limit=99):
            self.take_back(run.run_id)
        assert self.world.missing() == set()
        assert not self.unknown()

    # Odds and ends.

    def deleter(self) -> Deleter:
        return self.world.deleter()

    def maybe_dying(self, act: Callable[[], object], death: tuple[Fault, int] | None) -> bool:
        faults.arm(None if death is None else dying_at(*death))
        try:
            act()
        except Died:
            return True
        finally:
            faults.arm(None)
        return False

    def take_back(self, run_id: str) -> None:
        after: int | None = None
        for _ in range(20):
            batch = self.deleter().undo(run_id, after)
            if batch.is_done or batch.waits is not None:
                return
            after = batch.after

    def tend_all(self) -> None:
        for run_id in self.world.store.with_held(limit=99):
            batch = self.deleter().tend(run_id)
            while not batch.is_done:
                batch = self.deleter().tend(run_id, batch.after)

    def gone(self) -> set[CanonicalPath]:
        return {path for path in PATHS if path not in self.world.storage.objects}

    def held(self) -> list[Intent]:
        return self.of(QUARANTINED)

    def unknown(self) -> list[Intent]:
        return self.of(frozenset({IntentState.UNKNOWN}))

    def of(self, states: frozenset[IntentState]) -> list[Intent]:
        runs = sorted(run.run_id for run in self.world.store.runs(limit=99))
        return [one for run_id in runs for one in self.world.store.intents(run_id, states, limit=99)]


EXAMPLES = settings(
    max_examples=10_000 if CAMPAIGN else 120,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
SEARCH = settings(EXAMPLES, max_examples=10_000, phases=[Phase.generate], print_blob=False, database=None)
FEW = settings(SEARCH, max_examples=25)


def test_any_order_of_commits_deletes_deaths_and_undoing() -> None:
    run_state_machine_as_test(Machine, settings=EXAMPLES)


def noticed(machine: type[Machine], number: int) -> None:
    """Whether what is wrong with a machine is found: by the seed that is known to, or by some other."""
    with pytest.raises(AssertionError):
        search(machine, number)


def search(machine: type[Machine], number: int) -> None:
    seed(number)(get_state_machine_test(machine, settings=FEW))()
    run_state_machine_as_test(machine, settings=SEARCH)


class WithoutRecheck(Machine):
    """Believes for ever that nothing of a plan is needed."""

    def deleter(self) -> Deleter:
        world = self.world

        def careless(name: TableName, paths: Iterable[CanonicalPath]) -> Known[Needs]:
            known = world.needs(name, paths)
            assert isinstance(known, Complete)
            return Gaps().judge(replace(known.value, needed=frozenset()))

        return Deleter(
            world.store, world.objects, world.quarantine, careless, world.place, world.other_tables, aliases=Aliases()
        )


class RecordsAfterwards(Deleter):
    """Writes down what it has done, and not what it is about to do."""

    def _step(
        self, intents: Sequence[Intent], step: Step, _facts: Facts | None, left: Sequence[Intent] = ()
    ) -> tuple[Sequence[Intent], Reason | None]:
        done = [self._do(replace(one, step=step), step) for one in intents]
        fault(Fault.DELETION_FILE_DONE)
        begun = [replace(one, state=IntentState.UNKNOWN, step=step) for one in intents]
        written = self._store.change(self._epoch, [*begun, *left])
        recorded = self._record([replace(one, version=one.version + 1) for one in done], 0)
        return (*recorded, *written[len(begun) :]), None


class WithIntentsAfterwards(Machine):
    """Its Deleter is the one above."""

    def deleter(self) -> Deleter:
        world = self.world
        return RecordsAfterwards(
            world.store,
            world.objects,
            world.quarantine,
            world.needs,
            world.place,
            world.other_tables,
            aliases=Aliases(),
        )


def test_without_looking_again_live_files_are_lost() -> None:
    noticed(WithoutRecheck, 3)


def test_intents_that_are_written_afterwards_are_noticed() -> None:
    noticed(WithIntentsAfterwards, 3)


def test_without_the_condition_on_the_etag_live_files_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_quarantine, "same_object", lambda _expected, _found: True)
    noticed(Machine, 10)


def test_without_floors_live_files_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_floor(*_: Any) -> None:
        return None

    monkeypatch.setattr(may_delete, "_too_young", no_floor)
    noticed(Machine, 6)


def test_purging_before_the_window_is_over_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def always(_self: Deleter, intent: Intent, facts: Facts) -> bool:
        return intent.object.path not in facts.needs.needed

    monkeypatch.setattr(Deleter, "_may_be_purged", always)
    noticed(Machine, 5)
