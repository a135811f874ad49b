"""The registry follows the tables, and what it does not know it does not pass over."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from icewright.catalogs.parallel_catalogs import SideBySide
from icewright.catalogs.port import TablePointers
from icewright.core.completeness import Complete, Known, Partial
from icewright.core.errors import LookLost, NotFound, StoreUnavailable, Unreadable
from icewright.core.reasons import Reason
from icewright.model.iceberg.files import UNPARTITIONED, Partition
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import RefKind, TableMetadata
from icewright.observation.observer import Observer
from icewright.ownership import registry as registry_module
from icewright.ownership.claim_book import GONE_KEPT_MS, KEPT_AGAIN_MS, ClaimBook
from icewright.ownership.claims_sql import SqlClaims
from icewright.ownership.location_rules import PlaceRules
from icewright.ownership.model import Claim, GoneUuid, Place, SeenClaim
from icewright.ownership.ownership import Ownership, ownership
from icewright.ownership.reachable_folders import AlreadyRead, Reach
from icewright.ownership.registry import (
    CLAIM_FRESH_MS,
    LISTING_FRESH_MS,
    LOADED_MAX,
    READ_AGAIN_MS,
    UNCONFIGURED_KEPT_MS,
    Registry,
)
from tests.builders.lakehouse import Lakehouse
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.lake import MemoryFile
from tests.lakes.stores import new_store
from tests.narrowing import not_none, of_type

T, U, V = (TableName("lake", ("db",), name) for name in "tuv")
OTHER = TableName("pond", ("db",), "other")


class CountingCatalog(MemoryCatalog):
    """Counts what it is asked, and has names that lead to another one's table."""

    def __init__(self, name: str, clock: ManualClock) -> None:
        super().__init__(name, clock)
        self.loads: list[TableName] = []
        self.listings = 0
        self.broken: set[TableName] = set()
        self.vague: set[TableName] = set()
        """Names that it lists, and says nothing more of."""

    def pointers(self) -> TablePointers:
        self.listings += 1
        shown = super().pointers()
        return replace(shown, tables={**shown.tables, **dict.fromkeys(self.vague)})

    def load(self, name: TableName) -> TableMetadata:
        self.loads.append(name)
        if name in self.broken:
            raise Unreadable(f"{name} is broken")
        return super().load(name)


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.lake, self.pond = CountingCatalog("lake", self.clock), CountingCatalog("pond", self.clock)
        self.pond._numbers = 1_000  # or its uuids would be those of the lake
        self.claims = SqlClaims(new_store())
        self.rules: PlaceRules | None = None
        self.registry = self.started()

    def started(self, *names: str) -> Registry:
        """A server over the same store."""
        catalogs = {one.name: one for one in (self.lake, self.pond) if one.name in (names or ("lake", "pond"))}
        self.registry = Registry(catalogs, self.clock, self.rules, self.claims)
        return self.registry

    def place(self, name: TableName = T) -> Known[Place]:
        """What a table owns right now."""
        catalog = {"lake": self.lake, "pond": self.pond}[name.catalog]
        metadata = catalog.load(name)
        for one in (self.lake, self.pond):
            one.loads.clear()
        return self.registry.place_now(metadata)

    def owns(self, name: TableName = T) -> bool:
        known = self.place(name)
        return isinstance(known, Complete) and bool(known.value.roots)

    def location(self, name: TableName) -> str:
        return self.lake.load(name).location


@pytest.fixture
def world() -> World:
    world = World()
    world.lake.create(T)
    world.lake.create(U)
    world.pond.create(OTHER)
    return world


def file(path: str) -> MemoryFile:
    return MemoryFile(path, Partition(0, UNPARTITIONED), 10, 1)


def imported(path: str) -> MemoryFile:
    return MemoryFile(path, Partition(0, '["Bonn"]'), 10, 1)


def gaps(known: Known[Place]) -> list[str]:
    assert isinstance(known, Partial)
    return [gap.what for gap in known.gaps]


def test_all_catalogs_are_asked_and_what_is_new_is_read(world: World) -> None:
    assert of_type(Complete, world.place()).value.roots == (world.location(T) + "/",)
    assert (world.lake.loads[:1], world.pond.loads) == ([U], [OTHER])


def test_each_answer_compares_all_pointers_and_reads_what_moved(world: World) -> None:
    assert world.owns()
    listings = world.lake.listings
    assert world.owns()
    assert (world.lake.loads, world.pond.loads, world.lake.listings) == ([], [], listings + 1)
    world.pond.set_properties(OTHER, {"x": "y"})
    assert world.owns()
    assert (world.lake.loads, world.pond.loads, world.lake.listings) == ([], [OTHER], listings + 2)


