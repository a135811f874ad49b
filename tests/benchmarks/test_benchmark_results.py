from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.render import render
from benchmarks.results import Case, Figure, Load, Result, Target, amount, dumps, loads, ratio, save, table

FIGURES = [
    *(Figure("peer", number, 1, value) for number, value in enumerate((10.0, 12.0, 20.0), start=1)),
    *(Figure("icewright", number, 2, value) for number, value in enumerate((4.0, 5.0, 2.0), start=1)),
]


def sample(*cases: Case) -> Result:
    return Result(
        benchmark="B1",
        title="merging",
        measured_at="2026-01-02",
        versions={"pyspark": "4.1.4", "iceberg": "1.12.0"},
        cores=2,
        machine={"Processor": "any", "Load before": "0.01"},
        seed=7,
        cases=cases,
    )


RESULT = sample(
    ratio("64x5MB", "cpu_ratio", FIGURES, over="peer", under="icewright", target=Target(">=", 2.5)),
    ratio("64x5MB", "cpu_ratio", FIGURES, over="peer", under="icewright", target=Target(">=", 10, "later")),
    amount("64x5MB", "share", FIGURES[3:]),
)


def test_a_ratio_is_of_medians_and_its_range_of_any_two_runs() -> None:
    case = RESULT.cases[0]
    assert (case.value, case.low, case.high) == (3.0, 2.0, 10.0)
    assert (case.target, case.met) == (">= 2.5", True)


def test_what_was_not_met_says_so() -> None:
    assert (RESULT.cases[1].target, RESULT.cases[1].met) == (">= 10 later", False)
    assert Target("<=", 1.05).met(1.05)
    assert not Target("<=", 1.05).met(1.06)
    with pytest.raises(ValueError, match="relation"):
        Target("<", 1).met(0)


def test_an_amount_has_no_target() -> None:
    case = RESULT.cases[2]
    assert (case.value, case.low, case.high, case.target, case.met) == (4.0, 2.0, 5.0, None, None)


def test_json_comes_back_as_it_was(tmp_path: Path) -> None:
    assert loads(dumps(RESULT)) == RESULT
    assert loads(save(RESULT, tmp_path / "results").read_text()) == RESULT
    assert (tmp_path / "results" / "B1.json").exists()


def test_the_table_shows_every_case() -> None:
    assert table(RESULT).splitlines() == [
        "case    metric     value  range       target       met",
        "64x5MB  cpu_ratio  3.00   2.00-10.00  >= 2.5       yes",
        "64x5MB  cpu_ratio  3.00   2.00-10.00  >= 10 later  NO",
        "64x5MB  share      4.00   2.00-5.00",
    ]


def test_the_page_is_made_of_the_results_alone() -> None:
    page = render([RESULT])
    assert "## B1: merging\n\n1 of 2 targets met.\n" in page
    assert "| 64x5MB | cpu_ratio | 3.00 | 2.00 to 10.00 | >= 2.5 | yes |\n" in page
    assert "|  | cpu_ratio | 3.00 | 2.00 to 10.00 | >= 10 later | **no** |\n" in page
    assert "|  | share | 4.00 | 2.00 to 5.00 |  |  |\n" in page
    assert "Measured 2026-01-02 on 2 cores, seed 7. Processor: any. Load before: 0.01.\n" in page
    assert "Versions: iceberg 1.12.0, pyspark 4.1.4.\n" in page
    assert render([loads(dumps(RESULT))]) == page


def test_the_page_says_which_long_forms_are_missing_and_how_busy_the_machine_was() -> None:
    page = render([replace(RESULT, load=Load((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))), replace(RESULT, benchmark="B7-full")])
    assert "- B12-full: `python -m benchmarks B12 --full`" in page
    assert "- B7-full:" not in page
    assert "1.0/2.0/3.0 at the start, 4.0/5.0/6.0 at the end" in page
    loaded = replace(RESULT, load=Load((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)))
    assert loads(dumps(loaded)) == loaded
