"""Claims of tables whose buckets have moved: who handed one over keeps none over what the next owner has kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, insert, update

from icewright.actions.remove_files.orphans.gone_tables import GoneUuids
from icewright.core.completeness import Complete
from icewright.core.errors import BucketLost, StoreUnavailable
from icewright.model.iceberg.names import TableName
from icewright.ownership.claim_book import ClaimBook
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.model import Claim, SeenClaim
from icewright.server.cluster.share import Part
from icewright.store import transactions
from icewright.store.scope_filters import bucket_of
from icewright.store.servers_schema import buckets
from icewright.store.transactions import Held, holding, writing
from tests.builders.lakehouse import Lakehouse
from tests.lakes.stores import new_store
from tests.ownership.test_shared_claims import AGAIN, T, U, World, seen_in


class Buckets:
    """The epochs of the buckets of T and U in a store: within one a server notes claims, and both move on."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._epochs = engine, dict.fromkeys(map(bucket_of, (T, U)), 1)
        with writing(engine) as connection:
            row = {"session": 1, "epoch": 1, "moved_at": 0, "moved_by": "first"}
            connection.execute(insert(buckets), [{**row, "bucket": bucket} for bucket in self._epochs])

    def lease(self, name: TableName) -> Held:
        return Held(1, bucket_of(name), self._epochs[bucket_of(name)])

    def move(self, name: TableName) -> None:
        bucket = bucket_of(name)
        self._epochs[bucket] += 1
        with writing(self._engine) as connection:
            moved = update(buckets).where(buckets.c.bucket == bucket).values(epoch=self._epochs[bucket])
            connection.execute(moved)


@pytest.fixture
def store() -> Engine:
    return new_store()


@pytest.fixture
def owners(store: Engine) -> Buckets:
    assert bucket_of(T) != bucket_of(U)
    return Buckets(store)


@pytest.fixture
def mine(store: Engine) -> ClaimBook:
    return ClaimBook(SqlClaims(store, is_shared=True, declares=False))


@pytest.fixture
def other(store: Engine) -> ClaimBook:
    return ClaimBook(SqlClaims(store, is_shared=True, declares=False))


def seen(at: int, metadata: str, name: TableName = T, uuid: str = "u", **more: Any) -> SeenClaim:
    return SeenClaim(Claim(name, uuid, (f"s3://b/{name.name}/",), **more), metadata, at)


def noted(book: ClaimBook, seen: SeenClaim, owners: Buckets, within: TableName | None = None) -> None:
    """What a look says of a table, within the lease of its bucket."""
    with holding(owners.lease(within or seen.claim.name)):
        book.put(seen)


def stored(book: ClaimBook) -> dict[str, str]:
    assert book.store is not None
    return {seen.claim.name.name: seen.metadata_location for seen in book.store.claims()}


@pytest.fixture
def moved(mine: ClaimBook, other: ClaimBook, owners: Buckets) -> SeenClaim:
    """One server has noted an old claim, by a clock that goes ahead; the next owner has kept a new one."""
    noted(mine, seen(99, "old"), owners)
    owners.move(T)
    new = seen(2, "new")
    noted(other, new, owners)
    other.keep()
    return new


def test_what_the_next_owner_has_kept_stays_and_is_taken_over(mine: ClaimBook, moved: SeenClaim) -> None:
    with pytest.raises(BucketLost):
        mine.keep()
    assert stored(mine) == {"t": "new"}
    assert mine.get(T) == moved
    assert mine.take_over() == (T,)


@pytest.mark.usefixtures("moved")
def test_it_is_not_tried_again(mine: ClaimBook) -> None:
    with pytest.raises(BucketLost):
        mine.keep()
    mine.keep()
    assert mine._dirty == {}
    assert stored(mine) == {"t": "new"}
    mine.take_over()
    assert mine.take_over() == ()


@pytest.mark.usefixtures("moved")
def test_all_else_of_the_round_is_kept(mine: ClaimBook, owners: Buckets) -> None:
    noted(mine, seen(1, "mine", U), owners)
    with pytest.raises(BucketLost, match="1 table "):
        mine.keep()
    assert stored(mine) == {"t": "new", "u": "mine"}


@pytest.mark.usefixtures("moved")
def test_what_is_noted_by_the_present_lease_is_kept(mine: ClaimBook, owners: Buckets) -> None:
    owners.move(T)
    noted(mine, seen(3, "newest"), owners)
    mine.keep()
    assert stored(mine) == {"t": "newest"}


