"""Servers as the images, the compose file and the chart start them, as processes: words, variables, files, health."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.render_chart import CASES
from tests.builders.command_line import write_configuration
from tests.deploy.test_deploy_chart import pods
from tests.deploy.test_deploy_compose import FIRST_LOOK, FOLDER, SERVICES, environment
from tests.deploy.test_deploy_images import ROOT, STAGES
from tests.lakes.sqlite import append, make_lake, make_table
from tests.servers.certificates import Authority
from tests.servers.postgres import PASSWORD, USER, PostgresServer
from tests.servers.processes import HOST, free_port, running

pytestmark = pytest.mark.e2e
TOKEN = "the-token-that-its-owner-chose-for-all-servers"  # noqa: S105 - not a secret


def healthcheck(environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """What the image asks whether it is well."""
    (asked,) = STAGES["server"].words("HEALTHCHECK")
    _, script = json.loads(asked.partition(" CMD ")[2])
    command = [sys.executable, str(ROOT / "deploy" / Path(script).name)]
    return subprocess.run(command, env=dict(environ), capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 - our own words


class Place:
    """What a container has around its server: a lake, a database, mounted secrets. It listens on loopback here."""

    def __init__(self, folder: Path, postgres: PostgresServer, told: Mapping[str, str], names: tuple[str, ...]) -> None:
        entry = make_lake(folder)
        append(make_table(entry, ("db", "events")), range(10))
        write_configuration(folder, entry)
        self.folder, self.port = folder, free_port()
        secrets = {"store-password": PASSWORD, "server-token": TOKEN}
        for name, value in secrets.items():
            (folder / name).write_text(f"{value}\n")
        Authority(folder).vouch(folder / "tls.crt", folder / "tls.key", *names)
        database = postgres.new_database().rpartition("/")[2]
        self.environ = {
            **os.environ,
            **{name: self._here(value) for name, value in told.items()},
            "HOME": str(folder / "home"),
            "ICEWRIGHT_CONFIG": str(folder / "icewright.toml"),
            "ICEWRIGHT_SERVER__HOST": HOST,
            "ICEWRIGHT_SERVER__PORT": str(self.port),
            "ICEWRIGHT_SERVER__STORE_URL": f"postgresql://{USER}@{HOST}:{postgres.port}/{database}",
        }

    def _here(self, value: str) -> str:
        head, _, name = value.rpartition("/")
        if "/run/secrets" not in head:
            return value
        return f"{'file:' if value.startswith('file:') else ''}{self.folder / name}"

    def starts(self, words: list[str]) -> None:
        """By the image's own entry point, until it says that it is well, and not before."""
        (entry,) = STAGES["server"].words("ENTRYPOINT")
        *_, program = json.loads(entry)
        assert program == "icewright"
        assert healthcheck(self.environ).returncode == 1
        command = [sys.executable, "-m", program, *words]

        def ready() -> bool:
            return healthcheck(self.environ).returncode == 0

        with running(command, log=self.folder / "log", ready=ready, environ=self.environ):
            pass
        said = (self.folder / "log").read_text()
        assert TOKEN not in said
        assert PASSWORD not in said


def test_a_server_of_the_compose_file_starts_and_is_well(tmp_path: Path, postgres: PostgresServer) -> None:
    told = environment("server-1")
    assert (FOLDER / "icewright.toml").is_file()
    Place(tmp_path, postgres, told, ("icewright.example.com",)).starts(SERVICES["server-1"]["command"])


def test_a_server_of_the_chart_starts_by_tls_and_is_well(tmp_path: Path, postgres: PostgresServer) -> None:
    (pod,) = (pod for name, pod in pods(CASES / "least.values.yaml") if name.endswith("-server"))
    (container,) = pod["containers"]
    told = {variable["name"]: variable["value"] for variable in container["env"]}
    assert told["ICEWRIGHT_SERVER__TLS_KEY"]
    Place(tmp_path, postgres, told, ("icewright.example.com",)).starts(container["args"])


def test_a_first_look_starts_by_the_words_of_the_compose_file(tmp_path: Path) -> None:
    """As far as the link that logs a browser in; tests/e2e/test_demo_e2e.py plays the demo to its end."""
    (entry,) = STAGES["demo"].words("ENTRYPOINT")
    command, port = FIRST_LOOK["services"]["demo"]["command"], str(free_port())
    there = {"7077": port, "/var/lib/icewright/lake": str(tmp_path / "lake")}
    assert there.keys() <= set(command)
    words = [sys.executable, "-m", json.loads(entry)[-1], *(there.get(word, word) for word in command)]
    log = tmp_path / "log"
    environ = {"HOME": str(tmp_path), "ICEWRIGHT_CONFIG": "/etc/icewright/icewright.toml", "PYTHONUNBUFFERED": "1"}

    def ready() -> bool:
        return re.search(r"log in once with\s+http", log.read_text()) is not None

    with running(words, log=log, ready=ready, environ=environ, end=signal.SIGTERM):
        assert healthcheck({**os.environ, "ICEWRIGHT_SERVER__PORT": port}).returncode == 0
    assert f"http://127.0.0.1:{port}/" in log.read_text()
    assert "nothing is left running" in log.read_text()
