"""Readers skip by what a footer and the offset indexes say of pages: where that is wrong, no commit follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright_spark.executors.merge import merge as merge_module
from icewright_spark.executors.merge.merge import merge_group
from icewright_spark.executors.merge.write import Writer
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.parquet.schema import arrow_schema
from icewright_spark.parquet.statistics.pages import check_pages
from icewright_spark.parquet.storage import LOCAL
from icewright_spark.parquet.thrift import Struct
from tests.arrow_values import KIND_NAMES, VALUES
from tests.builders.merge_tables import column
from tests.spark_side.executors.merge.test_merge_statistics import FIELDS, SHAPES, WRITERS, job_in, table_of
from tests.wrong_footers import chunk_of, moved_page, of_column, of_index


@WRITERS
def test_a_page_that_is_said_to_begin_at_another_row_is_caught(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds of rows in no order tell nothing of it: they hold for the row before as well."""
    job = job_in(tmp_path, FIELDS[:1])
    damage = of_index("id", moved_page, offsets=True)
    monkeypatch.setattr(merge_module, "output_is_written", lambda: damage(Path(job.output_paths[0])))
    with pytest.raises(ProofFailed, match="page 1 is said to begin at row 1023, and begins at 1024"):
        merge_group(job, writer=writer)


def without_plain_pages(found: Struct) -> None:
    kind, (of, stats) = found[13]
    kept = [one for one in stats if one[1][1] != 0 or one[2][1] != 0]
    assert 0 < len(kept) < len(stats)
    found[13] = kind, (of, kept)


def without_their_encodings(found: Struct) -> None:
    kind, (of, _) = found[2]
    found[2] = kind, (of, [3, 8])
    del found[13]


@pytest.mark.parametrize("change", [without_plain_pages, without_their_encodings])
def test_pages_beside_the_dictionary_that_alone_is_said_to_have_all_values_are_caught(
    change: Any, tmp_path: Path
) -> None:
    path = tmp_path / "one.parquet"
    options = {"dictionary_pagesize_limit": 4096, "data_page_size": 4096, "write_page_index": True}
    pq.write_table(table_of(FIELDS[:1]), path, use_dictionary=True, store_schema=False, **options)
    assert {one[2][1] for one in chunk_of(path, "id").column[13][1][1] if one[1][1] == 0} == {0, 8}
    check_pages(LOCAL, str(path), path.stat().st_size)
    of_column("id", change)(path)
    with pytest.raises(ProofFailed, match="said to be encoded by its dictionary, and one is by encoding 0"):
        check_pages(LOCAL, str(path), path.stat().st_size)


@settings(deadline=None)
@given(st.data(), KIND_NAMES, st.integers(1, 4), st.sampled_from(["1.0", "2.0"]), st.booleans())
def test_what_a_writer_says_of_its_pages_holds(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    name: str,
    page_rows: int,
    version: str,
    dictionary: bool,  # noqa: FBT001 - Hypothesis's
) -> None:
    values = data.draw(st.lists(VALUES[name], min_size=1, max_size=12))
    schema = arrow_schema([column(1, "c", SHAPES[name])])
    table = schema.empty_table().from_pydict({"c": values}, schema=schema)
    path = tmp_path_factory.mktemp("pages") / "one.parquet"
    pq.write_table(
        table,
        path,
        row_group_size=5,
        max_rows_per_page=page_rows,
        write_page_index=data.draw(st.booleans()),
        use_dictionary=dictionary,
        data_page_version=version,
    )
    check_pages(LOCAL, str(path), path.stat().st_size)
