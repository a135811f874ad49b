"""Thirty small tables and what is asked of them, from a seed, for the benchmark of layouts.

- *uniform*: 2 to 4 columns that know nothing of each other.
- *skewed*: a log: few users and devices cause most rows, durations are log-normal, time goes on as rows arrive.
- *correlated*: a second instant soon after the first, a tax on a price, cities that lie in regions.
- *none useful*: queries for a column that the table is not laid out by, or for time alone, by which the rows came.

Nobody who lays a table out sees a query. They ask for values of the newest fifth of the rows: ranges of widths that
are a share of the rows, and in some columns single values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

UNIFORM, SKEWED, CORRELATED, NONE_USEFUL = "uniform", "skewed", "correlated", "none useful"
FAMILIES: Final = (UNIFORM, SKEWED, CORRELATED, NONE_USEFUL)
QUERIES: Final = 200
"""For each table."""

_NEWEST: Final = 0.2
_POINTS: Final = 0.4
"""The share of single values among the predicates on a column that is asked for such."""
_DAY_US: Final = 86_400_000_000
_NOW_US: Final = 1_790_000_000_000_000

Ranks: TypeAlias = npt.NDArray[np.int64]
"""Values of a column as their places among its distinct values."""


@dataclass(frozen=True, slots=True)
class Ask:
    """How queries ask for a column: ranges of such shares of the rows and, if ``points``, single values."""

    column: str
    points: bool = False
    narrowest: float = 0.01
    widest: float = 0.2


@dataclass(frozen=True, slots=True)
class LayoutTable:
    """Rows in the order of their arrival, and the columns that the table is to be laid out by."""

    name: str
    family: str
    rows: Any
    layout: tuple[str, ...]
    asks: tuple[Ask, ...]

    @property
    def distinct(self) -> Mapping[str, Any]:
        """The distinct values of each column that is laid out by or asked for, ascending."""
        names = dict.fromkeys([*self.layout, *(ask.column for ask in self.asks)])
        values = {name: pc.unique(self.rows[name]) for name in names}
        return {name: value.take(pc.sort_indices(value)) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Query:
    """A range of ranks, ends included, for each column that it is about; all must hold."""

    ranges: Mapping[str, tuple[int, int]]


def tables(rows: int, seed: int) -> Iterator[LayoutTable]:
    """All thirty, one after the other."""
    number = 0
    for family, (count, make) in _FAMILIES.items():
        for index in range(count):
            columns, layout, asks = make(np.random.default_rng([seed, number]), rows, index)
            yield LayoutTable(f"t{number:02}", family, pa.table(columns), layout, asks)
            number += 1


def queries(table: LayoutTable, ranks: Mapping[str, Ranks], seed: int) -> list[Query]:
    """What is asked of a table: one to all of the columns, each combination as often as any other."""
    rng = np.random.default_rng([seed, int(table.name[1:]), 1])
    ascending = {ask.column: np.sort(ranks[ask.column]) for ask in table.asks}
    return [_query(table, ranks, ascending, rng) for _ in range(QUERIES)]


def _query(table: LayoutTable, ranks: Mapping[str, Ranks], ascending: Mapping[str, Ranks], rng: Any) -> Query:
    rows = table.rows.num_rows
    chosen = 1 + rng.integers((1 << len(table.asks)) - 1)
    ranges = {}
    for place, ask in enumerate(table.asks):
        row = rng.integers(int(rows * (1 - _NEWEST)), rows)
        low = int(ranks[ask.column][row])
        width = rng.uniform(ask.narrowest, ask.widest)
        last = int(np.searchsorted(ascending[ask.column], low) + width * rows)
        high = low if ask.points and rng.random() < _POINTS else int(ascending[ask.column][min(last, rows - 1)])
        if chosen >> place & 1:
            ranges[ask.column] = (low, max(low, high))
    return Query(ranges)


_Made: TypeAlias = tuple[dict[str, Any], tuple[str, ...], tuple[Ask, ...]]


def _uniform(rng: Any, rows: int, index: int) -> _Made:
    columns = {
        "a": pa.array(rng.integers(0, 1 << 40, rows)),
        "b": pa.array(rng.uniform(-1, 1, rows)),
        "c": _instants(_NOW_US - rng.integers(0, 90 * _DAY_US, rows)),
        "d": pa.array(rng.integers(0, 10_000, rows).astype(np.int32)),
    }
    layout = tuple("abcd"[: 2 + index % 3])
    return columns, layout, tuple(Ask(name) for name in layout)


def _skewed(rng: Any, rows: int, index: int) -> _Made:
    devices = rng.zipf(rng.uniform(1.2, 1.6), rows) % 5_000
    columns = {
        "user_id": pa.array(rng.zipf(rng.uniform(1.2, 1.6), rows) % 1_000_000),
        "duration": pa.array(rng.lognormal(0, rng.uniform(1, 3), rows)),
        "device": pa.array([f"d{device:05}" for device in devices.tolist()]),
        "ts": _instants(_arrivals(rng, rows)),
    }
    asks = (Ask("user_id", points=True), Ask("duration"), Ask("device", points=True), Ask("ts"))
    chosen = ((0, 1), (0, 3), (0, 1, 3), (0, 2), (0, 1, 2, 3))[index % 5]
    return columns, tuple(asks[place].column for place in chosen), tuple(asks[place] for place in chosen)


def _correlated(rng: Any, rows: int, index: int) -> _Made:
    created, price, region = _arrivals(rng, rows), rng.lognormal(3, 1, rows), rng.zipf(1.5, rows) % 20
    columns = {
        "created": _instants(created),
        "updated": _instants(created + rng.exponential(_DAY_US, rows).astype(np.int64)),
        "price": pa.array(price),
        "tax": pa.array(price * 0.19 + rng.normal(0, 1, rows)),
        "region": pa.array(region),
        "city": pa.array(region * 1_000 + rng.zipf(1.5, rows) % 1_000),
    }
    two, third = (
        (("created", "updated"), "price"),
        (("price", "tax"), "city"),
        (("region", "city"), "price"),
    )[index % 3]
    layout: tuple[str, ...] = two if index < 3 else (*two, third)  # noqa: PLR2004 - half of them
    return columns, layout, tuple(Ask(name, points=name in ("region", "city")) for name in layout)


def _none_useful(rng: Any, rows: int, index: int) -> _Made:
    columns, layout, _ = _skewed(rng, rows, index)
    if index % 2:
        return columns, ("user_id", "ts"), (Ask("ts"),)
    return columns | {"session": pa.array(rng.integers(0, 1 << 60, rows))}, layout, (Ask("session", points=True),)


def _arrivals(rng: Any, rows: int) -> Any:
    """Instants that go on, in bursts, a little out of order."""
    gaps = rng.exponential(1, rows) * np.where(rng.random(rows) < 0.01, 200, 1)  # noqa: PLR2004 - a share
    elapsed = np.cumsum(gaps)
    late = rng.exponential(60_000_000, rows)
    return (_NOW_US - 10 * _DAY_US + elapsed / elapsed[-1] * 10 * _DAY_US - late).astype(np.int64)


def _instants(microseconds: Any) -> Any:
    return pa.array(microseconds).view(pa.timestamp("us", tz="UTC"))


_FAMILIES: Final[Mapping[str, tuple[int, Callable[[Any, int, int], _Made]]]] = {
    UNIFORM: (8, _uniform),
    SKEWED: (10, _skewed),
    CORRELATED: (6, _correlated),
    NONE_USEFUL: (6, _none_useful),
}
