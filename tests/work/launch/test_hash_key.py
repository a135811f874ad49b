"""The key of hashed values: an optimizer gets it where it can be read, in its settings and nowhere else."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from icewright.config.model import Config
from icewright.configuration.load import load_config
from icewright.core.codec import dumps, loads
from icewright.model.work.optimizers import OptimizerSettings
from icewright.terminal.address import QUERIES_KEY, lasting_secret
from icewright.work.launch.optimizer import hash_key_of, settings_of

KEY = "a key of enough bytes"
CATALOG = '[[catalogs]]\nname = "lake"\ntype = "rest"\nuri = "https://catalog.example.org"\n'
REMOTE = '[optimizer]\nserver_url = "https://icewright.example.org"\nserver_token = "env:TOKEN"\n'
CONFIGURED = '[queries]\nhash_key = "env:HASH_KEY"\n'


def config_of(folder: Path, text: str) -> Config:
    (folder / "icewright.toml").write_text(f'[server]\nstate_dir = "{folder}"\n{text}{CATALOG}')
    return load_config(None, {}, folder)


def test_the_configured_key_comes_by_its_reference(tmp_path: Path) -> None:
    config = config_of(tmp_path, REMOTE + CONFIGURED)
    settings = settings_of(config, {"TOKEN": "t", "HASH_KEY": KEY})
    assert settings.queries_hash_key == KEY
    assert KEY not in repr(settings)
    assert loads(OptimizerSettings, dumps(settings)) == settings


def test_an_optimizer_without_the_key_works_without_it(tmp_path: Path) -> None:
    config = config_of(tmp_path, REMOTE + CONFIGURED)
    with capture_logs() as logs:
        assert settings_of(config, {"TOKEN": "t"}).queries_hash_key is None
    assert [one["event"] for one in logs] == ["hashed values of queries are not compared"]


def test_the_key_of_the_server_is_read_where_they_share_a_directory(tmp_path: Path) -> None:
    here, elsewhere = config_of(tmp_path, ""), config_of(tmp_path, REMOTE)
    assert hash_key_of(here, {}) is None
    assert not (tmp_path / QUERIES_KEY).exists()  # only the server makes it
    key = lasting_secret(tmp_path, QUERIES_KEY)
    assert hash_key_of(here, {}) == key
    assert hash_key_of(elsewhere, {}) is None
    (tmp_path / QUERIES_KEY).chmod(0o644)
    assert hash_key_of(here, {}) is None


def test_where_nothing_is_hashed_there_is_no_key(tmp_path: Path) -> None:
    for policy in ("keep", "drop"):
        config = config_of(tmp_path, CONFIGURED + f'literals = "{policy}"\n')
        assert hash_key_of(config, {"HASH_KEY": KEY}) is None
