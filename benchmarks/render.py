"""The published page, from the results' JSON: nothing on it is written by hand, so that losses are on it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.results import Case, Result

_HEAD = """# Benchmarks

Written by `python -m benchmarks --render` from `benchmarks/results/*.json`, which hold every run.

A ratio is one of two medians, and its range is from the least to the largest ratio of any two runs; in B3, which is of
many tables, it is the median of their ratios. Figures without a target are for information. The top of each module in
`benchmarks/` says what the benchmark does, against whom, and what its figures leave out.

| | side by side in one run | what it is |
|---|---|---|
| B1, B3, B9 | yes, in shuffled order | the results are proved equal before a figure counts |
| B3-written | yes | B3 and B4 on files that both sides wrote, by the bounds in their manifests; no CPU is counted |
| B4 | no | predictions from samples, judged by all rows placed in memory, without writing files |
| B2 | no | replayed in virtual time, at costs that B1 and B7 measured; judged by writers that chose no default |
| B7 | yes | the same inventory by PyIceberg; each table once |
| B7-full | no | on PostgreSQL, half of the commits to three servers and half to one; the peer inspects some between |
| B11 | yes | the table as written, and the same table as optimized; there is no peer |
| B10 | no | icewright alone, while it is killed |
| B12, QUEUE | no | icewright alone, under a load |
| B14 | no | icewright alone: several servers against one |
| B13 | yes | batches, and a job for each task; the target's peer was measured elsewhere |
| FIRST | yes | no like work: the demo, and datasette's first page of an existing database |

CPU is user and system time of whole process trees: the JVM, the driver, the Python workers, also ended ones. In B1
icewright's side includes planning, proof, commit and verification.

Like for like first: `cpu_ratio of the policy alone` in B2, `to the peer's metadata alone` in B9 and
`splits by Iceberg's own sizes` in B11 compare the same work. The other figures also depend on the executor, on files
that only one side deletes, and on split sizes that were divided by the scale of the table.

Long forms (`--full`) write results of their own, such as `B7-full.json`. Missing here:
{missing}
"""


LONG_FORMS: Final[Mapping[str, str]] = {
    "B2-full": "B2 --full",
    "B3-written-full": "B3-written --full",
    "B7-full": "B7 --full",
    "B9-full": "B9 --full",
    "B11-full": "B11 --full",
    "B12-full": "B12 --full",
    "B13-full": "B13 --full",
}
"""Results of long forms, and what measures each."""


def render(results: Sequence[Result]) -> str:
    """The page as Markdown, one section per benchmark, by name."""
    there = {result.benchmark for result in results}
    missing = [f"- {name}: `python -m benchmarks {how}`" for name, how in LONG_FORMS.items() if name not in there]
    head = _HEAD.format(missing="\n".join(missing) or "- none")
    return "\n".join([head, *(_section(result) for result in sorted(results, key=lambda result: result.benchmark))])


def _section(result: Result) -> str:
    judged = [case for case in result.cases if case.met is not None]
    lines = [
        f"## {result.benchmark}: {result.title}",
        "",
        f"{sum(case.met is True for case in judged)} of {len(judged)} targets met.",
        "",
        "| case | metric | value | range | target | met |",
        "|---|---|---|---|---|---|",
        *(
            _row(case, is_first=before is None or before.case != case.case)
            for before, case in zip([None, *result.cases], result.cases, strict=False)
        ),
        "",
        f"Measured {result.measured_at} on {result.cores} cores, seed {result.seed}. "
        + " ".join(f"{key}: {value}." for key, value in result.machine.items())
        + _load(result),
        "",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items())) + ".",
        "",
    ]
    return "\n".join(lines)


def _load(result: Result) -> str:
    if result.load is None:
        return ""
    start, end = (
        "/".join(f"{average:.1f}" for average in averages) for averages in (result.load.start, result.load.end)
    )
    return f" Load averages of 1/5/15 minutes: {start} at the start, {end} at the end."


def _row(case: Case, *, is_first: bool) -> str:
    """A figure; the name of its case stands in the first row of the case alone."""
    met = "" if case.met is None else "yes" if case.met else "**no**"
    cells = (
        case.case if is_first else "",
        case.metric,
        f"{case.value:.2f}",
        f"{case.low:.2f} to {case.high:.2f}",
        case.target or "",
        met,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
