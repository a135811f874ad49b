"""The scopes of a query: which name stands for which table, through subqueries, CTEs and unions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import Filter
from icewright.queries.sources.predicates import Path, path_of, paths_in
from icewright.queries.sources.sql_tables import Names, table_of
from icewright.queries.sources.sql_text import UnreadableSql

_SELECTS_MAX: Final = 500
"""Parts of a query, each reference of a CTE counted: CTEs that name others twice double them."""
_STEPS_MAX: Final = 500_000
"""Sources that are looked at for all columns."""


@dataclass(slots=True, eq=False)
class Scan:
    """One reference to a table, and what was found about it. Dicts are sets that keep their order."""

    name: TableName
    known: tuple[str, ...] | None
    snapshot_id: int | None = None
    columns: dict[str, None] = field(default_factory=dict)
    filters: dict[Filter, None] = field(default_factory=dict)
    group_by: dict[str, None] = field(default_factory=dict)
    order_by: dict[str, None] = field(default_factory=dict)
    joined_on: dict[str, None] = field(default_factory=dict)
    aggregates: dict[str, None] = field(default_factory=dict)
    reads_all: bool = False


@dataclass(slots=True, eq=False)
class Source:
    """What a name in FROM stands for: a table, a query, or neither (``UNNEST``)."""

    qualifier: Path
    scan: Scan | None = None
    branches: tuple[SelectScope, ...] = ()
    renamed: tuple[str, ...] = ()
    is_optional: bool = False
    """Whether an outer join fills it with NULL."""
    _positions: dict[str, int] | None = None
    _is_asked: bool = False

    def columns(self) -> tuple[str, ...] | None:
        """The names of its columns, if they are known."""
        if self.renamed:
            return self.renamed
        if self.scan is not None:
            return self.scan.known
        return self.branches[0].column_names() if self.branches else ()

    def positions(self) -> Mapping[str, int] | None:
        """The same with their places, case folded; worked out once, when all is built."""
        if not self._is_asked:
            self._is_asked = True
            columns = self.columns()
            if columns is not None:
                self._positions = {name.casefold(): place for place, name in reversed([*enumerate(columns)])}
        return self._positions


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """A condition of a join, with the sources that it adds."""

    condition: exp.Expr | None
    using: tuple[str, ...]
    side: str
    added: tuple[Source, ...]
    before: tuple[Source, ...]


@dataclass(slots=True, eq=False)
class SelectScope:
    """One SELECT with what its FROM names."""

    node: exp.Expr
    parent: SelectScope | None
    sources: list[Source] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)
    outputs: list[tuple[str, exp.Expr]] = field(default_factory=list)
    has_stars: bool = False
    group_keys: tuple[exp.Expr, ...] = ()
    is_grouped: bool = False
    is_blocked: bool = False
    """Whether conditions from outside cannot move in: behind LIMIT and windows."""
    _named: dict[str, exp.Expr] | None = None

    def named(self, name: str) -> exp.Expr | None:
        """The output of a name; worked out once, when all is built."""
        if self._named is None:
            outputs = reversed(self.outputs)
            self._named = {output.casefold(): one for output, one in outputs if not is_star(one)}
        return self._named.get(name.casefold())

    def column_names(self) -> tuple[str, ...] | None:
        """The names of its outputs, if they are known."""
        names: list[str] = []
        for name, expression in self.outputs:
            if is_star(expression):
                inner = [source.columns() for source in self.starred(expression)]
                known = [columns for columns in inner if columns is not None]
                if len(known) < len(inner):
                    return None
                names += [column for columns in known for column in columns]
            else:
                names.append(name)
        return tuple(names)

    def starred(self, star: exp.Expr) -> list[Source]:
        """The sources that ``*`` or ``t.*`` stands for."""
        if not isinstance(star, exp.Column):
            return self.sources
        qualifier = tuple(part.name for part in star.parts[:-1])
        return [source for source in self.sources if _is_named(source, qualifier)]

    def lets_in(self, expression: exp.Expr) -> bool:
        """Whether a condition on an output holds for the rows below as well."""
        return not self.is_blocked and (not self.is_grouped or expression in self.group_keys)


@dataclass(frozen=True, slots=True)
class Target:
    """A column of a table that an expression leads to."""

    scan: Scan
    column: str
    lets_in: bool
    """Whether a condition on it moves down to the table."""
    function: exp.Expr | None = None
    """What the value is where it is not the column's own."""

    @property
    def is_exact(self) -> bool:
        """Whether the value is the column's own."""
        return self.function is None


