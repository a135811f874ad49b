"""What a server listens to, by its configuration."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest

from icewright.config.model import Config
from icewright.configuration.load import load_config
from icewright.core.errors import InvalidConfiguration
from icewright.events.listeners import listening_to_events
from icewright.events.sources.cursors import SqlCursors
from icewright.model.events.events import Channel
from tests.builders.served import EVENTS, Served
from tests.servers.mock_kafka import mock_kafka, send
from tests.waiting import until


def config_of(folder: Path, brokers: str) -> Config:
    (folder / "icewright.toml").write_text(f'[events.kafka]\nbrokers = "{brokers}"\ntopic = "commits"\n')
    return load_config(None, {"HOME": str(folder)}, folder)


def test_a_topic_is_listened_to_while_the_server_runs_and_no_longer(tmp_path: Path) -> None:
    served, before = Served(), threading.active_count()
    with mock_kafka() as kafka:
        send(kafka.brokers, kafka.topic("commits"), json.dumps({"table_name": str(EVENTS), "snapshot_id": 5}).encode())
        config = config_of(tmp_path, kafka.brokers)
        with listening_to_events(config, {}, served.control.intake, SqlCursors(served.engine)):
            until(lambda: served.control.tables.inbox(1))
    (stored,) = served.control.tables.inbox(9)
    assert (stored.event.table_name, stored.event.snapshot_id, stored.channel) == (EVENTS, 5, Channel.KAFKA)
    assert threading.active_count() == before


def test_a_broker_that_is_away_keeps_no_server_from_starting_and_none_from_ending(tmp_path: Path) -> None:
    served = Served()
    config = config_of(tmp_path, "127.0.0.1:1")
    with listening_to_events(config, {}, served.control.intake, SqlCursors(served.engine)):
        assert served.control.tables.inbox(9) == []


def test_a_missing_client_is_said_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    served = Served()
    with (
        pytest.raises(InvalidConfiguration, match="Kafka") as refused,
        listening_to_events(config_of(tmp_path, "a:1"), {}, served.control.intake, SqlCursors(served.engine)),
    ):
        pass
    assert "icewright[kafka]" in refused.value.hint
