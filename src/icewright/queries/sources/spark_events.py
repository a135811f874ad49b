"""Spark's event logs: each SQL execution that reads Iceberg tables becomes a record.

A log is read line by line, also while Spark writes it: a line without its end is left for the next time. Most logs do
not have the text of queries: Spark has it where they come from its own command line or Thrift server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from icewright.core.errors import InvalidMessage, InvalidName
from icewright.core.times import Instant
from icewright.model.queries.queries import QueryRecord, QuerySource, TableRead
from icewright.queries.sources import documents
from icewright.queries.sources.documents import Object
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.sources.spark_plans import PlanScan, read_plan
from icewright.queries.sources.sql_text import ParsedSql, SqlDialect, UnreadableSql, parse

_SQL: Final = "org.apache.spark.sql.execution.ui.SparkListener"
_EVENT: Final = re.compile(rb'\s*\{\s*"Event"\s*:\s*"([\w.$]+)"')
_EXECUTION: Final = re.compile(rb'"executionId"\s*:\s*(\d{1,18})')
_PREFIX_LENGTH: Final = 300
_ROLLED: Final = re.compile(r"events_(\d+)_(?!.*\.crc\Z).*")
_COMPACTED: Final = ".compact"
_UNREAD_CODECS: Final = (".lz4", ".lzf", ".snappy")
_BLOCK_BYTES: Final = 1 << 20
_OPEN_MAX: Final = 10_000
_IS_SQL: Final = re.compile(
    r"\s*(?:SELECT|WITH|INSERT|MERGE|UPDATE|DELETE|CREATE|FROM)\b.*\s", re.IGNORECASE | re.DOTALL
)
_NANOS: Final = 1_000_000
_ROWS: Final = "number of output rows"
_FILES: Final = "number of result data files"
_SKIPPED: Final = "number of skipped data files"
_BYTES: Final = "total data file size (bytes)"
_SPLITS: Final = "number of file splits read"


@dataclass(slots=True)
class _Execution:
    """A query that runs."""

    started_at: Instant
    description: str
    plan: Any
    adapted: bytes = b""
    values: dict[int, int] = field(default_factory=dict)
    stages: set[int] = field(default_factory=set)
    cpu_ns: int = 0
    bytes_read: int = 0
    rows_read: int = 0


class SparkEventLog:
    """One application, event by event."""

    def __init__(self, rules: LiteralRules) -> None:
        self._rules = rules
        self._version = self._application = self._user = ""
        self._open: dict[int, _Execution] = {}
        self._stages: dict[int, _Execution] = {}
        self._handlers: dict[str, Callable[[Object], None]] = {
            "SparkListenerLogStart": self._start_log,
            "SparkListenerApplicationStart": self._start_application,
            "SparkListenerJobStart": self._start_job,
            "SparkListenerTaskEnd": self._end_task,
            f"{_SQL}SQLExecutionStart": self._start_execution,
            f"{_SQL}DriverAccumUpdates": self._update_values,
        }

    def read(self, line: bytes) -> QueryRecord | None:
        """The record of the query that ends with this line. Raises :class:`InvalidMessage` for a line that is none."""
        event = _EVENT.match(line)
        if event is None:
            if not line.strip():
                return None
            raise InvalidMessage("not an event of Spark")
        name = event[1].decode()
        if name == f"{_SQL}SQLAdaptiveExecutionUpdate":
            self._adapt(line)
        elif name == f"{_SQL}SQLExecutionEnd":
            return self._end_execution(documents.json_object(line))
        elif name in self._handlers:
            self._handlers[name](documents.json_object(line))
        return None

    def _start_log(self, event: Object) -> None:
        self._version = documents.text(event, "Spark Version")

    def _start_application(self, event: Object) -> None:
        attempt = documents.text(event, "App Attempt ID")
        self._application = documents.text(event, "App ID") + (f"/{attempt}" if attempt else "")
        self._user = documents.text(event, "User")

    def _start_execution(self, event: Object) -> None:
        if len(self._open) >= _OPEN_MAX:
            self._close(next(iter(self._open)))  # one that never ended
        at = documents.epoch_ms(event, "time")
        description = documents.text(event, "description", longest=None)
        self._open[_execution_id(event)] = _Execution(at, description, event.get("sparkPlanInfo"))

    def _adapt(self, line: bytes) -> None:
        """Plans change while they run: the last one counts, and is read when the query ends."""
        found = _EXECUTION.search(line, 0, _PREFIX_LENGTH)
        execution = self._open.get(int(found[1])) if found else None
        if execution is not None:
            execution.adapted = line

    def _start_job(self, event: Object) -> None:
        properties = documents.inner(event, "Properties")
        number = documents.whole(properties, "spark.sql.execution.id")
        execution = None if number is None else self._open.get(number)
        if execution is None:
            return
        for stage in documents.items(event, "Stage IDs"):
            if isinstance(stage, int):
                self._stages[stage] = execution
                execution.stages.add(stage)

    def _end_task(self, event: Object) -> None:
        execution = self._stages.get(documents.whole(event, "Stage ID") or 0)
        info, metrics = documents.inner(event, "Task Info"), documents.inner(event, "Task Metrics")
        if execution is None or info.get("Failed") is True:
            return
        for update in documents.objects(info, "Accumulables"):
            if update.get("Metadata") == "sql":
                number, value = documents.whole(update, "ID"), documents.count_of(update.get("Update"))
                if number is not None and value is not None:
                    execution.values[number] = execution.values.get(number, 0) + value
        execution.cpu_ns += documents.whole(metrics, "Executor CPU Time") or 0
        execution.cpu_ns += documents.whole(metrics, "Executor Deserialize CPU Time") or 0
        read = documents.inner(metrics, "Input Metrics")
        execution.bytes_read += documents.whole(read, "Bytes Read") or 0
        execution.rows_read += documents.whole(read, "Records Read") or 0

    def _update_values(self, event: Object) -> None:
        execution = self._open.get(_execution_id(event))
        if execution is None:
            return
        for update in documents.items(event, "accumUpdates"):
            if isinstance(update, list) and len(update) == 2:  # noqa: PLR2004 - id and value
                number, value = (documents.count_of(part) for part in update)
                if number is not None and value is not None:
                    execution.values[number] = value

    def _close(self, number: int) -> _Execution | None:
        execution = self._open.pop(number, None)
        for stage in execution.stages if execution is not None else ():
            self._stages.pop(stage, None)
        return execution

    def _end_execution(self, event: Object) -> QueryRecord | None:
        number, ended = _execution_id(event), documents.epoch_ms(event, "time")
        execution = self._close(number)
        if execution is None:
            return None
        plan = execution.plan
        if execution.adapted:
            plan = documents.json_object(execution.adapted).get("sparkPlanInfo")
        try:
            found = read_plan(plan)
        except InvalidName as error:
            raise InvalidMessage(error.message, hint=error.hint) from error
        if not found.scans:
            return None
        parsed = _sql(execution.description)
        record = QueryRecord(
            query_id=f"{self._application}/{number}",
            source=QuerySource.SPARK,
            engine=f"spark {self._version}".strip(),
            user=self._user,
            started_at=execution.started_at,
            duration_ms=ended - execution.started_at if ended >= execution.started_at else None,
            cpu_ms=documents.count_of(execution.cpu_ns // _NANOS),
            bytes_read=documents.count_of(execution.bytes_read)
            or None,  # of storages that Hadoop does not count, it says 0
            rows_read=documents.count_of(execution.rows_read),
            splits=documents.total_of(execution.values.get(scan.metrics.get(_SPLITS, -1)) for scan in found.scans),
            limit=found.limit,
            succeeded=not documents.text(event, "errorMessage", longest=None),
            sql=execution.description if parsed is not None else "",
            tables=tuple(_table(scan, execution.values) for scan in found.scans),
        )
        return self._rules.record(record, parsed)


def _execution_id(event: Object) -> int:
    number = documents.whole(event, "executionId")
    if number is None:
        raise InvalidMessage("executionId is missing")
    return number


def _sql(description: str) -> ParsedSql | None:
    """The text of a query, where the description is one: else it says where in a program it was run."""
    if _IS_SQL.match(description) is None:
        return None
    try:
        return parse(description, SqlDialect.SPARK)
    except UnreadableSql:
        return None


def _table(scan: PlanScan, values: dict[int, int]) -> TableRead:
    said = {name: documents.count_of(values.get(number)) for name, number in scan.metrics.items()}
    behind = documents.count_of(values.get((scan.filter_metrics or {}).get(_ROWS, -1)))
    return TableRead(
        scan.table,
        scan.columns,
        scan.filters,
        tuple(scan.group_by),
        tuple(scan.order_by),
        tuple(scan.joined_on),
        tuple(scan.aggregates),
        scan.snapshot_id,
        files_read=said.get(_FILES),
        files_skipped=said.get(_SKIPPED),
        bytes_planned=said.get(_BYTES),
        rows_read=said.get(_ROWS),
        rows_after=said.get(_ROWS) if scan.filter_metrics is None else behind,
    )


def read_event_log(path: Path, rules: LiteralRules, refused: Callable[[InvalidMessage], None]) -> Iterator[QueryRecord]:
    """The records of a log: a file, or the folder of one that is rolled. ``refused`` is called for lines that are none.

    Raises :class:`InvalidMessage` for a log that is compressed in a way that cannot be read here.
    """
    log = SparkEventLog(rules)
    for line in complete_lines(event_files(path)):
        try:
            record = log.read(line)
        except InvalidMessage as error:
            refused(error)
            continue
        if record is not None:
            yield record


def event_files(path: Path) -> tuple[Path, ...]:
    """The files of a log in their order; those that a compacted one stands for are left out."""
    if not path.is_dir():
        return (path,)
    found = sorted((int(match[1]), file) for file in path.iterdir() if (match := _ROLLED.fullmatch(file.name)))
    compacted = [number for number, file in found if file.name.endswith(_COMPACTED)]
    first = max(compacted, default=0)
    return tuple(
        file for number, file in found if number > first or (number == first and file.name.endswith(_COMPACTED))
    )


def complete_lines(files: Iterable[Path]) -> Iterator[bytes]:
    """The lines of files that have their end. Raises :class:`InvalidMessage`."""
    for file in files:
        name = file.name.removesuffix(_COMPACTED).removesuffix(".inprogress")
        if name.endswith(_UNREAD_CODECS):
            raise InvalidMessage(
                f"the event log {file.name} is compressed by {name.rpartition('.')[2]}",
                hint="set spark.eventLog.compression.codec to zstd, or spark.eventLog.compress to false",
            )
        rest = b""
        for block in _blocks(file, "zstd" if name.endswith(".zstd") else None):
            *lines, rest = (rest + block).split(b"\n")
            yield from lines


def _blocks(file: Path, codec: str | None) -> Iterator[bytes]:
    with pa.input_stream(str(file), compression=codec) as stream:
        while True:
            try:
                block = stream.read(_BLOCK_BYTES)
            except OSError as error:
                if "Truncated" in str(error):
                    return  # Spark still writes it
                raise
            if not block:
                return
            yield block
