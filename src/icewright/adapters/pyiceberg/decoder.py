"""An Avro decoder that never reads past its bytes.

PyIceberg's compiled decoder does not look where its buffer ends: on a truncated or damaged manifest it gives out
foreign memory or ends the process, and it reads doubles as floats, so that different partitions become one. One
bad file of one table must not end a service that looks after all the others.
"""

from __future__ import annotations

from pyiceberg.avro.decoder import BinaryDecoder

_VARINT_BITS = 64


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
        number = shift = 0
        try:
            while True:
                byte = data[position]
                position += 1
                number |= (byte & 0x7F) << shift
                if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follows
                    break
                shift += 7
                if shift >= _VARINT_BITS:
                    raise ValueError(f"an integer of more than {_VARINT_BITS} bits at byte {self._position}")
        except IndexError as error:
            raise EOFError(f"an integer without end at byte {self._position}") from error
        self._position = position
        return (number >> 1) ^ -(number & 1)

    def skip_int(self) -> None:
        """Pass over an integer."""
        self.read_int()
