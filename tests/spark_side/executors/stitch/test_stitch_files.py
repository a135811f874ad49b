"""What is stitched has the rows, the statistics, the page indexes and the bloom filters of its inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import arro3.io
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icewright.model.actions.actions import InputFile
from icewright_spark.executors.stitch.stitch import StitchJob, stitch_group
from icewright_spark.parquet import source as source_module
from icewright_spark.parquet.file_systems import honoured
from icewright_spark.parquet.footer import Chunk, GroupField
from icewright_spark.parquet.storage import Storage
from icewright_spark.parquet.thrift import read_struct
from tests.builders.stitch_files import ROWS, WRITERS, by_arrow_rs, footer_of, job_of, rows, write_one, written
from tests.cases import each_case
from tests.servers.s3 import S3Server


def as_pyarrow_reads(path: str) -> Any:
    return pq.read_table(path, page_checksum_verification=True)


def as_arrow_rs_reads(path: str) -> Any:
    return pa.RecordBatchReader.from_stream(arro3.io.read_parquet(path)).read_all()


def as_duckdb_reads(path: str) -> Any:
    return duckdb.read_parquet(path).fetch_arrow_table()


READERS = [as_pyarrow_reads, as_arrow_rs_reads, as_duckdb_reads]


def text_of(table: Any) -> str:
    """All values, bit by bit where they are floats."""
    return repr([column.to_pylist() for column in table.columns])


@each_case("writer", WRITERS)
def test_all_readers_find_the_rows_of_the_inputs(tmp_path: Path, writer: str) -> None:
    files = written(tmp_path, WRITERS[writer])
    result = stitch_group(job_of(files, tmp_path / "out.parquet"))
    for read in READERS:
        parts = pa.concat_tables([read(file.path) for file in files])
        assert text_of(read(result.outputs[0].path)) == text_of(parts)
    receipt = result.receipt
    assert (receipt.records, receipt.deleted_records) == (3 * ROWS, 0)
    assert receipt.input_digest == receipt.output_digest
    assert "copied" in receipt.method
    assert result.outputs[0].size_bytes == Path(result.outputs[0].path).stat().st_size


@each_case("writer", WRITERS)
def test_row_groups_say_what_they_said(tmp_path: Path, writer: str) -> None:
    files = written(tmp_path, WRITERS[writer])
    output = stitch_group(job_of(files, tmp_path / "out.parquet")).outputs[0]
    before = [said for file in files for said in row_groups(file.path)]
    assert row_groups(output.path) == before
    metadata, first = pq.read_metadata(output.path), pq.read_metadata(files[0].path)
    assert metadata.schema.equals(first.schema)
    assert metadata.created_by == first.created_by
    assert pq.ParquetFile(output.path).schema_arrow.equals(pq.ParquetFile(files[0].path).schema_arrow)
    offsets = [metadata.row_group(number).column(0) for number in range(metadata.num_row_groups)]
    firsts = [min(at for at in (c.dictionary_page_offset, c.data_page_offset) if at) for c in offsets]
    assert list(output.split_offsets) == firsts == sorted(firsts)


def row_groups(path: str) -> list[Any]:
    """All that pyarrow says of row groups, but where they are."""
    metadata = pq.read_metadata(path)
    places = {"file_offset", "data_page_offset", "dictionary_page_offset", "index_page_offset", "bloom_filter_offset"}
    found = []
    for number in range(metadata.num_row_groups):
        said = metadata.row_group(number).to_dict()
        columns = [{key: value for key, value in column.items() if key not in places} for column in said["columns"]]
        found.append(repr({**said, "columns": columns}))
    return found


@pytest.mark.parametrize("writer", ["pyarrow", "arrow-rs"])
def test_page_indexes_lead_to_the_pages(tmp_path: Path, writer: str) -> None:
    """By the page headers that stand there, which nobody has moved."""
    files = written(tmp_path, WRITERS[writer])
    output = stitch_group(job_of(files, tmp_path / "out.parquet")).outputs[0]
    data = Path(output.path).read_bytes()
    footer = footer_of(output.path)
    pages = 0
    for group in footer.row_groups:
        for chunk in group.chunks:
            assert chunk.offset_index is not None
            assert chunk.column_index is not None
            index, _ = read_struct(data, chunk.offset_index.start)
            for place in index[1][1][1]:
                header, end = read_struct(data, place[1][1])
                assert end - place[1][1] + header[3][1] == place[2][1]
                assert header[1][1] == 0  # a data page
                pages += 1
            column_index, end = read_struct(data, chunk.column_index.start)
            assert end == chunk.column_index.end
            assert len(column_index[2][1][1]) == len(index[1][1][1])  # a minimum for each page
    assert pages > 2 * sum(len(group.chunks) for group in footer.row_groups)


@each_case("writer", ["pyarrow", "arrow-rs", "duckdb"])
def test_bloom_filters_are_carried_over(tmp_path: Path, writer: str) -> None:
    files = written(tmp_path, WRITERS[writer])
    output = stitch_group(job_of(files, tmp_path / "out.parquet")).outputs[0]
    before = [each for file in files for each in bloom_filters(file.path)]
    assert bloom_filters(output.path) == before
    assert any(before)


@pytest.mark.parametrize("writer", ["pyarrow", "arrow-rs"])
def test_readers_ask_the_bloom_filters(tmp_path: Path, writer: str) -> None:
    """DuckDB says which row groups it can pass over."""
    files = written(tmp_path, WRITERS[writer])
    output = stitch_group(job_of(files, tmp_path / "out.parquet")).outputs[0]
    for name in ("name 7919", "nobody"):
        assert excluded(output.path, name) == [each for file in files for each in excluded(file.path, name)]
    assert not all(excluded(output.path, "name 7919"))
    assert sum(excluded(output.path, "nobody")) > 5


def excluded(path: str, name: str) -> list[bool]:
    query = "SELECT bloom_filter_excludes FROM parquet_bloom_probe(?, 's', ?) ORDER BY row_group_id"
    return [bool(row[0]) for row in duckdb.execute(query, [path, name]).fetchall()]


def bloom_filters(path: str) -> list[bytes | None]:
    data = Path(path).read_bytes()
    return [bloom_filter(data, chunk) for group in footer_of(path).row_groups for chunk in group.chunks]


def bloom_filter(data: bytes, chunk: Chunk) -> bytes | None:
    if chunk.bloom_filter_at is None:
        return None
    header, end = read_struct(data, chunk.bloom_filter_at)
    return data[chunk.bloom_filter_at : end + header[1][1]]


def test_row_groups_are_numbered_anew(tmp_path: Path) -> None:
    files = written(tmp_path, by_arrow_rs)
    output = stitch_group(job_of(files, tmp_path / "out.parquet")).outputs[0]
    groups = footer_of(output.path).row_groups
    assert [group.struct[GroupField.ORDINAL][1] for group in groups] == list(range(9))
    assert [group.struct[GroupField.FILE_OFFSET][1] for group in groups] == list(output.split_offsets)


def test_files_are_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large a file is, a block of it is held."""
    files = written(tmp_path)
    whole = stitch_group(job_of(files, tmp_path / "whole.parquet")).outputs[0]
    monkeypatch.setattr(source_module, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(source_module, "SIDE_BLOCK_BYTES", 100)
    parts = stitch_group(job_of(files, tmp_path / "parts.parquet")).outputs[0]
    assert Path(whole.path).read_bytes() == Path(parts.path).read_bytes()


def test_gaps_between_chunks_are_left_behind(tmp_path: Path) -> None:
    """Bytes that no footer leads to, such as a second copy of a column's metadata, are not copied."""
    files = written(tmp_path)
    once = stitch_group(job_of(files, tmp_path / "once.parquet")).outputs[0]
    again = stitch_group(
        job_of([InputFile(once.path, once.size_bytes, 3 * ROWS, 1)], tmp_path / "again.parquet")
    ).outputs[0]
    assert Path(again.path).read_bytes() == Path(once.path).read_bytes()
    assert again.size_bytes < sum(file.size_bytes for file in files)


def test_files_without_rows_add_nothing(tmp_path: Path) -> None:
    def without_row_groups(path: Path, table: Any) -> None:
        with pq.ParquetWriter(path, table.schema, store_schema=False, compression="zstd"):
            pass

    files = [write_one(tmp_path, rows(0).slice(0, 0), without_row_groups), *written(tmp_path)]
    output = stitch_group(job_of(files, tmp_path / "out.parquet")).outputs[0]
    assert as_pyarrow_reads(output.path).num_rows == 3 * ROWS


def test_the_same_from_an_object_store(tmp_path: Path, s3: S3Server) -> None:
    bucket = s3.new_bucket()
    local = written(tmp_path)
    remote = []
    for file in local:
        key = f"{bucket}/data/{Path(file.path).name}"
        with s3.files().open_output_stream(key) as stream:
            stream.write(Path(file.path).read_bytes())
        remote.append(InputFile(f"s3://{key}", file.size_bytes, file.record_count, 1))
    here = stitch_group(job_of(local, tmp_path / "out.parquet")).outputs[0]
    job = job_of(remote, tmp_path / "none")
    there = stitch_group(
        StitchJob(job.group, f"s3://{bucket}/data/out.parquet", storage=Storage(honoured(s3.file_io, "s3://b/x")))
    ).outputs[0]
    with s3.files().open_input_file(f"{bucket}/data/out.parquet") as stored:
        assert stored.read() == Path(here.path).read_bytes()
    assert there.split_offsets == here.split_offsets
