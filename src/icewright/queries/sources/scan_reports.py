"""Iceberg's scan reports, as clients send them to their REST catalog: a record of one scan, without its values.

Clients replace values before they send: strings by unkeyed digests, numbers by their length, dates by their age.
A report has no id and no time. It is what it says: the same content is the same scan, and it began when it came.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from icewright.core.errors import InvalidMessage
from icewright.core.times import Instant
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator, QueryRecord, QuerySource, TableRead
from icewright.queries.sources import documents
from icewright.queries.sources.documents import Object
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.predicates import disjunction, negation
from icewright.queries.sources.values import date, number, timestamp

SCAN_REPORT: Final = "scan-report"
_DEPTH_MAX: Final = 200
_COLUMNS_MAX: Final = 10_000
_ID_DIGITS: Final = 32
_HASHED: Final = re.compile(r"\(hash-([0-9a-f]{8})\)")
_DESCRIBED: Final = re.compile(
    r"\((\d+-digit-[a-z]+|date(?:-\d+-days-(?:ago|from-now))?|time"
    r"|timestamp(?:-about-now|-from-now|-\d+-(?:hours|days)-(?:ago|from-now))?)\)"
)
_COMPARISONS: Final = {
    name: Operator(name) for name in ("eq", "not-eq", "lt", "lt-eq", "gt", "gt-eq", "in", "not-in", "starts-with")
}
_UNARY: Final = {name: Operator(name) for name in ("is-null", "not-null")}


def read_report(
    report: Any, table: TableName, user: str, received_at: Instant, rules: LiteralRules
) -> QueryRecord | None:
    """The record of a scan report; None for one of another kind. ``table`` is by the address that it came to.

    ``report`` is what its JSON says. Raises :class:`InvalidMessage`.
    """
    if not isinstance(report, dict):
        raise InvalidMessage("not a JSON object")
    if report.get("report-type") != SCAN_REPORT:
        return None
    metrics = documents.inner(report, "metrics")
    metadata = documents.inner(report, "metadata")
    engine = (documents.text(metadata, key) for key in ("engine-name", "engine-version"))
    filters = tuple(dict.fromkeys(_filters(report.get("filter", True), 0)))
    record = QueryRecord(
        query_id=_identity(report, table),
        source=QuerySource.SCAN_REPORT,
        engine=" ".join(part for part in engine if part),
        user=user,
        started_at=received_at,
        tables=(
            TableRead(
                table,
                _columns(report),
                filters,
                snapshot_id=documents.whole(report, "snapshot-id"),
                files_read=_counter(metrics, "result-data-files"),
                files_skipped=_counter(metrics, "skipped-data-files"),
                bytes_planned=_counter(metrics, "total-file-size-in-bytes"),
            ),
        ),
    )
    return rules.record(record, None)


def _identity(report: Object, table: TableName) -> str:
    """A digest of what the report says: with it the nanoseconds that planning took, which tell two scans apart."""
    try:
        said = json.dumps([str(table), report], sort_keys=True, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise InvalidMessage("not a report: nested too deeply, or with a number that is none") from None
    return hashlib.sha256(said).hexdigest()[:_ID_DIGITS]


def _counter(metrics: Object, name: str) -> int | None:
    return documents.whole(documents.inner(metrics, name), "value")


def _columns(report: Object) -> tuple[str, ...]:
    """The fields that are read, without structs of which fields are named."""
    names = documents.items(report, "projected-field-names")
    if len(names) > _COLUMNS_MAX:
        raise InvalidMessage("projected-field-names are too many")
    columns = dict.fromkeys(
        documents.required_text({"projected-field-names": name}, "projected-field-names") for name in names
    )
    above = {name.rpartition(".")[0] for name in columns}
    return tuple(name for name in columns if name not in above)


def _filters(node: Any, depth: int) -> Iterator[Filter]:
    """The conjuncts of an expression."""
    if depth > _DEPTH_MAX:
        raise InvalidMessage("filter is nested too deeply")
    if isinstance(node, bool):
        return
    if not isinstance(node, dict):
        raise InvalidMessage("filter is no expression")
    kind = documents.required_text(node, "type")
    if kind in {"true", "false", "literal"}:
        return
    if kind == "and":
        yield from _filters(node.get("left"), depth + 1)
        yield from _filters(node.get("right"), depth + 1)
    elif kind == "or":
        yield from disjunction([*_filters(node.get("left"), depth + 1)], [*_filters(node.get("right"), depth + 1)])
    elif kind == "not":
        yield from negation([*_filters(node.get("child"), depth + 1)])
    else:
        yield _predicate(kind, node)


def _predicate(kind: str, node: Object) -> Filter:
    term = node.get("term")
    if isinstance(term, dict):
        is_plain = term.get("type") == "reference"
        return _compared(documents.required_text(term, "term"), kind if is_plain else "", node)
    return _compared(documents.required_text(node, "term"), kind, node)


def _compared(column: str, kind: str, node: Object) -> Filter:
    if kind in _UNARY:
        return Filter(column, _UNARY[kind])
    if kind not in _COMPARISONS:
        return Filter(column, Operator.OTHER)
    values = documents.items(node, "values") if "values" in node else [node.get("value")]
    return Filter(column, _COMPARISONS[kind], tuple(map(_literal, values)))


def _literal(value: Any) -> Literal:
    """A value as the client left it. Clients that replace nothing send it as Iceberg's JSON has single values."""
    if isinstance(value, str):
        return _text(documents.text({"value": value}, "value"))
    if isinstance(value, bool):
        return Literal(LiteralKind.BOOLEAN, str(value).lower())
    return number(str(value)) if isinstance(value, (int, float)) else Literal(LiteralKind.DROPPED)


def _text(value: str) -> Literal:
    hashed, described = _HASHED.fullmatch(value), _DESCRIBED.fullmatch(value)
    if hashed is not None:
        return Literal(LiteralKind.HASHED, hashed[1])
    if described is not None:
        return Literal(LiteralKind.DROPPED, described[1])
    found = date(value)
    return found if found.kind is LiteralKind.DATE else timestamp(value)
