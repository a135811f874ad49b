"""Tables by PyIceberg whose files overlap as can be counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import BooleanType, DateType, DoubleType, LongType, NestedField, StringType

from icewright.model.iceberg.catalog_entries import CatalogEntry
from tests.lakes.house import location
from tests.lakes.sqlite import make_table

_SCHEMA: Final = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "day", DateType(), required=False),
    NestedField(3, "drink", StringType(), required=False),
    NestedField(4, "price", DoubleType(), required=False),
    NestedField(5, "sold", BooleanType(), required=False),
    NestedField(6, "note", StringType(), required=False),
)
WITHOUT_BOUNDS: Final = "write.metadata.metrics.column.{}"

SALES: Final = (
    # id, day in January 2026, drink, price, sold: each file has the two rows of the ends
    ((1, 30), (1, 10), ("mead", "ale"), (1.5, 2.5), (False, True)),
    ((20, 50), (5, 5), ("beer", "beer"), (float("inf"), 10.0), (True, True)),
    ((45, 60), (20, 22), ("gin", "\U0001f377"), (9.0, 9.5), (False, False)),
    ((30, 46), (8, 20), ("ale", "\ufb01zz"), (2.0, 9.0), (False, True)),
    ((None, None), (None, None), ("wine", None), (None, None), (None, None)),
)
"""By hand, for a lookup of one id: 30 is in the first, second and fourth; 45 and 46 in the second, third and fourth."""


def sales(entry: CatalogEntry) -> Table:
    """The files of :data:`SALES`, one a commit, and a sixth whose writer kept no bounds of ``id``.

    No file has bounds of ``note``.
    """
    table = make_table(entry, ("db", "sales"), schema=_SCHEMA, properties={WITHOUT_BOUNDS.format("note"): "none"})
    for row in SALES:
        table.append(_rows(*row))
    with table.transaction() as change:
        change.set_properties({WITHOUT_BOUNDS.format("id"): "none"})
    table.refresh().append(_rows((7, 8), (31, 31), ("cider", "cider"), (3.0, 3.0), (True, True)))
    with table.transaction() as change:
        change.remove_properties(WITHOUT_BOUNDS.format("id"))
    return table.refresh()


def _rows(ids: Any, days: Any, drinks: Any, prices: Any, sold: Any) -> pa.Table:
    return pa.table(
        {
            "id": list(ids),
            "day": [None if day is None else date(2026, 1, day) for day in days],
            "drink": list(drinks),
            "price": list(prices),
            "sold": list(sold),
            "note": ["x", "y"],
        },
        schema=_SCHEMA.as_arrow(),
    )


def scattered(entry: CatalogEntry, wide: int = 297, narrow: int = 3) -> Table:
    """Files of which ``wide`` ones have all ids from 1,000 to 2,000, and ``narrow`` ones each some of their own."""
    ids = [(number, 2_000 + number) for number in range(wide)]
    ids += [(10_000 + 10 * number, 10_005 + 10 * number) for number in range(wide, wide + narrow)]
    return written(entry, "scattered", [(each, (1 + number % 31, 31)) for number, each in enumerate(ids)])


def written(entry: CatalogEntry, name: str, ends: Sequence[tuple[tuple[int, int], tuple[int, int]]]) -> Table:
    """A table with one file for each of these ends of ids and of days, all of one commit."""
    table = make_table(entry, ("db", name), schema=_SCHEMA)
    folder = location(table) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, (ids, days) in enumerate(ends):
        path = folder / f"f-{number:05}.parquet"
        parquet.write_table(_rows(ids, days, ("ale", "wine"), (1.0, 2.0), (True, True)), path)
        paths.append(f"file://{path}")
    table.add_files(paths)
    return table.refresh()
