"""The file as a file: settings obeyed, page versions, dictionaries, row groups, and how it comes to stand on disk."""

from __future__ import annotations

import dataclasses
import os
import random
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.model.iceberg.writer_settings import WriterSettings
from icewright_spark.executors.merge import merge as merge_module
from icewright_spark.executors.merge import read as read_module
from icewright_spark.executors.merge import write as write_module
from icewright_spark.executors.merge.dictionary import SAMPLE_FILES_MAX, dictionary_ids, spread, wholly_encoded
from icewright_spark.executors.merge.merge import FILES_PER_SAMPLE, MergeJob, merge_group, sampled
from icewright_spark.executors.merge.read import decode_arrow_rs, joined
from icewright_spark.executors.merge.write import ARROW_RS, PYARROW, Writer, choose_writer
from icewright_spark.parquet.errors import OutputExists, UnsupportedLocation
from icewright_spark.parquet.schema import leaves
from tests.builders.merge_tables import (
    arrow_table,
    column,
    iceberg_arrow_schema,
    job_of,
    leaf_chunks,
    list_of,
    map_of,
    struct_of,
    write_input,
)
from tests.cases import each_case
from tests.readers.parquet_pages import page_values

WRITERS = each_case("writer", [ARROW_RS, PYARROW], ids=lambda writer: writer.name)
FIELDS = [column(1, "id", "long"), column(2, "color", "string"), column(3, "l", list_of(4, "string"))]
ROWS = 50_000


