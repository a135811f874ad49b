"""The Spark statement that comes nearest to expiring data, see :mod:`.procedure_call`; no procedure does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from icewright.actions.expire_data.age import End
from icewright.actions.expire_data.column import DataColumn
from icewright.model.actions.expire_data import IntegerTime
from icewright.model.iceberg.names import identifier
from icewright.model.iceberg.tables import TableMetadata

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000


def data_call(metadata: TableMetadata, column: DataColumn, ends: Sequence[End]) -> str:
    """One SQL statement, which deletes what is older than the newest partition to expire."""
    name = ".".join(identifier(part) for part in (metadata.name.catalog, *metadata.name.path))
    field = ".".join(identifier(part) for part in column.path)
    return " ".join(("DELETE FROM", name, "WHERE", field, "<", _literal(column, max(end.at for end in ends))))


def _literal(column: DataColumn, at: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=at)
    if column.integers is not None:
        return {
            IntegerTime.EPOCH_DAYS: str(at // _DAY_MS),
            IntegerTime.EPOCH_SECONDS: str(at // 1000),
            IntegerTime.EPOCH_MILLISECONDS: str(at),
            IntegerTime.YYYYMMDD: f"{moment:%Y%m%d}",
        }[column.integers]
    if column.type_name == "date":
        return f"DATE '{moment:%Y-%m-%d}'"
    if column.type_name in ("timestamp", "timestamp_ns"):
        return f"TIMESTAMP_NTZ '{moment:%Y-%m-%d %H:%M:%S}'"
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S}Z'"
