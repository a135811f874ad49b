"""Which tables the sweep passes over, and what has each of them looked at all the same (decision 0074)."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from icewright.core.errors import Conflict, NotAllowed, NotFound, Unavailable
from icewright.maintenance import quiet_tables
from icewright.maintenance.quiet_tables import FULL_LOOK_MS, LISTED_FROM, LISTED_MS
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.events.events import Untold
from icewright.model.iceberg.names import TableName
from icewright.model.plans.observation import WorkerAccess
from icewright.model.plans.plans import Reason
from icewright.model.policy.policies import NamedRule, NewRevision, Policies, RuleMatch
from icewright.model.policy.policy import PolicyRule
from icewright.model.work.figures import HealthPart
from icewright.model.work.storage import AccessRecord
from icewright.observation.access import PROVED_FOR_MS
from icewright.observation.sweep import INTERVAL_MAX_MS, next_look
from icewright.ports.findings import ExecutorExclusion
from icewright.ports.store import TableRecord
from icewright.ports.table_records import DueLook, LaterLook, SinceLooks
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.builders.lakehouse import AUTO, HOUR_MS, MINUTE_MS, NAME, SECOND_MS, Lakehouse
from tests.builders.worker import FINAL, Worker
from tests.contracts.samples import new_task
from tests.lakes.stores import new_store
from tests.narrowing import not_none

DAY_MS = 24 * HOUR_MS
UPKEEP = {
    "icewright.expire-snapshots.enabled": "true",
    "icewright.rewrite-manifests.enabled": "true",
    "history.expire.min-snapshots-to-keep": "1",
}


def lakehouse(settings: dict[str, str] | None = None, *, on_sql: bool = False, seed: int = 0) -> Lakehouse:
    rule = PolicyRule("lake", (), {**AUTO, **UPKEEP, **(settings or {})})
    if not on_sql:
        return Lakehouse(rules=(rule,), seed=seed)
    engine = new_store()
    return Lakehouse(
        rules=(rule,), seed=seed, stores=lambda clock: (SqlTableStore(engine, clock), SqlTaskStore(engine, clock))
    )


def at_rest(house: Lakehouse, name: TableName = NAME) -> Lakehouse:
    """With a table at which there is nothing to do, and that was looked at for long enough to be known so."""
    house.create(name)
    house.append(1, name=name)
    for _ in range(3):
        house.pass_time(30 * MINUTE_MS)
        house.control.maintainer.look(name)
    return house


@pytest.fixture(params=[False, True], ids=["memory", "sql"])
def house(request: pytest.FixtureRequest) -> Lakehouse:
    return at_rest(lakehouse(on_sql=request.param))


def sweep(house: Lakehouse, after_ms: int = INTERVAL_MAX_MS) -> int:
    """How many tables the sweep passes over, once their time has come, and looks at none of those."""
    house.pass_time(after_ms)
    quiet, before = house.control.maintainer._quiet, house.control.maintainer._quiet.passed_over
    house.control.loop._sweep()
    return quiet.passed_over - before


def score(house: Lakehouse) -> int:
    """The health of a table's snapshots."""
    listed = not_none(house.record().listed)
    assert listed.health is not None
    (snapshots,) = [part for part in listed.health.parts if part.part is HealthPart.SNAPSHOTS]
    return snapshots.score


def test_a_quiet_table_is_passed_over_and_only_its_next_look_moves(house: Lakehouse) -> None:
    before = house.record()
    assert [sweep(house) for _ in range(3)] == [1, 1, 1]
    after = house.record()
    assert house.clock.now() < after.next_look_at <= house.clock.now() + INTERVAL_MAX_MS
    assert replace(after, next_look_at=before.next_look_at) == before
    assert after.revision == before.revision


def test_a_server_that_has_not_looked_itself_looks(house: Lakehouse) -> None:
    house.restart()
    assert sweep(house) == 0
    assert sweep(house) in (0, 1)


