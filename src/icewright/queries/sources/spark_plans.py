"""Scans of Iceberg tables in Spark's physical plans, as event logs have them: what they filter, and by which metrics.

Spark prints literals without their types and without escapes: a date is a number of days, a timestamp one of
microseconds, and a quote inside a string is taken for the end of it where a separator follows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator
from icewright.queries.sources.predicates import disjunction, negation
from icewright.queries.sources.sql_tables import METADATA_TABLES
from icewright.queries.sources.values import number

_SCANS: Final = (
    (re.compile(r"Iceberg\w{0,40}\(table=(?P<table>[^\s,()]+), "), "filters="),
    (re.compile(r"(?<![^\s,()\[\]])(?P<table>[^\s,()\[\]]++) \(branch="), ") [filters="),
)
"""How a scan begins, and what its filters follow, as Iceberg prints them: today, and in older releases."""
_FILTERS_END: Final = (", groupedBy=", ", runtimeFilters=")
_SNAPSHOT: Final = re.compile(r"snapshotId=(\d{1,19})\b")
_OUTPUT: Final = re.compile(r"\ABatchScan [^\[]*\[(.*?)\] ?(?=Iceberg|[^\s\[\]]+ \(branch=)", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r"(?P<name>.+)#\d+L?\Z", re.DOTALL)
_ATTRIBUTE_ID: Final = re.compile(r"#\d++L?+(?!\w)")
_IN_NAME: Final = re.compile(r"[\w#]")
_HAS_VALUE: Final = "isnotnull("
_BETWEEN: Final = ("InputAdapter", "ColumnarToRow", "WholeStageCodegen")
_AGGREGATES: Final = ("HashAggregate", "ObjectHashAggregate", "SortAggregate")
_JOINS: Final = ("BroadcastHashJoin", "SortMergeJoin", "ShuffledHashJoin")
_CALL: Final = re.compile(r"(?<!\w)(?:partial_|merge_|finalmerge_)?(\w++)\((distinct )?([^()]+)\)")
_KNOWN_CALLS: Final = {"count", "sum", "min", "max", "avg", "approx_count_distinct", "collect_set", "collect_list"}
_JOIN_KEYS: Final = re.compile(r"\w+ \[(.*?)\], \[(.*?)\], ", re.DOTALL)
_SORT, _TOP, _TOP_ORDER = "Sort [", "TakeOrderedAndProject(", "orderBy=["
_ORDER_END: Final = re.compile(r"\](?:, true|, output)")
_LIMIT: Final = re.compile(r"(?:CollectLimit |GlobalLimit |TakeOrderedAndProject\(limit=)(\d{1,18})\b")
_ORDER: Final = re.compile(r" (?:ASC|DESC) NULLS (?:FIRST|LAST)")
_METADATA_COLUMNS: Final = frozenset({"_file", "_pos", "_deleted", "_spec_id", "_partition"})
_NODES_MAX: Final = 20_000
_NAME_PARTS_MIN: Final = 3


@dataclass(slots=True, eq=False)
class PlanScan:
    """A scan of a table. ``metrics`` and ``filter_metrics`` are the ids of accumulators by their names."""

    table: TableName
    columns: tuple[str, ...]
    filters: tuple[Filter, ...]
    snapshot_id: int | None
    metrics: dict[str, int]
    attributes: dict[str, str] = field(default_factory=dict)
    """Its columns by the names that the plan gives them, such as ``id#12L``."""
    filter_metrics: dict[str, int] | None = None
    group_by: dict[str, None] = field(default_factory=dict)
    order_by: dict[str, None] = field(default_factory=dict)
    joined_on: dict[str, None] = field(default_factory=dict)
    aggregates: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a physical plan reads."""

    scans: tuple[PlanScan, ...]
    limit: int | None


def read_plan(root: Any) -> Plan:
    """The scans of Iceberg tables below a node, each once; nothing of what is no plan."""
    scans: dict[tuple[int, ...], PlanScan] = {}
    nodes = [*_nodes(root)]
    limit: int | None = None
    for node, above in nodes:
        found = _LIMIT.match(_text(node))
        limit = int(found[1]) if found and limit is None else limit
        scan = _scan(node)
        if scan is not None:
            _add_filter(scan, above)
            scans.setdefault(tuple(sorted(scan.metrics.values())) or (id(scan),), scan)
    attributes = {name: (scan, column) for scan in scans.values() for name, column in scan.attributes.items()}
    for node, _above in nodes:
        _collect(_text(node), attributes)
    for scan in scans.values():
        scan.filters = _without_implied(scan.filters, {*scan.joined_on})
    return Plan(tuple(scans.values()), limit)


def _nodes(root: Any) -> Iterator[tuple[dict[str, Any], tuple[dict[str, Any], ...]]]:
    """All nodes with those above them up to the nearest that changes rows."""
    waiting: list[tuple[Any, tuple[dict[str, Any], ...]]] = [(root, ())]
    for _ in range(_NODES_MAX):
        if not waiting:
            return
        node, above = waiting.pop()
        if not isinstance(node, dict):
            continue
        yield node, above
        is_between = str(node.get("nodeName")).startswith(_BETWEEN)
        chain = (*above[-8:], node) if is_between else (node,)
        children = node.get("children")
        waiting.extend((child, chain) for child in (reversed(children) if isinstance(children, list) else ()))


def _text(node: dict[str, Any]) -> str:
    found = node.get("simpleString")
    return found if isinstance(found, str) else ""


def _metrics(node: dict[str, Any]) -> dict[str, int]:
    found = node.get("metrics")
    metrics = found if isinstance(found, list) else []
    return {
        metric["name"]: metric["accumulatorId"]
        for metric in metrics
        if isinstance(metric, dict)
        and isinstance(metric.get("name"), str)
        and isinstance(metric.get("accumulatorId"), int)
    }


def _scan(node: dict[str, Any]) -> PlanScan | None:
    text = _text(node)
    if not str(node.get("nodeName")).startswith("BatchScan"):
        return None
    output = _OUTPUT.match(text)
    name, said = _name_and_filters(text, output.end() if output else 0)
    parts = name.split(".")
    if len(parts) < _NAME_PARTS_MIN or not all(parts) or "/" in name:
        return None
    if len(parts) > _NAME_PARTS_MIN and parts[-1].lower() in METADATA_TABLES:
        return None
    snapshot = _SNAPSHOT.search(text, 0, len(text) - len(said))
    for end in _FILTERS_END:
        said = said.rpartition(end)[0] if end in said else said
    attributes = _attributes(output[1] if output else "")
    known = None if output is None or " more field" in output[1] else {*attributes.values()}
    attributes = {name: column for name, column in attributes.items() if column not in _METADATA_COLUMNS}
    columns = () if known is None else tuple(attributes.values())
    return PlanScan(
        TableName(parts[0], tuple(parts[1:-1]), parts[-1]),
        columns,
        tuple(dict.fromkeys(_pushed(said, known, attributes))),
        int(snapshot[1]) if snapshot else None,
        _metrics(node),
        attributes,
    )


def _name_and_filters(text: str, start: int) -> tuple[str, str]:
    """The table that a scan says it reads, and all that follows where its filters begin; empty where it says none.

    Who makes the query chooses strings in the text: it is read once, and not from each place where a name may begin.
    """
    for begins, before in _SCANS:
        found = begins.search(text, start)
        at = text.find(before, found.end()) if found else -1
        if found and at >= 0:
            return found["table"], text[at + len(before) :]
    return "", ""


def _attributes(text: str) -> dict[str, str]:
    found = {item: _ATTRIBUTE.match(item) for item in text.split(", ")}
    return {item: match["name"] for item, match in found.items() if match}


def _pushed(text: str, known: set[str] | None, attributes: dict[str, str]) -> Iterator[Filter]:
    """The filters of a scan. Where they cannot be separated: that its columns are compared somehow."""
    try:
        filters = [*_Reader(text).filters()] if text else []
    except _Unreadable:
        filters = None
    if filters is None or (known is not None and any(one.column.partition(".")[0] not in known for one in filters)):
        words = {*re.findall(r"\w+", text)}
        yield from (Filter(column, Operator.OTHER) for column in attributes.values() if column in words)
    else:
        yield from filters


class _Unreadable(Exception):
    """A text that is not what Iceberg prints of filters."""


_PREDICATE: Final = re.compile(
    r"(?P<column>[^\s'(),=<>!]+) (?:(?P<null>IS NULL|IS NOT NULL)|(?P<like>NOT LIKE|LIKE) '"
    r"|(?P<set>NOT IN|IN) \(|(?P<operator><=|>=|!=|<|>|=) )"
)
_NAN: Final = re.compile(r"(?:is_nan|not_nan)\((?P<column>[^\s'(),]+)\)")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false")
_STRING_END: Final = re.compile(r"'(?=, |\)| AND | OR |\Z)")
_OPERATORS: Final = {
    "=": Operator.EQ,
    "!=": Operator.NOT_EQ,
    "<": Operator.LT,
    "<=": Operator.LT_EQ,
    ">": Operator.GT,
    ">=": Operator.GT_EQ,
    "IS NULL": Operator.IS_NULL,
    "IS NOT NULL": Operator.NOT_NULL,
    "IN": Operator.IN,
    "NOT IN": Operator.NOT_IN,
}
_DEPTH_MAX: Final = 100


class _Reader:
    """Reads what Iceberg prints of filters: ``a IS NOT NULL, (b = 1 OR b IN (2, 3)), c LIKE 'x%'``."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def filters(self) -> Iterator[Filter]:
        """All filters, which hold at once."""
        yield from self._one(0)
        while self._at < len(self._text):
            self._expect(", ")
            yield from self._one(0)

    def _one(self, depth: int) -> list[Filter]:
        if depth > _DEPTH_MAX:
            raise _Unreadable
        if self._takes("NOT ("):
            inner = self._one(depth + 1)
            self._expect(")")
            return [*negation(inner)]
        if self._takes("("):
            return self._both(depth)
        for constant in ("true", "false"):
            if self._takes(constant):
                return []
        nan = _NAN.match(self._text, self._at)
        if nan is not None:
            self._at = nan.end()
            return [Filter(nan["column"], Operator.OTHER)]
        return [self._predicate()]

    def _both(self, depth: int) -> list[Filter]:
        left = self._one(depth + 1)
        is_or = not self._takes(" AND ")
        if is_or:
            self._expect(" OR ")
        right = self._one(depth + 1)
        self._expect(")")
        return [*disjunction(left, right)] if is_or else [*left, *right]

    def _predicate(self) -> Filter:
        found = _PREDICATE.match(self._text, self._at)
        if found is None:
            raise _Unreadable
        self._at = found.end()
        column = found["column"]
        if found["null"]:
            return Filter(column, _OPERATORS[found["null"]])
        if found["like"]:
            prefix = self._string().text
            if not prefix.endswith("%"):
                raise _Unreadable
            is_plain = found["like"] == "LIKE"
            literal = Literal(LiteralKind.STRING, prefix[:-1])
            return Filter(column, Operator.STARTS_WITH, (literal,)) if is_plain else Filter(column, Operator.OTHER)
        if found["set"]:
            literals = [self._value()]
            while self._takes(", "):
                literals.append(self._value())
            self._expect(")")
            return Filter(column, _OPERATORS[found["set"]], tuple(literals))
        return Filter(column, _OPERATORS[found["operator"]], (self._value(),))

    def _value(self) -> Literal:
        if self._takes("'"):
            return self._string()
        found = _NUMBER.match(self._text, self._at)
        if found is None:
            raise _Unreadable
        self._at = found.end()
        return Literal(LiteralKind.BOOLEAN, found[0]) if found[0] in {"true", "false"} else number(found[0])

    def _string(self) -> Literal:
        """The string behind a quote: to the first quote that a separator follows."""
        found = _STRING_END.search(self._text, self._at)
        if found is None:
            raise _Unreadable
        text = self._text[self._at : found.start()]
        self._at = found.end()
        return Literal(LiteralKind.STRING, text)

    def _takes(self, text: str) -> bool:
        is_next = self._text.startswith(text, self._at)
        self._at += len(text) if is_next else 0
        return is_next

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise _Unreadable


