"""B2: when to compact: icewright's triggers over two days of writers, against a cron job with Iceberg's procedure.

Nothing is rewritten: files are numbers, and time is virtual (:mod:`benchmarks.traces`). icewright's decisions are those
of its real planning. What a rewrite costs is taken from measurements of both sides: CPU seconds by file and by byte
from B1, and what every rewrite costs however small from a rewrite of five small files, measured for this. On our side a
group costs what its executor does: B1 has merges of large files only with deletes to be folded in, which is dearer, and
one size of stitches, whose costs count by file and by byte in full, which is twice. Each commit costs a look at the
table as well, as measured in B7; a cron run that finds nothing costs the peer nothing.

So `cpu_ratio of policy and executor` has two parts, and most of it is the executor's. `cpu_ratio of the policy alone`
replays the same decisions at the peer's costs on both sides, looks included: above 1 the policy spends less than the
cron. The writers are drawn, not recorded, and the default of `scans-per-day` (600) was chosen on traces of these very
writers: no figure here is of traces that were held out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias

import numpy as np
from pyspark.sql import SparkSession

from benchmarks import b1, machine
from benchmarks.results import AT_LEAST, AT_MOST, Case, Figure, Result, Target, amount, loads, ratio
from benchmarks.rewriters import ICEWRIGHT, PEER
from benchmarks.traces import (
    MB,
    Commit,
    Costs,
    Cron,
    OurCosts,
    Outcome,
    Writer,
    bursty,
    paper_policy,
    replay,
    replay_cron,
)
from benchmarks.traces import steady as steady_writer
from benchmarks.traces import trickle as trickle_writer
from icewright.model.policy.policy import Trigger

NAME: Final = "B2"
TITLE: Final = "when to compact: triggers over 48 hours, against an hourly cron of Iceberg's procedure"

CPU_TARGET: Final = Target(AT_LEAST, 2)
FILES_TARGET: Final = Target(AT_MOST, 1)

TINY: Final = b1.Shape("5x0.26MB", 5, 3_000)
_SMALL, _LARGE = (400, 104 * MB), (64, 320 * MB)
_STITCHED: Final = "64x5MB"
_PEERS: Final = {"400x0.26MB": _SMALL, _STITCHED: _LARGE}
_MERGED: Final = {"400x0.26MB": _SMALL, "64x5MB, 5 % deleted by position deletes": _LARGE}
_TINY_INPUT: Final = (5, int(1.3 * MB))
_LOOK: Final = ("2,000 files", f"CPU a commit, ms: {ICEWRIGHT}")
_ALL: Final = "all writers"
_WRITERS: Final[Mapping[str, Writer]] = {"steady": steady_writer, "bursty": bursty, "trickle": trickle_writer}
_JUDGED: Final = frozenset({Trigger.LEVELS, Trigger.COST_BENEFIT})
"""The default, and the trigger that is made for this; of the others the figures are for information."""

Tiny: TypeAlias = Mapping[str, float]
"""CPU seconds of a rewrite of five small files, by contestant."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What rewrites cost either side."""

    peer: Costs
    ours: OurCosts


@dataclass(frozen=True, slots=True)
class Options:
    """How much to replay: so many traces of so many hours."""

    seed: int
    traces: int
    hours: int


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return Options(seed, 1, 2)


def usual(seed: int) -> Options:
    """Three traces of two days."""
    return Options(seed, 3, 48)


def measured(spark: SparkSession, folder: Path, seed: int, say: Callable[[str], None]) -> Tiny:
    """What the smallest rewrite costs each side, as B1 measures it."""
    found = b1.run(spark, folder, b1.Options((TINY,), seed, warmups=2, rounds=5, alone=0), say)
    return {who: _cpu_s(found, TINY.name, who) for who in (ICEWRIGHT, PEER)}


def constants(results: Path, tiny: Tiny) -> Prices:
    """What rewrites cost each side, from the published results of B1 and B7 and the smallest rewrite."""
    of_b1, of_b7 = (loads((results / f"{name}.json").read_text()) for name in ("B1", "B7"))
    look_ms = next(case.value for case in of_b7.cases if (case.case, case.metric) == _LOOK)
    fits = {
        who: fitted(
            [
                *((*size, _cpu_s(of_b1, case, who)) for case, size in measured_in_b1.items()),
                (*_TINY_INPUT, tiny[who]),
            ]
        )
        for who, measured_in_b1 in ((ICEWRIGHT, _MERGED), (PEER, _PEERS))
    }
    merge = fits[ICEWRIGHT]
    files, size_bytes = _LARGE
    rest_s = max(0.0, _cpu_s(of_b1, _STITCHED, ICEWRIGHT) - merge.each_s)
    stitch = Costs(merge.each_s, rest_s / files, rest_s / size_bytes)
    return Prices(fits[PEER], OurCosts(merge, stitch, look_ms / 1000))


def fitted(points: Sequence[tuple[int, int, float]]) -> Costs:
    """The costs that come nearest to measured (files, bytes, CPU seconds), relatively, and none below zero."""
    terms = [0, 1, 2]
    rows = np.array([[1.0, files, size_bytes / MB] for files, size_bytes, _ in points])
    seconds = np.array([cpu_s for *_, cpu_s in points])
    while True:
        weighted = rows[:, terms] / seconds[:, None]
        found = np.linalg.lstsq(weighted, np.ones(len(points)), rcond=None)[0]
        if (found >= 0).all():
            break
        terms.pop(int(found.argmin()))
    each_s, file_s, mb_s = (float(found[terms.index(term)]) if term in terms else 0.0 for term in range(3))
    return Costs(each_s, file_s, mb_s / MB)


