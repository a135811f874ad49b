"""Delete files folded in: exactly the deleted rows are gone, and whatever is wrong with a delete file is noticed."""

from __future__ import annotations

import dataclasses
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from icewright.core.errors import IcewrightError, InvalidMessage
from icewright.model.actions.actions import InputFile
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat
from icewright_spark.executors.merge import independent_reader
from icewright_spark.executors.merge import merge as merge_module
from icewright_spark.executors.merge.deletes import deleted_positions
from icewright_spark.executors.merge.merge import FILES_PER_SAMPLE, MergeJob, merge_group, sampled
from icewright_spark.executors.merge.write import ARROW_RS, PYARROW, Writer
from icewright_spark.parquet.errors import FileChanged, FileUnreadable, ProofFailed, UnsupportedFile
from icewright_spark.parquet.storage import Storage
from tests.builders.delete_files import (
    PATH_ID,
    POSITION_ID,
    deletion_vector,
    position_deletes,
    shared_vectors,
    vector_blob,
    with_deletes,
)
from tests.builders.merge_tables import arrow_table, column, job_of, list_of, write_input
from tests.cases import each_case

FIELDS = [column(1, "id", "long"), column(2, "l", list_of(3, "string"))]
ROWS = 20
EVERY = list(range(ROWS))


def inputs(directory: Path, files: int = 2, rows: int = ROWS) -> list[InputFile]:
    """Files in which row ``p`` of file ``f`` has the id ``1000 * f + p``, in row groups of seven rows."""
    return [
        write_input(
            directory,
            arrow_table(
                FIELDS,
                {
                    "id": [1000 * number + row for row in range(rows)],
                    "l": [None if row % 3 == 0 else [str(row)] * (row % 3) for row in range(rows)],
                },
            ),
            row_group_size=7,
        )
        for number in range(files)
    ]


def job(
    directory: Path,
    applied: Callable[[list[InputFile]], Sequence[tuple[DeleteFile, Sequence[InputFile]]]],
    files: int = 2,
) -> MergeJob:
    found = inputs(directory, files)
    made = job_of(FIELDS, found, directory / "out.parquet")
    return dataclasses.replace(made, group=with_deletes(made.group, applied(found)))


def ids(path: str) -> list[int]:
    return list(pq.read_table(path)["id"].to_pylist())


@pytest.mark.parametrize("writer", [ARROW_RS, PYARROW], ids=lambda writer: writer.name)
def test_position_deletes_of_several_files_each_split_by_data_file(tmp_path: Path, writer: Writer) -> None:
    """Two delete files overlap; both also delete in files that are not of this group."""

    def applied(files: list[InputFile]) -> Sequence[tuple[DeleteFile, Sequence[InputFile]]]:
        a, b, _ = files
        rows = [(a.path, 0), (a.path, 7), ("/other", 3), (b.path, 19), (b.path, 19)]
        return [
            (position_deletes(tmp_path, rows), [a, b]),
            (position_deletes(tmp_path, [(a.path, 7), (a.path + "x", 1), (a.path, 8)]), [a]),
        ]

    made = job(tmp_path, applied, files=3)
    result = merge_group(made, writer=writer)

    alive = [[row for row in EVERY if row not in (0, 7, 8)], [row for row in EVERY if row != 19], EVERY]
    assert ids(result.outputs[0].path) == [1000 * number + row for number, rows in enumerate(alive) for row in rows]
    assert (result.receipt.records, result.receipt.deleted_records) == (56, 4)
    assert result.outputs[0].record_count == result.figures.records == 56
    assert result.outputs[0].metrics.value_counts[1] == 56
    assert result.receipt.input_digest == result.receipt.output_digest


def test_deletion_vectors(tmp_path: Path) -> None:
    made = job(
        tmp_path,
        lambda files: [
            (deletion_vector(tmp_path, files[0].path, [0, 1, 6, 7, 19]), files[:1]),
            (deletion_vector(tmp_path, files[1].path, EVERY), files[1:]),
        ],
    )
    result = merge_group(made)
    assert ids(result.outputs[0].path) == [row for row in EVERY if row not in (0, 1, 6, 7, 19)]
    assert result.receipt.deleted_records == 25