def _add_filter(scan: PlanScan, above: tuple[dict[str, Any], ...]) -> None:
    """The Filter right above a scan: its rows, and the columns that it compares in ways that no scan can."""
    node = above[0] if above and above[0].get("nodeName") == "Filter" else None
    if node is None:
        return
    scan.filter_metrics = _metrics(node)
    lengths, known = {len(column) for column in scan.attributes.values()}, set[str]()

    def note(column: str) -> None:
        """A column that is compared, and those that it is a part of."""
        known.update(column[:end] for end in lengths if column[end : end + 1] in {"", "."})

    for one in scan.filters:
        if one.operator is not Operator.NOT_NULL:
            note(one.column)
    added = []
    compared = _compared(_text(node), scan.attributes)
    for attribute, column in scan.attributes.items():
        if attribute in compared and column not in known:
            added.append(Filter(column, Operator.OTHER))
            note(column)
    scan.filters = (*scan.filters, *added)


def _compared(condition: str, attributes: Mapping[str, str]) -> set[str]:
    """The attributes in a condition, without those that must only have a value."""
    lengths: defaultdict[str, set[int]] = defaultdict(set)
    for attribute in attributes:
        lengths[attribute[attribute.rindex("#") :]].add(len(attribute))
    found: set[str] = set()
    for match in _ATTRIBUTE_ID.finditer(condition):
        for begin in (match.end() - length for length in lengths.get(match[0], ()) if length <= match.end()):
            attribute, before = condition[begin : match.end()], condition[max(begin - len(_HAS_VALUE), 0) : begin]
            is_whole = attribute in attributes and not _IN_NAME.match(before[-1:])
            if is_whole and not (before == _HAS_VALUE and condition.startswith(")", match.end())):
                found.add(attribute)
    return found


