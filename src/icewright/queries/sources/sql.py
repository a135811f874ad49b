"""What a text of SQL reads of which tables, by what filters, groups, orders and joins.

Conditions count for a table where an engine can move them down to its scan: through subqueries, CTEs and unions, not
behind LIMIT, windows and aggregates, and not on the side of an outer join that must keep its rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from icewright.core.times import Instant
from icewright.model.queries.queries import Operator, QueryRecord, QuerySource, TableRead
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.predicates import (
    NESTED_QUERIES,
    Condition,
    Pair,
    conditions,
    path_of,
    paths_in,
)
from icewright.queries.sources.sql_scopes import (
    Join,
    Scan,
    Scopes,
    SelectScope,
    Source,
    Target,
    is_star,
    nested_queries,
    said_by,
)
from icewright.queries.sources.sql_tables import Names, Schemas
from icewright.queries.sources.sql_text import ParsedSql, SqlDialect, UnreadableSql, parse

_FUNCTION_NAME_MAX: Final = 60
_UNITS: Final = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second"})
_LIMIT_DIGITS_MAX: Final = 18
_ID_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class SqlReads:
    """What a query reads: each table as often as the text names it."""

    tables: tuple[TableRead, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a name without a catalog, or without a namespace, stands for; and the columns of tables."""

    catalog: str
    namespace: tuple[str, ...]
    schemas: Schemas = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextQuery:
    """What is known of a query beside its text."""

    dialect: SqlDialect
    started_at: Instant
    user: str = ""
    engine: str = ""
    query_id: str = ""
    duration_ms: int | None = None


def record_of_text(text: str, asked: TextQuery, defaults: Defaults, rules: LiteralRules) -> QueryRecord:
    """The record of a query of which its text is known. Raises :class:`UnreadableSql`.

    Without an id of its own, the same text of the same user at the same time is the same query.
    """
    parsed = parse(text, asked.dialect)
    reads = reads_of(parsed, defaults)
    said = "\0".join((asked.engine, asked.user, str(asked.started_at), text))
    record = QueryRecord(
        query_id=asked.query_id or hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_DIGITS],
        source=QuerySource.SQL,
        engine=asked.engine or asked.dialect,
        user=asked.user,
        started_at=asked.started_at,
        duration_ms=asked.duration_ms,
        limit=reads.limit,
        sql=text,
        tables=reads.tables,
    )
    return rules.record(record, parsed)


def reads_of(parsed: ParsedSql, defaults: Defaults) -> SqlReads:
    """What a statement reads; nothing for one that reads no tables. Raises :class:`UnreadableSql`."""
    names = Names(defaults.catalog, defaults.namespace, parsed.dialect.folds_case, defaults.schemas)
    try:
        return _reads(parsed.statement, Scopes(names))
    except RecursionError as error:
        raise UnreadableSql("the SQL is nested too deeply", hint="send the parts as queries of their own") from error


def _reads(statement: exp.Expr, scopes: Scopes) -> SqlReads:
    query = _query_of(statement)
    if query is not None:
        ctes = scopes.own_ctes(statement, {}) if query is not statement else {}
        for branch in scopes.build(query, ctes, None):
            _read_stars(branch)
    else:
        _build_change(statement, scopes)
    for scope in scopes.selects:
        _Collector(scopes, scope).collect()
    return SqlReads(tuple(map(_as_read, scopes.scans)), _limit_of(query))


def _query_of(statement: exp.Expr) -> exp.Expr | None:
    if isinstance(statement, exp.Query):
        return statement
    is_query = isinstance(statement, exp.Insert) or (
        isinstance(statement, exp.Create) and str(statement.args.get("kind")).upper() == "TABLE"
    )
    inner = statement.args.get("expression") if is_query else None
    return inner if isinstance(inner, exp.Query) else None


def _build_change(statement: exp.Expr, scopes: Scopes) -> None:
    """DELETE, UPDATE and MERGE read the table that they change."""
    if not isinstance(statement, (exp.Delete, exp.Update, exp.Merge)) or not isinstance(statement.this, exp.Table):
        return
    ctes = scopes.own_ctes(statement, {})
    scope = scopes.open_scope(statement)
    if isinstance(statement, exp.Merge):
        scopes.add_source(scope, statement.args["using"], ctes)
        before = tuple(scope.sources)
        scopes.add_source(scope, statement.this, ctes)
        added = tuple(scope.sources[len(before) :])
        scope.joins.append(Join(statement.args.get("on"), (), "LEFT", added, before))
    else:
        scopes.add_source(scope, statement.this, ctes)
    for nested in nested_queries(statement):
        if nested is not statement.args.get("using"):
            scopes.build(nested, ctes, scope)