def test_a_group_of_which_nothing_is_left_is_an_empty_file(tmp_path: Path) -> None:
    for writer in (ARROW_RS, PYARROW):
        directory = tmp_path / writer.name
        directory.mkdir()
        made = job(directory, lambda files: [(deletion_vector(tmp_path, file.path, EVERY), [file]) for file in files])
        result = merge_group(made, writer=writer)
        assert ids(result.outputs[0].path) == []
        assert result.outputs[0].split_offsets == ()
        assert (result.receipt.records, result.receipt.deleted_records) == (0, 2 * ROWS)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    deleted=st.lists(st.sets(st.integers(0, ROWS - 1)), min_size=1, max_size=4),
    as_vectors=st.booleans(),
    batch_rows=st.integers(1, 30),
)
def test_exactly_the_deleted_rows_are_gone(
    tmp_path: Path, deleted: list[set[int]], batch_rows: int, *, as_vectors: bool
) -> None:
    directory = tmp_path / str(len(list(tmp_path.iterdir())))
    directory.mkdir()

    def applied(files: list[InputFile]) -> Sequence[tuple[DeleteFile, Sequence[InputFile]]]:
        if as_vectors:
            return [
                (deletion_vector(directory, file.path, sorted(rows)), [file])
                for file, rows in zip(files, deleted, strict=True)
            ]
        pairs = [(file.path, row) for file, rows in zip(files, deleted, strict=True) for row in rows]
        return [(position_deletes(directory, pairs), files)]

    made = job(directory, applied, files=len(deleted))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("icewright_spark.executors.merge.read.BATCH_ROWS_MIN", 1)
        patch.setattr("icewright_spark.executors.merge.read.BATCH_ROWS_MAX", batch_rows)
        result = merge_group(made)
    assert ids(result.outputs[0].path) == [
        1000 * number + row for number, rows in enumerate(deleted) for row in EVERY if row not in rows
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.integers(0, 300) | st.integers(65_000, 66_000) | st.integers(2**32 - 5, 2**33 + 5)),
    st.lists(st.tuples(st.integers(0, 200_000), st.integers(1, 70_000)), max_size=3),
    st.booleans(),
)
def test_both_readers_of_bitmaps_read_the_same(
    values: set[int],
    runs: list[tuple[int, int]],
    optimize: bool,  # noqa: FBT001 - drawn
) -> None:
    bitmap = BitMap64(values)
    for first, length in runs:
        bitmap |= BitMap64(range(first, first + length))
    if optimize:
        bitmap.run_optimize()
    assert list(independent_reader.bitmap_values(bitmap.serialize(), "x")) == list(bitmap)


def test_a_bitmap_that_is_none_is_refused_by_both_readers(tmp_path: Path) -> None:
    good = BitMap64([1, 2, 70_000]).serialize()
    for bad in (good[:-1], b"\xff" * 20, good[:8] + b"\0" * 12, b""):
        with pytest.raises(FileUnreadable):
            list(independent_reader.bitmap_values(bad, "x"))
    with pytest.raises(FileUnreadable, match="1 bytes too many"):
        list(independent_reader.bitmap_values(good + b"\0", "x"))
    content = bytes.fromhex("d1d33964") + b"\xff" * 20
    framed = struct.pack(">i", len(content)) + content + struct.pack(">I", zlib.crc32(content))
    with pytest.raises(FileUnreadable):
        merge_group(
            job(tmp_path, lambda files: [(deletion_vector(tmp_path, files[0].path, [1], blob=framed), files[:1])])
        )


def _wrong_crc(blob: bytes) -> bytes:
    return blob[:-1] + bytes([blob[-1] ^ 1])


def _flipped_position(blob: bytes) -> bytes:
    return blob[:-6] + bytes([blob[-6] ^ 1]) + blob[-5:]


def _wrong_magic(blob: bytes) -> bytes:
    content = b"\0" * 4 + blob[8:-4]
    return blob[:4] + content + struct.pack(">I", zlib.crc32(content))


def _wrong_length(blob: bytes) -> bytes:
    return struct.pack(">i", 7) + blob[4:]


