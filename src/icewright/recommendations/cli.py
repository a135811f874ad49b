"""``icewright recommendations``: list, show, accept, snooze and reject them."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from icewright.core import wording
from icewright.core.codec import from_json
from icewright.model.queries.decisions import RecommendationState
from icewright.model.queries.recommendations import (
    AggregationCandidate,
    CandidateTrial,
    FormatTrial,
    Interval,
    Prediction,
    Verdict,
)
from icewright.recommendations.views import RecommendationSummary, RecommendationView
from icewright.terminal import figures as text
from icewright.terminal.cli import Terminal
from icewright.terminal.invocation import Invocation, Limit, api_command, table_name
from icewright.terminal.tables import headings

app = typer.Typer(help="Recommendations made from the queries of tables.", no_args_is_help=True)

_LIST: Final = headings(
    "recommendation",
    "table",
    "state",
    "change",
    "#reads of now",
    "made",
    drop=("made", "reads of now"),
    below=("change", "table"),
)
_TRIALS: Final = headings(
    "candidate", "#files", "#of now", "#bytes of now", "#saved a day", "#costs", drop=("of now", "files"), below=()
)
_COLUMNS: Final = headings("column", "#queries", "#score", "left out", below=("left out",))

_WRITTEN: Final = headings("column", "#bytes now", "#bytes then", below=())

_AGGREGATIONS: Final = headings("by", "#queries", "#cells", "#of rows", "sums", below=("sums",))

RecommendationArgument = Annotated[
    str, typer.Argument(metavar="ID", help="As `icewright recommendations list` shows it.")
]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason. It is kept with the decision.")]


@app.command("list")
@api_command
def list_recommendations(
    invocation: Invocation,
    *,
    table: Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only those of this table.")] = None,
    only_open: Annotated[bool, typer.Option("--open", help="Only changes that are not decided yet.")] = False,
    limit: Limit = 50,
) -> None:
    """List recommendations, the newest first."""
    client = invocation.client
    known = None if table is None else client.table(table_name(invocation.config, table))
    of_table = {} if known is None else {"table": known["uuid"], "catalog": known["catalog"]}
    page = client.recommendations(**of_table, only_open=only_open, limit=limit)
    none = "no recommendations; `icewright recommend TABLE` makes one"
    invocation.print_page(page, RecommendationSummary, _LIST, _cells, none=none)


@app.command()
@api_command
def show(invocation: Invocation, recommendation_id: RecommendationArgument) -> None:
    """Show a recommendation: what to change, the queries behind it, what it would bring and cost, and what lost."""
    found = from_json(RecommendationView, invocation.client.recommendation(recommendation_id))
    invocation.print_answer(found, print_recommendation)


@app.command()
@api_command
def accept(invocation: Invocation, recommendation_id: RecommendationArgument) -> None:
    """Accept a recommendation: its properties are set on the table, whose files follow by the table's own mode."""
    _decided(invocation, recommendation_id, "accept")


@app.command()
@api_command
def reject(invocation: Invocation, recommendation_id: RecommendationArgument, *, why: Why) -> None:
    """Reject a recommendation. A later one may recommend the same again."""
    _decided(invocation, recommendation_id, "reject", {"why": why})


@app.command()
@api_command
def snooze(
    invocation: Invocation,
    recommendation_id: RecommendationArgument,
    *,
    days: Annotated[int, typer.Option("--days", min=1, help="When it is open again.")] = 7,
    why: Why = "",
) -> None:
    """Put a recommendation off: it is open again after so many days."""
    _decided(invocation, recommendation_id, "snooze", {"days": days, "why": why})


def _decided(
    invocation: Invocation, recommendation_id: str, decision: str, body: dict[str, str | int] | None = None
) -> None:
    answer = invocation.client.decide_recommendation(recommendation_id, decision, body)
    found = from_json(RecommendationView, answer)
    said = found.summary
    line = f"{said.recommendation_id} of {said.table} is {said.state}"
    if said.state is RecommendationState.ACCEPTED:
        line += "; set: " + ", ".join(f"{key} = {value}" for key, value in sorted(found.properties.items()))
    invocation.print_answer(found, line)


def _cells(one: RecommendationSummary) -> tuple[str, ...]:
    return (
        one.recommendation_id,
        one.table,
        one.state.value,
        one.change if one.verdict is Verdict.CHANGE else f"{one.change}: {one.reason}",
        "-" if one.bytes_share is None else text.ratio(one.bytes_share),
        text.instant(one.made_at),
    )


