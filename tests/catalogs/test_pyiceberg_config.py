"""What PyIceberg is configured for is found, with the reasons where it cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from icewright.catalogs.pyiceberg_settings import discover
from icewright.configuration.load import load_config
from icewright.core.errors import InvalidConfiguration
from tests.cases import each_case

YAML = """
catalog:
  Lake:
    type: sql
    uri: sqlite:////lake/catalog.db
    warehouse: /lake/warehouse
    s3.region: eu
  guessed:
    uri: sqlite:////lake/other.db
    warehouse: file:///lake/other
  cloud:
    uri: https://example.org
  metastore:
    type: hive
    uri: thrift://h
  big:
    type: sql
    uri: postgresql+psycopg2://me:hunter2@h/db
    warehouse: s3://b
  amazon:
    type: glue
  files:
    type: hadoop
    warehouse: s3://b
  keys:
    type: dynamodb
  locked:
    uri: https://example.org
    auth:
      type: oauth2
  signed:
    uri: https://example.org
    rest.sigv4-enabled: true
  tickets:
    uri: thrift://h
    hive.kerberos-authentication: true
  other-database:
    type: sql
    uri: mysql://me:hunter2@h/db
    warehouse: s3://b
  relative:
    uri: sqlite:///catalog.db
    warehouse: /x
  bare:
    uri: sqlite:////catalog.db
  own:
    py-catalog-impl: my.Catalog
  a.b:
    uri: sqlite:////catalog.db
    warehouse: /x
  none:
    warehouse: /x
"""


def test_l1_catalogs_that_can_be_driven_are_found_and_others_say_why_not(tmp_path: Path) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(YAML)
    found = discover({"HOME": str(tmp_path)}, tmp_path / "work")
    assert [(entry.name, entry.uri, entry.warehouse) for entry in found.entries] == [
        ("lake", "sqlite:////lake/catalog.db", "/lake/warehouse"),
        ("guessed", "sqlite:////lake/other.db", "file:///lake/other"),
        ("cloud", "https://example.org", ""),
        ("metastore", "thrift://h", ""),
        ("big", "postgresql+psycopg2://me:hunter2@h/db", "s3://b"),
    ]
    assert [entry.kind for entry in found.entries] == ["sql", "sql", "rest", "hive", "sql"]
    assert found.entries[0].properties == {"s3.region": "eu"}
    reasons = {other.name: other.reason for other in found.unusable}
    assert reasons["amazon"] == "catalogs of type glue cannot be used, only sql, rest, hive"
    assert reasons["files"] == "catalogs of type hadoop cannot be used, only sql, rest, hive"
    assert reasons["keys"] == "catalogs of type dynamodb cannot be used, only sql, rest, hive"
    assert "its block auth has no counterpart for Spark" in reasons["locked"]
    assert "SigV4" in reasons["signed"]
    assert "Kerberos" in reasons["tickets"]
    assert "SQL catalogs on mysql cannot be used" in reasons["other-database"]
    assert "is not a SQLite file" in reasons["relative"]
    assert "it has no warehouse" in reasons["bare"]
    assert "my.Catalog" in reasons["own"]
    assert "Spark cannot have" in reasons["a.b"]
    assert "type unknown" in reasons["none"]
    assert "hunter2" not in str(found.unusable)


def test_places_are_searched_as_pyiceberg_does(tmp_path: Path) -> None:
    text = "catalog:\n  {}:\n    uri: sqlite:////c.db\n    warehouse: /w\n"
    for place in ("named", "home", "work"):
        (tmp_path / place).mkdir()
        (tmp_path / place / ".pyiceberg.yaml").write_text(text.format(place))
    environ = {"HOME": str(tmp_path / "home"), "PYICEBERG_HOME": str(tmp_path / "named")}

    def first() -> str:
        return discover(environ, tmp_path / "work").entries[0].name

    assert first() == "named"
    (tmp_path / "named/.pyiceberg.yaml").unlink()
    assert first() == "home"
    (tmp_path / "home/.pyiceberg.yaml").unlink()
    assert first() == "work"


def test_the_environment_adds_and_overrides(tmp_path: Path) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(YAML)
    environ = {
        "HOME": str(tmp_path),
        "PYICEBERG_CATALOG__LAKE__WAREHOUSE": "/other",
        "PYICEBERG_CATALOG__LAKE__S3__ACCESS_KEY_ID": "key",
        "PYICEBERG_CATALOG__MY_POND__URI": "sqlite:////pond.db",
        "PYICEBERG_CATALOG__MY_POND__WAREHOUSE": "/pond",
        "PYICEBERG_MAX_WORKERS": "3",
    }
    found = discover(environ, tmp_path)
    lake, pond = found.entries[0], found.entries[-1]
    assert (lake.warehouse, lake.properties["s3.access-key-id"]) == ("/other", "key")
    assert (pond.name, pond.warehouse) == ("my-pond", "/pond")
    assert found.origins["my-pond"] == "environment PYICEBERG_CATALOG__*"


def test_it_is_used_and_said_only_where_icewright_names_no_catalogs(tmp_path: Path) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(YAML)
    environ = {"HOME": str(tmp_path)}
    config = load_config(None, environ, tmp_path)
    assert [entry.name for entry in config.catalogs] == ["lake", "guessed", "cloud", "metastore", "big"]
    (note,) = config.notes
    assert note.startswith("there is no icewright.toml; catalogs taken from PyIceberg's configuration")
    assert note.endswith(f"({tmp_path}/.pyiceberg.yaml): lake, guessed, cloud, metastore, big")
    (tmp_path / "icewright.toml").write_text(
        '[[catalogs]]\nname = "mine"\ntype = "sql"\nuri = "sqlite:////m.db"\nwarehouse = "/m"\n'
    )
    config = load_config(None, environ, tmp_path)
    assert ([entry.name for entry in config.catalogs], config.notes, config.unusable) == (["mine"], (), ())


@each_case("text", ["catalog: 3\n", "catalog:\n  lake: sqlite\n", "a: b: c\n", "\t"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(text)
    with pytest.raises(InvalidConfiguration, match=r"\.pyiceberg\.yaml"):
        discover({"HOME": str(tmp_path)}, tmp_path)
