"""Claims of several servers: each looks at tables of its own, and what one has seen the others know before they act."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import Engine

from icewright.core.completeness import Complete
from icewright.model.iceberg.names import TableName
from icewright.ownership.claim_book import ClaimBook
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.model import Claim, SeenClaim
from icewright.ownership.reachable_folders import AlreadyRead
from icewright.ownership.registry import Registry
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store

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
        self.leader, self.follower = self.registry(), self.registry()

    def registry(self, *, is_shared: bool = True) -> Registry:
        return Registry(self.catalogs, self.clock, None, SqlClaims(self.engine, is_shared=is_shared))

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
    known = world.leader.place_now(world.lake.load(T))
    assert isinstance(known, Complete)


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
        assert mine._dirty == set()

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
