"""Writers of any speed beside passes at any time: who is quicker than the floor never loses a file."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.model.iceberg.locations import CanonicalPath
from tests.builders.orphan_lake import DAY_MS, HOUR_MS, OrphanLake, planned
from tests.conftest import CAMPAIGN

SPAN_H = 30 * 24
"""Of a schedule, in hours."""
writers = st.lists(st.tuples(st.integers(0, SPAN_H), st.integers(0, 10 * 24)), max_size=8)
passes = st.lists(st.integers(0, SPAN_H + 10 * 24), max_size=12, unique=True)


@settings(max_examples=6_000 if CAMPAIGN else 60, deadline=None)
@given(writers, passes)
def test_o3_a_writer_that_is_quicker_than_the_floor_loses_nothing(
    made: list[tuple[int, int]], looks: list[int]
) -> None:
    """Files are removed the moment that they may go; ``made`` is when each was written and how long until its commit.

    A file that was gone before its commit is that of a writer slower than seven days.
    """
    lake = OrphanLake()
    table = lake.table()
    table.commit("data/first.parquet")
    events = [(at, "write", number) for number, (at, _) in enumerate(made)]
    events += [(at + took, "commit", number) for number, (at, took) in enumerate(made)]
    events += [(at, "look", 0) for at in looks]
    now, removed = 0, set[int]()
    for at, what, number in sorted(events, key=lambda event: event[0]):
        lake.pass_time((at - now) * HOUR_MS)
        now = at
        if what == "write":
            lake.write(f"s3://b/t/data/{number}.parquet")
        elif what == "commit" and number not in removed:
            table.commit(f"data/{number}.parquet")
        elif what == "look":
            gone = planned(lake.look(table))
            assert not gone & table.needed()
            for path in gone:
                lake.storage.remove(CanonicalPath(path))
                removed.add(int(path.rpartition("/")[2].partition(".")[0]))
    for number in removed:
        assert made[number][1] * HOUR_MS >= 7 * DAY_MS