def _limit_of(query: exp.Expr | None) -> int | None:
    while isinstance(query, exp.Subquery) and query.args.get("limit") is None:
        query = query.this
    limit = query.args.get("limit") if query is not None else None
    said = limit.args.get("count") or limit.args.get("expression") if limit is not None else None
    digits = said.name if isinstance(said, exp.Literal) else ""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _LIMIT_DIGITS_MAX else None


def _read_stars(scope: SelectScope) -> None:
    """``SELECT *`` of the whole query reads all columns of what is below it."""
    for _, expression in scope.outputs:
        if not is_star(expression):
            continue
        for source in scope.starred(expression):
            if source.scan is not None:
                source.scan.reads_all = True
            for branch in source.branches:
                _read_stars(branch)


def _as_read(scan: Scan) -> TableRead:
    columns = (scan.known or ()) if scan.reads_all else tuple(scan.columns)
    return TableRead(
        scan.name,
        columns,
        tuple(scan.filters),
        tuple(scan.group_by),
        tuple(scan.order_by),
        tuple(scan.joined_on),
        tuple(scan.aggregates),
        scan.snapshot_id,
    )


class _Collector:
    """Gives what one SELECT says to the tables that it is about."""

    def __init__(self, scopes: Scopes, scope: SelectScope) -> None:
        self._scopes = scopes
        self._scope = scope

    def collect(self) -> None:
        node = self._scope.node
        for expression in self._own_expressions():
            for path in paths_in(expression):
                for target in self._scopes.targets(self._scope, path):
                    target.scan.columns[target.column] = None
            self._collect_aggregates(expression)
        where = node.args.get("where")
        if where is not None:
            self._filters(where.this, {*self._scope.sources}, drops_nulls=True)
        having = node.args.get("having")
        if having is not None:
            self._having(having.this)
        for join in self._scope.joins:
            self._join(join)
        self._collect_groups()
        self._collect_orders()
        self._collect_memberships()

    def _own_expressions(self) -> Iterator[exp.Expr]:
        """The expressions of the scope, without those of FROM."""
        for key, value in self._scope.node.args.items():
            items = value if isinstance(value, list) else [value]
            if key == "joins":
                items = [join.args.get("on") for join in items if isinstance(join, exp.Expr)]
            if key not in {"from_", "with_", "this", "using", "limit", "offset"}:
                yield from (item for item in items if isinstance(item, exp.Expr))

    def _filters(self, expression: exp.Expr, allowed: set[Source], *, drops_nulls: bool) -> None:
        for part in conditions(expression):
            if isinstance(part, Pair):
                self._pair(part)
                continue
            found = self._scopes.source_of(self._scope, part.column)
            if found is None or found[0] is not self._scope or found[1] not in allowed:
                continue
            source, path = found[1], found[2]
            if source.is_optional and drops_nulls and part.operator is Operator.IS_NULL:
                continue
            for target in self._scopes.targets_in(source, path):
                if target.lets_in:
                    how = part if target.is_exact else Condition(part.column, Operator.OTHER)
                    target.scan.filters[how.as_filter(target.column)] = None

    def _pair(self, pair: Pair) -> None:
        """Columns of two sources join them; two of one source are a comparison that no bounds answer."""
        left = self._scopes.source_of(self._scope, pair.left)
        right = self._scopes.source_of(self._scope, pair.right)
        if left is None and right is None:
            return
        is_join = left is None or right is None or left[1] is not right[1]
        for found in (left, right):
            for target in self._scopes.targets_in(found[1], found[2]) if found is not None else ():
                if is_join and target.is_exact:
                    target.scan.joined_on[target.column] = None
                elif not is_join and target.lets_in:
                    target.scan.filters[Condition((), Operator.OTHER).as_filter(target.column)] = None

    def _having(self, expression: exp.Expr) -> None:
        """Conditions on keys of GROUP BY hold for the rows below as well."""
        keys = {path_of(key) for key in self._scope.group_keys}
        for part in conditions(expression):
            if isinstance(part, Condition) and part.column in keys:
                for target in self._scopes.targets(self._scope, part.column):
                    if target.lets_in and target.is_exact:
                        target.scan.filters[part.as_filter(target.column)] = None

    def _join(self, join: Join) -> None:
        allowed: set[Source] = set()
        if join.side not in {"RIGHT", "FULL"}:
            allowed |= {*join.added}
        if join.side not in {"LEFT", "FULL"}:
            allowed |= {*join.before}
        if join.condition is not None:
            self._filters(join.condition, allowed, drops_nulls=False)
        for name in join.using:
            for source in join.added:
                self._joined(self._scopes.targets_in(source, (name,)))
            self._joined(iter(self._scopes.targets(self._scope, (name,))))

    @staticmethod
    def _joined(targets: Iterator[Target]) -> None:
        for target in targets:
            if target.is_exact:
                target.scan.joined_on[target.column] = None
                target.scan.columns[target.column] = None

    def _collect_memberships(self) -> None:
        """``x IN (SELECT y ...)`` is a join."""
        for expression in self._own_expressions():
            for node in _own_nodes(expression):
                query = node.args.get("query") if isinstance(node, exp.In) else None
                path = path_of(node.this) if query is not None else None
                if path is None:
                    continue
                self._joined(iter(self._scopes.targets(self._scope, path)))
                for child in self._scopes.selects:
                    is_asked = child.parent is self._scope and _inside(child.node, query) and len(child.outputs) == 1
                    inner = path_of(child.outputs[0][1]) if is_asked else None
                    if inner is not None:
                        self._joined(iter(self._scopes.targets(child, inner)))

    def _collect_groups(self) -> None:
        group = self._scope.node.args.get("group")
        if group is None:
            return
        keys = [*self._scope.group_keys]
        for sets in ("grouping_sets", "cube", "rollup"):
            keys += [column for item in group.args.get(sets) or () for column in item.find_all(exp.Column)]
        for key in keys:
            path = path_of(key)
            is_set = isinstance(key, (exp.GroupingSets, exp.Cube, exp.Rollup, exp.Tuple))
            paths = paths_in(key) if path is None else (path,)
            for one in paths:
                for target in self._scopes.targets(self._scope, one):
                    is_plain = (path is not None or is_set) and target.is_exact
                    target.scan.group_by[
                        target.column if is_plain else _function(target.function or key, target.column)
                    ] = None

    def _collect_orders(self) -> None:
        for clause in ("order", "sort"):
            order = self._scope.node.args.get(clause)
            for ordered in order.expressions if order is not None else ():
                path = path_of(said_by(self._scope, ordered.this))
                for target in self._scopes.targets(self._scope, path) if path is not None else ():
                    if target.is_exact:
                        target.scan.order_by[target.column] = None

    def _collect_aggregates(self, expression: exp.Expr) -> None:
        for node in _own_nodes(expression):
            if (
                not isinstance(node, exp.AggFunc)
                or isinstance(node, exp.Grouping)
                or isinstance(node.parent, exp.Window)
            ):
                continue
            name = _function_name(node)
            inner = node.this
            distinct = "distinct " if isinstance(inner, exp.Distinct) else ""
            paths = paths_in(node)
            for path in paths:
                for target in self._scopes.targets(self._scope, path):
                    target.scan.aggregates[f"{name}({distinct}{target.column})"] = None
            if not paths:
                for scan in _scans_below(self._scope):
                    scan.aggregates[f"{name}(*)"] = None


