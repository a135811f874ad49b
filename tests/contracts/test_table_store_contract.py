"""What every table store must do, sentence by sentence of the port."""

from dataclasses import replace

import pytest

from icewright.adapters.memory.clock import ManualClock
from icewright.domain.actions import ActionKind
from icewright.domain.errors import Conflict, NotFound
from icewright.domain.events import CommitEvent
from icewright.domain.files import Partition
from icewright.domain.inventory import PartitionStatistics
from icewright.domain.layouts import Level, Run
from icewright.domain.names import TableName
from icewright.domain.observation import WorkerAccess
from icewright.domain.plans import Reason
from icewright.domain.storage import AccessRecord
from icewright.domain.tables import Operation
from icewright.ports.store import (
    ACCESS_KEPT_MS,
    EVENTS_KEPT_MS,
    OPTIMIZERS_KEPT_MS,
    PLANS_KEPT,
    InventoryUpdate,
    OptimizerRecord,
    TableStore,
    WaitingPlan,
)
from tests.contracts.samples import HOSTILE_PARTS, REASON, hello, manifest, new_task, plan, record, statistics, table_id
from tests.contracts.stores import Stores

P1, P2, P3 = Partition(0, '["a"]'), Partition(0, '["b"]'), Partition(1, '["a"]')


@pytest.fixture
def store(stores: Stores) -> TableStore:
    return stores.tables()


class TestRecords:
    def test_what_was_saved_is_known_by_id_and_by_name(self, stores: Stores) -> None:
        saved = record(problem=REASON, plan_id="plan-1", snapshot_id=-(2**63))
        stores.tables().save_record(saved)
        assert stores.tables().record(saved.table_id) == saved
        assert stores.tables().record_by_name(saved.name) == saved

    def test_none_for_what_is_not_known(self, store: TableStore) -> None:
        assert store.record(table_id(9)) is None
        assert store.record_by_name(TableName("lake", ("ns",), "t9")) is None

    def test_saving_again_replaces(self, store: TableStore) -> None:
        store.save_record(record(problem=REASON, commit_interval_ms=5, snapshot_id=4))
        newer = record(observed_at=2_000, commit_interval_ms=None, snapshot_id=None)
        store.save_record(newer)
        assert store.record(newer.table_id) == newer
        assert store.records(limit=9) == [newer]

    def test_another_table_under_the_name_drops_the_first(self, store: TableStore) -> None:
        first, second = record(1), replace(record(2, observed_at=7_000), name=record(1).name)
        store.save_record(first)
        store.save_record(second)
        assert store.record(first.table_id) == replace(first, dropped_at=7_000)
        assert store.record_by_name(first.name) == second
        assert store.records(limit=9) == [second]

    def test_a_dropped_table_takes_no_name_away(self, store: TableStore) -> None:
        present, gone = record(1), replace(record(2, dropped_at=5), name=record(1).name)
        store.save_record(present)
        store.save_record(gone)
        assert store.record_by_name(present.name) == present
        assert store.record(gone.table_id) == gone

    def test_a_renamed_table_is_found_by_its_new_name_alone(self, store: TableStore) -> None:
        store.save_record(record(1))
        renamed = replace(record(1), name=TableName("lake", ("ns",), "renamed"))
        store.save_record(renamed)
        assert store.record_by_name(renamed.name) == renamed
        assert store.record_by_name(record(1).name) is None

    def test_names_are_told_apart_part_by_part(self, store: TableStore) -> None:
        one = replace(record(1), name=TableName("lake", ("a", "b"), "c"))
        other = replace(record(2), name=TableName("lake", ("a.b",), "c"))
        store.save_record(one)
        store.save_record(other)
        assert store.record_by_name(one.name) == one
        assert store.record_by_name(other.name) == other

    @pytest.mark.parametrize("part", HOSTILE_PARTS)
    def test_names_of_strangers_survive(self, stores: Stores, part: str) -> None:
        saved = replace(record(), name=TableName("lake", (part, "ns"), part), problem=Reason(part, part))
        stores.tables().save_record(saved)
        assert stores.tables().record_by_name(saved.name) == saved
        assert stores.tables().records(limit=9) == [saved]

    def test_pages_by_id_without_the_dropped(self, store: TableStore) -> None:
        saved = [record(number) for number in range(1, 6)]
        other = replace(record(9), table_id=table_id(1, "another"), name=TableName("another", ("ns",), "t"))
        for each in (*reversed(saved), other, record(6, dropped_at=1)):
            store.save_record(each)
        assert store.records(limit=3) == [other, *saved[:2]]
        assert store.records(limit=9, after=saved[1].table_id) == saved[2:]
        assert store.records(limit=9, after=other.table_id) == saved
        assert store.records(catalog="lake", limit=9) == saved
        assert store.records(catalog="another", limit=9) == [other]

    def test_due_longest_overdue_first(self, store: TableStore) -> None:
        looks = {1: 300, 2: 100, 3: 200, 4: 201}
        for number, next_look_at in looks.items():
            store.save_record(record(number, next_look_at=next_look_at))
        store.save_record(record(5, next_look_at=1, dropped_at=1))
        assert [each.table_id for each in store.due(200, 9)] == [table_id(2), table_id(3)]
        assert [each.table_id for each in store.due(999, 3)] == [table_id(2), table_id(3), table_id(4)]


