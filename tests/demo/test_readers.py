"""What the demo's queries open, against files counted by hand."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from icewright.demo.flights_writer import FLIGHTS, NAMESPACE
from icewright.demo.folder import DemoFolder
from icewright.demo.readers import QUESTIONS, ask
from icewright.model.queries.queries import LiteralPolicy
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.sql import Defaults, TextQuery, record_of_text
from icewright.queries.sources.sql_text import SqlDialect


@pytest.fixture
def folder(tmp_path: Path) -> DemoFolder:
    """Three days of flights, a file each; LAX is on the first and the last day."""
    folder = DemoFolder(tmp_path / "demo")
    folder.create()
    entry = folder.entry
    catalog = SqlCatalog(entry.name, **entry.pyiceberg_properties())
    catalog.create_namespace(NAMESPACE)
    days = [(1, ["LAX", "BOS"]), (2, ["BOS", "BOS"]), (9, ["LAX", "MIA"])]
    for day, places in days:
        rows = pa.table(
            {
                "date": pa.array([date(2013, 1, day)] * 2, pa.date32()),
                "dest": places,
                "origin": ["JFK", "LGA"],
                "carrier": ["UA", "AA"],
                "tailnum": ["N00001", "N00002"],
                "flight": [1, 2],
                "dep_delay": [0, 1],
                "arr_delay": [0, 1],
            }
        )
        table = catalog.create_table_if_not_exists(FLIGHTS, rows.schema)
        table.append(rows)
    return folder


def test_each_query_says_which_files_it_opens_and_which_it_skips(folder: DemoFolder) -> None:
    asked = ask(folder, "first")
    by_question = {
        question.sql.partition(" WHERE ")[2]: record.tables[0]
        for question, record in zip(QUESTIONS, asked.records, strict=True)
    }
    opened = {said: (read.files_read, read.files_skipped) for said, read in by_question.items()}
    assert opened["dest = 'LAX'"] == (2, 1)
    assert opened["dest = 'MIA'"] == (1, 2)
    assert opened["tailnum = 'N14228'"] == (0, 3)
    assert opened["date >= DATE '2013-01-01' AND date < DATE '2013-01-02'"] == (1, 2)
    assert opened["origin = 'JFK' AND date >= DATE '2013-01-04' AND date < DATE '2013-01-18'"] == (1, 2)
    assert (asked.there, asked.files) == (3, sum(read for read, _ in opened.values() if read))
    assert all((read.bytes_planned or 0) > 0 for read in by_question.values() if read.files_read)


def test_the_same_questions_are_other_queries_later(folder: DemoFolder) -> None:
    ids = [record.query_id for asked in ("first", "last") for record in ask(folder, asked).records]
    assert len(set(ids)) == 2 * len(QUESTIONS) == 20


def test_the_filters_are_those_of_the_text(folder: DemoFolder) -> None:
    keep = LiteralRules(LiteralPolicy.KEEP)
    for record in ask(folder, "first").records:
        read = record_of_text(record.sql, TextQuery(SqlDialect.SPARK, 0, query_id="1"), Defaults("demo", ()), keep)
        (own,), (parsed,) = record.tables, read.tables
        assert own.table == parsed.table
        assert set(own.filters) == set(parsed.filters)
