"""Partitions for people: ``month=2013-01/carrier=UA``, as Iceberg names the directories of its data files."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote_plus

from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.tables import TableMetadata

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - partition values of hour have no time zone
_MONTHS = 12


def partition_path(table: TableMetadata, partition: Partition) -> str:
    """The path of a partition, empty where its spec has no fields (or ``void`` ones alone).

    Escaped as Iceberg's ``PartitionSpec.partitionToPath`` does it. Binary values stay hexadecimal, where Iceberg
    has Base64. Raises KeyError for a spec that the table does not have.
    """
    spec = table.spec(partition.spec_id)
    if spec.is_unpartitioned:
        return ""
    values = json.loads(partition.values)
    return "/".join(
        f"{_escape(field.name)}={_escape(human_value(field.transform, value))}"
        for field, value in zip(spec.fields, values, strict=True)
    )


def human_value(transform: str, value: Any) -> str:
    """One partition value (as JSON single-value) in words: month 516 is ``2013-01``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and transform in _HUMAN:
        return _HUMAN[transform](value)
    return str(value)


def _year(value: int) -> str:
    return f"{_EPOCH.year + value:04d}"


def _month(value: int) -> str:
    return f"{_EPOCH.year + value // _MONTHS:04d}-{1 + value % _MONTHS:02d}"


def _hour(value: int) -> str:
    try:
        return (_EPOCH + timedelta(hours=value)).isoformat("-", "hours")
    except OverflowError:  # beyond year 9999, which Iceberg allows and Python's datetime does not
        return str(value)


_HUMAN = {"year": _year, "month": _month, "hour": _hour}


def _escape(text: str) -> str:
    # Java's URLEncoder keeps * and escapes ~; Python's quote_plus does it the other way round.
    return quote_plus(text, safe="*").replace("~", "%7E")
