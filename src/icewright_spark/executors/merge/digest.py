"""An ordered digest of a stream of rows: equal if and only if all columns are, row by row and bit by bit.

Each node of a column's type (the column itself, each struct field, list element, map key and value) feeds its own
xxh3-128 streams: validity, one byte per slot; lengths of strings, lists and maps, 4 bytes each; values, as their
bits. So nothing depends on where batches begin, ``NULL`` is not 0 or ``''``, ``['ab', 'c']`` is not ``['a', 'bc']``,
and -0.0 and NaN payloads count. What lies under a null slot does not: values are zeroed, lengths are 0, elements are
skipped, and a struct's nulls reach its children. Each node's type is digested with it.

xxh3-128 is no cryptographic hash: this guards against faults, not against an adversary.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from icewright_spark.parquet.schema import children

_OFFSET_BYTES = 4
_INTEGERS: Mapping[int, Any] = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of a stream of rows; ``columns`` are hexadecimal, by position."""

    rows: int
    columns: tuple[str, ...]

    @property
    def text(self) -> str:
        """One hexadecimal digest of the whole, for a receipt."""
        whole = xxhash.xxh3_128(struct.pack("<q", self.rows))
        for column in self.columns:
            whole.update(bytes.fromhex(column))
        return str(whole.hexdigest())


class RowsDigest:
    """Takes record batches of one schema, in order."""

    def __init__(self, schema: Any) -> None:
        self._rows = 0
        self._nodes = [_Node(field.type) for field in schema]

    def update(self, batch: Any) -> None:
        """Adds a record batch of the schema."""
        self._rows += batch.num_rows
        for node, column in zip(self._nodes, batch.columns, strict=True):
            node.update(column)

    def result(self) -> Digest:
        """The digest of all rows so far."""
        return Digest(self._rows, tuple(node.digest().hex() for node in self._nodes))


class _Node:
    """The streams of one node of a column's type."""

    def __init__(self, data_type: Any) -> None:
        self._type = data_type
        self._slots = 0
        self._validity = xxhash.xxh3_128()
        self._lengths = xxhash.xxh3_128()
        self._values = xxhash.xxh3_128()
        nested = children(data_type) if pa.types.is_nested(data_type) else ()
        self._children = [_Node(field.type) for field in nested]

    def update(self, array: Any) -> None:
        if array.type != self._type:
            raise TypeError(f"expected {self._type}, found {array.type}")
        self._slots += len(array)
        self._add_validity(array)
        if pa.types.is_struct(self._type):
            self._add_children(array.flatten())
        elif pa.types.is_map(self._type):
            entries = pa.list_(pa.struct([self._type.key_field, self._type.item_field]))
            self._add_lists(array.view(entries))
        elif pa.types.is_list(self._type):
            self._add_lists(array)
        elif pa.types.is_string(self._type) or pa.types.is_binary(self._type):
            self._add_strings(array)
        else:
            self._add_fixed_width(array)

    def digest(self) -> bytes:
        own = xxhash.xxh3_128(f"{_name(self._type)}:{self._slots}:{len(self._children)}".encode())
        for stream in (self._validity, self._lengths, self._values):
            own.update(stream.digest())
        for child in self._children:
            own.update(child.digest())
        return bytes(own.digest())

    def _add_validity(self, array: Any) -> None:
        if array.null_count == 0:
            self._validity.update(b"\x01" * len(array))
        else:
            self._validity.update(_bytes_of(pc.cast(pc.is_valid(array), pa.uint8()), 1))

    def _add_children(self, arrays: list[Any]) -> None:
        for child, array in zip(self._children, arrays, strict=True):
            child.update(array)

    def _add_lists(self, array: Any) -> None:
        self._lengths.update(_bytes_of(array.value_lengths().fill_null(0), _OFFSET_BYTES))
        elements = array.flatten()
        self._add_children([elements] if len(self._children) == 1 else elements.flatten())

    def _add_strings(self, array: Any) -> None:
        filled = array.cast(pa.binary()).fill_null(b"") if array.null_count else array
        if not len(filled):
            return
        self._lengths.update(_bytes_of(pc.binary_length(filled), _OFFSET_BYTES))
        _, offsets, data = filled.buffers()
        start = _offset_at(offsets, filled.offset)
        end = _offset_at(offsets, filled.offset + len(filled))
        if end > start:
            self._values.update(data.slice(start, end - start))

    def _add_fixed_width(self, array: Any) -> None:
        if pa.types.is_boolean(array.type):
            self._values.update(_bytes_of(array.fill_null(False).cast(pa.uint8()), 1))
            return
        plain = array.storage if isinstance(array, pa.ExtensionArray) else array
        width = plain.type.bit_width // 8
        if plain.null_count:
            bits = _INTEGERS.get(width * 8)
            if bits is not None and not pa.types.is_fixed_size_binary(plain.type):
                plain = plain.view(bits).fill_null(0)
            else:
                plain = plain.view(pa.binary(width)).fill_null(bytes(width))
        self._values.update(_bytes_of(plain, width))


def _name(data_type: Any) -> str:
    """A type's name without those of its children, which digest themselves."""
    return type(data_type).__name__ if pa.types.is_nested(data_type) else str(data_type)


def _bytes_of(array: Any, width: int) -> Any:
    """The values of a fixed-width array without nulls, as a buffer."""
    if not len(array):
        return b""
    return array.buffers()[-1].slice(array.offset * width, len(array) * width)


def _offset_at(offsets: Any, index: int) -> int:
    value: int = struct.unpack_from("<i", offsets, index * _OFFSET_BYTES)[0]
    return value
