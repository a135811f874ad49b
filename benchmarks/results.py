"""What a benchmark found, as JSON and as a table: ratios with their range, their target, and every run behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

AT_LEAST: Final = ">="
AT_MOST: Final = "<="


@dataclass(frozen=True, slots=True)
class Target:
    """A bound that a value should keep; ``note`` says what else there is to know of it."""

    relation: str
    bound: float
    note: str = ""

    @property
    def text(self) -> str:
        """The target as it is published."""
        return f"{self.relation} {self.bound:g}" + (f" {self.note}" if self.note else "")

    def met(self, value: float) -> bool:
        """Whether the value keeps the bound. Raises ``ValueError`` for a relation that is none."""
        if self.relation == AT_LEAST:
            return value >= self.bound
        if self.relation == AT_MOST:
            return value <= self.bound
        raise ValueError(f"not a relation: {self.relation!r}")


@dataclass(frozen=True, slots=True)
class Figure:
    """What one run contributed, in the metric's own unit."""

    contestant: str
    round: int
    position: int
    value: float


@dataclass(frozen=True, slots=True)
class Case:
    """One metric of one case. ``target`` and ``met`` are None where a figure is for information."""

    case: str
    metric: str
    value: float
    low: float
    high: float
    target: str | None
    met: bool | None
    runs: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the machine was when a benchmark began and when it ended: load averages of 1, 5 and 15 minutes.

    That at the end is of the benchmark as well.
    """

    start: tuple[float, ...]
    end: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One run of one benchmark. ``machine`` describes where; ``seed`` decided the data and the order of the runs.

    ``load`` is None of results that are older than it.
    """

    benchmark: str
    title: str
    measured_at: str
    versions: Mapping[str, str]
    cores: int
    machine: Mapping[str, str]
    seed: int
    cases: tuple[Case, ...]
    load: Load | None = None


def ratio(
    case: str, metric: str, figures: Sequence[Figure], *, over: str, under: str, target: Target | None = None
) -> Case:
    """The median of contestant ``over`` divided by that of ``under``.

    ``low`` and ``high`` are the least and the largest ratio that any run of the one has to any of the other.
    Raises ``statistics.StatisticsError`` when one of them has no runs.
    """
    dividends = [figure.value for figure in figures if figure.contestant == over]
    divisors = [figure.value for figure in figures if figure.contestant == under]
    value = median(dividends) / median(divisors)
    return Case(
        case=case,
        metric=metric,
        value=value,
        low=min(dividends) / max(divisors),
        high=max(dividends) / min(divisors),
        target=None if target is None else target.text,
        met=None if target is None else target.met(value),
        runs=tuple(figures),
    )


def amount(case: str, metric: str, figures: Sequence[Figure], target: Target | None = None) -> Case:
    """A median with its range."""
    values = [figure.value for figure in figures]
    value = median(values)
    return Case(
        case=case,
        metric=metric,
        value=value,
        low=min(values),
        high=max(values),
        target=None if target is None else target.text,
        met=None if target is None else target.met(value),
        runs=tuple(figures),
    )


def save(result: Result, folder: Path) -> Path:
    """Write the result as ``<benchmark>.json`` into ``folder``; gives the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.benchmark}.json"
    path.write_text(dumps(result))
    return path


def dumps(result: Result) -> str:
    """The result as JSON text."""
    return json.dumps(asdict(result), indent=1) + "\n"


def loads(text: str) -> Result:
    """The inverse of :func:`dumps`. Raises ``ValueError``, ``KeyError`` or ``TypeError`` for anything else."""
    data: dict[str, Any] = json.loads(text)
    cases = tuple(
        Case(**{**case, "runs": tuple(Figure(**figure) for figure in case["runs"])}) for case in data["cases"]
    )
    told = data.get("load")
    load = None if told is None else Load(tuple(told["start"]), tuple(told["end"]))
    return Result(**{**data, "cases": cases, "load": load})


def table(result: Result) -> str:
    """What was met, as plain text in columns."""
    lines = [("case", "metric", "value", "range", "target", "met")]
    lines += [
        (
            case.case,
            case.metric,
            f"{case.value:.2f}",
            f"{case.low:.2f}-{case.high:.2f}",
            case.target or "",
            "" if case.met is None else "yes" if case.met else "NO",
        )
        for case in result.cases
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