def test_what_nobody_else_has_kept_is_not_lost(mine: ClaimBook, owners: Buckets) -> None:
    noted(mine, seen(1, "mine"), owners)
    owners.move(T)
    mine.keep()
    assert stored(mine) == {"t": "mine"}


@pytest.mark.usefixtures("moved")
def test_nothing_of_it_is_forgotten(mine: ClaimBook, owners: Buckets) -> None:
    """A name that is dropped in a look that was begun before."""
    mine.drop(T)
    with pytest.raises(BucketLost):
        mine.keep()
    assert stored(mine) == {"t": "new"}
    assert mine.get(T) is not None
    owners.move(T)
    with holding(owners.lease(T)):
        mine.drop(T)
    mine.keep()
    assert stored(mine) == {}


@pytest.mark.usefixtures("moved")
def test_a_store_that_is_away_lifts_no_fence(mine: ClaimBook, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        mine.put(seen(100, "older still"))  # meanwhile, outside of a look
        raise StoreUnavailable("away")

    monkeypatch.setattr(SqlClaims, "keep", away)
    with pytest.raises(StoreUnavailable):
        mine.keep()
    monkeypatch.undo()
    with pytest.raises(BucketLost):
        mine.keep()
    assert stored(mine) == {"t": "new"}


@pytest.mark.usefixtures("moved")
def test_what_goes_on_from_an_old_claim_outside_of_a_look_is_as_old(mine: ClaimBook) -> None:
    mine.returned(T)
    mine.retire(T, 100)
    with pytest.raises(BucketLost):
        mine.keep()
    assert stored(mine) == {"t": "new"}
    mine.retire(T, 100)
    mine.keep()
    assert [seen.gone_at for seen in mine] == [100], "the leader says of any table that it is not shown"


def test_of_a_table_of_another_bucket_nothing_is_left_out(mine: ClaimBook, other: ClaimBook, owners: Buckets) -> None:
    """The leader asks for all tables in the look at one."""
    other.put(seen(1, "before", U))
    other.keep()
    noted(mine, seen(2, "mine", U), owners, within=T)
    owners.move(T)
    mine.keep()
    assert stored(mine) == {"u": "mine"}


def test_what_another_table_of_the_name_claimed_is_fenced_with_it(
    mine: ClaimBook, other: ClaimBook, owners: Buckets
) -> None:
    new = seen(1, "n1", uuid="v")
    elsewhere = replace(new, claim=replace(new.claim, roots=("s3://b/elsewhere/",)))
    for book in (mine, other):
        noted(book, seen(1, "m1"), owners)
        book.keep()
    noted(mine, elsewhere, owners)
    owners.move(T)
    noted(other, seen(2, "m2"), owners)
    noted(other, elsewhere, owners)
    other.keep()
    with pytest.raises(BucketLost, match="2 tables"):
        mine.keep()
    assert stored(mine) == {"t": "n1", "t u": "m2"}


def test_what_people_say_meanwhile_is_kept_with_the_next_owners_claim(
    store: Engine, other: ClaimBook, owners: Buckets
) -> None:
    """Who says it is told that it is not written down yet; who speaks of another table is not bothered."""
    leader = ClaimBook(SqlClaims(store, is_shared=True))
    old = seen(99, "m1", unplaced=("relative",))
    noted(leader, old, owners)
    owners.move(T)
    noted(other, replace(old, seen_at=2), owners)
    other.keep()
    leader.put(replace(old, lost_at="m1", lost_by="ada"))
    leader.put(seen(99, "", U))
    with pytest.raises(BucketLost):
        leader.keep(T)
    assert leader.is_lost(T, "m1")
    leader.keep()
    after = ClaimBook(leader.store)
    after.load(lambda _: True)
    assert (seen_in(after).seen_at, after.is_lost(T, "m1")) == (2, True)
    assert leader._dirty == {}


@pytest.mark.usefixtures("moved")
def test_who_speaks_of_another_table_is_answered(mine: ClaimBook) -> None:
    mine.put(seen(1, "said", U))
    mine.keep(U)
    assert stored(mine) == {"t": "new", "u": "said"}


def test_what_is_dropped_in_a_look_is_fenced_as_well(mine: ClaimBook, other: ClaimBook, owners: Buckets) -> None:
    noted(mine, seen(1, "old"), owners)
    mine.keep()
    with holding(owners.lease(T)):
        mine.drop(T)
    owners.move(T)
    noted(other, seen(2, "new"), owners)
    other.keep()
    with pytest.raises(BucketLost):
        mine.keep()
    assert stored(mine) == {"t": "new"}


@pytest.mark.usefixtures("moved")
def test_what_is_noted_while_claims_are_kept_is_not_taken_back(
    mine: ClaimBook, owners: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = SqlClaims.keep

    def kept(claims: SqlClaims, *told: Any) -> object:
        others = keep(claims, *told)
        owners.move(T)
        noted(mine, seen(3, "newest"), owners)
        return others

    monkeypatch.setattr(SqlClaims, "keep", kept)
    with pytest.raises(BucketLost):
        mine.keep()
    monkeypatch.undo()
    assert seen_in(mine).metadata_location == "newest"
    mine.keep()
    assert stored(mine) == {"t": "newest"}


@pytest.fixture
def world() -> World:
    """The leader has noted an old claim of T, of which the next owner has kept another one."""
    world = World()
    owners = Buckets(world.engine)
    world.pond.drop(AGAIN)
    for name in (T, U):
        world.look(world.leader, name)
    mine, other = world.leader.book(), world.follower.book()
    world.clock.advance(9)
    with holding(owners.lease(T)):
        mine.put(replace(seen_in(mine), seen_at=world.clock.now()))
    assert isinstance(world.leader.ownership_now().place(U), Complete)
    assert isinstance(world.leader.ownership().place(U), Complete)
    owners.move(T)
    with holding(owners.lease(T)):
        other.put(replace(seen_in(other), claim=replace(seen_in(other).claim, roots=seen_in(mine, U).claim.roots)))
    other.keep()
    return world


@pytest.mark.parametrize("what", ["gone", "lost", "found", "another"])
def test_what_people_say_of_a_table_is_written_whatever_became_of_others(world: World, what: str) -> None:
    """They are not told that nothing was written."""
    leader, declared = world.leader, GoneUuids(world.leader)
    if what == "gone":
        world.lake.drop(U)
        leader.declare_lost(U, "ada")
    elif what == "another":
        declared.declare(U, "00000000-0000-0000-0000-00000000abcd", "ada", world.clock.now())
    else:
        world.lake.set_properties(U, {"write.data.path": "relative"})
        if what == "found":
            leader.book().put(replace(seen_in(leader.book(), U), lost_at="before", lost_by="ada"))
            leader.withdraw_lost(U)
        else:
            leader.declare_lost(U, "ada")
    after = ClaimBook(leader.book().store)
    after.load(lambda _: True)
    assert (after.get(U) is None) == (what == "gone")
    if what != "gone":
        assert (seen_in(after, U).lost_by, len(seen_in(after, U).gone)) == (
            "ada" if what == "lost" else "",
            what == "another",
        )
    assert seen_in(after).claim.roots == seen_in(leader.book()).claim.roots


def test_a_place_is_judged_by_what_the_next_owner_has_kept(world: World) -> None:
    """And not by the judgement of before: who else has files in a place keeps it from being the table's own."""
    with pytest.raises(BucketLost):
        world.leader.keep()
    now = world.leader.ownership()
    for name in (T, U):
        known = now.place(name)
        assert not (isinstance(known, Complete) and known.value.roots), "both lie in one place by now"


def test_l6_a_place_is_judged_by_what_another_thread_takes_over_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or pointers were compared with the new claims, and files deleted by the judgement of the old ones."""
    pointers = world.lake.pointers

    def while_the_loop_keeps_claims() -> object:
        with suppress(BucketLost):
            world.leader.keep()
        return pointers()

    monkeypatch.setattr(world.lake, "pointers", while_the_loop_keeps_claims)
    known = world.leader.ownership_now().place(U)
    assert not (isinstance(known, Complete) and known.value.roots), "both lie in one place by now"


class OneBucket(Part):
    """The part of a server that holds the bucket of whatever it is at."""

    @contextmanager
    def working(self, name: TableName) -> Iterator[bool]:
        with holding(Held(1, bucket_of(name), 7)):
            yield True

    @contextmanager
    def as_server(self) -> Iterator[None]:
        with holding(Held(1)):
            yield


def test_a_look_notes_what_it_says_by_the_lease_by_which_it_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    house, kept = Lakehouse(), dict[TableName, Held | None]()

    def keep(_claims: SqlClaims, _seen: object, _forget: object, leases: dict[TableName, Held | None]) -> object:
        kept.update(leases)
        return {}

    monkeypatch.setattr(transactions, "_require_held", lambda _connection: None)
    monkeypatch.setattr(SqlClaims, "keep", keep)
    house.part = OneBucket()
    house.restart()
    house.control.registry.book().store = SqlClaims(new_store())
    for name in (T, U):
        house.catalog.create(name)
    house.control.loop.round()
    assert kept == {name: Held(1, bucket_of(name), 7) for name in (T, U)}
