"""Atlas-like tables are as many files as they say, from a seed, and registered as what they are."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog

from benchmarks import b11
from benchmarks.atlas import METRICS, SCHEMA, SPEC, Shape, metric_of_rank, metrics, rows_of, write_day, write_table
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from tests.cases import each_case

SMALL = Shape(days=7, hours=1, files=30, rows_per_file=40)


@given(st.integers(1, 40), st.integers(1, 24), st.integers(0, 30_000))
def test_files_are_dealt_out_evenly(days: int, hours: int, files: int) -> None:
    shape = Shape(days, hours, files, 1)
    dealt = [shape.files_of(partition) for day in range(days) for partition in shape.partitions_of(day)]
    assert (len(dealt), sum(dealt)) == (shape.partitions, files)
    assert max(dealt) - min(dealt) <= 1
    assert len({shape.key(partition) for partition in range(shape.partitions)}) == shape.partitions
    assert {shape.key(p)[0] for p in shape.partitions_of(days - 1)} == {shape.asked_days[1]}


def pq_bytes(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd", compression_level=3, store_schema=False)
    return bytes(sink.getvalue())


def test_the_month_is_as_it_was_told() -> None:
    month = b11.full(1).shape
    assert (month.partitions, month.files) == (2_688, 27_000)
    assert month.asked_days == (date(2018, 2, 22), date(2018, 2, 28))
    week = b11.usual(1).shape
    asked = [day for day in range(week.days) if week.key(week.partitions_of(day)[0])[0] > week.asked_days[0]]
    assert len(asked) == 6
    assert sum(len(week.partitions_of(day)) for day in asked) == 576


def test_all_metrics_are_in_all_files_by_their_bounds() -> None:
    """As written, no bound tells a query for one of them that a file has none."""
    assert len(set(metrics().to_pylist())) == METRICS
    shape = b11.usual(1).shape
    asked = metric_of_rank(1_000)
    for file in range(10):
        names = rows_of(shape, 5, file, 1)["name"].to_pylist()
        assert min(names) < asked < max(names)


def test_rows_come_from_the_seed_and_each_file_has_its_own() -> None:
    assert rows_of(SMALL, 3, 0, 1).equals(rows_of(SMALL, 3, 0, 1))
    others = [rows_of(SMALL, 3, 0, 2), rows_of(SMALL, 3, 1, 1), rows_of(SMALL, 4, 0, 1)]
    assert not any(rows_of(SMALL, 3, 0, 1).equals(other) for other in others)
    row = rows_of(SMALL, 5, 0, 1).slice(7, 1).to_pylist()[0]
    assert (row["date"], row["hour"], row["batch"]) == (date(2018, 2, 2), 0, 1)
    assert (row["at"].date(), row["at"].hour, row["at"].minute // 15) == (date(2018, 2, 2), 0, 1)
    assert [key for key, _ in row["tags"]] == ["type", "app", "cluster", "zone", "node"]
    assert dict(row["tags"])["cluster"].startswith(dict(row["tags"])["app"])


def test_another_reader_finds_every_row(tmp_path: Path) -> None:
    entry = CatalogEntry("b", CatalogKind.SQL, f"sqlite:///{tmp_path}/b.db", str(tmp_path / "warehouse"))
    catalog = SqlCatalog(entry.name, **entry.pyiceberg_properties())
    catalog.create_namespace("bench")
    catalog.create_table("bench.atlas", SCHEMA, partition_spec=SPEC)
    write_table(entry, TableName("b", ("bench",), "atlas"), SMALL, 1, processes=1)
    table = catalog.load_table("bench.atlas")
    assert len(table.metadata.snapshots) == SMALL.days
    partitions = [(day, file) for day in range(28) for file in range(SMALL.files_of(day))]
    written = pa.concat_tables([rows_of(SMALL, partition, file, 1) for partition, file in partitions])
    found = table.scan().to_arrow()
    assert found.num_rows == written.num_rows == 1_200
    order = [("at", "ascending"), ("value", "ascending")]
    for name in written.column_names:
        assert found.sort_by(order)[name].to_pylist() == written.sort_by(order)[name].to_pylist()
    (after, last), day = SMALL.asked_days, "2018-02-07"
    assert (after.isoformat(), last.isoformat()) == ("2018-02-01", day)
    assert sum(1 for _ in table.scan(row_filter=f"date = '{day}'").plan_files()) == sum(
        SMALL.files_of(partition) for partition in SMALL.partitions_of(6)
    )


def test_a_file_says_what_it_has(tmp_path: Path) -> None:
    (first, *_) = write_day(str(tmp_path), SMALL, 0, 1)
    file = pq.ParquetFile(first.path)
    assert first.size_bytes == Path(first.path).stat().st_size
    assert first.statistics["record_count"] == file.metadata.num_rows == SMALL.rows_per_file
    names = file.read()["name"].to_pylist()
    assert first.statistics["lower_bounds"][1] == min(names).encode()[:16]


@each_case("options", [b11.short(1), b11.usual(1), b11.full(1)])
def test_a_partition_is_due_and_its_files_are_not_small(options: b11.Options) -> None:
    """So that Level 1 takes it at once, and Level 0 has nothing to do before."""
    file_bytes = len(pq_bytes(rows_of(options.shape, 0, 0, 1)))
    assert 10 * file_bytes > b11.LEVEL_1_BYTES // options.scale
    assert 35 << 20 < file_bytes * options.scale < 45 << 20
