"""Which server has which buckets: as many as any other but for one, by the fewest moves that there can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product

from hypothesis import example, given
from hypothesis import strategies as st

from icewright.core.servers import BUCKETS, beginnings, bucket_of_digest
from icewright.server.cluster.assignment import assign, is_balanced

Old = dict[int, int | None]


def moves(old: Mapping[int, int | None], new: Mapping[int, int]) -> int:
    return sum(old[bucket] != session for bucket, session in new.items())


def counts(new: Mapping[int, int], sessions: set[int]) -> list[int]:
    found = Counter(new.values())
    return [found[session] for session in sorted(sessions)]


def fewest_moves(old: Old, sessions: set[int]) -> int:
    """By trying all assignments."""
    buckets = sorted(old)
    tried = (dict(zip(buckets, owners, strict=True)) for owners in product(sorted(sessions), repeat=len(buckets)))
    return min(moves(old, new) for new in tried if max(counts(new, sessions)) - min(counts(new, sessions)) <= 1)


owned = st.lists(st.sampled_from([None, 1, 2, 3, 4]), min_size=1, max_size=6).map(lambda o: dict(enumerate(o)))


@given(owned, st.sets(st.sampled_from([1, 2, 3, 4, 5]), min_size=1, max_size=4), st.data())
@example({0: 1, 1: 1, 2: 1, 3: 2}, {1, 2}, None)
def test_loads_differ_by_one_bucket_at_most_and_the_moves_are_the_fewest(
    old: Old, sessions: set[int], data: st.DataObject | None
) -> None:
    tables = {} if data is None else {bucket: data.draw(st.integers(0, 9)) for bucket in old}
    new = assign(old, sessions, tables)
    assert new.keys() == old.keys()
    assert set(new.values()) <= sessions
    assert max(counts(new, sessions)) - min(counts(new, sessions)) <= 1
    assert moves(old, new) == fewest_moves(old, sessions)
    assert assign(new, sessions, tables) == new, "what is assigned stays so, however many tables there are"
    assert is_balanced(old, sessions) == (moves(old, new) == 0)


@given(st.lists(st.integers(1, 20), min_size=BUCKETS, max_size=BUCKETS), st.sets(st.integers(1, 20), min_size=1))
def test_of_all_buckets_no_more_move_than_must(owners: list[int], sessions: set[int]) -> None:
    """Who has too many gives these away, and what the dead had is given away: nothing else moves."""
    old: Old = dict(enumerate(owners))
    floor, over = divmod(BUCKETS, len(sessions))
    had = sorted((Counter(owners)[session] for session in sessions), reverse=True)
    stay = sum(min(count, floor + (place < over)) for place, count in enumerate(had))
    assert moves(old, assign(old, sessions)) == BUCKETS - stay


def test_who_joins_gets_a_share_and_who_leaves_gives_no_others_away() -> None:
    one = assign(dict.fromkeys(range(BUCKETS)), {1})
    assert counts(one, {1}) == [BUCKETS]
    three = assign({**one}, {1, 2, 3})
    assert (counts(three, {1, 2, 3}), moves({**one}, three)) == ([43, 43, 42], 85)
    two = assign({**three}, {2, 3})
    assert moves({**three}, two) == 43
    assert assign({**two}, set()) == {}


def test_what_moves_evens_out_how_many_tables_servers_have() -> None:
    """The first has most tables in one bucket: it gives that one away, and not the empty one."""
    tables = {0: 90, 1: 10, 2: 10, 3: 0}
    assert assign(dict.fromkeys(range(4), 1), {1, 2}, tables) == {1: 1, 2: 1, 3: 2, 0: 2}
    # What is given away goes to whoever has fewest: not two buckets full of tables to the same server.
    given = assign({0: None, 1: None, 2: 1, 3: 2}, {1, 2}, {0: 50, 1: 1, 2: 60, 3: 0})
    assert given == {2: 1, 3: 2, 0: 2, 1: 1}


def test_each_digest_is_in_the_bucket_whose_beginning_it_has() -> None:
    found = Counter(bucket_of_digest(f"{value:02x}" + "f" * 62) for value in range(256))
    assert found == dict.fromkeys(range(BUCKETS), 2)
    for bucket in range(BUCKETS):
        assert [bucket_of_digest(beginning) for beginning in beginnings([bucket]).split()] == [bucket, bucket]
