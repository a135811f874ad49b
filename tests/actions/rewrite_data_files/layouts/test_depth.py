"""Overlap depth against its definition, tried out at every value."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.rewrite_data_files.layouts.depth import IN_ORDER_DEPTH, opened_by_both, overlap_depth

values = st.integers(-5, 5).map(lambda number: (1, number)) | st.just((0, None)) | st.just((2, None))
spans = st.tuples(values, values).map(lambda ends: tuple(sorted(ends, key=lambda end: (end[0], end[1] or 0))))


def by_definition(given_spans: list[Any]) -> int:
    """At every end of a span, since the depth can only grow where one begins."""
    known = [span for span in given_spans if span is not None]
    depths = [sum(span[0] <= value <= span[1] for span in known) for ends in known for value in ends]
    return len(given_spans) - len(known) + max(depths, default=0)


@given(st.lists(st.none() | spans, max_size=12), st.randoms(use_true_random=False))
def test_the_depth_is_the_most_spans_at_one_value(given_spans: list[Any], random: Random) -> None:
    expected = by_definition(given_spans)
    assert overlap_depth(given_spans) == expected
    random.shuffle(given_spans)
    assert overlap_depth(given_spans) == expected


@given(st.lists(st.integers(), min_size=2, max_size=30, unique=True))
def test_files_that_follow_each_other_are_in_order(cuts: list[int]) -> None:
    cuts.sort()
    assert overlap_depth(list(pairwise(cuts))) <= IN_ORDER_DEPTH


@given(st.lists(st.tuples(st.none() | spans, st.none() | spans), max_size=12))
def test_a_lookup_by_two_columns_opens_the_files_that_have_both_values(given_spans: list[Any]) -> None:
    across, up = ({end for one in given_spans for end in one[place] or ()} or {None} for place in (0, 1))

    def is_in(value: Any, span: Any) -> bool:
        return span is None or bool(span[0] <= value <= span[1])

    depths = [sum(is_in(x, one) and is_in(y, other) for one, other in given_spans) for x in across for y in up]
    found = opened_by_both(given_spans)
    assert (found.worst, round(found.mean, 9)) == (max(depths), round(sum(depths) / len(depths), 9))
