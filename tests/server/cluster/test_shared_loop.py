"""Loops that share the work: each on its own tables, and what must be one's by the leader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime

import pytest

from icewright.core.errors import InboxFull, Unavailable, Unreadable
from icewright.core.servers import TableShare
from icewright.feed.publisher import OUTAGE_REPORTED_MS
from icewright.maintenance.table_maintainer import Looked
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.events.events import Channel
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.names import TableName
from icewright.model.work.tasks import TaskState
from icewright.ports.store import AT_ONCE, TableRecord
from icewright.recommendations.policy_acceptance import PolicyAcceptance
from icewright.server.cluster.share import Part
from icewright.server.control import ControlPlane
from icewright.server.discovery import INTERVAL_MS, LEFT_TO_OTHERS_MS
from icewright.server.others_tables import WALK_MS
from icewright.store.scope_filters import bucket_of
from tests.builders.lakehouse import AUTO, HOUR_MS, LEASE_MS, MINUTE_MS, NAME, SECOND_MS, Lakehouse
from tests.builders.worker import Worker

OTHER = TableName("lake", ("db",), "other")


class Own(Part):
    """The part of a server that has these tables."""

    def __init__(self, house: Lakehouse, names: Collection[TableName], *, leads: bool) -> None:
        self.house, self.names, self.leads = house, set(names), leads

    @property
    def tables(self) -> TableShare | None:
        return TableShare(frozenset(map(bucket_of, self.names)))

    def owns(self, name: TableName) -> bool:
        return name in self.names

    def working(self, name: TableName) -> AbstractContextManager[bool]:
        is_new = self.leads and self.house.tables.record_by_name(name) is None
        return nullcontext(name in self.names or is_new)


@pytest.fixture
def house() -> Lakehouse:
    return Lakehouse()


def server(house: Lakehouse, *names: TableName, leads: bool = False) -> ControlPlane:
    house.part = Own(house, names, leads=leads)
    return house.restart()


def two_servers(house: Lakehouse, *names: TableName) -> tuple[ControlPlane, ControlPlane]:
    """A leader without tables, and who follows it and has looked at all of them once."""
    leader, follower = server(house, leads=True), server(house, *(names or (NAME,)))
    leader.loop.turn()
    follower.loop.turn()
    return leader, follower


def looked_at(house: Lakehouse, name: TableName) -> int:
    return house.record(name).observed_at


def test_the_buckets_of_these_tests_differ() -> None:
    assert bucket_of(NAME) != bucket_of(OTHER)


def test_all_looks_are_the_owners_and_the_leader_tells_it_of_tables_that_the_catalog_lists(house: Lakehouse) -> None:
    house.ready_table()
    leader, follower = server(house, leads=True), server(house, NAME)
    follower.loop.round()
    assert house.tables.record_by_name(NAME) is None, "nobody told it"
    leader.loop.round()
    assert house.tables.record_by_name(NAME) is None, "it is not the leader's"
    (told,) = house.tables.inbox(9)
    assert (told.event.table_name, told.channel) == (NAME, Channel.LISTING)
    house.pass_time(INTERVAL_MS)
    leader.loop.round()
    assert house.tables.inbox(9) == [told], "once"
    follower.loop.round()
    first = looked_at(house, NAME)
    assert house.tables.inbox(9) == []
    house.pass_time(2 * HOUR_MS)
    leader.loop.round()
    assert looked_at(house, NAME) == first
    follower.loop.round()
    assert looked_at(house, NAME) > first


def test_what_its_owner_cannot_look_at_the_leader_looks_at_as_well(house: Lakehouse) -> None:
    house.ready_table()
    leader = server(house, leads=True)
    leader.loop.round()
    house.pass_time(LEFT_TO_OTHERS_MS - 1)
    leader.loop.round()
    assert house.tables.record_by_name(NAME) is None
    house.pass_time(INTERVAL_MS)
    leader.loop.round()
    assert looked_at(house, NAME)


def test_an_unreadable_table_is_told_of_by_the_leader_whoevers_it_is(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ready_table()
    leader, follower = server(house, leads=True), server(house, NAME)

    def broken(_name: TableName) -> None:
        raise Unreadable("its metadata is cut off")

    monkeypatch.setattr(house.catalog, "load", broken)
    leader.loop.round()
    follower.loop.round()
    assert (follower.loop.unreadable, leader.loop.unreadable) == ({}, {})
    house.pass_time(LEFT_TO_OTHERS_MS)
    leader.loop.round()
    assert set(leader.loop.unreadable) == {NAME}


def test_tables_that_the_leader_has_lost_since_it_read_the_list_go_to_their_owner(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins alone, with all buckets: what others get of these is theirs at once, not when it has looked at all."""
    names = [NAME, OTHER, TableName("lake", ("db",), "third")]
    for name in names:
        house.ready_table(name)
    leader = server(house, *names, leads=True)
    part, own_look = house.part, leader.maintainer.look
    assert isinstance(part, Own)

    def looks_at_one(name: TableName, *, plan_anew: bool = False) -> Looked:
        part.names = {name}
        return own_look(name, plan_anew=plan_anew)

    monkeypatch.setattr(leader.loop._maintainer, "look", looks_at_one)
    leader.loop.round()
    leader.loop.round()
    (own,) = [name for name in names if house.tables.record_by_name(name) is not None]
    assert {one.event.table_name for one in house.tables.inbox(9)} == set(names) - {own}


