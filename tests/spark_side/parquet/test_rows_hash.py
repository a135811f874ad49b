"""The hash of rows depends on which rows there are and how often, and on nothing else."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright_spark.parquet.rows_hash import ROWS_AT_ONCE, RowsHash, rows_hash
from tests.arrow_values import KIND_NAMES, KINDS, VALUES, with_garbage
from tests.cases import each_case

SCHEMA = pa.schema(list(KINDS.items()))
ROWS = st.fixed_dictionaries(VALUES)
ONE_ROW: dict[str, Any] = {
    "b": True,
    "i": 1,
    "l": 2,
    "f": 0.0,
    "d": 1.5,
    "s": "ab",
    "y": b"c",
    "x": b"abc",
    "dec": 7,
    "list": [1.0, 2.0],
    "lists": [["a"], []],
    "struct": {"a": 1, "b": ["x", "y"]},
    "structs": [{"a": "p", "b": 1.0}],
    "map": [("k", [1]), ("l", [])],
}


def of(rows: list[dict[str, Any]]) -> RowsHash:
    return rows_hash([pa.RecordBatch.from_pylist(rows, schema=SCHEMA)])


def of_column(values: list[Any], kind: Any) -> RowsHash:
    """The hash of rows of one column."""
    return of_array(pa.array(values, kind))


def of_array(array: Any) -> RowsHash:
    return rows_hash([pa.RecordBatch.from_arrays([array], names=["c"])])


@given(st.lists(ROWS, max_size=6), st.randoms(use_true_random=False), st.integers(0, 6))
def test_order_and_batches_do_not_matter(rows: list[dict[str, Any]], chance: Any, cut: int) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)
    whole = pa.RecordBatch.from_pylist(shuffled, schema=SCHEMA)
    first, second = whole.slice(0, cut), whole.slice(cut)
    built = [pa.RecordBatch.from_pylist(part.to_pylist(), schema=SCHEMA) for part in (second, first)]
    assert of(rows) == rows_hash([whole]) == rows_hash([first, second]) == rows_hash(built)
    assert of(rows) == rows_hash([second]) + rows_hash([first])


@given(st.data(), KIND_NAMES)
def test_equal_hashes_mean_equal_multisets_of_rows(data: st.DataObject, name: str) -> None:
    left, right = (data.draw(st.lists(VALUES[name], max_size=3)) for _ in range(2))
    arrays = [pa.array(values, KINDS[name]) for values in (left, right)]
    rows = [Counter(map(repr, array.to_pylist())) for array in arrays]  # tells -0.0 from 0.0, NaN equal to itself
    assert (of_array(arrays[0]) == of_array(arrays[1])) == (rows[0] == rows[1])


@given(st.lists(ROWS, min_size=2, max_size=5), st.data())
def test_a_row_dropped_doubled_or_changed_in_any_column_is_seen(
    rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(rows) - 1))
    row, others = rows[place], rows[:place] + rows[place + 1 :]
    assert of(others) != of(rows)
    assert of([*rows, row]) != of(rows)
    name = data.draw(KIND_NAMES)
    changed = {**row, name: data.draw(VALUES[name])}
    as_read = [pa.array([one[name]], KINDS[name]).to_pylist() for one in (row, changed)]
    assert (of([*others, changed]) == of(rows)) == (repr(as_read[0]) == repr(as_read[1]))


PAIR = pa.struct([("a", pa.int64()), ("b", pa.int64())])
FAULTS: dict[str, tuple[list[Any], list[Any], Any]] = {
    "a value changed": ([1, 2], [1, 3], pa.int64()),
    "a bit flipped": ([1 << 40], [(1 << 40) | 1], pa.int64()),
    "a sign lost": ([-1], [1], pa.int32()),
    "a row dropped": ([1, 2, 2], [1, 2], pa.int64()),
    "a row doubled": ([1, 2], [1, 2, 2], pa.int64()),
    "one row for another": ([1, 1, 2], [1, 2, 2], pa.int64()),
    "null and zero": ([None], [0], pa.int64()),
    "null and false": ([None], [False], pa.bool_()),
    "null and empty": ([None], [""], pa.string()),
    "a zero byte": (["a"], ["a\0"], pa.string()),
    "eight zero bytes": ([b""], [bytes(8)], pa.binary()),
    "text moved between rows": (["ab", "c"], ["a", "bc"], pa.string()),
    "words swapped": (["abcdefgh12345678"], ["12345678abcdefgh"], pa.string()),
    "the end of a long text": (["x" * 100 + "a"], ["x" * 100 + "b"], pa.string()),
    "minus zero": ([0.0], [-0.0], pa.float64()),
    "minus zero as float": ([0.0], [-0.0], pa.float32()),
    "null and an empty list": ([None], [[]], pa.list_(pa.int64())),
    "a list of null": ([[None]], [[]], pa.list_(pa.int64())),
    "an element moved between rows": ([[1, 2], [3]], [[1], [2, 3]], pa.list_(pa.int64())),
    "elements swapped": ([[1, 2]], [[2, 1]], pa.list_(pa.int64())),
    "an element moved between lists": ([[[1], [2]]], [[[1, 2], []]], pa.list_(pa.list_(pa.int64()))),
    "lists of nothing": ([[[]]], [[]], pa.list_(pa.list_(pa.int64()))),
    "a map's key and value swapped": ([[(1, 2)]], [[(2, 1)]], pa.map_(pa.int64(), pa.int64())),
    "a map's values swapped": ([[(1, 2), (3, 4)]], [[(1, 4), (3, 2)]], pa.map_(pa.int64(), pa.int64())),
    "a map's order": ([[(1, 2), (3, 4)]], [[(3, 4), (1, 2)]], pa.map_(pa.int64(), pa.int64())),
    "a map's entry moved": ([[(1, 2), (3, 4)], []], [[(1, 2)], [(3, 4)]], pa.map_(pa.int64(), pa.int64())),
    "a null struct": ([None], [{"a": None, "b": None}], PAIR),
    "fields swapped": ([{"a": 1, "b": 2}], [{"a": 2, "b": 1}], PAIR),
    "fields swapped between rows": ([{"a": 1, "b": 2}, {"a": 3, "b": 4}], [{"a": 1, "b": 4}, {"a": 3, "b": 2}], PAIR),
    "a decimal's high half": ([1], [1 + (1 << 64)], pa.decimal128(38, 0)),
    "fixed bytes": ([b"abcdefghijk"], [b"abcdefghijl"], pa.binary(11)),
    "a microsecond": ([1_000_000], [1_000_001], pa.timestamp("us", "UTC")),
    "a nanosecond": ([1], [2], pa.timestamp("ns")),
    "a day": ([1], [2], pa.date32()),
}


@each_case("fault", FAULTS)
def test_a_fault_is_seen_also_deep_inside(fault: str) -> None:
    before, after, kind = FAULTS[fault]
    assert of_column(before, kind) != of_column(after, kind)
    nested = pa.list_(pa.struct([("in", kind)]))
    inside = [[[{"in": value}] for value in values] for values in (before, after)]
    assert of_column(inside[0], nested) != of_column(inside[1], nested)


def test_values_of_one_column_that_change_rows_are_seen() -> None:
    before = [ONE_ROW, dict.fromkeys(ONE_ROW)]
    for name, value in ONE_ROW.items():
        swapped = [{**before[0], name: None}, {**before[1], name: value}]
        assert of(swapped) != of(before), name


def test_columns_of_the_same_values_are_told_apart() -> None:
    one, two = pa.array([1, 2]), pa.array([5, 6])
    batches = [pa.RecordBatch.from_arrays(arrays, names=["p", "q"]) for arrays in ([one, two], [two, one])]
    assert rows_hash(batches[:1]) != rows_hash(batches[1:])


def test_every_nan_has_its_own_hash() -> None:
    payloads = [0x7FF8_0000_0000_0000, 0x7FF8_0000_0000_0001, 0xFFF8_0000_0000_0000, 0x7FF0_0000_0000_0001]
    found = {of_array(pa.array([bits], pa.uint64()).view(pa.float64())).text for bits in payloads}
    assert len(found) == len(payloads)


@each_case(
    "kind", [pa.int32(), pa.float64(), pa.timestamp("us"), pa.decimal128(9, 2), pa.binary(4), pa.bool_()], ids=str
)
def test_values_under_nulls_do_not_matter(kind: Any) -> None:
    assert of_array(with_garbage(kind, bytes(32))) == of_array(with_garbage(kind, b"\xab" * 32))


def test_what_lies_under_null_strings_lists_maps_and_structs_does_not_matter() -> None:
    mask, offsets = pa.array([True, False]), pa.array([0, 2, 3], pa.int32())
    text = pa.Array.from_buffers(
        pa.string(), 2, [pa.py_buffer(b"\2"), pa.py_buffer(struct.pack("<3i", 0, 4, 5)), pa.py_buffer(b"junkx")]
    )
    lists = pa.ListArray.from_arrays(offsets, pa.array([8, 9, 1]), mask=mask)
    maps = pa.MapArray.from_arrays(offsets, pa.array(["p", "q", "k"]), pa.array([8, 9, 1]), mask=mask)
    structs = pa.StructArray.from_arrays([pa.array([7, 8])], names=["a"], mask=mask)
    assert of_array(text) == of_array(pa.array([None, "x"]))
    assert of_array(lists) == of_array(pa.array([None, [1]], lists.type))
    assert of_array(maps) == of_array(pa.array([None, [("k", 1)]], maps.type))
    assert of_array(structs) == of_array(pa.array([None, {"a": 8}], structs.type))


@each_case(
    ("small", "large"),
    [
        (pa.string(), pa.large_string()),
        (pa.binary(), pa.large_binary()),
        (pa.list_(pa.int64()), pa.large_list(pa.int64())),
    ],
    ids=str,
)
def test_large_and_small_offsets_give_the_same(small: Any, large: Any) -> None:
    values = [[1], [], None, [2, 3]] if pa.types.is_list(small) else ["a", "", None, "abcdefghij"]
    assert of_array(pa.array(values, small).slice(1)) == of_array(pa.array(values, large).slice(1))


def test_more_rows_than_are_hashed_at_once() -> None:
    values = pa.array([f"row {number}" for number in range(2 * ROWS_AT_ONCE + 5)])
    assert of_array(values) == of_array(values.take(pa.array(range(len(values))[::-1])))
    assert of_array(values).rows == len(values)


def test_sums_are_of_128_bits_and_both_seeds_count() -> None:
    many = of_array(pa.array(range(1_000)))
    assert all(1 << 64 < total < 1 << 128 for total in many.sums)
    assert many.sums[0] != many.sums[1]
    assert RowsHash(1, ((1 << 128) - 1, 0)) + RowsHash(1, (2, 5)) == RowsHash(2, (1, 5))


def test_nothing_at_all() -> None:
    for kind in KINDS.values():
        assert of_array(pa.array([], kind)) == RowsHash()
    assert of_column([None, None], pa.null()) != RowsHash()
    assert rows_hash([]) == RowsHash()


def test_a_type_that_nobody_thought_of_is_refused() -> None:
    with pytest.raises(TypeError, match="dictionary"):
        of_array(pa.array(["a", "b"]).dictionary_encode())