def _scans_below(scope: SelectScope) -> Iterator[Scan]:
    for source in scope.sources:
        if source.scan is not None:
            yield source.scan
        for branch in source.branches:
            if not branch.is_grouped:
                yield from _scans_below(branch)


def _own_nodes(expression: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression, without those of queries inside it."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, NESTED_QUERIES):
            yield node
            waiting.extend(reversed([*node.iter_expressions()]))


def _inside(node: exp.Expr, query: exp.Expr | None) -> bool:
    around: exp.Expr | None = node
    while around is not None and around is not query:
        around = around.parent
    return around is query


def _function(expression: exp.Expr, column: str) -> str:
    """A key of GROUP BY that is no column: its function, without literals."""
    unit = str(expression.args["unit"].name).lower() if isinstance(expression.args.get("unit"), exp.Var) else ""
    return f"{_function_name(expression)}({f'{unit}, ' if unit in _UNITS else ''}{column})"


def _function_name(node: exp.Expr) -> str:
    if isinstance(node, (exp.TimestampTrunc, exp.DateTrunc)):
        return "date_trunc"
    if isinstance(node, (exp.Anonymous, exp.AnonymousAggFunc)):
        return node.name.lower()[:_FUNCTION_NAME_MAX]
    name = node.sql_name() if isinstance(node, exp.Func) else node.key
    return name.lower()[:_FUNCTION_NAME_MAX]
