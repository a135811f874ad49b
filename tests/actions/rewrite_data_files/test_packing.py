from __future__ import annotations

from math import log2

from icewright.actions.rewrite_data_files.packing import GROWTH_OF_MANY, Bounds, in_order, pack
from icewright.model.iceberg.files import DataFile
from tests.builders.observations import data_file, month
from tests.cases import each_case

BOUNDS = Bounds(files_max=100, size_bytes_max=100, small_file_size_bytes=75, min_input_files=3)


def files(*sizes: int) -> list[DataFile]:
    return [data_file(month(1), number, size, snapshot_id=number) for number, size in enumerate(sizes)]


def packed(*sizes: int, allow_dominated: bool = False, bounds: Bounds = BOUNDS) -> list[list[int]]:
    groups = pack(files(*sizes), bounds, allow_dominated=allow_dominated)
    return [[file.size_bytes for file in group] for group in groups]


EXAMPLES = [
    ([], []),
    ([10], []),
    ([80], []),
    ([10, 10], []),
    ([10, 10, 10], [[10, 10, 10]]),
    ([40, 40], [[40, 40]]),
    ([60, 60], []),
    ([30, 30, 30, 30, 30], [[30, 30, 30]]),
    ([50, 1, 1, 1], [[1, 1, 1]]),
    ([1, 1, 1, 50, 2, 2, 2], [[1, 1, 1], [2, 2, 2]]),
    ([50, 1, 1], []),
    ([4, 2, 2], [[4, 2, 2]]),
    ([5, 2, 2], []),
    ([0, 0, 0], [[0, 0, 0]]),
    ([30, 40, 30], [[30, 40, 30]]),  # as much as a group may have
    ([30, 40, 31], []),
    ([35, 40], [[35, 40]]),  # no longer small
    ([35, 39], []),
]


@each_case(("sizes", "groups"), EXAMPLES)
def test_examples(sizes: list[int], groups: list[list[int]]) -> None:
    assert packed(*sizes) == groups


BURDENED = [
    ([10], {0}, [[10]]),
    ([10, 20, 30], {1}, [[10, 20, 30]]),
    ([10, 20], {1}, [[20]]),
    ([10, 20, 3, 4], {1, 2}, [[20, 3]]),
    ([50, 1, 1], {1, 2}, [[1, 1]]),
    ([50, 1, 1], {0}, [[50]]),
    ([1, 1, 1, 50, 2, 2], {4}, [[1, 1, 1], [2]]),
    ([1, 1, 1, 50, 2, 2, 2], {3}, [[1, 1, 1], [50], [2, 2, 2]]),
    ([300, 10], {0}, [[300]]),
    ([10, 300, 10, 10, 10], {1}, [[300], [10, 10, 10]]),
    ([90, 20], {0, 1}, [[90], [20]]),
]
"""Sizes, the places of files with too many deletes, and the groups."""


@each_case(("sizes", "places", "groups"), BURDENED)
def test_files_with_too_many_deletes_are_rewritten(sizes: list[int], places: set[int], groups: list[list[int]]) -> None:
    some = files(*sizes)
    found = pack(some, BOUNDS, allow_dominated=False, burdened={some[place].path for place in places})
    assert [[file.size_bytes for file in group] for group in found] == groups


def test_a_partition_that_has_settled_is_merged_however_its_bytes_are_spread() -> None:
    assert packed(50, 1, 1, allow_dominated=True) == [[50, 1, 1]]


GROWING = [
    ([5, *[1] * 8], [[5, *[1] * 8]]),
    ([8, *[1] * 16], [[1] * 16]),  # of 17 files, none more than 4/17
    ([4, *[1] * 16], [[4, *[1] * 16]]),
    ([8, *[1] * 35], [[8, *[1] * 35]]),  # a fifth in any case
]


