"""Claims of several servers: each looks at tables of its own, and what one has seen the others know before they act."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import Engine

from icewright.core.completeness import Complete
from icewright.model.iceberg.names import TableName
from icewright.ownership.claim_book import ClaimBook
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.model import Claim, GoneUuid, SeenClaim
from icewright.ownership.reachable_folders import AlreadyRead
from icewright.ownership.registry import Registry
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store
from tests.narrowing import not_none

T, U = (TableName("lake", ("db",), name) for name in "tu")
AGAIN = TableName("pond", ("db",), "again")


class World:
    """Two servers over one store, and a table that is in both catalogs by one uuid."""

    def __init__(self) -> None:
        self.clock, self.engine = ManualClock(), new_store()
        self.lake, self.pond = MemoryCatalog("lake", self.clock), MemoryCatalog("pond", self.clock)
        for name in (T, U):
            self.lake.create(name)
        self.pond.create(AGAIN)
        self.catalogs = {"lake": self.lake, "pond": self.pond}
        self.leader, self.follower = self.registry(), self.registry(declares=False)

    def registry(self, *, is_shared: bool = True, declares: bool = True) -> Registry:
        claims = SqlClaims(self.engine, is_shared=is_shared, declares=declares)
        return Registry(self.catalogs, self.clock, None, claims)

    def look(self, registry: Registry, name: TableName) -> None:
        """A look at a table, and the end of the round that it was taken in."""
        catalog = self.catalogs[name.catalog]
        metadata = catalog.load(name)
        registry.saw(metadata)
        registry.read(catalog, metadata, AlreadyRead())
        registry.keep()

    @property
    def uuid(self) -> str:
        return self.lake.load(T).table_id.uuid


@pytest.fixture
def world() -> World:
    return World()


def test_l6_a_second_name_that_another_server_saw_is_known_here(world: World) -> None:
    """Or the leader would expire snapshots of a table whose files another catalog needs."""
    world.look(world.leader, T)
    assert world.leader.namesakes(T, world.uuid) == frozenset()
    world.clock.advance(1)
    world.look(world.follower, AGAIN)
    assert world.leader.namesakes(T, world.uuid) == {AGAIN}
    alone = world.registry(is_shared=False)
    world.look(alone, T)
    assert alone.namesakes(T, world.uuid) == {AGAIN}, "read at its start"


def test_what_others_saw_is_taken_over_at_the_end_of_a_round_and_before_a_place_is_judged(world: World) -> None:
    for name in (T, U):
        world.look(world.follower, name)
    assert world.leader.claim(U) is None
    world.leader.keep()
    assert world.leader.claim(U) is not None
    world.pond.drop(AGAIN)
    assert isinstance(world.leader.place_now(world.lake.load(T)), Complete)


def test_the_only_server_of_a_store_asks_for_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = world.registry(is_shared=False)
    world.look(alone, T)

    def asked(_self: SqlClaims, _number: int) -> None:
        raise AssertionError("one statement more for each question")

    monkeypatch.setattr(SqlClaims, "changed_since", asked)
    world.look(alone, U)
    assert alone.namesakes(T, world.uuid) == frozenset()


class TestBooks:
    @pytest.fixture
    def store(self) -> Engine:
        return new_store()

    @pytest.fixture
    def books(self, store: Engine) -> tuple[ClaimBook, ClaimBook]:
        def book() -> ClaimBook:
            return ClaimBook(SqlClaims(store, is_shared=True))

        return book(), book()

    @pytest.fixture
    def follower(self, store: Engine) -> ClaimBook:
        return ClaimBook(SqlClaims(store, is_shared=True, declares=False))

    @staticmethod
    def seen(at: int, metadata: str = "m1", **more: object) -> SeenClaim:
        return SeenClaim(Claim(T, "u", ("s3://b/t/",), **more), metadata, at)  # type: ignore[arg-type]  # of a claim

    def test_what_this_server_saw_later_is_not_taken_back(self, books: tuple[ClaimBook, ClaimBook]) -> None:
        mine, other = books
        other.put(self.seen(1, "old"))
        other.keep()
        mine.put(self.seen(2, "new"), is_news=False)
        mine._dirty.clear()
        assert mine.take_over() == ()
        assert mine.get(T) == self.seen(2, "new")
        other.put(self.seen(3, "newer"))
        other.keep()
        assert mine.take_over() == (T,)
        assert mine.get(T) == self.seen(3, "newer")
        assert mine.take_over() == ()

    def test_what_is_not_written_down_yet_is_not_lost(self, books: tuple[ClaimBook, ClaimBook]) -> None:
        mine, other = books
        mine.put(self.seen(1, "mine"))
        other.put(self.seen(2, "other"))
        other.keep()
        assert mine.take_over() == ()
        assert mine.get(T) == self.seen(1, "mine")

    def test_what_was_taken_over_is_not_written_down_again(self, books: tuple[ClaimBook, ClaimBook]) -> None:
        mine, other = books
        other.put(self.seen(1))
        other.keep()
        mine.take_over()
        assert mine._dirty == {}

    def test_a_table_that_is_lost_at_its_pointer_is_so_whoever_saw_it_there(
        self, books: tuple[ClaimBook, ClaimBook]
    ) -> None:
        mine, other = books
        lost = replace(self.seen(1, unplaced=("relative",)), lost_at="m1", lost_by="ada")
        mine.put(lost)
        mine.keep()
        other.put(self.seen(2, unplaced=("relative",)))
        other.keep()
        mine.take_over()
        assert mine.is_lost(T, "m1")
        other.put(self.seen(3, "m2", unplaced=("relative",)))
        other.keep()
        mine.take_over()
        assert not mine.is_lost(T, "m2")

    @staticmethod
    def looked(book: ClaimBook, at: int) -> None:
        """A look at the table, and the end of its round: the registry keeps what was said of a table."""
        before = not_none(book.get(T))
        book.put(replace(before, seen_at=at))
        book.keep()

    @pytest.mark.parametrize("is_known", [True, False])
    def test_what_people_declared_is_not_changed_by_a_look_of_who_was_not_told(
        self, books: tuple[ClaimBook, ClaimBook], follower: ClaimBook, *, is_known: bool
    ) -> None:
        """Or files would go that a table needs of which a person withdrew that it is lost, or gone."""
        leader, next_leader = books
        unplaced, gone = self.seen(1, unplaced=("relative",)), GoneUuid("g", 7, "ada", ("s3://b/t/",))
        leader.put(unplaced)
        leader.keep()
        if not is_known:
            follower.load(lambda _: True)
        leader.put(replace(unplaced, lost_at="m1", lost_by="ada", gone=(gone,)))
        leader.keep()
        if is_known:
            follower.load(lambda _: True)
        self.looked(follower, 2)
        leader.take_over()
        next_leader.load(lambda _: True)
        for one in (leader, next_leader):
            assert one.is_lost(T, "m1")
            assert seen_in(one).gone == (gone,)
        withdrawn = replace(gone, declared_at=0)
        leader.put(replace(seen_in(leader), lost_at=None, lost_by="", gone=(withdrawn,)))
        leader.keep()
        self.looked(follower, 3)
        leader.take_over()
        after = ClaimBook(leader.store)
        after.load(lambda _: True)
        for one in (leader, after):
            assert (seen_in(one).seen_at, seen_in(one).lost_at, seen_in(one).gone) == (3, None, (withdrawn,))
            assert one.withdrawn("u") == (withdrawn,)

    def test_a_claim_that_was_written_before_a_person_spoke_does_not_undo_that(
        self, books: tuple[ClaimBook, ClaimBook], follower: ClaimBook
    ) -> None:
        leader, next_leader = books
        gone = GoneUuid("g", 0, "ada", ("s3://b/t/",))
        follower.put(self.seen(2))
        follower.keep()
        leader.put(replace(self.seen(1), gone=(gone,)), is_news=False)
        leader._dirty.clear()  # as while it is being written
        leader.take_over()
        assert seen_in(leader).gone == (gone,)
        leader.keep()
        next_leader.load(lambda _: True)
        assert seen_in(next_leader).gone == (gone,)

    def test_what_was_gone_from_the_place_of_another_table_is_not_of_the_present_one(
        self, books: tuple[ClaimBook, ClaimBook], follower: ClaimBook
    ) -> None:
        leader, _ = books
        leader.put(replace(self.seen(1), gone=(GoneUuid("g", 7, "ada", ("s3://b/t/",)),)))
        leader.keep()
        follower.put(replace(self.seen(2), claim=Claim(T, "v", ("s3://b/t/",))))
        follower.keep()
        leader.take_over()
        assert seen_in(leader).gone == ()

    def test_what_was_withdrawn_of_a_table_is_so_under_its_new_name(
        self, books: tuple[ClaimBook, ClaimBook], follower: ClaimBook
    ) -> None:
        leader, gone = books[0], GoneUuid("g", 7, "ada", ("s3://b/t/",))
        leader.put(replace(self.seen(1), gone=(replace(gone, declared_at=0),)))
        leader.keep()
        follower.put(replace(self.seen(2), claim=Claim(U, "u", ("s3://b/t/",)), gone=(gone,)))
        follower.keep()
        leader.take_over()
        found = not_none(leader.get(U))
        assert found.gone == leader.withdrawn("u") == (replace(gone, declared_at=0),)


def seen_in(book: ClaimBook, name: TableName = T) -> SeenClaim:
    return not_none(book.get(name))
