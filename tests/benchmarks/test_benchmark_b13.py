"""The first pass over many small tables: its lake begins anew for each run, and only what was merged counts.

With real processes it is ``python -m benchmarks B13 --short``.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from benchmarks import b13
from benchmarks.b13 import BATCHES, SINGLE, Pass, SmallTables
from benchmarks.lake import Mismatch
from benchmarks.measure import Cost
from icewright.model.iceberg.catalog_entries import CatalogEntry

OPTIONS = replace(b13.short(seed=3), tables=2, warmups=1, files=3, rows=5, compared=1)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> SmallTables:
    lake = SmallTables(tmp_path_factory.mktemp("b13"), OPTIONS)
    lake.write()
    return lake


def catalog(entry: CatalogEntry) -> SqlCatalog:
    return SqlCatalog(entry.name, **entry.pyiceberg_properties())


def merge(entry: CatalogEntry, name: str, *, rows: int | None = None) -> None:
    table = catalog(entry).load_table(("lake", name))
    table.overwrite(table.scan().to_arrow()[:rows])


def test_each_run_begins_with_the_warm_up_and_adds_the_others_as_they_were(lake: SmallTables) -> None:
    for _ in range(2):
        with lake.begun_anew() as (entry, _, add):
            assert [name for _, name in catalog(entry).list_tables("lake")] == ["t00000"]
            add()
            tables = catalog(entry)
            assert sorted(name for _, name in tables.list_tables("lake")) == lake.names
            for event in lake.events(lake.names):
                table = tables.load_table(event.table_name.path)
                snapshot = table.current_snapshot()
                assert snapshot is not None
                assert snapshot.snapshot_id == event.snapshot_id
                assert len(table.inspect.data_files()) == OPTIONS.files
                assert table.properties["icewright.mode"] == "auto"
                merge(entry, event.table_name.name)  # which the next run must not see
            lake.check(entry)


def test_what_was_not_merged_or_lost_rows_does_not_count(lake: SmallTables) -> None:
    with lake.begun_anew() as (entry, _, add):
        add()
        merge(entry, "t00001")
        with pytest.raises(Mismatch, match="t00002 has 3 files"):
            lake.check(entry)
        merge(entry, "t00002", rows=14)
        with pytest.raises(Mismatch, match="1 files of 14 rows"):
            lake.check(entry)


def test_rows_that_changed_do_not_count(lake: SmallTables) -> None:
    with lake.begun_anew() as (entry, _, add):
        add()
        merge(entry, "t00002")
        table = catalog(entry).load_table(("lake", "t00001"))
        rows = table.scan().to_arrow()
        table.overwrite(rows.set_column(4, rows.schema.field(4), pa.array([0.5] * rows.num_rows)))
        with pytest.raises(Mismatch, match="t00001 has other rows"):
            lake.check(entry)


def test_every_target_is_judged_and_cpu_is_that_of_both_processes() -> None:
    def cost(cpu_s: float, mib: int) -> Cost:
        return Cost(cpu_s, 9.0, mib << 20, 0, 0.0, {})

    passes = [
        Pass(BATCHES, 1, 1, cost(1.0, 300), cost(3.0, 900), 4.0),
        Pass(SINGLE, 1, 2, cost(1.0, 410), cost(5.0, 900), 8.0),
    ]
    found = {(case.case, case.metric): case for case in b13.cases(passes, tables=100)}
    assert (found[BATCHES, "CPU a table, s"].value, found[BATCHES, "CPU a table, s"].met) == (0.04, True)
    assert (found[SINGLE, "CPU a table, s"].value, found[SINGLE, "CPU a table, s"].met) == (0.06, None)
    assert found["both", "cpu_ratio"].value == pytest.approx(1.5)
    assert found["both", "memory of our server, MiB"].value == 355
    assert found[BATCHES, "memory of the optimizer, MiB"].value == 900
