"""Puts the query log of a server together, and counts what comes into it for as long as the server runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from icewright.config.model import Config
from icewright.config.secrets import resolve, resolve_entry
from icewright.core.clock import Clock
from icewright.core.errors import Unavailable, Unreadable
from icewright.core.extras import require_extra
from icewright.core.system_clock import running
from icewright.events.settings import kafka_config
from icewright.model.queries.queries import LiteralPolicy
from icewright.ports.store import TableStore
from icewright.queries.event_logs import EventLogReader
from icewright.queries.log_table import QueryLogTable
from icewright.queries.service import QueryCounter, QueryLog
from icewright.queries.sources.literals import LiteralRules
from icewright.queries.spool import QuerySpool
from icewright.queries.sql import SqlQuerySums

if TYPE_CHECKING:
    from icewright.queries.kafka import TrinoTopic

_log = structlog.get_logger("icewright.queries")

_END_S: Final = 10.0
"""How long the end of the server waits for a commit; whether it was made, the table says to the next one."""


@dataclass(frozen=True)
class OpenedSpool:
    """A spool, and what is kept of the values in queries that come into it."""

    spool: QuerySpool
    rules: LiteralRules


@contextmanager
def open_spool(
    config: Config, environ: Mapping[str, str], clock: Clock, lasting_key: Callable[[], str]
) -> Iterator[OpenedSpool | None]:
    """The spool in the state directory of a server, closed behind the block; ``lasting_key`` is kept there, too.

    None where it cannot be used: tables are looked after without a query log as well. Raises
    :class:`InvalidConfiguration` for a key that is configured and is not there.
    """
    queries = config.queries
    try:
        key = b""
        if queries.literals is LiteralPolicy.HASH and queries.hash_key is None:
            key = lasting_key().encode()
        elif queries.hash_key is not None:
            key = resolve(queries.hash_key, key="queries.hash_key", environ=environ).encode()
        rules = LiteralRules(queries.literals, key)
        spool = QuerySpool(config.server.state_dir / "queries.db", queries.spool_bytes, clock)
    except (Unavailable, Unreadable, OSError) as error:
        _log.error("no query log", detail=str(error))
        yield None
        return
    with closing(spool):
        yield OpenedSpool(spool, rules)


def build_query_log(
    config: Config,
    catalogs: Collection[str],
    tables: TableStore,
    clock: Clock,
    opened: OpenedSpool | None,
    sums: SqlQuerySums,
) -> QueryLog:
    """The query log over a spool and a store."""
    queries = config.queries
    if opened is None:
        return QueryLog(catalogs, tables, clock, None, sums, queries.catalogs)
    return QueryLog(catalogs, tables, clock, opened.spool, sums, queries.catalogs, opened.rules, queries.name)


def _topic(config: Config, environ: Mapping[str, str], log: QueryLog) -> TrinoTopic | None:
    """The topic of a configuration, to be read into a log; None where there is none."""
    kafka = kafka_config(config.queries.kafka, environ, "queries", "icewright-queries")
    if kafka is None:
        return None
    require_extra("kafka", "queries from Kafka")
    from icewright.queries.kafka import QueriesTopic, TrinoTopic  # noqa: PLC0415 - its client is an extra

    return TrinoTopic(QueriesTopic(kafka.brokers, kafka.topic, kafka.group, kafka.properties), log)


@contextmanager
def counting_queries(config: Config, environ: Mapping[str, str], log: QueryLog, clock: Clock) -> Iterator[None]:
    """Count what comes in, and read the event logs that are configured, while the block runs.

    Raises :class:`InvalidConfiguration`.
    """
    if not log.is_kept:
        yield
        return
    log.adopt_spool()
    name = config.queries.name
    table = None if name is None else QueryLogTable(resolve_entry(config.catalog(name.catalog), environ), name)
    stop = threading.Event()
    runs = [QueryCounter(log, table).run]
    if config.queries.event_logs:
        runs.append(EventLogReader(log, config.queries.event_logs, clock).run)
    topic = _topic(config, environ, log)
    if topic is not None:
        runs.append(topic.run)
    threads = [threading.Thread(target=run, args=(stop,), name="queries", daemon=True) for run in runs]
    with running(threads, stop, _END_S):
        yield
