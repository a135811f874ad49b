"""The control plane of a server that follows and looks: what it may write, and what it has no hands for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from icewright.config.agreement import said_configuration
from icewright.config.model import Config, PlatformConfig
from icewright.configuration.load import load_config
from icewright.core.errors import InvalidConfiguration
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableName
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.server.control_wiring import open_control_plane
from icewright.server.coordination import open_coordination
from icewright.server.server import serve
from icewright.store.transactions import FOLLOWS
from tests.lakes.sqlite import make_lake
from tests.lakes.stores import postgres_store
from tests.narrowing import not_none
from tests.servers.postgres import PostgresServer

NAME = TableName("lake", ("db",), "events")
_CONFIG = """
[[catalogs]]
name = "lake"
type = "sql"
uri = "{uri}"
warehouse = "{warehouse}"

[cluster]
heartbeat_ms = 1000
dead_ms = 3000
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    entry = make_lake(tmp_path)
    (tmp_path / "icewright.toml").write_text(_CONFIG.format(uri=entry.uri, warehouse=entry.warehouse))
    return load_config(None, {"HOME": str(tmp_path)}, tmp_path)


def test_a_store_on_sqlite_has_one_server_that_shares_nothing(config: Config) -> None:
    with open_control_plane(config, {}) as opened:
        assert not opened.is_shared
        with open_coordination(config, {}, opened) as coordination:
            assert coordination.sharing("server-1") is None
        assert not not_none(opened.follow().registry.book().store).is_shared


def test_a_platform_that_cannot_be_asked_is_told_by_each_server_as_it_starts(
    config: Config, postgres: PostgresServer
) -> None:
    """And not by each that comes to lead, one after the other."""
    url, announced = postgres_store(postgres), list[str]()
    platform = PlatformConfig(kind="webhook", mode="act", url="https://hooks.example.org", secret="env:NOBODY")  # noqa: S106 - a reference
    config = replace(config, server=replace(config.server, store_url=url, port=0), platform=platform)
    with pytest.raises(InvalidConfiguration, match=r"platform\.secret: the environment has no variable NOBODY"):
        serve(config, {}, announce=lambda url, _link: announced.append(url))
    assert announced == []


def test_a_server_that_lacks_a_catalog_of_another_one_knows_no_place_in_full(
    config: Config, postgres: PostgresServer
) -> None:
    url = postgres_store(postgres)
    config = replace(config, server=replace(config.server, store_url=url))
    both = replace(config, catalogs=(*config.catalogs, replace(config.catalogs[0], name="pond")))
    with open_control_plane(config, {}) as opened:
        said = said_configuration(both)
        other = SqlCoordinator(opened.engine, said=said)
        for one in (config, both):
            registry = replace(opened, config=one).follow().registry
            assert registry.ownership_now().missing == {}
        session = other.join("server-2", 0)
        for _ in range(2):  # and when it has ended, for a day
            missing = opened.follow().registry.ownership_now().missing
            assert [(one.what, one.reason.code) for one in missing[""]] == [("catalog pond", "catalog-elsewhere")]
            assert replace(opened, config=both).follow().registry.ownership_now().missing == {}
            other.leave(session)
    postgres.drop(url)


def test_a_server_that_looks_writes_within_what_it_holds_alone_and_moves_no_file(
    config: Config, postgres: PostgresServer
) -> None:
    url = postgres_store(postgres)
    config = replace(config, server=replace(config.server, store_url=url))
    with open_control_plane(config, {}) as opened, open_coordination(config, {}, opened) as coordination:
        sharing = not_none(coordination.sharing("server-1"))
        share = sharing.share
        share.keep()
        led = not_none(opened.election.lead())
        share.assign(led)
        share.keep()
        looks = sharing.build(part := share.part(leads=False))
        with pytest.raises(RuntimeError, match="for nothing that it holds"):
            looks.tables.look_at_once(NAME)
        with part.working(NAME) as may:
            assert may
            looks.tables.look_at_once(NAME)
        store = not_none(looks.registry.book().store)
        assert (store.is_shared, store.declares) == (True, False)
        assert looks.removal_rounds._remover.catalogs == frozenset()
        engine = looks.tables._engine  # type: ignore[attr-defined]  # of the store on SQL
        assert engine.get_execution_options()[FOLLOWS]
        assert ActionKind.EXPIRE_SNAPSHOTS not in looks.loop._housekeeper._carriers
        dead = SqlCoordinator(opened.engine, dead_ms=config.cluster.dead_ms)
        assert [one.backend for one in dead.assigned().sessions] == [opened.election.backend]
    postgres.drop(url)
