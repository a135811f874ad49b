"""The published page, from the results' JSON: nothing on it is written by hand, so that losses are on it too."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.results import Case, Result

_HEAD = """# Benchmarks

Written by `python -m benchmarks --render` from `benchmarks/results/*.json`, which hold every run.

Peer and icewright do the same work in the same run, in shuffled order, after a warm-up; the results are proved to be
equal before a timing counts. CPU is user and system time of whole process trees: the JVM, the driver, the Python
workers, also those that ended. icewright's side includes planning, proof, commit and verification. A ratio is one of
two medians, and its range is from the least to the largest ratio of any two runs; in B3, which is of
many tables, it is the median of their ratios. Figures without a target are there for
information. What each benchmark does, and against whom, stands at the top of its module in `benchmarks/`.
"""


def render(results: Sequence[Result]) -> str:
    """The page as Markdown, one section per benchmark, by name."""
    return "\n".join([_HEAD, *(_section(result) for result in sorted(results, key=lambda result: result.benchmark))])


def _section(result: Result) -> str:
    judged = [case for case in result.cases if case.met is not None]
    lines = [
        f"## {result.benchmark}: {result.title}",
        "",
        f"{sum(case.met is True for case in judged)} of {len(judged)} targets met.",
        "",
        "| case | metric | value | range | target | met |",
        "|---|---|---|---|---|---|",
        *(_row(case) for case in result.cases),
        "",
        f"Measured {result.measured_at} on {result.cores} cores, seed {result.seed}. "
        + " ".join(f"{key}: {value}." for key, value in result.machine.items()),
        "",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items())) + ".",
        "",
    ]
    return "\n".join(lines)


def _row(case: Case) -> str:
    met = "" if case.met is None else "yes" if case.met else "**no**"
    cells = (
        case.case,
        case.metric,
        f"{case.value:.2f}",
        f"{case.low:.2f} to {case.high:.2f}",
        case.target or "",
        met,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
