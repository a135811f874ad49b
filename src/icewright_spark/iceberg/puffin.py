"""Puffin files and theta sketches as bytes (Puffin spec; Apache DataSketches' compact serialization).

A reader of our own, for proofs: what Iceberg wrote is not believed by Iceberg's own reader.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from icewright_spark.parquet.errors import ProofFailed

MAGIC: Final = b"PFA1"
_FOOTER_END: Final = 12
"""After the payload: its length, the flags, the magic."""
_COMPACT: Final = 3
"""The family of compact sketches, and the version of their serialization."""
_EMPTY: Final = 0x04
_SINGLE: Final = 0x20
_BLOB_SIZE_MAX: Final = 1 << 20
"""Sixteen times the largest sketch that Iceberg's action makes."""
_LONG_MAX: Final = float(2**63 - 1)
_EXACT, _ESTIMATED = 2, 3


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob as the footer describes it, and its bytes."""

    described: dict[str, Any]
    content: bytes


def read_puffin(content: bytes) -> tuple[int, list[Blob]]:
    """The size of a file's footer, and its blobs, uncompressed. Raises :class:`ProofFailed` for what is no such file.

    Of the codecs of the spec only that is read which Iceberg's action writes, zstd.
    """
    if len(content) < len(MAGIC) * 3 + 8 or content[:4] != MAGIC or content[-4:] != MAGIC:
        raise ProofFailed("the statistics file does not begin and end as a Puffin file does")
    (payload, flags) = struct.unpack("<i4s", content[-_FOOTER_END:-4])
    start = len(content) - _FOOTER_END - payload
    if flags != b"\0\0\0\0" or payload < 0 or start < 2 * len(MAGIC) or content[start - 4 : start] != MAGIC:
        raise ProofFailed("the statistics file has no footer that can be read")
    try:
        said = json.loads(content[start : start + payload])["blobs"]
        blobs = [_blob(each, content[: start - 4]) for each in said]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ProofFailed(f"the statistics file cannot be read: {error!r:.100}") from error
    return len(content) - start + 4, blobs


def _blob(described: dict[str, Any], content: bytes) -> Blob:
    offset, end = int(described["offset"]), int(described["offset"]) + int(described["length"])
    if not len(MAGIC) <= offset <= end <= len(content):
        raise ProofFailed("a blob of the statistics file lies outside of it")
    codec, its = described.get("compression-codec"), content[offset:end]
    if codec not in (None, "zstd"):
        raise ProofFailed(f"a blob of the statistics file is compressed by {codec!r:.20}")
    if codec is not None:
        its = pa.CompressedInputStream(pa.BufferReader(its), codec).read(_BLOB_SIZE_MAX + 1)
    if len(its) > _BLOB_SIZE_MAX:
        raise ProofFailed("a blob of the statistics file is too large for a sketch")
    return Blob(described, its)


def distinct_values(sketch: bytes) -> int:
    """What a compact theta sketch estimates. Raises :class:`ProofFailed` for what is none.

    Layout: preamble longs, serial version, family, two bytes, flags, seed hash; the count of hashes at 8, theta at 16.
    """
    preamble = sketch[0] & 0x3F if sketch else 0
    if len(sketch) < 8 or (sketch[1], sketch[2]) != (_COMPACT, _COMPACT):  # noqa: PLR2004 - one preamble long
        raise ProofFailed("a sketch is no compact theta sketch")
    flags = sketch[5]
    if flags & _EMPTY:
        return 0
    if preamble == 1 or flags & _SINGLE:
        _check_hashes(sketch, 1, 1)
        return 1
    if preamble not in (_EXACT, _ESTIMATED) or len(sketch) < 8 * preamble:
        raise ProofFailed(f"a theta sketch has a preamble of {preamble} longs")
    (count,) = struct.unpack_from("<i", sketch, 8)
    theta = struct.unpack_from("<q", sketch, 16)[0] if preamble == _ESTIMATED else 2**63 - 1
    if theta <= 0:
        raise ProofFailed("a theta sketch has no sampling probability")
    _check_hashes(sketch, preamble, count, theta)
    return int(count * (_LONG_MAX / theta))


def _check_hashes(sketch: bytes, preamble: int, count: int, theta: int = 2**63 - 1) -> None:
    """There are as many hashes as counted, each its own, all below theta."""
    if count < 0 or len(sketch) < 8 * (preamble + count):
        raise ProofFailed(f"a theta sketch has fewer than its {count} hashes")
    hashes = struct.unpack_from(f"<{count}q", sketch, 8 * preamble)
    if len(set(hashes)) < count or any(not 0 < each < theta for each in hashes):
        raise ProofFailed("a theta sketch has hashes twice, or such that are none")