def job_in(directory: Path, *, dictionary: Any = ("color",), rows: int = ROWS, **more: Any) -> MergeJob:
    """Two files of ``rows`` rows each, of noisy numbers and few words."""
    noise = random.Random(1)  # noqa: S311 - not for secrets
    table = arrow_table(
        FIELDS,
        {
            "id": [noise.getrandbits(62) for _ in range(rows)],
            "color": ["red", "green"] * (rows // 2),
            "l": [["x"], []] * (rows // 2),
        },
    )
    files = [write_input(directory, table, use_dictionary=list(dictionary)) for _ in range(2)]
    return job_of(FIELDS, files, directory / "out.parquet", **more)


def page_type(path: str, chunk: Any) -> int:
    """The type in the header of the first data page: 0 is DATA_PAGE, 3 DATA_PAGE_V2 (Thrift compact, zigzag)."""
    with Path(path).open("rb") as file:
        file.seek(chunk.data_page_offset)
        header = file.read(2)
    assert header[0] == 0x15  # field 1, an i32
    return header[1] >> 1


@WRITERS
def test_pages_are_version_1_with_indexes_and_the_codec(writer: Writer, tmp_path: Path) -> None:
    result = merge_group(job_in(tmp_path), writer=writer)
    for chunk in leaf_chunks(result):
        assert page_type(result.outputs[0].path, chunk) == 0
        assert chunk.compression == "ZSTD"
        assert chunk.has_offset_index
        assert chunk.has_column_index
        assert set(chunk.encodings) <= {"PLAIN", "RLE", "RLE_DICTIONARY"}
    assert pq.ParquetFile(result.outputs[0].path).metadata.metadata is None


def test_the_page_version_check_would_notice(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "v2.parquet", data_page_version="2.0", use_dictionary=False)
    chunk = pq.ParquetFile(tmp_path / "v2.parquet").metadata.row_group(0).column(0)
    assert page_type(str(tmp_path / "v2.parquet"), chunk) == 3


@WRITERS
@each_case("dictionary", [(), ("color",), ("id", "color"), ("color", "l.list.element")], ids=str)
def test_dictionaries_as_in_the_inputs_where_they_gain(
    dictionary: tuple[str, ...], writer: Writer, tmp_path: Path
) -> None:
    result = merge_group(job_in(tmp_path, dictionary=dictionary), writer=writer)
    found = {chunk.path_in_schema for chunk in leaf_chunks(result) if chunk.has_dictionary_page}
    assert found == set(dictionary) - {"id"}  # of noise, the dictionary is longer than the chunk


@WRITERS
def test_columns_that_are_to_have_no_dictionary_have_none(writer: Writer, tmp_path: Path) -> None:
    place = {"id": 2, "name": "place", "required": False, "type": struct_of(column(3, "city", "string"))}
    fields = [column(1, "a b", "string"), place, column(4, "c", "string")]
    words = ["red", "green"] * 5_000
    rows: dict[str, list[Any]] = {"a b": words, "place": [{"city": word} for word in words], "c": words}
    table = arrow_table(fields, rows)
    files = [write_input(tmp_path, table, use_dictionary=True) for _ in range(2)]
    plain = frozenset({"a b", "place.city"})
    job = job_of(fields, files, tmp_path / "out.parquet", settings=WriterSettings(plain_columns=plain))
    chunks = leaf_chunks(merge_group(job, writer=writer))
    assert [chunk.has_dictionary_page for chunk in chunks] == [False, False, True]


def test_one_input_without_a_dictionary_is_enough(tmp_path: Path) -> None:
    with_one, without = job_in(tmp_path), job_in(tmp_path, dictionary=())
    paths = [file.path for file in with_one.group.files]
    assert dictionary_ids(paths) == {2}
    assert dictionary_ids([*paths, without.group.files[0].path]) == frozenset()


def test_many_tiny_files_get_the_dictionaries_that_none_of_them_has(tmp_path: Path) -> None:
    """No dictionary pays for ten rows: that it is not there says nothing about a thousand such files."""
    kind = struct_of(column(11, "word", "string"), column(12, "noise", "uuid"))
    entry = map_of(15, "string", 16, list_of(17, "string"))
    fields = [column(1, "noise", "long"), column(2, "color", "string"), column(10, "st", kind), column(14, "m", entry)]
    noise = random.Random(3)  # noqa: S311 - not for secrets
    schema = iceberg_arrow_schema(fields)
    plain = pa.struct([pa.field("word", pa.large_string()), pa.field("noise", pa.binary(16))])
    files = []
    for number in range(40):
        words = noise.choices(["amber", "brown", "cyan"], k=10)
        structs = pa.array([{"word": word, "noise": noise.randbytes(16)} for word in words], plain)
        arrays = [
            pa.array([noise.getrandbits(60) for _ in words], pa.int64()),
            pa.array(words if number % 2 else [None] * 10, pa.large_string()),
            structs.cast(schema.field(2).type),
            pa.array([[(word, [noise.randbytes(8).hex()])] for word in words], schema.field(3).type),
        ]
        files.append(write_input(tmp_path, pa.Table.from_arrays(arrays, schema=schema), use_dictionary=False))
    result = merge_group(job_of(fields, files, tmp_path / "out.parquet"))
    found = {chunk.path_in_schema for chunk in leaf_chunks(result) if chunk.has_dictionary_page}
    assert found == {"color", "st.word", "m.key_value.key"}


def test_columns_of_nulls_have_no_say_in_it(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    nulls = write_input(tmp_path, arrow_table(FIELDS, {"id": [1], "color": [None], "l": [None]}), use_dictionary=False)
    assert dictionary_ids([*(file.path for file in job.group.files), nulls.path]) == {2}


def test_footers_are_sampled_from_the_whole_group() -> None:
    paths = [str(number) for number in range(100)]
    assert spread(paths, SAMPLE_FILES_MAX)[0] == "0"
    assert spread(paths, SAMPLE_FILES_MAX)[-1] == "99"
    assert len(set(spread(paths, SAMPLE_FILES_MAX))) == SAMPLE_FILES_MAX
    assert spread(paths[:3], SAMPLE_FILES_MAX) == paths[:3]
    assert spread(paths[:1], SAMPLE_FILES_MAX) == paths[:1]


@WRITERS
def test_row_groups_have_the_size_that_is_set(writer: Writer, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    size_bytes = job.group.size_bytes // 4
    result = merge_group(
        dataclasses.replace(job, settings=WriterSettings(row_group_size_bytes=size_bytes)), writer=writer
    )
    metadata = pq.ParquetFile(result.outputs[0].path).metadata
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    assert len(groups) in (4, 5)  # rows are as long as in the inputs, up to a remainder
    for group in groups[:3]:
        encoded = sum(group.column(position).total_compressed_size for position in range(group.num_columns))
        assert 0.8 * size_bytes < encoded <= 1.05 * size_bytes
    assert result.outputs[0].split_offsets == tuple(sorted(result.outputs[0].split_offsets))
    assert len(set(result.outputs[0].split_offsets)) == len(groups)
    assert sum(result.outputs[0].metrics.column_sizes.values()) == sum(
        c.total_compressed_size for c in leaf_chunks(result)
    )


def test_footers_of_tiny_files_do_not_shrink_row_groups(tmp_path: Path) -> None:
    """Ten rows need a kilobyte of footer: by the size of such files, every row would seem long."""
    fields = [column(1, "id", "long")]
    files = [write_input(tmp_path, arrow_table(fields, {"id": list(range(10))})) for _ in range(50)]
    job = job_of(fields, files, tmp_path / "out.parquet")
    settings = WriterSettings(row_group_size_bytes=job.group.size_bytes // 3)
    result = merge_group(dataclasses.replace(job, settings=settings))
    assert len(result.outputs[0].split_offsets) == 1


def test_pyarrow_ends_a_row_group_before_memory_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(write_module, "COLLECTED_BYTES_MAX", 1 << 20)
    result = merge_group(job_in(tmp_path), writer=PYARROW)
    assert len(result.outputs[0].split_offsets) > 1


@WRITERS
@each_case(("codec", "level"), [("gzip", 6), ("brotli", 1), ("snappy", None), ("uncompressed", None)])
def test_codecs(codec: str, level: int | None, writer: Writer, tmp_path: Path) -> None:
    settings = WriterSettings(codec=codec, compression_level=level)
    result = merge_group(job_in(tmp_path, rows=100, settings=settings), writer=writer)
    assert {chunk.compression for chunk in leaf_chunks(result)} == {codec.upper()}


@WRITERS
def test_the_level_is_obeyed(writer: Writer, tmp_path: Path) -> None:
    fields = [column(1, "s", "string")]
    noise = random.Random(2)  # noqa: S311 - not for secrets
    words = ["".join(noise.choices("abcdef", k=30)) for _ in range(20_000)]
    file = write_input(tmp_path, arrow_table(fields, {"s": words}), use_dictionary=False)
    sizes = [
        merge_group(
            job_of(fields, [file], tmp_path / f"{level}.parquet", settings=WriterSettings(compression_level=level)),
            writer=writer,
        )
        .outputs[0]
        .size_bytes
        for level in (1, 19)
    ]
    assert sizes[1] < 0.97 * sizes[0]


JAVA_WHOLE = ("PLAIN_DICTIONARY", "BIT_PACKED", "RLE")
JAVA_GIVEN_UP = ("PLAIN", "PLAIN_DICTIONARY", "BIT_PACKED", "RLE")
ARROW = ("PLAIN", "RLE", "RLE_DICTIONARY")


@each_case(
    ("encodings", "dictionary_bytes", "encoded"),
    [
        (JAVA_WHOLE, 900, True),
        (JAVA_GIVEN_UP, 10, False),
        (ARROW, 10, True),
        (ARROW, 900, False),
        (("PLAIN", "RLE"), None, False),
        (("RLE", "DELTA_BINARY_PACKED", "RLE_DICTIONARY"), 10, False),
    ],
)
def test_what_footers_say_of_dictionaries(
    encodings: tuple[str, ...], dictionary_bytes: int | None, *, encoded: bool
) -> None:
    """Encodings as found in footers of parquet-java 1.16 and of Arrow's writers; chunks of 1000 bytes."""
    chunk = SimpleNamespace(
        encodings=encodings,
        has_dictionary_page=dictionary_bytes is not None,
        dictionary_page_offset=4,
        data_page_offset=4 + (dictionary_bytes or 0),
        total_compressed_size=1000,
    )
    assert wholly_encoded(chunk) is encoded


@each_case(
    ("kind", "mode", "writer"),
    [
        ("string", "truncate(16)", ARROW_RS),
        ("string", "full", PYARROW),
        ("binary", "full", PYARROW),
        ("long", "full", ARROW_RS),
        ("uuid", "none", PYARROW),
        (list_of(1, "uuid"), "counts", PYARROW),
        (list_of(1, "long"), "counts", PYARROW),
        (struct_of(column(1, "key_value", "int")), "counts", ARROW_RS),
        (list_of(5, map_of(6, "int", 1, "int")), "counts", PYARROW),
    ],
    ids=lambda value: type(value).__name__ if value in (ARROW_RS, PYARROW) else str(value),  # no addresses
)
def test_the_writer_is_the_one_that_loses_nothing(kind: Any, mode: str, writer: Writer) -> None:
    fields = [column(1 if isinstance(kind, str) else 9, "c", kind)]
    assert choose_writer(leaves(fields), {1: mode}) is writer


def test_an_existing_file_is_never_touched(tmp_path: Path) -> None:
    job = job_in(tmp_path, rows=2)
    Path(job.output_paths[0]).write_bytes(b"somebody's only copy")
    with pytest.raises(OutputExists):
        merge_group(job)
    assert Path(job.output_paths[0]).read_bytes() == b"somebody's only copy"


def test_locations_are_reported_as_they_came(tmp_path: Path) -> None:
    for prefix in ("file:", "file://"):
        job = job_in(tmp_path, rows=2)
        location = f"{prefix}{tmp_path}/p=a%20b/{len(prefix)}.parquet"
        result = merge_group(dataclasses.replace(job, output_paths=(location,)))
        assert (result.outputs[0].path,) == result.figures.output_paths == (location,)
        assert (tmp_path / "p=a%20b" / f"{len(prefix)}.parquet").stat().st_size == result.outputs[0].size_bytes


def test_storages_that_arrow_does_not_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedLocation):
        merge_group(dataclasses.replace(job_in(tmp_path, rows=2), output_paths=("oss://bucket/a.parquet",)))


def test_w13_file_and_directories_are_synced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A crash after the commit must not find an empty file or a directory without it."""
    synced = []
    sync = os.fsync

    def spy(descriptor: int) -> None:
        synced.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), os.fstat(descriptor).st_size))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    output = tmp_path / "data" / "p=1" / "out.parquet"
    result = merge_group(dataclasses.replace(job_in(tmp_path, rows=2), output_paths=(str(output),)))
    assert (str(output), result.outputs[0].size_bytes) in synced
    assert {path for path, _ in synced} == {str(output), *(str(parent) for parent in list(output.parents)[:3])}


def test_figures(tmp_path: Path) -> None:
    job = job_in(tmp_path, rows=10)
    result = merge_group(job)
    figures = result.figures
    assert (figures.group_id, figures.input_files, figures.records) == (7, 2, 20)
    assert figures.input_bytes == job.group.size_bytes
    assert figures.output_bytes == Path(job.output_paths[0]).stat().st_size
    assert figures.peak_memory_bytes > 10_000_000
    assert figures.cpu_ms >= 0
    assert figures.wall_ms >= 0
    assert result.receipt.group_id == 7
    assert len(result.receipt.input_digest) == 32


def test_the_default_allocator_is_back_afterwards(tmp_path: Path) -> None:
    before = pa.default_memory_pool().backend_name
    merge_group(job_in(tmp_path, rows=2))
    assert pa.default_memory_pool().backend_name == before


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 5)), st.integers(1, 12), st.integers(1, 100))
def test_small_batches_are_joined_up_to_a_limit_in_order(sizes: list[int], rows_max: int, bytes_max: int) -> None:
    starts = [sum(sizes[:position]) for position in range(len(sizes))]
    columns = [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    batches = [pa.RecordBatch.from_pydict({"a": pa.array(list(column), pa.int64())}) for column in columns]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_module, "BATCH_ROWS_MAX", rows_max)
        patch.setattr(read_module, "BATCH_BYTES", bytes_max)
        found = list(joined(batches))
    assert [value for batch in found for value in batch["a"].to_pylist()] == list(range(sum(sizes)))
    rows = [batch.num_rows for batch in found]
    limit = min(rows_max, bytes_max // 8)
    assert all(count <= max(limit, *sizes) for count in rows)
    assert all(this + following > limit for this, following in pairwise(rows))
    assert 0 not in rows


def test_samples_are_deterministic_and_at_least_one(tmp_path: Path) -> None:
    file = job_in(tmp_path, rows=2).group.files[0]
    for count in (1, FILES_PER_SAMPLE, FILES_PER_SAMPLE + 1, 100):
        files = [dataclasses.replace(file, path=f"/f{number}") for number in range(count)]
        chosen = sampled(files)
        assert len(chosen) == -(-count // FILES_PER_SAMPLE)
        assert chosen == sampled(files[::-1])
        assert chosen <= {other.path for other in files}


def test_sampled_inputs_are_decoded_by_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    read: list[str] = []

    def spy(path: str, batch_rows: int) -> Any:
        read.append(path)
        return decode_arrow_rs(path, batch_rows)

    monkeypatch.setattr(merge_module, "decode_arrow_rs", spy)
    job = job_in(tmp_path, rows=2)
    merge_group(job)
    assert frozenset(read) == sampled(job.group.files)


@WRITERS
def test_decimals_are_integers_where_they_fit(writer: Writer, tmp_path: Path) -> None:
    kinds = ["decimal(9, 2)", "decimal(18, 2)", "decimal(19, 2)"]
    fields = [column(number, f"d{number}", kind) for number, kind in enumerate(kinds, start=1)]
    file = write_input(tmp_path, arrow_table(fields, {field["name"]: [Decimal("1.25")] for field in fields}))
    result = merge_group(job_of(fields, [file], tmp_path / "out.parquet"), writer=writer)
    assert [c.physical_type for c in leaf_chunks(result)] == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"]


@WRITERS
def test_pages_and_dictionaries_obey_their_limits(writer: Writer, tmp_path: Path) -> None:
    """More pages need more headers and index entries; a dictionary over its limit is given up for plain values."""
    fields = [column(1, "s", "string")]
    words = [f"word {number:09}" for number in range(5_000)] * 20
    file = write_input(tmp_path, arrow_table(fields, {"s": words}), compression="none")
    chunks, sizes = [], []
    for name, more in {
        "as is": {},
        "rows": {"page_row_limit": 1000},
        "dictionary": {"dictionary_size_bytes": 5000},
    }.items():
        settings = WriterSettings(codec="uncompressed", compression_level=None, **more)  # type: ignore[arg-type] # sizes
        result = merge_group(job_of(fields, [file], tmp_path / name, settings=settings), writer=writer)
        chunks.append(leaf_chunks(result)[0])
        sizes.append(result.outputs[0].size_bytes)
    dictionary_bytes = [chunk.data_page_offset - chunk.dictionary_page_offset for chunk in chunks]
    assert sizes[1] > sizes[0] + 1000
    assert dictionary_bytes[0] == dictionary_bytes[1] > 5_000 * 14
    assert dictionary_bytes[2] < 40_000


@WRITERS
@each_case("input_rows", [7_000, 30_000, 50_000])
def test_no_page_has_more_rows_than_the_table_allows(input_rows: int, writer: Writer, tmp_path: Path) -> None:
    """With nulls and without, and whatever batches the rows come in; row groups begin new pages."""
    fields = [column(1, "id", "long"), column(2, "s", "string"), column(3, "some", "string")]
    limit, rows = WriterSettings().page_row_limit, range(input_rows)
    values = {"id": rows, "s": map(str, rows), "some": [None if row % 9 == 0 else str(row) for row in rows]}
    table = arrow_table(fields, {name: list(column_values) for name, column_values in values.items()})
    files = [write_input(tmp_path, table) for _ in range(4)]
    settings = WriterSettings(row_group_size_bytes=500_000)
    result = merge_group(job_of(fields, files, tmp_path / "out.parquet", settings=settings), writer=writer)
    pages = [page_values(result.outputs[0].path, chunk) for chunk in leaf_chunks(result)]
    assert max(map(max, pages)) <= limit
    assert sum(map(sum, pages)) == result.outputs[0].record_count * 3
    assert all(sum(1 for rows in of_chunk if rows < limit) <= 1 for of_chunk in pages)