class TestInventory:
    def test_moves_forward_with_the_record(self, stores: Stores) -> None:
        stores.tables().apply_inventory(
            InventoryUpdate(record(), [manifest(1, P1), manifest(2, P1, P2)], [], [statistics(P2), statistics(P1)], [])
        )
        newer = record(snapshot_id=8, observed_at=5_000)
        stores.tables().apply_inventory(
            InventoryUpdate(newer, [manifest(3, P3)], [manifest(1).key], [statistics(P3), statistics(P2, 9)], [P1])
        )
        store = stores.tables()
        assert store.record(newer.table_id) == newer
        assert store.manifest_keys(table_id()) == [manifest(2).key, manifest(3).key]
        assert store.partitions(table_id()) == [statistics(P2, 9), statistics(P3)]
        found = sorted(store.manifest_summaries(table_id()), key=lambda summary: summary.key)
        assert found == [manifest(2, P1, P2), manifest(3, P3)]

    def test_is_empty_for_an_unknown_table(self, store: TableStore) -> None:
        assert store.manifest_keys(table_id()) == []
        assert list(store.manifest_summaries(table_id())) == []
        assert store.partitions(table_id()) == []

    def test_again_is_harmless(self, store: TableStore) -> None:
        update = InventoryUpdate(record(), [manifest(1, P1)], [manifest(7).key], [statistics(P1)], [P3])
        store.apply_inventory(update)
        store.apply_inventory(update)
        assert list(store.manifest_summaries(table_id())) == [manifest(1, P1)]
        assert store.partitions(table_id()) == [statistics(P1)]

    def test_tables_do_not_touch_each_other(self, store: TableStore) -> None:
        for number in (1, 2):
            store.apply_inventory(InventoryUpdate(record(number), [manifest(1, P1)], [], [statistics(P1)], []))
        store.apply_inventory(InventoryUpdate(record(1), [], [manifest(1).key], [], [P1]))
        assert store.manifest_keys(table_id(1)) == []
        assert store.manifest_keys(table_id(2)) == [manifest(1).key]
        assert store.partitions(table_id(2)) == [statistics(P1)]

    def test_runs_come_and_go_with_the_inventory(self, stores: Stores) -> None:
        assert stores.tables().runs(table_id()) == {}
        first, second = Run(Level.LEVEL_1, "hilbert(3,7)", 5), Run(Level.LEVEL_2, "sort(2 desc)", 2**62)
        update = InventoryUpdate(record(), [], [], [], [], {-(2**63): first, 7: first})
        stores.tables().apply_inventory(update)
        stores.tables().apply_inventory(replace(update, record=record(2)))
        update = InventoryUpdate(record(), [], [], [], [], {7: second, 2**63 - 1: second}, [-(2**63), 99])
        stores.tables().apply_inventory(update)
        stores.tables().apply_inventory(update)
        assert stores.tables().runs(table_id()) == {7: second, 2**63 - 1: second}
        assert stores.tables().runs(table_id(2)) == {-(2**63): first, 7: first}

    def test_a_reused_path_is_another_manifest(self, store: TableStore) -> None:
        first = manifest(1, P1)
        second = replace(first, key=replace(first.key, length_bytes=9))
        third = replace(first, key=replace(first.key, added_snapshot_id=9))
        store.apply_inventory(InventoryUpdate(record(), [first, second, third], [], [], []))
        store.apply_inventory(InventoryUpdate(record(), [], [second.key], [], []))
        assert store.manifest_keys(table_id()) == [first.key, third.key]

    def test_summaries_that_have_one_of_some_partitions(self, store: TableStore) -> None:
        summaries = [manifest(1, P1), manifest(2, P1, P2), manifest(3, P3), manifest(4)]
        store.apply_inventory(InventoryUpdate(record(), summaries, [], [], []))

        def numbers(*wanted: Partition) -> list[str]:
            return sorted(s.key.path for s in store.manifest_summaries(table_id(), frozenset(wanted)))

        assert numbers(P2) == ["s3://b/m2.avro"]
        assert numbers(P1, P3) == ["s3://b/m1.avro", "s3://b/m2.avro", "s3://b/m3.avro"]
        assert numbers() == []

    def test_summaries_stand_still_while_the_inventory_moves(self, store: TableStore) -> None:
        many = [manifest(number, P1) for number in range(40)]
        store.apply_inventory(InventoryUpdate(record(), many, [], [], []))
        reader = iter(store.manifest_summaries(table_id()))
        seen = [next(reader)]
        store.apply_inventory(InventoryUpdate(record(), [manifest(99)], [each.key for each in many], [], []))
        seen.extend(reader)
        assert sorted(each.key for each in seen) == sorted(each.key for each in many)

    def test_pages_of_partitions(self, store: TableStore) -> None:
        odd = [Partition(0, "[]"), Partition(0, '["\N{PILE OF POO}"]'), Partition(2, '["%s\'"]'), Partition(10, "[1]")]
        expected = [statistics(each) for each in sorted([P1, P2, P3, *odd])]
        store.apply_inventory(InventoryUpdate(record(), [], [], list(reversed(expected)), []))
        assert store.partitions(table_id()) == expected
        pages: list[PartitionStatistics] = []
        after: Partition | None = None
        while page := store.partitions(table_id(), limit=2, after=after):
            pages.extend(page)
            after = page[-1].partition
        assert pages == expected


