"""Our own reader of Puffin files and theta sketches, against files as the specs have them and such as are wrong."""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright_spark.iceberg.puffin import distinct_values, read_puffin
from icewright_spark.parquet.errors import ProofFailed
from tests.cases import each_case


def sketch(hashes: list[int], theta: int | None = None) -> bytes:
    """A compact theta sketch, by the layout that Apache DataSketches documents."""
    if not hashes and theta is None:
        return bytes([1, 3, 3, 0, 0, 0x0E, 0, 0])
    preamble = 2 if theta is None else 3
    head = bytes([preamble, 3, 3, 0, 0, 0x0A, 0, 0]) + struct.pack("<if", len(hashes), 1.0)
    return head + (b"" if theta is None else struct.pack("<q", theta)) + struct.pack(f"<{len(hashes)}q", *hashes)


def puffin(*blobs: bytes, codec: str | None = None, **changes: Any) -> bytes:
    content, described = b"PFA1", []
    for number, blob in enumerate(blobs):
        its = blob if codec is None else bytes(pa.Codec(codec).compress(blob))
        said = {"type": "t", "fields": [number], "offset": len(content), "length": len(its), **changes}
        described.append(said if codec is None else {**said, "compression-codec": codec})
        content += its
    payload = json.dumps({"blobs": described}).encode()
    return content + b"PFA1" + payload + struct.pack("<i", len(payload)) + b"\0\0\0\0PFA1"


@given(st.lists(st.binary(max_size=40), max_size=4), st.sampled_from([None, "zstd"]))
def test_blobs_are_read_as_they_were_written(blobs: list[bytes], codec: str | None) -> None:
    content = puffin(*blobs, codec=codec)
    footer, found = read_puffin(content)
    assert [blob.content for blob in found] == blobs
    assert content[len(content) - footer :][:4] == b"PFA1"


@each_case(
    "content",
    [
        b"",
        b"PFA1" * 5,
        puffin(b"x")[:-1],
        puffin(b"x")[:-12] + b"\xff\xff\xff\x7f" + b"\0\0\0\0PFA1",
        puffin(b"x")[:-8] + b"\1\0\0\0PFA1",
        puffin(b"x", offset=2),
        puffin(b"x", length=900),
        puffin(b"x", offset="no"),
        puffin(b"x", **{"compression-codec": "lz4"}),
        puffin(b"x", **{"compression-codec": "zstd"}),
        puffin(b"x" * (2 << 20), codec="zstd"),
    ],
)
def test_what_is_no_puffin_file_proves_nothing(content: bytes) -> None:
    with pytest.raises(ProofFailed):
        read_puffin(content)


@given(st.sets(st.integers(1, 2**62), max_size=50))
def test_few_values_are_counted_one_by_one(hashes: set[int]) -> None:
    assert distinct_values(sketch(sorted(hashes))) == len(hashes)


def test_many_values_are_estimated_by_the_share_that_was_kept() -> None:
    assert distinct_values(sketch(list(range(1, 101)), 2**60)) == pytest.approx(800, abs=1)
    assert distinct_values(bytes([1, 3, 3, 0, 0, 0x3A, 0, 0]) + struct.pack("<q", 5)) == 1


@each_case(
    "content",
    [
        b"",
        sketch([1, 2])[:-1],
        sketch([1, 1]),
        sketch([0, 1]),
        sketch([5, 9], 6),
        sketch([1], 0),
        b"\x02\x02" + sketch([1])[2:],
        b"\x04" + sketch([1])[1:],
        sketch([1])[:8] + struct.pack("<i", -1) + sketch([1])[12:],
    ],
)
def test_what_is_no_sketch_proves_nothing(content: bytes) -> None:
    with pytest.raises(ProofFailed):
        distinct_values(content)
