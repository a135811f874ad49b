"""The benchmark of predictions judges them by other code: with all rows in the sample, both say the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import b4
from benchmarks import layout_tables as made
from benchmarks.b4 import FILE_BYTES, Predicted, Subject, full, layouts_of, predict, run, short
from icewright.model.queries.recommendations import Interval
from icewright_spark.trials.predicates import condition_of, flat_columns, rows_that_match
from icewright_spark.trials.table_sample import table_sample

SEED = 1


def test_it_publishes_no_table_that_anything_was_chosen_by() -> None:
    assert len(full(SEED).tables) == 15
    assert all(number % 2 for number in full(SEED).tables)


def test_a_sample_of_all_rows_predicts_what_is() -> None:
    predictions: list[Predicted] = []
    for table in list(made.tables(2_000, SEED))[1::6]:
        subject = Subject.of(table, 4, SEED)
        layouts = {layout: subject.under(layout, SEED) for layout in layouts_of(table)}
        predictions += predict(subject, layouts, 500, SEED)
    assert len(predictions) == 32
    for it in predictions:
        assert it.share.mean == pytest.approx(it.same, abs=1e-9), it.layout
        assert it.share.low <= it.share.mean <= it.share.high


def test_queries_of_the_log_ask_for_the_same_rows() -> None:
    for table in list(made.tables(500, SEED))[::7]:
        subject = Subject.of(table, 4, SEED)
        sample = subject.sample(125, SEED)
        assert sample.num_rows == 500
        paths = [(name,) for name in subject.distinct]
        columns = table_sample(flat_columns(sample), subject.listed(), paths, {}).columns
        for record, query in zip(subject.records(), subject.queries, strict=True):
            asked, found = np.ones(500, bool), np.ones(500, bool)
            for name, (low, high) in query.ranges.items():
                asked &= (subject.ranks[name] >= low) & (subject.ranks[name] <= high)
            for item in record.tables[0].filters:
                column = columns[item.column,]
                condition = condition_of(item, column.path, column.scale)
                assert condition is not None
                found &= rows_that_match(condition, column.rows)
            assert found.tolist() == asked.tolist(), query


def test_later_queries_are_others() -> None:
    subject = Subject.of(next(made.tables(500, SEED)), 4, SEED)
    assert subject.listed()["file_size_in_bytes"].to_pylist() == [FILE_BYTES] * 4
    assert len(subject.later) == 4 * made.QUERIES
    shared = [query for query in subject.later if query in subject.queries]
    assert len(shared) < len(subject.later) / 10


@pytest.mark.parametrize(("later", "is_covered"), [(0.1, True), (0.3, True), (0.31, False), (0.09, False)])
def test_an_interval_covers_its_ends(later: float, *, is_covered: bool) -> None:
    table = next(made.tables(200, SEED))
    found = Predicted(table, layouts_of(table)[0], 80, Interval(0.1, 0.2, 0.3), same=0.25, later=later)
    assert found.is_covered is is_covered
    assert found.error == pytest.approx(0.2)


def test_the_short_form_has_all_cases(tmp_path: Path) -> None:
    said: list[str] = []
    result = run(tmp_path, short(SEED), said.append)
    assert result.benchmark == b4.NAME
    assert len(said) == 2
    metrics = {case.metric for case in result.cases if case.met is not None}
    assert len(metrics) == 4
