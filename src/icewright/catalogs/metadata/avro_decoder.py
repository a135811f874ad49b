"""An Avro decoder that never reads past its bytes.

PyIceberg's compiled decoder does not look where its buffer ends: on a truncated or damaged manifest it gives out
foreign memory or ends the process, and it reads doubles as floats, so that different partitions become one. One
bad file of one table must not end a service that looks after all the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from pyiceberg.avro.decoder import BinaryDecoder

_VARINT_BITS = 64
_AT_ONCE = 64
_INT = rb"(?>[\x80-\xff]{0,9}[\x00-\x7f])"
"""An integer: bytes with the bit that says that more follows, then one without; ten at most."""
_LENGTHS = sorted(range(64), key=lambda length: (length not in {4, 8, 16}, length))
_SHORT = b"|".join(re.escape(bytes([2 * length])) + b".{%d}" % length for length in _LENGTHS)
"""Bytes whose length is one byte; most values have a few lengths."""


class CheckedDecoder(BinaryDecoder):
    """Decodes from bytes in memory; raises EOFError for whatever lies outside them."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def tell(self) -> int:
        """How many bytes are read."""
        return self._position

    def read(self, n: int) -> bytes:
        """The next ``n`` bytes."""
        start = self._position
        self.skip(n)
        return self._data[start : self._position]

    def read_rest(self) -> bytes:
        """All bytes that are left."""
        return self.read(len(self._data) - self._position)

    def skip(self, n: int) -> None:
        """Pass over ``n`` bytes; never backwards."""
        end = self._position + n
        if n < 0 or end > len(self._data):
            raise EOFError(f"{n} bytes wanted at byte {self._position} of {len(self._data)}")
        self._position = end

    def read_int(self) -> int:
        """A zigzag-coded integer of variable length."""
        data, position = self._data, self._position
        try:
            byte = data[position]
            number, shift = byte & 0x7F, 7
            while byte & 0x80:  # the bit that says that more follows; most have one byte
                if shift >= _VARINT_BITS:
                    raise ValueError(f"an integer of more than {_VARINT_BITS} bits at byte {self._position}")
                position += 1
                byte = data[position]
                number |= (byte & 0x7F) << shift
                shift += 7
        except IndexError as error:
            raise EOFError(f"an integer without end at byte {self._position}") from error
        self._position = position + 1
        return (number >> 1) ^ -(number & 1)

    def read_bytes(self) -> bytes:
        """Bytes behind their length."""
        length = self.read_int()
        return self.read(length) if length > 0 else b""

    def read_utf8(self) -> str:
        """A text behind its length in bytes."""
        return self.read_bytes().decode()

    def skip_bytes(self) -> None:
        """Pass over bytes behind their length."""
        self.skip(self.read_int())

    def skip_int(self) -> None:
        """Pass over an integer."""
        self.read_int()

    def skip_ints(self, count: int) -> None:
        """Pass over integers."""
        if not self._skip_all(_ints, count):
            raise EOFError(f"an integer without end, or of more than {_VARINT_BITS} bits, after byte {self._position}")

    def skip_int_bytes(self, count: int) -> None:
        """Pass over so many integers each of which has bytes behind it."""
        position = self._position
        if self._skip_all(_ints_with_short_bytes, count):
            return
        self._position = position
        for _ in range(count):
            self.skip_int()
            self.skip(self.read_int())

    def _skip_all(self, pattern_of: Callable[[int], re.Pattern[bytes]], count: int) -> bool:
        """Pass over as many things of a pattern; False where they do not follow one another."""
        while count > 0:
            some = min(count, _AT_ONCE)
            found = pattern_of(some).match(self._data, self._position)
            if found is None:
                return False
            self._position = found.end()
            count -= some
        return True


# Most of a manifest are maps from columns to numbers and bytes that nobody here wants: to pass over them byte by byte
# takes longer than everything else. Regular expressions run in C, never look beyond their data, and say when it ends.
@cache
def _ints(count: int) -> re.Pattern[bytes]:
    return re.compile(b"%s{%d}" % (_INT, count))


@cache
def _ints_with_short_bytes(count: int) -> re.Pattern[bytes]:
    return re.compile(b"(?>%s(?:%s)){%d}" % (_INT, _SHORT, count), re.DOTALL)
