"""``[events]``: what may stand there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icewright.config.model import Config, KafkaConfig
from icewright.configuration.load import load_config
from icewright.configuration.show import shown
from icewright.core.errors import InvalidConfiguration
from icewright.events.settings import kafka_config
from tests.cases import each_case

CATALOGS = """
[[catalogs]]
name = "rest"
type = "rest"
uri = "https://example.org"
[[catalogs]]
name = "metastore"
type = "hive"
uri = "thrift://example.org:9083"
"""


def load(folder: Path, events: str, **environ: str) -> Config:
    (folder / "icewright.toml").write_text(CATALOGS + events)
    return load_config(None, {"HOME": str(folder), **environ}, folder)


def test_all_of_it(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
[events]
hive = ["metastore"]
hive_interval_ms = 500
prefixes = { "warehouse-1" = "rest" }
[events.kafka]
brokers = "a:9092,b:9092"
topic = "commits"
[events.kafka.properties]
security.protocol = "SASL_SSL"
sasl.username = "icewright"
sasl.password = "env:KAFKA_PASSWORD"
""",
    )
    assert (config.events.hive, config.events.hive_interval_ms) == (("metastore",), 500)
    assert config.events.prefixes == {"warehouse-1": "rest"}
    properties = {"security.protocol": "SASL_SSL", "sasl.username": "icewright", "sasl.password": "s3cret"}
    kafka = kafka_config(config.events.kafka, {"KAFKA_PASSWORD": "s3cret"})
    assert kafka == KafkaConfig("a:9092,b:9092", "commits", "icewright", properties)
    said = {one.key: one.value for one in shown(config)}
    assert said["events.kafka.properties.sasl.password"] == "env:KAFKA_PASSWORD"
    with pytest.raises(InvalidConfiguration, match="KAFKA_PASSWORD"):
        kafka_config(config.events.kafka, {})


def test_nothing_is_listened_to_by_default_and_the_environment_will_do(tmp_path: Path) -> None:
    assert kafka_config(load(tmp_path, "").events.kafka, {}) is None
    environ = {"ICEWRIGHT_EVENTS__KAFKA__BROKERS": "a:1", "ICEWRIGHT_EVENTS__KAFKA__TOPIC": "t"}
    environ["ICEWRIGHT_EVENTS__HIVE"] = "metastore"
    config = load(tmp_path, "", **environ)
    assert kafka_config(config.events.kafka, {}) == KafkaConfig("a:1", "t", "icewright", {})
    assert config.events.hive == ("metastore",)


@each_case(
    ("events", "said"),
    [
        ('prefixes = { x = "nowhere" }', "no catalog 'nowhere'"),
        ('hive = ["rest"]', "no catalog of type hive"),
        ("hive_interval_ms = 1", "not allowed"),
        ('kafka = { topic = "t" }', "both needed"),
        ('kafka = { topic = "t", brokers = "" }', "unknown, or empty"),
        ('kafka = { topic = "t", brokers = "a:1", password = "x" }', "unknown, or empty"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, events: str, said: str) -> None:
    with pytest.raises(InvalidConfiguration, match=said):
        load(tmp_path, f"[events]\n{events}\n")


@each_case(
    ("key", "value", "said"),
    [
        ("sasl.password", "s3cret", "does not belong here"),
        ("ssl.key.password", "s3cret", "does not belong here"),
        ("sasl.oauthbearer.client.secret", "s3cret", "does not belong here"),
        ("plugin.library.paths", "/srv/evil.so", "not a property"),
        ("ssl.engine.location", "/srv/evil.so", "not a property"),
        ("sasl.kerberos.kinit.cmd", "sh -c evil", "not a property"),
        ("enable.auto.commit", "true", "not a property"),
        ("bootstrap.servers", "elsewhere:1", "not a property"),
    ],
)
def test_t5_secrets_are_references_and_nothing_loads_a_library_or_runs_a_command(
    tmp_path: Path, key: str, value: str, said: str
) -> None:
    text = f'[events.kafka]\nbrokers = "a:1"\ntopic = "t"\n[events.kafka.properties]\n"{key}" = "{value}"\n'
    with pytest.raises(InvalidConfiguration, match=said) as refused:
        load(tmp_path, text)
    found: Any = f"{refused.value.message} {refused.value.hint}"
    assert "s3cret" not in found