def test_l6_who_may_need_files_of_a_table_that_is_gone_is_asked_however_lately_it_was(world: World) -> None:
    def users() -> frozenset[TableName]:
        known = world.registry.users_now(gone.table_id.uuid, [f"{gone.location}/data/"])
        assert isinstance(known, Complete)
        return known.value

    gone = world.lake.load(T)
    assert users() == {T}
    world.lake.drop(T)
    world.clock.advance(1)
    assert users() == frozenset()
    late = TableName("pond", ("db",), "late")
    world.pond.create(late, properties={"write.data.path": f"{gone.location}/data/x"})
    assert users() == {late}
    unread = TableName("pond", ("db",), "unread")
    world.pond.create(unread)
    world.pond.broken.add(unread)
    known = of_type(Partial, world.registry.users_now(gone.table_id.uuid, [f"{gone.location}/data/"]))
    assert [gap.what for gap in known.gaps] == [str(unread)]


def test_o5_a_table_that_comes_into_its_place_is_seen_right_before_a_delete(world: World) -> None:
    assert world.owns()
    world.clock.advance(1)
    world.pond.create(TableName("pond", ("db",), "late"), properties={"write.data.path": f"{world.location(T)}/data/x"})
    assert not world.owns()
    assert world.owns(U)


def test_o5_a_neighbour_that_moved_into_its_place_is_seen_right_before_a_delete(world: World) -> None:
    assert world.owns()
    world.clock.advance(1)
    world.lake.set_properties(U, {"write.metadata.path": f"{world.location(T)}/metadata"})
    assert not world.owns()
    assert world.lake.loads == [U]


def test_o5_o13_a_neighbour_that_changed_and_cannot_be_read_is_not_known(world: World) -> None:
    assert world.owns()
    world.clock.advance(1)
    world.lake.broken.add(U)
    assert world.owns(), "its pointer is where it was, so it says what it said"
    world.clock.advance(1)
    world.lake.set_properties(U, {"write.metadata.path": f"{world.location(T)}/metadata"})
    assert gaps(world.place()) == [str(U)]
    assert isinstance(world.registry.ownership().place(T), Complete), "as last seen"


def test_l4_of_a_table_that_is_gone_or_not_configured_nothing_is_known(world: World) -> None:
    assert isinstance(world.registry.place_of(T), Complete)
    world.lake.drop(T)
    assert gaps(world.registry.place_of(T)) == [str(T)]
    assert world.registry.ownership().claims[T].is_gone
    world.started("lake")
    assert gaps(world.registry.place_of(OTHER)) == [str(OTHER)]
    world.lake.broken.add(U)
    with pytest.raises(Unreadable):
        world.registry.place_of(U)


def test_l6_one_uuid_in_two_catalogs_owns_nothing(world: World) -> None:
    world.pond._numbers = 0
    world.pond.create(TableName("pond", ("db",), "again"))
    assert [reason.code for reason in of_type(Complete, world.place()).value.findings] == ["shared-uuid"]


def test_l4_a_table_made_anew_takes_the_claim_of_its_name(world: World) -> None:
    first = world.location(T)
    assert world.owns()
    world.lake.drop(T)
    world.lake.create(T)
    assert of_type(Complete, world.place()).value.roots == (world.location(T) + "/",) != (first + "/",)


@pytest.mark.parametrize("name", ["lake", "pond"])
def test_o13_i8_a_catalog_that_is_away_may_have_tables_anywhere(world: World, name: str) -> None:
    metadata = world.lake.load(T)
    away = {"lake": world.lake, "pond": world.pond}[name]
    away.available = False
    known = of_type(Partial, world.registry.place_now(metadata))
    assert [(gap.what, gap.reason.code) for gap in known.gaps] == [(name, "unavailable")]
    away.available = True
    assert world.owns()
    world.clock.advance(1)
    away.available = False
    assert gaps(world.registry.place_now(metadata)) == [name]


def test_o13_a_table_that_cannot_be_read_may_be_anywhere(world: World) -> None:
    world.pond.broken.add(OTHER)
    known = of_type(Partial, world.place())
    assert [(gap.what, gap.reason.code) for gap in known.gaps] == [("pond.db.other", "unreadable")]
    world.rules = PlaceRules(allowed={"pond": ("file:///memory/pond/",)})
    world.started()
    assert world.owns()
    assert gaps(world.registry.ownership().place(OTHER)) == [str(OTHER)]


def test_o13_a_claim_that_was_not_seen_for_long_is_as_good_as_none(world: World) -> None:
    assert world.owns()
    world.clock.advance(CLAIM_FRESH_MS)
    world.pond.broken.add(OTHER)
    assert world.owns(), "its pointer is where it was, so it says what it said"
    world.clock.advance(CLAIM_FRESH_MS)
    world.pond.set_properties(OTHER, {"x": "y"})
    assert gaps(world.place()) == ["pond.db.other"]
    world.pond.broken.clear()
    assert world.owns()
    assert world.pond.loads == [OTHER]


