"""Boolean expressions of SQL as conditions on single columns: what bounds of files can answer, and what they cannot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sqlglot import exp

from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator
from icewright.queries.sources.values import date, number, timestamp

Path: TypeAlias = tuple[str, ...]
"""A column as the text names it, part by part: ``("t", "id")``, ``("s", "x", "y")``."""


@dataclass(frozen=True, slots=True)
class Condition:
    """``column operator literals``: one conjunct."""

    column: Path
    operator: Operator
    literals: tuple[Literal, ...] = ()

    def as_filter(self, column: str) -> Filter:
        """As the filter of a table's column."""
        return Filter(column, self.operator, self.literals)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns that are equal: a join, where they are of two tables."""

    left: Path
    right: Path


_FLIPPED: Final = {
    Operator.EQ: Operator.EQ,
    Operator.NOT_EQ: Operator.NOT_EQ,
    Operator.LT: Operator.GT,
    Operator.LT_EQ: Operator.GT_EQ,
    Operator.GT: Operator.LT,
    Operator.GT_EQ: Operator.LT_EQ,
}
NEGATED: Final = {
    Operator.EQ: Operator.NOT_EQ,
    Operator.NOT_EQ: Operator.EQ,
    Operator.LT: Operator.GT_EQ,
    Operator.LT_EQ: Operator.GT,
    Operator.GT: Operator.LT_EQ,
    Operator.GT_EQ: Operator.LT,
    Operator.IN: Operator.NOT_IN,
    Operator.NOT_IN: Operator.IN,
    Operator.IS_NULL: Operator.NOT_NULL,
    Operator.NOT_NULL: Operator.IS_NULL,
}
"""What a comparison is where it does not hold."""
_COMPARISONS: Final[dict[type[exp.Expr], Operator]] = {
    exp.EQ: Operator.EQ,
    exp.NullSafeEQ: Operator.EQ,
    exp.NEQ: Operator.NOT_EQ,
    exp.LT: Operator.LT,
    exp.LTE: Operator.LT_EQ,
    exp.GT: Operator.GT,
    exp.GTE: Operator.GT_EQ,
}
NESTED_QUERIES: Final = (exp.Subquery, exp.Select, exp.SetOperation, exp.Exists)
_DIFFERS_BY_CALL: Final = (exp.Rand, exp.Uuid, *NESTED_QUERIES)


def conditions(expression: exp.Expr) -> Iterator[Condition | Pair]:
    """All conjuncts of an expression. Those without a column say nothing of files, and are left out."""
    for conjunct, negated in _conjuncts(expression):
        yield from _condition(conjunct, negated=negated)


def negation(filters: Sequence[Filter]) -> Iterator[Filter]:
    """The filters of ``NOT (...)``."""
    if len(filters) == 1 and filters[0].operator in NEGATED:
        yield Filter(filters[0].column, NEGATED[filters[0].operator], filters[0].literals)
    else:
        yield from _compared_otherwise(filters)


def disjunction(left: Sequence[Filter], right: Sequence[Filter]) -> Iterator[Filter]:
    """The filters of ``... OR ...``: equalities on one column are an IN."""
    both = [*left, *right]
    is_set = len(left) == len(right) == len({one.column for one in both}) == 1
    if is_set and all(one.operator in {Operator.EQ, Operator.IN} for one in both):
        literals = tuple(dict.fromkeys(literal for one in both for literal in one.literals))
        yield Filter(left[0].column, Operator.IN if len(literals) > 1 else Operator.EQ, literals)
    else:
        yield from _compared_otherwise(both)


def _compared_otherwise(filters: Sequence[Filter]) -> Iterator[Filter]:
    return (Filter(column, Operator.OTHER) for column in dict.fromkeys(one.column for one in filters))


def path_of(expression: exp.Expr | None) -> Path | None:
    """The column that an expression is, or a field inside it; None where it is anything else."""
    expression = unwrapped(expression)
    if isinstance(expression, exp.Column) and not isinstance(expression.this, exp.Star):
        return tuple(part.name for part in expression.parts)
    if isinstance(expression, exp.Dot) and isinstance(expression.expression, exp.Identifier):
        above = path_of(expression.this)
        return None if above is None else (*above, expression.expression.name)
    return None


def paths_in(expression: exp.Expr) -> tuple[Path, ...]:
    """Every column in an expression once, without those of queries inside it."""
    found: dict[Path, None] = {}
    waiting: list[exp.Expr] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, NESTED_QUERIES):
            continue
        path = path_of(node) if isinstance(node, (exp.Column, exp.Dot)) else None
        if path is not None:
            found[path] = None
        else:
            waiting.extend(reversed([*node.iter_expressions()]))
    return tuple(found)


def unwrapped(expression: exp.Expr | None) -> exp.Expr | None:
    """An expression without parentheses around it."""
    while isinstance(expression, exp.Paren):
        expression = expression.this
    return expression


def literal_of(expression: exp.Expr | None) -> Literal | None:
    """The value of an expression without columns: dropped where it is none that can be written down.

    None where it has columns, or differs from row to row.
    """
    expression = unwrapped(expression)
    if expression is None:
        return None
    known = _plain_literal(expression)
    if known is not None:
        return known
    if any(isinstance(node, (exp.Column, *_DIFFERS_BY_CALL)) for node in expression.walk()):
        return None
    return Literal(LiteralKind.DROPPED)


def _plain_literal(expression: exp.Expr) -> Literal | None:
    found: Literal | None = None
    match expression:
        case exp.Null():
            found = Literal(LiteralKind.NULL)
        case exp.Boolean():
            found = Literal(LiteralKind.BOOLEAN, "true" if expression.this else "false")
        case exp.Literal(is_string=False):
            found = number(expression.name)
        case exp.Literal() | exp.National() | exp.RawString() | exp.UnicodeString():
            found = Literal(LiteralKind.STRING, expression.name)
        case exp.Neg():
            inner = literal_of(expression.this)
            found = number(f"-{inner.text}") if inner is not None and inner.kind is LiteralKind.NUMBER else None
        case exp.Cast() | exp.TryCast():
            inner = literal_of(expression.this)
            found = None if inner is None else _typed(inner, expression.to)
        case exp.Date() | exp.TsOrDsToDate():
            inner = literal_of(expression.this)
            is_date = inner is not None and inner.kind is LiteralKind.STRING
            has_more = expression.args.get("expressions") or expression.args.get("format")
            found = date(inner.text) if inner is not None and is_date and not has_more else None
    return found


def _typed(inner: Literal, to: exp.DataType) -> Literal:
    """A literal that the text gives a type: ``DATE '2026-01-01'``, ``BIGINT '5'``, ``CAST(5 AS DOUBLE)``."""
    found = Literal(LiteralKind.DROPPED)
    is_number = to.is_type(*exp.DataType.NUMERIC_TYPES)
    keeps_type = {
        LiteralKind.NULL: True,
        LiteralKind.NUMBER: is_number,
        LiteralKind.BOOLEAN: to.is_type(exp.DataType.Type.BOOLEAN),
    }
    if keeps_type.get(inner.kind):
        found = inner
    elif inner.kind is LiteralKind.STRING:
        if to.is_type(*exp.DataType.TEXT_TYPES, exp.DataType.Type.UUID):
            found = inner
        elif to.is_type(exp.DataType.Type.DATE, exp.DataType.Type.DATE32):
            found = date(inner.text)
        elif to.is_type(*exp.DataType.TEMPORAL_TYPES):
            found = timestamp(inner.text)
        elif is_number:
            found = number(inner.text)
        elif to.is_type(exp.DataType.Type.BOOLEAN) and inner.text.lower() in {"true", "false"}:
            found = Literal(LiteralKind.BOOLEAN, inner.text.lower())
    elif inner.kind is not LiteralKind.DROPPED and to.is_type(*exp.DataType.TEXT_TYPES):
        found = Literal(LiteralKind.STRING, inner.text)
    return found


def _conjuncts(expression: exp.Expr) -> Iterator[tuple[exp.Expr, bool]]:
    """The parts that hold at once, each with whether it is negated; ``NOT (a OR b)`` is two."""
    waiting: list[tuple[exp.Expr | None, bool]] = [(expression, False)]
    while waiting:
        node, negated = waiting.pop()
        node = unwrapped(node)
        if node is None:
            continue
        if isinstance(node, exp.Not):
            waiting.append((node.this, not negated))
        elif isinstance(node, exp.Or if negated else exp.And):
            waiting += [(node.expression, negated), (node.this, negated)]
        else:
            yield node, negated


def _condition(node: exp.Expr, *, negated: bool) -> Iterator[Condition | Pair]:
    if isinstance(node, exp.In) and node.args.get("query"):
        return  # a join
    parts = [*_parts(node)]
    if not negated:
        yield from parts
    elif len(parts) == 1 and isinstance(parts[0], Condition) and parts[0].operator in NEGATED:
        yield Condition(parts[0].column, NEGATED[parts[0].operator], parts[0].literals)
    else:
        yield from _others(node)


def _parts(node: exp.Expr) -> Iterator[Condition | Pair]:
    """What one conjunct says; a range is two."""
    column = path_of(node)
    if node.args.get("negate"):  # NOT LIKE
        yield from _others(node)
    elif column is not None:
        yield Condition(column, Operator.EQ, (Literal(LiteralKind.BOOLEAN, "true"),))
    elif type(node) in _COMPARISONS:
        yield from _comparison(node, _COMPARISONS[type(node)])
    elif isinstance(node, exp.Between):
        yield from _between(node)
    elif isinstance(node, exp.In):
        yield from _membership(node)
    elif isinstance(node, exp.Is):
        yield from _is(node)
    elif isinstance(node, (exp.Like, exp.StartsWith)):
        yield from _starts_with(node)
    elif isinstance(node, exp.Or):
        yield from _one_of(node)
    else:
        yield from _others(node)


def _others(node: exp.Expr) -> Iterator[Condition]:
    for path in paths_in(node):
        yield Condition(path, Operator.OTHER)


def _comparison(node: exp.Expr, operator: Operator) -> Iterator[Condition | Pair]:
    left, right = unwrapped(node.this), unwrapped(node.expression)
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple) and operator is Operator.EQ:
        if len(left.expressions) == len(right.expressions):
            for one, other in zip(left.expressions, right.expressions, strict=True):
                yield from _comparison(exp.EQ(this=one, expression=other), operator)
        else:
            yield from _others(node)
        return
    one, other = path_of(left), path_of(right)
    if one is not None and other is not None and operator is Operator.EQ:
        yield Pair(one, other)
        return
    column, value, how = (one, right, operator) if one is not None else (other, left, _FLIPPED[operator])
    literal = literal_of(value)
    if column is None or literal is None:
        yield from _others(node)
    elif literal.kind is not LiteralKind.NULL:
        yield Condition(column, how, (literal,))
    elif isinstance(node, exp.NullSafeEQ):
        yield Condition(column, Operator.IS_NULL)
    else:
        yield Condition(column, Operator.OTHER)  # holds for no row at all


def _between(node: exp.Between) -> Iterator[Condition]:
    column = path_of(node.this)
    low, high = literal_of(node.args.get("low")), literal_of(node.args.get("high"))
    if column is None or low is None or high is None or node.args.get("symmetric"):
        yield from _others(node)
    else:
        yield Condition(column, Operator.GT_EQ, (low,))
        yield Condition(column, Operator.LT_EQ, (high,))


def _membership(node: exp.In) -> Iterator[Condition]:
    column = path_of(node.this)
    literals = _all_known(map(literal_of, node.expressions))
    if column is None or not literals or node.args.get("unnest"):
        yield from _others(node)
    elif len(literals) == 1:
        yield Condition(column, Operator.EQ, literals)
    else:
        yield Condition(column, Operator.IN, literals)


def _is(node: exp.Is) -> Iterator[Condition]:
    column, value = path_of(node.this), literal_of(node.expression)
    if column is None or value is None:
        yield from _others(node)
    elif value.kind is LiteralKind.NULL:
        yield Condition(column, Operator.IS_NULL)
    elif value.kind is LiteralKind.BOOLEAN:
        yield Condition(column, Operator.EQ, (value,))
    else:
        yield from _others(node)


def _starts_with(node: exp.Like | exp.StartsWith) -> Iterator[Condition]:
    column, value = path_of(node.this), literal_of(node.expression)
    if column is None or value is None or value.kind is not LiteralKind.STRING:
        yield from _others(node)
        return
    prefix = value.text if isinstance(node, exp.StartsWith) else value.text[:-1]
    is_prefix = isinstance(node, exp.StartsWith) or (value.text.endswith("%") and not re.search(r"[%_\\]", prefix))
    if is_prefix and prefix:
        yield Condition(column, Operator.STARTS_WITH, (Literal(LiteralKind.STRING, prefix),))
    elif isinstance(node, exp.Like) and not re.search(r"[%_\\]", value.text):
        yield Condition(column, Operator.EQ, (value,))
    else:
        yield from _others(node)


def _one_of(node: exp.Or) -> Iterator[Condition]:
    """Equalities on one column, connected by OR, are an IN."""
    parts: list[Condition | Pair] = []
    waiting: list[exp.Expr | None] = [node]
    while waiting:
        branch = unwrapped(waiting.pop())
        if isinstance(branch, exp.Or):
            waiting += [branch.expression, branch.this]
        elif branch is not None and not isinstance(branch, exp.And):
            found = [*_condition(branch, negated=False)]
            parts += found if len(found) == 1 else [Pair((), ())]
        else:
            parts.append(Pair((), ()))
    equalities = [part for part in parts if isinstance(part, Condition) and part.operator in {Operator.EQ, Operator.IN}]
    if len(equalities) == len(parts) and len({part.column for part in equalities}) == 1:
        literals = tuple(dict.fromkeys(literal for part in equalities for literal in part.literals))
        yield Condition(equalities[0].column, Operator.IN if len(literals) > 1 else Operator.EQ, literals)
    else:
        yield from _others(node)


def _all_known(literals: Iterable[Literal | None]) -> tuple[Literal, ...]:
    """All of them, or none where one is not known."""
    found = tuple(literals)
    return tuple(literal for literal in found if literal is not None) if all(found) else ()
