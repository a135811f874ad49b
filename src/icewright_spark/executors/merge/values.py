"""Values of any orderable type as values of two types that Arrow compares quickly: 64-bit integers, or bytes.

The order is Spark's and Iceberg's: NaN above all numbers, every NaN the same, -0.0 the same as 0.0, ``false`` below
``true``, strings by the unsigned bytes of their UTF-8. A UUID is what Spark makes of it, a string.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icewright.core.errors import Unsupported

_SIGN: Final = np.uint64(1 << 63)
_BELOW_SIGN: Final = np.int64((1 << 63) - 1)
_DIGITS_OF_64_BITS: Final = 18
_DECIMAL_BYTES: Final = 16


def comparable(array: Any) -> Any:
    """An Arrow array as one of ``int64`` or ``binary`` in the same order, with the same nulls.

    Raises :class:`Unsupported` for a type that has no order in Iceberg.
    """
    plain = array.storage if isinstance(array, pa.ExtensionArray) else array
    kind = plain.type
    if pa.types.is_signed_integer(kind) or pa.types.is_boolean(kind):
        return plain.cast(pa.int64())
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return _floats(plain.cast(pa.float64()))
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return plain.view(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())  # noqa: PLR2004 - bits
    if pa.types.is_decimal128(kind):
        return _decimals(plain)
    if _is_bytes(kind):
        return plain.cast(pa.binary())
    if pa.types.is_null(kind):
        return plain.cast(pa.int64())
    raise Unsupported(f"values of Arrow's type {kind} have no order", hint="lay the table out by other columns")


def _is_bytes(kind: Any) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _floats(array: Any) -> Any:
    """IEEE 754 in sign and magnitude becomes two's complement."""
    values = np.array(array.fill_null(0.0)) + 0.0  # -0.0 + 0.0 is 0.0
    values[np.isnan(values)] = np.nan  # the one with no sign and no payload
    bits = values.view(np.int64)
    return _with_nulls_of(array, pa.array(bits ^ ((bits >> np.int64(63)) & _BELOW_SIGN)))


def _decimals(array: Any) -> Any:
    """128 bits, little-endian; what fits into 64 goes by those, the rest by big-endian bytes with the sign turned."""
    words: npt.NDArray[np.uint64] = np.zeros((0, 2), np.uint64)
    if len(array):
        words = np.frombuffer(array.buffers()[1], "<u8", 2 * len(array), array.offset * _DECIMAL_BYTES).reshape(-1, 2)
    if array.type.precision <= _DIGITS_OF_64_BITS:
        return _with_nulls_of(array, pa.array(words[:, 0].astype(np.int64)))
    turned = np.empty(words.shape, ">u8")
    turned[:, 0], turned[:, 1] = words[:, 1] ^ _SIGN, words[:, 0]
    plain = pa.Array.from_buffers(pa.binary(_DECIMAL_BYTES), len(array), [None, pa.py_buffer(turned.tobytes())])
    return _with_nulls_of(array, plain.cast(pa.binary()))


def _with_nulls_of(array: Any, values: Any) -> Any:
    return pc.if_else(array.is_valid(), values, None) if array.null_count else values
