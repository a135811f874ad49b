"""Small tables and what is asked of them, from a seed, for the benchmarks of layouts.

- *uniform*: 2 to 4 columns that know nothing of each other.
- *skewed*: a log: few users and devices cause most rows, durations are log-normal, time goes on as rows arrive.
- *correlated*: a second instant soon after the first, a tax on a price, cities that lie in regions.
- *none useful*: queries for a column that the table is not laid out by, or for time alone, by which the rows came.
- *hierarchical*: region, nation and city, each within the one before, and an amount.
- *late data*: rows in the order of time, of which a tenth comes up to three days late; asked for time and a user.
- *wide*: queries that take most of the rows.
- *TPC-H-like*: `lineitem` and `orders` as TPC-H has them, in the order of their keys; asked for dates, keys and some
  measures.
- *TPC-H*: the same two as TPC-H's own generator makes them, with all columns, and decimals as doubles.

The first thirty (the first four families) are of B3; tables of even number among them have chosen what B4 judges.
Nobody who lays a table out sees a query. They ask for values of the newest fifth of the rows: ranges of widths that
are a share of the rows, and in some columns single values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tests.lakes.tpch import tpch

UNIFORM, SKEWED, CORRELATED, NONE_USEFUL = "uniform", "skewed", "correlated", "none useful"
HIERARCHICAL, LATE, WIDE, TPCH_LIKE, TPCH = "hierarchical", "late data", "wide", "TPC-H-like", "TPC-H"
FAMILIES: Final = (UNIFORM, SKEWED, CORRELATED, NONE_USEFUL)
"""Of B3."""
LATER_FAMILIES: Final = (HIERARCHICAL, LATE, WIDE, TPCH_LIKE)
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
    """All of them, one after the other."""
    for number in range(sum(count for count, _ in _FAMILIES.values())):
        yield table(rows, seed, number)


def table(rows: int, seed: int, number: int) -> LayoutTable:
    """One of them, by its number from 0 on. Raises ``IndexError``."""
    index = number
    for family, (count, make) in _FAMILIES.items():
        if index < count:
            columns, layout, asks = make(np.random.default_rng([seed, number]), rows, index)
            return LayoutTable(f"t{number:02}", family, pa.table(columns), layout, asks)
        index -= count
    raise IndexError(f"there is no table {number}")


GENERATED: Final = {47: "lineitem", 48: "orders"}
"""The tables of TPC-H by their numbers."""


def generated(folder: Path, number: int, scale_factor: float) -> LayoutTable:
    """One of TPC-H, asked for as the one like it."""
    name = GENERATED[number]
    rows = tpch(folder, name, scale_factor)
    doubles = [pa.float64() if pa.types.is_decimal(field.type) else field.type for field in rows.schema]
    rows = rows.cast(pa.schema(list(zip(rows.column_names, doubles, strict=True))))
    layout, asks = (_LINEITEM, _OF_LINEITEM) if name == "lineitem" else (_ORDERS, _OF_ORDERS)
    return LayoutTable(f"t{number}", TPCH, rows, layout, asks)


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


def _hierarchical(rng: Any, rows: int, _index: int) -> _Made:
    region = rng.zipf(1.4, rows) % 8
    nation = region * 12 + rng.integers(0, 12, rows)
    columns = {
        "region": pa.array(region),
        "nation": pa.array(nation),
        "city": pa.array(nation * 500 + rng.zipf(1.3, rows) % 500),
        "amount": pa.array(rng.lognormal(3, 1, rows)),
    }
    asks = (Ask("region", points=True), Ask("nation", points=True), Ask("city", points=True), Ask("amount"))
    return columns, ("nation", "city", "amount"), asks


def _late(rng: Any, rows: int, index: int) -> _Made:
    late = np.where(rng.random(rows) < 0.1, rng.uniform(0, 3 * _DAY_US, rows), 0)  # noqa: PLR2004 - a tenth
    columns = {
        "ts": _instants(_arrivals(rng, rows) - late.astype(np.int64)),
        "user_id": pa.array(rng.zipf(1.3, rows) % 100_000),
        "kind": pa.array(rng.integers(0, 20, rows)),
    }
    asks = (Ask("ts", narrowest=0.002, widest=0.05), Ask("user_id", points=True), Ask("kind", points=True))
    return columns, ("ts", "user_id"), asks[: 2 + index % 2]


def _wide(rng: Any, rows: int, _index: int) -> _Made:
    columns = {
        "a": pa.array(rng.integers(0, 1 << 40, rows)),
        "b": pa.array(rng.lognormal(0, 2, rows)),
        "c": pa.array(rng.integers(0, 100, rows)),
    }
    return columns, ("a", "b"), (Ask("a", narrowest=0.8, widest=0.98), Ask("b", narrowest=0.8, widest=0.98))


_LINEITEM: Final = ("l_shipdate", "l_partkey")
_OF_LINEITEM: Final = (
    Ask("l_shipdate", widest=0.15),
    Ask("l_partkey", True, 0.001),
    Ask("l_suppkey", True),
    Ask("l_discount"),
)
_ORDERS: Final = ("o_orderdate", "o_custkey")
_OF_ORDERS: Final = (
    Ask("o_orderdate", widest=0.1),
    Ask("o_custkey", points=True, narrowest=0.001),
    Ask("o_orderpriority", True),
)


def _tpch_like(rng: Any, rows: int, index: int) -> _Made:
    """Dates of seven years, keys and measures as in TPC-H 3: ``lineitem``, then ``orders``."""
    orders = rows if index else rows // 4
    order = np.arange(rows) if index else np.sort(rng.integers(0, orders, rows))
    dates = rng.integers(0, 2_406, orders)[order]
    customers = rng.integers(0, max(orders // 10, 1), orders)[order]
    if index:
        columns = {
            "o_orderkey": pa.array(order),
            "o_custkey": pa.array(customers),
            "o_orderdate": pa.array(dates),
            "o_totalprice": pa.array(rng.uniform(900, 500_000, rows)),
            "o_orderpriority": pa.array(rng.integers(1, 6, rows)),
        }
        return columns, _ORDERS, _OF_ORDERS
    quantity = rng.integers(1, 51, rows)
    columns = {
        "l_orderkey": pa.array(order),
        "l_partkey": pa.array(rng.integers(0, max(rows // 30, 1), rows)),
        "l_suppkey": pa.array(rng.integers(0, max(rows // 600, 1), rows)),
        "l_quantity": pa.array(quantity),
        "l_extendedprice": pa.array(quantity * rng.uniform(900, 2_000, rows)),
        "l_discount": pa.array(rng.integers(0, 11, rows)),
        "l_shipdate": pa.array(dates + rng.integers(1, 122, rows)),
    }
    return columns, _LINEITEM, _OF_LINEITEM


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
    HIERARCHICAL: (5, _hierarchical),
    LATE: (5, _late),
    WIDE: (5, _wide),
    TPCH_LIKE: (2, _tpch_like),
}
