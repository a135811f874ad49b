"""Thrift's compact protocol without a schema: structs by field id, so that what nobody knows here survives.

Parquet's footers, page indexes and headers are written in it. No library reads them without dropping fields that it
does not know, and none re-bases a footer; what is needed of the protocol is this page. From its specification,
``thrift-compact-protocol.md`` of Apache Thrift. Input may be anybody's: nothing is allocated that is not there.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

TRUE: Final = 1
FALSE: Final = 2
I8: Final = 3
I16: Final = 4
I32: Final = 5
I64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
SET: Final = 10
MAP: Final = 11
STRUCT: Final = 12
UUID: Final = 13

Struct: TypeAlias = dict[int, tuple[int, Any]]
"""Type and value of each field by its id, in the order of the file.

A bool's type is its value, and the value says it again. Lists and sets are pairs of the elements' type and a list;
maps are None when empty, else (type of keys, type of values, list of pairs). Doubles and UUIDs stay bytes.
"""

DEPTH_MAX: Final = 32
"""Structs and lists in one another: Parquet has some six, and each costs a frame of the stack."""

_SHORT_SIZE_MAX: Final = 14
_SHORT_STEP_MAX: Final = 15
_VARINT_BITS_MAX: Final = 63
_LOW_BITS: Final = 0x7F
_MORE: Final = 0x80
_I64_MAX: Final = (1 << 64) - 1
_SIZES: Final = {DOUBLE: 8, UUID: 16}


class Malformed(ValueError):
    """The bytes are not what the protocol allows, or end too early."""


def read_struct(data: bytes, position: int = 0) -> tuple[Struct, int]:
    """The struct that begins at a position, and where it ends. Raises :class:`Malformed`."""
    try:
        return _struct(data, position, 0)
    except IndexError:
        raise Malformed("it ends within a struct") from None


def write_struct(struct: Struct) -> bytes:
    """A struct as bytes; what was read from minimal encodings comes out as it was."""
    out = bytearray()
    _write_struct(out, struct)
    return bytes(out)


def _struct(data: bytes, position: int, depth: int) -> tuple[Struct, int]:
    if depth > DEPTH_MAX:
        raise Malformed(f"more than {DEPTH_MAX} structs and lists in one another")
    fields: Struct = {}
    field_id = 0
    while head := data[position]:
        position += 1
        kind = head & 0x0F
        if head >> 4:
            field_id += head >> 4
        else:
            number, position = _varint(data, position)
            field_id = (number >> 1) ^ -(number & 1)
        if field_id in fields:
            raise Malformed(f"field {field_id} is twice in a struct")
        if kind in (I32, I64):
            number, position = _varint(data, position)
            fields[field_id] = (kind, (number >> 1) ^ -(number & 1))
        elif kind in (TRUE, FALSE):
            fields[field_id] = (kind, kind == TRUE)
        else:
            value, position = _value(data, position, kind, depth + 1)
            fields[field_id] = (kind, value)
    return fields, position + 1


def _value(data: bytes, position: int, kind: int, depth: int) -> tuple[Any, int]:
    """A value that is no bool of a struct."""
    if kind == BINARY or kind in _SIZES:
        length, position = _varint(data, position) if kind == BINARY else (_SIZES[kind], position)
        return _bytes(data, position, length), position + length
    if kind == STRUCT:
        return _struct(data, position, depth)
    if kind in (I16, I32, I64):
        number, position = _varint(data, position)
        return (number >> 1) ^ -(number & 1), position
    if kind in (LIST, SET):
        return _list(data, position, depth)
    if kind in (TRUE, FALSE, I8):  # a bool of a list is a byte as well
        return data[position], position + 1
    if kind == MAP:
        return _map(data, position, depth)
    raise Malformed(f"there is no type {kind}")


def _list(data: bytes, position: int, depth: int) -> tuple[tuple[int, list[Any]], int]:
    head = data[position]
    position += 1
    size, kind = head >> 4, head & 0x0F
    if size > _SHORT_SIZE_MAX:
        size, position = _varint(data, position)
    _check_size(data, position, size, depth)
    values = []
    for _ in range(size):
        value, position = _value(data, position, kind, depth + 1)
        values.append(value)
    return (kind, values), position


def _map(data: bytes, position: int, depth: int) -> tuple[tuple[int, int, list[Any]] | None, int]:
    size, position = _varint(data, position)
    if size == 0:
        return None, position
    _check_size(data, position, size, depth)
    kinds = data[position]
    position += 1
    pairs = []
    for _ in range(size):
        key, position = _value(data, position, kinds >> 4, depth + 1)
        value, position = _value(data, position, kinds & 0x0F, depth + 1)
        pairs.append((key, value))
    return (kinds >> 4, kinds & 0x0F, pairs), position


def _check_size(data: bytes, position: int, size: int, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise Malformed(f"more than {DEPTH_MAX} structs and lists in one another")
    if size > len(data) - position:  # each element has a byte at least
        raise Malformed(f"{size} elements where {len(data) - position} bytes are left")


def _bytes(data: bytes, position: int, length: int) -> bytes:
    value = data[position : position + length]
    if len(value) != length:
        raise Malformed(f"{length} bytes where {len(value)} are left")
    return bytes(value)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    if byte <= _LOW_BITS:  # most numbers are small
        return byte, position + 1
    number, shift = byte & _LOW_BITS, 7
    while True:
        position += 1
        byte = data[position]
        number |= (byte & _LOW_BITS) << shift
        if byte <= _LOW_BITS:
            break
        shift += 7
        if shift > _VARINT_BITS_MAX:
            raise Malformed("a number of more than 64 bits")
    if number > _I64_MAX:
        raise Malformed("a number of more than 64 bits")
    return number, position + 1


def _write_struct(out: bytearray, struct: Struct) -> None:
    last = 0
    for field_id, (kind, value) in struct.items():
        step = field_id - last
        if 0 < step <= _SHORT_STEP_MAX:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _write_varint(out, _zigzag(field_id))
        last = field_id
        if kind in (I32, I64):
            _write_varint(out, _zigzag(value))
        elif kind not in (TRUE, FALSE):
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in (I16, I32, I64):
        _write_varint(out, _zigzag(value))
    elif kind in (LIST, SET):
        _write_list(out, *value)
    elif kind in (TRUE, FALSE, I8):
        out.append(value)
    elif kind == MAP:
        _write_map(out, value)
    else:
        out += value


def _write_list(out: bytearray, kind: int, values: list[Any]) -> None:
    if len(values) <= _SHORT_SIZE_MAX:
        out.append(len(values) << 4 | kind)
    else:
        out.append(0xF0 | kind)
        _write_varint(out, len(values))
    for value in values:
        _write_value(out, kind, value)


def _write_map(out: bytearray, value: tuple[int, int, list[Any]] | None) -> None:
    if value is None:
        out.append(0)
        return
    key_kind, value_kind, pairs = value
    _write_varint(out, len(pairs))
    out.append(key_kind << 4 | value_kind)
    for key, item in pairs:
        _write_value(out, key_kind, key)
        _write_value(out, value_kind, item)


def _zigzag(number: int) -> int:
    return number << 1 if number >= 0 else ~(number << 1)


def _write_varint(out: bytearray, number: int) -> None:
    while number > _LOW_BITS:
        out.append(number & _LOW_BITS | _MORE)
        number >>= 7
    out.append(number)
