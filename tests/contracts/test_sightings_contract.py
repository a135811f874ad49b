"""What every store of sightings must do, sentence by sentence of the port."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.core.errors import Conflict
from icewright.model.actions.orphans import FinishedPass, SeenFiles, SeenOrphans, Sighting
from icewright.model.iceberg.locations import CanonicalPath
from tests.contracts.samples import HOSTILE_PARTS, table_id
from tests.contracts.stores import AND_IN_MEMORY, Stores, stores_on
from tests.doubles.clock import ManualClock

ONE, OTHER = table_id(1), table_id(2)
fresh = count(100)


@pytest.fixture(params=AND_IN_MEMORY)
def stores(request: pytest.FixtureRequest, clock: ManualClock) -> Stores:
    return stores_on(request.param, request, clock)


@pytest.fixture
def store(stores: Stores) -> SqlSightings:
    return stores.sightings()


def sighting(name: str, **how: int | str | None) -> Sighting:
    facts = {"size_bytes": 1, "modified_at": 2, "etag": "e", "version_id": None}
    seen = {"first_seen_at": 3, "last_seen_at": 4, "passes": 1}
    return Sighting(CanonicalPath(f"s3://b/{name}"), **{**facts, **seen, **how})  # type: ignore[arg-type]  # a sample


def finished(number: int, files: int = 1) -> FinishedPass:
    seen = SeenOrphans(SeenFiles(files, 5), first_seen_at=3)
    return FinishedPass(
        number, 10 * number, listing_is_complete=True, files=files, size_bytes=5, existed_at=6, seen=seen
    )


def test_the_clock_is_the_stores(stores: Stores, clock: ManualClock) -> None:
    before = stores.sightings().now()
    clock.advance(5)
    assert stores.sightings().now() == before + 5


def test_before_the_first_pass_nothing_is_known(store: SqlSightings) -> None:
    assert store.finished(ONE) is None
    assert list(store.sightings(ONE)) == []


def test_a_pass_counts_once_it_is_finished_and_for_everybody(stores: Stores) -> None:
    store = stores.sightings()
    number = store.begin(ONE)
    store.add(ONE, number, [sighting("a")])
    store.add(ONE, number, [sighting("b", etag=None, modified_at=None, version_id="v")])
    assert store.finished(ONE) is None
    assert list(stores.sightings().sightings(ONE)) == []
    store.finish(ONE, finished(number))
    assert stores.sightings().finished(ONE) == finished(number)
    seen = {one.path: one for one in stores.sightings().sightings(ONE)}
    expected = [sighting("a"), sighting("b", etag=None, modified_at=None, version_id="v")]
    assert seen == {one.path: one for one in expected}
    assert list(stores.sightings().sightings(OTHER)) == []


def test_what_a_pass_does_not_put_is_forgotten(store: SqlSightings) -> None:
    for names in ("abc", "bd"):
        number = store.begin(ONE)
        store.add(ONE, number, [sighting(name) for name in names])
        store.finish(ONE, finished(number, len(names)))
    assert {one.path for one in store.sightings(ONE)} == {"s3://b/b", "s3://b/d"}


def test_a_pass_that_never_finishes_changes_nothing(store: SqlSightings) -> None:
    number = store.begin(ONE)
    store.add(ONE, number, [sighting("a")])
    store.finish(ONE, finished(number))
    store.add(ONE, store.begin(ONE), [sighting("lost")])
    assert [one.path for one in store.sightings(ONE)] == ["s3://b/a"]
    assert store.finished(ONE) == finished(number)
    again = store.begin(ONE)
    store.add(ONE, again, [sighting("c")])
    store.finish(ONE, finished(again))
    assert [one.path for one in store.sightings(ONE)] == ["s3://b/c"]


def test_numbers_are_never_used_twice(stores: Stores) -> None:
    numbers = [stores.sightings().begin(ONE) for _ in range(3)]
    assert numbers == sorted(set(numbers))


def test_of_two_passes_at_once_the_first_one_is_told_that_it_is_too_late(store: SqlSightings) -> None:
    first = store.begin(ONE)
    store.add(ONE, first, [sighting("first")])
    second = store.begin(ONE)
    store.add(ONE, second, [sighting("second")])
    with pytest.raises(Conflict):
        store.add(ONE, first, [sighting("late")])
    with pytest.raises(Conflict):
        store.finish(ONE, finished(first))
    store.finish(ONE, finished(second))
    assert [one.path for one in store.sightings(ONE)] == ["s3://b/second"]
    with pytest.raises(Conflict):
        store.add(ONE, second, [sighting("after")])
    with pytest.raises(Conflict):
        store.finish(ONE, finished(second))
    with pytest.raises(Conflict):
        store.finish(OTHER, finished(1))


def test_a_pass_may_see_nothing(store: SqlSightings) -> None:
    number = store.begin(ONE)
    store.finish(ONE, finished(number, 0))
    assert list(store.sightings(ONE)) == []
    assert store.finished(ONE) == finished(number, 0)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from(HOSTILE_PARTS), st.text(max_size=9)),
            st.integers(0, 2**63 - 1),
            st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
            st.one_of(st.none(), st.text(max_size=9)),
        ),
        max_size=9,
        unique_by=lambda row: row[0],
    )
)
def test_whatever_a_file_is_called_it_is_remembered(
    store: SqlSightings, rows: list[tuple[str, int, int | None, str | None]]
) -> None:
    table = table_id(next(fresh))
    number = store.begin(table)
    put = [sighting(name, size_bytes=size, modified_at=at, etag=etag) for name, size, at, etag in rows]
    store.add(table, number, put)
    store.finish(table, finished(number))
    assert {one.path: one for one in store.sightings(table)} == {one.path: one for one in put}


def test_many_orphans_take_little_room(store: SqlSightings) -> None:
    """A table with millions of them must not break the store; chunks are read one after the other."""
    number = store.begin(ONE)
    for chunk in range(4):
        names = [f"data/day=2024-01-{n % 28:02}/{n:05}-{chunk}-{n * 7919:032x}.parquet" for n in range(2_500)]
        store.add(ONE, number, [sighting(name, first_seen_at=chunk) for name in names])
    store.finish(ONE, finished(number, 10_000))
    reading = store.sightings(ONE)
    assert next(reading).passes == 1
    assert 1 + sum(1 for _ in reading) == 10_000
