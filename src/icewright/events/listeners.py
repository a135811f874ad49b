"""Starts what fetches events for a server: a thread for the Kafka topic, and one for each metastore's log."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from icewright.config.model import Config, KafkaConfig
from icewright.config.secrets import resolve_entry
from icewright.core.extras import require_extra
from icewright.core.system_clock import running
from icewright.events.intake import Intake
from icewright.events.listener import FETCH_S, Listener
from icewright.events.settings import kafka_config
from icewright.events.sources.cursors import SqlCursors
from icewright.events.sources.port import EventSource

_END_S = 10 * FETCH_S
"""How long the end of the server waits for them: what was fetched and is not acknowledged comes again."""


@contextmanager
def listening_to_events(
    config: Config, environ: Mapping[str, str], intake: Intake, cursors: SqlCursors
) -> Iterator[None]:
    """Listen to all sources of a configuration while the block runs. Raises :class:`InvalidConfiguration`."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=Listener(source, intake).run, args=(stop,), name=source.name, daemon=True)
        for source in _sources(config, environ, cursors)
    ]
    with running(threads, stop, _END_S):
        yield


def _sources(config: Config, environ: Mapping[str, str], cursors: SqlCursors) -> list[EventSource]:
    entries = [resolve_entry(config.catalog(name), environ) for name in config.events.hive]
    found: list[EventSource] = []
    if entries:
        from icewright.events.sources.hive_notifications import (  # noqa: PLC0415 - it takes a second of CPU to load
            HiveNotifications,
        )

        found += [HiveNotifications(entry, cursors, config.events.hive_interval_ms / 1000) for entry in entries]
    kafka = kafka_config(config.events.kafka, environ)
    return found if kafka is None else [*found, _kafka(kafka)]


def _kafka(kafka: KafkaConfig) -> EventSource:
    require_extra("kafka", "events from Kafka")
    from icewright.events.sources.kafka import KafkaSource  # noqa: PLC0415 - its client is an extra

    return KafkaSource(kafka.brokers, kafka.topic, kafka.group, kafka.properties)
