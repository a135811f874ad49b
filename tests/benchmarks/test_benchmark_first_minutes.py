"""What a new user waits for: figures by contestant, and what does not answer is no figure.

With the real demo it is ``python -m benchmarks FIRST --short``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import first_minutes
from benchmarks.first_minutes import ASKING, DATASETTE, HELP, ICEWRIGHT, PAGE, PAINT, PYARROW
from benchmarks.lake import Mismatch
from benchmarks.results import Figure


def test_targets_are_of_icewright_alone_and_ratios_of_both() -> None:
    figures = {
        PAGE: [Figure(ICEWRIGHT, 1, 1, 12.0), Figure(DATASETTE, 1, 2, 2.0)],
        HELP: [Figure(ICEWRIGHT, 1, 3, 0.5), Figure(DATASETTE, 1, 4, 1.0), Figure(PYARROW, 1, 5, 0.25)],
        ASKING: [Figure(ICEWRIGHT, 1, 1, 0.6)],
        PAINT: [Figure(ICEWRIGHT, 1, 1, 2.5)],
    }
    cases = first_minutes._cases(figures, has_peer=True)
    assert [(one.case, one.value, one.met) for one in cases] == [
        (PAGE, 12.0, False),
        (HELP, 0.5, True),
        (ASKING, 0.6, True),
        (PAINT, 2.5, False),
        (HELP, 0.25, None),
        (PAGE, 2.0, None),
        (PAGE, 6.0, None),
        (HELP, 1.0, None),
        (HELP, 0.5, None),
    ]


@pytest.mark.browser
def test_the_page_of_a_fleet_is_measured_until_it_is_drawn(tmp_path: Path) -> None:
    with first_minutes._fleet(tmp_path, 1_200, lambda _: None) as paint_s:
        assert paint_s() > 0


def test_what_ends_with_an_error_is_no_figure(tmp_path: Path) -> None:
    assert first_minutes._took([sys.executable, "-c", ""]) > 0
    with pytest.raises(Mismatch, match="nonsense"):
        first_minutes._took([sys.executable, "-c", "raise SystemExit('nonsense')"])
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine.txt").touch()
    with pytest.raises(Mismatch, match="was not made by the demo"):
        first_minutes._demo_s(tmp_path / "demo")
