"""Partitions that no job could write to are refused in the plan, before anything is merged."""

from __future__ import annotations

from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.tables import PartitionField, PartitionSpec
from tests.builders.observations import NOW, WHOLE, data_files, month, observe, policy, table
from tests.cases import each_case

NESTED = {"id": 9, "name": "s", "required": False, "type": {"type": "struct", "fields": []}}


def said(transform: str, kind: str | None, values: str) -> tuple[str, str]:
    """Verdict and reason for a partition by field 7 of that type; without a type the column was dropped."""
    inner = [] if kind is None else [{"id": 7, "name": "c", "type": kind, "required": False}]
    for fields in (inner, [{**NESTED, "type": {"type": "struct", "fields": inner}}] if inner else []):
        columns = ({"id": 1, "name": "month", "type": "int", "required": False}, *fields)
        spec = PartitionSpec(3, (PartitionField(1, 1000, "month", "identity"), PartitionField(7, 1001, "p", transform)))
        metadata = table(fields=columns, specs=(spec,))
        (verdict,) = shortlist(observe(data_files(Partition(3, values), 8), metadata), policy(), NOW)
        found = (verdict.verdict.value, verdict.reason.code)
    return found


REFUSED: list[tuple[str, str, str | None, str]] = [
    ("dropped-partition-column", "identity", None, '[1,"x"]'),
    ("dropped-partition-column", "bucket[4]", None, "[1,3]"),
    ("dropped-partition-column", "identity", None, "[1,null]"),
    ("partition-value", "identity", "double", '[1,"NaN"]'),
    ("partition-value", "identity", "float", '[1,"-Infinity"]'),
    ("partition-value", "identity", "date", "[1,2932897]"),
    ("partition-value", "identity", "timestamp", "[1,253402300800000000]"),
    ("partition-value", "day", "timestamptz", "[1,2932897]"),
    ("partition-value", "day", "date", "[1,-719163]"),
]


@each_case(("code", "transform", "kind", "values"), REFUSED)
def test_refused(code: str, transform: str, kind: str | None, values: str) -> None:
    assert said(transform, kind, values) == ("refuse", code)


MERGED: list[tuple[str, str | None, str]] = [
    ("void", None, "[1,null]"),
    ("identity", "double", "[1,1.5]"),
    ("identity", "double", "[1,3]"),
    ("identity", "string", '[1,"NaN"]'),
    ("identity", "date", '[1,"2013-01-31"]'),
    ("identity", "date", "[1,null]"),
    ("day", "timestamp", '[1,"2013-01-31"]'),
    ("year", "date", "[1,8030]"),
    ("month", "timestamp", "[1,96360]"),
    ("hour", "timestamp", "[1,70389576]"),
    ("bucket[4]", "double", "[1,3]"),
    ("truncate[2]", "string", '[1,"ab"]'),
]


@each_case(("transform", "kind", "values"), MERGED)
def test_merged(transform: str, kind: str | None, values: str) -> None:
    assert said(transform, kind, values) == ("rewrite", "small-files")


def test_other_partitions_of_the_table_are_merged_nevertheless() -> None:
    old = PartitionSpec(3, (PartitionField(7, 1000, "p", "identity"),))
    metadata = table(specs=(*table().specs, old))
    files = [*data_files(month(1), 8), *data_files(WHOLE, 8), *data_files(Partition(3, '["x"]'), 8)]
    found = [verdict.verdict.value for verdict in shortlist(observe(files, metadata), policy(), NOW)]
    assert found == ["rewrite", "rewrite", "refuse"]


def test_the_reason_says_what_it_is() -> None:
    spec = PartitionSpec(3, (PartitionField(7, 1000, "p\n", "identity"),))
    metadata = table(specs=(spec,))
    (verdict,) = shortlist(observe(data_files(Partition(3, '["x"]'), 8), metadata), policy(), NOW)
    assert verdict.reason.text == r"it is partitioned by 'p\n', whose column was dropped, and cannot be written"
