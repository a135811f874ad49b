"""The data pages of a Parquet file, from their own headers: no library at hand tells them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA_PAGE = 0
_TRUE, _FALSE, _I16, _I32, _I64, _BINARY, _STRUCT = 1, 2, 4, 5, 6, 8, 12


def page_values(path: str, chunk: Any) -> list[int]:
    """How many values each data page of a column chunk has; ``chunk`` is pyarrow's metadata of it."""
    with Path(path).open("rb") as file:
        file.seek(chunk.data_page_offset)
        data = file.read(chunk.total_compressed_size)
    return list(_values(data, chunk.num_values))


def _values(data: bytes, left: int) -> Iterator[int]:
    position = 0
    while left > 0:
        header, position = _struct(data, position)
        if header[1] != DATA_PAGE:  # PageHeader.type
            raise ValueError(f"a page of type {header[1]}")
        values = header[5][1]  # PageHeader.data_page_header.num_values
        yield values
        left -= values
        position += header[3]  # PageHeader.compressed_page_size


def _struct(data: bytes, position: int) -> tuple[dict[int, Any], int]:
    """One struct of Thrift's compact protocol by field id, as far as Parquet's page headers need it."""
    fields: dict[int, Any] = {}
    field_id = 0
    while (head := data[position]) != 0:
        position += 1
        kind, step = head & 0x0F, head >> 4
        if step:
            field_id += step
        else:
            field_id, position = _zigzag(data, position)
        if kind in (_TRUE, _FALSE):
            fields[field_id] = kind == _TRUE
        elif kind in (_I16, _I32, _I64):
            fields[field_id], position = _zigzag(data, position)
        elif kind == _BINARY:
            length, position = _varint(data, position)
            fields[field_id] = data[position : position + length]
            position += length
        elif kind == _STRUCT:
            fields[field_id], position = _struct(data, position)
        else:
            raise ValueError(f"field {field_id} of Thrift's type {kind}")
    return fields, position + 1


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    number, position = _varint(data, position)
    return (number >> 1) ^ -(number & 1), position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, position
