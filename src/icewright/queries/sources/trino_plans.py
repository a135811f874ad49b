"""Scans in Trino's plans: their filters, and the rows and files that the statistics of their operators say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator
from icewright.queries.sources import documents
from icewright.queries.sources.documents import Object
from icewright.queries.sources.predicates import Condition, Pair, conditions
from icewright.queries.sources.sql_text import SqlDialect, UnreadableSql, parse
from icewright.queries.sources.values import date, number, timestamp

_SCANS: Final = ("ScanFilter", "ScanProject", "TableScan")
_SCAN_OPERATORS: Final = ("ScanFilterAndProjectOperator", "TableScanOperator")
_ASSIGNED: Final = re.compile(r" := \d+:")
_ID: Final = re.compile(r"\d+:")
_CONSTRAINT: Final = "    :: "
_RANGES: Final = re.compile(r"NULL|(?P<low>[\[(])(?P<values>[^\[\]()]*)(?P<high>[\])])")
_LEAST, _MOST = "<min>", "<max>"
_STRING_TYPES: Final = ("varchar", "char")
_PARTS_OF_STRINGS: Final = re.compile(r"[\[\](),<]|NULL")
"""Where a string has one of these, it cannot be separated from the text around it."""
_CALLS: Final = re.compile(r"('(?:[^']|'')*')|\$(?=[a-z_])")
_NODES_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """A scan of the plan: ``begins`` is how its table begins; what is not known is None."""

    begins: str
    columns: tuple[str, ...]
    filters: tuple[Filter, ...]
    files: int | None
    bytes_planned: int | None
    rows_after: int | None


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: str


def planned_scans(metadata: Object, statistics: Object, begins: Iterable[str]) -> tuple[PlannedScan, ...]:
    """The scans whose tables begin with one of ``begins``; none where there is no plan that can be read."""
    plan = documents.json_or_none(documents.text(metadata, "jsonPlan", longest=None))
    known = dict.fromkeys(begins)
    operators = _operators(statistics)
    scans: list[PlannedScan] = []
    for node in _nodes(plan):
        said = _field(node, "descriptor", "table")
        table = next((one for one in known if said.startswith(one) and said[len(one) :][:1] in {"", "@", " "}), None)
        if table is not None and str(node.get("name")).startswith(_SCANS):
            scans.append(_scan(node, table, operators.get(str(node.get("id")), [])))
    return tuple(scans)


def _nodes(plan: Any) -> Iterator[dict[str, Any]]:
    """All nodes of all fragments."""
    waiting = [*plan.values()] if isinstance(plan, dict) else []
    for _ in range(_NODES_MAX):
        if not waiting:
            return
        node = waiting.pop(0)
        if isinstance(node, dict):
            yield node
            children = node.get("children")
            waiting.extend(children if isinstance(children, list) else ())


def _field(node: Object, *keys: str) -> str:
    found: Any = node
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def _operators(statistics: Object) -> dict[str, list[dict[str, Any]]]:
    """Operators that scan, by the node of the plan that they carry out."""
    found: dict[str, list[dict[str, Any]]] = {}
    for said in documents.items(statistics, "operatorSummaries"):
        if isinstance(said, str) and any(f'"{name}"' in said for name in _SCAN_OPERATORS):
            operator = documents.json_or_none(said)
            if isinstance(operator, dict) and operator.get("operatorType") in _SCAN_OPERATORS:
                found.setdefault(str(operator.get("planNodeId")), []).append(operator)
    return found


def _sum(operators: list[dict[str, Any]], *keys: str) -> int | None:
    """The sum of a count over operators; None where one does not say it."""
    counts: list[int | None] = []
    for operator in operators:
        found: Any = operator
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        counts.append(documents.count_of(found))
    return documents.total_of(counts)


def _scan(node: Object, begins: str, operators: list[dict[str, Any]]) -> PlannedScan:
    details = node.get("details")
    lines = [line for line in details if isinstance(line, str)] if isinstance(details, list) else []
    symbols = _symbols(lines)
    filters = [*_constraints(lines), *_predicate(_field(node, "descriptor", "filterPredicate"), symbols)]
    return PlannedScan(
        begins,
        tuple(dict.fromkeys(column.name for column in symbols.values())),
        tuple(dict.fromkeys(filters)),
        _sum(operators, "connectorMetrics", "dataFiles", "total"),
        _sum(operators, "connectorMetrics", "dataFileSizeBytes", "total"),
        _sum(operators, "outputPositions"),
    )


def _symbols(lines: Iterable[str]) -> dict[str, _Column]:
    """What the symbols of a scan stand for."""
    found = (_assignment(line) for line in lines)
    return {symbol.strip('"').casefold(): column for symbol, column in filter(None, found) if symbol}


def _assignment(line: str) -> tuple[str, _Column] | None:
    """``id_1 := 1:id:bigint`` or ``1:id:bigint``: the symbol, empty where there is none, and its column."""
    for found in filter(None, (_ASSIGNED.search(line, 1), _ID.match(line))):
        name, _, kind = line[found.end() :].rpartition(":")
        if name and kind:
            return line[: found.start()], _Column(name, kind)
    return None


def _constraints(lines: Iterable[str]) -> Iterator[Filter]:
    """What partitions are chosen by: a line below that of its column."""
    column: _Column | None = None
    for line in lines:
        if line.startswith(_CONSTRAINT):
            if column is not None:
                yield from _domain(line[len(_CONSTRAINT) :], column)
        else:
            found = _assignment(line)
            column = found[1] if found else None


def _domain(text: str, column: _Column) -> list[Filter]:
    """``[[d1], [d2]]`` and ``[(5, 9]]`` as filters."""
    other = [Filter(column.name, Operator.OTHER)]
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else ""
    parts = [*_RANGES.finditer(inner)]
    if ", ".join(part[0] for part in parts) != inner or not parts:
        return other
    if [part[0] for part in parts] == ["NULL"]:
        return [Filter(column.name, Operator.IS_NULL)]
    single = [part["values"] for part in parts if part["low"] == "[" and _is_single(part["values"], column)]
    if len(single) == len(parts):
        literals = tuple(_value(value, column.type) for value in single)
        return [Filter(column.name, Operator.EQ if len(literals) == 1 else Operator.IN, literals)]
    return _bounds(parts[0], column) or other if len(parts) == 1 else other


def _is_single(values: str, column: _Column) -> bool:
    return not (_PARTS_OF_STRINGS.search(values) if column.type.startswith(_STRING_TYPES) else ", " in values)


def _bounds(part: re.Match[str], column: _Column) -> list[Filter]:
    """One range; none where the end of its lower bound is unknown, or from a string that has a comma."""
    low, separator, high = (part["values"] or "").partition(", ")
    is_closed = part["low"] == "[" and part["high"] == "]"
    if not separator or ", " in high or (is_closed and column.type.startswith(_STRING_TYPES)):
        return []
    if low == _LEAST and high == _MOST:
        return [Filter(column.name, Operator.NOT_NULL)]
    bounds = []
    if low != _LEAST:
        operator = Operator.GT_EQ if part["low"] == "[" else Operator.GT
        bounds.append(Filter(column.name, operator, (_value(low, column.type),)))
    if high != _MOST:
        operator = Operator.LT_EQ if part["high"] == "]" else Operator.LT
        bounds.append(Filter(column.name, operator, (_value(high, column.type),)))
    return bounds


def _value(text: str, kind: str) -> Literal:
    for prefix, read in _VALUES.items():
        if kind.startswith(prefix):
            return read(text)
    return Literal(LiteralKind.DROPPED)


_VALUES: Final[dict[str, Callable[[str], Literal]]] = {
    "varchar": lambda text: Literal(LiteralKind.STRING, text),
    "char": lambda text: Literal(LiteralKind.STRING, text),
    "date": date,
    "timestamp": timestamp,
    "boolean": lambda text: Literal(LiteralKind.BOOLEAN, text),
    **dict.fromkeys(("bigint", "integer", "smallint", "tinyint", "decimal", "double", "real"), number),
}


def _predicate(text: str, symbols: dict[str, _Column]) -> Iterator[Filter]:
    """What is filtered as rows are read; other comparisons of all its columns where it cannot be read."""
    if not text:
        return
    sql = _CALLS.sub(lambda found: found[1] or "", text)  # calls of Trino's own, such as $like(...)
    try:
        where = parse(f"SELECT 1 WHERE {sql}", SqlDialect.TRINO).statement.args.get("where")
        parts = [] if where is None else [*conditions(where.this)]
    except (UnreadableSql, RecursionError):
        yield from (
            Filter(column.name, Operator.OTHER) for symbol, column in symbols.items() if symbol in text.casefold()
        )
        return
    for part in parts:
        paths = (part.left, part.right) if isinstance(part, Pair) else (part.column,)
        for path in paths:
            column = symbols.get(path[0].casefold())
            if column is not None:
                said = part if isinstance(part, Condition) else Condition(path, Operator.OTHER)
                yield said.as_filter(".".join((column.name, *path[1:])))