def test_o13_until_all_are_read_nothing_is_known(world: World) -> None:
    for number in range(LOADED_MAX + 5):
        world.pond.create(TableName("pond", ("many",), f"t{number}"))
    known = of_type(Partial, world.place())
    assert {gap.reason.code for gap in known.gaps} == {"not-yet-read"}
    assert 0 < known.gaps_count <= 8
    assert world.owns()


def test_a_catalog_that_does_not_answer_is_not_asked_for_each_of_its_tables(world: World) -> None:
    world.registry.listed("pond", [OTHER, TableName("pond", ("db",), "two")], world.clock.now())
    world.pond.available = False
    metadata = world.lake.load(T)
    world.pond.loads.clear()
    assert gaps(world.registry.place_now(metadata)) == ["pond"]
    assert world.pond.loads == []


@contextmanager
def hanging(world: World) -> Iterator[list[str]]:
    """The pond takes questions and does not answer before this ends; tells by which threads it was asked."""
    asked: list[str] = []
    released = threading.Event()
    answers = world.pond.pointers

    def pointers() -> TablePointers:
        asked.append(threading.current_thread().name)
        released.wait(60)
        return answers()

    world.registry._side_by_side = SideBySide(0.2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.pond, "pointers", pointers)
        try:
            yield asked
        finally:
            released.set()
            for thread in world.registry._side_by_side._hanging.values():
                thread.join(60)


def test_o13_a_catalog_that_hangs_is_not_known_and_keeps_no_other_waiting(world: World) -> None:
    assert world.owns()
    with hanging(world) as asked:
        assert gaps(world.place()) == ["pond"]
        assert len(asked) == 1
        world.lake.set_properties(U, {"x": "y"})
        assert gaps(world.place()) == ["pond"], "it still owes the first answer"
        assert (len(asked), world.lake.loads) == (1, [U]), "the others are asked as ever"
    assert world.owns()


def test_a_table_that_is_not_shown_any_more_keeps_its_files_for_a_time_or_until_a_person_says_so(world: World) -> None:
    """It may have been dropped; or hidden from us, and be in use as ever."""
    world.lake.set_properties(U, {"write.data.path": world.location(T)})
    assert not world.owns()
    world.lake.drop(U)
    world.clock.advance(1)
    assert not world.owns()
    world.clock.advance(GONE_KEPT_MS - 1)
    assert not world.owns()
    world.clock.advance(1)
    assert world.owns()
    world.lake.create(U)
    world.lake.set_properties(U, {"write.data.path": world.location(T)})
    assert not world.owns()
    world.lake.drop(U)
    world.clock.advance(1)
    assert not world.owns()
    world.registry.declare_lost(U, "Ada")
    assert world.owns()
    assert world.registry.book().lost() == ()


def hidden(world: World, **properties: str) -> None:
    """A table with files in the place of the other is not shown any more."""
    world.lake.set_properties(U, {"write.data.path": world.location(T), **properties})
    assert not world.owns()
    world.lake.drop(U)
    world.clock.advance(1)
    assert not world.owns()


def test_a_restart_forgets_nothing_of_a_table_that_is_not_shown(world: World) -> None:
    """The first thing that a removal of that very table asks is where it is."""
    hidden(world)
    world.registry.keep()
    world.started()
    assert gaps(world.registry.place_of(U)) == [str(U)]
    world.registry.keep()
    assert not world.owns()
    world.started()
    assert not world.owns()


def test_it_keeps_its_place_from_what_comes_there_later_however_many_others_are_gone(world: World) -> None:
    """That nothing is beside it when it goes out of sight says nothing of what is there within that time."""
    apart = "s3://b/apart/data"
    world.lake.set_properties(U, {"write.data.path": apart})
    assert world.owns()
    world.lake.drop(U)
    world.clock.advance(1)
    assert world.owns()
    book, gone_at = world.registry.book(), world.clock.now()
    for number in range(2_000):
        made = Claim(
            TableName("lake", ("tmp",), f"t{number}"), f"tmp-{number}", (f"s3://b/tmp/{number}/",), is_gone=True
        )
        book.put(SeenClaim(made, "1.metadata.json", gone_at, gone_at=gone_at))
    world.lake.create(V)
    assert world.owns()
    world.lake.set_properties(T, {"write.data.path": apart})
    assert not world.owns()
    world.clock.advance(GONE_KEPT_MS - 1)
    assert not world.owns()
    world.clock.advance(1)
    assert world.owns()
    assert [seen for seen in book if seen.gone_at is not None] == []


def test_a_clock_that_is_set_back_forgets_nothing_of_it(world: World) -> None:
    hidden(world)
    world.clock.advance(-2)
    assert not world.owns()


def test_another_table_of_its_name_does_not_take_its_claim(world: World) -> None:
    hidden(world)
    world.lake.create(U)
    assert not world.owns()
    assert world.owns(U)
    world.registry.keep()
    world.started()
    assert not world.owns()
    world.clock.advance(GONE_KEPT_MS)
    assert world.owns()


