"""The digest depends on the rows, all of them, and on nothing else."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright_spark.executors.merge.digest import Digest, RowsDigest
from tests.arrow_values import KIND_NAMES, KINDS, VALUES, with_garbage
from tests.cases import each_case


@st.composite
def columns(draw: st.DrawFn) -> tuple[str, list[Any]]:
    name = draw(KIND_NAMES)
    return name, draw(st.lists(VALUES[name], max_size=8))


def digest_of(*arrays: Any) -> Digest:
    """The digest of one column that comes in these arrays."""
    digest = RowsDigest(pa.schema([("c", arrays[0].type)]))
    for array in arrays:
        digest.update(pa.RecordBatch.from_arrays([array], names=["c"]))
    return digest.result()


@settings(deadline=None)
@given(columns(), st.lists(st.integers(0, 8), max_size=4))
def test_batch_boundaries_do_not_matter(column: tuple[str, list[Any]], cuts: list[int]) -> None:
    name, values = column
    array = pa.array(values, KINDS[name])
    places = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    sliced = [array.slice(start, end - start) for start, end in itertools.pairwise(places)] or [array]
    built = [pa.array(part.to_pylist(), array.type) for part in sliced]
    assert digest_of(array) == digest_of(*sliced) == digest_of(*built)


@settings(deadline=None)
@given(KIND_NAMES.flatmap(lambda name: st.tuples(st.just(name), *[st.lists(VALUES[name], max_size=3)] * 2)))
def test_equal_digests_mean_equal_rows(drawn: tuple[str, list[Any], list[Any]]) -> None:
    name, left, right = drawn
    arrays = [pa.array(values, KINDS[name]) for values in (left, right)]
    rows = [repr(array.to_pylist()) for array in arrays]  # tells -0.0 from 0.0, and takes NaN as equal to itself
    assert (digest_of(arrays[0]) == digest_of(arrays[1])) == (rows[0] == rows[1])


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
def test_the_type_counts(kind: Any) -> None:
    assert digest_of(pa.nulls(3, kind)) != digest_of(pa.nulls(3, pa.float64()))
    assert digest_of(pa.array([], kind)) != digest_of(pa.array([], pa.string()))


def test_units_and_zones_count() -> None:
    kinds = [pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.int64()]
    assert len({digest_of(pa.array([1], pa.int64()).view(kind)).columns for kind in kinds}) == len(kinds)


def test_every_nan_has_its_own_digest() -> None:
    payloads = [0x7FF8_0000_0000_0000, 0x7FF8_0000_0000_0001, 0xFFF8_0000_0000_0000, 0x7FF0_0000_0000_0001]
    floats = [pa.array([bits], pa.uint64()).view(pa.float64()) for bits in payloads]
    lists = [pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), array) for array in floats]
    for arrays in (floats, lists):
        assert len({digest_of(array).text for array in arrays}) == len(payloads)


@each_case(
    "kind", [pa.int32(), pa.float64(), pa.timestamp("us"), pa.decimal128(9, 2), pa.binary(4), pa.bool_()], ids=str
)
def test_values_under_nulls_do_not_matter(kind: Any) -> None:
    clean, dirty = with_garbage(kind, bytes(32)), with_garbage(kind, b"\xab" * 32)
    assert digest_of(clean) == digest_of(dirty)


def test_strings_under_nulls_do_not_matter() -> None:
    offsets = pa.py_buffer(struct.pack("<3i", 0, 4, 5))
    dirty = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\2"), offsets, pa.py_buffer(b"junkx")])
    assert digest_of(dirty) == digest_of(pa.array([None, "x"]))


def test_elements_of_null_lists_and_maps_do_not_matter() -> None:
    mask, offsets = pa.array([True, False]), pa.array([0, 2, 3], pa.int32())
    dirty = pa.ListArray.from_arrays(offsets, pa.array([8, 9, 1]), mask=mask)
    assert digest_of(dirty) == digest_of(pa.array([None, [1]], dirty.type))
    dirty_map = pa.MapArray.from_arrays(offsets, pa.array(["p", "q", "k"]), pa.array([8, 9, 1]), mask=mask)
    assert digest_of(dirty_map) == digest_of(pa.array([None, [("k", 1)]], dirty_map.type))


def test_fields_of_null_structs_do_not_matter_however_deep() -> None:
    inner = pa.StructArray.from_arrays([pa.array([7, 8]), pa.array([[1], [2]])], names=["a", "b"])
    dirty = pa.StructArray.from_arrays([inner], names=["s"], mask=pa.array([True, False]))
    clean = pa.array([None, {"s": {"a": 8, "b": [2]}}], dirty.type)
    assert digest_of(dirty) == digest_of(clean)


def test_columns_are_told_apart_and_so_is_their_order() -> None:
    one, two = pa.array([1, 2]), pa.array([2, 1])
    digests = []
    for arrays in ([one, two], [two, one]):
        digest = RowsDigest(pa.schema([("p", pa.int64()), ("q", pa.int64())]))
        digest.update(pa.RecordBatch.from_arrays(arrays, names=["p", "q"]))
        digests.append(digest.result())
    assert digests[0].text != digests[1].text
    assert digests[0].columns == digests[1].columns[::-1]


def test_a_batch_of_another_type_is_refused() -> None:
    digest = RowsDigest(pa.schema([("c", pa.int64())]))
    with pytest.raises(TypeError, match="expected int64, found int32"):
        digest.update(pa.RecordBatch.from_arrays([pa.array([1], pa.int32())], names=["c"]))
