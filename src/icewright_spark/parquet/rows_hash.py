"""A hash of a multiset of rows: equal if the rows are the same, in whatever order and batches they come.

Each row becomes 64 bits, under two seeds; each seed's are summed in 128 bits, and the rows are counted. A row is hashed
as its columns in their order, by their exact bits: -0.0 is not 0.0, NaNs differ by their payload, ``NULL`` is
neither 0 nor ``''`` nor an empty list, ``['ab', 'c']`` is not ``['a', 'bc']``, a null struct is not a struct of nulls,
and the entries of a map count in the order in which they stand. What lies under a null does not count.

Strings are hashed as words of 8 bytes, lists as the hashes of their elements: every part is mixed with its position,
the parts are summed, and the sum is mixed with their number. The mixer is the finaliser of SplitMix64 (Steele, Lea,
Flood 2014, after Stafford's variant 13 of MurmurHash3's). It is no cryptographic hash: this guards against faults,
not against an adversary.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Words: TypeAlias = npt.NDArray[np.uint64]
_Offsets: TypeAlias = npt.NDArray[np.int64]

SEEDS: Final = (0x9D8F3B5C71E2A604, 0x2C6E94D1F08B57A3)
"""Of the two hashes of each row; any two numbers would do."""

ROWS_AT_ONCE: Final = 8_192
"""Rows hashed in one go, so that what is hashed stays in the processor's caches."""

_SUM_MODULUS: Final = 1 << 128
_WORD_BYTES: Final = 8
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_LENGTH: Final = np.uint64(0xD6E8FEB86659FD93)
_NULL: Final = np.uint64(0xA0761D6478BD642F)
_STRUCT: Final = np.uint64(0xE7037ED1A0B428DB)
_LOW: Final = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class RowsHash:
    """How many rows there are, and the sum of their hashes for each of the seeds, modulo 2**128."""

    rows: int = 0
    sums: tuple[int, int] = (0, 0)

    def __add__(self, other: RowsHash) -> RowsHash:
        """Both multisets together."""
        first, second = ((a + b) % _SUM_MODULUS for a, b in zip(self.sums, other.sums, strict=True))
        return RowsHash(self.rows + other.rows, (first, second))

    @property
    def text(self) -> str:
        """For a receipt: the rows, and both sums in hexadecimal."""
        return f"{self.rows}:{self.sums[0]:032x}{self.sums[1]:032x}"


def rows_hash(batches: Iterable[Any]) -> RowsHash:
    """The hash of all rows of some record batches of one schema. Raises :class:`TypeError` as :func:`hash_of_rows`."""
    total = RowsHash()
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            part = batch.slice(start, ROWS_AT_ONCE)
            first, second = (_sum(hash_of_rows(part, seed)) for seed in SEEDS)
            total += RowsHash(part.num_rows, (first, second))
    return total


def hash_of_rows(batch: Any, seed: int) -> Words:
    """64 bits for each row of a record batch.

    Raises :class:`TypeError` for a type of Arrow's that Spark does not send (views, unions, run-end encoding).
    """
    return _fold([_hash(column, np.uint64(seed)) for column in batch.columns], batch.num_rows, np.uint64(seed))


def _sum(hashes: Words) -> int:
    return int((hashes & _LOW).sum()) + (int((hashes >> np.uint64(32)).sum()) << 32)


def _mix(words: Words) -> Words:
    """A permutation of 64 bits; takes the array for its own."""
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def _fold(parts: list[Words], slots: int, seed: np.uint64) -> Words:
    """One hash of several, in their order."""
    folded = np.full(slots, seed ^ _STRUCT, np.uint64)
    for part in parts:
        folded = _mix(folded + part)
    return folded


def _hash(array: Any, seed: np.uint64) -> Words:
    """One hash per slot."""
    plain = array.storage if isinstance(array, pa.ExtensionArray) else array
    if pa.types.is_null(plain.type):
        return np.full(len(plain), seed ^ _NULL, np.uint64)
    hashes = _hash_values(plain, seed)
    if plain.null_count:
        hashes[np.asarray(plain.is_null())] = seed ^ _NULL
    return hashes