@pytest.mark.parametrize(("reaches", "counts_on"), [((), False), (("s3://b/lender/data/",), True)])
def test_nor_does_one_in_its_very_place_where_it_had_files_elsewhere(
    reaches: tuple[str, ...], *, counts_on: bool
) -> None:
    book, roots = ClaimBook(None), ("s3://b/t/",)
    book.put(SeenClaim(Claim(T, "u1", roots, reaches=reaches), "1.metadata.json", 1))
    book.put(SeenClaim(Claim(T, "u2", roots), "2.metadata.json", 2))
    assert [(one.uuid, one.is_gone) for one in book.claims() if one.name != T] == [("u1", True)] * counts_on


def test_a_listing_that_comes_late_says_nothing_unless_the_clock_was_set_back(world: World) -> None:
    assert world.owns()
    now, book = world.clock.now(), world.registry.book()

    def knows_v(asked_at: int, *names: TableName) -> bool:
        """Whether a listing with a table that was never read says that there is one."""
        world.registry.listed("lake", names, asked_at)
        known = world.registry.ownership().place(T)
        return isinstance(known, Partial) and str(V) in gaps(known)

    assert not knows_v(now - 1, T, U, V)
    assert knows_v(now, T, U, V)
    assert not knows_v(now, T)
    assert (seen := book.get(U)) is not None
    assert seen.gone_at is None, "it was seen behind that"
    world.clock.advance(-10)
    assert knows_v(now - 10, T, U, V)
    world.clock.advance(11)
    assert not knows_v(now + 1, T)
    assert (seen := book.get(U)) is not None
    assert seen.gone_at == now + 1


def test_as_last_seen_tables_that_are_gone_or_lost_are_nowhere_else(world: World) -> None:
    vague = TableName("pond", ("db",), "vague")
    hidden(world)
    world.pond.vague = {vague}
    world.registry.declare_lost(vague, "Ada")
    world.clock.advance(CLAIM_FRESH_MS + 1)
    assert not world.owns()
    assert isinstance(world.registry.ownership().place(T), Complete)


def test_o13_nor_is_a_catalog_known_as_last_seen_that_did_not_answer_since(world: World) -> None:
    assert world.owns()
    assert isinstance(world.registry.ownership().place(T), Complete)
    world.pond.available = False
    assert gaps(world.place()) == gaps(world.registry.ownership().place(T)) == ["pond"]


def test_o13_a_table_in_no_place_is_lost_at_the_pointer_alone_at_which_it_was_declared_so(world: World) -> None:
    world.lake.set_properties(U, {"write.data.path": "relative"})
    assert gaps(world.place()) == [str(U)]
    world.registry.declare_lost(U, "Ada")
    assert world.owns()
    world.lake.set_properties(U, {"write.data.path": "relative", "owner": "Ada"})
    world.registry.saw(world.lake.load(U))
    assert gaps(world.place()) == [str(U)]


def test_o13_a_table_that_can_be_read_again_is_lost_no_more(world: World) -> None:
    assert world.owns()
    world.lake.set_properties(U, {"owner": "Ada"})
    world.lake.broken = {U}
    assert gaps(world.place()) == [str(U)]
    world.registry.declare_lost(U, "Ada")
    assert world.owns()
    world.lake.broken = set()
    world.registry.saw(world.lake.load(U))
    assert world.registry.book().lost() == ()


def test_l5_a_table_whose_statistics_are_damaged_may_need_any_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = world.lake.load
    monkeypatch.setattr(world.lake, "load", lambda name: replace(load(name), statistics_problem="it is cut off"))
    known = of_type(Partial, world.registry.place_now(world.lake.load(T)))
    assert {(gap.what, gap.reason.code) for gap in known.gaps} == {(str(one), "statistics-damaged") for one in (T, U)}


@pytest.mark.parametrize(("times", "missing"), [(1, []), (9, ["changed"])])
def test_o8_a_table_that_moves_while_all_are_asked_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch, times: int, missing: list[str]
) -> None:
    ask, left = world.registry._side_by_side.ask, [times]

    def asked(*args: Any) -> Any:
        found = ask(*args)
        if left[0]:
            left[0] -= 1
            world.lake.append(U, [file(f"{world.location(U)}/data/{left[0]}.parquet")])
            world.registry.saw(world.lake.load(U))
        return found

    monkeypatch.setattr(world.registry._side_by_side, "ask", asked)
    known = world.place()
    assert ([gap.reason.code for gap in known.gaps] if isinstance(known, Partial) else []) == missing


def test_a_copy_of_it_elsewhere_does_not_take_its_claim(world: World) -> None:
    hidden(world)
    world.pond._numbers = 1
    world.pond.create(TableName("pond", ("db",), "copy"))
    assert not world.owns()
    assert world.owns(TableName("pond", ("db",), "copy"))


