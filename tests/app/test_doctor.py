"""``icewright doctor``: what is there, what is missing, and what is configured and cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from icewright.app.doctor import JAVA_VERSIONS, State, _alike
from icewright.core.extras import EXTRAS
from tests.builders.command_line import at_home, icewright, write_configuration
from tests.cases import each_case
from tests.lakes.sqlite import make_lake, make_table


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    at_home(tmp_path, monkeypatch)
    return tmp_path


def checks() -> tuple[int, dict[str, dict[str, Any]]]:
    said = icewright("doctor", "--json")
    found = {check["name"]: check for check in said.json["checks"]}
    assert said.json["failed"] == sum(check["state"] == "failed" for check in found.values())
    return said.status, found


@pytest.mark.usefixtures("here")
def test_a_new_machine_has_nothing_that_failed() -> None:
    status, found = checks()
    assert status == 0
    assert {found[name]["state"] for name in ("configuration", "server")} == {"missing"}
    assert "icewright config init" in found["configuration"]["hint"]
    assert found["icewright"]["state"] == "ok"


def test_catalogs_are_asked_and_a_lost_one_is_a_failure(here: Path) -> None:
    entry = make_lake(here)
    make_table(entry, ("db", "events"))
    lost = f'[[catalogs]]\nname = "lost"\ntype = "sql"\nuri = "sqlite:///{here}/lost/x.db"\nwarehouse = "/w"\n'
    write_configuration(here, entry, lost)
    status, found = checks()
    assert status == 1
    assert found[f"catalog {entry.name}"]["text"] == "sql answers; it has tables"
    assert found["catalog lost"]["state"] == "failed"
    said = icewright("doctor")
    assert "!!  catalog lost: " in said.out
    assert said.out.splitlines()[-1].endswith(" checks, 1 failed.")


def test_a_server_with_another_configuration_than_the_leader_is_named() -> None:
    shares: list[dict[str, Any]] = [
        {"server_id": "a", "differs": []},
        {"server_id": "b", "differs": ["catalogs", "oidc"]},
        {"server_id": "c"},
        {"server_id": "d", "differs": ["oidc"]},
    ]
    found, other = _alike(shares)
    assert (found.name, found.state) == ("server b", State.MISSING)
    assert found.text == (
        "its configuration differs from the leader's in catalogs, oidc; icewright discovers no tables in a catalog "
        "that the leader lacks: configure it there"
    )
    assert (other.name, other.text) == ("server d", "its configuration differs from the leader's in oidc")


def test_a_configuration_that_cannot_be_read_is_the_failure(here: Path) -> None:
    (here / "icewright.toml").write_text("[server]\nprot = 1\n")
    status, found = checks()
    assert status == 1
    assert list(found) == ["icewright", "configuration"]
    assert "server.prot" in found["configuration"]["text"]


STORE = "[server]\nstore_url = 'postgresql://db.example/icewright'\n"


@each_case(
    ("extra", "more"),
    [
        ("s3", '[[catalogs]]\nname = "a"\ntype = "sql"\nuri = "sqlite:////a.db"\nwarehouse = "s3://bucket/w"\n'),
        ("hdfs", '[[catalogs]]\nname = "a"\ntype = "sql"\nuri = "sqlite:////a.db"\nwarehouse = "hdfs://nn/w"\n'),
        ("zookeeper", f"{STORE}[cluster]\ncoordinator = 'zookeeper'\nzookeeper_hosts = ['127.0.0.1:1']\n"),
        ("kafka", '[events]\nkafka = { brokers = "127.0.0.1:1", topic = "commits" }\n'),
        ("notify", '[receivers.team]\nkind = "apprise"\nurl = "env:TEAM_URL"\n'),
        ("postgresql", '[server]\nstore_url = "postgresql://user@host/icewright"\n'),
    ],
)
def test_an_extra_is_missing_only_where_it_is_needed(extra: str, more: str, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        at_home(tmp_path, patch)
        for package in EXTRAS[extra]:
            patch.setitem(sys.modules, package, None)
        _, found = checks()
        assert f"extra {extra}" not in found
        assert f"not installed: {extra}" in found["extras"]["text"]
        (tmp_path / "icewright.toml").write_text(more)
        status, found = checks()
        assert status == 1
        assert found[f"extra {extra}"]["hint"] == f"pip install 'icewright[{extra}]'"


def test_the_java_of_java_home_goes_before_that_of_the_path(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = here / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(here / "jdk"))
    _, found = checks()
    assert found["java"]["state"] == "missing"
    assert found["java"]["text"] == f"{java} is Java 11"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{JAVA_VERSIONS[0]}.0.1\"' >&2\n")
    _, found = checks()
    assert found["java"]["state"] == "ok"
