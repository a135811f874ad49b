"""The decoder keeps within its bytes, and blocks within their file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.avro.reader import BinaryReader, IntegerReader, ListReader, MapReader, OptionReader
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestContent, ManifestFile, write_manifest_list

from icewright.catalogs.metadata import avro
from icewright.catalogs.metadata.avro import AvroRecords, RecordsByBytes, _quick
from icewright.catalogs.metadata.avro_decoder import CheckedDecoder
from icewright.catalogs.metadata.manifests import _MANIFESTS
from icewright.core.errors import Unreadable
from tests.cases import each_case


def encoded(number: int) -> bytes:
    stream = BytesIO()
    BinaryEncoder(stream).write_int(number)
    return stream.getvalue()


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_come_back(numbers: list[int]) -> None:
    decoder = CheckedDecoder(b"".join(encoded(number) for number in numbers))
    assert [decoder.read_int() for _ in numbers] == numbers
    with pytest.raises(EOFError):
        decoder.read_int()


@given(st.binary(max_size=12))
def test_it_reads_what_pyicebergs_reads_as_far_as_there_are_bytes(data: bytes) -> None:
    ours, theirs = CheckedDecoder(data), StreamingBinaryDecoder(data)
    try:
        expected = theirs.read_bytes()
    except EOFError:
        expected = None
    if expected is None:
        with pytest.raises((EOFError, ValueError)):
            ours.read_bytes()
    elif theirs.tell() <= 10:
        assert ours.read_bytes() == expected
        assert ours.tell() == theirs.tell()


@each_case("data", [b"\x10ab", b"\xfe\xff\xff\xff\x0fab", b"\x80\x80", b""])
def test_nothing_outside_is_read(data: bytes) -> None:
    with pytest.raises(EOFError):
        CheckedDecoder(data).read_bytes()


def test_integers_have_64_bits_at_most() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        CheckedDecoder(b"\xff" * 11).read_int()


NUMBERS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(NUMBERS, max_size=200), st.binary(max_size=3), st.integers(0, 3))
def test_passing_over_integers_is_reading_them(numbers: list[int], rest: bytes, short: int) -> None:
    data = b"".join(encoded(number) for number in numbers)
    decoder = CheckedDecoder(data + rest)
    decoder.skip_ints(len(numbers))
    assert decoder.tell() == len(data)
    assert decoder.read_rest() == rest
    with pytest.raises(EOFError):
        CheckedDecoder(data).skip_ints(len(numbers) + 1 + short)


@given(st.lists(st.tuples(NUMBERS, st.binary(max_size=70)), max_size=150), st.binary(max_size=3), st.data())
def test_passing_over_integers_and_bytes_is_reading_them(
    pairs: list[tuple[int, bytes]], rest: bytes, draw: st.DataObject
) -> None:
    data = b"".join(encoded(number) + encoded(len(value)) + value for number, value in pairs)
    decoder = CheckedDecoder(data + rest)
    decoder.skip_int_bytes(len(pairs))
    assert decoder.tell() == len(data)
    assert decoder.read_rest() == rest
    if data:
        cut = draw.draw(st.integers(0, len(data) - 1))
        with pytest.raises(EOFError):
            CheckedDecoder(data[:cut]).skip_int_bytes(len(pairs))


LONG, BYTES = (cast("Any", reader)() for reader in (IntegerReader, BinaryReader))
OPTIONS = {
    "ints": (ListReader(LONG), NUMBERS.map(encoded)),
    "pairs": (MapReader(LONG, LONG), st.tuples(NUMBERS, NUMBERS).map(lambda pair: encoded(pair[0]) + encoded(pair[1]))),
    "bytes": (
        MapReader(LONG, BYTES),
        st.tuples(NUMBERS, st.binary(max_size=70)).map(lambda pair: encoded(pair[0]) + of_length(pair[1])),
    ),
}


def of_length(value: bytes) -> bytes:
    return encoded(len(value)) + value


@st.composite
def optional_blocks(draw: st.DrawFn, item: st.SearchStrategy[bytes]) -> bytes:
    """An option in any form that Avro has: nothing, or blocks with or without their size."""
    if draw(st.booleans()):
        return encoded(0)
    data = encoded(1)
    for items in draw(st.lists(st.lists(item, min_size=1, max_size=80), max_size=2)):
        block = b"".join(items)
        data += encoded(-len(items)) + of_length(block) if draw(st.booleans()) else encoded(len(items)) + block
    return data + encoded(0)


@each_case("kind", sorted(OPTIONS))
@given(draw=st.data(), rest=st.binary(max_size=3))
def test_passing_over_an_option_is_reading_it(kind: str, draw: st.DataObject, rest: bytes) -> None:
    option, item = OPTIONS[kind]
    data, reader = draw.draw(optional_blocks(item)), _quick(OptionReader(option))
    ours, theirs = CheckedDecoder(data + rest), StreamingBinaryDecoder(data + rest)
    reader.skip(ours)
    OptionReader(option).skip(theirs)
    assert ours.tell() == theirs.tell() == len(data)
    assert reader.read(CheckedDecoder(data)) == OptionReader(option).read(StreamingBinaryDecoder(data))
    with pytest.raises(EOFError):
        reader.skip(CheckedDecoder(data[: draw.draw(st.integers(0, len(data) - 1))]))


@each_case("kind", sorted(OPTIONS))
@given(data=st.binary(max_size=8))
def test_an_option_of_other_bytes_is_passed_over_as_pyiceberg_does(kind: str, data: bytes) -> None:
    option, reader = OPTIONS[kind][0], _quick(OptionReader(OPTIONS[kind][0]))
    ours, plain = CheckedDecoder(data), CheckedDecoder(data)
    try:
        OptionReader(option).skip(plain)
    except (EOFError, ValueError):
        with pytest.raises((EOFError, ValueError)):
            reader.skip(ours)
    else:
        reader.skip(ours)
        assert ours.tell() == plain.tell()


@each_case("data", [b"\xff" * 11 + b"\x00", b"\x00\x01", b"\x00\xff\xff\xff\xff\x0f"])
def test_what_is_no_integer_or_no_length_is_not_passed_over(data: bytes) -> None:
    """An integer of more than ten bytes, and lengths below nothing."""
    with pytest.raises((EOFError, ValueError)):
        CheckedDecoder(data).skip_int_bytes(1)


def test_more_than_there_can_be_ends_at_once() -> None:
    for skip in (CheckedDecoder(b"\x00" * 1000).skip_ints, CheckedDecoder(b"\x00" * 1000).skip_int_bytes):
        with pytest.raises(EOFError):
            skip(2**60)


@pytest.mark.parametrize("step", [-1, 4])
def test_it_goes_forward_only_and_not_beyond_the_end(step: int) -> None:
    decoder = CheckedDecoder(b"abc")
    with pytest.raises(EOFError):
        decoder.skip(step)
    assert decoder.tell() == 0


def test_doubles_keep_their_precision() -> None:
    stream = BytesIO()
    BinaryEncoder(stream).write_double(0.1)
    assert CheckedDecoder(stream.getvalue()).read_double() == 0.1


def test_another_kind_of_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.avro"
    path.write_bytes(b"PAR1\x00" + bytes(16))
    with pytest.raises(ValueError, match="not an Avro file"):
        AvroRecords(PyArrowFileIO(), str(path), _MANIFESTS, 1 << 20)


def avro_list(
    tmp_path: Path,
    *,
    manifest_path: str = "m.avro",
    more: Sequence[tuple[str, int]] = (),
    codec: AvroCompressionCodec = "null",
) -> Path:
    """A manifest list of one manifest with one added file, and of more by their paths and how many files they added."""
    path = tmp_path / "list.avro"
    manifests = [
        ManifestFile.from_args(
            manifest_path=each,
            manifest_length=1,
            partition_spec_id=0,
            content=ManifestContent.DATA,
            sequence_number=1,
            min_sequence_number=1,
            added_snapshot_id=1,
            added_files_count=added,
            existing_files_count=0,
            deleted_files_count=0,
            added_rows_count=1,
            existing_rows_count=0,
            deleted_rows_count=0,
        )
        for each, added in ((manifest_path, 1), *more)
    ]
    with write_manifest_list(2, PyArrowFileIO().new_output(str(path)), 1, None, 1, codec) as writer:
        writer.add_manifests(manifests)
    return path


def read(path: Path, bytes_max: int = 1 << 20) -> int:
    return sum(1 for _ in AvroRecords(PyArrowFileIO(), str(path), _MANIFESTS, bytes_max).records())


def header_bytes(content: bytes) -> int:
    """How long the header of a file is, without its sync marker."""
    return content.index(content[-16:])


def test_what_a_file_says_of_itself_may_come_in_blocks_with_their_sizes(tmp_path: Path) -> None:
    path = avro_list(tmp_path, codec="deflate")
    content = path.read_bytes()
    decoder = CheckedDecoder(content[4 : header_bytes(content)])
    entries = []
    for _ in range(decoder.read_int()):
        parts = [decoder.read_bytes(), decoder.read_bytes()]
        entries.append(b"".join(encoded(len(part)) + part for part in parts))
    assert len(entries) > 2
    blocks = b"".join(encoded(-1) + encoded(len(entry)) + entry for entry in entries)
    path.write_bytes(content[:4] + blocks + encoded(0) + content[header_bytes(content) :])
    assert read(path) == 1


def test_a_file_that_ends_within_its_header_is_noticed(tmp_path: Path) -> None:
    path = avro_list(tmp_path)
    content = path.read_bytes()
    for end in range(header_bytes(content) + 16):
        path.write_bytes(content[:end])
        with pytest.raises(EOFError):
            read(path)


def test_a_block_ends_with_the_files_sync_marker(tmp_path: Path) -> None:
    path = avro_list(tmp_path)
    assert read(path) == 1
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ValueError, match="no sync marker"):
        read(path)


def test_all_blocks_together_are_unpacked_up_to_the_limit(tmp_path: Path) -> None:
    path = avro_list(tmp_path, manifest_path="m" * 100_000, codec="deflate")
    assert read(path, bytes_max=150_000) == 1
    content = path.read_bytes()
    sync = content[-16:]
    block = content[content.index(sync) + len(sync) :]
    path.write_bytes(content + block)
    assert path.stat().st_size < 50_000
    assert read(path, bytes_max=250_000) == 2
    with pytest.raises(Unreadable, match="longer than"):
        read(path, bytes_max=150_000)


@each_case(("count", "problem"), [(-1, "block of -1"), (0, "more than 0 records"), (2, "byte")])
def test_a_block_holds_as_many_records_as_it_says(tmp_path: Path, count: int, problem: str) -> None:
    path = avro_list(tmp_path)
    content = bytearray(path.read_bytes())
    sync = bytes(content[-16:])
    start = content.index(sync) + len(sync)
    assert content[start : start + 1] == encoded(1)
    content[start : start + 1] = encoded(count)
    path.write_bytes(content)
    with pytest.raises((ValueError, EOFError), match=problem):
        read(path)


def made(path: Path, last: RecordsByBytes[tuple[object, ...]]) -> tuple[list[tuple[object, ...]], int]:
    """The records of a list, and how many of them were decoded for it."""
    decoded = list[object]()

    def convert(record: Sequence[object]) -> tuple[object, ...]:
        decoded.append(record)
        return tuple(record)

    records = AvroRecords(PyArrowFileIO(), str(path), _MANIFESTS, 1 << 20).converted(convert, last)
    return list(records), len(decoded)


LINES = st.lists(
    st.tuples(st.sampled_from(("a", "b", "ab", "p" * 62, "p" * 63, "p" * 64, "q" * 9_000)), st.integers(0, 200)),
    max_size=6,
)


@given(st.lists(LINES, min_size=2, max_size=4), st.sampled_from(("null", "deflate")))
def test_what_the_list_before_has_is_taken_from_there_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, lists: list[list[tuple[str, int]]], codec: AvroCompressionCodec
) -> None:
    folder, last = tmp_path_factory.mktemp("lists"), RecordsByBytes[tuple[object, ...]]()
    before: set[tuple[object, ...]] = set()
    for lines in lists:
        path = avro_list(folder, more=lines, codec=codec)
        expected = [tuple(record) for record in AvroRecords(PyArrowFileIO(), str(path), _MANIFESTS, 1 << 20).records()]
        records, decoded = made(path, last)
        assert records == expected
        assert decoded >= len(set(expected) - before)
        before = set(expected)


def test_a_list_decodes_its_new_lines_alone(tmp_path: Path) -> None:
    last = RecordsByBytes[tuple[object, ...]]()
    assert made(avro_list(tmp_path, more=[("a", 1), ("b", 2)]), last)[1] == 3
    assert made(avro_list(tmp_path, more=[("a", 1), ("c", 2), ("b", 2)]), last)[1] == 1
    # The same manifest with another count, and one that the list before had no longer.
    assert made(avro_list(tmp_path, more=[("a", 1), ("b", 3)]), last)[1] == 1
    assert made(avro_list(tmp_path, more=[("c", 2), ("a", 1)]), last)[1] == 1


def test_the_same_bytes_under_another_schema_are_another_record(tmp_path: Path) -> None:
    last = RecordsByBytes[tuple[object, ...]]()
    path = avro_list(tmp_path)
    (before,), _ = made(path, last)
    added, deleted = b'"field-id": 504', b'"field-id": 506'
    content = path.read_bytes()
    assert content.count(added) == content.count(deleted) == 1
    swapped = {added: deleted, deleted: added}
    path.write_bytes(re.sub(b"|".join(swapped), lambda found: swapped[found[0]], content))
    (after,), decoded = made(path, last)
    assert (before[4], before[6]) == (1, 0)
    assert (after[4], after[6], decoded) == (0, 1, 1)


def test_lines_are_decoded_again_once_they_are_too_long_to_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro, "_BYTES_KEPT", 100)
    last, long = RecordsByBytes[tuple[object, ...]](), "b" * 100
    for more, decoded in (([("a", 1)], 2), ([("a", 1)], 0), ([("a", 1), (long, 1)], 1), ([("a", 1)], 2)):
        assert made(avro_list(tmp_path, more=more), last)[1] == decoded


def test_a_list_that_ends_within_a_line_that_is_known_is_noticed(tmp_path: Path) -> None:
    last = RecordsByBytes[tuple[object, ...]]()
    path = avro_list(tmp_path, more=[("a", 1)])
    content = path.read_bytes()
    made(path, last)
    begin, end = header_bytes(content) + 16, len(content) - 16
    count, length = encoded(2), encoded(end - begin - 2)
    assert content[begin:].startswith(count + length)
    for cut in range(1, end - begin - 2):
        block = content[begin + 2 : end - cut]
        path.write_bytes(content[:begin] + count + encoded(len(block)) + block + content[-16:])
        with pytest.raises(EOFError):
            made(path, last)