@each_case("damage", [_wrong_crc, _flipped_position, _wrong_magic, _wrong_length, lambda _: b"\0\0\0"])
def test_a_damaged_deletion_vector_is_caught(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    blob = damage(vector_blob([3, 5]))
    made = job(tmp_path, lambda files: [(deletion_vector(tmp_path, files[0].path, [3, 5], blob=blob), files[:1])])
    with pytest.raises(FileUnreadable, match="deletion vector"):
        merge_group(made)
    assert not Path(made.output_paths[0]).exists()


def test_a_truncated_deletion_vector_is_caught(tmp_path: Path) -> None:
    """Whether the manifest has the old or the new size of the file."""

    def applied(files: list[InputFile]) -> Sequence[tuple[DeleteFile, Sequence[InputFile]]]:
        delete = deletion_vector(tmp_path, files[0].path, [3, 5])
        Path(delete.path).write_bytes(Path(delete.path).read_bytes()[:-3])
        return [(delete, files[:1])]

    made = job(tmp_path, applied)
    with pytest.raises(FileChanged, match="bytes, its manifest says"):
        merge_group(made)
    (delete,) = made.group.delete_files
    shorter = dataclasses.replace(delete, size_bytes=delete.size_bytes - 3)
    with pytest.raises(FileUnreadable, match="ends within"):
        merge_group(dataclasses.replace(made, group=dataclasses.replace(made.group, delete_files=(shorter,))))


def changed(**changes: Any) -> Callable[[Path, list[InputFile]], Any]:
    def applied(directory: Path, files: list[InputFile]) -> Any:
        return [(position_deletes(directory, [(files[0].path, 1)], **changes), files[:1])]

    return applied


def _schema(path: bytes, position: bytes, kind: Any = None) -> Any:
    return pa.schema(
        [
            pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": path}),
            pa.field("pos", kind or pa.int64(), metadata={"PARQUET:field_id": position}),
        ]
    )


WRONG: dict[str, tuple[Callable[[Path, list[InputFile]], Any], type[IcewrightError]]] = {
    "another size": (changed(size_bytes=5), FileChanged),
    "another number of rows": (changed(record_count=2), FileChanged),
    "equality deletes": (changed(content=FileContent.EQUALITY_DELETES), UnsupportedFile),
    "avro": (changed(file_format=FileFormat.AVRO), UnsupportedFile),
    "orc": (changed(file_format=FileFormat.ORC), UnsupportedFile),
    "of another data file": (changed(referenced_data_file="/other"), InvalidMessage),
    "no such ids": (changed(schema=_schema(b"1", b"2")), UnsupportedFile),
    "a position beyond the file": (
        lambda directory, files: [(position_deletes(directory, [(files[0].path, ROWS)]), files[:1])],
        ProofFailed,
    ),
    "a position before the file": (
        lambda directory, files: [(position_deletes(directory, [(files[0].path, -1)]), files[:1])],
        ProofFailed,
    ),
    "no position": (
        lambda directory, files: [
            (position_deletes(directory, [(files[0].path, None)], schema=_schema(PATH_ID, POSITION_ID)), files[:1])  # type: ignore[list-item]  # that is wrong with it
        ],
        FileUnreadable,
    ),
    "a vector of another count": (
        lambda directory, files: [(deletion_vector(directory, files[0].path, [1], record_count=2), files[:1])],
        FileChanged,
    ),
    "a vector of another file": (
        lambda directory, files: [(deletion_vector(directory, files[0].path, [1]), files)],
        InvalidMessage,
    ),
    "a vector without an offset": (
        lambda directory, files: [(deletion_vector(directory, files[0].path, [1], content_offset=None), files[:1])],
        InvalidMessage,
    ),
    "a vector before the Puffin file": (
        lambda directory, files: [(deletion_vector(directory, files[0].path, [1], content_offset=-4), files[:1])],
        FileUnreadable,
    ),
    "a vector beyond the Puffin file": (
        lambda directory, files: [(deletion_vector(directory, files[0].path, [1], content_offset=9999), files[:1])],
        FileUnreadable,
    ),
    "a vector beyond the file": (
        lambda directory, files: [(deletion_vector(directory, files[0].path, [ROWS]), files[:1])],
        ProofFailed,
    ),
}


@each_case("name", WRONG)
def test_delete_files_that_cannot_be_right_are_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    applied, error = WRONG[name]
    made = job(tmp_path, lambda files: applied(tmp_path, files))
    with pytest.raises(error):
        merge_group(made)
    assert not Path(made.output_paths[0]).exists()


def test_a_delete_file_that_the_group_does_not_have_is_refused(tmp_path: Path) -> None:
    made = job(tmp_path, lambda files: [(position_deletes(tmp_path, [(files[0].path, 1)]), files[:1])])
    with pytest.raises(InvalidMessage, match="no delete file 0"):
        merge_group(dataclasses.replace(made, group=dataclasses.replace(made.group, delete_files=())))


Mask = Callable[[BitMap64], BitMap64]
FAULTS: dict[str, Mask] = {
    "off by one": lambda positions: BitMap64([position - 1 for position in positions]),
    "another row": lambda positions: BitMap64([*positions][1:]) | BitMap64([12]),
    "a dropped delete": lambda positions: BitMap64([*positions][1:]),
    "one too many": lambda positions: positions | BitMap64([12]),
}


@each_case("vector", [True, False], ids=["vector", "position deletes"])
@each_case("fault", FAULTS)
def test_a_wrong_mask_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, vector: bool) -> None:
    """Neither digest of the rows could see it; the second opinion does."""

    def wrong(group: Any, storage: Any) -> Any:
        return {path: FAULTS[fault](positions) for path, positions in deleted_positions(group, storage).items()}

    monkeypatch.setattr(merge_module, "deleted_positions", wrong)
    made = job(
        tmp_path,
        lambda files: [
            (
                deletion_vector(tmp_path, files[1].path, [3, 5, 18])
                if vector
                else position_deletes(tmp_path, [(files[1].path, row) for row in (3, 5, 18)]),
                files[1:],
            )
        ],
    )
    with pytest.raises(ProofFailed, match="decoded by arrow-rs differs"):
        merge_group(made)


