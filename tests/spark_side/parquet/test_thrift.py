"""The protocol: whatever is in a footer comes out as it went in, and nothing that comes in does harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright_spark.parquet import thrift
from icewright_spark.parquet.thrift import (
    BINARY,
    DEPTH_MAX,
    DOUBLE,
    FALSE,
    I8,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    SET,
    STRUCT,
    TRUE,
    UUID,
    Malformed,
    read_struct,
    write_struct,
)
from tests.builders.stitch_files import WRITERS, footer_of, rows
from tests.cases import each_case

I64_MAX = 2**63 - 1
LEAVES: dict[int, st.SearchStrategy[Any]] = {
    I8: st.integers(0, 255),
    I16: st.integers(-(2**15), 2**15 - 1),
    I32: st.integers(-(2**31), 2**31 - 1),
    I64: st.integers(-(2**63), I64_MAX),
    DOUBLE: st.binary(min_size=8, max_size=8),
    BINARY: st.binary(max_size=300),
    UUID: st.binary(min_size=16, max_size=16),
}


def of_kind(kind: int, depth: int) -> st.SearchStrategy[Any]:
    if kind in LEAVES:
        return LEAVES[kind]
    if kind == STRUCT:
        return structs(depth - 1)
    if kind == MAP:
        return st.none() | st.sampled_from(sorted(LEAVES)).flatmap(
            lambda key: st.tuples(
                st.just(key), st.just(I32), st.lists(st.tuples(LEAVES[key], LEAVES[I32]), min_size=1, max_size=3)
            )
        )
    inner = st.sampled_from([*LEAVES, STRUCT] if depth else sorted(LEAVES))
    return inner.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(of_kind(kind, depth - 1), max_size=20)))


def fields(depth: int) -> st.SearchStrategy[tuple[int, Any]]:
    kinds = [*LEAVES, MAP] if depth <= 0 else [*LEAVES, MAP, LIST, SET, STRUCT]
    values = st.sampled_from(kinds).flatmap(lambda kind: st.tuples(st.just(kind), of_kind(kind, depth)))
    return values | st.sampled_from([(TRUE, True), (FALSE, False)])


def structs(depth: int = 2) -> st.SearchStrategy[Any]:
    return st.dictionaries(st.integers(-(2**15), 2**15 - 1), fields(depth), max_size=6)


@given(structs())
def test_what_is_written_is_read(struct: Any) -> None:
    data = write_struct(struct)
    read, end = read_struct(data + b"\1more")
    assert (read, end) == (struct, len(data))
    assert list(read) == list(struct)
    assert write_struct(read) == data


@each_case("writer", WRITERS)
def test_footers_come_out_as_they_were(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "f.parquet"
    WRITERS[writer](path, rows(0))
    footer = footer_of(path)
    assert write_struct(footer.fields) == footer.tail[:-8]


@given(structs(), st.data())
def test_what_is_cut_off_is_malformed(struct: Any, data: st.DataObject) -> None:
    whole = write_struct(struct)
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(Malformed):
        read_struct(part)


@given(st.binary(max_size=200))
def test_bytes_of_anybody_are_a_struct_or_malformed(data: bytes) -> None:
    try:
        _, end = read_struct(data)
    except Malformed:
        return
    assert end <= len(data)


@each_case(
    "data",
    [
        bytes([0x1C]) * (DEPTH_MAX + 2) + bytes(DEPTH_MAX + 3),  # structs in structs
        bytes([0x19]) + bytes([0x19]) * (DEPTH_MAX + 2) + bytes(5),  # lists in lists
        bytes([0x19, 0xFC]) + b"\xff\xff\xff\xff\x7f" + bytes(9),  # a list of 2**35 structs
        bytes([0x1B]) + b"\xff\xff\xff\xff\x7f" + bytes(9),  # a map of as many
        bytes([0x18]) + b"\xff\xff\xff\xff\x7f" + bytes(9),  # as many bytes
        bytes([0x16]) + b"\xff" * 9 + b"\x02\0",  # 65 bits
        bytes([0x16]) + b"\xff" * 20 + b"\0",
        bytes([0x15, 0x02, 0x05, 0x02, 0x04, 0x00]),  # field 1 again
        bytes([0x1E, 0x00]),  # type 14
    ],
)
def test_hostile_numbers_cost_nothing(data: bytes) -> None:
    with pytest.raises(Malformed):
        read_struct(data)


def test_sixty_four_bits_are_read() -> None:
    for number in (0, -1, 1, I64_MAX, -I64_MAX - 1):
        assert read_struct(write_struct({1: (I64, number)}))[0] == {1: (I64, number)}
    assert thrift.read_struct(b"\0") == ({}, 1)