def test_now_and_then_each_table_is_looked_at(house: Lakehouse) -> None:
    """What only reading its files tells, such as that one of them is damaged, is found by that."""
    house.catalog.damage(house.metadata().metadata_location)
    for _ in range(FULL_LOOK_MS // INTERVAL_MAX_MS + 1):
        sweep(house)
    assert (house.record().problem or Reason("", "")).code == "unreadable"


def commit(house: Lakehouse) -> None:
    house.append(1)


def set_property(house: Lakehouse) -> None:
    house.catalog.set_properties(NAME, {"owner": "Ada"})


def apply_policies(house: Lakehouse) -> None:
    """Of another table: no digest is compared."""
    rule = NamedRule("one", RuleMatch(("lake.db.other",)), {"icewright.mode": "observe"})
    house.policies.apply(NewRevision(Policies((rule,)), "Ada"), 0)


def wish(house: Lakehouse) -> None:
    house.tables.look_at_once(NAME)


def look_elsewhere(house: Lakehouse) -> None:
    """As another server does, which has written the record."""
    house.tables.save_record(house.record())


def unpark(house: Lakehouse) -> None:
    house.control.maintainer.unpark(house.record().table_id)


def queue(house: Lakehouse) -> None:
    """A person has something done."""
    task = new_task("task-of-a-person")
    house.tasks.enqueue(replace(task, table_id=house.record().table_id, table_name=NAME))


def at_rest_again(house: Lakehouse) -> None:
    for _ in range(2):
        house.pass_time(30 * MINUTE_MS)
        house.control.maintainer.look(NAME)


def exclude(house: Lakehouse) -> None:
    house.tables.note_exclusion(house.record().table_id, "not-stitchable", ExecutorExclusion(house.clock.now(), "x"))


def exclude_and_look(house: Lakehouse) -> None:
    """It counts for a day, whoever has seen it."""
    exclude(house)
    at_rest_again(house)


@pytest.mark.parametrize(
    "happens",
    [commit, set_property, apply_policies, wish, look_elsewhere, unpark, queue, exclude, exclude_and_look],
    ids=lambda one: one.__name__,
)
def test_what_a_look_depends_on_has_it_looked_at(house: Lakehouse, happens: Callable[[Lakehouse], None]) -> None:
    happens(house)
    observed_at = house.record().observed_at
    assert sweep(house) == 0
    assert house.record().observed_at > observed_at


def test_a_table_of_which_the_catalog_cannot_tell_is_looked_at(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_: TableName) -> str:
        raise NotFound("not shown")

    with monkeypatch.context() as patch:
        patch.setattr(house.catalog, "metadata_location", unknown)
        assert sweep(house) == 0
    assert sweep(house) == 1


def test_a_catalog_that_is_away_is_not_asked_for_its_pointers(house: Lakehouse) -> None:
    house.catalog.available = False
    assert sweep(house) == 0
    assert house.control.loop.paused_until("lake") is not None
    questions = house.control.maintainer._quiet.questions
    house.control.loop._sweep()
    assert house.control.maintainer._quiet.questions == questions


def test_a_table_that_is_not_wholly_claimed_is_looked_at(house: Lakehouse) -> None:
    book = house.control.registry.book()
    seen = not_none(book.get(NAME))
    book.put(replace(seen, is_complete=False))
    assert sweep(house) == 0


def test_a_defect_in_passing_over_keeps_no_table_from_being_looked_at(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("a defect")

    monkeypatch.setattr(house.catalog, "metadata_location", broken)
    observed_at = house.record().observed_at
    assert sweep(house) == 0
    assert house.record().observed_at > observed_at


class TestTime:
    def test_a_snapshot_that_comes_of_age_is_seen_to(self) -> None:
        """The health says so as soon as the sweep comes by, and so it is asked whether it expires."""
        house = at_rest(lakehouse())
        house.append(1)
        at_rest_again(house)
        of_age_at = house.metadata().snapshots[0].committed_at + 5 * DAY_MS
        passed_over = 0
        while house.clock.now() <= of_age_at:
            assert score(house) == 100
            passed_over += sweep(house)
        assert passed_over > 50
        assert score(house) < 100

    def test_a_plan_whose_time_comes_is_made_again(self) -> None:
        house = lakehouse({"icewright.mode": "observe"})
        house.create()
        house.append(8)
        waiting = house.control.maintainer.look(NAME).plan
        assert waiting.look_again_at is not None
        house.pass_time(5 * SECOND_MS)
        house.control.maintainer.look(NAME)
        house.tables.look_later([LaterLook(house.record().table_id, house.record().revision, house.clock.now())])
        assert sweep(house, SECOND_MS) == 1
        house.tables.look_later([LaterLook(house.record().table_id, house.record().revision, waiting.look_again_at)])
        assert sweep(house, waiting.look_again_at - house.clock.now()) == 0
        assert house.record().plan_id != waiting.plan_id

    def test_commits_that_wait_for_their_event_are_counted(self) -> None:
        house = at_rest(lakehouse())
        house.append(1)
        house.control.maintainer.look(NAME)
        reporting = not_none(house.record().reporting)
        assert [type(one) for one in reporting.untold] == [Untold]
        assert sweep(house) == 0
        reporting = not_none(house.record().reporting)
        assert (reporting.untold, reporting.sweep_only) == ((), 1)

    def test_work_that_may_be_lost_is_looked_after(self) -> None:
        house = lakehouse()
        house.ready_table()
        house.control.maintainer.look(NAME)
        assert sweep(house) == 0  # it waits in the queue
        house.control.dispatcher.withdraw(house.only_task(), Reason("test", "superseded"))
        assert sweep(house) == 0
        assert len(house.all_tasks()) > 1

    def test_a_plan_that_nobody_carries_out_is_looked_after(self) -> None:
        house = lakehouse()
        house.ready_table()
        house.control.maintainer.look(NAME)
        house.tasks.request_cancel(house.only_task().task_id, Reason("cancelled", "by a person"))
        at_rest_again(house)
        assert not house.tables.plan(house.record().plan_id or "").is_empty
        assert sweep(house) == 0

    def test_a_table_whose_tasks_fail_is_looked_at(self) -> None:
        """The breaker is half open some day."""
        house = lakehouse()
        house.ready_table()
        house.control.maintainer.look(NAME)
        worker = Worker(house)
        worker.report(worker.claimed(), FINAL)
        for _ in range(2 * FULL_LOOK_MS // INTERVAL_MAX_MS):
            assert sweep(house) == 0

    def test_a_search_for_orphan_files_that_is_due_is_told_of(self) -> None:
        rule = PolicyRule("lake", (), {**AUTO, "icewright.remove-orphan-files.enabled": "true"})
        house = Lakehouse(rules=(rule,), has_files=True)
        at_rest(house)
        assert sweep(house) == 0  # one is due
        for _ in range(3):
            for step in house.control.loop._removal_steps():
                step()
            house.control.maintainer.look(NAME)
        assert sweep(house) == 1
        tried = house.control.removal_rounds._tried[house.record().table_id]
        while house.clock.now() < tried + 20 * HOUR_MS:
            sweep(house)
        sweep(house)
        assert house.record().table_id in house.control.removal_rounds._wanted

    def test_what_is_known_of_a_storage_grows_old(self) -> None:
        house = lakehouse(on_sql=True)
        house.create(properties={"write.data.path": "s3://bucket/data"})
        house.append(1)
        house.control.maintainer.look(NAME)
        assert sweep(house) == 0  # nobody knows
        root = not_none(house.record().storage_root)
        proved = AccessRecord("lake", root, WorkerAccess.PROVED, "", "optimizer-a", house.clock.now())
        house.tables.save_access(proved)
        house.tables.want_no_probe("lake", root)
        at_rest_again(house)
        assert sweep(house) == 1
        house.tables.save_access(replace(proved, access=WorkerAccess.REFUSED, decided_at=house.clock.now()))
        assert sweep(house) == 0
        old_at = house.clock.now() + 5 * HOUR_MS // 2
        house.tables.save_access(replace(proved, decided_at=old_at - PROVED_FOR_MS))
        at_rest_again(house)
        assert [sweep(house), sweep(house)] == [1, 0]
        assert house.tables.probe("lake", root) is not None  # it is asked again, and nobody answers
        assert (sweep(house), sweep(house)) == (0, 0)


class TestPointers:
    def test_many_are_listed_at_once_and_few_are_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        house = lakehouse(on_sql=True)
        names = [TableName("lake", ("db",), f"t{number:02}") for number in range(LISTED_FROM + 5)]
        for name in names:
            at_rest(house, name)
        quiet = house.control.maintainer._quiet
        for _ in names:
            house.control.maintainer.look(names[0])
        for name in names:
            house.control.maintainer.look(name)
        house.append(1, name=names[3])
        assert sweep(house) == len(names) - 1
        assert (quiet.listings, quiet.questions) == (1, 1)  # for the one that moved
        monkeypatch.setattr(quiet_tables, "LISTED_FROM", len(names) + 1)
        house.control.maintainer.look(names[3])
        assert sweep(house) > 0
        assert quiet.listings == 1
        assert quiet.questions > LISTED_FROM

    def test_the_next_look_is_counted_from_the_question_on(self, house: Lakehouse) -> None:
        """So that a commit right behind an old answer stays unseen no longer than without it."""
        quiet, before = house.control.maintainer._quiet, house.record()
        quiet._chance = lambda: 0.0
        house.pass_time(INTERVAL_MAX_MS)
        asked_at, pointer = house.clock.now(), house.metadata().metadata_location
        quiet._listed["lake"] = quiet_tables._Listed(asked_at, asked_at + LISTED_MS, {before.table_id: pointer})
        house.append(1)
        assert sweep(house, LISTED_MS - 1) == 1
        at = next_look(asked_at, commit_interval_ms=before.commit_interval_ms, changed_at=before.changed_at, jitter=0.0)
        assert house.record().next_look_at == at
        assert sweep(house, at - house.clock.now()) == 0
        assert house.record().snapshot_id == house.metadata().current_snapshot_id

    def test_an_old_answer_says_nothing_of_a_pointer_that_was_noted_since(self, house: Lakehouse) -> None:
        quiet, table_id = house.control.maintainer._quiet, house.record().table_id
        asked_at, pointer = house.clock.now(), house.metadata().metadata_location
        quiet._listed["lake"] = quiet_tables._Listed(asked_at, asked_at + DAY_MS, {table_id: pointer})
        house.append(1)
        at_rest_again(house)
        house.catalog.set_properties(NAME, {"owner": "Ada"})
        assert sweep(house) == 0
        assert house.record().metadata_location == house.metadata().metadata_location

    def test_policies_that_are_applied_meanwhile_are_looked_by(self, monkeypatch: pytest.MonkeyPatch) -> None:
        house = at_rest(lakehouse(on_sql=True))
        since_looks = house.tables.since_looks

        def applied(*asked: Any) -> SinceLooks:
            found = since_looks(*asked)
            rule = NamedRule("one", RuleMatch(("lake.db.*",)), {"icewright.mode": "observe"})
            house.control.policies.apply(NewRevision(Policies((rule,)), "Ada"), 0)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(house.tables, "since_looks", applied)
            sweep(house)
        assert house.record().next_look_at <= house.clock.now()


class Watched:
    """Takes a full look at tables that are passed over: it has to find the same plan and queue nothing."""

    def __init__(self, house: Lakehouse, chance: random.Random) -> None:
        self.house, self.chance, self.compared = house, chance, 0
        self.missed: list[str] = []
        self.watch()

    def watch(self) -> None:
        maintainer = self.house.control.maintainer
        pass_over = maintainer.pass_over

        def watched(due: list[DueLook], answering: frozenset[str]) -> object:
            left = pass_over(due, answering)
            for one in due:
                if one not in left and self.chance.random() < 0.3:
                    self._compare(one)
            return left

        maintainer.pass_over = watched  # type: ignore[method-assign, assignment]  # a spy of this test

    def _compare(self, one: DueLook) -> None:
        house = self.house
        before, tasks, waits = self._record(one), self._tasks(), house.tables.waits(one.table_id)
        looked = house.control.maintainer.look(one.name)
        after = self._record(one)
        found = {
            "made a plan": looked.plan.reason if looked.is_new else None,
            "queued": (looked.enqueued, looked.upkeep.enqueued) if looked.enqueued or looked.upkeep.enqueued else None,
            "took up": looked.late or None,
            "changed tasks": None if self._tasks() == tasks else (tasks, self._tasks()),
            "let wait": None if house.tables.waits(one.table_id) == waits else waits,
            "wrote": None if _shown(after) == _shown(before) else (before, after),
            "counted": None if _counts(after) == _counts(before) else (before.reporting, after.reporting),
        }
        self.missed += [f"{one.name}: {what}: {how}" for what, how in found.items() if how is not None]
        self.compared += 1

    def _record(self, one: DueLook) -> TableRecord:
        return not_none(self.house.tables.record(one.table_id))

    def _tasks(self) -> list[tuple[str, int]]:
        return [(task.task_id, task.version) for task in self.house.all_tasks()]


def _shown(record: TableRecord) -> TableRecord:
    """But for when it was looked at and what each look notes by the clock."""
    return replace(record, reporting=None, observed_at=0, next_look_at=0, considered=(), marks=())


def _counts(record: TableRecord) -> object:
    reporting = record.reporting
    return None if reporting is None else (reporting.untold, reporting.told, reporting.sweep_only)


class Happenings:
    """Anything that may happen to tables and to what is kept of them."""

    def __init__(self, house: Lakehouse, names: list[TableName], chance: random.Random, watched: Watched) -> None:
        self.house, self.names, self.chance, self.watched = house, names, chance, watched
        self.weights: dict[Callable[[TableName], object], int] = {
            self.append: 4,
            self.report: 2,
            self.set_property: 2,
            self.set_mode: 1,
            self.work: 3,
            self.apply_policies: 2,
            self.decide: 1,
            self.cancel: 1,
            self.wish: 1,
            self.exclude: 1,
            self.ask: 1,
            self.restart: 1,
            self.nothing: 12,
        }

    def happen(self) -> None:
        name = self.chance.choice(self.names)
        (happens,) = self.chance.choices(list(self.weights), weights=list(self.weights.values()))
        with suppress(Conflict, NotAllowed, Unavailable, NotFound):  # nobody lets it happen just now
            happens(name)

    def append(self, name: TableName) -> None:
        self.house.append(self.chance.choice([1, 6]), name=name)

    def report(self, name: TableName) -> None:
        self.house.notify(self.house.append(1, name=name), name)

    def set_property(self, name: TableName) -> None:
        self.house.catalog.set_properties(name, {"owner": str(self.chance.random())})

    def set_mode(self, name: TableName) -> None:
        self.house.catalog.set_properties(name, {"icewright.mode": self.chance.choice(["auto", "approve"])})

    def work(self, _: TableName) -> None:
        one = Worker(self.house)
        spec = one.claim_if_any()
        if spec is None or self.chance.random() < 0.2:
            return  # it dies before its commit
        reply = one.try_commit(spec) if self.chance.random() < 0.8 else FINAL
        if self.chance.random() < 0.8:  # else it dies behind it
            one.report(spec, reply)

    def apply_policies(self, name: TableName) -> None:
        mode = self.chance.choice(["observe", "approve", "auto"])
        new = NewRevision(Policies((NamedRule("one", RuleMatch((str(name),)), {"icewright.mode": mode}),)), "Ada")
        # The server may die behind it.
        apply = self.house.control.policies.apply if self.chance.random() < 0.5 else self.house.policies.apply
        apply(new, self.house.policies.present())

    def decide(self, _: TableName) -> None:
        for one in self.house.tables.waiting(limit=10):
            if self.chance.random() < 0.5:
                self.house.control.dispatcher.approve(one.plan_id, "Ada")
            else:
                self.house.control.approvals.refuse(one.plan_id, "Ada", "no")

    def cancel(self, _: TableName) -> None:
        for task in self.house.all_tasks():
            if self.chance.random() < 0.3:
                self.house.tasks.request_cancel(task.task_id, Reason("cancelled", "by a person"))

    def wish(self, name: TableName) -> None:
        self.house.tables.look_at_once(name)

    def exclude(self, name: TableName) -> None:
        found = self.house.tables.record_by_name(name)
        if found is not None:
            said = ExecutorExclusion(self.house.clock.now(), "two writers")
            self.house.tables.note_exclusion(found.table_id, "not-stitchable", said)

    def ask(self, name: TableName) -> None:
        plan = self.house.control.maintainer.plan_asked(name, ExpireSnapshotsRequest("PT0S", 1))
        if self.chance.random() < 0.5:
            self.house.control.dispatcher.apply(plan.plan_id)

    def restart(self, _: TableName) -> None:
        self.house.restart()
        self.watched.watch()

    def nothing(self, _: TableName) -> None:
        """Time passes."""


@pytest.mark.parametrize("seed", range(12))
def test_a_full_look_at_a_table_that_is_passed_over_finds_the_same_plan_and_queues_nothing(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - of a test
    house = lakehouse({"history.expire.max-snapshot-age-ms": str(2 * DAY_MS)}, seed=seed, on_sql=seed % 4 == 0)
    names = [TableName("lake", ("db",), f"t{number}") for number in range(5)]
    for name in names:
        house.create(name)
    watched = Watched(house, chance)
    happenings = Happenings(house, names, chance, watched)
    for _ in range(60):
        happenings.happen()
        for _ in range(chance.randint(1, 4)):
            house.control.loop.round()
            house.pass_time(chance.choice([SECOND_MS, 5 * MINUTE_MS, HOUR_MS, 7 * HOUR_MS]))
        assert not watched.missed, watched.missed[0]
    assert watched.compared > 5
