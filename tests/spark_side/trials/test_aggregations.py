"""What queries sum up is recorded, with how many rows such sums would have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import Filter, QueryRecord, TableRead
from icewright.model.queries.recommendations import (
    AGGREGATIONS_MAX,
    RECORDED_NAME_LENGTH_MAX,
    AggregationCandidate,
    Verdict,
)
from icewright_spark.trials.aggregations import AGGREGATE_LENGTH_MAX, AGGREGATES_MAX
from icewright_spark.trials.distinct import combined, distinct_among
from icewright_spark.trials.recommend import recommend
from tests.spark_side.trials.trial_tables import TABLE, Made, equals, in_files, number, queries

ROWS = 40_000


def made() -> Made:
    rng = np.random.default_rng(4)
    return in_files(
        {
            "id": rng.permutation(ROWS),
            "city": rng.integers(0, 200, ROWS),
            "kind": pa.array([f"k{one}" for one in rng.integers(0, 5, ROWS).tolist()]),
            "price": rng.lognormal(size=ROWS),
        },
        20,
    )


def asked(count: int, *filters: Filter, first: int = 0, table: TableName = TABLE, **said: Any) -> list[QueryRecord]:
    read = TableRead(table, filters=filters, **said)
    return [replace(query, tables=(read,)) for query in queries(count, lambda _: (), first=first)]


def recorded(*found: list[QueryRecord]) -> tuple[AggregationCandidate, ...]:
    table = made()
    everything = [query for some in found for query in some]
    return recommend(TABLE, table.sample(100), table.listed(), everything).aggregations


def test_groups_and_filters_are_the_dimensions_and_cells_are_their_combinations() -> None:
    by_city = asked(30, equals("kind", number(1)), group_by=("City",), aggregates=("sum(price)",), bytes_read=1_000)
    by_kind = asked(5, group_by=("kind",), aggregates=("count(*)", "max(price)"))
    by_id = asked(50, group_by=("id",), aggregates=("count(*)",), bytes_read=-5)
    first, second, last = recorded(by_city, by_kind, by_id)
    assert (first.dimensions, first.aggregates, first.queries) == (("city", "kind"), ("sum(price)",), 30)
    assert (first.bytes_read, first.rows) == (30_000, ROWS)
    assert first.cells == pytest.approx(1_000, rel=0.1)
    assert (second.dimensions, second.cells, second.queries) == (("kind",), 5, 5)
    assert second.aggregates == ("count(*)", "max(price)")
    assert last.dimensions == ("id",)
    assert last.cells > ROWS / 2  # as good as no gain: it comes last, however often it ran
    assert last.bytes_read == 0


def test_queries_that_cannot_be_answered_so_are_not_recorded() -> None:
    assert recorded(asked(30, equals("city", number(1)))) == ()  # no sum
    assert recorded(asked(30, group_by=("upper(kind)",), aggregates=("count(*)",))) == ()
    assert recorded(asked(30, equals("gone", number(1)), group_by=("city",))) == ()
    assert recorded(asked(30, aggregates=("count(*)",))) == ()  # of the whole table: the metadata has it
    failed = [replace(query, succeeded=False) for query in asked(30, group_by=("city",))]
    other = asked(30, table=TableName("lake", ("shop",), "others"), group_by=("city",))
    assert recorded(failed, other) == ()


def test_what_is_recorded_is_bounded() -> None:
    long = tuple(f"sum({'x' * 200}{place})" for place in range(30)) + tuple(f"f{place}(price)" for place in range(30))
    (one,) = recorded(asked(3, group_by=("city",), aggregates=long))
    assert len(one.aggregates) == AGGREGATES_MAX
    assert max(map(len, one.aggregates)) <= AGGREGATE_LENGTH_MAX
    wide = in_files({f"c{place}": np.arange(200) % 3 for place in range(20)}, 2)
    several = [asked(1, group_by=(f"c{place}",)) for place in range(20)]
    several.append(asked(9, group_by=tuple(f"c{place}" for place in range(11))))
    found = recommend(TABLE, wide.sample(80), wide.listed(), [query for some in several for query in some]).aggregations
    assert len(found) == AGGREGATIONS_MAX
    assert all(len(candidate.dimensions) == 1 for candidate in found)


def test_a_column_of_a_name_that_is_too_long_is_not_recorded() -> None:
    """The server would refuse the whole answer, each time."""
    fits, long = "f" * RECORDED_NAME_LENGTH_MAX, "l" * (RECORDED_NAME_LENGTH_MAX + 1)
    table = in_files({name: np.arange(200) % 3 for name in (fits, long)}, 2)
    several = asked(3, group_by=(fits,)) + asked(3, group_by=(long,))
    found = recommend(TABLE, table.sample(80), table.listed(), several).aggregations
    assert [one.dimensions for one in found] == [(fits,)]


def test_it_is_recorded_beside_a_change_too_and_changes_no_verdict() -> None:
    table = made()
    lookups = queries(200, lambda place: (equals("id", number(place * 97 % ROWS)),))
    sums = asked(10, group_by=("kind",), first=200)
    without = recommend(TABLE, table.sample(100), table.listed(), lookups)
    beside = recommend(TABLE, table.sample(100), table.listed(), lookups + sums)
    assert without.aggregations == ()
    assert [one.dimensions for one in beside.aggregations] == [("kind",)]
    assert without.verdict is beside.verdict is Verdict.CHANGE
    assert without.candidate == beside.candidate


def test_distinct_values_are_extrapolated() -> None:
    rng = np.random.default_rng(9)
    population = rng.integers(0, 3_000, 100_000)
    counts = np.unique(population[:2_000], return_counts=True)[1].astype(np.float64)
    assert distinct_among(counts, 2_000, 2_000.0) == len(counts)
    assert distinct_among(counts, 2_000, 500.0) == pytest.approx(len(np.unique(population[:500])), rel=0.05)
    assert distinct_among(counts, 2_000, 100_000.0) == pytest.approx(len(np.unique(population)), rel=0.1)
    few = np.full(10, 200.0)
    assert distinct_among(few, 2_000, 100_000.0) == 10


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(0, 1)), max_size=30))
def test_rows_have_one_number_exactly_where_all_their_codes_are_equal(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array([row[place] for row in rows], np.int64) for place in range(3)]
    numbers = combined(columns).tolist()
    assert len(set(zip(numbers, rows, strict=True))) == len(set(numbers)) == len(set(rows))
