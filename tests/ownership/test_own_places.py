"""No table has the server's own files for its own, wherever its owner says that it lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from icewright.config.model import Config
from icewright.configuration.load import load_config
from icewright.core.completeness import Complete
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.ownership.own_paths import own_places
from icewright.server.control_wiring import open_control_plane
from tests.lakes.house import OWNED
from tests.lakes.sqlite import SCHEMA, append, make_lake, table_name, writer

CONFIG = """
[server]
state_dir = "server/state"
[[catalogs]]
name = "lake"
type = "sql"
uri = "{uri}"
warehouse = "{warehouse}"
quarantine = ["{quarantine}"]
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A lake in ``lake``, its catalog in a folder of its own, and the server's state in another one."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "quarantine").mkdir()
    entry = make_lake(tmp_path / "lake")
    text = CONFIG.format(uri=entry.uri, warehouse=entry.warehouse, quarantine=tmp_path / "quarantine")
    (tmp_path / "icewright.toml").write_text(text)
    return load_config(None, {"HOME": str(tmp_path)}, tmp_path)


def test_they_are_told_as_written_and_as_links_lead_there(config: Config, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "server").symlink_to(tmp_path / "elsewhere")
    assert set(own_places(config, config.catalogs)) == {
        f"{tmp_path}/server/state",
        f"{tmp_path}/elsewhere/state",
        f"{tmp_path}/server/state/icewright.db",
        f"{tmp_path}/elsewhere/state/icewright.db",
        f"{tmp_path}/lake/lake.db",
        f"{tmp_path}/icewright.toml",
    }


@pytest.mark.parametrize("folder", ["server/state", "server/state/tables", "server", "quarantine", "lake", "."])
def test_a_table_that_is_made_around_them_owns_nothing(config: Config, tmp_path: Path, folder: str) -> None:
    state = tmp_path / "server" / "state"
    state.mkdir(parents=True)
    with open_control_plane(config, {}) as opened:
        (token := state / "token").write_text("the token")
        catalog = writer(config.catalog("lake"))
        catalog.create_namespace("db")
        at = (tmp_path / folder).resolve()
        table = catalog.create_table("db.greedy", SCHEMA, location=at.as_uri(), properties=OWNED)
        append(table, range(10))
        led = opened.election.lead()
        assert led is not None
        control, name = opened.lead(led), table_name(table)
        control.loop.turn()
        known = control.registry.place_of(name)
        assert isinstance(known, Complete)
        assert (known.value.roots, {finding.code for finding in known.value.findings}) == ((), {"reserved-place"})
        plan = control.maintainer.plan_asked(name, RemoveOrphanFilesRequest())
        assert (plan.actions, token.read_text()) == ((), "the token")