def run(costs: Prices, options: Options, say: Callable[[str], None]) -> Result:
    """Replay all traces, each with every contestant on the same commits."""
    figures: dict[tuple[str, str], list[Figure]] = {}
    for number in range(1, options.traces + 1):
        total: dict[str, Outcome] = {}
        for name, writer in _WRITERS.items():
            chance = random.Random(f"{options.seed}-{number}-{name}")  # noqa: S311 - a trace, no secret
            commits = list(writer(chance, options.hours))
            for who, outcome in _contest(commits, options.hours, costs).items():
                say(
                    f"  trace {number}, {name}, {who}: {outcome.cpu_s:,.0f} CPU s in {outcome.rewrites:,} rewrites, "
                    f"{outcome.mean_files:,.0f} files, write amplification {outcome.write_amplification:.2f}"
                )
                _note(figures, name, who, number, outcome)
                total[who] = _together(total.get(who), outcome)
        for who, outcome in total.items():
            _note(figures, _ALL, who, number, outcome)
    return Result(
        benchmark=NAME,
        title=TITLE,
        measured_at=machine.today(),
        versions=machine.versions(("icewright", "pyspark")),
        cores=machine.cores(),
        machine=machine.description(),
        seed=options.seed,
        cases=(*_cases(figures), *_constants(costs)),
    )


def _contest(commits: Sequence[Commit], hours: int, costs: Prices) -> Mapping[str, Outcome]:
    usual_policy = paper_policy()
    alike = OurCosts(costs.peer, costs.peer, costs.ours.look_s)
    ours = {
        name: replay(commits, hours, replace(usual_policy, trigger=trigger), prices)
        for trigger in Trigger
        for name, prices in ((_alike(trigger), alike), (str(trigger), costs.ours))
    }
    return {PEER: replay_cron(commits, hours, Cron(usual_policy.target_file_size_bytes), costs.peer), **ours}


def _alike(trigger: Trigger) -> str:
    """The contestant that decides as this trigger does, and whose rewrites cost what the peer's cost."""
    return f"{trigger}, rewrites at the peer's cost"


def _note(figures: dict[tuple[str, str], list[Figure]], case: str, who: str, number: int, outcome: Outcome) -> None:
    values = {"cpu_s": outcome.cpu_s, "files": outcome.mean_files, "amplification": outcome.write_amplification}
    for metric, value in values.items():
        figures.setdefault((case, metric), []).append(Figure(who, number, 0, value))


def _together(one: Outcome | None, other: Outcome) -> Outcome:
    """Several tables, over the same time."""
    if one is None:
        return replace(other)
    sums = {
        name: getattr(one, name) + getattr(other, name)
        for name in ("cpu_s", "written_bytes", "rewritten_bytes", "rewrites", "file_ms")
    }
    return replace(one, **sums)


def _cases(figures: Mapping[tuple[str, str], Sequence[Figure]]) -> list[Case]:
    cases: list[Case] = []
    for case in (_ALL, *_WRITERS):
        for trigger in Trigger:
            like = _of(figures[case, "cpu_s"], PEER, _alike(trigger))
            metric = f"cpu_ratio of the policy alone, {trigger}"
            cases.append(ratio(case, metric, like, over=PEER, under=_alike(trigger)))
        for trigger in Trigger:
            judged = case == _ALL and trigger in _JUDGED
            cpu_target, files_target = (CPU_TARGET, FILES_TARGET) if judged else (None, None)
            cpu_s = _of(figures[case, "cpu_s"], PEER, trigger)
            files = _of(figures[case, "files"], PEER, trigger)
            metric = f"cpu_ratio of policy and executor, {trigger}"
            cases.append(ratio(case, metric, cpu_s, over=PEER, under=trigger, target=cpu_target))
            cases.append(ratio(case, f"files_ratio, {trigger}", files, over=trigger, under=PEER, target=files_target))
        for who in (PEER, *Trigger):
            own = _of(figures[case, "amplification"], who)
            cases.append(amount(case, f"write amplification, {who}", own))
        cases.append(amount(case, f"mean files, {PEER}", _of(figures[case, "files"], PEER)))
    return cases


def _constants(costs: Prices) -> list[Case]:
    """What the costs were, so that the figures can be judged."""
    cases = []
    ours = costs.ours
    for who, its in ((f"{ICEWRIGHT}: merge", ours.merge), (f"{ICEWRIGHT}: stitch", ours.stitch), (PEER, costs.peer)):
        values = {
            "CPU of each rewrite, s": its.each_s,
            "CPU by input file, ms": its.file_s * 1000,
            "CPU by MB, ms": its.byte_s * MB * 1000,
        }
        cases += [
            Case(f"costs, {who}", metric, value, value, value, None, None, ()) for metric, value in values.items()
        ]
    look_ms = ours.look_s * 1000
    return [*cases, Case(f"costs, {ICEWRIGHT}", "CPU of a look, ms", look_ms, look_ms, look_ms, None, None, ())]


def _of(figures: Sequence[Figure], *contestants: str) -> list[Figure]:
    return [figure for figure in figures if figure.contestant in contestants]


def _cpu_s(result: Result, case: str, who: str) -> float:
    (found,) = {one.runs for one in result.cases if (one.case, one.metric) == (case, "cpu_ratio")}
    return median(run.value for run in found if run.contestant == who)