def test_o5_what_is_said_while_a_look_reads_on_is_not_undone_by_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.lake.append(T, [file("data/1.parquet")])
    metadata, book, go_on = world.lake.load(T), world.registry.book(), Reach.go_on
    world.registry.saw(metadata)
    withdrawn = (GoneUuid("u", 0, "Ada", ()),)

    def meanwhile(reach: Reach, reads_max: int) -> None:
        seen = not_none(book.get(T))
        book.put(replace(seen, gone=withdrawn))
        go_on(reach, reads_max)

    monkeypatch.setattr(Reach, "go_on", meanwhile)
    world.registry.read(world.lake, metadata, AlreadyRead())
    seen = not_none(book.get(T))
    assert (seen.is_complete, seen.gone) == (True, withdrawn)


def test_o5_a_look_that_ends_behind_a_later_one_does_not_undo_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.lake.append(T, [file("data/1.parquet")])
    earlier, book, go_on = world.lake.load(T), world.registry.book(), Reach.go_on
    world.registry.saw(earlier)

    def meanwhile(reach: Reach, reads_max: int) -> None:
        monkeypatch.setattr(Reach, "go_on", go_on)
        world.lake.append(T, [file(f"{world.location(U)}/data/borrowed.parquet")])
        world.registry.saw(world.lake.load(T))
        world.registry.read(world.lake, world.lake.load(T), AlreadyRead())
        go_on(reach, reads_max)

    monkeypatch.setattr(Reach, "go_on", meanwhile)
    world.registry.read(world.lake, earlier, AlreadyRead())
    seen = not_none(book.get(T))
    assert (seen.metadata_location, seen.is_complete) == (world.lake.load(T).metadata_location, True)
    assert seen.claim.reaches == (f"{world.location(U)}/data/",)


class TestOtherFormats:
    """Tables of other formats in a catalog, as a Hive Metastore has them."""

    def test_their_places_are_owned_by_no_table(self, world: World) -> None:
        assert world.owns()
        world.pond.others = {V: [f"{world.location(T)}/data/x"]}
        assert not world.owns()
        assert world.owns(U)
        known = of_type(Partial, world.registry.users_now("", [f"{world.location(T)}/"]))
        assert [gap.what for gap in known.gaps] == [str(V)]
        assert known.found == {T}
        world.pond.others = {}
        assert world.owns()

    def test_until_their_catalog_has_answered_they_may_be_anywhere(self, world: World) -> None:
        world.pond.others = {V: [f"{world.location(T)}/data/x"]}
        world.rules = PlaceRules(allowed={"pond": ("file:///memory/pond/",)})
        world.started()
        metadata = world.lake.load(T)
        world.pond.available = False
        assert gaps(world.registry.place_now(metadata)) == ["pond"]
        world.pond.available = True
        assert not world.owns()
        world.pond.available = False
        assert of_type(Complete, world.registry.place_now(metadata)).value.roots == ()

    def test_nor_are_they_elsewhere_because_their_catalog_hangs(self, world: World) -> None:
        """As a metastore does that takes the question and never answers: it is as unknown as one that is away."""
        world.pond.others = {V: [f"{world.location(T)}/data/x"]}
        world.rules = PlaceRules(allowed={"pond": ("file:///memory/pond/",)})
        world.started()
        with hanging(world):
            assert gaps(world.place()) == ["pond"]
        assert not world.owns()
        with hanging(world):
            known = world.place()
            assert isinstance(known, Complete), "where they were by its last answer"
            assert known.value.roots == ()

    def test_a_late_answer_does_not_replace_a_later_one(self) -> None:
        book, one = ClaimBook(None), Claim(V, None, ("s3://b/t/",))
        assert book.put_others("pond", (one,), 10, 10)
        assert not book.put_others("pond", (), 9, 11)
        assert book.others() == (one,)
        assert book.put_others("pond", (), 5, 6), "the clock was set back"

    def test_what_is_listed_and_not_described_and_is_no_iceberg_table_is_not_known(self, world: World) -> None:
        vague = TableName("pond", ("db",), "vague")
        world.pond.vague = {vague}
        assert gaps(world.place()) == [str(vague)]
        world.registry.declare_lost(vague, "Ada")
        assert world.owns()
        world.registry.withdraw_lost(vague)
        assert gaps(world.place()) == [str(vague)]
        with pytest.raises(NotFound):
            world.registry.declare_lost(TableName("pond", ("db",), "nowhere"), "Ada")


def test_a_table_that_was_renamed_is_not_taken_for_two(world: World) -> None:
    assert world.owns()
    world.lake.rename(T, V)
    world.clock.advance(1)
    assert world.owns(V)
    assert world.registry.namesakes(V, world.lake.load(V).table_id.uuid) == frozenset()


def test_a_table_that_is_shown_again_counts_as_it_is_then(world: World) -> None:
    uuid = world.lake.load(U).table_id.uuid
    assert world.owns()
    world.clock.advance(1)
    world.registry.listed("lake", [T], world.clock.now())
    assert world.registry.ownership().claims[U].is_gone
    assert world.owns()
    assert not world.registry.ownership().claims[U].is_gone
    assert world.registry.namesakes(T, uuid) == {U}