@each_case(("sizes", "groups"), GROWING)
def test_among_many_newcomers_a_merged_file_waits_for_others(sizes: list[int], groups: list[list[int]]) -> None:
    found = pack(files(*sizes), BOUNDS, allow_dominated=False, growth_most=GROWTH_OF_MANY)
    assert [[file.size_bytes for file in group] for group in found] == groups
    assert packed(*sizes) == [sizes]


LEFT = [
    ([10, 10, 10], []),
    ([30, 30, 30, 30, 30], [[30, 30, 30]]),
    ([30, 30, 30, 10, 10, 10], [[30, 30, 30, 10]]),
    ([30, 40, 30, 40, 40], [[30, 40, 30], [40, 40]]),
    ([10, 10, 10, 95, 5, 5, 5], [[10, 10, 10], [95, 5]]),
]


@each_case(("sizes", "groups"), LEFT)
def test_the_newest_are_left_where_they_fill_no_file(sizes: list[int], groups: list[list[int]]) -> None:
    found = pack(files(*sizes), BOUNDS, allow_dominated=False, leaves_newest=True)
    assert [[file.size_bytes for file in group] for group in found] == groups


def test_in_a_sort_order_the_oldest_file_is_not_left_because_it_is_the_last() -> None:
    found = []
    for ages in (range(7), range(6, -1, -1)):
        sizes = zip(range(7), ages, [30, 30, 30, 10, 10, 10, 10], strict=True)
        keyed = [data_file(month(1), n, size, sort_key=(n,), snapshot_id=age) for n, age, size in sizes]
        groups = pack(in_order(keyed, {}), BOUNDS, allow_dominated=False, leaves_newest=True)
        found.append([[file.size_bytes for file in group] for group in groups])
    assert found == [[[30, 30, 30, 10]], [[30, 30, 30, 10], [10, 10, 10]]]


def test_groups_are_bounded_in_files() -> None:
    bounds = Bounds(files_max=4, size_bytes_max=100, small_file_size_bytes=75, min_input_files=3)
    assert packed(*[1] * 11, bounds=bounds) == [[1] * 4, [1] * 4, [1] * 3]


def test_neighbours_by_sort_order_where_all_files_have_bounds() -> None:
    keyed = [data_file(month(1), number, sort_key=(9 - number,), snapshot_id=number) for number in range(5)]
    assert [file.sort_key for file in in_order(keyed, {})] == [(5,), (6,), (7,), (8,), (9,)]


def test_neighbours_by_age_where_one_has_none() -> None:
    mixed = [data_file(month(1), number, sort_key=(number,), snapshot_id=9 - number) for number in range(4)]
    mixed.append(data_file(month(1), 4, snapshot_id=5))
    assert [file.data_sequence_number for file in in_order(mixed, {})] == [5, 6, 7, 8, 9]


def test_in_v1_tables_the_time_of_the_snapshot_tells_the_age() -> None:
    old = [data_file(month(1), number, snapshot_id=number, sequence_number=0) for number in range(3)]
    assert [file.snapshot_id for file in in_order(old, {0: 30, 1: 20, 2: 10})] == [2, 1, 0]


def test_a_byte_is_rewritten_a_logarithmic_number_of_times() -> None:
    """An append of one unit for ever, planned after each: written bytes over appended ones, as the docstring says."""
    target = 1_024
    bounds = Bounds(files_max=1_000, size_bytes_max=target, small_file_size_bytes=target * 3 // 4, min_input_files=5)
    held: list[int] = []
    written, most = 0, 0
    for _ in range(3 * target):
        held.append(1)
        small = [size for size in held if size < bounds.small_file_size_bytes]
        large = [size for size in held if size >= bounds.small_file_size_bytes]
        merged = packed(*small, bounds=bounds)
        for group in merged:
            for size in group:
                small.remove(size)
            small.append(sum(group))
            written += sum(group)
        # The age of a merged file is that of its oldest row: the larger, the older.
        held = large + sorted(small, reverse=True)
        most = max(most, len(small))
    assert written / (3 * target) <= log2(target) + 1
    assert most <= 5 * log2(target)
