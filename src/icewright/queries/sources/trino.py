"""Trino's events: a QueryCompletedEvent, as its HTTP and Kafka event listeners send it, becomes a record.

What a scan filters by comes from the plan: Trino has moved conditions down to it, derived some from joins, and given
literals their types. Groups, orders and joins come from the SQL, and filters of columns that the plan says nothing of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from icewright.core.errors import InvalidMessage, InvalidName
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import Filter, Operator, QueryRecord, QuerySource, TableRead
from icewright.queries.sources import documents
from icewright.queries.sources.documents import Object
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.sql import Defaults, SqlReads, reads_of
from icewright.queries.sources.sql_text import ParsedSql, SqlDialect, UnreadableSql, parse
from icewright.queries.sources.trino_plans import PlannedScan, planned_scans

_CONNECTOR: Final = "iceberg"
_STATES: Final = {"FINISHED": True, "FAILED": False}
_VALUES_SHOWN_IN_PLANS: Final = 32
"""Of longer lists the plan says their range only."""


def read_event(document: bytes | str | Object, rules: LiteralRules) -> QueryRecord | None:
    """The record of a QueryCompletedEvent; None for any other event. Raises :class:`InvalidMessage`."""
    event = documents.json_object(document) if isinstance(document, (bytes, str)) else document
    payload = event.get("eventPayload")  # around it, Kafka's messages may have an envelope
    event = payload if isinstance(payload, dict) else event
    if event.get("statistics") is None or event.get("endTime") is None or event.get("metadata") is None:
        return None
    try:
        return _record(event, rules)
    except InvalidName as error:
        raise InvalidMessage(error.message, hint=error.hint) from error


def _record(event: Object, rules: LiteralRules) -> QueryRecord:
    metadata, statistics, context = (documents.inner(event, key) for key in ("metadata", "statistics", "context"))
    state = documents.required_text(metadata, "queryState")
    if state not in _STATES:
        raise InvalidMessage(f"the state of a completed query is FINISHED or FAILED, not {state[:40]!r}")
    started, ended = documents.instant(event, "createTime"), documents.instant(event, "endTime")
    if started is None or ended is None:
        raise InvalidMessage("createTime or endTime is missing")
    version = documents.text(context, "serverVersion")
    inputs = [one for one in documents.objects(documents.inner(event, "ioMetadata"), "inputs") if _is_iceberg(one)]
    text = documents.text(metadata, "query", longest=None)
    parsed, said = _sql(text, context, inputs, documents.objects(metadata, "tables"))
    record = QueryRecord(
        query_id=documents.required_text(metadata, "queryId"),
        source=QuerySource.TRINO,
        engine=f"trino {version}".strip(),
        user=documents.text(context, "user"),
        started_at=started,
        duration_ms=ended - started if ended >= started else None,
        cpu_ms=documents.seconds_as_ms(statistics, "cpuTime"),
        bytes_read=documents.whole(statistics, "physicalInputBytes"),
        rows_read=documents.whole(statistics, "physicalInputRows"),
        splits=documents.whole(statistics, "completedSplits"),
        limit=said.limit,
        succeeded=_STATES[state],
        sql=text,
        tables=_tables(inputs, planned_scans(metadata, statistics, map(_planned_as, inputs)), said.tables),
    )
    return rules.record(record, parsed)


def _is_iceberg(one: Object) -> bool:
    return documents.text(one, "connectorName") == _CONNECTOR


def _name(one: Object) -> TableName:
    catalog, schema, table = (documents.required_text(one, key) for key in ("catalogName", "schema", "table"))
    return TableName(catalog, (schema,), table)


def _planned_as(one: Object) -> str:
    """How the plan begins to name this input."""
    name = _name(one)
    return f"{name.catalog}:{name.namespace[0]}.{name.name}$data"


def _columns(one: Object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(documents.required_text(column, "name") for column in documents.objects(one, "columns")))


def _sql(
    text: str, context: Object, inputs: Sequence[Object], analysed: Sequence[Object]
) -> tuple[ParsedSql | None, SqlReads]:
    """The query's text and what it reads; nothing of a text that cannot be read."""
    schemas: dict[TableName, tuple[str, ...]] = {}
    for one in inputs:
        schemas[_name(one)] = tuple(dict.fromkeys((*schemas.get(_name(one), ()), *_columns(one))))
    for one in analysed:  # columns that the optimizer has no more need of
        parts = [documents.text(one, key) for key in ("catalog", "schema", "table")]
        name = TableName(parts[0], (parts[1],), parts[2]) if all(parts) else None
        if name in schemas:
            more = (documents.required_text(column, "column") for column in documents.objects(one, "columns"))
            schemas[name] = tuple(dict.fromkeys((*schemas[name], *more)))
    catalog = documents.text(context, "catalog") or "(none)"
    schema = documents.text(context, "schema") or "(none)"
    try:
        parsed = parse(text, SqlDialect.TRINO)
    except UnreadableSql:
        return None, SqlReads()
    try:
        return parsed, reads_of(parsed, Defaults(catalog, (schema,), schemas))
    except UnreadableSql:
        return parsed, SqlReads()