def _hash_values(array: Any, seed: np.uint64) -> Words:
    """As :func:`_hash`; what it gives for nulls is of no use."""
    kind = array.type
    if pa.types.is_struct(kind):
        return _fold([_hash(array.field(index), seed) for index in range(kind.num_fields)], len(array), seed)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _hash_lists(array.offsets, (array.values,), seed)
    if pa.types.is_map(kind):
        return _hash_lists(array.offsets, (array.keys, array.items), seed)
    return _hash_bits(array.cast(pa.uint8()) if pa.types.is_boolean(kind) else array, seed)


def _hash_bits(array: Any, seed: np.uint64) -> Words:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _hash_strings(array, np.dtype(np.int32), seed)
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _hash_strings(array, np.dtype(np.int64), seed)
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return _hash_fixed_width(array, kind.bit_width // 8, seed)
    raise TypeError(f"no hash for Arrow's type {kind}")


def _hash_lists(offsets: Any, parts: tuple[Any, ...], seed: np.uint64) -> Words:
    """Lists from their offsets and elements; the parts of a map's elements are key and value."""
    bounds = np.asarray(offsets).astype(np.int64)
    first, last = int(bounds[0]), int(bounds[-1])
    hashes = [_hash(part.slice(first, last - first), seed) for part in parts]
    elements = hashes[0] if len(hashes) == 1 else _fold(hashes, last - first, seed)
    lengths = np.diff(bounds)
    return _ordered(elements, lengths, lengths)


def _hash_strings(array: Any, offset_type: np.dtype[Any], seed: np.uint64) -> Words:
    _, offsets, data = array.buffers()
    if not len(array):
        return np.empty(0, np.uint64)
    bounds = np.frombuffer(offsets, offset_type)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return _hash_bytes(data, bounds, seed)


def _hash_fixed_width(array: Any, width: int, seed: np.uint64) -> Words:
    data = array.buffers()[1]
    if width in (1, 2, 4, 8):
        values = np.frombuffer(data, f"<u{width}", len(array), array.offset * width) if len(array) else ()
        return _mix(np.asarray(values, np.uint64) ^ seed)
    return _hash_bytes(data, np.arange(array.offset, array.offset + len(array) + 1, dtype=np.int64) * width, seed)


def _hash_bytes(data: Any, bounds: _Offsets, seed: np.uint64) -> Words:
    """Strings of bytes, each from one of ``bounds`` to the next, as words of 8 bytes, the last filled up with zeros."""
    first, last = int(bounds[0]), int(bounds[-1])
    padded = np.zeros(last - first + _WORD_BYTES, np.uint8)
    if last > first:
        padded[: last - first] = np.frombuffer(data, np.uint8, last - first, first)
    everywhere: Words = np.ndarray((last - first + 1,), "<u8", padded, strides=(1,))
    lengths = np.diff(bounds)
    counts = -(-lengths // _WORD_BYTES)
    behind = np.repeat(lengths, counts) - _within(counts) * _WORD_BYTES  # bytes from the word's first to the end
    words = everywhere[np.repeat(bounds[1:] - first, counts) - behind]
    spare = ((_WORD_BYTES - np.minimum(behind, _WORD_BYTES)) * 8).astype(np.uint64)
    words = (words << spare) >> spare
    return _ordered(_mix(words ^ seed), counts, lengths)


def _ordered(parts: Words, counts: _Offsets, lengths: _Offsets) -> Words:
    """One hash for each run of ``counts`` parts, in which their order counts, and the ``lengths`` besides."""
    placed = _mix(parts + (_within(counts) + 1).astype(np.uint64) * _GOLDEN)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(placed, dtype=np.uint64)])
    ends = np.cumsum(counts)
    return _mix(sums[ends] - sums[ends - counts] + (lengths + 1).astype(np.uint64) * _LENGTH)


def _within(counts: _Offsets) -> _Offsets:
    """For runs of so many elements, the place of each element in its run, from 0."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
