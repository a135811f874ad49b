"""Queries planned by the bounds of two snapshots: files opened, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from icewright.actions.analyze_queries.check import measurement_problem
from icewright.model.actions.analyze_queries import AnalyzeQueries, AnalyzeQueriesPrediction, Measure
from icewright.model.queries.measurements import FileSums, Measured, MeasuredQuery
from icewright.model.queries.queries import LiteralKind, QueryRecord
from icewright.model.queries.recommendations import JudgedQuery
from icewright_spark.trials.measure import Snapshots, measure
from tests.builders.queries import AT, EVENTS, equal, query, read_of
from tests.cases import each_case

SCHEMA = pa.table({"user_id": pa.array([], pa.int64()), "_file": pa.array([], pa.string())})
ASKED = Measure("recommendation-1", 1, AT, AT + 100, AT + 1_000)


def files(*bounds: tuple[int, int]) -> Any:
    """Files of 100 bytes and ten rows, with these bounds of ``user_id``."""
    metrics = [
        {
            "user_id": {
                "column_size": 1,
                "value_count": 10,
                "null_value_count": 0,
                "nan_value_count": None,
                "lower_bound": low,
                "upper_bound": high,
            }
        }
        for low, high in bounds
    ]
    column = pa.struct([(name, pa.int64()) for name in metrics[0]["user_id"]])
    return pa.table(
        {
            "file_path": [f"f{number}" for number in range(len(bounds))],
            "record_count": pa.array([10] * len(bounds), pa.int64()),
            "file_size_in_bytes": pa.array([100] * len(bounds), pa.int64()),
            "readable_metrics": pa.array(metrics, pa.struct([("user_id", column)])),
        }
    )


NOW, BEFORE = files((0, 9), (10, 19), (20, 29)), files((0, 29), (0, 29), (5, 25), (6, 24))


def lookup(number: int, user: int, at: int, column: str = "user_id") -> QueryRecord:
    return query(number, read_of(EVENTS, equal(column, str(user), LiteralKind.NUMBER)), at=at)


def found(queries: list[QueryRecord], before: Any | None = BEFORE) -> Measured:
    return measure(EVENTS, Snapshots(2, SCHEMA, NOW, before), queries, ASKED)


def test_each_query_opens_what_bounds_do_not_exclude() -> None:
    later = AT + 1_000
    said = found([lookup(1, 5, later), lookup(2, 5, later + 9), lookup(3, 28, later), lookup(4, 10, AT + 50)])
    assert (said.table, said.table_before) == (FileSums(3, 300), FileSums(4, 400))
    by_files = {(row.files_before, row.files, row.weight) for row in said.later}
    assert by_files == {(3, 1, 2), (2, 1, 1)}
    (judged,) = said.judged
    assert (judged.files_before, judged.files, judged.bytes_before, judged.bytes) == (4, 1, 400, 100)


def test_what_ran_before_the_rewrite_and_after_the_judging_counts_for_nothing() -> None:
    """Clocks of engines may be hours apart: a query in between belongs to neither side."""
    said = found([lookup(1, 5, AT + 500), lookup(2, 5, AT - 1)])
    assert (said.later, said.judged) == ((), ())


def test_a_snapshot_that_has_expired_leaves_what_is_now() -> None:
    said = found([lookup(1, 5, AT + 1_000)], None)
    assert said.table_before is None
    assert [(row.files, row.files_before) for row in said.later] == [(1, None)]


def test_queries_of_columns_that_are_gone_are_counted_and_say_nothing() -> None:
    said = found([lookup(1, 5, AT + 1_000, "dropped"), lookup(2, 5, AT + 1_000)])
    assert said.unusable == {"unknown-column": 1}
    assert len(said.later) == 1


def test_the_same_filters_have_the_same_key_in_each_analysis() -> None:
    first, second = found([lookup(1, 5, AT + 1_000)]), found([lookup(9, 5, AT + 2_000), lookup(8, 6, AT + 2_000)])
    assert {row.key for row in first.later} < {row.key for row in second.later}


ACTION = AnalyzeQueries(2, EVENTS, AT, 10, 30, 30, None, ASKED)
PREDICTED = AnalyzeQueriesPrediction(10, 3, 30, 300)
ROW = MeasuredQuery("k", 1, 1, 100, 4, 400)
GOOD = Measured("recommendation-1", 2, FileSums(3, 300), FileSums(4, 400), (ROW,), (ROW,))


def test_an_answer_that_holds_has_no_problem() -> None:
    assert measurement_problem(GOOD, ACTION, PREDICTED, {"k": JudgedQuery("k", 1, 4, 400)}) is None
    assert measurement_problem(found([lookup(1, 5, AT + 1_000)]), ACTION, PREDICTED, {}) is None


@each_case(
    ("wrong", "said"),
    [
        (replace(GOOD, recommendation_id="recommendation-2"), "not asked for"),
        (replace(GOOD, snapshot_id=3), "of snapshot 3"),
        (replace(GOOD, table=FileSums(4, 300)), "4 of 3 files"),
        (replace(GOOD, table=FileSums(3, 900)), "900 bytes"),
        (replace(GOOD, later=(ROW, ROW)), "twice"),
        (replace(GOOD, later=(replace(ROW, files=4),)), "opens 4 files"),
        (replace(GOOD, later=(replace(ROW, bytes=301),)), "301 bytes"),
        (replace(GOOD, later=(replace(ROW, weight=0),)), "0 times"),
        (replace(GOOD, later=(replace(ROW, files=0),)), "opens 0 files"),
        (replace(GOOD, later=(replace(ROW, files_before=5),)), "cannot have opened 5"),
        (replace(GOOD, later=(replace(ROW, bytes_before=None),)), "cannot have opened"),
        (replace(GOOD, table_before=None), "cannot have opened"),
        (replace(GOOD, judged=(replace(ROW, files_before=3),)), "opened 4 files when it was judged, not 3"),
        (replace(GOOD, unusable={"x": -1}), "cannot be"),
    ],
)
def test_an_answer_that_cannot_be_is_not_believed(wrong: Measured, said: str) -> None:
    problem = measurement_problem(wrong, ACTION, PREDICTED, {"k": JudgedQuery("k", 1, 4, 400)})
    assert problem is not None
    assert said in problem