def _without_implied(filters: tuple[Filter, ...], joined_on: set[str]) -> tuple[Filter, ...]:
    """Without ``IS NOT NULL`` of columns that are compared or joined: Spark adds it to each."""
    compared = {one.column for one in filters if one.operator is not Operator.NOT_NULL} | joined_on
    return tuple(one for one in filters if one.operator is not Operator.NOT_NULL or one.column not in compared)


def _collect(text: str, attributes: dict[str, tuple[PlanScan, str]]) -> None:
    """What a node says of columns as they are read; of others nothing."""
    if text.startswith(_AGGREGATES):
        keys, _, rest = text.partition("keys=[")[2].partition("], functions=[")
        calls, is_whole, _ = rest.rpartition("]")
        for scan, column in _named(keys if is_whole else "", attributes):
            scan.group_by[column] = None
        for name, distinct, attribute in _CALL.findall(calls):
            if name in _KNOWN_CALLS and attribute in attributes:
                scan, column = attributes[attribute]
                scan.aggregates[f"{name}({distinct}{column})"] = None
    elif text.startswith(_JOINS):
        found = _JOIN_KEYS.match(text)
        for scan, column in _named(f"{found[1]}, {found[2]}" if found else "", attributes):
            scan.joined_on[column] = None
    else:
        order = text[len(_SORT) :] if text.startswith(_SORT) else ""
        order = text.partition(_TOP_ORDER)[2] if text.startswith(_TOP) else order
        found = _ORDER_END.search(order)
        for scan, column in _named(_ORDER.sub("", order[: found.start()]) if found else "", attributes):
            scan.order_by[column] = None


def _named(text: str, attributes: dict[str, tuple[PlanScan, str]]) -> Iterator[tuple[PlanScan, str]]:
    return (attributes[item] for item in text.split(", ") if item in attributes)
