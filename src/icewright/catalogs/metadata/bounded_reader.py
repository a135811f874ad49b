"""Metadata files whole in memory, but never more of them than a limit.

Whoever may write one table's metadata must not be able to stop the service that looks after all the others: with a
named pipe that nobody writes to, with a file that never ends, or with a small one that unpacks to a very large one.
"""

from __future__ import annotations

import bz2
import os
import stat
import struct
import zlib
from binascii import crc32
from collections.abc import Callable, Mapping
from gzip import GzipFile
from io import BytesIO
from typing import Final

import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from icewright.core.errors import Unreadable, Unsupported

METADATA_BYTES_MAX: Final = 128 << 20
"""A table's metadata file, unpacked: some 80,000 snapshots. Parsed, it takes several times as much memory."""
MANIFEST_LIST_BYTES_MAX: Final = 128 << 20
"""A manifest list, packed and unpacked: some 500,000 manifests."""
MANIFEST_BYTES_MAX: Final = 512 << 20
"""A manifest, packed and unpacked, all blocks together; Iceberg's writers aim at 8 MiB packed."""

_GZIP_MAGIC = b"\x1f\x8b"
_CRC_BYTES = 4


def read_whole(io: FileIO, path: str, bytes_max: int) -> bytes:
    """All bytes of a file.

    Raises :class:`Unreadable` for one of more than ``bytes_max``, and for what lies on a local disk and is no regular
    file: opening a pipe would wait for its writer, a device may have no end.
    """
    local_path = _local_path(io, path)
    if local_path is not None:
        return _read_regular(local_path, bytes_max)
    file = io.new_input(path)
    if len(file) > bytes_max:
        raise _too_long(path, bytes_max)
    with file.open() as stream:
        return stream.read()


def _local_path(io: FileIO, path: str) -> str | None:
    if not isinstance(io, PyArrowFileIO):
        return None
    scheme, _, local_path = io.parse_location(path, io.properties)
    return local_path if scheme == "file" else None


def _read_regular(path: str, bytes_max: int) -> bytes:
    status = os.stat(path)  # noqa: PTH116 - the storage's own path, which pathlib would tidy up
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(f"{path} is not a regular file")
    if status.st_size > bytes_max:
        raise _too_long(path, bytes_max)
    # Not blocking, and no more than its size: it may have become something else since.
    with open(path, "rb", opener=_open_without_waiting) as stream:
        return stream.read(status.st_size)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def unpack_gzip(content: bytes, path: str, bytes_max: int) -> bytes:
    """``content``, unpacked if it is gzipped. Raises :class:`Unreadable` beyond the limit, before unpacking it all."""
    if content.startswith(_GZIP_MAGIC):
        with GzipFile(fileobj=BytesIO(content)) as stream:
            content = stream.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise _too_long(path, bytes_max)
    return content


def unpack_block(codec: str, block: bytes, path: str, bytes_max: int) -> bytes:
    """A block of an Avro file, unpacked.

    Raises :class:`Unreadable` beyond the limit, before unpacking it all; :class:`Unsupported` for an unknown codec;
    ValueError, EOFError or zlib.error for a damaged block.
    """
    unpack = _CODECS.get(codec)
    if unpack is None:
        raise Unsupported(f"{path} is packed with the unknown codec {codec!r}")
    try:
        content = unpack(block, bytes_max + 1)
    except OSError as error:  # so bz2 and Arrow tell damage, though nothing but memory is read
        raise ValueError(f"a damaged {codec} block: {error}") from error
    if content is None or len(content) > bytes_max:
        raise _too_long(path, bytes_max)
    return content


def _inflate(block: bytes, most: int) -> bytes:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    return _complete(unpacker.decompress(block, most), most, at_end=unpacker.eof)


def _unpack_bzip2(block: bytes, most: int) -> bytes:
    unpacker = bz2.BZ2Decompressor()
    return _complete(unpacker.decompress(block, most), most, at_end=unpacker.eof)


def _complete(content: bytes, most: int, *, at_end: bool) -> bytes:
    if not at_end and len(content) < most:
        raise EOFError("a packed block without its end")
    return content


def _unpack_zstandard(block: bytes, most: int) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        return bytes(stream.read(most))


def _unpack_snappy(block: bytes, most: int) -> bytes | None:
    """Snappy cannot be unpacked in part, but says first what it comes to; None when that is too much.

    Avro puts a checksum behind it (Avro specification, "Required Codecs"; Snappy, "Compressed format description").
    """
    size_bytes = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(_varint(block)))
    if size_bytes >= most:
        return None
    content = bytes(pa.decompress(block[:-_CRC_BYTES], size_bytes, codec="snappy", asbytes=True))
    if crc32(content) != struct.unpack(">I", block[-_CRC_BYTES:])[0]:
        raise ValueError("the checksum of a snappy block is wrong")
    return content


def _varint(data: bytes) -> bytes:
    """The bytes of the variable-length integer at the beginning; the last one has no continuation bit."""
    for end, byte in enumerate(data, start=1):
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit
            return data[:end]
    raise EOFError("an integer without end")


_CODECS: Mapping[str, Callable[[bytes, int], bytes | None]] = {
    "null": lambda block, _most: block,
    "deflate": _inflate,
    "bzip2": _unpack_bzip2,
    "zstandard": _unpack_zstandard,
    "snappy": _unpack_snappy,
}


def _too_long(path: str, bytes_max: int) -> Unreadable:
    return Unreadable(f"{path} is longer than {bytes_max} bytes, the most that is read of such a file")