class TestPlans:
    def test_a_plan_becomes_the_tables_present_one(self, stores: Stores) -> None:
        stores.tables().save_record(record())
        stores.tables().save_plan(plan("plan-1"))
        assert stores.tables().plan("plan-1") == plan("plan-1")
        assert stores.tables().record(table_id()) == record(plan_id="plan-1")

    def test_a_plan_of_an_unknown_table_is_kept(self, store: TableStore) -> None:
        store.save_plan(plan("plan-1"))
        assert store.plan("plan-1") == plan("plan-1")
        assert store.record(table_id()) is None

    def test_newest_first(self, store: TableStore) -> None:
        for plan_id, planned_at in (("plan-b", 2), ("plan-c", 1), ("plan-a", 2)):
            store.save_plan(plan(plan_id, planned_at=planned_at))
        store.save_plan(plan("plan-z", table=2))
        assert [each.plan_id for each in store.plans(table_id(), limit=9)] == ["plan-b", "plan-a", "plan-c"]
        assert [each.plan_id for each in store.plans(table_id(), limit=1)] == ["plan-b"]

    def test_a_plan_never_changes(self, store: TableStore) -> None:
        store.save_plan(plan("plan-1"))
        store.save_plan(plan("plan-1"))
        with pytest.raises(Conflict):
            store.save_plan(plan("plan-1", planned_at=9))
        assert store.plan("plan-1") == plan("plan-1")

    def test_an_unknown_plan_is_not_found(self, store: TableStore) -> None:
        with pytest.raises(NotFound):
            store.plan("plan-9")


