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
_MORE = 0x80
"""From here on a byte has the bit that says that more follows."""
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

    def head(self) -> bytes:
        """How the next record begins, as long as its first field is if that is a text. Nothing is passed over."""
        start = self._position
        first = self._data[start : start + 2]
        if len(first) < 2:  # noqa: PLR2004 - fewer than were asked for
            return first
        length = first[0] >> 1 if first[0] < _MORE else (first[0] & 0x7F | first[1] << 7) >> 1
        return self._data[start : start + 2 + length]

    def since(self, start: int) -> bytes:
        """The bytes from there to here."""
        return self._data[start : self._position]

    def skip_same(self, expected: bytes) -> bool:
        """Pass over these bytes; False, without passing over anything, where others follow."""
        if not self._data.startswith(expected, self._position):
            return False
        self._position += len(expected)
        return True

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
            if byte < _MORE:  # as most are
                self._position = position + 1
                return (byte >> 1) ^ -(byte & 1)
            number, shift = byte & 0x7F, 7
            while byte >= _MORE:
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

    def skip_option(self, blocks: OptionalBlock) -> bool:
        """Pass over an optional list or map; False, without passing over anything, where no pattern is like it."""
        data, position = self._data, self._position
        found = blocks.pattern_of(data[position : position + 2]).match(data, position)
        if found is None:
            return False
        self._position = found.end()
        return True

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
def ints(count: int) -> bytes:
    """The pattern of so many integers."""
    return b"%s{%d}" % (_INT, count)


def ints_with_short_bytes(count: int) -> bytes:
    """The pattern of so many integers, each with less than 64 bytes behind it."""
    return b"(?>%s(?:%s)){%d}" % (_INT, _SHORT, count)


class OptionalBlock:
    """Patterns of an optional list or map by its first two bytes: whether it is there, and how many items it has.

    ``items`` gives the pattern of so many items.
    """

    def __init__(self, items: Callable[[int], bytes]) -> None:
        self._items = items
        self._patterns: dict[bytes, re.Pattern[bytes]] = {}

    def pattern_of(self, head: bytes) -> re.Pattern[bytes]:
        """One that matches nothing where items come in several blocks, or are 64 or more."""
        found = self._patterns.get(head)
        if found is None:
            pattern = self._pattern(head)
            if pattern is None:
                return _NOTHING
            found = self._patterns[head] = re.compile(pattern, re.DOTALL)
        return found

    def _pattern(self, head: bytes) -> bytes | None:
        match list(head):
            case [0, *_]:
                return b"\x00"
            case [2, 0]:
                return b"\x02\x00"
            case [2, twice] if twice < _MORE and twice % 2 == 0:
                return re.escape(head) + self._items(twice // 2) + b"\x00"
            case _:
                return None


_NOTHING = re.compile(b"(?!)")
_ints = cache(lambda count: re.compile(ints(count)))
_ints_with_short_bytes = cache(lambda count: re.compile(ints_with_short_bytes(count), re.DOTALL))
