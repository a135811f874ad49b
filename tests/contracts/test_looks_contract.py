"""What a look is told of a table at its beginning, and what its write is compared with: on each kind of database."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import pytest
from sqlalchemy import insert

from icewright.core.errors import LookLost
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.orphans import FinishedPass
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.layouts import Level, Run
from icewright.model.plans.approvals import Refusal
from icewright.model.plans.observation import WorkerAccess
from icewright.model.policy.policies import NewRevision, Policies
from icewright.model.work.breaker import TASKS_LOOKED_AT
from icewright.model.work.storage import AccessRecord, ProbeRequest
from icewright.model.work.tasks import TaskState
from icewright.ports.findings import ExecutorExclusion
from icewright.ports.store import AT_ONCE, InventoryUpdate, TaskFilter, WaitingPlan
from icewright.ports.table_records import BeforeLook, LaterLook, StoredTable
from icewright.queries.schema import query_templates
from icewright.store.transactions import writing
from tests.contracts.samples import REASON, manifest, new_task, of_kind, plan, record, statistics, table_id
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none

P1, P2 = Partition(0, '["a"]'), Partition(1, '["\\u0000\\ud800"]')
ROOT = "s3://bucket/it's"
KIND = ActionKind.EXPIRE_SNAPSHOTS
Found = TypeVar("Found")


def fill(stores: Stores, number: int) -> None:
    """All that there can be of a table."""
    tables, its = stores.tables(), record(number, storage_root=f"{ROOT}/{number}")
    runs = {7: Run(Level.LEVEL_1, "sort(2)", number), 8: Run(Level.LEVEL_0, "", 6)}
    tables.apply_inventory(
        InventoryUpdate(its, [manifest(2, P2), manifest(1, P1)], [], [statistics(P2), statistics(P1, number)], [], runs)
    )
    tables.save_plan(plan(f"plan-{number}", table=number))
    root = its.storage_root or ""
    tables.save_access(AccessRecord("lake", root, WorkerAccess.REFUSED, "it's", "optimizer-a", 5))
    tables.want_probe(ProbeRequest(its.table_id, its.name, root), 6)
    tables.note_exclusion(its.table_id, "not-stitchable", ExecutorExclusion(number, "two writers"))
    tables.wait(WaitingPlan(f"waits-{number}", its.table_id, its.name, KIND, REASON, 5))
    tables.refuse(Refusal(f"waits-{number}", "h", its.table_id, its.name, KIND, "Ada", "no", 5, 1, "d"))
    stores.sightings().begin(its.table_id)
    stores.sightings().finish(its.table_id, FinishedPass(1, number, True, 1, 2, None))
    stores.tasks().enqueue(replace(new_task(f"task-{number}"), table_id=its.table_id))


def test_everything_is_told_at_once_as_it_is_told_one_by_one(stores: Stores, clock: ManualClock) -> None:
    for number in (1, 2):
        fill(stores, number)
    stores.policies().apply(NewRevision(Policies(()), "Ada"), 0)
    tables, its = stores.tables(), table_id(2)
    known = not_none(tables.record(its))
    expected = BeforeLook(
        stored=StoredTable(
            known,
            tuple(tables.manifest_keys(its)),
            tuple(tables.partitions(its)),
            tables.runs(its),
            tables.exclusions(its),
            tables.access("lake", f"{ROOT}/2"),
            is_asked=tables.probe("lake", f"{ROOT}/2") is not None,
            is_queried=False,
        ),
        now=clock.now(),
        plan=tables.plan("plan-2"),
        tasks=stores.tasks().listed(TaskFilter(table_id=its), limit=TASKS_LOOKED_AT),
        waits=tables.waits(its),
        refusals=tables.refusals(its),
        passed=stores.sightings().finished(its),
        policies=stores.policies().present(),
        restored_at=stores.tasks().restored_at(),
    )
    found = stores.tables().before_look(known.name)
    assert found == expected
    assert not_none(found.record).revision == known.revision
    assert stores.tables().before_look_at(its) == expected
    filled = (found.stored.runs, found.stored.exclusions, found.stored.access, found.waits, found.refusals, found.tasks)
    assert all(filled)
    assert (found.policies, found.stored.is_asked, found.passed and found.passed.finished_at) == (1, True, 2)


def test_the_latest_tasks_are_told_newest_first(stores: Stores) -> None:
    stores.tables().save_record(record())
    for number in range(TASKS_LOOKED_AT + 2):
        task = stores.tasks().enqueue(new_task(f"task-{number:03}")).task
        stores.tasks().request_cancel(task.task_id, REASON)
    found = stores.tables().before_look(record().name).tasks
    assert [task.task_id for task in found] == [f"task-{n:03}" for n in range(TASKS_LOOKED_AT + 1, 1, -1)]
    assert {task.state for task in found} == {TaskState.CANCELLED}


def test_of_a_table_that_nobody_knows_only_what_is_of_all_tables_is_told(stores: Stores, clock: ManualClock) -> None:
    fill(stores, 1)
    stores.policies().apply(NewRevision(Policies(()), "Ada"), 0)
    nothing = BeforeLook(StoredTable(is_queried=False), clock.now(), policies=1)
    assert stores.tables().before_look(record(2).name) == nothing
    assert stores.tables().before_look_at(table_id(2)) == nothing


def test_a_dropped_table_is_told_by_its_id_alone(stores: Stores) -> None:
    stores.tables().save_record(record(dropped_at=5))
    assert stores.tables().before_look(record().name).record is None
    assert stores.tables().before_look_at(table_id()).record == record(dropped_at=5)


def test_a_plan_that_is_not_there_is_none(stores: Stores) -> None:
    stores.tables().save_record(record(plan_id="plan-gone"))
    assert stores.tables().before_look(record().name).plan is None


def test_whether_queries_are_counted_is_told_of_each_table_and_of_all_where_none_is_known(stores: Stores) -> None:
    for number in (1, 2):
        stores.tables().save_record(record(number))
    of = {"catalog": table_id(1).catalog, "table_uuid": table_id(1).uuid}
    counted = {**of, "week_at": 7, "fingerprint": "f", "template": "t", "queries": 1, "bytes_read": 1, "sums": "s"}
    with writing(stores.engine) as connection:
        connection.execute(insert(query_templates), counted)
    found = [stores.tables().before_look(record(number).name).stored.is_queried for number in (1, 2)]
    assert found == [True, False]
    assert stores.tables().before_look(record(3).name, is_new=True).stored.is_queried


class TestPoliciesAreCompared:
    def test_a_look_by_policies_that_were_replaced_is_lost(self, stores: Stores) -> None:
        stores.tables().save_record(record(), policies=0)
        stores.policies().apply(NewRevision(Policies(()), "Ada"), 0)
        for late in (record(snapshot_id=8, revision=1), record(snapshot_id=8, name=record(2).name, revision=1)):
            with pytest.raises(LookLost):
                stores.tables().save_record(late, policies=0)
        assert stores.tables().record(table_id()) == record()
        stores.tables().save_record(record(snapshot_id=8, revision=1), policies=1)
        stores.tables().save_record(record(snapshot_id=9, revision=2))
        assert stores.tables().record(table_id()) == record(snapshot_id=9)

    def test_an_unchanged_name_that_another_table_took_is_not_written(self, stores: Stores) -> None:
        stores.tables().save_record(record(1))
        stores.tables().save_record(record(2, name=record(1).name))
        with pytest.raises(LookLost):
            stores.tables().save_record(record(1, snapshot_id=8, revision=1))
        stores.tables().save_record(record(1, snapshot_id=8, revision=2))  # it has it back
        found = stores.tables().record_by_name(record(1).name)
        assert found == record(1, snapshot_id=8)


class TestManyTables:
    def test_what_has_changed_since_is_told_of_many_at_once(self, stores: Stores, clock: ManualClock) -> None:
        for number in (1, 2, 3):
            stores.tables().save_record(record(number, storage_root=f"{ROOT}/{number}"))
        stores.policies().apply(NewRevision(Policies(()), "Ada"), 0)
        tables, ids = stores.tables(), [table_id(number) for number in (1, 2, 3)]
        for number in range(TASKS_LOOKED_AT + 3):
            task = stores.tasks().enqueue(new_task(f"task-{number:03}")).task
            stores.tasks().request_cancel(task.task_id, REASON)
        stores.tasks().enqueue(replace(new_task("task-of-2"), table_id=table_id(2)))
        tables.note_exclusion(table_id(2), "not-stitchable", ExecutorExclusion(1, "x"))
        for number, at in ((1, 5), (2, 6)):
            proved = AccessRecord("lake", f"{ROOT}/{number}", WorkerAccess.PROVED, "", "optimizer-a", at)
            tables.save_access(proved)
        tables.want_probe(ProbeRequest(table_id(2), record(2).name, f"{ROOT}/2"), 6)
        found = stores.tables().since_looks(ids, [("lake", f"{ROOT}/{number}") for number in (1, 2, 3)])
        latest = stores.tables().before_look(record(1).name).tasks
        assert found.tasks[table_id(1)] == {(task.task_id, task.version) for task in latest}
        assert found.tasks[table_id(2)] == {("task-of-2", 1)}
        assert found.tasks[table_id(3)] == frozenset()
        assert found.access == {("lake", f"{ROOT}/1"): 5}
        assert found.remarked == {table_id(2)}
        assert (found.now, found.policies) == (clock.now(), 1)
        assert stores.tables().since_looks([], []).tasks == {}

    def test_a_task_that_goes_on_is_told_however_many_came_since(self, stores: Stores) -> None:
        stores.tables().save_record(record())
        stores.tasks().enqueue(of_kind("task-000", ActionKind.EXPIRE_SNAPSHOTS, table=1))
        for number in range(1, TASKS_LOOKED_AT + 3):
            task = stores.tasks().enqueue(new_task(f"task-{number:03}")).task
            stores.tasks().request_cancel(task.task_id, REASON)
        assert ("task-000", 1) in stores.tables().since_looks([table_id()], []).tasks[table_id()]

    def test_looks_are_put_off_together_but_for_what_was_written_since(self, stores: Stores) -> None:
        for number in (1, 2, 3):
            stores.tables().save_record(record(number, next_look_at=1_000))
        stores.tables().look_at_once(record(2).name)
        stores.tables().save_record(record(3, next_look_at=1_000, dropped_at=5, revision=1))
        later = [LaterLook(table_id(number), 1, 2_000 + number) for number in (1, 2, 4)]
        stores.tables().look_later([*later, LaterLook(table_id(3), 2, 9_000)])
        known = [stores.tables().record(table_id(number)) for number in (1, 2, 3)]
        assert [one and one.next_look_at for one in known] == [2_001, AT_ONCE, 1_000]
        assert [one and one.revision for one in known] == [1, 2, 2]
        stores.tables().look_later([])

    def test_none_is_put_off_by_policies_that_were_replaced(self, stores: Stores) -> None:
        stores.tables().save_record(record(next_look_at=1_000))
        stores.policies().apply(NewRevision(Policies(()), "Ada"), 0)
        stores.tables().look_later([LaterLook(table_id(), 1, 2_000)], policies=0)
        assert [one.next_look_at for one in stores.tables().due(5_000, 9)] == [1_000]
        stores.tables().look_later([LaterLook(table_id(), 1, 2_000)], policies=1)
        assert [one.next_look_at for one in stores.tables().due(5_000, 9)] == [2_000]


class TestWhatOneLookWritesIsWrittenTogether:
    """In the block of one thread; what others see and do meanwhile is done by another one."""

    UPDATE = InventoryUpdate(record(), [manifest(1, P1)], [], [statistics(P1)], [], {7: Run(Level.LEVEL_0, "", 6)})

    def test_others_see_all_of_it_or_nothing(self, stores: Stores) -> None:
        tables = stores.tables()
        with tables.gathered():
            tables.apply_inventory(self.UPDATE)
            tables.save_plan(plan("plan-1"))
            assert elsewhere(lambda: stores.tables().record(table_id())) is None
            tables.save_record(record(plan_id="plan-1", revision=2), policies=0, series=())
            seen = not_none(elsewhere(lambda: stores.tables().before_look(record().name)))
        assert seen.record == record(plan_id="plan-1")
        assert not_none(seen.record).revision == 3
        assert seen.plan == plan("plan-1")
        assert seen.stored.partitions == (statistics(P1),)
        assert list(stores.tables().manifest_summaries(table_id())) == [manifest(1, P1)]

    def test_whatever_reads_or_writes_next_finds_it(self, stores: Stores) -> None:
        tables = stores.tables()
        with tables.gathered():
            tables.apply_inventory(self.UPDATE)
            tables.save_plan(plan("plan-1"))
            assert stores.tables().plan("plan-1") == plan("plan-1")
            tables.save_record(record(plan_id="plan-1", snapshot_id=8, revision=2))
            tables.apply_inventory(replace(self.UPDATE, record=record(plan_id="plan-1", snapshot_id=9, revision=3)))
            stores.tasks().enqueue(new_task("task-1"))
            assert not_none(elsewhere(lambda: stores.tables().record(table_id()))).snapshot_id == 9
            tables.save_plan(plan("plan-2"))
        assert not_none(stores.tables().record(table_id())).plan_id == "plan-2"

    def test_manifests_are_told_as_they_are_to_be(self, stores: Stores) -> None:
        stores.tables().apply_inventory(self.UPDATE)
        tables, moved = stores.tables(), record(revision=1)
        with tables.gathered():
            tables.apply_inventory(InventoryUpdate(moved, [manifest(2, P2)], [manifest(1, P1).key], [], []))
            assert list(tables.manifest_summaries(table_id())) == [manifest(2, P2)]
            assert list(tables.manifest_summaries(table_id(), frozenset({P1}))) == []
            assert elsewhere(lambda: list(stores.tables().manifest_summaries(table_id()))) == [manifest(1, P1)]
        assert list(stores.tables().manifest_summaries(table_id())) == [manifest(2, P2)]

    @pytest.mark.parametrize("is_known", [False, True])
    def test_where_others_wrote_first_nothing_of_it_is_written(self, stores: Stores, *, is_known: bool) -> None:
        if is_known:
            stores.tables().save_record(record())
        tables, read = stores.tables(), int(is_known)

        def look() -> None:
            with tables.gathered():
                tables.apply_inventory(replace(self.UPDATE, record=record(revision=read)))
                tables.save_plan(plan("plan-1"))
                elsewhere(lambda: stores.tables().save_record(record(snapshot_id=8, revision=read)))
                tables.save_record(record(plan_id="plan-1", revision=read + 2))

        with pytest.raises(LookLost):
            look()
        assert not_none(stores.tables().record(table_id())).snapshot_id == 8
        assert list(stores.tables().plans(table_id(), limit=9)) == []
        assert list(stores.tables().manifest_keys(table_id())) == []

    def test_a_wish_for_a_look_has_it_lost(self, stores: Stores) -> None:
        stores.tables().save_record(record())
        tables = stores.tables()

        def look() -> None:
            with tables.gathered():
                tables.apply_inventory(replace(self.UPDATE, record=record(revision=1)))
                elsewhere(lambda: stores.tables().look_at_once(record().name))
                tables.save_record(record(revision=2))

        with pytest.raises(LookLost):
            look()

    def test_a_new_table_is_not_written_by_policies_that_were_replaced(self, stores: Stores) -> None:
        tables = stores.tables()

        def look() -> None:
            with tables.gathered():
                tables.apply_inventory(self.UPDATE)
                elsewhere(lambda: stores.policies().apply(NewRevision(Policies(()), "Ada"), 0))
                tables.save_record(record(revision=1), policies=0)

        with pytest.raises(LookLost):
            look()
        assert stores.tables().record(table_id()) is None

    def test_a_look_that_was_lost_writes_nothing_more(self, stores: Stores) -> None:
        """Though the revision comes to what it would have been: others wrote twice."""
        stores.tables().save_record(record())
        tables = stores.tables()

        def look() -> None:
            with tables.gathered():
                tables.apply_inventory(replace(self.UPDATE, record=record(revision=1)))
                elsewhere(lambda: stores.tables().save_record(record(snapshot_id=8, revision=1)))
                with pytest.raises(LookLost):
                    stores.tables().record(table_id())
                tables.save_record(record(snapshot_id=9, revision=2))

        with pytest.raises(LookLost):
            look()
        assert not_none(stores.tables().record(table_id())).snapshot_id == 8

    def test_what_was_said_before_an_error_is_kept(self, stores: Stores) -> None:
        tables = stores.tables()

        def look() -> None:
            with tables.gathered():
                tables.apply_inventory(self.UPDATE)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            look()
        assert stores.tables().record(table_id()) == record()

    def test_a_table_of_a_name_that_another_had_takes_its_place(self, stores: Stores) -> None:
        stores.tables().save_record(record(2, name=record().name))
        tables = stores.tables()
        with tables.gathered():
            tables.apply_inventory(self.UPDATE)
            tables.save_record(record(revision=1), policies=0)
        assert stores.tables().record_by_name(record().name) == record()
        assert not_none(stores.tables().record(table_id(2))).dropped_at == record().observed_at


def elsewhere(does: Callable[[], Found]) -> Found:
    """Done by another thread."""
    with ThreadPoolExecutor(1) as other:
        return other.submit(does).result()
