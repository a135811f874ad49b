"""Row lineage of format version 3: every row takes its id, and when it was last updated, into the new file.

A file has both as columns once rows were moved; where it has no value, a row's id is the file's first one plus its
position, and it was last updated by the commit that added the file (spec, "Row lineage assignment"). Where a file has
no first id (a table that was upgraded and not committed to since), its rows have none yet: the commit gives them
theirs, and they keep when they were last updated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icewright.model.actions.actions import InputFile
from icewright.model.iceberg.tables import Json
from icewright_spark.parquet.errors import UnsupportedColumn

ROW_ID: Final = 2_147_483_540
LAST_UPDATED: Final = 2_147_483_539

LINEAGE_FIELDS: Final[tuple[Json, ...]] = (
    {"id": ROW_ID, "name": "_row_id", "type": "long", "required": False},
    {"id": LAST_UPDATED, "name": "_last_updated_sequence_number", "type": "long", "required": False},
)
"""The last columns of a file, in this order, as Iceberg's own writers have them."""
LINEAGE_IDS: Final = frozenset({ROW_ID, LAST_UPDATED})
_NAMES: Final = frozenset(field["name"] for field in LINEAGE_FIELDS)


def with_lineage(schema_fields: Sequence[Json]) -> tuple[Json, ...]:
    """The columns of a file of a table with these. Raises :class:`UnsupportedColumn` when a name is taken."""
    taken = sorted(_NAMES & {field["name"] for field in schema_fields})
    if taken:
        raise UnsupportedColumn(f"the table has a column {taken[0]!r}, a name that belongs to row lineage")
    return (*schema_fields, *LINEAGE_FIELDS)


def inherited(batch: Any, start: int, file: InputFile) -> Any:
    """The batch, whose first row is the file's row ``start``, with its two last columns filled in."""
    *columns, row_ids, last_updated = batch.columns
    if file.first_row_id is not None and row_ids.null_count:
        first = file.first_row_id + start
        row_ids = pc.coalesce(row_ids, pa.arange(first, first + batch.num_rows))
    if last_updated.null_count:
        last_updated = last_updated.fill_null(file.data_sequence_number)
    return pa.RecordBatch.from_arrays([*columns, row_ids, last_updated], schema=batch.schema)
