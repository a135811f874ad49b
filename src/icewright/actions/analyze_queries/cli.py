"""What is shown of plans to analyze queries."""

from __future__ import annotations

from typing import Any, Final

from icewright.model.actions.analyze_queries import AnalyzeQueriesFigures, AnalyzeQueriesPrediction
from icewright.plans.action_types import ActionWords
from icewright.terminal import figures as text


def _pairs(said: AnalyzeQueriesPrediction, _view: Any) -> list[tuple[str, str]]:
    return [
        ("analyzes", f"{said.queries:,} queries"),
        ("reads", f"about {said.sample_rows:,} rows of {text.count(said.data_files, 'file')}, and the query log"),
        ("changes", "nothing"),
    ]


WORDS: Final = ActionWords(
    AnalyzeQueriesPrediction,
    AnalyzeQueriesFigures,
    predicted=_pairs,
    work=lambda said: f"layouts are tried on {said.queries:,} queries",
    undo=lambda _said, _view: "it changes nothing",
)
