"""Bloom filters of Parquet: whether a value may be in a column chunk, as a reader finds out.

Split-block bloom filters over xxh64 of the values as Parquet writes them plainly, from the format's specification
(apache/parquet-format, BloomFilter.md): the one kind that there is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from icewright_spark.parquet.places import comparable, unscaled
from icewright_spark.parquet.thrift import STRUCT, Struct, read_struct

_NUM_BYTES, _ALGORITHM, _HASH, _COMPRESSION = range(1, 5)
_THE_ONE: Final[tuple[int, Struct]] = (STRUCT, {1: (STRUCT, {})})
"""Block, xxh64, uncompressed: a union each, of which the first field is known."""

_BLOCK_BYTES: Final = 32
_SALT: Final = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)

_LAYOUTS: Final[Mapping[int, str]] = {1: "<i", 2: "<q", 4: "<f", 5: "<d"}


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The bits of a bloom filter."""

    bits: bytes

    def lacks(self, hashes: npt.NDArray[np.uint64]) -> int:
        """How many of these hashes of values are not in it: readers skip the row group for each of them."""
        blocks = np.frombuffer(self.bits, "<u4").reshape(-1, len(_SALT))
        block = ((hashes >> np.uint64(32)) * np.uint64(len(blocks))) >> np.uint64(32)
        low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        wanted = np.uint32(1) << ((low[:, None] * _SALT) >> np.uint32(27))
        return int(((blocks[block] & wanted) == 0).any(axis=1).sum())


def bloom_filter_of(data: bytes) -> BloomFilter:
    """A bloom filter from its header and bits. Raises ``ValueError`` for one that nobody here can read."""
    header, start = read_struct(data)
    if any(header.get(field_id) != _THE_ONE for field_id in (_ALGORITHM, _HASH, _COMPRESSION)):
        raise ValueError("it has a bloom filter of a kind that is not known here")
    bits = data[start:]
    if not bits or len(bits) % _BLOCK_BYTES or len(bits) != header[_NUM_BYTES][1]:
        raise ValueError(f"it has a bloom filter of {len(bits)} bytes")
    return BloomFilter(bits)


def hashes(array: Any, physical: int, width: int) -> npt.NDArray[np.uint64]:
    """The hashes of the distinct values of an array, as Parquet writes them in a column of a physical type.

    ``width`` is the number of bytes of a value of fixed length.
    """
    plain = _plain(array, physical, width)
    found = (xxhash.xxh64_intdigest(plain(value)) for value in comparable(array).drop_null().unique().to_pylist())
    return np.fromiter(found, np.uint64)


def _plain(array: Any, physical: int, width: int) -> Callable[[Any], bytes]:
    layout = _LAYOUTS.get(physical)
    if layout is not None:
        return lambda value: struct.pack(layout, unscaled(value))
    if pa.types.is_decimal(array.type):
        return lambda value: int(unscaled(value)).to_bytes(width, "big", signed=True)
    if pa.types.is_string(array.type) and width:  # a UUID as Spark shows it
        return lambda value: bytes.fromhex(value.decode().replace("-", ""))
    return bytes
