"""Queries of a table as the API shows them: templates, and each column by how it is filtered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icewright.core.times import Instant
from icewright.model.queries.templates import Sums, Template, TemplateWeek


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of queries that were sent: ``repeated`` ones were known by their ids.

    ``ignored`` ones read no table of a configured catalog; ``malformed`` are no queries, and set aside.
    """

    accepted: int
    repeated: int
    ignored: int
    malformed: int = 0


@dataclass(frozen=True, slots=True)
class TemplateView:
    """Queries that differ in their literals alone. ``text`` says the template in words."""

    fingerprint: str
    text: str
    template: Template
    sums: Sums


@dataclass(frozen=True, slots=True)
class FilteredColumnView:
    """A column that queries filter by: in how many, which read how much, by which operators."""

    column: str
    queries: int
    bytes_read: int
    operators: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TableQueries:
    """The queries of one table in the weeks since ``since``.

    ``total`` sums all of them. ``opened_share`` is the share of data files that they opened, of those that engines
    reported; null where none did. ``templates`` begin with the one that read most bytes; of more than ``limit``,
    ``templates_left_out`` are not shown.
    """

    since: Instant
    total: Sums
    opened_share: float | None
    columns: tuple[FilteredColumnView, ...]
    templates: tuple[TemplateView, ...]
    templates_left_out: int


@dataclass(frozen=True, slots=True)
class TableReadsView:
    """A table, by its name, and what queries read of it."""

    table: str
    catalog: str
    uuid: str
    queries: int
    bytes_read: int


def table_queries(weeks: Sequence[TemplateWeek], since: Instant, limit: int) -> TableQueries:
    """The weeks of a table, summed."""
    sums: dict[Template, Sums] = {}
    for week in weeks:
        sums[week.template] = sums.get(week.template, Sums()) + week.sums
    ranked = sorted(sums.items(), key=lambda item: (-item[1].bytes_read, -item[1].queries, item[0].fingerprint))
    total = Sums()
    for each in sums.values():
        total = total + each
    files = total.files_read + total.files_skipped
    shown = tuple(
        TemplateView(template.fingerprint, str(template), template, each) for template, each in ranked[:limit]
    )
    return TableQueries(
        since,
        total,
        total.files_read / files if files else None,
        _columns(sums),
        shown,
        len(ranked) - len(shown),
    )


def _columns(sums: Mapping[Template, Sums]) -> tuple[FilteredColumnView, ...]:
    queries, bytes_read, operators = Counter[str](), Counter[str](), dict[str, Counter[str]]()
    for template, each in sums.items():
        for filtered in template.filters:
            queries[filtered.column] += each.queries
            bytes_read[filtered.column] += each.bytes_read
            by_operator = operators.setdefault(filtered.column, Counter())
            by_operator.update({operator.value: each.queries for operator in filtered.operators})
    ranked = sorted(queries, key=lambda column: (-bytes_read[column], -queries[column], column))
    return tuple(FilteredColumnView(name, queries[name], bytes_read[name], dict(operators[name])) for name in ranked)