def test_a_mask_that_is_not_applied_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(merge_module, "without", lambda batch, _start, _positions: batch)
    made = job(tmp_path, lambda files: [(deletion_vector(tmp_path, files[0].path, [3]), files[:1])])
    with pytest.raises(ProofFailed, match="20 rows of 20 left, 1 deleted"):
        merge_group(made)


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "position deletes"])
def test_a_delete_file_is_read_once_for_all_its_data_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, vectors: bool
) -> None:
    opened: Counter[str] = Counter()
    for method in ("read", "source"):
        real = getattr(Storage, method)
        monkeypatch.setattr(Storage, method, _counting(opened, real))

    def applied(files: list[InputFile]) -> Sequence[tuple[DeleteFile, Sequence[InputFile]]]:
        if vectors:
            shared = shared_vectors(tmp_path, {file.path: [1, 4] for file in files})
            return [(delete, [file]) for delete, file in zip(shared, files, strict=True)]
        return [(position_deletes(tmp_path, [(file.path, row) for file in files for row in (1, 4)]), files)]

    made = job(tmp_path, applied, files=FILES_PER_SAMPLE)
    found = deleted_positions(made.group)
    assert [list(found[file.path]) for file in made.group.files] == [[1, 4]] * FILES_PER_SAMPLE
    (location,) = {delete.path for delete in made.group.delete_files}
    assert opened[location] == (1 if vectors else 2)  # footer and rows
    assert merge_group(made).receipt.deleted_records == 2 * FILES_PER_SAMPLE


def _counting(opened: Counter[str], real: Callable[..., Any]) -> Callable[..., Any]:
    def method(storage: Storage, location: str, *more: Any) -> Any:
        opened[location] += 1
        return real(storage, location, *more)

    return method


def test_a_file_with_deletes_is_among_the_samples() -> None:
    files = [InputFile(f"/f{number}", 1, 1, 1) for number in range(100)]
    for number in range(100):
        some = [*files[:number], dataclasses.replace(files[number], deletes=(0,)), *files[number + 1 :]]
        assert files[number].path in sampled(some)
        assert len(sampled(some)) <= len(sampled(files)) + 1