def print_recommendation(terminal: Terminal, found: RecommendationView) -> None:
    """Print a recommendation in full."""
    said, summary = found.recommendation, found.summary
    evidence = said.evidence
    terminal.say(f"{summary.recommendation_id}: {said.table}, {summary.state}")
    terminal.prose(f"{said.candidate}. {said.reason.text}")
    for key, value in sorted(found.properties.items()):
        terminal.say(f"  sets {key} = {value}")
    terminal.say()
    for what, window in (("chosen by", evidence.train), ("judged by", evidence.test)):
        if window is not None:
            counted = f"{window.queries:,} queries from {text.instant(window.since)} to {text.instant(window.until)}"
            terminal.prose(f"{what}: {counted}, {window.evaluated:,} of which can be evaluated")
    terminal.prose(
        f"sample: {evidence.sample_rows:,} rows of {wording.count(evidence.files, 'file')}, {text.size(evidence.bytes)}"
    )
    if said.chosen is not None and said.chosen.test is not None:
        terminal.say()
        _print_test(terminal, said.chosen.test, said.chosen)
    if said.trials:
        terminal.say()
        terminal.table(_TRIALS, [_trial_cells(trial) for trial in said.trials])
    if evidence.columns:
        terminal.say()
        rows = [(c.column, text.number(c.queries), f"{c.score:,.1f}", c.left_out) for c in evidence.columns]
        terminal.table(_COLUMNS, rows)
    if said.aggregations:
        terminal.say()
        terminal.prose("sums that queries ask for; recorded, not built by icewright yet:")
        terminal.table(_AGGREGATIONS, [_aggregation_cells(one) for one in said.aggregations])
    for caveat in said.caveats:
        terminal.prose(f"note: {caveat.text}")
    if summary.state is RecommendationState.OPEN and said.verdict is Verdict.CHANGE:
        terminal.say()
        terminal.say(f"Next: icewright recommendations accept {summary.recommendation_id}")


def _aggregation_cells(one: AggregationCandidate) -> tuple[str, ...]:
    sums = ", ".join(one.aggregates)
    return ", ".join(one.dimensions), text.number(one.queries), text.number(one.cells), text.number(one.rows), sums


def _print_test(terminal: Terminal, test: Prediction, chosen: CandidateTrial) -> None:
    terminal.prose(
        f"a later query opens {test.files_opened_now:,.1f} of {test.files:,} files now, "
        f"{_range(test.files_opened)} then"
    )
    share = Interval(*(value / max(test.bytes_read_now, 1.0) for value in _ends(test.bytes_read)))
    terminal.prose(
        f"it reads {100 * share.mean:.0f} % of its bytes then ({100 * share.low:.0f} to {100 * share.high:.0f} %)"
    )
    saved = test.saved_s_per_day
    terminal.prose(
        f"saves {_range(saved)} CPU seconds a day; costs {chosen.cost.cpu_s:,.1f} CPU seconds once, for "
        f"{text.size(chosen.cost.rewrite_bytes)}"
    )
    if chosen.written is not None:
        terminal.say()
        _print_written(terminal, chosen.written)


def _print_written(terminal: Terminal, tried: FormatTrial) -> None:
    terminal.prose(
        f"{tried.sample_rows:,} rows of {wording.count(tried.sample_files, 'file')}, written {tried.rounds} times: "
        f"{text.size(tried.bytes_now)} now, {text.size(tried.bytes)} then; "
        f"to write them {_seconds(tried.write_s_now, tried.write_s)}; "
        f"to decode the columns that queries read {_seconds(tried.read_s_now, tried.read_s)}"
    )
    rows = [(one.column, text.size(one.bytes_now), text.size(one.bytes)) for one in tried.columns]
    terminal.table(_WRITTEN, rows)


def _seconds(now: float, then: Interval) -> str:
    return f"{now:,.2f} CPU seconds now and {then.mean:,.2f} ({then.low:,.2f} to {then.high:,.2f}) then"


def _ends(found: Interval) -> tuple[float, float, float]:
    return found.low, found.mean, found.high


def _range(found: Interval) -> str:
    return f"{found.mean:,.1f} ({found.low:,.1f} to {found.high:,.1f})"


def _trial_cells(trial: CandidateTrial) -> tuple[str, ...]:
    tried = trial.train
    return (
        str(trial.candidate),
        f"{tried.files_opened.mean:,.1f}",
        f"{tried.files_opened_now:,.1f}",
        text.ratio(tried.bytes_share),
        f"{tried.saved_s_per_day.mean:,.2f} s",
        f"{trial.cost.cpu_s:,.1f} s",
    )
