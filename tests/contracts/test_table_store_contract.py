"""What every table store must do, sentence by sentence of the port."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from icewright.core.errors import Conflict, InboxFull, InboxShareFull, LookLost, NotFound
from icewright.model.actions.actions import ActionKind
from icewright.model.events.events import (
    Channel,
    ChannelFigures,
    CommitEvent,
    EventFigures,
    EventState,
    Lag,
    ReportedCommits,
    Reporting,
    UnreportedTable,
)
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.iceberg.layouts import Level, Run
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Operation
from icewright.model.plans.approvals import REFUSED_MS, Approval, ApprovedPlan, Refusal
from icewright.model.plans.observation import WorkerAccess
from icewright.model.plans.plans import Reason
from icewright.model.work.figures import SeriesPoint
from icewright.model.work.retention import RETENTION, Retention, RowKind
from icewright.model.work.storage import AccessRecord, ProbeRequest
from icewright.model.work.tasks import Outcome, TaskState
from icewright.model.work.why import Considered
from icewright.ports.findings import EXCLUSION_KEPT_MS, PROBES_KEPT_MS, ExecutorExclusion, Question
from icewright.ports.inbox import EventFilter
from icewright.ports.store import (
    AT_ONCE,
    Change,
    InventoryUpdate,
    OptimizerRecord,
    PlanPlace,
    TableRecord,
    TableStore,
    WaitingPlan,
)
from tests.contracts.samples import HOSTILE_PARTS, REASON, hello, manifest, new_task, plan, record, statistics, table_id
from tests.contracts.stores import Stores
from tests.contracts.test_deletion_store_contract import remove
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none

RUN = Run(Level.LEVEL_1, "sort(2)", 5)
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

    def test_properties_are_kept_whatever_is_in_them(self, stores: Stores) -> None:
        saved = record(properties={"icewright.mode": "auto", "\x00\ud800": "it's"})
        stores.tables().save_record(saved)
        assert stores.tables().record(saved.table_id) == saved

    def test_what_was_said_of_upkeep_is_kept(self, stores: Stores) -> None:
        said = Considered(
            ActionKind.EXPIRE_SNAPSHOTS, Reason("nothing-expires", "it's \U0001f9ca", {"until": 2**62}), 5
        )
        saved = record(considered=(said, replace(said, kind=ActionKind.COMPUTE_STATISTICS)))
        stores.tables().save_record(saved)
        assert stores.tables().record(saved.table_id) == saved
        stores.tables().save_record(replace(saved, considered=(), revision=1))
        assert stores.tables().record(saved.table_id) == replace(saved, considered=())

    def test_looks_are_brought_forward_and_never_put_off(self, store: TableStore) -> None:
        for number, at in ((1, 5_000), (2, 1_000), (3, 5_000)):
            store.save_record(record(number, next_look_at=at))
        store.look_by([table_id(1), table_id(2), table_id(9)], 2_000)
        store.look_by([], 0)
        assert [found.next_look_at for found in store.records(limit=9)] == [2_000, 1_000, 5_000]

    def test_q2_a_look_that_was_brought_forward_is_not_put_off_by_who_read_before(self, store: TableStore) -> None:
        store.save_record(record(1, next_look_at=5_000))
        read = not_none(store.record(table_id(1)))
        store.look_by([table_id(1)], 2_000)
        with pytest.raises(LookLost):
            store.save_record(replace(read, next_look_at=9_000))
        (found,) = store.records(limit=9)
        assert found.next_look_at == 2_000

    def test_none_for_what_is_not_known(self, store: TableStore) -> None:
        assert store.record(table_id(9)) is None
        assert store.record_by_name(TableName("lake", ("ns",), "t9")) is None

    def test_of_many_names_those_are_told_that_are_not_known(self, store: TableStore) -> None:
        names = [record(number).name for number in range(1, 6)]
        for number in (1, 2, 3):
            store.save_record(record(number, dropped_at=5 if number == 2 else None))
        assert store.unknown("lake", names) == {names[1], names[3], names[4]}
        assert store.unknown("lake", []) == frozenset()
        elsewhere = replace(names[0], catalog="other")
        assert store.unknown("other", [elsewhere]) == {elsewhere}

    def test_saving_again_replaces(self, store: TableStore) -> None:
        store.save_record(record(problem=REASON, commit_interval_ms=5, snapshot_id=4))
        newer = record(observed_at=2_000, commit_interval_ms=None, snapshot_id=None, revision=1)
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
        renamed = replace(record(1, revision=1), name=TableName("lake", ("ns",), "renamed"))
        store.save_record(renamed)
        assert store.record_by_name(renamed.name) == renamed
        assert store.record_by_name(record(1).name) is None
        assert store.unknown("lake", [renamed.name, record(1).name]) == {record(1).name}

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


class TestLooksOfSeveralServers:
    """What a writer moves from is compared in the store, whichever process it is in (decision 0040)."""

    def test_q1_a_record_that_somebody_wrote_since_is_not_replaced(self, stores: Stores) -> None:
        stores.tables().save_record(record())
        read = not_none(stores.tables().record(table_id()))
        stores.tables().save_record(replace(read, snapshot_id=8))
        for late in (replace(read, snapshot_id=9), record(snapshot_id=9)):
            with pytest.raises(LookLost):
                stores.tables().save_record(late)
        with pytest.raises(LookLost):  # nor one of a table that nobody knows
            stores.tables().save_record(record(2, revision=1))
        assert stores.tables().record(table_id()) == record(snapshot_id=8)
        assert stores.tables().record(table_id(2)) is None

    def test_q1_a_look_that_lost_changes_nothing(self, stores: Stores) -> None:
        stores.tables().apply_inventory(InventoryUpdate(record(), [manifest(1, P1)], [], [statistics(P1)], []))
        read = not_none(stores.tables().record(table_id()))
        first = InventoryUpdate(read, [manifest(2, P2)], [manifest(1).key], [statistics(P2)], [P1], {7: RUN})
        stores.tables().apply_inventory(first)
        late = InventoryUpdate(read, [manifest(3, P3)], [manifest(1).key], [statistics(P3)], [P1], {8: RUN})
        with pytest.raises(LookLost):
            stores.tables().apply_inventory(late)
        assert stores.tables().manifest_keys(table_id()) == [manifest(2).key]
        assert stores.tables().partitions(table_id()) == [statistics(P2)]
        assert stores.tables().runs(table_id()) == {7: RUN}

    def test_q1_losing_takes_no_name_away(self, stores: Stores) -> None:
        stores.tables().save_record(record(1))
        stores.tables().save_record(record(2))
        with pytest.raises(LookLost):
            stores.tables().save_record(replace(record(2), name=record(1).name))
        assert stores.tables().record_by_name(record(1).name) == record(1)

    def test_a_plan_and_a_new_name_are_writes_as_well(self, stores: Stores) -> None:
        stores.tables().save_record(record(1))
        read = not_none(stores.tables().record(table_id(1)))
        stores.tables().save_plan(plan("plan-1"))
        with pytest.raises(LookLost):
            stores.tables().save_record(read)
        planned = stores.tables().record(table_id(1))
        assert planned == replace(read, plan_id="plan-1")
        stores.tables().save_record(replace(record(2), name=read.name))  # which drops the first
        with pytest.raises(LookLost):
            stores.tables().save_record(planned)

    def test_only_one_of_many_at_once_wins(self, stores: Stores) -> None:
        stores.tables().save_record(record())
        read = not_none(stores.tables().record(table_id()))
        opened = [stores.tables() for _ in range(6)]

        def write(number: int) -> bool:
            try:
                opened[number].save_record(replace(read, snapshot_id=number))
            except LookLost:
                return False
            return True

        with ThreadPoolExecutor(len(opened)) as pool:
            assert sum(pool.map(write, range(len(opened)))) == 1

    def test_each_wish_for_a_look_is_told_from_the_one_before(self, stores: Stores) -> None:
        store, name = stores.tables(), record().name
        store.look_at_once(name)  # harmless: there is no such table
        for number in (1, 2, 3):
            store.save_record(record(number, next_look_at=500 * number, dropped_at=7 if number == 3 else None))
        stores.tables().look_at_once(name)
        stores.tables().look_at_once(record(3).name)
        assert [one.table_id for one in store.due(AT_ONCE, 9)] == [table_id(1)]
        first = store.record(table_id(1))
        stores.tables().look_at_once(name)
        second = store.record(table_id(1))
        assert first is not None
        assert not_none(second).next_look_at < first.next_look_at <= AT_ONCE
        with pytest.raises(LookLost):  # it would be forgotten
            store.save_record(replace(first, next_look_at=900))


class TestFindings:
    """What optimizers found out, and what they are asked, by whichever server they reach."""

    PROBE = ProbeRequest(table_id(), record().name, "s3://bucket/t")

    def test_what_files_are_not_is_known_to_all(self, stores: Stores) -> None:
        stores.tables().note_exclusion(table_id(), "not-sorted", ExecutorExclusion(5, "once"))
        stores.tables().note_exclusion(table_id(), "not-sorted", ExecutorExclusion(6, HOSTILE_PARTS[1]))
        stores.tables().note_exclusion(table_id(), "not-stitchable", ExecutorExclusion(7, "two writers"))
        found = {
            "not-sorted": ExecutorExclusion(6, HOSTILE_PARTS[1]),
            "not-stitchable": ExecutorExclusion(7, "two writers"),
        }
        assert stores.tables().exclusions(table_id()) == found
        assert stores.tables().exclusions(table_id(2)) == {}
        stores.tables().prune(6 + EXCLUSION_KEPT_MS)
        assert stores.tables().exclusions(table_id()) == found
        stores.tables().prune(7 + EXCLUSION_KEPT_MS)
        assert stores.tables().exclusions(table_id()) == {"not-stitchable": ExecutorExclusion(7, "two writers")}

    def test_a_question_is_given_to_one_optimizer_until_it_is_silent(self, stores: Stores) -> None:
        def taken(optimizer_id: str, now: int, *catalogs: str) -> tuple[ProbeRequest, ...]:
            return stores.tables().take_probes(
                optimizer_id, frozenset(catalogs or ("lake",)), limit=9, now=now, again_ms=100
            )

        stores.tables().want_probe(self.PROBE, 10)
        assert stores.tables().probe("lake", self.PROBE.root) == Question(self.PROBE)
        assert taken("o1", 20, "another") == ()
        assert taken("o1", 20) == (self.PROBE,)
        stores.tables().want_probe(self.PROBE, 30)  # the next look says it again
        assert taken("o2", 119) == ()
        assert stores.tables().probe("lake", self.PROBE.root) == Question(self.PROBE, "o1", 20)
        assert taken("o2", 120) == (self.PROBE,)
        assert taken("o3", 50) == (self.PROBE,)  # the clock was set back: what was asked later than now says nothing
        stores.tables().want_no_probe("lake", self.PROBE.root)
        assert stores.tables().probe("lake", self.PROBE.root) is None
        assert taken("o3", 9_000) == ()

    def test_questions_come_in_turn_and_are_forgotten_when_nobody_repeats_them(self, stores: Stores) -> None:
        store = stores.tables()
        for number, wanted_at in ((1, 30), (2, 10), (3, 20)):
            store.want_probe(replace(self.PROBE, root=f"s3://bucket/{number}"), wanted_at)
        given = store.take_probes("o1", frozenset({"lake"}), limit=2, now=40, again_ms=100)
        assert [one.root for one in given] == ["s3://bucket/2", "s3://bucket/3"]
        store.prune(11 + PROBES_KEPT_MS)
        assert store.probe("lake", "s3://bucket/2") is None
        assert store.probe("lake", "s3://bucket/1") is not None


class TestInventory:
    def test_moves_forward_with_the_record(self, stores: Stores) -> None:
        stores.tables().apply_inventory(
            InventoryUpdate(record(), [manifest(1, P1), manifest(2, P1, P2)], [], [statistics(P2), statistics(P1)], [])
        )
        newer = record(snapshot_id=8, observed_at=5_000, revision=1)
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

    def test_removing_what_is_not_there_is_harmless(self, store: TableStore) -> None:
        update = InventoryUpdate(record(), [manifest(1, P1)], [manifest(7).key], [statistics(P1)], [P3])
        store.apply_inventory(update)
        store.apply_inventory(replace(update, record=record(revision=1)))
        assert list(store.manifest_summaries(table_id())) == [manifest(1, P1)]
        assert store.partitions(table_id()) == [statistics(P1)]

    def test_tables_do_not_touch_each_other(self, store: TableStore) -> None:
        for number in (1, 2):
            store.apply_inventory(InventoryUpdate(record(number), [manifest(1, P1)], [], [statistics(P1)], []))
        store.apply_inventory(InventoryUpdate(record(1, revision=1), [], [manifest(1).key], [], [P1]))
        assert store.manifest_keys(table_id(1)) == []
        assert store.manifest_keys(table_id(2)) == [manifest(1).key]
        assert store.partitions(table_id(2)) == [statistics(P1)]

    def test_runs_come_and_go_with_the_inventory(self, stores: Stores) -> None:
        assert stores.tables().runs(table_id()) == {}
        first, second = Run(Level.LEVEL_1, "hilbert(3,7)", 5), Run(Level.LEVEL_2, "sort(2 desc)", 2**62)
        update = InventoryUpdate(record(), [], [], [], [], {-(2**63): first, 7: first})
        stores.tables().apply_inventory(update)
        stores.tables().apply_inventory(replace(update, record=record(2)))
        for revision in (1, 2):
            added, removed = {7: second, 2**63 - 1: second}, [-(2**63), 99]
            stores.tables().apply_inventory(InventoryUpdate(record(revision=revision), [], [], [], [], added, removed))
        assert stores.tables().runs(table_id()) == {7: second, 2**63 - 1: second}
        assert stores.tables().runs(table_id(2)) == {-(2**63): first, 7: first}

    def test_a_reused_path_is_another_manifest(self, store: TableStore) -> None:
        first = manifest(1, P1)
        second = replace(first, key=replace(first.key, length_bytes=9))
        third = replace(first, key=replace(first.key, added_snapshot_id=9))
        store.apply_inventory(InventoryUpdate(record(), [first, second, third], [], [], []))
        store.apply_inventory(InventoryUpdate(record(revision=1), [], [second.key], [], []))
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
        store.apply_inventory(InventoryUpdate(record(revision=1), [manifest(99)], [each.key for each in many], [], []))
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

    def test_page_by_page(self, store: TableStore) -> None:
        for plan_id, planned_at in (("plan-b", 2), ("plan-c", 1), ("plan-a", 2), ("plan-d", 3)):
            store.save_plan(plan(plan_id, planned_at=planned_at))
        whole = store.plans(table_id(), limit=9)
        assert [each.plan_id for each in whole] == ["plan-d", "plan-b", "plan-a", "plan-c"]
        for number, each in enumerate(whole, 1):
            place = PlanPlace(each.planned_at, each.plan_id)
            for limit in (1, 2, 9):
                assert list(store.plans(table_id(), limit=limit, before=place)) == list(whole[number:])[:limit]
        assert list(store.plans(table_id(), limit=9, before=PlanPlace(2, "plan-aa"))) == list(whole[2:])

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

    def test_many_at_once_and_the_same_snapshot_by_another_channel_is_the_same(self, stores: Stores) -> None:
        many = [replace(self.EVENT, snapshot_id=number) for number in range(1_000)]
        assert stores.tables().receive(*many[:2], many[0], channel=Channel.KAFKA) == 2
        assert stores.tables().receive(*many, channel=Channel.HTTP) == 998
        assert stores.tables().receive() == 0
        kept = stores.tables().inbox(2_000)
        assert [each.event for each in kept] == many
        assert [each.channel for each in kept[:3]] == [Channel.KAFKA, Channel.KAFKA, Channel.HTTP]

    def test_events_without_a_snapshot_are_all_kept(self, store: TableStore) -> None:
        event = CommitEvent(self.EVENT.table_name)
        assert store.receive(event, event, channel=Channel.HIVE) == 2
        assert store.receive(event) == 1
        assert [each.event for each in store.inbox(9)] == [event] * 3

    def test_those_of_known_tables_and_of_others(self, store: TableStore) -> None:
        known, dropped = record(1), record(2, dropped_at=9)
        store.save_record(known)
        store.save_record(dropped)
        names = [dropped.name, known.name, TableName("lake", ("ns",), "never-seen")]
        for name in names:
            store.receive(replace(self.EVENT, table_name=name))
        assert store.reported_tables(9, known=True) == [known.name]
        assert store.reported_tables(9, known=False) == [names[0], names[2]]
        assert store.reported_tables(1, known=False) == [names[0]]
        assert store.reported_tables(9, known=False, without={"lake"}) == []
        assert len(store.inbox(9)) == 3

    def test_what_came_in_newest_first_page_by_page_by_state_channel_and_table(self, store: TableStore) -> None:
        other = TableName("lake", ("ns",), "other")
        store.receive(*(replace(self.EVENT, snapshot_id=number) for number in range(5)), channel=Channel.KAFKA)
        store.receive(CommitEvent(other), replace(self.EVENT, snapshot_id=9))
        first, second, *_ = store.inbox(9)
        store.done([first.event_id, second.event_id], {second.event_id: 3})
        whole = list(store.received(EventFilter(), limit=99))
        assert [one.event.snapshot_id for one in whole] == [9, None, 4, 3, 2, 1, 0]
        assert {one.event_id: one for one in whole if one.done_at is None} == {
            one.event_id: one for one in store.inbox(9)
        }
        assert whole[-2].committed_at == 3
        for only, wanted in (
            (EventFilter(), whole),
            (EventFilter(EventState.WAITING), whole[:5]),
            (EventFilter(EventState.DONE), whole[5:]),
            (EventFilter(channel=Channel.HTTP), whole[:2]),
            (EventFilter(table_name=other), whole[1:2]),
            (EventFilter(EventState.DONE, Channel.KAFKA, self.EVENT.table_name), whole[5:]),
            (EventFilter(EventState.DONE, Channel.HTTP), []),
        ):
            assert list(store.received(only, limit=99)) == wanted
            for one in whole:
                behind = [each for each in wanted if each.event_id < one.event_id]
                assert list(store.received(only, limit=2, before=one.event_id)) == behind[:2]

    def test_looks_that_came_to_nothing_are_counted_with_why(
        self, store: TableStore, stores: Stores, clock: ManualClock
    ) -> None:
        store.receive(*(replace(self.EVENT, snapshot_id=number) for number in range(500)))
        first, second, *others = store.inbox(999)
        assert (first.tries, first.tried_at, first.trouble) == (0, None, None)
        away, moved = Reason("away", HOSTILE_PARTS[2], {"n": 1}), Reason("conflict", "it moved")
        store.tried([one.event_id for one in (first, *others)], away)
        clock.advance(7)
        store.tried([first.event_id, 99_999], moved)
        store.tried([], moved)
        tried_at = clock.now()
        told = {one.event_id: (one.tries, one.tried_at, one.trouble) for one in stores.tables().inbox(999)}
        assert told.pop(first.event_id) == (2, tried_at, moved)
        assert told.pop(second.event_id) == (0, None, None)
        assert all(one == (1, tried_at - 7, away) for one in told.values())
        store.done([first.event_id])
        store.tried([first.event_id], away)
        (done,) = store.received(EventFilter(EventState.DONE), limit=9)
        assert (done.tries, done.trouble) == (2, moved)

    def test_which_snapshots_were_told_of(self, store: TableStore, clock: ManualClock) -> None:
        store.receive(self.EVENT, channel=Channel.KAFKA)
        store.done([store.inbox(1)[0].event_id])
        name, now = self.EVENT.table_name, clock.now()
        assert store.reported_commits(name, (4, 5, 6), now) == ReportedCommits({5: Channel.KAFKA})
        assert store.reported_commits(TableName("lake", ("ns",), "other"), (5,), now) == ReportedCommits({})
        store.receive(CommitEvent(name), channel=Channel.LISTING)
        assert store.reported_commits(name, (), now) == ReportedCommits({}), "it tells that the table is there"
        store.receive(CommitEvent(name), channel=Channel.HIVE)
        assert store.reported_commits(name, (), now) == ReportedCommits({}, Channel.HIVE)
        assert store.reported_commits(name, (), now + 1) == ReportedCommits({})

    def test_figures_by_channel_and_the_tables_that_are_told_of_least(
        self, store: TableStore, clock: ManualClock
    ) -> None:
        assert store.event_figures(limit=9) == EventFigures((), 0, 0, ())
        received_at = clock.now()
        store.receive(*(replace(self.EVENT, snapshot_id=number) for number in (1, 2, 3)), channel=Channel.KAFKA)
        store.receive(CommitEvent(self.EVENT.table_name), channel=Channel.HIVE)
        clock.advance(50)
        first, second, *_ = store.inbox(9)
        store.done([first.event_id], {first.event_id: received_at - 30})
        clock.advance(100)
        store.done([second.event_id], {second.event_id: received_at + 999})  # by a clock that is ahead
        told = Reporting(0, 0, {Channel.KAFKA: 2, Channel.HTTP: 3}, sweep_only=1)
        for number, reporting in enumerate((told, replace(told, sweep_only=7), Reporting(0, 0, told.told), None)):
            store.save_record(record(number, reporting=reporting))
        store.save_record(record(9, reporting=told, dropped_at=5))
        kept = {one.table_id.uuid: one.reporting for one in store.records(limit=9)}
        assert told in kept.values()
        figures = store.event_figures(limit=9)
        kafka = ChannelFigures(Channel.KAFKA, 3, 1, received_at, Lag(2, 15, 30), Lag(2, 100, 150))
        assert figures.channels == (ChannelFigures(Channel.HIVE, 1, 1, received_at, None, None), kafka)
        assert (figures.told, figures.sweep_only) == (15, 8)
        most, least = UnreportedTable(record(1).name, 5, 7), UnreportedTable(record(0).name, 5, 1)
        assert figures.least_reported == (most, least)
        assert store.event_figures(limit=1).least_reported == (most,)

    def test_t13_a_share_is_of_one_reporter(self, stores: Stores) -> None:
        store, (a, b, c, d) = stores.tables(), [replace(self.EVENT, snapshot_id=number) for number in range(4)]
        assert store.receive(a, b, reporter="ada", share_max=2) == 2
        assert store.receive(c, reporter="bob", share_max=1) == 1
        for reporter, share_max in (("ada", 2), ("bob", 1)):
            with pytest.raises(InboxShareFull):
                store.receive(d, reporter=reporter, share_max=share_max)
        assert store.receive(d, reporter="bob", share_max=2) == 1

    def test_t13_only_so_many_wait_and_there_is_room_again_when_they_were_worked_on(self, stores: Stores) -> None:
        store, (a, b, c, d) = stores.tables(), [replace(self.EVENT, snapshot_id=number) for number in range(4)]
        assert store.receive(a, b, waiting_max=3) == 2
        assert store.receive(c, waiting_max=3) == 1
        for refused in ((d,), (a, d), (replace(self.EVENT, snapshot_id=None),)):
            with pytest.raises(InboxFull, match="3 events wait already"):
                store.receive(*refused, waiting_max=3)
        assert store.receive(a, b, waiting_max=3) == 0  # a sender that did not hear the answer
        assert [stored.event for stored in store.inbox(9)] == [a, b, c]
        store.done([store.inbox(1)[0].event_id])
        assert store.receive(d, waiting_max=3) == 1


class TestPruning:
    def test_events_are_forgotten_a_day_after_they_were_worked_on(self, store: TableStore, clock: ManualClock) -> None:
        for snapshot_id in (1, 2, 3):
            store.receive(replace(TestInbox.EVENT, snapshot_id=snapshot_id))
        first, second, third = store.inbox(9)
        store.done([first.event_id])
        clock.advance(1)
        store.done([second.event_id])
        store.prune(clock.now() + RETENTION.spans_ms[RowKind.EVENTS])
        assert [store.receive(each.event) for each in (first, second, third)] == [True, False, False]
        waiting = store.inbox(9)
        assert [each.event for each in waiting] == [third.event, first.event]
        assert waiting[1].event_id not in {first.event_id, second.event_id, third.event_id}

    def test_plans_that_nothing_needs_are_deleted(self, stores: Stores) -> None:
        store = stores.tables()
        store.save_record(record())
        numbers = range(1, RETENTION.plans + 6)
        for number in numbers:
            store.save_plan(plan(f"plan-{number:02}", planned_at=number))
        store.save_plan(plan("plan-of-another-table", table=2, planned_at=0))
        known = not_none(store.record(table_id()))
        store.save_record(replace(known, plan_id="plan-03"))
        stores.tasks().enqueue(new_task("task-1", plan_id="plan-02"))
        store.prune_plans(RETENTION.plans, 99)
        kept = [f"plan-{number:02}" for number in numbers if number in (2, 3) or number > 5]
        assert [each.plan_id for each in store.plans(table_id(), limit=99)] == kept[::-1]
        assert store.plan("plan-of-another-table")
        with pytest.raises(NotFound):
            store.plan("plan-01")

    def test_one_plan_of_a_kind_waits_for_a_table_and_is_kept(self, stores: Stores) -> None:
        expiry, removal = ActionKind.EXPIRE_SNAPSHOTS, ActionKind.REMOVE_ORPHAN_FILES
        first = WaitingPlan("plan-00", table_id(), record().name, expiry, REASON, 5)
        other = replace(first, plan_id="plan-01", kind=removal)
        elsewhere = replace(first, plan_id="plan-02", table_id=table_id(2), table_name=record(2).name)
        for number in range(RETENTION.plans + 3):
            stores.tables().save_plan(plan(f"plan-{number:02}", planned_at=number))
        for number in (1, 2):
            stores.tables().save_record(record(number))
        for each in (first, other, elsewhere):
            stores.tables().wait(each)
        stores.tables().prune_plans(RETENTION.plans, 99)
        assert stores.tables().plan("plan-00")
        assert stores.tables().waiting(limit=9) == [first, other, elsewhere]
        assert stores.tables().waits(table_id()) == {expiry: first, removal: other}
        assert stores.tables().waits(table_id(2)) == {expiry: elsewhere}
        renewed = replace(first, plan_id="plan-09", since=6)
        stores.tables().wait(renewed)
        assert stores.tables().waits(table_id()) == {expiry: renewed, removal: other}
        for _ in range(2):
            stores.tables().waits_no_more(table_id(), expiry)
        assert stores.tables().waits(table_id()) == {removal: other}
        assert stores.tables().waiting(limit=9) == [other, elsewhere]

    def test_a_refused_plan_waits_in_no_list_and_is_known_until_it_waits_again(self, stores: Stores) -> None:
        store, kind = stores.tables(), ActionKind.EXPIRE_SNAPSHOTS
        store.save_record(record())
        waiting = WaitingPlan("plan-1", table_id(), record().name, kind, REASON, 5)
        store.wait(waiting)
        first = refusal()
        assert store.refuse(first) == first
        assert stores.tables().refuse(replace(first, refused_by="Bob")) == first, "the first refusal stays"
        assert (store.waiting(limit=9), store.waits(table_id())) == ([], {kind: waiting})
        assert (store.refusal("plan-1"), store.refusals(table_id())) == (first, {kind: first})
        later = WaitingPlan("plan-2", table_id(), record().name, kind, REASON, 6)
        store.wait(later)
        with pytest.raises(Conflict, match="does not wait"):
            store.refuse(refusal("plan-3"))
        second = store.refuse(refusal("plan-2", at=first.refused_at + 1))
        assert store.refusals(table_id()) == {kind: second}
        assert store.refusals(table_id(2)) == {}
        store.wait(later)
        assert (store.waiting(limit=9), store.refusals(table_id())) == ([later], {kind: first})

    def test_a_plan_of_a_table_that_was_dropped_cannot_be_refused_and_its_refusal_goes_with_it(
        self, stores: Stores
    ) -> None:
        store = stores.tables()
        store.save_record(record())
        kept = not_none(store.record(table_id()))
        store.wait(WaitingPlan("plan-1", table_id(), record().name, ActionKind.EXPIRE_SNAPSHOTS, REASON, 5))
        store.refuse(refusal())
        store.wait(WaitingPlan("plan-2", table_id(), record().name, ActionKind.EXPIRE_SNAPSHOTS, REASON, 5))
        store.save_record(replace(kept, dropped_at=7))
        with pytest.raises(Conflict, match="does not wait"):
            store.refuse(refusal("plan-2"))
        store.prune_dropped(99, 9)
        assert store.refusal("plan-1") is None

    def test_a_refusal_is_forgotten_behind_its_plan_once_it_holds_no_more(
        self, stores: Stores, clock: ManualClock
    ) -> None:
        store = stores.tables()
        store.save_record(record())
        store.save_plan(plan("plan-1"))
        store.wait(WaitingPlan("plan-1", table_id(), record().name, ActionKind.EXPIRE_SNAPSHOTS, REASON, 5))
        kept = store.refuse(refusal(at=clock.now()))
        store.prune_plans(0, 99)
        assert store.refusal("plan-1") == kept, "its plan still waits, as one that was refused"
        store.waits_no_more(table_id(), ActionKind.EXPIRE_SNAPSHOTS)
        known = not_none(store.record(table_id()))
        store.save_record(replace(known, plan_id=None))
        for _ in range(2):
            store.prune_plans(0, 99)
        with pytest.raises(NotFound):
            store.plan("plan-1")
        clock.advance(REFUSED_MS - 1)
        store.prune_plans(0, 99)
        assert store.refusals(table_id()) == {kept.kind: kept}, "for a week, however many plans came since"
        clock.advance(1)
        store.prune_plans(0, 99)
        assert store.refusal("plan-1") is None

    def test_of_two_who_decide_one_is_heard(self, stores: Stores) -> None:
        store, deletions = stores.tables(), stores.deletions()
        store.save_record(record())
        kinds = (ActionKind.EXPIRE_SNAPSHOTS, ActionKind.EXPIRE_DATA, ActionKind.REMOVE_ORPHAN_FILES)
        for number, kind in enumerate(kinds, 1):
            store.wait(WaitingPlan(f"plan-{number}", table_id(), record().name, kind, REASON, 5))
        approved = ApprovedPlan("plan-1", table_id(), record().name, kinds[0], REASON)
        deletions.approve(Approval("hash-1", "Bob", 4, approved))
        with pytest.raises(Conflict, match=r"plan-1 was approved by Bob at 1970"):
            store.refuse(refusal())
        stores.tasks().enqueue(new_task("task-1", plan_id="plan-2"))
        with pytest.raises(Conflict, match=r"plan-2 was applied: task task-1"):
            store.refuse(refusal("plan-2", kind=kinds[1]))
        cancelled = stores.tasks().request_cancel("task-1", REASON)
        store.refuse(refusal("plan-2", kind=kinds[1]))
        with pytest.raises(Conflict, match=r"plan-2 was refused by Ada"):
            stores.tasks().change(Change("task-1", cancelled.version, TaskState.QUEUED, Outcome(REASON)))
        store.refuse(refusal("plan-3", kind=kinds[2]))
        with pytest.raises(Conflict, match=r"plan-3 was refused by Ada at .*: not now"):
            deletions.approve(Approval("hash-3", "Bob", 9, replace(approved, plan_id="plan-3", kind=kinds[2])))
        assert deletions.approval("hash-3") is None
        with pytest.raises(Conflict, match=r"plan-3 was refused by Ada"):
            stores.tasks().enqueue(new_task("task-3", plan_id="plan-3"))
        said = [entry for entry in stores.audit().entries(limit=99, after=0) if entry.action == "plan.refused"]
        assert [entry.detail["plan_id"] for entry in said] == ["plan-2", "plan-3"]
        told = [one.fact for one in stores.tasks().feed.after(0, 99, FeedFilter()).told]
        refused = [(fact.plan_id, fact.action) for fact in told if fact.fact is FactKind.REFUSED]
        assert refused == [("plan-2", kinds[1]), ("plan-3", kinds[2])], "with the refusal, once each"
        assert [(entry.resource, entry.detail["why"]) for entry in said][1:] == [("plan hash-3", "not now")]

    def test_plans_of_tasks_that_ended_are_kept(self, stores: Stores) -> None:
        for number in range(RETENTION.plans + 1):
            stores.tables().save_plan(plan(f"plan-{number:02}", planned_at=number))
        stores.tasks().enqueue(new_task("task-1", plan_id="plan-00"))
        stores.tasks().request_cancel("task-1", REASON)
        stores.tables().prune_plans(RETENTION.plans, 99)
        assert len(stores.tables().plans(table_id(), limit=99)) == RETENTION.plans + 1

    def test_optimizers_that_were_not_heard_of_for_long_are_forgotten(
        self, store: TableStore, clock: ManualClock
    ) -> None:
        store.optimizer_seen(hello("optimizer-1"))
        clock.advance(1)
        store.optimizer_seen(hello("optimizer-2"))
        clock.advance(RETENTION.spans_ms[RowKind.OPTIMIZERS])
        store.prune(clock.now())
        assert [seen.hello.optimizer_id for seen in store.optimizers()] == ["optimizer-2"]

    def test_each_kind_goes_in_batches_the_oldest_first(self, stores: Stores, clock: ManualClock) -> None:
        store, now = stores.tables(), clock.now()
        store.save_record(record())
        for number in range(4):
            store.receive(replace(TestInbox.EVENT, snapshot_id=number))
            store.done([store.inbox(1)[0].event_id])
            store.optimizer_seen(hello(f"optimizer-{number}"))
            store.save_plan(plan(f"plan-{number}", planned_at=number), is_present=False)
            root = f"s3://bucket/{number}"
            store.save_access(AccessRecord("lake", root, WorkerAccess.PROVED, "", "optimizer-1", now + number))
            clock.advance(1)
        keep = Retention(dict.fromkeys((RowKind.EVENTS, RowKind.OPTIMIZERS, RowKind.FINDINGS), 1), 0)
        clock.advance(10)
        first = store.prune(clock.now(), keep, 2)
        kinds = {RowKind.EVENTS, RowKind.OPTIMIZERS, RowKind.FINDINGS}
        assert first == dict.fromkeys(kinds, 2)
        assert store.prune_plans(1, 2) == 2
        assert [one.hello.optimizer_id for one in store.optimizers()] == ["optimizer-3", "optimizer-2"]
        assert [one.plan_id for one in store.plans(table_id(), limit=9)] == ["plan-3", "plan-2"]
        assert [store.access("lake", f"s3://bucket/{number}") is None for number in range(4)] == [
            True,
            True,
            False,
            False,
        ]
        assert store.prune(clock.now(), keep, 9) == dict.fromkeys(kinds, 2)
        assert [store.prune_plans(1, 9) for _ in range(2)] == [1, 0]
        assert store.prune(clock.now(), keep, 9) == dict.fromkeys(kinds, 0)
        assert [one.plan_id for one in store.plans(table_id(), limit=9)] == ["plan-3"]


def known_table(stores: Stores, number: int, dropped_at: int | None) -> TableRecord:
    """A table of which everything is there that a table can have."""
    store, found = stores.tables(), record(number, dropped_at=dropped_at)
    run = Run(Level.LEVEL_1, "hilbert(3,7)", 5)
    store.apply_inventory(InventoryUpdate(found, [manifest(1, P1)], [], [statistics(P1)], [], {7: run}))
    store.save_plan(plan(f"plan-{number}", table=number), is_present=False)
    waiting = WaitingPlan(f"plan-{number}", found.table_id, found.name, ActionKind.EXPIRE_SNAPSHOTS, REASON, 5)
    store.wait(waiting)
    store.note_exclusion(found.table_id, "not-sorted", ExecutorExclusion(6, "x"))
    store.save_record(not_none(store.record(found.table_id)), series=[SeriesPoint(1, 2, 3, 4, 1, 0, 1, 90)])
    sightings = stores.sightings()
    sightings.begin(found.table_id)
    return found


class TestDropped:
    """Tables that are gone are forgotten, with all that is known of them."""

    def test_those_that_were_dropped_before_go_with_all_that_is_known_of_them(self, stores: Stores) -> None:
        store = stores.tables()
        gone, later, there = (known_table(stores, number, at) for number, at in ((1, 10), (2, 20), (3, None)))
        assert store.prune_dropped(10, 9) == 0
        assert store.prune_dropped(11, 9) == 1
        assert store.record(gone.table_id) is None
        assert (list(store.lists.series(gone.table_id)), len(store.lists.series(later.table_id))) == ([], 1)
        assert store.manifest_keys(gone.table_id) == []
        assert store.partitions(gone.table_id) == []
        assert store.runs(gone.table_id) == {}
        assert store.plans(gone.table_id, limit=9) == []
        assert store.exclusions(gone.table_id) == {}
        assert store.waits(gone.table_id) == {}
        for kept in (later, there):
            assert store.record(kept.table_id) is not None
            assert store.manifest_keys(kept.table_id) == [manifest(1).key]
            assert len(store.plans(kept.table_id, limit=9)) == 1
        assert store.prune_dropped(10**15, 9) == 1
        assert store.record(there.table_id) == there

    def test_one_that_comes_back_is_a_new_one(self, stores: Stores) -> None:
        gone, store = known_table(stores, 1, 10), stores.tables()
        store.prune_dropped(11, 9)
        again = InventoryUpdate(record(), [manifest(2, P2)], [], [statistics(P2)], [])
        store.apply_inventory(again)
        assert store.manifest_keys(gone.table_id) == [manifest(2).key]
        assert store.partitions(gone.table_id) == [statistics(P2)]

    def test_tasks_and_removals_keep_their_table(self, stores: Stores, clock: ManualClock) -> None:
        store, tasks, deletions = stores.tables(), stores.tasks(), stores.deletions()
        for number in (1, 2):
            known_table(stores, number, 10)
        tasks.enqueue(new_task("task-1", plan_id="plan-1"))
        tasks.request_cancel("task-1", REASON)
        remove(deletions, "run-2", table=2)
        assert store.prune_dropped(11, 9) == 0
        tasks.prune(clock.advance(1), 9)
        assert store.prune_dropped(11, 9) == 1
        deletions.prune(clock.now(), 9)
        assert store.prune_dropped(11, 9) == 1

    def test_so_many_at_once_and_those_that_were_dropped_first_first(self, stores: Stores) -> None:
        for number in range(1, 5):
            stores.tables().save_record(record(number, dropped_at=100 - number))
        assert stores.tables().prune_dropped(10**15, 3) == 3
        assert stores.tables().record(table_id(1)) is not None


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
        now, kept_ms = clock.now(), RETENTION.spans_ms[RowKind.FINDINGS]
        old = AccessRecord("lake", "s3://bucket/old", WorkerAccess.PROVED, "", "optimizer-1", now - kept_ms - 1)
        store.save_access(old)
        store.save_access(replace(old, root="s3://bucket/new", decided_at=now - kept_ms))
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


def refusal(plan_id: str = "plan-1", *, at: int = 9, kind: ActionKind = ActionKind.EXPIRE_SNAPSHOTS) -> Refusal:
    return Refusal(
        plan_id=plan_id,
        plan_hash=plan_id.replace("plan", "hash"),
        table_id=table_id(),
        table_name=record().name,
        kind=kind,
        refused_by="Ada",
        why="not now",
        refused_at=at,
        snapshot_id=7,
        settings_digest="abc",
    )
