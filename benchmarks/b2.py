"""B2: when to compact: icewright's triggers over two days of writers, against a cron job with Iceberg's procedure.

Nothing is rewritten: files are numbers, and time is virtual (:mod:`benchmarks.traces`). icewright's decisions are those
of its real planning. What a rewrite costs is taken from measurements of both sides: CPU seconds by file and by byte
from B1, and what every rewrite costs however small from a rewrite of five small files, measured for this. On our side a
group costs what its executor does: B1 has merges of large files only with deletes to be folded in, which is dearer, and
one size of stitches, whose costs count by file and by byte in full, which is twice. Each commit costs a look at the
table as well, as measured in B7; a cron run that finds nothing costs the peer nothing.

So `cpu_ratio of policy and executor` has two parts, and most of it is the executor's. `cpu_ratio of the policy alone`
replays the same triggers at the peer's costs on both sides, looks included: above 1 the policy spends less than the
cron. `cpu_ratio at best` is what no policy can exceed that writes each byte once: of the peer's CPU, to that of all
bytes written once, in no rewrites and after no looks.

The writers are drawn, not recorded (:mod:`benchmarks.traces`). Defaults were chosen on three of them, *training*; the
targets are of the five others, *judging*, which nothing was chosen by.

`policy and readers` adds what so many scans a day cost by the model of the trigger cost-benefit, each of which opens
all files: that trigger has the number as its setting.
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
    DAY_MS,
    JUDGING,
    MB,
    TRAINING,
    Commit,
    Costs,
    Cron,
    OurCosts,
    Outcome,
    paper_policy,
    replay,
    replay_cron,
)
from icewright.model.policy.policy import Policy, Trigger

NAME: Final = "B2"
TITLE: Final = "when to compact: triggers over 48 hours, against an hourly cron of Iceberg's procedure"

CPU_TARGET: Final = Target(AT_LEAST, 2)
POLICY_TARGET: Final = Target(AT_LEAST, 1.3)
FILES_TARGET: Final = Target(AT_MOST, 1)
DEFAULT_TARGET: Final = Target(AT_LEAST, 1, "as the default")

TINY: Final = b1.Shape("5x0.26MB", 5, 3_000)
_SMALL, _LARGE = (400, 104 * MB), (64, 320 * MB)
_STITCHED: Final = "64x5MB"
_PEERS: Final = {"400x0.26MB": _SMALL, _STITCHED: _LARGE}
_MERGED: Final = {"400x0.26MB": _SMALL, "64x5MB, 5 % deleted by position deletes": _LARGE}
_TINY_INPUT: Final = (5, int(1.3 * MB))
_LOOK: Final = ("2,000 files", f"CPU a commit, ms: {ICEWRIGHT}")
_GROUPS: Final = {"all training writers": TRAINING, "all judging writers": JUDGING}
_JUDGED_CASE: Final = "all judging writers"
_SCANS: Final = (24, 600, 10_000)
"""A day, by the setting of the trigger cost-benefit."""
_JUDGED: Final = (Trigger.LEVELS, Trigger.COST_BENEFIT)
"""The default, and that where queries are known; of the others the figures are for information."""
_CPU, _FILES, _AMPLIFICATION, _LEAST = "cpu_s", "files", "amplification", "least cpu_s"

Tiny: TypeAlias = Mapping[str, float]
"""CPU seconds of a rewrite of five small files, by contestant."""

_Figures: TypeAlias = dict[tuple[str, str], list[Figure]]
"""By case and metric."""


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
    """A trace of two days of each writer."""
    return Options(seed, 1, 48)


def full(seed: int) -> Options:
    """Three of each."""
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
    figures: _Figures = {}
    for number in range(1, options.traces + 1):
        for group, writers in _GROUPS.items():
            total: dict[str, Outcome] = {}
            for name, writer in writers.items():
                chance = random.Random(f"{options.seed}-{number}-{name}")  # noqa: S311 - a trace, no secret
                commits = list(writer(chance, options.hours))
                for who, outcome in _contest(commits, options.hours, costs).items():
                    say(
                        f"  trace {number}, {name}, {who}: {outcome.cpu_s:,.0f} CPU s in {outcome.rewrites:,} "
                        f"rewrites, {outcome.mean_files:,.0f} files, write amplification "
                        f"{outcome.write_amplification:.2f}"
                    )
                    _note(figures, name, who, number, outcome, costs.peer)
                    total[who] = _together(total.get(who), outcome)
            for who, outcome in total.items():
                _note(figures, group, who, number, outcome, costs.peer)
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
    under = {trigger: replace(usual_policy, trigger=trigger) for trigger in Trigger}
    ours = {_alike(trigger): replay(commits, hours, policy, alike) for trigger, policy in under.items()}
    ours |= {str(trigger): replay(commits, hours, under[trigger], costs.ours) for trigger in _JUDGED}
    for scans in (scans for scans in _SCANS if scans != usual_policy.scans_per_day):
        setting = replace(under[Trigger.COST_BENEFIT], scans_per_day=float(scans))
        ours[_with_scans(scans)] = replay(commits, hours, setting, alike)
    return {PEER: replay_cron(commits, hours, Cron(usual_policy.target_file_size_bytes), costs.peer), **ours}


def _alike(trigger: Trigger) -> str:
    """The contestant that decides as this trigger does, and whose rewrites cost what the peer's cost."""
    return f"{trigger}, rewrites at the peer's cost"


