"""How much of a group is sampled; no Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icewright_spark.executors.sort.cells import sample_rows
from icewright_spark.executors.sort.sample import ROWS_PER_FILE_MIN, fraction_of


@given(st.integers(0, 10**12), st.integers(1, 10**5))
def test_a_sample_has_enough_for_each_file_and_does_not_grow_with_the_group(records: int, files: int) -> None:
    expected = fraction_of(records, files) * records
    assert 0.0 < fraction_of(records, files) <= 1.0
    assert expected >= min(records, ROWS_PER_FILE_MIN * files) * 0.999
    assert expected <= max(sample_rows(files), ROWS_PER_FILE_MIN * files) * 1.001


def test_a_small_group_is_its_own_sample() -> None:
    assert fraction_of(1000, 2) == 1.0
    assert fraction_of(0, 1) == 1.0
