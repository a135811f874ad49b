"""One table's files never take the service's time or memory without end."""

from __future__ import annotations

import bz2
import gzip
import os
import socket
import zlib
from binascii import crc32
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.io.fsspec import FsspecFileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from icewright.catalogs.metadata import bounded_reader as bounded
from icewright.catalogs.metadata import manifests
from icewright.catalogs.pointers import pointers
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import Unreadable, Unsupported
from icewright.model.iceberg.names import TableName
from tests.cases import each_case
from tests.lakes import sqlite
from tests.narrowing import not_none

NAME = TableName("lake", ("db",), "events")
LIMIT = 1 << 20
BOMB = bytes(64 << 20)
"""A hundred times what is allowed, and very small when packed."""


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


def a_link_to_an_endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


NOT_FILES = each_case("make", [a_pipe, a_folder, a_socket, a_link_to_an_endless_device])


@NOT_FILES
@each_case("prefix", ["", "file://", "file:"])
def test_only_regular_files_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], prefix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("x"))
    with pytest.raises(Unreadable, match="not a regular file"):
        bounded.read_whole(PyArrowFileIO(), f"{prefix}{tmp_path}/x", LIMIT)


def test_a_pipe_that_took_the_files_place_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "x", tmp_path / "real"
    real.write_bytes(b"abc")
    a_pipe(path)
    status = real.stat()
    monkeypatch.setattr(os, "stat", lambda _path: status)
    assert bounded.read_whole(PyArrowFileIO(), str(path), LIMIT) == b""


@pytest.mark.parametrize("io", [PyArrowFileIO(), FsspecFileIO({})])
def test_a_file_is_read_up_to_the_limit(tmp_path: Path, io: PyArrowFileIO | FsspecFileIO) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(100))
    assert bounded.read_whole(io, str(path), 100) == bytes(100)
    with pytest.raises(Unreadable, match="longer than 99 bytes"):
        bounded.read_whole(io, str(path), 99)


def test_what_shows_no_size_is_not_read_on_and_on() -> None:
    assert bounded.read_whole(PyArrowFileIO(), "/proc/self/status", 3) == b""


def test_gzip_is_unpacked_up_to_the_limit() -> None:
    assert bounded.unpack_gzip(gzip.compress(b"abc"), "x", 3) == b"abc"
    assert bounded.unpack_gzip(b"abc", "x", 3) == b"abc"
    with pytest.raises(Unreadable, match="longer than"):  # its end, which is missing, is never come to
        bounded.unpack_gzip(gzip.compress(BOMB)[:-20], "x", LIMIT)
    with pytest.raises(Unreadable, match="longer than 2 bytes"):
        bounded.unpack_gzip(b"abc", "x", 2)


def deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


def zstandard(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def snappy(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="snappy", asbytes=True)) + crc32(data).to_bytes(4, "big")


PACKED: Mapping[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": deflate,
    "bzip2": bz2.compress,
    "zstandard": zstandard,
    "snappy": snappy,
}
CODECS = each_case("codec", PACKED)


@CODECS
def test_blocks_are_unpacked_up_to_the_limit(codec: str) -> None:
    data = b"abc" * 100
    assert bounded.unpack_block(codec, PACKED[codec](data), "x", 300) == data
    with pytest.raises(Unreadable, match="longer than 299 bytes"):
        bounded.unpack_block(codec, PACKED[codec](data), "x", 299)
    assert bounded.unpack_block(codec, PACKED[codec](b""), "x", 0) == b""


@CODECS
def test_no_more_is_unpacked_than_the_limit(codec: str) -> None:
    unpacked = bounded._CODECS[codec](PACKED[codec](BOMB), LIMIT)
    assert codec == "null" or unpacked is None or len(unpacked) == LIMIT


@each_case("codec", [codec for codec in PACKED if codec != "null"])
def test_a_block_without_its_end_is_damage(codec: str) -> None:
    packed = PACKED[codec](os.urandom(10_000))
    with pytest.raises((ValueError, EOFError, zlib.error)):
        bounded.unpack_block(codec, packed[:-20], "x", LIMIT)


def test_a_snappy_block_is_checked() -> None:
    packed = bytearray(snappy(b"abcdefgh"))
    packed[-5] ^= 1
    with pytest.raises(ValueError, match="checksum"):
        bounded.unpack_block("snappy", bytes(packed), "x", LIMIT)
    with pytest.raises(EOFError):
        bounded.unpack_block("snappy", b"", "x", LIMIT)


def test_an_unknown_codec_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="'brotli'"):
        bounded.unpack_block("brotli", b"", "x", LIMIT)


@NOT_FILES
def test_a_table_whose_files_are_none_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    entry = sqlite.make_lake(tmp_path)
    sqlite.append(sqlite.make_table(entry), [1])
    looked_at = PyIcebergCatalog(entry)
    table = looked_at.load(NAME)
    snapshot = not_none(table.current_snapshot)
    monkeypatch.chdir(tmp_path)
    make(Path("none"))
    elsewhere = replace(snapshot, manifest_list=f"file://{tmp_path}/none")
    with pytest.raises(Unreadable, match="not a regular file"):
        looked_at.manifests(table, elsewhere)
    keys = looked_at.manifests(table, snapshot)
    path = Path(keys[0].path.removeprefix("file://"))
    path.unlink()
    (tmp_path / "none").rename(path)
    with pytest.raises(Unreadable, match="not a regular file"):
        list(looked_at.summarize(table, snapshot, keys))
    path.rename(tmp_path / "none")
    location = Path(table.metadata_location.removeprefix("file://"))
    location.unlink()
    (tmp_path / "none").rename(location)
    with pytest.raises(Unreadable, match="not a regular file"):
        looked_at.load(NAME)


@each_case(
    ("module", "limit"),
    [
        (pointers, "METADATA_BYTES_MAX"),
        (manifests, "MANIFEST_LIST_BYTES_MAX"),
        (manifests, "MANIFEST_BYTES_MAX"),
    ],
)
def test_every_kind_of_file_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, limit: str
) -> None:
    entry = sqlite.make_lake(tmp_path)
    sqlite.append(sqlite.make_table(entry), [1])
    monkeypatch.setattr(module, limit, 200)
    looked_at = PyIcebergCatalog(entry)
    with pytest.raises(Unreadable, match="longer than 200 bytes"):
        look(looked_at)


def test_packed_metadata_has_the_limit_of_what_it_unpacks_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = sqlite.make_lake(tmp_path)
    file = Path(sqlite.make_table(entry).metadata_location.removeprefix("file://"))
    file.write_bytes(gzip.compress(file.read_bytes() + b" " * 100_000))
    assert file.stat().st_size < 10_000
    monkeypatch.setattr(pointers, "METADATA_BYTES_MAX", 10_000)
    with pytest.raises(Unreadable, match="longer than 10000 bytes"):
        PyIcebergCatalog(entry).load(NAME)


def look(looked_at: PyIcebergCatalog) -> None:
    table = looked_at.load(NAME)
    snapshot = not_none(table.current_snapshot)
    list(looked_at.summarize(table, snapshot, looked_at.manifests(table, snapshot)))