def _with_scans(scans: int) -> str:
    """The same, of cost-benefit, whose setting is so many scans a day."""
    alike = _alike(Trigger.COST_BENEFIT)
    return alike if scans == paper_policy().scans_per_day else f"{alike}, told of {scans} scans a day"


def _note(figures: _Figures, case: str, who: str, number: int, outcome: Outcome, peer: Costs) -> None:
    values = {
        _CPU: outcome.cpu_s,
        _FILES: outcome.mean_files,
        _AMPLIFICATION: outcome.write_amplification,
        _LEAST: outcome.written_bytes * peer.byte_s,
        **{_with_readers(scans): outcome.cpu_s + _read_s(outcome, scans, paper_policy()) for scans in _SCANS},
    }
    for metric, value in values.items():
        figures.setdefault((case, metric), []).append(Figure(who, number, 0, value))


def _with_readers(scans: int) -> str:
    return f"cpu_s, with {scans} scans a day"


def _read_s(outcome: Outcome, scans: int, policy: Policy) -> float:
    """What readers spend on files: opening each, and planning it, by the model of cost-benefit."""
    return scans * outcome.file_ms / DAY_MS * (policy.open_ms + policy.plan_ms) / 1000


def _together(one: Outcome | None, other: Outcome) -> Outcome:
    """Several tables, over the same time."""
    if one is None:
        return replace(other)
    sums = {
        name: getattr(one, name) + getattr(other, name)
        for name in ("cpu_s", "written_bytes", "rewritten_bytes", "rewrites", "file_ms")
    }
    return replace(one, **sums)


def _cases(figures: _Figures) -> list[Case]:
    return [case for group, writers in _GROUPS.items() for name in (group, *writers) for case in _case(figures, name)]


def _case(figures: _Figures, case: str) -> list[Case]:
    judged = case == _JUDGED_CASE
    cases: list[Case] = []
    for trigger in Trigger:
        who, target = _alike(trigger), POLICY_TARGET if judged and trigger in _JUDGED else None
        cpu_s, files = (_of(figures[case, metric], PEER, who) for metric in (_CPU, _FILES))
        metric = f"cpu_ratio of the policy alone, {trigger}"
        cases.append(ratio(case, metric, cpu_s, over=PEER, under=who, target=target))
        if judged and trigger is Trigger.LEVELS:
            cases.append(ratio(case, metric, cpu_s, over=PEER, under=who, target=DEFAULT_TARGET))
        target = FILES_TARGET if judged and trigger in _JUDGED else None
        cases.append(ratio(case, f"files_ratio, {trigger}", files, over=who, under=PEER, target=target))
    least = [
        *_of(figures[case, _CPU], PEER),
        *(replace(one, contestant=_LEAST) for one in _of(figures[case, _LEAST], PEER)),
    ]
    cases.append(ratio(case, "cpu_ratio at best, each byte written once", least, over=PEER, under=_LEAST))
    for trigger in _JUDGED:
        cpu_s = _of(figures[case, _CPU], PEER, trigger)
        metric = f"cpu_ratio of policy and executor, {trigger}"
        target = CPU_TARGET if judged else None
        cases.append(ratio(case, metric, cpu_s, over=PEER, under=trigger, target=target))
    for scans in _SCANS:
        for trigger, who in ((Trigger.LEVELS, _alike(Trigger.LEVELS)), (Trigger.COST_BENEFIT, _with_scans(scans))):
            cpu_s = _of(figures[case, _with_readers(scans)], PEER, who)
            metric = f"cpu_ratio of policy and readers, {scans:,} scans a day, {trigger}"
            cases.append(ratio(case, metric, cpu_s, over=PEER, under=who))
    for who, name in ((PEER, PEER), *((_alike(trigger), trigger) for trigger in Trigger)):
        cases.append(amount(case, f"write amplification, {name}", _of(figures[case, _AMPLIFICATION], who)))
    cases.append(amount(case, f"mean files, {PEER}", _of(figures[case, _FILES], PEER)))
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
