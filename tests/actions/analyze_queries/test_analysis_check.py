"""What is checked of a plan to analyze queries, and of the answer, before anybody sees it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.actions.analyze_queries.check import analysis_violations, impossible, recommendation_problem
from icewright.actions.analyze_queries.plan import (
    QUERIES_MIN,
    SAMPLE_ROWS_MAX,
    SAMPLE_ROWS_MIN,
    SAMPLE_ROWS_PER_FILE,
    AnalysisDecision,
    decide_analysis,
    sample_of,
)
from icewright.model.actions.analyze_queries import AnalyzeQueries, AnalyzeQueriesPrediction
from icewright.model.iceberg.layouts import NO_LAYOUT, Curve, LayoutColumn, LayoutExpression
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.queries.recommendations import (
    LEAVE,
    AggregationCandidate,
    ColumnBytes,
    Cost,
    FrequentQueries,
    LayoutChange,
    PropertiesChange,
    QueryWindow,
    Recommendation,
    Revert,
    Verdict,
)
from icewright.policy.effective import effective_policy
from tests.builders.queries import frequent, leave, of_format, recommendation
from tests.builders.served import EVENTS, Served
from tests.cases import each_case

LOG = TableName("lake", ("icewright",), "queries")
SINCE = 1_699_000_000_000
NOW = 1_700_000_000_000
SUMS = AggregationCandidate(("city",), ("count(*)",), queries=9, bytes_read=0, rows=40_000, cells=5)


@pytest.fixture(scope="module")
def metadata() -> TableMetadata:
    served = Served()
    served.table()
    return served.lake.load(EVENTS)


def decided(metadata: TableMetadata, queries: int = 100, records: int = 50_000) -> AnalysisDecision:
    policy = effective_policy(metadata, ())
    return decide_analysis(
        metadata,
        policy,
        data_files=10,
        data_bytes=4_000_000,
        records=records,
        queries=queries,
        queries_table=LOG,
        since=SINCE,
    )


def planned(metadata: TableMetadata) -> tuple[AnalyzeQueries, AnalyzeQueriesPrediction]:
    found = decided(metadata)
    assert isinstance(found.action, AnalyzeQueries)
    assert isinstance(found.prediction, AnalyzeQueriesPrediction)
    return found.action, found.prediction


def test_a_plan_of_the_planner_is_accepted(metadata: TableMetadata) -> None:
    action, said = planned(metadata)
    assert list(analysis_violations(action, said, metadata, effective_policy(metadata, ()), LOG, NOW)) == []


@each_case(
    ("changes", "code"),
    [
        ({"queries_table": TableName("lake", ("hr",), "salaries")}, "queries-table-other"),
        ({"base_snapshot_id": 1}, "snapshot-not-current"),
        ({"since": NOW}, "since-in-future"),
        ({"sample_rows": 0}, "sample-impossible"),
        ({"sample_rows": 50_001}, "sample-impossible"),
        ({"current": NO_LAYOUT}, "layout-other"),
        ({"queries": 7}, "figures-wrong"),
    ],
)
def test_another_plan_is_not(metadata: TableMetadata, changes: dict[str, object], code: str) -> None:
    action, said = planned(metadata)
    wrong = replace(action, **changes)  # type: ignore[arg-type] # cases of several fields
    found = dict(analysis_violations(wrong, said, metadata, effective_policy(metadata, ()), LOG, NOW))
    assert code in found


def test_too_few_queries_and_no_rows_are_nothing_to_analyze(metadata: TableMetadata) -> None:
    assert decided(metadata, queries=QUERIES_MIN).action is not None
    few = decided(metadata, queries=QUERIES_MIN - 1)
    assert (few.action, few.reason.code) == (None, "too-few-queries")
    assert decided(metadata, records=0).reason.code == "no-rows"


@each_case(
    ("files", "records", "rows"),
    [
        (1, 100, 100),
        (1, 10**9, SAMPLE_ROWS_MIN),
        (1_000, 10**9, 1_000 * SAMPLE_ROWS_PER_FILE),
        (10**6, 10**9, SAMPLE_ROWS_MAX),
    ],
)
def test_the_sample_grows_with_the_files_within_bounds(files: int, records: int, rows: int) -> None:
    assert sample_of(files, records) == rows


def problem_of(answer: Recommendation, metadata: TableMetadata) -> str | None:
    action, said = planned(metadata)
    return recommendation_problem(answer, EVENTS, action, said, metadata)


def bloom_of(column: str, value: str = "true") -> PropertiesChange:
    return PropertiesChange({f"write.parquet.bloom-filter-enabled.column.{column}": value})


def changed(candidate: object) -> Recommendation:
    """A recommendation that holds, but for what it recommends."""
    good = recommendation(EVENTS, "city")
    assert good.chosen is not None
    return replace(good, candidate=candidate, chosen=replace(good.chosen, candidate=candidate))  # type: ignore[arg-type] # wrong ones


def test_an_answer_that_holds_is_accepted(metadata: TableMetadata) -> None:
    recorded = replace(leave(EVENTS), aggregations=(SUMS,) * 10)
    for answer in (recommendation(EVENTS, "city"), changed(bloom_of("city")), leave(EVENTS), recorded):
        assert problem_of(answer, metadata) is None


def by(since: int, until: int, queries: int = 100) -> Recommendation:
    """A recommendation that later queries of that time judge."""
    good = recommendation(EVENTS, "city")
    return replace(good, evidence=replace(good.evidence, test=QueryWindow(since, until, queries, queries)))


def test_a_window_without_queries_has_no_time(metadata: TableMetadata) -> None:
    assert problem_of(by(0, 0, queries=0), metadata) is None


def wrong_answers() -> list[tuple[Recommendation, str]]:
    good = recommendation(EVENTS, "city")
    assert good.chosen is not None
    mode = PropertiesChange({"icewright.mode": "auto"})
    location = PropertiesChange({**bloom_of("city").properties, "write.data.path": "s3://x"})
    deep = LayoutExpression(Curve.SORT, (LayoutColumn(("city", "inner")),))
    evidence = good.evidence
    return [
        (recommendation(replace(EVENTS, name="other"), "city"), "not of lake.db.events"),
        (replace(good, rates=replace(good.rates, horizon_days=700)), "its rates"),
        (replace(good, trials=good.trials * 101), "101 trials"),
        (replace(good, evidence=replace(evidence, bytes=1)), "a table of 1 bytes"),
        (replace(good, evidence=replace(evidence, partitions=11)), "11 partitions in 10 files"),
        (replace(good, evidence=replace(evidence, partitions=-1)), "-1 partitions"),
        (by(-(10**30), SINCE), "by queries from"),
        (by(SINCE - 8 * 24 * 3_600_000, NOW), "by queries from"),
        (by(NOW, NOW - 1), "by queries from"),
        (by(NOW, 10**30), "by queries from"),
        (recommendation(EVENTS, "gone"), "no column gone"),
        (changed(LayoutChange(deep)), "no column city.inner"),
        (changed(LayoutChange(NO_LAYOUT)), "a layout without columns"),
        (changed(mode), "'icewright.mode'"),
        (changed(location), "'write.data.path'"),
        (changed(bloom_of("gone")), "no column gone"),
        (changed(bloom_of("city", "false")), "it would set"),
        (changed(PropertiesChange({})), "0 properties"),
        (changed(LEAVE), "no action carries out"),
        (replace(good, verdict=Verdict.LEAVE), "to leave the table, and sort(city)"),
        (replace(good, chosen=None), "not tried on later queries"),
        (replace(good, chosen=replace(good.chosen, test=None)), "not tried on later queries"),
        (recommendation(EVENTS, "city", saved_s=0.5), "gains 3.5 CPU seconds at least and costs 5"),
        (replace(good, chosen=replace(good.chosen, cost=Cost(1, 0.0))), "costs 0"),
        (recommendation(EVENTS, "city", saved_s=float("nan")), "not a finite number"),
        (replace(good, trials=(replace(good.chosen, cost=Cost(1, float("nan"))),)), "not a finite number"),
        (recommendation(EVENTS, "city", saved_s=float("inf")), "not a finite number"),
        (frequent(good, then=-1.0), "most frequent queries open -1 files"),
        (frequent(good, then=1e9), "most frequent queries open 1e+09 files"),
        (replace(good, frequent=FrequentQueries(11, 1.0, 1.0)), "its 11 most frequent queries"),
        *(
            (replace(good, aggregations=recorded), "what it records of queries that sum the table up")
            for recorded in (
                (SUMS,) * 11,
                (replace(SUMS, cells=SUMS.rows + 1),),
                (replace(SUMS, cells=0),),
                (replace(SUMS, queries=0),),
                (replace(SUMS, bytes_read=-1),),
                (SUMS, replace(SUMS, dimensions=())),
                (replace(SUMS, dimensions=("x" * 1_001,)),),
                (replace(SUMS, aggregates=("sum(x)",) * 51),),
            )
        ),
    ]


CODEC, LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"
ROW_GROUP = "write.parquet.row-group-size-bytes"
DICTIONARY = "write.parquet.dict-encoding-enabled.column."


@each_case(
    "properties",
    [
        {CODEC: "zstd", LEVEL: "1"},
        {CODEC: "zstd", LEVEL: "9"},
        {CODEC: "snappy"},
        {CODEC: "uncompressed"},
        {ROW_GROUP: str(8 << 20)},
        {f"{DICTIONARY}city": "false"},
        {CODEC: "zstd", LEVEL: "3", ROW_GROUP: str(16 << 20), f"{DICTIONARY}city": "false"},
    ],
)
def test_settings_of_the_file_format_that_hold_are_accepted(
    metadata: TableMetadata, properties: dict[str, str]
) -> None:
    assert problem_of(of_format(EVENTS, PropertiesChange(properties)), metadata) is None


@each_case(
    "properties",
    [
        {CODEC: "lz4"},
        {CODEC: "brotli"},
        {CODEC: "zstd"},  # with the level of whatever was there before
        {CODEC: "zstd", LEVEL: "19"},
        {CODEC: "zstd", LEVEL: "-1"},
        {CODEC: "zstd", LEVEL: "³"},
        {CODEC: "zstd", LEVEL: "9" * 5_000},
        {CODEC: "snappy", LEVEL: "3"},
        {LEVEL: "3"},
        {ROW_GROUP: "1"},
        {ROW_GROUP: str(1 << 40)},
        {ROW_GROUP: "8 MiB"},
        {f"{DICTIONARY}city": "true"},
        {"write.parquet.page-version": "v2"},
        {"write.parquet.compression-codec ": "snappy"},
        {CODEC: "snappy", "write.data.path": "s3://x"},
    ],
)
def test_other_settings_of_the_file_format_are_shown_to_nobody(
    metadata: TableMetadata, properties: dict[str, str]
) -> None:
    assert "it would set" in (problem_of(of_format(EVENTS, PropertiesChange(properties)), metadata) or "")


def test_settings_of_the_file_format_go_back_to_what_they_were(metadata: TableMetadata) -> None:
    was = {CODEC: "lz4", LEVEL: None, f"{DICTIONARY}gone": None}
    assert list(impossible(Revert("recommendation-1", was), metadata)) == []
    assert list(impossible(Revert("recommendation-1", {**was, "write.data.path": None}), metadata)) != []


def wrong_trials() -> list[tuple[Recommendation, str]]:
    good, chosen = of_format(EVENTS), of_format(EVENTS).chosen
    assert chosen is not None
    assert chosen.test is not None
    written = chosen.written
    assert written is not None

    def trial(**changes: object) -> Recommendation:
        return replace(good, chosen=replace(chosen, **changes))  # type: ignore[arg-type] # of several fields

    def sample(**changes: object) -> Recommendation:
        return trial(written=replace(written, **changes))  # type: ignore[arg-type] # of several fields

    long = ColumnBytes("x" * 1_001, 1, 1)
    return [
        (of_format(EVENTS, PropertiesChange({f"{DICTIONARY}gone": "false"})), "no column gone"),
        (trial(written=None), "not measured on rows"),
        (sample(rounds=2), "not measured on rows"),
        (trial(cost=Cost(4_000_000, 0.1)), "less than a rewrite of the table"),
        (trial(test=replace(chosen.test, bytes_read_now=5e6)), "5e+06 bytes of a table of 4,000,000"),
        *(
            (answer, "what it says of a sample of rows cannot be")
            for answer in (
                sample(sample_rows=0),
                sample(row_groups=-1),
                sample(bytes=-1),
                sample(columns=written.columns * 11),
                sample(columns=(long,)),
                replace(good, trials=(replace(chosen, written=replace(written, columns=(long,))),)),
            )
        ),
    ]


@each_case(("answer", "why"), wrong_trials())
def test_a_trial_on_rows_that_does_not_hold_is_shown_to_nobody(
    metadata: TableMetadata, answer: Recommendation, why: str
) -> None:
    assert why in (problem_of(answer, metadata) or "")


def test_settings_that_a_table_has_are_no_change(metadata: TableMetadata) -> None:
    answer = of_format(EVENTS)
    assert isinstance(answer.candidate, PropertiesChange)
    has_them = replace(metadata, properties={**metadata.properties, **answer.candidate.properties})
    assert "already" in (problem_of(answer, has_them) or "")
    orc = replace(metadata, properties={"write.format.default": "orc"})
    assert "not written as Parquet" in (problem_of(answer, orc) or "")


@each_case(("answer", "why"), wrong_answers())
def test_an_answer_that_does_not_hold_is_shown_to_nobody(
    metadata: TableMetadata, answer: Recommendation, why: str
) -> None:
    assert why in (problem_of(answer, metadata) or "")


def test_the_layout_that_a_table_has_is_no_change(metadata: TableMetadata) -> None:
    action, said = planned(metadata)
    answer = recommendation(EVENTS, "city")
    assert isinstance(answer.candidate, LayoutChange)
    has_it = replace(action, current=answer.candidate.layout)
    assert "already" in (recommendation_problem(answer, EVENTS, has_it, said, metadata) or "")
