"""Whether the table that a job finds is the one that it was planned for. What else a plan rests on, each job asks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from icewright.core.errors import Conflict, TableReplaced
from icewright.model.work.jobs import TaskSpec
from icewright_spark.iceberg.java_api import SparkTable

FORMAT_VERSIONS: Final = (1, 2, 3)


def check_table(table: SparkTable, spec: TaskSpec, versions: Collection[int] = FORMAT_VERSIONS) -> None:
    """It is the very table, and of one of these format versions. Raises :class:`Conflict`."""
    if table.uuid != spec.table_id.uuid:
        raise TableReplaced(f"{spec.table_name} is another table now: uuid {table.uuid}, not {spec.table_id.uuid}")
    if table.format_version not in versions:
        raise Conflict(f"{spec.table_name} now has format version {table.format_version}")