class TestInbox:
    EVENT = CommitEvent(TableName("lake", ("ns",), "t"), 5, "uuid", Operation.APPEND, 3, 30)

    def test_keeps_an_event_once(self, stores: Stores, clock: ManualClock) -> None:
        assert stores.tables().receive(self.EVENT)
        received_at = clock.now()
        clock.advance(5)
        assert not stores.tables().receive(replace(self.EVENT, operation=None, added_records=99))
        (stored,) = stores.tables().inbox(9)
        assert (stored.event, stored.received_at, stored.done_at) == (self.EVENT, received_at, None)

    def test_other_tables_and_snapshots_are_other_events(self, store: TableStore) -> None:
        assert store.receive(self.EVENT)
        assert store.receive(replace(self.EVENT, snapshot_id=6))
        assert store.receive(replace(self.EVENT, table_name=TableName("lake", ("ns",), "t2")))
        assert [each.event.snapshot_id for each in store.inbox(9)] == [5, 6, 5]

    def test_oldest_first_until_done(self, store: TableStore) -> None:
        for snapshot_id in (9, 8, 7, 6):
            store.receive(replace(self.EVENT, snapshot_id=snapshot_id))
        first, second, *_ = store.inbox(9)
        store.done([first.event_id, second.event_id, 12345])
        store.done([])
        assert [each.event.snapshot_id for each in store.inbox(9)] == [7, 6]
        assert [each.event.snapshot_id for each in store.inbox(1)] == [7]

    def test_a_repeated_event_stays_done(self, store: TableStore) -> None:
        store.receive(self.EVENT)
        store.done([store.inbox(1)[0].event_id])
        assert not store.receive(self.EVENT)
        assert store.inbox(9) == []

    @pytest.mark.parametrize("part", HOSTILE_PARTS)
    def test_names_of_strangers_survive(self, stores: Stores, part: str) -> None:
        event = replace(self.EVENT, table_name=TableName(part, (part,), part), table_uuid=part)
        assert stores.tables().receive(event)
        assert not stores.tables().receive(event)
        assert stores.tables().inbox(1)[0].event == event


class TestPruning:
    def test_events_are_forgotten_a_day_after_they_were_worked_on(self, store: TableStore, clock: ManualClock) -> None:
        for snapshot_id in (1, 2, 3):
            store.receive(replace(TestInbox.EVENT, snapshot_id=snapshot_id))
        first, second, third = store.inbox(9)
        store.done([first.event_id])
        clock.advance(1)
        store.done([second.event_id])
        store.prune(clock.now() + EVENTS_KEPT_MS)
        assert [store.receive(each.event) for each in (first, second, third)] == [True, False, False]
        waiting = store.inbox(9)
        assert [each.event for each in waiting] == [third.event, first.event]
        assert waiting[1].event_id not in {first.event_id, second.event_id, third.event_id}

    def test_plans_that_nothing_needs_are_deleted(self, stores: Stores, clock: ManualClock) -> None:
        store = stores.tables()
        store.save_record(record())
        numbers = range(1, PLANS_KEPT + 6)
        for number in numbers:
            store.save_plan(plan(f"plan-{number:02}", planned_at=number))
        store.save_plan(plan("plan-of-another-table", table=2, planned_at=0))
        store.save_record(record(plan_id="plan-03"))
        stores.tasks().enqueue(new_task("task-1", plan_id="plan-02"))
        store.prune(clock.now())
        kept = [f"plan-{number:02}" for number in numbers if number in (2, 3) or number > 5]
        assert [each.plan_id for each in store.plans(table_id(), limit=99)] == kept[::-1]
        assert store.plan("plan-of-another-table")
        with pytest.raises(NotFound):
            store.plan("plan-01")

    def test_one_plan_of_a_kind_waits_for_a_table_and_is_kept(self, stores: Stores, clock: ManualClock) -> None:
        expiry, removal = ActionKind.EXPIRE_SNAPSHOTS, ActionKind.REMOVE_ORPHAN_FILES
        first = WaitingPlan("plan-00", table_id(), record().name, expiry, REASON, 5)
        other = replace(first, plan_id="plan-01", kind=removal)
        elsewhere = replace(first, plan_id="plan-02", table_id=table_id(2), table_name=record(2).name)
        for number in range(PLANS_KEPT + 3):
            stores.tables().save_plan(plan(f"plan-{number:02}", planned_at=number))
        for number in (1, 2):
            stores.tables().save_record(record(number))
        for each in (first, other, elsewhere):
            stores.tables().wait(each)
        stores.tables().prune(clock.now())
        assert stores.tables().plan("plan-00")
        assert stores.tables().waiting(limit=9) == [first, other, elsewhere]
        assert stores.tables().waits(table_id(), expiry) == first
        assert stores.tables().waits(table_id(2), removal) is None
        renewed = replace(first, plan_id="plan-09", since=6)
        stores.tables().wait(renewed)
        assert stores.tables().waits(table_id(), expiry) == renewed
        for _ in range(2):
            stores.tables().waits_no_more(table_id(), expiry)
        assert stores.tables().waits(table_id(), expiry) is None
        assert stores.tables().waiting(limit=9) == [other, elsewhere]

    def test_plans_of_tasks_that_ended_are_kept(self, stores: Stores, clock: ManualClock) -> None:
        for number in range(PLANS_KEPT + 1):
            stores.tables().save_plan(plan(f"plan-{number:02}", planned_at=number))
        stores.tasks().enqueue(new_task("task-1", plan_id="plan-00"))
        stores.tasks().request_cancel("task-1", REASON)
        stores.tables().prune(clock.now())
        assert len(stores.tables().plans(table_id(), limit=99)) == PLANS_KEPT + 1

    def test_optimizers_that_were_not_heard_of_for_long_are_forgotten(
        self, store: TableStore, clock: ManualClock
    ) -> None:
        store.optimizer_seen(hello("optimizer-1"))
        clock.advance(1)
        store.optimizer_seen(hello("optimizer-2"))
        clock.advance(OPTIMIZERS_KEPT_MS)
        store.prune(clock.now())
        assert [seen.hello.optimizer_id for seen in store.optimizers()] == ["optimizer-2"]


