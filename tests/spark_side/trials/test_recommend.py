"""Tables and their queries, and what is recommended: what helps, and nothing where nothing does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icewright.core import codec
from icewright.model.iceberg.layouts import Curve, LayoutColumn, LayoutExpression
from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator, QueryRecord
from icewright.model.queries.recommendations import (
    LEAVE,
    LayoutChange,
    PropertiesChange,
    Rates,
    Recommendation,
    Verdict,
)
from icewright_spark.trials.recommend import Options, recommend
from tests.spark_side.trials.trial_tables import (
    TABLE,
    Made,
    between,
    equals,
    in_files,
    number,
    queries,
    text,
)

ROWS, FILES = 48_000, 32


def columns(seed: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"a": rng.integers(0, 10**6, ROWS), "b": rng.integers(0, 10**6, ROWS), "c": rng.integers(0, 10**6, ROWS)}


def advised(made: Made, asked: Sequence[QueryRecord], **options: Any) -> Recommendation:
    found = recommend(TABLE, made.sample(100), made.listed(), asked, Options(**options))
    assert codec.loads(Recommendation, codec.dumps(found)) == found
    return found


def layout_of(found: Recommendation) -> str:
    assert isinstance(found.candidate, LayoutChange), found.reason
    return str(found.candidate)


def ranges_on(*names: str, width: int = 50_000, seed: int = 8) -> Any:
    rng = np.random.default_rng(seed)

    def filters(_place: int) -> Sequence[Filter]:
        lows = rng.integers(0, 10**6 - width, len(names)).tolist()
        return [item for name, low in zip(names, lows, strict=True) for item in between(name, low, low + width)]

    return filters


def test_a_table_is_sorted_by_the_one_column_that_is_asked_for() -> None:
    found = advised(in_files(columns(), FILES), queries(100, ranges_on("A")))
    assert (found.verdict, layout_of(found)) == (Verdict.CHANGE, "sort(a)")
    assert found.chosen is not None
    assert found.chosen.test is not None
    assert found.chosen.test.bytes_share < 0.15
    assert found.chosen.test.files_opened_now == FILES
    assert found.chosen.test.files_opened.low <= 3 <= found.chosen.test.files_opened.high
    assert found.chosen.cost.rewrite_bytes == found.evidence.bytes
    assert [score.column for score in found.evidence.columns] == ["a"]
    assert found.evidence.train is not None
    assert found.evidence.test is not None
    assert found.evidence.train.until < found.evidence.test.since


def test_it_says_how_many_files_the_most_frequent_queries_open() -> None:
    found = advised(in_files(columns(), FILES), queries(100, ranges_on("a")))
    assert found.verdict is Verdict.CHANGE
    assert found.frequent is not None
    assert (found.frequent.queries, found.frequent.files_opened_now) == (10, 10 * FILES)
    assert 10 <= found.frequent.files_opened <= 40
    left = advised(in_files(columns(), FILES), queries(100, lambda place: between("a", 0, 990_000 + place * 100)))
    assert left.verdict is Verdict.LEAVE
    assert left.frequent is not None
    assert left.frequent.files_opened == left.frequent.files_opened_now == 10 * FILES
    assert advised(in_files(columns(), FILES), queries(10, ranges_on("a"))).frequent is None


def test_columns_that_are_asked_for_by_turns_get_a_curve_or_cuts() -> None:
    filters = [ranges_on("a"), ranges_on("b", seed=9)]
    found = advised(in_files(columns(), FILES), queries(200, lambda place: filters[place % 2](place)))
    curves = {"zorder(a, b)", "hilbert(a, b)", "zorder(b, a)", "hilbert(b, a)"}
    assert layout_of(found) in curves or layout_of(found).startswith("cuts(")
    assert found.chosen is not None
    losers = {str(trial.candidate): trial for trial in found.trials if trial.test is None}
    assert {"sort(a)", "sort(b)"} <= losers.keys()
    best = max(trial.train.saved_s_per_day.mean for trial in found.trials if str(trial.candidate) in curves)
    assert all(losers[name].train.saved_s_per_day.mean < best for name in ("sort(a)", "sort(b)"))
    assert all(
        trial.train.saved_s_per_day.mean <= found.chosen.train.saved_s_per_day.mean * 1.02 for trial in losers.values()
    )


def test_rows_that_came_by_time_are_left_to_lie_so() -> None:
    """Late data included; nothing that is asked for but time."""
    rng = np.random.default_rng(4)
    at = np.arange(ROWS) * 100 + rng.exponential(5_000, ROWS).astype(np.int64)
    found = advised(in_files({"ts": at, "other": rng.integers(0, 99, ROWS)}, FILES), queries(100, ranges_on("ts")))
    asked = queries(100, lambda place: between("ts", place * 40_000, place * 40_000 + 300_000))
    found = advised(in_files({"ts": at, "other": rng.integers(0, 99, ROWS)}, FILES), asked)
    assert (found.verdict, found.candidate) == (Verdict.LEAVE, LEAVE)
    assert found.trials


def test_late_rows_are_worth_a_sort_when_they_are_many() -> None:
    rng = np.random.default_rng(4)
    at = np.arange(ROWS) * 100
    late = rng.random(ROWS) < 0.02
    at = np.where(late, rng.integers(0, ROWS * 100, ROWS), at)
    asked = queries(100, lambda place: between("ts", place * 40_000, place * 40_000 + 100_000))
    found = advised(in_files({"ts": at}, FILES), asked)
    assert layout_of(found) == "sort(ts)"


def test_a_table_where_nothing_helps_is_left() -> None:
    found = advised(in_files(columns(), FILES), queries(100, lambda place: between("a", place, 10**6 - place)))
    assert found.verdict is Verdict.LEAVE
    assert found.reason.code == "no-candidate"
    asked = queries(100, lambda place: between("a", 0, 990_000 + place * 100))
    found = advised(in_files(columns(), FILES), asked)
    assert (found.verdict, found.reason.code) == (Verdict.LEAVE, "no-gain")


def test_pure_chance_is_left() -> None:
    """Rows that lie in the order already that queries want, and a rewrite for nothing: of 40 seeds, 38 at least."""
    free = Options(rates=Rates(rewrite_bytes_per_s=1e18))
    left = tried = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        made = in_files({"x": np.sort(rng.integers(0, 10**6, 6_400)), "y": rng.integers(0, 10**6, 6_400)}, 8)
        asked = queries(60, ranges_on("x", width=int(rng.integers(1_000, 300_000)), seed=seed))
        found = recommend(TABLE, made.sample(100, seed), made.listed(), asked, free)
        left += found.verdict is Verdict.LEAVE
        tried += len(found.trials) > 0
    assert tried == 40
    assert left >= 38


def test_skewed_users_are_clustered() -> None:
    rng = np.random.default_rng(2)
    users, at = rng.zipf(1.3, ROWS) % 100_000, np.arange(ROWS)
    chosen = users[rng.integers(0, ROWS, 400)].tolist()
    found = advised(
        in_files({"user": users, "at": at}, FILES),
        queries(400, lambda place: [equals("user", number(chosen[place]))]),
    )
    assert layout_of(found) == "sort(user)"


def test_one_value_that_fills_half_of_the_table_is_no_reason_to_sort_by_it() -> None:
    rng = np.random.default_rng(2)
    x = np.where(rng.random(ROWS) < 0.5, 7, rng.integers(0, 10**6, ROWS))
    made = in_files({"x": x}, FILES)
    # Half of the table is read whatever is done; the query that never changes says it once, however often it runs.
    found = advised(made, queries(500, lambda _place: [equals("x", number(7))]))
    assert found.reason.code == "too-few-queries"
    others = rng.integers(0, 10**6, 500).tolist()
    found = advised(made, queries(500, lambda place: [equals("x", number(7 if place % 2 else others[place]))]))
    assert found.reason.code == "too-few-queries"
    found = advised(made, queries(500, lambda place: [equals("x", number(others[place]))]))
    assert layout_of(found) == "sort(x)"


def test_a_column_that_goes_with_another_one_is_left_out() -> None:
    rng = np.random.default_rng(2)
    rows = columns()
    rows["twin"] = rows["a"] * 2 + rng.integers(0, 1_000, ROWS)
    filters = [ranges_on("a"), ranges_on("twin", seed=9)]
    found = advised(in_files(rows, FILES), queries(200, lambda place: filters[place % 2](place)))
    assert layout_of(found) in ("sort(a)", "sort(twin)")
    assert [score.left_out for score in found.evidence.columns][1].startswith("has nearly the order of")


def test_a_region_leads_its_cities() -> None:
    """Cities in no order of their regions: sorted by region and city, both are found."""
    rng = np.random.default_rng(2)
    city = rng.integers(0, 400, ROWS)
    region = (city * 7919) % 20
    made = in_files({"region": region, "city": city}, FILES)
    asked = queries(
        600,
        lambda place: (
            [
                equals("region", number((place * 3) % 20)),
                *between("city", (place * 11) % 380, (place * 11) % 380 + place % 9),
            ]
            if place % 2
            else [equals("region", number((place * 3) % 20)), equals("city", number((place * 31) % 400))]
        ),
    )
    found = advised(made, asked)
    assert "sort(region, city)" in {str(trial.candidate) for trial in found.trials}
    assert found.verdict is Verdict.CHANGE


def test_equality_on_nearly_unique_values_is_a_case_for_bloom_filters() -> None:
    rng = np.random.default_rng(2)
    ids = [f"{value:032x}" for value in rng.integers(0, 1 << 60, ROWS).tolist()]
    made = in_files({"id": ids, "a": rng.integers(0, 10**6, ROWS)}, FILES)
    found = advised(made, queries(100, lambda place: [equals("id", text(ids[place * 37]))]))
    trials = {str(trial.candidate): trial for trial in found.trials}
    bloom = trials["write.parquet.bloom-filter-enabled.column.id=true"]
    assert isinstance(bloom.candidate, PropertiesChange)
    assert 1 / FILES < bloom.train.bytes_share < 0.2
    assert bloom.train.files_opened.mean == FILES  # its files are opened still: their footers say it
    assert {"bloom-estimate"} & {caveat.code for caveat in found.caveats} or layout_of(found) == "sort(id)"


def test_strings_that_share_forty_characters_are_not_helped_by_bounds() -> None:
    rng = np.random.default_rng(2)
    words = [f"{'p' * 40}{value:03}" for value in rng.integers(0, 500, ROWS).tolist()]
    made = in_files({"s": words}, FILES)
    asked = queries(100, lambda place: [equals("s", text(words[place * 31]))])
    assert advised(made, asked).reason.code == "no-gain"
    full = recommend(TABLE, made.sample(100), made.listed(length=99), asked, Options(modes={("s",): "full"}))
    assert layout_of(full) == "sort(s)"


def test_columns_of_many_nulls_and_nan_are_tried_like_others() -> None:
    rng = np.random.default_rng(2)
    x = pa.array([value if value < 0.02 else None for value in rng.random(ROWS).tolist()])
    y = pa.array([float("nan") if value < 0.3 else value for value in rng.random(ROWS).tolist()])
    made = in_files({"x": x, "y": y}, FILES)
    lows = (rng.random(200) * 0.019).tolist()
    found = advised(made, queries(200, lambda place: between("x", lows[place], lows[place] + 0.001)))
    assert layout_of(found) == "sort(x)"
    lows = (0.3 + rng.random(200) * 0.6).tolist()
    found = advised(made, queries(200, lambda place: between("y", lows[place], lows[place] + 0.02)))
    assert layout_of(found) == "sort(y)"


def test_queries_that_changed_last_week_are_no_reason_for_anything() -> None:
    filters = [ranges_on("a"), ranges_on("b", seed=9)]
    found = advised(in_files(columns(), FILES), queries(200, lambda place: filters[place >= 100](place)))
    assert (found.verdict, found.candidate, found.reason.code) == (Verdict.LEAVE, LEAVE, "drift")
    assert found.chosen is not None
    assert str(found.chosen.candidate) == "sort(a)"


def test_the_newer_queries_choose_nothing() -> None:
    """Whatever they are: the winner is that of the older ones."""
    made = in_files(columns(), FILES)
    older = queries(100, ranges_on("a"))
    chosen = set()
    windows: list[Any] = [ranges_on("a", seed=1), ranges_on("b"), ranges_on("a", "b", "c"), lambda _place: []]
    for newer in windows:
        found = advised(made, [*older, *varied(newer)])
        chosen |= {str(found.chosen.candidate)} if found.chosen is not None else set()
    assert chosen == {"sort(a)"}


def varied(filters: Any) -> list[QueryRecord]:
    """A hundred queries after the first hundred, each unlike the others."""
    return queries(100, lambda place: [*filters(place), Filter("c", Operator.NOT_EQ, (number(place),))], first=100)


def test_three_queries_are_too_few() -> None:
    found = advised(in_files(columns(), FILES), queries(3, ranges_on("a")))
    assert (found.verdict, found.reason.code) == (Verdict.LEAVE, "too-few-queries")
    assert found.reason.figures == {"older": 1, "newer": 2}
    assert advised(in_files(columns(), FILES), []).reason.code == "too-few-queries"


def test_queries_by_columns_that_are_gone_count_for_nothing_and_are_counted() -> None:
    made = in_files(columns() | {"A": np.arange(ROWS)}, FILES)
    gone = queries(50, ranges_on("dropped"))
    ambiguous = queries(20, ranges_on("a"))
    failed = queries(10, ranges_on("b"), succeeded=False)
    unreadable = queries(5, lambda _place: [equals("b", text("seven"))])
    found = advised(made, [*gone, *ambiguous, *failed, *unreadable, *queries(100, ranges_on("b", seed=3))])
    assert found.evidence.unusable == {"unknown-column": 70, "failed": 10, "unreadable-literal": 5}
    assert layout_of(found) == "sort(b)"
    (caveat,) = [caveat for caveat in found.caveats if caveat.code == "unusable-queries"]
    assert caveat.figures == found.evidence.unusable


def test_hashed_literals_choose_columns_and_judge_nothing() -> None:
    made = in_files(columns(), FILES)
    hashed = queries(200, lambda place: [equals("b", Literal(LiteralKind.HASHED, f"h{place}"))])
    found = advised(made, hashed)
    assert (found.reason.code, found.evidence.columns_only) == ("too-few-queries", 200)
    found = advised(made, [*hashed, *queries(200, ranges_on("a"))])
    assert {score.column for score in found.evidence.columns} == {"a", "b"}
    assert layout_of(found) == "sort(a)"
    assert "hidden-literals" in {caveat.code for caveat in found.caveats}


def test_a_small_sample_is_refused_and_says_how_many_rows_it_needs() -> None:
    made = in_files(columns(), FILES)
    found = recommend(TABLE, made.sample(40), made.listed(), queries(100, ranges_on("a")))
    assert (found.verdict, found.reason.code) == (Verdict.LEAVE, "sample-too-small")
    assert found.reason.figures == {"rows_needed": 80 * FILES}


def test_filters_that_no_bounds_answer_are_no_reason_for_a_layout() -> None:
    asked = queries(100, lambda place: [Filter("a", Operator.OTHER), Filter("b", Operator.NOT_EQ, (number(place),))])
    assert advised(in_files(columns(), FILES), asked).reason.code == "no-candidate"


def test_the_layout_that_the_table_is_to_have_is_tried_too() -> None:
    current = LayoutExpression(Curve.ZORDER, (LayoutColumn(("c",)), LayoutColumn(("b",))))
    found = advised(in_files(columns(), FILES), queries(100, ranges_on("a")), current=current)
    assert "zorder(c, b)" in {str(trial.candidate) for trial in found.trials}
    gone = LayoutExpression(Curve.SORT, (LayoutColumn(("gone",)),))
    assert layout_of(advised(in_files(columns(), FILES), queries(100, ranges_on("a")), current=gone)) == "sort(a)"


def test_the_same_input_has_the_same_outcome_in_whatever_order_queries_come() -> None:
    made, asked = in_files(columns(), FILES), queries(100, ranges_on("a", "b"))
    assert advised(made, asked) == advised(made, asked[::-1])


def test_a_table_without_files_is_left() -> None:
    made = in_files(columns(), FILES)
    listed = made.listed().slice(0, 0)
    found = recommend(TABLE, made.sample(100), listed, queries(100, ranges_on("a")))
    assert found.verdict is Verdict.LEAVE


@pytest.mark.parametrize("name", ["x.y", "X.Y"])
def test_columns_in_structs_are_laid_out_by(name: str) -> None:
    made = in_files(columns(), FILES)
    rows = made.rows
    nested = pa.StructArray.from_arrays([rows["a"].combine_chunks()], ["y"])
    sample = made.sample(100)
    inner = pa.StructArray.from_arrays([sample["a"].combine_chunks()], ["y"])
    sample = pa.table({"x": inner, "_file": sample["_file"]})
    metrics = made.listed()["readable_metrics"].combine_chunks().flatten()[0]
    listed = made.listed().set_column(3, "readable_metrics", pa.StructArray.from_arrays([metrics], ["x.y"]))
    assert len(nested) == ROWS
    found = recommend(TABLE, sample, listed, queries(100, ranges_on(name)))
    assert layout_of(found) == "sort(x.y)"
