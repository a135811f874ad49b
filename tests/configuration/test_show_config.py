"""What people see of the configuration, and the file that they start from."""

from __future__ import annotations

import tomllib
from pathlib import Path

from icewright.catalogs.pyiceberg_settings import Discovery, discover
from icewright.config.settings import SECTIONS
from icewright.configuration.load import load_config
from icewright.configuration.show import shown, starting_file
from icewright.model.iceberg.catalog_entries import CatalogKind
from tests.cases import each_case

PYICEBERG = """
catalog:
  lake:
    uri: sqlite:////lake/it's "odd"/catalog.db
    warehouse: /lake
    s3.secret-access-key: hunter2
    s3.region: eu
  cloud:
    uri: https://example.org
    credential: me:hunter2
  big:
    uri: postgresql://me:hunter2@host/db
    warehouse: s3://bucket
  amazon:
    type: glue
"""


def test_every_setting_is_shown_with_its_origin_and_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "icewright.toml"
    file.write_text(
        """
[[catalogs]]
name = "lake"
type = "sql"
uri = "sqlite:////c.db"
warehouse = "/w"
mode = "approve"
[catalogs.properties]
s3.secret-access-key = "hunter2"
[optimizer.spark_conf]
spark.ssl.keyPassword = "hunter2"
[optimizer]
server_token = "env:TOKEN"
"""
    )
    config = load_config(None, {"HOME": str(tmp_path), "ICEWRIGHT_SERVER__PORT": "1"}, tmp_path)
    rows = {row.key: (row.value, row.origin) for row in shown(config)}
    assert rows["server.port"] == ("1", "environment ICEWRIGHT_SERVER__PORT")
    assert rows["server.host"] == ("127.0.0.1", "default")
    assert rows["optimizer.server_token"] == ("env:TOKEN", str(file))
    assert rows["optimizer.spark_conf.spark.ssl.keyPassword"] == ("***", str(file))
    assert rows["catalogs.lake.properties.s3.secret-access-key"] == ("***", str(file))
    assert rows["catalogs.lake.policy.icewright.mode"] == ("approve", str(file))
    assert "hunter2" not in str(rows)


def test_the_starting_file_can_be_loaded_and_observes(tmp_path: Path) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(PYICEBERG)
    text = starting_file(discover({"HOME": str(tmp_path)}, tmp_path))
    assert "hunter2" not in text
    assert '# "s3.secret-access-key" is a secret: write it as env:NAME or file:/path.' in text
    assert '# "jdbc.password" is a secret: write it as env:NAME or file:/path.' in text
    assert '# Not usable: "amazon"' in text
    (tmp_path / "icewright.toml").write_text(text)
    config = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
    entry, cloud, big = config.catalogs
    assert (cloud.kind, cloud.uri, cloud.warehouse) == (CatalogKind.REST, "https://example.org", "")
    assert big.uri == "postgresql://me@host/db"
    assert entry.uri == 'sqlite:////lake/it\'s "odd"/catalog.db'
    assert entry.properties == {"s3.region": "eu"}
    assert [dict(rule.properties) for rule in config.rules] == [{"icewright.mode": "observe"}] * 3


@each_case("section", list(SECTIONS))
def test_the_defaults_in_the_starting_file_are_the_defaults(section: str) -> None:
    text = starting_file(Discovery())
    assert tomllib.loads(text) == {section: {} for section in SECTIONS}
    sections = text[text.index("\n[") :]  # examples of catalogs and policies before them have a mode, too
    kept = [line for line in sections.splitlines() if _is_default(line) or line.startswith("[")]
    written = tomllib.loads("\n".join(line.removeprefix("# ") for line in kept))[section]
    for setting in SECTIONS[section]:
        if setting.default is not None:
            found = written[setting.key]
            assert (tuple(found) if isinstance(found, list) else found) == setting.default


def _is_default(line: str) -> bool:
    keys = {setting.key for settings in SECTIONS.values() for setting in settings if setting.default is not None}
    return line.startswith("# ") and line[2:].split(" = ", maxsplit=1)[0] in keys