class TestAccess:
    def test_the_latest_answer_for_a_storage_counts(self, store: TableStore) -> None:
        refused = AccessRecord("lake", "s3://bucket/t/data", WorkerAccess.REFUSED, "not let in", "optimizer-1", 5)
        store.save_access(refused)
        assert store.access("lake", "s3://bucket/t/data") == refused
        proved = replace(refused, access=WorkerAccess.PROVED, detail="", optimizer_id="optimizer-2", decided_at=7)
        store.save_access(proved)
        assert store.access("lake", "s3://bucket/t/data") == proved

    def test_nothing_is_known_of_other_storages(self, store: TableStore) -> None:
        store.save_access(AccessRecord("lake", "s3://bucket/t/data", WorkerAccess.PROVED, "", "optimizer-1", 5))
        assert store.access("other", "s3://bucket/t/data") is None
        assert store.access("lake", "s3://bucket/t/data/") is None

    def test_hostile_roots_are_kept_as_they_are(self, store: TableStore) -> None:
        records = [
            AccessRecord("lake", f"s3://bucket/{part}", WorkerAccess.REFUSED, part, "optimizer-1", 5)
            for part in HOSTILE_PARTS
        ]
        for access in records:
            store.save_access(access)
        assert [store.access("lake", access.root) for access in records] == records

    def test_what_was_found_out_long_ago_is_pruned(self, store: TableStore, clock: ManualClock) -> None:
        now = clock.now()
        old = AccessRecord("lake", "s3://bucket/old", WorkerAccess.PROVED, "", "optimizer-1", now - ACCESS_KEPT_MS - 1)
        store.save_access(old)
        store.save_access(replace(old, root="s3://bucket/new", decided_at=now - ACCESS_KEPT_MS))
        store.prune(now)
        assert store.access("lake", "s3://bucket/old") is None
        assert store.access("lake", "s3://bucket/new") is not None


class TestOptimizers:
    def test_the_one_seen_last_first(self, store: TableStore, clock: ManualClock) -> None:
        started_at = clock.now()
        for optimizer_id in ("b", "a"):
            store.optimizer_seen(hello(optimizer_id))
            clock.advance(10)
        store.optimizer_seen(hello("b", slots=2))
        assert store.optimizers() == [
            OptimizerRecord(hello("b", slots=2), started_at + 20),
            OptimizerRecord(hello("a"), started_at + 10),
        ]
