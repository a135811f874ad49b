"""What servers compare of their configurations: all that matters to tables, no secret, and nothing of the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest

from icewright.config.agreement import OWN, SECTIONS_ALIKE, said_configuration
from icewright.config.model import Config
from icewright.config.settings import SECTIONS
from icewright.configuration.load import load_config
from icewright.core.servers import SaidConfiguration
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.policy.policy import PolicyRule


@pytest.fixture
def config(tmp_path: Path) -> Config:
    found = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
    lake = CatalogEntry("lake", CatalogKind.REST, "https://ada:pw-1@rest/v1", "wh", {"token": "t-1", "s3.region": "eu"})
    pond = CatalogEntry("pond", CatalogKind.HIVE, "thrift://hms:9083", "")
    return replace(found, catalogs=(lake, pond), rules=(PolicyRule("lake", (), {"icewright.mode": "auto"}),))


def test_every_section_is_compared_or_that_of_another_process(config: Config) -> None:
    assert SECTIONS.keys() - set(SECTIONS_ALIKE) == {"optimizer"}
    said = said_configuration(config)
    assert said.sections.keys() == {*SECTIONS_ALIKE, "catalogs", "policies"}
    for section, own in OWN.items():
        assert own <= {one.name for one in fields(getattr(config, section))}


def lake(config: Config, **changes: object) -> Config:
    first, *others = config.catalogs
    return replace(config, catalogs=(replace(first, **changes), *others))  # type: ignore[arg-type]  # of the test


CHANGES: dict[str, tuple[Callable[[Config], Config], tuple[str, ...]]] = {
    "the order of catalogs": (lambda one: replace(one, catalogs=one.catalogs[::-1]), ()),
    "another password": (lambda one: lake(one, uri="https://ada:pw-2@rest/v1"), ()),
    "another token": (lambda one: lake(one, properties={"token": "t-2", "s3.region": "eu"}), ()),
    "a token kept elsewhere": (lambda one: lake(one, properties={"token": "file:/token", "s3.region": "eu"}), ()),
    "another port": (lambda one: replace(one, server=replace(one.server, port=1)), ()),
    "no catalog": (lambda one: replace(one, catalogs=one.catalogs[:1]), ("catalogs",)),
    "another address": (lambda one: lake(one, uri="https://other/v1"), ("catalogs",)),
    "another region": (lambda one: lake(one, properties={"token": "t-1", "s3.region": "us"}), ("catalogs",)),
    "another quarantine": (lambda one: lake(one, quarantine=("s3://b/q",)), ("catalogs",)),
    "another mode": (lambda one: replace(one, rules=()), ("policies",)),
    "other approvals": (lambda one: replace(one, server=replace(one.server, approvals="one-person")), ("server",)),
    "other heartbeats": (lambda one: replace(one, cluster=replace(one.cluster, heartbeat_ms=1_000)), ("cluster",)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_differs_is_named_by_its_section(config: Config, change: str) -> None:
    changed, sections = CHANGES[change]
    said, other = said_configuration(config), said_configuration(changed(config))
    assert said.differs_in(other) == sections
    assert other.differs_in(said) == sections
    assert replace(other, release="0.0.9").differs_in(said) == ()


def test_a_catalog_at_another_place_is_another_one(config: Config) -> None:
    said = said_configuration(config).catalogs
    moved, renewed = (
        said_configuration(lake(config, **one)).catalogs
        for one in ({"uri": "https://other/v1"}, {"uri": "https://ada:pw-2@rest/v1", "properties": {}})
    )
    assert (moved["lake"] == said["lake"], moved["pond"] == said["pond"]) == (False, True)
    assert renewed == said


def test_no_value_is_in_what_is_said(config: Config) -> None:
    said: SaidConfiguration = said_configuration(config)
    assert not [one for one in ("pw-1", "t-1", "rest", "hms", "auto") if one in str([said.sections.values()])]