def test_others_are_told_of_so_many_tables_as_they_have_looked_at(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [TableName("lake", ("db",), f"t{number}") for number in range(7)]
    for name in names:
        house.ready_table(name)
    monkeypatch.setattr("icewright.server.discovery.WAITING_MAX", 4)
    monkeypatch.setattr("icewright.server.discovery.SENT_AT_ONCE", 2)
    leader, follower = server(house, leads=True), server(house, *names)
    for expected in (4, 4):
        leader.loop.round()
        assert len(house.tables.inbox(9)) == expected
    follower.loop.round()
    leader.loop.round()
    follower.loop.round()
    assert all(house.tables.record_by_name(name) for name in names)


def test_tables_that_their_owner_does_not_answer_for_are_looked_at_by_the_leader_however_many_they_are(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner may be the only server that a catalog does not answer: what it was told of would fill its share."""
    names = [TableName("lake", ("db",), f"t{number}") for number in range(5)]
    for name in names:
        house.ready_table(name)
    monkeypatch.setattr("icewright.server.discovery.WAITING_MAX", 2)
    monkeypatch.setattr("icewright.server.discovery.SENT_AT_ONCE", 1)
    leader = server(house, leads=True)
    for known in (0, 2, 4, 5):
        leader.loop.round()
        assert sum(house.tables.record_by_name(name) is not None for name in names) == known
        house.pass_time(LEFT_TO_OTHERS_MS)
    assert house.tables.inbox(9) == []


def test_the_leader_finds_its_own_new_tables_while_those_of_others_wait(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icewright.server.discovery.WAITING_MAX", 1)
    for name in (OTHER, TableName("lake", ("db",), "third")):
        house.ready_table(name)
    leader = server(house, NAME, leads=True)
    leader.loop.round()
    assert len(house.tables.inbox(9)) == 1, "one of them waits for room"
    house.ready_table(NAME)
    house.pass_time(INTERVAL_MS)
    leader.loop.round()
    assert house.tables.record_by_name(NAME) is not None


def test_tables_of_a_catalog_that_others_cannot_reach_keep_nobody_from_telling_of_those_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house = Lakehouse(others=("pond",))
    names = [NAME, OTHER, TableName("pond", ("db",), "orders")]
    for name in names:
        house.ready_table(name)
    monkeypatch.setattr("icewright.server.discovery.WAITING_MAX", 1)
    monkeypatch.setattr("icewright.server.discovery.SENT_AT_ONCE", 1)
    server(house, leads=True).loop.round()
    assert {one.event.table_name.catalog for one in house.tables.inbox(9)} == {"lake", "pond"}


def test_many_catalogs_that_others_cannot_reach_leave_the_inbox_to_those_who_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house = Lakehouse(others=("pond",))
    for catalog in ("lake", "pond"):
        for number in range(3):
            house.ready_table(TableName(catalog, ("db",), f"t{number}"))
    monkeypatch.setattr("icewright.server.discovery.WAITING_IN_ALL_MAX", 4)
    server(house, leads=True).loop.round()
    assert Counter(one.event.table_name.catalog for one in house.tables.inbox(9)) == {"lake": 2, "pond": 2}


def test_where_the_inbox_is_full_the_leader_looks_itself(house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_events: object, **_options: object) -> int:
        raise InboxFull(1)

    monkeypatch.setattr(house.tables, "receive", full)
    house.ready_table()
    leader = server(house, leads=True)
    leader.loop.round()
    leader.loop.round()
    assert looked_at(house, NAME)


def test_the_leader_looks_at_its_own_tables_also_where_others_cannot_be_told(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_events: object, **_options: object) -> int:
        raise TypeError("a defect")

    monkeypatch.setattr(house.tables, "receive", fails)
    for name in (NAME, OTHER):
        house.ready_table(name)
    server(house, NAME, leads=True).loop.round()
    assert looked_at(house, NAME)


def test_a_table_that_another_server_has_read_since_is_unreadable_no_more(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ready_table()
    leader, follower = server(house, leads=True), server(house, NAME)

    def broken(_name: TableName) -> None:
        raise Unreadable("its metadata is cut off")

    leader.loop.round()
    house.pass_time(LEFT_TO_OTHERS_MS)
    with monkeypatch.context() as patched:
        patched.setattr(house.catalog, "load", broken)
        leader.loop.round()
    assert set(leader.loop.unreadable) == {NAME}
    house.notify(house.append(1))
    follower.loop.round()
    assert looked_at(house, NAME)
    house.pass_time(INTERVAL_MS)
    leader.loop.round()
    assert leader.loop.unreadable == {}


def test_events_are_worked_on_by_the_owner_of_the_bucket_whether_the_table_is_known_or_not(house: Lakehouse) -> None:
    for name in (NAME, OTHER):
        house.ready_table(name)
    leader, follower = server(house, OTHER, leads=True), server(house, NAME)
    leader.loop.round()
    follower.loop.round()
    before = {name: looked_at(house, name) for name in (NAME, OTHER)}
    house.pass_time(SECOND_MS)
    for name in (NAME, OTHER):
        house.notify(house.append(1, name=name), name)
    follower.loop.round()
    assert (looked_at(house, NAME) > before[NAME], looked_at(house, OTHER) > before[OTHER]) == (True, False)
    assert [one.event.table_name for one in house.tables.inbox(9)] == [OTHER]
    leader.loop.round()
    assert house.tables.inbox(9) == []
    new = TableName("lake", ("db",), "new")
    house.ready_table(new)
    house.notify(house.append(1, name=new), new)
    leader.loop.round()
    assert house.tables.record_by_name(new) is None
    server(house, NAME, new).loop.round()
    assert house.tables.record_by_name(new) is not None


def test_who_wishes_for_a_look_gets_it_from_the_owner(house: Lakehouse) -> None:
    house.ready_table()
    leader, follower = two_servers(house)
    house.tables.look_at_once(NAME)
    leader.loop.round()
    assert [record.name for record in house.tables.due(AT_ONCE, 9)] == [NAME]
    follower.loop.round()
    assert house.tables.due(AT_ONCE, 9) == []


def test_a_commit_of_an_optimizer_is_verified_by_the_owner_of_the_table(house: Lakehouse) -> None:
    house.ready_table()
    leader, follower = two_servers(house)
    task = Worker(house).carry_out()
    assert task.state is TaskState.COMMITTED
    leader.loop.round()
    assert house.tasks.get(task.task_id).state is TaskState.COMMITTED
    follower.loop.round()
    assert house.tasks.get(task.task_id).state is TaskState.SUCCEEDED


def test_what_the_server_carries_out_itself_is_the_leaders_and_the_look_behind_it_the_owners(house: Lakehouse) -> None:
    house.ready_table()
    leader, follower = two_servers(house)
    plan = follower.maintainer.plan_asked(NAME, ExpireSnapshotsRequest("PT0S", 1))
    task = follower.dispatcher.apply(plan.plan_id)
    follower.loop.round()
    assert house.tasks.get(task.task_id).state is TaskState.QUEUED
    leader.loop._keep_house()
    follower.loop.round()
    assert house.tasks.get(task.task_id).state is TaskState.COMMITTED
    leader.loop.round()
    assert house.tasks.get(task.task_id).state is TaskState.SUCCEEDED
    assert [record.name for record in house.tables.due(AT_ONCE, 9)] == [NAME]
    follower.loop.round()
    assert house.tables.due(AT_ONCE, 9) == []


def test_a_server_that_follows_ends_no_lease_and_forgets_nothing(house: Lakehouse) -> None:
    house.ready_table()
    leader, follower = two_servers(house)
    spec = Worker(house).claimed()
    house.clock.advance(2 * LEASE_MS)
    follower.loop.round()
    assert house.tasks.get(spec.task_id).state is TaskState.RUNNING
    leader.loop.round()
    assert house.tasks.get(spec.task_id).state is TaskState.IN_DOUBT


def test_a_catalog_that_is_away_is_told_of_by_the_leader_who_also_tells_that_it_is_back(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ready_table()
    _leader, follower = two_servers(house)

    def away(_name: TableName) -> None:
        raise Unavailable("it is away")

    with monkeypatch.context() as patched:
        patched.setattr(house.catalog, "load", away)
        for _ in range(3):
            house.pass_time(max(OUTAGE_REPORTED_MS, 2 * HOUR_MS))
            follower.loop.round()
        assert follower.loop.paused_until("lake") is not None
    told = house.tasks.feed.after(0, 99, FeedFilter()).told
    assert FactKind.CATALOG_AWAY not in {one.fact.fact for one in told}


class TestTablesOfOthers:
    @pytest.fixture
    def house(self) -> Lakehouse:
        return Lakehouse(has_files=True)

    def test_files_of_tables_that_others_look_at_are_looked_for_by_the_leader(self, house: Lakehouse) -> None:
        house.ready_table(properties={**AUTO, "icewright.remove-orphan-files.enabled": "true"})
        leader, follower = two_servers(house)
        leader.loop.turn()
        wanted = leader.removal_rounds._wanted
        wanted.clear()
        follower.loop.turn()
        leader.loop.turn()
        assert list(wanted) == [], "within the hour"
        house.clock.advance(WALK_MS)
        follower.loop.turn()
        assert list(follower.removal_rounds._wanted) == [], "who follows moves no file"
        leader.loop.turn()
        assert list(wanted) == [house.record().table_id]
        wanted.clear()
        leader.loop.turn()
        assert list(wanted) == [], "once a walk"

    def test_what_its_owner_does_not_let_happen_is_not_looked_for(self, house: Lakehouse) -> None:
        wrong = {"icewright.not-a-setting": "1"}
        third = TableName("lake", ("db",), "third")
        for name, more in (
            (NAME, {"icewright.mode": "manual"}),
            (OTHER, {"icewright.mode": "observe"}),
            (third, wrong),
        ):
            house.ready_table(name, {**AUTO, "icewright.remove-orphan-files.enabled": "true", **more})
        leader, _follower = two_servers(house, NAME, OTHER, third)
        leader.loop.turn()
        leader.removal_rounds._wanted.clear()
        house.clock.advance(WALK_MS)
        leader.loop.turn()
        assert list(leader.removal_rounds._wanted) == []

    def test_a_table_of_ones_own_is_left_to_its_looks(self, house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
        house.ready_table(properties={**AUTO, "icewright.remove-orphan-files.enabled": "true"})
        leader = server(house, NAME, leads=True)
        leader.loop.turn()
        leader.removal_rounds._wanted.clear()
        house.clock.advance(MINUTE_MS)
        monkeypatch.setattr(house.tables, "due", lambda *_: [])
        house.clock.advance(WALK_MS)
        leader.loop.turn()
        assert list(leader.removal_rounds._wanted) == []

    def test_a_window_that_is_open_between_two_walks_is_used(self, house: Lakehouse) -> None:
        opens_at = house.clock.now() // HOUR_MS * HOUR_MS + 2 * HOUR_MS
        at = datetime.fromtimestamp(opens_at / 1000, UTC)
        window = {
            "icewright.maintenance-window.cron": f"{at.minute} {at.hour} * * *",
            "icewright.maintenance-window.duration": "PT20M",
            "icewright.maintenance-window.time-zone": "UTC",
        }
        house.ready_table(properties={**AUTO, "icewright.remove-orphan-files.enabled": "true", **window})
        leader, _follower = two_servers(house)
        leader.loop.turn()
        house.clock.advance(opens_at - 5 * MINUTE_MS - house.clock.now())
        leader.loop.turn()
        wanted = leader.removal_rounds._wanted
        assert list(wanted) == []
        house.clock.advance(20 * MINUTE_MS)
        leader.loop.turn()
        assert list(wanted) == [house.record().table_id]
        wanted.clear()
        leader.loop.turn()
        assert list(wanted) == [], "once a window"

    def test_a_catalog_that_hangs_keeps_the_loop_no_longer_than_one_answer(
        self, house: Lakehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A loop that is silent for two minutes would give the lead away."""
        names = [NAME, OTHER, TableName("lake", ("db",), "third")]
        for name in names:
            house.ready_table(name, AUTO)
        (leader, _follower), asked = two_servers(house, *names), list[TableName]()
        leader.loop.turn()
        house.clock.advance(WALK_MS)

        def hangs(record: TableRecord) -> None:
            asked.append(record.name)
            house.clock.advance(4 * SECOND_MS)
            raise Unavailable("no answer")

        monkeypatch.setattr(PolicyAcceptance, "is_open", lambda *_: True)
        monkeypatch.setattr(leader.observer, "present", hangs)
        for count in (1, 2, 3, 3):
            leader.loop.turn()
            assert len(asked) == count
        assert sorted(asked) == sorted(names)

    def test_a_catalog_that_is_left_alone_is_not_asked(self, house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
        house.ready_table(properties=AUTO)
        (leader, _follower), asked = two_servers(house), list[TableName]()
        leader.loop.turn()
        house.clock.advance(WALK_MS)
        monkeypatch.setattr(PolicyAcceptance, "is_open", lambda *_: True)
        monkeypatch.setattr(leader.observer, "present", lambda record: asked.append(record.name))
        with monkeypatch.context() as away:
            away.setattr(house.catalog, "tables", _away)
            leader.loop.turn()
        assert leader.loop.paused_until("lake") is not None
        assert asked == []


def _away() -> None:
    raise Unavailable("it is away")


def test_kinds_that_the_server_carries_out_are_not_the_owners_to_verify() -> None:
    """By this the leader and the owners part the tasks: a new kind is on one side of it."""
    own = {kind for kind in ActionKind if kind.traits.runs_on != "optimizer"}
    assert ActionKind.EXPIRE_SNAPSHOTS in own
    assert ActionKind.REWRITE_DATA_FILES not in own


@pytest.mark.parametrize("leads", [False, True])
def test_the_threads_beside_the_loop_are_the_leaders(
    house: Lakehouse, monkeypatch: pytest.MonkeyPatch, *, leads: bool
) -> None:
    """They carry out the server's own tasks and move files."""
    loop, named = server(house, NAME, leads=leads).loop, set[str]()
    monkeypatch.setattr(loop, "_keep_on", lambda name, *_: named.add(name))
    monkeypatch.setattr(loop, "turn", loop.stop)
    loop.run(0.01)
    assert named == ({"housekeeper", "removals"} if leads else set())