def test_a_table_that_came_after_the_listing_began_is_not_forgotten_by_it(world: World) -> None:
    asked_at = world.clock.now()
    world.registry.saw(world.lake.load(U))
    world.registry.listed("lake", [T], asked_at)
    assert U in world.registry.ownership().claims
    world.clock.advance(1)
    world.registry.listed("lake", [T], world.clock.now())
    assert world.registry.ownership().claims[U].is_gone


def test_o13_as_last_seen_listings_grow_old(world: World) -> None:
    assert world.owns()
    assert isinstance(world.registry.ownership().place(T), Complete)
    world.clock.advance(LISTING_FRESH_MS)
    assert gaps(world.registry.ownership().place(T)) == ["lake", "pond"]
    world.clock.advance(-LISTING_FRESH_MS - 1)
    assert {"lake", "pond"} < set(gaps(world.registry.ownership().place(T))), "the clock was set back"


def test_nothing_is_judged_anew_as_long_as_no_claim_changes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world.owns()
    judged = 0

    def counted(*args: Any) -> Ownership:
        nonlocal judged
        judged += 1
        return ownership(*args)

    monkeypatch.setattr(registry_module, "ownership", counted)
    world.lake.append(T, [file(f"{world.location(T)}/data/a")])
    world.registry.saw(world.lake.load(T))
    assert (world.owns(), judged) == (True, 0)
    world.lake.set_properties(T, {"gc.enabled": "false"})
    assert (world.owns(), judged) == (False, 1)


class TestStore:
    def test_what_was_seen_outlives_the_server(self, world: World) -> None:
        world.lake.set_properties(U, {"write.data.path": world.location(T)})
        assert not world.owns()
        world.registry.keep()
        world.started()
        assert not world.owns()
        assert (world.lake.loads, world.pond.loads) == ([], [])

    def test_a_table_dropped_while_no_server_ran_is_forgotten(self, world: World) -> None:
        assert world.owns()
        world.registry.keep()
        world.lake.drop(U)
        world.clock.advance(1)
        world.started()
        assert world.owns()
        world.clock.advance(GONE_KEPT_MS)
        assert world.owns()
        world.registry.keep()
        assert {seen.claim.name for seen in world.claims.claims()} == {T, OTHER}

    def test_o5_tables_of_a_catalog_that_is_not_configured_any_more_still_count(self, world: World) -> None:
        world.pond.set_properties(OTHER, {"write.data.path": world.location(T)})
        assert not world.owns()
        world.registry.keep()
        world.started("lake")
        assert not world.owns()
        world.clock.advance(UNCONFIGURED_KEPT_MS)
        world.started("lake")
        assert world.owns()
        world.registry.keep()
        assert OTHER not in {seen.claim.name for seen in world.claims.claims()}

    def test_it_is_written_only_what_changed_and_now_and_then_that_nothing_did(self, world: World) -> None:
        written: list[int] = []

        class Counted(SqlClaims):
            def keep(self, seen: Sequence[SeenClaim], *told: Any) -> Mapping[TableName, SeenClaim]:
                written.append(len(seen))
                return super().keep(seen, *told)

        world.claims = Counted(new_store())
        world.started()
        assert world.owns()
        for _ in range(3):
            world.registry.saw(world.lake.load(T))
            world.registry.keep()
        world.clock.advance(KEPT_AGAIN_MS)
        world.registry.saw(world.lake.load(T))
        world.registry.keep()
        assert written == [3, 0, 0, 1]

    def test_a_store_that_is_away_loses_nothing_and_says_nothing(self, world: World) -> None:
        class Away(SqlClaims):
            is_away = True

            def claims(self) -> Iterator[SeenClaim]:
                if self.is_away:
                    raise StoreUnavailable("away")
                return super().claims()

            def keep(self, *told: Any) -> Mapping[TableName, SeenClaim]:
                if self.is_away:
                    raise StoreUnavailable("away")
                return super().keep(*told)

        world.claims = away = Away(new_store())
        world.started()
        with pytest.raises(StoreUnavailable):
            world.place()
        with pytest.raises(StoreUnavailable):
            world.registry.saw(world.lake.load(T))
        away.is_away = False
        world.registry.saw(world.lake.load(T))
        away.is_away = True
        with pytest.raises(StoreUnavailable):
            world.registry.keep()
        away.is_away = False
        world.registry.keep()
        assert [seen.claim.name for seen in away.claims()] == [T]
        assert world.owns()