def is_star(expression: exp.Expr) -> bool:
    """``*`` or ``t.*``."""
    return isinstance(expression, exp.Star) or (
        isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)
    )


def _is_named(source: Source, qualifier: Path) -> bool:
    said = tuple(part.casefold() for part in source.qualifier[-len(qualifier) :])
    return said == tuple(part.casefold() for part in qualifier)


class Scopes:
    """All scopes of one statement."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.selects: list[SelectScope] = []
        self.scans: list[Scan] = []
        self._steps = 0
        self._open: list[exp.Expr] = []

    # Building

    def build(self, query: exp.Expr, ctes: Mapping[str, Cte], parent: SelectScope | None) -> tuple[SelectScope, ...]:
        """The SELECTs that a query is the union of."""
        ctes = self.own_ctes(query, ctes)
        if isinstance(query, (exp.Subquery, exp.Paren)):
            limited = query.args.get("limit") is not None
            branches = self.build(query.this, ctes, parent)
            for branch in branches:
                branch.is_blocked |= limited
            return branches
        if isinstance(query, exp.SetOperation):
            # An EXCEPT's and an INTERSECT's branches let conditions in alike.
            waiting: list[exp.Expr] = [query]
            found: list[SelectScope] = []
            while waiting:
                node = waiting.pop()
                if isinstance(node, exp.SetOperation) and not (node.args.get("with_") and node is not query):
                    waiting += [node.expression, node.this]
                else:
                    found += self.build(node, ctes, parent)
            for branch in found:
                branch.is_blocked |= query.args.get("limit") is not None
            return tuple(found)
        return (self._select(query, ctes, parent),) if isinstance(query, exp.Select) else ()

    def open_scope(self, node: exp.Expr, parent: SelectScope | None = None) -> SelectScope:
        """A scope of its own. Raises :class:`UnreadableSql` where there are too many."""
        if len(self.selects) >= _SELECTS_MAX:
            raise UnreadableSql(f"the SQL has more than {_SELECTS_MAX} parts, each use of a WITH counted")
        scope = SelectScope(node, parent)
        self.selects.append(scope)
        return scope

    def own_ctes(self, query: exp.Expr, ctes: Mapping[str, Cte]) -> Mapping[str, Cte]:
        """The names that a query knows: those around it and those of its own WITH."""
        clause = query.args.get("with_")
        if not isinstance(clause, exp.With):
            return ctes
        known = dict(ctes)
        for cte in clause.expressions:
            columns = tuple(column.name for column in cte.args["alias"].columns) if cte.args.get("alias") else ()
            own = dict(known)
            known[cte.alias.casefold()] = found = Cte(cte.this, columns, own)
            if clause.args.get("recursive"):
                own[cte.alias.casefold()] = found
        return known

    def _select(self, node: exp.Select, ctes: Mapping[str, Cte], parent: SelectScope | None) -> SelectScope:
        scope = self.open_scope(node, parent)
        clause = node.args.get("from_")
        if clause is not None:
            self.add_source(scope, clause.this, ctes)
        for join in node.args.get("joins") or ():
            self._join(scope, join, ctes)
        for lateral in node.args.get("laterals") or ():
            self.add_source(scope, lateral, ctes)
        scope.outputs = [
            (expression.alias_or_name, _unaliased(expression)) for expression in node.args.get("expressions") or ()
        ]
        scope.has_stars = any(is_star(expression) for _, expression in scope.outputs)
        shown = [inner for _, expression in scope.outputs for inner in expression.walk()]
        windows = node.args.get("qualify") is not None or any(isinstance(inner, exp.Window) for inner in shown)
        scope.is_blocked = windows or any(node.args.get(key) is not None for key in ("limit", "offset"))
        group = node.args.get("group")
        if group is not None:
            scope.group_keys = tuple(said_by(scope, key) for key in group.args.get("expressions") or ())
        scope.is_grouped = group is not None or any(isinstance(inner, exp.AggFunc) for inner in shown)
        for nested in nested_queries(node):
            self.build(nested, ctes, scope)
        return scope

    def _join(self, scope: SelectScope, join: exp.Join, ctes: Mapping[str, Cte]) -> None:
        before = tuple(scope.sources)
        self.add_source(scope, join.this, ctes)
        added = tuple(scope.sources[len(before) :])
        side = (join.side or ("LEFT" if join.kind.upper() == "ANTI" else "")).upper()
        for source in (*(added if side in {"LEFT", "FULL"} else ()), *(before if side in {"RIGHT", "FULL"} else ())):
            source.is_optional = True
        using = tuple(column.name for column in join.args.get("using") or ())
        scope.joins.append(Join(join.args.get("on"), using, side, added, before))

    def add_source(self, scope: SelectScope, node: exp.Expr, ctes: Mapping[str, Cte]) -> None:
        """What a part of FROM names, and what is joined to it inside parentheses."""
        alias = node.args.get("alias")
        named = (node.alias,) if node.alias else ()
        renamed = tuple(column.name for column in alias.columns) if isinstance(alias, exp.TableAlias) else ()
        if isinstance(node, exp.Table):
            scope.sources.append(self._table(node, named, renamed, ctes))
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            self.add_source(scope, node.this, ctes)
        elif isinstance(node, (exp.Subquery, exp.Lateral)) and isinstance(node.this, (exp.Subquery, exp.Query)):
            outer = scope if isinstance(node, exp.Lateral) else scope.parent
            query = node.this if isinstance(node, exp.Lateral) else node
            scope.sources.append(Source(named, branches=self.build(query, ctes, outer), renamed=renamed))
        else:
            scope.sources.append(Source(named, renamed=renamed))
        for join in node.args.get("joins") or ():
            self._join(scope, join, ctes)

    def _table(self, node: exp.Table, named: Path, renamed: Path, ctes: Mapping[str, Cte]) -> Source:
        parts = tuple(part.name for part in node.parts if isinstance(part, exp.Identifier))
        if len(parts) != len(node.parts) or not parts:
            return Source(named, renamed=renamed)  # a function
        cte = ctes.get(parts[0].casefold()) if len(parts) == 1 else None
        if cte is not None:
            if any(cte.query is running for running in self._open):
                return Source(named or parts, renamed=renamed)  # it names itself
            self._open.append(cte.query)
            branches = self.build(cte.query, cte.ctes, None)
            self._open.pop()
            return Source(named or parts, branches=branches, renamed=renamed or cte.columns)
        found = table_of(parts, node.args.get("version"), self._names)
        if found is None:
            return Source(named or parts, renamed=renamed)
        scan = Scan(found[0], self._names.schemas.get(found[0]), found[1])
        self.scans.append(scan)
        return Source(named or (scan.name.catalog, *scan.name.path), scan, renamed=renamed)

    # Tracing

    def source_of(self, scope: SelectScope, path: Path) -> tuple[SelectScope, Source, Path] | None:
        """Which source of which scope a column is of, and its path there; None where that is unknown."""
        for look in (_qualified, _unqualified):
            around: SelectScope | None = scope
            while around is not None:
                self._count(len(around.sources))
                found = look(around, path)
                if found is not None:
                    return (around, *found)
                around = around.parent
        return None

    def targets(self, scope: SelectScope, path: Path) -> tuple[Target, ...]:
        """The columns of tables that a column of a scope comes from."""
        found = self.source_of(scope, path)
        return () if found is None else tuple(self.targets_in(found[1], found[2]))

    def targets_in(self, source: Source, path: Path) -> Iterator[Target]:
        """The columns of tables that a column of a source comes from."""
        self._count()
        if not path:
            return
        if source.scan is not None:
            yield Target(source.scan, self._spelled(source.scan, path), lets_in=True)
        for branch in source.branches:
            yield from self._targets_through(source, branch, path)

    def _targets_through(self, source: Source, branch: SelectScope, path: Path) -> Iterator[Target]:
        expression = _output(source, branch, path[0])
        if expression is None:
            for star in (one for _, one in branch.outputs if is_star(one)):
                for inner in branch.starred(star):
                    known = inner.positions()
                    if known is None or path[0].casefold() in known:
                        yield from self._lowered(self.targets_in(inner, path), lets_in=branch.lets_in(star))
                        return
            return
        lets_in = branch.lets_in(expression)
        inner_path = path_of(expression)
        if inner_path is not None:
            yield from self._lowered(self._all(branch, (*inner_path, *path[1:])), lets_in=lets_in)
        else:
            for one in paths_in(expression):
                yield from self._lowered(self._all(branch, one), lets_in=lets_in, function=expression)

    def _all(self, scope: SelectScope, path: Path) -> Iterator[Target]:
        found = self.source_of(scope, path)
        if found is not None:
            yield from self.targets_in(found[1], found[2])

    @staticmethod
    def _lowered(targets: Iterator[Target], *, lets_in: bool, function: exp.Expr | None = None) -> Iterator[Target]:
        for target in targets:
            yield Target(target.scan, target.column, target.lets_in and lets_in, target.function or function)

    def _spelled(self, scan: Scan, path: Path) -> str:
        """A column as the table spells it, or else as the query does."""
        if self._names.folds_case:
            path = tuple(part.lower() for part in path)
        for column in scan.known or ():
            if column.casefold() == path[0].casefold():
                return ".".join((column, *path[1:]))
        return ".".join(path)

    def _count(self, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > _STEPS_MAX:
            raise UnreadableSql("the SQL is too entangled to tell where its columns come from")


@dataclass(frozen=True, slots=True, eq=False)
class Cte:
    """A query with a name, and the names that it knows itself."""

    query: exp.Expr
    columns: tuple[str, ...]
    ctes: Mapping[str, Cte]


def said_by(scope: SelectScope, key: exp.Expr) -> exp.Expr:
    """What a key of GROUP BY or ORDER BY means: a position and an alias stand for an output."""
    if isinstance(key, exp.Literal) and not key.is_string and key.name.isdigit():
        position = int(key.name[:6])
        return scope.outputs[position - 1][1] if 0 < position <= len(scope.outputs) else key
    if isinstance(key, exp.Column) and len(key.parts) == 1:
        for name, expression in scope.outputs:
            if name.casefold() == key.name.casefold() and not isinstance(expression, exp.Column):
                return expression
    return key


def _unaliased(expression: exp.Expr) -> exp.Expr:
    return expression.this if isinstance(expression, exp.Alias) else expression


def _output(source: Source, branch: SelectScope, name: str) -> exp.Expr | None:
    """The expression behind a column of a query; unions go by position."""
    is_first = branch is source.branches[0]
    if not is_first or source.renamed:
        place = (source.positions() or {}).get(name.casefold())
        if place is not None and not branch.has_stars:
            return branch.outputs[place][1] if place < len(branch.outputs) else None
    return branch.named(name)


def _qualified(scope: SelectScope, path: Path) -> tuple[Source, Path] | None:
    for length in range(len(path) - 1, 0, -1):
        for source in scope.sources:
            if source.qualifier and _is_named(source, path[:length]):
                return source, path[length:]
    return None


def _unqualified(scope: SelectScope, path: Path) -> tuple[Source, Path] | None:
    unknown: list[Source] = []
    for source in scope.sources:
        columns = source.positions()
        if columns is None:
            unknown.append(source)
        elif path[0].casefold() in columns:
            return source, path
    used = any(path[0].casefold() == name.casefold() for join in scope.joins for name in join.using)
    return (unknown[0], path) if len(unknown) == 1 or (unknown and used) else None


def nested_queries(node: exp.Expr) -> Iterator[exp.Expr]:
    """Queries in the expressions of a SELECT, the outermost of each; those of FROM and WITH are sources."""
    waiting: list[exp.Expr] = []
    for key, value in node.args.items():
        if key == "joins":
            waiting += [join.args["on"] for join in value or () if join.args.get("on") is not None]
        elif key not in {"from_", "with_", "laterals"}:
            waiting += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, exp.Expr)]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, (exp.Subquery, exp.Select, exp.SetOperation)):
            yield inner
        else:
            waiting.extend(inner.iter_expressions())