def _tables(inputs: Sequence[Object], scans: Sequence[PlannedScan], said: Sequence[TableRead]) -> tuple[TableRead, ...]:
    """Each input with its scan of the plan and what the SQL says of it."""
    scans_left, said_left = [*scans], [*said]
    times = Counter(map(_name, inputs))
    reads: list[TableRead] = []
    for one in inputs:
        scan = _scan_of(one, scans_left)
        read = _physical(one, scan)
        words = _words_for(read, said_left)
        reads.append(_with_words(read, words, is_known=scan is not None, is_only=times[read.table] == 1))
    return tuple(reads)


def _scan_of(one: Object, left: list[PlannedScan]) -> PlannedScan | None:
    """The scan of the plan that an input is: of the same columns, where a table is read twice."""
    begins, columns = _planned_as(one), {*_columns(one)}
    found = [scan for scan in left if scan.begins == begins]
    found.sort(key=lambda scan: len(columns ^ {*scan.columns}))
    if not found:
        return None
    left.remove(found[0])
    return found[0]


def _physical(one: Object, scan: PlannedScan | None) -> TableRead:
    connector = documents.inner(one, "connectorInfo")
    total = documents.whole(connector, "totalDataFiles")
    files = None if scan is None else scan.files
    return TableRead(
        table=_name(one),
        columns=_columns(one),
        filters=() if scan is None else scan.filters,
        snapshot_id=documents.whole(connector, "snapshotId"),
        files_read=files,
        files_skipped=total - files if total is not None and files is not None and total >= files else None,
        bytes_planned=None if scan is None else scan.bytes_planned,
        bytes_read=documents.whole(one, "physicalInputBytes"),
        rows_read=documents.whole(one, "physicalInputRows"),
        rows_after=None if scan is None else scan.rows_after,
    )


def _words_for(read: TableRead, left: list[TableRead]) -> TableRead | None:
    """What the SQL says of a read: the likeliest of its mentions of the table, each taken once."""
    mentions = [one for one in left if one.table == read.table]
    ours = {(one.column, one.operator) for one in read.filters}
    mentions.sort(key=lambda one: -len(ours & {(each.column, each.operator) for each in one.filters}))
    if not mentions:
        return None
    left.remove(mentions[0])
    return mentions[0]


def _with_words(read: TableRead, words: TableRead | None, *, is_known: bool, is_only: bool) -> TableRead:
    """A read with what the SQL says of it. ``is_known``: the plan says its filters."""
    if words is None:
        return read
    return replace(
        read,
        filters=_filters(read.filters, words.filters if is_only or not is_known else ()),
        group_by=words.group_by,
        order_by=words.order_by,
        joined_on=words.joined_on,
        aggregates=words.aggregates,
    )


def _filters(planned: Sequence[Filter], said: Sequence[Filter]) -> tuple[Filter, ...]:
    """Those of the plan, and of the SQL where the plan says nothing of a column, or less."""
    kept: dict[Filter, None] = {}
    for column in dict.fromkeys(one.column for one in (*planned, *said)):
        of_plan, of_sql = _of_column(planned, column), _of_column(said, column)
        is_vague = all(one.operator is Operator.OTHER for one in of_plan)
        is_cut = any(len(one.literals) > _VALUES_SHOWN_IN_PLANS for one in of_sql)
        kept.update(dict.fromkeys(of_sql if of_sql and (is_vague or is_cut) else of_plan))
    return tuple(kept)


def _of_column(filters: Iterable[Filter], column: str) -> list[Filter]:
    return [one for one in filters if one.column == column]