class TestImports:
    """Files of one table in another one's place, as the looks of the loop find them in manifests."""

    @pytest.fixture
    def house(self) -> Lakehouse:
        house = Lakehouse()
        house.create(T)
        house.create(U)
        lent, own = (house.catalog.load(name).location for name in (T, U))
        house.catalog.append(U, [imported(f"{own}/data/own")])
        house.catalog.append(U, [imported(f"{lent}/data/x=1/lent"), imported("s3://raw/landing/day=1/f")])
        return house

    def look(self, house: Lakehouse) -> dict[TableName, list[str]]:
        house.control.maintainer.look(T)
        house.control.maintainer.look(U)
        found = house.control.registry.ownership().findings
        return {name: [reason.code for reason in reasons] for name, reasons in found.items()}

    def test_l5_imported_files_take_the_lenders_place_and_are_not_the_borrowers(self, house: Lakehouse) -> None:
        assert self.look(house) == {T: ["lends-files"]}
        lent = house.catalog.load(T).location
        known = house.control.registry.ownership().place(U)
        assert isinstance(known, Partial), "the catalog has not been listed"
        assert known.found.not_ours == (f"{lent}/data/x=1/", "s3://raw/landing/day=1/")

    def test_l5_it_is_remembered_while_nothing_comes_or_goes_and_by_the_next_server(self, house: Lakehouse) -> None:
        claims = SqlClaims(new_store())
        self.look(house)
        house.control.registry._book.store = claims
        house.control.registry.keep()
        assert self.look(house) == {T: ["lends-files"]}
        later = Registry(dict(house.catalogs), house.clock, None, claims)
        later.saw(house.catalog.load(U))
        assert [reason.code for reason in later.ownership().findings[T]] == ["lends-files"]

    def test_l5_until_no_snapshot_is_left_that_may_need_them(self, house: Lakehouse) -> None:
        self.look(house)
        lent, own = (house.catalog.load(name).location for name in (T, U))
        house.catalog.overwrite(U, add=[imported(f"{own}/data/copied")], remove=[f"{lent}/data/x=1/lent"])
        assert self.look(house) == {T: ["lends-files"]}, "older snapshots need it"
        snapshots = house.catalog.load(U).snapshots
        house.catalog.expire(U, [snapshots[0].snapshot_id])
        assert self.look(house) == {T: ["lends-files"]}
        house.catalog.expire(U, [one.snapshot_id for one in snapshots[1:-1]])
        assert self.look(house) == {T: ["lends-files"]}, "all is read again no sooner than this"
        house.clock.advance(READ_AGAIN_MS)
        assert self.look(house) == {}

    def test_l5_a_branch_may_need_them_still(self, house: Lakehouse) -> None:
        self.look(house)
        lent, own = (house.catalog.load(name).location for name in (T, U))
        house.catalog.set_ref(U, "side", house.catalog.load(U).snapshots[-1].snapshot_id)
        side = house.catalog.append(U, [imported(f"{own}/data/side")], branch="side")
        house.catalog.overwrite(U, add=[imported(f"{own}/data/copied")], remove=[f"{lent}/data/x=1/lent"])
        self.look(house)
        main = house.catalog.load(U).current_snapshot_id
        others = [one.snapshot_id for one in house.catalog.load(U).snapshots]
        house.catalog.expire(U, [one for one in others if one not in (main, side.snapshot_id)])
        assert self.look(house) == {T: ["lends-files"]}

    def test_l5_what_only_a_tag_or_an_older_snapshot_needs_counts(self, house: Lakehouse) -> None:
        lent, own = (house.catalog.load(name).location for name in (T, U))
        imported_at = not_none(house.catalog.load(U).current_snapshot_id)
        house.catalog.set_ref(U, "kept", imported_at, kind=RefKind.TAG)
        house.catalog.overwrite(U, add=[imported(f"{own}/data/copied")], remove=[f"{lent}/data/x=1/lent"])
        assert self.look(house) == {T: ["lends-files"]}, "no look saw it in main"

    def test_l5_what_was_rolled_back_counts_while_another_server_looks_at_the_same_moment(
        self, house: Lakehouse
    ) -> None:
        """Whatever this one has read of the store by then, and whatever it reads behind that."""
        tables, first = house.tables, house.catalog.load(U).snapshots[0]
        house.control.observer.observe(U)
        house.catalog.set_ref(U, "main", first.snapshot_id)
        registry = Registry(dict(house.catalogs), house.clock)
        reads: list[str] = []

        class Meanwhile:
            """The store, of which another server asks as well, and writes, right behind the first answer."""

            def __getattr__(self, name: str) -> Any:
                def asked(*given: Any, **named: Any) -> Any:
                    found = getattr(tables, name)(*given, **named)
                    if not reads:
                        house.control.observer.observe(U)
                    reads.append(name)
                    return found

                return asked

        store: Any = Meanwhile()
        observer = Observer(dict(house.catalogs), store, house.clock, registry=registry)
        with suppress(LookLost):
            observer.observe(U)
        observer.observe(U)
        registry.saw(house.catalog.load(T))
        assert [one.code for one in registry.ownership().findings[T]] == ["lends-files"]
        assert reads

    def test_each_manifest_is_read_once(self, house: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[str] = []
        summarize = house.catalog.summarize

        def counted(table: Any, snapshot: Any, keys: Any, runs: Any = frozenset()) -> Any:
            read.extend(key.path for key in keys)
            return summarize(table, snapshot, keys, runs)

        monkeypatch.setattr(house.catalog, "summarize", counted)
        self.look(house)
        assert len(read) == len(set(read)) == 2
        own = house.catalog.load(U).location
        for number in range(3):
            house.catalog.append(U, [imported(f"{own}/data/{number}")])
        self.look(house)
        assert len(read) == len(set(read)) == 5

    def test_l5_files_stay_a_tables_where_it_no_longer_says_that_it_lies(self, house: Lakehouse) -> None:
        registry, moved = house.control.registry, house.catalog.load(U)
        self.look(house)
        data = f"{moved.location}/data/"
        registry.saw(replace(moved, location="s3://elsewhere/of/u"))
        found = registry.ownership().users("", [data])
        assert U in (found.found if isinstance(found, Partial) else found.value)

    def test_l5_snapshots_that_kept_their_ids_and_have_other_files_are_read_again(self, house: Lakehouse) -> None:
        self.look(house)
        moved = house.catalog.load(U)
        lists = [replace(one, manifest_list=f"{one.manifest_list}.moved") for one in moved.snapshots]
        house.control.registry.saw(replace(moved, snapshots=tuple(lists)))
        assert [
            one.reason.code for one in house.control.registry.ownership().missing["lake"] if one.what == str(U)
        ] == ["not-all-read"]

    def test_o13_a_table_of_which_a_snapshot_cannot_be_read_may_need_any_file(self, house: Lakehouse) -> None:
        old = house.catalog.load(U).snapshots[0]
        house.catalog.damage(old.manifest_list)
        house.control.loop.round()
        known = of_type(Partial, house.control.registry.ownership().place(T))
        assert [(gap.what, gap.reason.code) for gap in known.gaps] == [(str(U), "unreadable")]
        known = of_type(Partial, house.control.registry.place_of(T))
        assert known.gaps[0].what == str(U)

    def test_o13_a_table_with_many_snapshots_is_read_bit_by_bit(
        self, house: Lakehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(registry_module, "LOOK_READS_MAX", 1)
        monkeypatch.setattr(registry_module.Registry.read, "__defaults__", (None, 1))
        monkeypatch.setattr(registry_module, "ASKED_READS_MAX", 2)
        own = house.catalog.load(U).location
        for number in range(3):
            house.catalog.append(U, [imported(f"{own}/data/{number}")])
        house.control.maintainer.look(T)
        known = of_type(Partial, house.control.registry.place_of(T))
        assert [(gap.what, gap.reason.code) for gap in known.gaps] == [(str(U), "not-all-read")]
        for _ in range(5):
            read = house.control.registry.place_of(T)
        assert isinstance(read, Complete)
        assert [reason.code for reason in read.value.findings] == ["lends-files"]

    def test_l4_a_table_made_anew_has_imported_nothing_but_the_one_before_may_be_there(self, house: Lakehouse) -> None:
        assert self.look(house) == {T: ["lends-files"]}
        house.catalog.drop(U)
        house.create(U)
        assert self.look(house) == {T: ["lends-files"]}
        before = next(claim.name for claim in house.control.registry.ownership().claims.values() if claim.is_gone)
        house.control.registry.declare_lost(before, "Ada")
        assert self.look(house) == {}


class TestInTheLoop:
    def test_o13_looks_of_the_loop_tell_whose_place_is_whose(self) -> None:
        house = Lakehouse(others=("pond",))
        house.create(T)
        house.create(U, {"write.data.path": house.catalog.load(T).location})
        own = TableName("pond", ("db",), "own")
        house.catalogs["pond"]._numbers = 1_000
        house.create(own)
        house.control.loop.round()
        found = house.control.registry.ownership()
        assert {name: [reason.code for reason in reasons] for name, reasons in found.findings.items()} == {
            T: ["shared-location"],
            U: ["shared-location"],
        }
        assert isinstance(found.place(own), Complete)

    def test_o13_a_table_that_the_loop_cannot_read_is_missing(self) -> None:
        house = Lakehouse()
        house.create(T)
        house.create(U)
        house.catalog.damage(house.catalog.load(U).metadata_location)
        house.control.loop.round()
        known = of_type(Partial, house.control.registry.ownership().place(T))
        assert [(gap.what, gap.reason.code) for gap in known.gaps] == [("lake.db.u", "unreadable")]

    def test_a_catalog_that_is_not_configured_says_nothing_of_its_tables(self) -> None:
        house = Lakehouse()
        house.create(T)
        house.control.loop.round()
        with pytest.raises(NotFound):
            house.control.maintainer.look(TableName("sea", ("db",), "t"))
        house.control.registry.failed(T, Reason("unavailable", "away"))
        assert isinstance(house.control.registry.ownership().place(T), Complete)
